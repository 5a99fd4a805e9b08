// A net cut at a layer and differentiated there: the part before the layer runs
// once, the part after it any number of times, and gradients of the logits come
// back to the layer by one rule an op, on the folded and fused plan.
#pragma once

#include <ATen/ATen.h>

#include <memory>
#include <vector>

#include "graph/derivatives.h"
#include "graph/graph.h"
#include "graph/plan.h"
#include "graph/weighted.h"

namespace assay {

// What a forward pass leaves for the backward pass.
struct Tape {
  at::Tensor logits;                        // [N,classes]
  std::vector<at::Tensor> values;           // by value id, those that rules read
  std::vector<std::vector<int64_t>> sizes;  // by value id
};

class Differentiator {
 public:
  // origin: the value id of the layer, 0 the input. state: by parameter index, on the CPU.
  Differentiator(const Graph& graph, const std::vector<at::Tensor>& state, int origin, at::Device device,
                 at::ScalarType dtype, bool tf32);

  // What the part after the layer reads, for rows x ([N,...]): the layer's own
  // value first, then those that pass it by. Each has N rows, or one for all.
  std::vector<at::Tensor> head(const at::Tensor& x) const;
  // What head returns, out of the tape of a cut of the same net at an earlier layer; empty
  // where that has not kept it.
  std::vector<at::Tensor> head_of(const Tape& tape) const;
  // The logits of what head returned, or of something else in the layer's place.
  at::Tensor tail(const std::vector<at::Tensor>& values) const;
  // The same, leaving what pull needs.
  Tape record(const std::vector<at::Tensor>& values) const;
  // Gradient with respect to the layer's value, from that with respect to the
  // logits [N,classes]. The tape is used up.
  at::Tensor pull(Tape tape, const at::Tensor& gradient, ReluRule rule = ReluRule::kGradient) const;

  // Rules for ReLU are for nets that have no other activation after the layer:
  // throws unsupported naming the first that is neither ReLU nor ReLU6.
  void want_relus(const std::string& method) const;

 private:
  at::Tensor run(const Step& step, const std::vector<at::Tensor>& values) const;
  at::Tensor forward(std::vector<at::Tensor> values, Tape* tape) const;

  const Graph& graph_;
  at::Device device_;
  at::ScalarType dtype_;
  bool tf32_;
  int origin_;
  Plan plan_;
  std::vector<std::unique_ptr<Weighted>> weighted_;  // by step; nullptr: not weighted
  std::vector<size_t> before_, after_;               // steps
  std::vector<int> frontier_;                        // value ids that head returns
  std::vector<size_t> last_before_, last_after_;     // by value: the step that reads it last
  std::vector<bool> kept_;                           // by value: rules read it
  std::vector<bool> follows_;                        // by value: depends on the layer
};

}  // namespace assay
