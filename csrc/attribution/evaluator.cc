#include "attribution/evaluator.h"

#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>

#include "api/error.h"

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

Evaluator::Gradients Evaluator::gradients(const at::Tensor& x, const std::vector<int64_t>& targets,
                                          Output output) {
  std::vector<at::Tensor> gradients, outputs;
  for (int64_t begin = 0; begin < x.size(0); begin += batch_) {
    const int64_t count = std::min(batch_, x.size(0) - begin);
    const at::AutoGradMode grad(true);
    const at::Tensor rows = padded(x.narrow(0, begin, count)).detach().requires_grad_(true);
    const at::Tensor logits = net_.forward_plain(rows).logits.narrow(0, 0, count);
    const std::vector<int64_t> some(targets.begin() + begin, targets.begin() + begin + count);
    const at::Tensor out = tracked(logits, some, output);
    gradients.push_back(torch::autograd::grad({out.sum()}, {rows})[0].narrow(0, 0, count));
    outputs.push_back(out.detach());
    forwards_ += count;
    backwards_ += count;
  }
  return {at::cat(gradients), at::cat(outputs)};
}

}  // namespace assay
