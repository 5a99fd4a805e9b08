#include "train/trainer.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "api/error.h"
#include "graph/engine.h"
#include "train/guards.h"
#include "train/key.h"

namespace assay {

Trainer::Trainer(Shape input, int64_t classes, const TrainerOptions& options, at::Device device,
                 Precision precision)
    : input_(std::move(input)), classes_(classes), options_(options), device_(device), precision_(precision) {
  if (!device.is_cpu() && !device.is_cuda())
    throw unsupported("device ", device.str(), ": want cpu or cuda:N");
  if (options.augment.pad < 0 || options.augment.pad > 4096) {
    throw invalid("augment: pad ", options.augment.pad, ": want 0..4096");
  }
  const Normalisation& n = options.normalisation;
  if (!(n.scale > 0) || !std::isfinite(n.scale)) throw invalid("scale ", n.scale, ": want more than 0");
  for (double mean : n.mean) {
    if (!std::isfinite(mean)) throw invalid("mean ", mean, ": want a finite number");
  }
  for (double std : n.std) {
    if (!(std > 0) || !std::isfinite(std)) throw invalid("std ", std, ": want more than 0");
  }
  if (device.is_cpu() && precision == Precision::kBF16 && !onednn_supports(at::kBFloat16)) {
    throw unsupported("precision bf16: this CPU or libtorch cannot, want f32");
  }
}

Loader Trainer::loader(const Part& part, const Augment& augment) const {
  return Loader(part, options_.normalisation, augment, training_dtype(precision_),
                training_format(device_, precision_));
}

void Trainer::set_data(const std::string& name, const at::Tensor& examples, const at::Tensor& labels) {
  at::NoGradGuard no_grad;
  Part part = make_part(examples, labels, input_, classes_, device_);
  loader(part, name == "train" ? options_.augment : Augment{});  // throws where they do not fit
  parts_[name] = std::move(part);
}

const Part& Trainer::part(const std::string& name) const {
  const auto found = parts_.find(name);
  if (found == parts_.end()) throw not_found("data \"", name, "\": none was given");
  return found->second;
}

Trainer::Steps Trainer::steps(c10::ArrayRef<int32_t> indices, int64_t batch, c10::ArrayRef<double> rates,
                              int64_t first) {
  const Part& data = part("train");
  const auto count = static_cast<int64_t>(indices.size()), steps = static_cast<int64_t>(rates.size());
  if (batch < 1) throw invalid("batch ", batch, ": want at least 1");
  if (first < 0) throw invalid("first step ", first, ": want at least 0");
  if (steps != count / batch + (count % batch != 0)) {
    throw invalid(count, " indices in batches of ", batch, " are not ", steps, " steps, one for each rate");
  }
  std::vector<int64_t> wide(indices.begin(), indices.end());
  for (size_t i = 0; i < wide.size(); ++i) {
    if (wide[i] < 0 || wide[i] >= data.count()) {
      throw invalid("index ", i, " is ", wide[i], ": want 0..", data.count() - 1);
    }
  }
  for (size_t i = 0; i < rates.size(); ++i) {
    if (!std::isfinite(rates[i]) || rates[i] < 0) {
      throw invalid("rate ", i, " is ", rates[i], ": want a finite number, 0 or more");
    }
  }
  at::NoGradGuard no_grad;
  const ArithmeticGuard arithmetic(device_, precision_);
  Loader load = loader(data, options_.augment);
  const uint64_t key = random_key(options_.seed, "train/augment", "");
  load.begin(std::move(wide), draw_moves(options_.augment, key, count, batch, first));
  // Read once, at the end: a GPU is not waited for between steps.
  at::Tensor losses = at::zeros({steps}, at::TensorOptions(device_).dtype(at::kDouble));
  at::Tensor correct = at::zeros({}, at::TensorOptions(device_).dtype(at::kLong));
  for (int64_t i = 0; i < steps; ++i) {
    at::Tensor loss = losses.select(0, i);
    step(load, i * batch, std::min(batch, count - i * batch), rates[static_cast<size_t>(i)], first + i, loss,
         correct);
  }
  const at::Tensor read = losses.cpu();
  Steps out;
  out.losses.assign(read.const_data_ptr<double>(), read.const_data_ptr<double>() + steps);
  out.correct = correct.item<int64_t>();
  out.examples = count * predictions();
  return out;
}

Trainer::Evaluation Trainer::evaluate(const std::string& name, int64_t batch) {
  const Part& data = part(name);
  if (batch < 1) throw invalid("batch ", batch, ": want at least 1");
  at::NoGradGuard no_grad;
  const ArithmeticGuard arithmetic(device_, precision_);
  Loader load = loader(data, {});
  std::vector<int64_t> all(static_cast<size_t>(data.count()));
  std::iota(all.begin(), all.end(), 0);
  load.begin(std::move(all), {});
  at::Tensor loss = at::zeros({}, at::TensorOptions(device_).dtype(at::kDouble));
  at::Tensor correct = at::zeros({}, at::TensorOptions(device_).dtype(at::kLong));
  for (int64_t begin = 0; begin < data.count(); begin += batch) {
    judge(load, begin, std::min(batch, data.count() - begin), loss, correct);
  }
  const int64_t examples = data.count() * predictions();
  return {loss.item<double>() / static_cast<double>(examples), correct.item<int64_t>(), examples};
}

}  // namespace assay
