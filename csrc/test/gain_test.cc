// GAN imputation: training against PyTorch (scripts/golden_gain.py), and the imputer.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <ostream>

#include "removal/generator.h"
#include "removal/imputer.h"
#include "test/fill.h"
#include "test/training.h"
#include "train/gain_trainer.h"

namespace assay {
namespace {

using nlohmann::json;

GainOptions gain_of(const json& golden) {
  GainOptions o;
  o.input = golden.at("input").get<std::vector<int64_t>>();
  o.alpha = golden.at("alpha");
  o.hint_rate = golden.at("hintRate");
  o.maximum_rate = golden.at("maximumRate");
  o.width = golden.at("width");
  return o;
}

TrainerOptions options_of(uint64_t seed, double scale) {
  TrainerOptions o;
  o.seed = seed;
  o.optimizer.id = "adam";
  o.optimizer.beta1 = 0.5;
  o.optimizer.beta2 = 0.999;
  o.normalisation.scale = scale;
  return o;
}

at::Tensor images_of(const json& golden) {
  std::vector<int64_t> shape = golden.at("input");
  shape.insert(shape.begin(), golden.at("examples").get<int64_t>());
  return fill_values("examples", shape, 127.5, 127.5).to(at::kByte);
}

// The formula's parameters, but for the mean image, which stays.
NamedTensors formula(const Trainer& trainer) {
  NamedTensors state = trainer.parameters();
  for (auto& [name, value] : state) {
    if (value.scalar_type() == at::kLong) {
      value = at::zeros({}, at::kLong);
    } else if (name != "mfv") {
      value = fill_parameter(name, value.sizes());
    }
  }
  return state;
}

struct Golden {
  nlohmann::json json;
};
void PrintTo(const Golden& golden, std::ostream* out) { *out << golden.json.at("input"); }

std::vector<Golden> goldens() {
  std::ifstream file(ASSAY_SOURCE_DIR "/testdata/golden_gain.json");
  std::vector<Golden> all;
  const json parsed = json::parse(file);
  for (const json& golden : parsed.at("cases")) all.push_back({golden});
  return all;
}

class GainGolden : public testing::TestWithParam<Golden> {};

TEST_P(GainGolden, StepsAsPyTorchMakesThemAndImputesSo) {
  const Threads one(1);
  // Biases before batch norm have gradients of zero: Adam divides their rounding errors by its
  // epsilon of 1e-8.
  constexpr double tolerance = 1e-9;
  const json& golden = GetParam().json;
  const auto shape = golden.at("input").get<std::vector<int64_t>>();
  GainTrainer trainer(gain_of(golden), options_of(golden.at("seed"), golden.at("scale")), at::kCPU,
                      Precision::kF64);
  const at::Tensor images = images_of(golden);
  trainer.set_data("train", images, {});
  trainer.set_state(formula(trainer), {});
  const std::vector<double> rates = golden.at("rates");
  const int64_t batch = golden.at("batch"), examples = golden.at("examples");
  const int64_t count = static_cast<int64_t>(rates.size()) * batch - golden.at("fewer").get<int64_t>();
  const auto indices = order(count, examples);
  // In two calls: nothing may depend on where one ends.
  const auto now = static_cast<size_t>(batch);
  const Trainer::Steps first = trainer.steps(c10::ArrayRef<int32_t>(indices).slice(0, now), batch,
                                             c10::ArrayRef<double>(rates).slice(0, 1), 0);
  const Trainer::Steps rest = trainer.steps(c10::ArrayRef<int32_t>(indices).slice(now), batch,
                                            c10::ArrayRef<double>(rates).slice(1), 1);
  EXPECT_NEAR(first.losses[0], golden["losses"][0].get<double>(), tolerance);
  for (size_t i = 1; i < rates.size(); ++i) {
    EXPECT_NEAR(rest.losses[i - 1], golden["losses"][i].get<double>(), tolerance) << "step " << i;
  }
  EXPECT_EQ(first.correct + rest.correct, golden.at("correct").get<int64_t>());
  EXPECT_EQ(first.examples + rest.examples, count * shape[0] * shape[1] * shape[2]);
  const NamedTensors parameters = trainer.parameters();
  EXPECT_EQ(parameters.size(), golden.at("parameters").size());
  for (const auto& [name, value] : parameters) {
    const json& want = golden.at("parameters").at(name);
    if (want.contains("batches")) {
      EXPECT_EQ(value.item<int64_t>(), want.at("batches").get<int64_t>()) << name;
    } else {
      expect_summary(value, name, want, tolerance);
    }
  }
  const NamedTensors state = trainer.optimizer_state();
  EXPECT_EQ(state.size(), golden.at("optimizerState").size());
  for (const auto& [name, value] : state) {
    expect_summary(value, name, golden.at("optimizerState").at(name), tolerance);
  }
  // Masks and noise of an evaluation do not depend on its batches.
  for (const int64_t rows : {examples, int64_t{4}}) {
    const Trainer::Evaluation evaluation = trainer.evaluate("train", rows);
    EXPECT_NEAR(evaluation.loss, golden.at("evaluation").at("loss").get<double>(), tolerance);
    EXPECT_EQ(evaluation.correct, golden.at("evaluation").at("correct").get<int64_t>());
    EXPECT_EQ(evaluation.examples, examples * shape[0] * shape[1] * shape[2]);
  }

  // The imputer, on images as a net wants them.
  const int64_t n = golden.at("imputed");
  const std::vector<uint64_t> keys = golden.at("keys");
  ImputerInput input;
  for (int64_t c = 0; c < shape[0]; ++c) {
    input.mean.push_back(0.4 + 0.1 * static_cast<double>(c));
    input.std.push_back(0.5 - 0.1 * static_cast<double>(c));
  }
  input.keys = keys.data();
  input.generator = std::make_shared<Generator>(trainer.parameters(), at::kCPU, Precision::kF64);
  const at::Tensor mean = at::tensor(input.mean, at::kDouble).view({1, -1, 1, 1});
  const at::Tensor std = at::tensor(input.std, at::kDouble).view({1, -1, 1, 1});
  input.images = (images.slice(0, 0, n).to(at::kDouble) / golden.at("scale").get<double>() - mean) / std;
  const at::Tensor removed = fill_values("removed", {n, shape[1], shape[2]}, 1, 0) > 0;
  const auto imputer = make_imputer({{"id", "gain"}}, input);
  std::vector<int64_t> which;
  for (int64_t i = 0; i < n; ++i) which.push_back(i);
  const at::Tensor got = imputer->fill(which, removed, nullptr);
  const at::Tensor want =
      at::tensor(golden.at("images").get<std::vector<double>>(), at::kDouble).view_as(got);
  EXPECT_LT((got * std + mean - want).abs().max().item<double>(), tolerance);
  EXPECT_TRUE(at::equal(got.masked_select(removed.logical_not().unsqueeze(1)),
                        input.images.masked_select(removed.logical_not().unsqueeze(1))));
}

INSTANTIATE_TEST_SUITE_P(All, GainGolden, testing::ValuesIn(goldens()));

// A small trainer with data.
std::unique_ptr<GainTrainer> small_trainer(uint64_t seed, Precision precision = Precision::kF32) {
  GainOptions gain;
  gain.input = {1, 8, 8};
  gain.width = 4;
  TrainerOptions options = options_of(seed, 255);
  options.augment.flip = true;
  auto trainer = std::make_unique<GainTrainer>(gain, options, at::kCPU, precision);
  trainer->set_data("train", fill_values("small", {12, 1, 8, 8}, 127.5, 127.5).to(at::kByte), {});
  return trainer;
}

std::vector<int32_t> all_of(int64_t count) {
  std::vector<int32_t> indices;
  for (int64_t i = 0; i < count; ++i) indices.push_back(static_cast<int32_t>(i));
  return indices;
}

TEST(GainTrainer, GoesOnFromItsStateAsIfItHadNotStopped) {
  const Threads one(1);
  const std::vector<double> rates(3, 5e-4);
  const auto whole = small_trainer(3), before = small_trainer(3), after = small_trainer(99);
  whole->steps(all_of(12), 4, rates, 0);
  before->steps(all_of(4), 4, c10::ArrayRef<double>(rates).slice(0, 1), 0);
  // Seeds are of the trainer: only the state is another's here.
  const auto same = small_trainer(3);
  same->set_state(before->parameters(), before->optimizer_state());
  after->set_state(before->parameters(), before->optimizer_state());
  const std::vector<int32_t> left = {4, 5, 6, 7, 8, 9, 10, 11};
  same->steps(left, 4, c10::ArrayRef<double>(rates).slice(1), 1);
  after->steps(left, 4, c10::ArrayRef<double>(rates).slice(1), 1);
  const NamedTensors want = whole->parameters(), got = same->parameters(), other = after->parameters();
  ASSERT_EQ(got.size(), want.size());
  bool differs = false;
  for (size_t i = 0; i < want.size(); ++i) {
    EXPECT_EQ(got[i].first, want[i].first);
    EXPECT_TRUE(at::equal(got[i].second, want[i].second)) << got[i].first;
    differs = differs || !at::equal(other[i].second, want[i].second);
  }
  EXPECT_TRUE(differs);
}

TEST(GainTrainer, BeginsWithTheDistributionsOfThePublishedCode) {
  GainOptions gain;
  gain.input = {3, 16, 16};
  gain.width = 32;
  const GainTrainer trainer(gain, options_of(1, 255), at::kCPU, Precision::kF64);
  double weights = 0, squares = 0, scales = 0, scale_squares = 0;
  int64_t count = 0, scale_count = 0;
  for (const auto& [name, value] : trainer.parameters()) {
    if (name.ends_with("_orig")) {
      weights += value.sum().item<double>();
      squares += value.square().sum().item<double>();
      count += value.numel();
    } else if (name.ends_with("_u") || name.ends_with("_v")) {
      EXPECT_NEAR(value.norm().item<double>(), 1, 1e-12) << name;
    } else if (name.ends_with("net.1.weight") || name.ends_with("net.4.weight")) {
      scales += value.sum().item<double>();
      scale_squares += (value - 1).square().sum().item<double>();
      scale_count += value.numel();
    }
  }
  const auto n = static_cast<double>(count), m = static_cast<double>(scale_count);
  EXPECT_NEAR(weights / n, 0, 5 * 0.02 / std::sqrt(n));
  EXPECT_NEAR(squares / n, 4e-4, 5 * 4e-4 * std::sqrt(2 / n));
  EXPECT_NEAR(scales / m, 1, 5 * 0.02 / std::sqrt(m));
  EXPECT_NEAR(scale_squares / m, 4e-4, 5 * 4e-4 * std::sqrt(2 / m));
}

// Of images that are all one pattern the generator learns the pattern: its error falls far below that of the
// mean image's deviation.
TEST(GainTrainer, LearnsWhatIsThereToLearn) {
  const Threads one(1);
  GainOptions gain;
  gain.input = {1, 8, 8};
  gain.width = 8;
  GainTrainer trainer(gain, options_of(5, 255), at::kCPU, Precision::kF32);
  // Bright and dark images: what is left tells which.
  at::Tensor images = at::empty({64, 1, 8, 8}, at::kByte);
  for (int64_t i = 0; i < 64; ++i) images[i].fill_(i % 2 == 0 ? 230 : 25);
  trainer.set_data("train", images, {});
  const double before = trainer.evaluate("train", 64).loss;
  for (int64_t step = 0; step < 150; ++step) {
    trainer.steps(all_of(64), 64, std::vector<double>{2e-3}, step);
  }
  const double after = trainer.evaluate("train", 64).loss;
  // The mean image in place of a quarter of the pixels: .25 * (.4)^2 = .04.
  EXPECT_GT(before, 0.02);
  EXPECT_LT(after, 0.004);
}

TEST(Generator, ARowIsTheSameAloneAndAmongOthers) {
  const auto trainer = small_trainer(8);
  const Generator generator(trainer->parameters(), at::kCPU, Precision::kF32);
  const at::Tensor images = fill_values("rows", {37, 1, 8, 8}, 0.5, 0.5);
  const at::Tensor removed = fill_values("removed rows", {37, 8, 8}, 1, 0) > 0.2;
  const at::Tensor noise = fill_values("noise", {37, 8, 8}, 1, 0);
  const at::Tensor together = generator.impute(images, removed, noise);
  for (const int64_t i : {0, 15, 16, 36}) {
    const at::Tensor alone =
        generator.impute(images.slice(0, i, i + 1), removed.slice(0, i, i + 1), noise.slice(0, i, i + 1));
    EXPECT_TRUE(at::equal(alone[0], together[i])) << i;
  }
}

TEST(Generator, EverythingAndNothingRemoved) {
  const auto trainer = small_trainer(8);
  const Generator generator(trainer->parameters(), at::kCPU, Precision::kF32);
  const at::Tensor images = fill_values("rows", {2, 1, 8, 8}, 0.5, 0.5), noise = at::zeros({2, 8, 8});
  EXPECT_TRUE(at::equal(generator.impute(images, at::zeros({2, 8, 8}, at::kBool), noise), images));
  // Nothing is left of the image, so nothing of it is in what comes.
  const at::Tensor all = at::ones({2, 8, 8}, at::kBool);
  const at::Tensor made = generator.impute(images, all, noise);
  EXPECT_TRUE(at::equal(made, generator.impute(images * 0.5, all, noise)));
  EXPECT_TRUE(made.isfinite().all().item<bool>());
}

TEST(Generator, SaysWhatIsWrongWithAState) {
  const auto trainer = small_trainer(8);
  const auto with = [&](const std::string& name, const at::Tensor& value) {
    NamedTensors state = trainer->parameters();
    std::erase_if(state, [&](const auto& entry) { return entry.first == name; });
    if (value.defined()) state.emplace_back(name, value);
    Generator(state, at::kCPU, Precision::kF32);
  };
  expect_says([&] { with("mfv", {}); }, "mfv is missing");
  expect_says([&] { with("mfv", at::zeros({8, 8})); }, "want [C,H,W]");
  expect_says([&] { with("generator.net.3.weight_orig", {}); }, "net.3.weight_orig is missing");
  expect_says([&] { with("generator.net.0.weight_u", at::zeros({3})); }, "net.0.weight_orig of shape");
  expect_says([&] { with("generator.net.1.bias", at::zeros({3})); }, "net.1.bias");
  // Made for other images: the first convolution has other channels.
  expect_says([&] { with("mfv", at::zeros({3, 8, 8})); }, "net.0.weight");
}

TEST(GainTrainer, SaysWhatIsWrong) {
  const auto made = [](const std::function<void(GainOptions&)>& change) {
    GainOptions gain;
    gain.input = {1, 8, 8};
    gain.width = 4;
    change(gain);
    GainTrainer(gain, options_of(0, 255), at::kCPU, Precision::kF32);
  };
  expect_says([&] { made([](auto& g) { g.alpha = 0; }); }, "alpha 0");
  expect_says([&] { made([](auto& g) { g.hint_rate = 1.5; }); }, "hintRate 1.5");
  expect_says([&] { made([](auto& g) { g.maximum_rate = 0; }); }, "maximumRate 0");
  expect_says([&] { made([](auto& g) { g.width = 0; }); }, "width 0");
  expect_says([&] { made([](auto& g) { g.input = {64}; }); }, "want images [C,H,W]");
  TrainerOptions normalised = options_of(0, 255);
  normalised.normalisation.mean = {0.5};
  GainOptions gain;
  gain.input = {1, 8, 8};
  expect_says([&] { GainTrainer(gain, normalised, at::kCPU, Precision::kF32); }, "want scale alone");
  const auto trainer = small_trainer(8);
  expect_says([&] { trainer->set_data("train", at::zeros({2, 3, 8, 8}), {}); }, "want [N,1,8,8]");
  NamedTensors state = trainer->parameters();
  state.pop_back();
  expect_says([&] { trainer->set_state(state, {}); }, "mfv is missing");
}

}  // namespace
}  // namespace assay
