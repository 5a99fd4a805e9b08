// A graph in training: its parameters on a device with the optimiser's state, and
// forwards op by op that autograd records.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "graph/graph.h"
#include "graph/net.h"
#include "train/optimizer.h"
#include "train/state.h"

namespace assay {

using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;

// The type of parameters, of the optimiser's state and of what goes in and comes out.
at::ScalarType training_dtype(Precision precision);
// Channels last is what oneDNN and the tensor cores compute in: other layouts are copied to it
// and back. Plain f32 on GPUs and f64 have no such kernels.
at::MemoryFormat training_format(at::Device device, Precision precision);

// Not to be used by two threads at once.
class TrainedGraph {
 public:
  // initial: a tensor a parameter (see initial.h), copied. names: what the parameters are called in
  // checkpoints; empty: as in the graph. seed: of dropout, under the key of (seed,
  // "train/dropout", the op's name) and the step.
  TrainedGraph(Graph graph, const std::vector<at::Tensor>& initial, std::vector<std::string> names,
               const OptimizerOptions& optimizer, uint64_t seed, at::Device device, Precision precision);

  const Graph& graph() const { return graph_; }
  const Shape& input() const { return graph_.values.front().shape; }

  // x: [N, input] (a graph on F columns also takes [N,C,H,W]) in training_dtype. In training batch norm uses
  // the statistics of the batch and follows them with the op's momentum (variance unbiased). values: in place
  // of the parameters, by index; NULL: the parameters.
  at::Tensor forward(const at::Tensor& x, bool training, int64_t step,
                     const std::vector<at::Tensor>* values = nullptr);

  // By parameter index; undefined where nothing reads it.
  const std::vector<at::Tensor>& values() const { return values_; }
  // What the optimiser changes: leaves of autograd, and a step along their gradients
  // (undefined: the parameter stays, as in PyTorch). number: of the step, from 0.
  std::vector<at::Tensor> leaves() const;
  void descend(std::vector<at::Tensor> gradients, double rate, int64_t number);

  // In the order of the graph: the state dict (num_batches_tracked i64), and the optimiser's
  // tensors ("fc.weight/momentum"). The tensors are the graph's own, which the next
  // step changes: see host_copy.
  NamedTensors parameters() const;
  NamedTensors optimizer_state() const;
  // What match (state.h) wants of a checkpoint, and what it gives taken as the new state, in
  // copies. No optimiser state is that of a new optimiser.
  std::vector<Wanted> wanted_parameters() const;
  std::vector<Wanted> wanted_optimizer_state() const;
  void take(c10::ArrayRef<at::Tensor> parameters, c10::ArrayRef<at::Tensor> optimizer);

 private:
  // An op with what is known before it runs.
  struct Node {
    const Op* op = nullptr;
    std::vector<size_t> parameters;  // indices, without optional ones
    std::vector<int> last_uses;      // values that nothing reads after it
    bool in_place = false;           // may write into its first input
    int64_t* batches = nullptr;      // batch norm: counts training steps
    uint64_t key = 0;                // dropout
  };

  void compile(uint64_t seed);
  at::Tensor train_op(const Node& node, std::vector<at::Tensor>& inputs,
                      const std::vector<at::Tensor>& parameters, int64_t step) const;
  at::Tensor placed(const at::Tensor& value) const;
  std::vector<std::vector<at::Tensor>> fresh_state() const;

  Graph graph_;
  std::vector<std::string> names_;  // by parameter index
  at::Device device_;
  at::ScalarType dtype_;
  at::MemoryFormat format_;  // of images and of weights with four axes
  std::unique_ptr<Optimizer> optimizer_;
  std::vector<Node> nodes_;
  std::vector<at::Tensor> values_;                        // by parameter index
  std::map<size_t, int64_t> batches_;                     // num_batches_tracked, by parameter index
  std::vector<size_t> trained_;                           // parameters that the optimiser changes
  std::vector<std::vector<at::Tensor>> optimizer_state_;  // [kind][place in trained_]
};

}  // namespace assay
