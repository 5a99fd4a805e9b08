// Runs a net for methods: rows in, one number a row (and its gradient) out, a
// fixed number of rows at a time so that every convolution sees one shape.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <string>
#include <vector>

#include "graph/derivatives.h"
#include "graph/net.h"

namespace assay {

// The explained scalar, of the target class.
enum class Output { kLogit, kProbability, kLogProbability };
// "logit", "probability", "log-probability"; throws invalid for others.
Output output_of(const std::string& name);
// That number of each row of logits: [N], in double. Recorded by autograd where that is on.
at::Tensor tracked(const at::Tensor& logits, const std::vector<int64_t>& targets, Output output);

// A number a row, to be combined with rows of any shape: [N,1,...] like them.
at::Tensor per_row(const at::Tensor& numbers, const at::Tensor& rows);
// Zero for every row, NaN for those that hold NaN or infinity, which oneDNN's ReLU would
// hide: [N], to be added to what is said of the row.
at::Tensor finite_mark(const at::Tensor& rows);

class Evaluator {
 public:
  // batch: rows that run at a time (the last ones padded with copies).
  Evaluator(const Net& net, int64_t batch);

  int64_t batch() const { return batch_; }

  // [N,classes] in the net's dtype, on its device.
  at::Tensor logits(const at::Tensor& x);
  // [N] in double, on the net's device.
  at::Tensor outputs(const at::Tensor& x, const std::vector<int64_t>& targets,
                     Output output = Output::kLogit);

  // d output / d x of each row, like x; rule: for nets of ReLU (Differentiator::want_relus).
  at::Tensor gradients(const at::Tensor& x, const std::vector<int64_t>& targets,
                       Output output = Output::kLogit, ReluRule rule = ReluRule::kGradient);
  // d output / d logits of each row of logits: [N,classes] in double.
  static at::Tensor logit_gradient(const at::Tensor& logits, const std::vector<int64_t>& targets,
                                   Output output = Output::kLogit);

  // Rows that ran, padding not counted.
  int64_t forwards() const { return forwards_; }
  int64_t backwards() const { return backwards_; }

  // At most batch() rows as batch() rows: the last one repeated.
  at::Tensor padded(const at::Tensor& x) const;
  // What ran elsewhere.
  void count(int64_t forwards, int64_t backwards) {
    forwards_ += forwards;
    backwards_ += backwards;
  }

 private:
  // Gradients of batch() rows, of which those with a target count.
  at::Tensor by_rules(const at::Tensor& rows, std::vector<int64_t> targets, Output output,
                      ReluRule rule) const;
  at::Tensor by_autograd(const at::Tensor& rows, const std::vector<int64_t>& targets, Output output) const;

  const Net& net_;
  int64_t batch_;
  int64_t forwards_ = 0, backwards_ = 0;
};

}  // namespace assay
