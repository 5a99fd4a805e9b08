#include "train/gain_trainer.h"

#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>
#include <string>

#include "api/error.h"
#include "nets/gain.h"
#include "removal/filled.h"
#include "removal/philox.h"
#include "train/guards.h"
#include "train/key.h"

namespace assay {
namespace {

// Added within logarithms (Kachuee et al.'s code).
constexpr double kTiny = 1e-8;

Graph generator_graph(const GainOptions& o) {
  if (o.input.size() != 3) throw invalid("input of ", o.input.size(), " axes: want images [C,H,W]");
  return gain_graph({o.input[0] + 2, o.input[1], o.input[2]}, o.input[0], o.width, OpKind::kTanh);
}

Graph discriminator_graph(const GainOptions& o) {
  return gain_graph({o.input[0] + 1, o.input[1], o.input[2]}, o.input[0], o.width, OpKind::kSigmoid);
}

void want(bool good, const char* name, double value, const char* range) {
  if (!good) throw invalid("gain ", name, " ", value, ": want ", range);
}

// The number of a pass of a step: of the discriminator's, of the generator's.
constexpr uint64_t kOfDiscriminator = 0, kOfGenerator = 1, kPasses = 2;

}  // namespace

GainTrainer::GainTrainer(const GainOptions& gain, const TrainerOptions& options, at::Device device,
                         Precision precision)
    : Trainer(gain.input, /*classes=*/1, options, device, precision),
      gain_(gain),
      generator_(generator_graph(gain), "generator.", options.optimizer, options.seed, device, precision),
      discriminator_(discriminator_graph(gain), "discriminator.", options.optimizer, options.seed, device,
                     precision) {
  want(gain.alpha > 0 && std::isfinite(gain.alpha), "alpha", gain.alpha, "more than 0");
  want(gain.hint_rate > 0 && gain.hint_rate <= 1, "hintRate", gain.hint_rate, "0 < hintRate <= 1");
  want(gain.maximum_rate > 0 && gain.maximum_rate <= 1, "maximumRate", gain.maximum_rate,
       "0 < maximumRate <= 1");
  if (!options.normalisation.mean.empty() || !options.normalisation.std.empty()) {
    throw invalid("gain: mean and std: want scale alone, the mean image is that of the data");
  }
}

void GainTrainer::set_data(const std::string& name, const at::Tensor& examples, const at::Tensor&) {
  if (examples.dim() < 1) throw invalid("examples ", examples.sizes(), ": want [N,C,H,W]");
  Trainer::set_data(name, examples, at::zeros({examples.size(0)}, at::kLong));
  if (name != "train") return;
  at::NoGradGuard no_grad;
  constexpr int64_t kRows = 256;
  const at::Tensor& all = part(name).examples;
  at::Tensor sum = at::zeros(input(), all.options().dtype(at::kDouble));
  for (int64_t i = 0; i < all.size(0); i += kRows) {
    sum += all.slice(0, i, std::min(i + kRows, all.size(0))).to(at::kDouble).sum(0);
  }
  const double count = static_cast<double>(all.size(0)) * options().normalisation.scale;
  mean_ = (sum / count).to(training_dtype(precision()));
}

GainTrainer::Draws GainTrainer::draws(const char* purpose, int64_t number, int64_t place) const {
  const auto key = [&](const char* what) { return random_key(options().seed, purpose, what); };
  return {key("rate"),
          key("mask"),
          key("noise"),
          key("hint"),
          static_cast<uint64_t>(number),
          static_cast<uint64_t>(place)};
}

GainTrainer::Masked GainTrainer::masked(const at::Tensor& images, const Draws& d) const {
  const auto pixels = static_cast<uint64_t>(input()[1] * input()[2]);
  const uint64_t first = d.place * pixels;
  const at::Tensor removed =
      filled({images.size(0), 1, input()[1], input()[2]},
             [&](uint64_t i) {
               const double rate =
                   gain_.maximum_rate * philox_uniform(d.rate, d.place + i / pixels, d.number);
               return philox_uniform(d.mask, first + i, d.number) < rate ? 1. : 0.;
             })
          .to(at::kBool)
          .to(device());
  return {images - mean_, removed, removed.logical_not().to(images.scalar_type())};
}

at::Tensor GainTrainer::generated(const Masked& m, const Draws& d, uint64_t pass, bool training) {
  const uint64_t first = d.place * static_cast<uint64_t>(input()[1] * input()[2]);
  const at::Tensor noise =
      filled({m.x.size(0), 1, input()[1], input()[2]},
             [&](uint64_t i) { return philox_normal(d.noise, first + i, d.number * kPasses + pass); })
          .to(m.x.scalar_type())
          .to(device());
  const at::Tensor seen = at::cat({m.x * m.known, m.known, noise * (1 - m.known)}, 1);
  AutocastGuard autocast(device(), precision());
  return generator_
      .forward(seen.contiguous(training_format(device(), precision())), training,
               static_cast<int64_t>(d.number))
      .view_as(m.x);
}

at::Tensor GainTrainer::judged(const Masked& m, const at::Tensor& generated, const Draws& d, uint64_t pass,
                               bool training) {
  const uint64_t first = d.place * static_cast<uint64_t>(input()[1] * input()[2]);
  const at::Tensor told =
      filled({m.x.size(0), 1, input()[1], input()[2]},
             [&](uint64_t i) {
               return philox_uniform(d.hint, first + i, d.number * kPasses + pass) < gain_.hint_rate ? 1.
                                                                                                     : 0.;
             })
          .to(m.x.scalar_type())
          .to(device());
  const at::Tensor hint = told * m.known + 0.5 * (1 - told);
  const at::Tensor imputed = at::where(m.removed, generated, m.x);
  AutocastGuard autocast(device(), precision());
  return discriminator_
      .forward(at::cat({imputed, hint}, 1).contiguous(training_format(device(), precision())), training,
               static_cast<int64_t>(d.number))
      .view_as(m.x);
}

void GainTrainer::step(const Loader& loader, int64_t begin, int64_t n, double rate, int64_t number,
                       at::Tensor& loss_out, at::Tensor& correct) {
  const Draws d = draws("gain", number, 0);
  const Masked m = masked(loader.examples(begin, n), d);
  const auto gradients = [](const at::Tensor& loss, SpectralGraph& of) {
    return torch::autograd::grad({loss}, of.graph().leaves(), {}, /*retain_graph=*/false,
                                 /*create_graph=*/false, /*allow_unused=*/true);
  };
  const at::Tensor fixed = generated(m, d, kOfDiscriminator, /*training=*/true);
  torch::autograd::variable_list downhill;
  {
    at::AutoGradMode with_grad(true);
    const at::Tensor said = judged(m, fixed, d, kOfDiscriminator, /*training=*/true);
    const at::Tensor loss =
        -(m.known * (said + kTiny).log() + (1 - m.known) * (1 - said + kTiny).log()).mean();
    downhill = gradients(loss, discriminator_);
    correct.add_(said.detach().gt(0.5).ne(m.removed).sum());
  }
  discriminator_.graph().descend(std::move(downhill), rate, number);
  {
    at::AutoGradMode with_grad(true);
    const at::Tensor made = generated(m, d, kOfGenerator, /*training=*/true);
    const at::Tensor said = judged(m, made, d, kOfGenerator, /*training=*/true);
    // Means over what is removed, and over what is known: neither may be of nothing.
    const at::Tensor known = m.known.mean();
    const at::Tensor fooled = -((1 - m.known) * (said + kTiny).log()).mean() / (1 - known).clamp_min(kTiny);
    const at::Tensor error = (m.known * (m.x - made).square()).mean() / known.clamp_min(kTiny);
    const at::Tensor loss = fooled + gain_.alpha * error;
    downhill = gradients(loss, generator_);
    loss_out.copy_(loss.detach());
  }
  generator_.graph().descend(std::move(downhill), rate, number);
}

void GainTrainer::judge(const Loader& loader, int64_t begin, int64_t n, at::Tensor& loss,
                        at::Tensor& correct) {
  const Draws d = draws("gain/evaluation", 0, begin);
  const Masked m = masked(loader.examples(begin, n), d);
  const at::Tensor made = generated(m, d, kOfGenerator, /*training=*/false);
  const at::Tensor said = judged(m, made, d, kOfGenerator, /*training=*/false);
  loss.add_(at::where(m.removed, m.x - made, 0).square().sum(at::kDouble));
  correct.add_(said.gt(0.5).ne(m.removed).sum());
}

NamedTensors GainTrainer::parameters() const {
  NamedTensors out = generator_.parameters();
  for (auto& entry : discriminator_.parameters()) out.push_back(std::move(entry));
  if (mean_.defined()) out.emplace_back("mfv", mean_);
  return out;
}

NamedTensors GainTrainer::optimizer_state() const {
  NamedTensors out = generator_.optimizer_state();
  for (auto& entry : discriminator_.optimizer_state()) out.push_back(std::move(entry));
  return out;
}

void GainTrainer::set_state(const NamedTensors& parameters, const NamedTensors& optimizer) {
  const auto joined = [](std::vector<Wanted> all, const std::vector<Wanted>& more) {
    all.insert(all.end(), more.begin(), more.end());
    return all;
  };
  const size_t own = generator_.wanted_parameters().size();
  std::vector<Wanted> wanted = joined(generator_.wanted_parameters(), discriminator_.wanted_parameters());
  wanted.push_back({"mfv", input(), false, false});
  const std::vector<at::Tensor> given = match("weights for gain", wanted, parameters);
  std::vector<at::Tensor> state;
  const std::vector<Wanted> first = generator_.wanted_optimizer_state();
  if (!optimizer.empty()) {
    state =
        match("optimizer state for gain", joined(first, discriminator_.wanted_optimizer_state()), optimizer);
  }
  const c10::ArrayRef<at::Tensor> all(given), kept(state);
  generator_.take(all.slice(0, own), optimizer.empty() ? kept : kept.slice(0, first.size()));
  discriminator_.take(all.slice(own, all.size() - own - 1),
                      optimizer.empty() ? kept : kept.slice(first.size()));
  mean_ = given.back().detach().to(at::TensorOptions(device()).dtype(training_dtype(precision())),
                                   /*non_blocking=*/false, /*copy=*/true);
}

}  // namespace assay
