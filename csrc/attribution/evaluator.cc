#include "attribution/evaluator.h"

#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <utility>

#include "api/error.h"
#include "graph/differentiator.h"

namespace assay {

Output output_of(const std::string& name) {
  if (name == "logit") return Output::kLogit;
  if (name == "probability") return Output::kProbability;
  if (name == "log-probability") return Output::kLogProbability;
  throw invalid("output ", name, ": want logit, probability or log-probability");
}

at::Tensor tracked(const at::Tensor& logits, const std::vector<int64_t>& targets, Output output) {
  const at::Tensor index = at::tensor(targets, at::kLong).to(logits.device()).unsqueeze(1);
  const at::Tensor wide = logits.to(at::kDouble);
  const at::Tensor one = wide.gather(1, index).squeeze(1);
  if (output == Output::kLogit) return one;
  const at::Tensor logarithm = one - at::logsumexp(wide, 1);
  return output == Output::kProbability ? at::exp(logarithm) : logarithm;
}

at::Tensor per_row(const at::Tensor& numbers, const at::Tensor& rows) {
  std::vector<int64_t> shape(static_cast<size_t>(rows.dim()), 1);
  shape[0] = numbers.size(0);
  return numbers.to(rows.device(), rows.scalar_type()).view(shape);
}

at::Tensor finite_mark(const at::Tensor& rows) { return (rows * 0).flatten(1).sum(1); }

Evaluator::Evaluator(const Net& net, int64_t batch) : net_(net), batch_(batch) {
  if (batch < 1) throw invalid("batch ", batch, ": want at least 1");
}

at::Tensor Evaluator::padded(const at::Tensor& x) const {
  if (x.size(0) == batch_) return x;
  std::vector<int64_t> missing = x.sizes().vec();
  missing[0] = batch_ - x.size(0);
  return at::cat({x, x.narrow(0, x.size(0) - 1, 1).expand(missing)});
}

at::Tensor Evaluator::logits(const at::Tensor& x) {
  std::vector<at::Tensor> parts;
  for (int64_t begin = 0; begin < x.size(0); begin += batch_) {
    const int64_t count = std::min(batch_, x.size(0) - begin);
    parts.push_back(net_.forward(padded(x.narrow(0, begin, count))).narrow(0, 0, count));
    forwards_ += count;
  }
  return parts.size() == 1 ? parts[0] : at::cat(parts);
}

at::Tensor Evaluator::outputs(const at::Tensor& x, const std::vector<int64_t>& targets, Output output) {
  return tracked(logits(x), targets, output);
}

at::Tensor Evaluator::logit_gradient(const at::Tensor& logits, const std::vector<int64_t>& targets,
                                     Output output) {
  // f = z_t: one-hot; log p: one-hot - p; p: p_t (one-hot - p).
  at::Tensor gradient = at::zeros(logits.sizes(), logits.options().dtype(at::kDouble));
  const at::Tensor index = at::tensor(targets, at::kLong).to(logits.device()).unsqueeze(1);
  gradient.scatter_(1, index, 1);
  if (output == Output::kLogit) return gradient;
  const at::Tensor probabilities = at::softmax(logits.to(at::kDouble), 1);
  gradient = gradient - probabilities;
  return output == Output::kProbability ? gradient * probabilities.gather(1, index) : gradient;
}

at::Tensor Evaluator::gradients(const at::Tensor& x, const std::vector<int64_t>& targets, Output output,
                                ReluRule rule) {
  std::vector<at::Tensor> parts;
  for (int64_t begin = 0; begin < x.size(0); begin += batch_) {
    const int64_t count = std::min(batch_, x.size(0) - begin);
    const std::vector<int64_t> some(targets.begin() + begin, targets.begin() + begin + count);
    const at::Tensor rows = padded(x.narrow(0, begin, count));
    const at::Tensor gradients =
        net_.is_black_box() ? by_autograd(rows, some, output) : by_rules(rows, some, output, rule);
    parts.push_back(gradients.narrow(0, 0, count));
    forwards_ += count;
    backwards_ += count;
  }
  return parts.size() == 1 ? parts[0] : at::cat(parts);
}

at::Tensor Evaluator::by_rules(const at::Tensor& rows, std::vector<int64_t> targets, Output output,
                               ReluRule rule) const {
  targets.resize(static_cast<size_t>(batch_), targets.back());
  const Differentiator& net = net_.differentiator();
  Tape tape = net.record(net.head(rows));
  const at::Tensor of_logits = logit_gradient(tape.logits, targets, output);
  const at::Tensor gradients = net.pull(std::move(tape), of_logits, rule).contiguous();
  return gradients + per_row(finite_mark(rows), rows);
}

at::Tensor Evaluator::by_autograd(const at::Tensor& rows, const std::vector<int64_t>& targets,
                                  Output output) const {
  const at::AutoGradMode grad(true);
  const at::Tensor x = rows.detach().requires_grad_(true);
  const at::Tensor logits = net_.forward_plain(x).logits.narrow(0, 0, static_cast<int64_t>(targets.size()));
  return torch::autograd::grad({tracked(logits, targets, output).sum()}, {x})[0];
}

}  // namespace assay
