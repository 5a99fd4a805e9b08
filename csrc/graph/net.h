// A net: a graph with its parameters, on a device, ready to be run.
#pragma once

#include <ATen/ATen.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "graph/graph.h"
#include "nets/registry.h"

namespace assay {

enum class Precision { kF32 = 0, kTF32 = 1, kBF16 = 2, kF64 = 3 };  // TX_PRECISION_*

// A place in a net that has a name: the output of an op, a block or a stage.
struct LayerInfo {
  std::string name;
  std::string op;                // kind of op, or of place ("block", "stage", "features")
  std::vector<int64_t> outputs;  // shape of one row: [64,56,56]
};

class BlackBox;        // black_box.h
class Differentiator;  // differentiator.h
class Engine;          // engine.h

// Not to be used by two threads at once.
class Net {
 public:
  // id: of net_registry(). Throws not-found for an unknown id, invalid for
  // options that the net does not take.
  static std::unique_ptr<Net> build(const std::string& id, const NetOptions& options);
  // A net of a graph that came from elsewhere.
  Net(NetEntry entry, Graph graph);
  // A net of which only the outside is known, with its parameters; the graph has
  // input, output and the parameters' names and shapes. reason: why it is so.
  Net(NetEntry entry, Graph graph, std::unique_ptr<BlackBox> box, std::string reason);
  ~Net();
  Net(const Net&) = delete;
  Net& operator=(const Net&) = delete;

  const std::string& id() const { return entry_.id; }
  const std::string& preset() const { return entry_.preset; }
  const Graph& graph() const { return graph_; }
  const std::vector<ParameterInfo>& parameters() const { return graph_.parameters; }
  // Elements of all parameters that are trained (no buffers).
  int64_t parameter_count() const;
  std::vector<LayerInfo> layers() const;
  const Shape& input_shape() const { return graph_.values.front().shape; }  // [C,H,W] or [F]
  int64_t classes() const { return graph_.values[static_cast<size_t>(graph_.output)].shape[0]; }
  // Whether only forwards and gradients of the input are known, and why.
  bool is_black_box() const { return box_ != nullptr; }
  const std::string& reason() const { return reason_; }
  const std::string& default_layer() const { return graph_.default_layer; }  // "": none

  // Takes copies of all parameters: every name that is not optional must be
  // there once, no other may be, shapes must be equal; f64 stays f64 until
  // prepare, other floating types become f32. Throws invalid naming up to five
  // offenders; the net is then as it was before.
  void load(const std::vector<std::pair<std::string, at::Tensor>>& state);
  bool loaded() const { return loaded_; }
  // By parameter index, on the CPU, as loaded; empty for black boxes.
  const std::vector<at::Tensor>& state() const { return state_; }

  // Moves to a device and makes ready for inference (batch norm folded in
  // double, weights reordered). May be called again, with other arguments.
  // Throws invalid before load.
  void prepare(at::Device device, Precision precision);
  bool prepared() const { return engine_ != nullptr; }
  // Lets go of what prepare made.
  void unprepare();
  at::Device device() const { return device_; }
  Precision precision() const { return precision_; }

  // Inference. x: floating, [N,C,H,W] or [N,F] on the net's device (a net on F
  // columns also takes [N,C,H,W] with C*H*W = F), any memory format. Returns
  // ordinary contiguous logits [N,classes] on the device, f32 (f64 at that
  // precision). For a given N a row's bits depend neither on its place in the
  // batch nor on the other rows (see onednn_engine.cc on how); in f64, whose matrix
  // products are MKL's, the last digit may.
  // Throws invalid before prepare and for other shapes.
  at::Tensor forward(const at::Tensor& x) const;

  // The net cut at a layer (a name of layers(); "": the input), on the prepared device,
  // in f32 (f64 at that precision). Made when first asked for. Throws not-found for other
  // layers, unsupported for black boxes.
  const Differentiator& differentiator(const std::string& layer = "") const;

  struct Tapped {
    at::Tensor logits;             // [N,classes]
    std::vector<at::Tensor> taps;  // [N,...] each, as asked for
  };
  // The ops one by one, unfolded, on the prepared device, in the precision's
  // dtype (f32 for bf16). Autograd records it
  // where grad mode is on and x or a parameter requires grad.
  // taps: names of layers(); throws not-found for others.
  Tapped forward_plain(const at::Tensor& x, const std::vector<std::string>& taps = {}) const;

 private:
  at::Tensor checked(const at::Tensor& x) const;
  int value_of(const std::string& layer) const;

  NetEntry entry_;
  Graph graph_;
  std::unique_ptr<BlackBox> box_;
  std::string reason_;
  bool loaded_ = false;
  std::vector<at::Tensor> state_;  // by parameter index, on the CPU, as loaded
  at::Device device_ = at::kCPU;
  Precision precision_ = Precision::kF32;
  std::unique_ptr<Engine> engine_;
  // state_ on device_ in the dtype of forward_plain, made when first needed.
  mutable std::vector<at::Tensor> plain_;
  mutable std::map<int, std::unique_ptr<Differentiator>> differentiators_;  // by value id
};

}  // namespace assay
