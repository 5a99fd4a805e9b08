// Training against PyTorch's own, against what it promises (repeatable,
// resumable), and its parts against their definitions.
#include <ATen/core/grad_mode.h>
#include <c10/core/Allocator.h>
#include <c10/util/ThreadLocalDebugInfo.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <set>

#include "api/error.h"
#include "removal/philox.h"
#include "test/fill.h"
#include "test/training.h"
#include "train/data.h"
#include "train/dropout.h"
#include "train/initial.h"
#include "train/key.h"
#include "train/net_trainer.h"
#include "train/state.h"

namespace assay {
namespace {

using nlohmann::json;

NamedTensors copied(NamedTensors state) {
  for (auto& [name, tensor] : state) tensor = host_copy(tensor);
  return state;
}

void expect_equal(const NamedTensors& got, const NamedTensors& want) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_EQ(got[i].first, want[i].first);
    EXPECT_TRUE(at::equal(got[i].second, want[i].second)) << got[i].first;
  }
}

// ---- parity with PyTorch: scripts/golden_training.py

// Small of that script.
std::unique_ptr<Net> small_net() {
  GraphBuilder b({2, 6, 6});
  int x = b.conv2d("conv", 0, {.channels = 6, .kernel = 3, .padding = {1, 1, 1, 1}, .bias = true});
  x = b.max_pool("pool", b.relu("relu", b.batch_norm("bn1", x)), 2, 2);
  x = b.linear("fc1", b.flatten("flatten", x), 12);
  x = b.simple(OpKind::kGelu, "gelu", {b.batch_norm("bn2", x, 1e-5, 0.25)});
  Graph graph = b.finish(b.linear("fc2", b.layer_norm("ln", x), 4), "");
  NetEntry entry;
  entry.id = "small";
  return std::make_unique<Net>(entry, std::move(graph));
}

std::unique_ptr<Net> parameter_net() {
  GraphBuilder b({50, 20});
  const int x = b.add("add", 0, b.parameter("positions", {50, 20}, {1, 50, 20}));
  Graph graph = b.finish(b.linear("fc", b.flatten("flatten", x), 3), "");
  NetEntry entry;
  entry.id = "with a parameter";
  return std::make_unique<Net>(entry, std::move(graph));
}

std::unique_ptr<Net> net_of(const std::string& id) {
  if (id == "small") return small_net();
  if (id == "with a parameter") return parameter_net();
  return Net::build(id, {});
}

TrainerOptions options_of(const json& golden) {
  TrainerOptions o;
  const json& optimizer = golden.at("optimizer");
  o.optimizer.id = optimizer.at("id");
  o.optimizer.momentum = optimizer.value("momentum", 0.);
  o.optimizer.nesterov = optimizer.value("nesterov", false);
  o.optimizer.weight_decay = optimizer.at("weightDecay");
  o.optimizer.beta1 = optimizer.value("beta1", 0.);
  o.optimizer.beta2 = optimizer.value("beta2", 0.);
  o.optimizer.epsilon = optimizer.value("epsilon", 0.);
  o.label_smoothing = golden.at("labelSmoothing");
  o.normalisation = {golden.at("scale"), golden.at("mean"), golden.at("std")};
  return o;
}

struct Data {
  at::Tensor examples, labels;
};

Data data_of(const json& golden) {
  std::vector<int64_t> shape = golden.at("shape");
  const int64_t examples = golden.at("examples"), classes = golden.at("classes");
  shape.insert(shape.begin(), examples);
  at::Tensor raw = fill_values("examples", shape, golden.at("amplitude"), golden.at("offset"));
  at::Tensor labels = at::empty({examples}, at::kInt);
  for (int64_t i = 0; i < examples; ++i) labels[i] = (i * i + i / 5) % classes;
  return {golden.at("bytes").get<bool>() ? raw.to(at::kByte) : raw, labels};
}

struct Golden {
  nlohmann::json json;
};
void PrintTo(const Golden& golden, std::ostream* out) { *out << golden.json.at("net"); }

std::vector<Golden> goldens() {
  std::ifstream file(ASSAY_SOURCE_DIR "/testdata/golden_training.json");
  std::vector<Golden> all;
  const json parsed = json::parse(file);
  for (const json& golden : parsed.at("cases")) all.push_back({golden});
  return all;
}

class TrainingGolden : public testing::TestWithParam<Golden> {};

TEST_P(TrainingGolden, StepsAsPyTorchMakesThem) {
  const Threads one(1);
  constexpr double tolerance = 1e-10;
  const json& golden = GetParam().json;
  const auto net = net_of(golden.at("net"));
  NetTrainer trainer(*net, options_of(golden), at::kCPU, Precision::kF64);
  trainer.set_state(fill_state(*net), {});
  const Data data = data_of(golden);
  trainer.set_data("train", data.examples, data.labels);
  const std::vector<double> rates = golden.at("rates");
  const int64_t batch = golden.at("batch");
  const auto indices = order(static_cast<int64_t>(rates.size()) * batch - golden.at("fewer").get<int64_t>(),
                             golden.at("examples"));
  // In two calls: nothing may depend on where one ends.
  const size_t some = 7;
  const auto now = static_cast<size_t>(batch) * some;
  Trainer::Steps first = trainer.steps(c10::ArrayRef<int32_t>(indices).slice(0, now), batch,
                                       c10::ArrayRef<double>(rates).slice(0, some), 0);
  const Trainer::Steps rest = trainer.steps(c10::ArrayRef<int32_t>(indices).slice(now), batch,
                                            c10::ArrayRef<double>(rates).slice(some), some);
  first.losses.insert(first.losses.end(), rest.losses.begin(), rest.losses.end());
  for (size_t i = 0; i < rates.size(); ++i) {
    EXPECT_NEAR(first.losses[i], golden["losses"][i].get<double>(), tolerance) << "step " << i;
  }
  EXPECT_EQ(first.correct + rest.correct, golden.at("correct").get<int64_t>());
  const NamedTensors parameters = trainer.parameters();
  EXPECT_EQ(parameters.size(), golden.at("parameters").size());
  for (const auto& [name, value] : parameters) {
    const json& want = golden.at("parameters").at(name);
    if (want.contains("batches")) {
      EXPECT_EQ(value.scalar_type(), at::kLong);
      EXPECT_EQ(value.item<int64_t>(), want.at("batches").get<int64_t>()) << name;
    } else {
      EXPECT_EQ(value.scalar_type(), at::kDouble);
      expect_summary(value, name, want, tolerance);
    }
  }
  const NamedTensors state = trainer.optimizer_state();
  EXPECT_EQ(state.size(), golden.at("optimizerState").size());
  for (const auto& [name, value] : state) {
    expect_summary(value, name, golden.at("optimizerState").at(name), tolerance);
  }
  const Trainer::Evaluation evaluation = trainer.evaluate("train", 17);
  EXPECT_NEAR(evaluation.loss, golden.at("evaluation").at("loss").get<double>(), tolerance);
  EXPECT_EQ(evaluation.correct, golden.at("evaluation").at("correct").get<int64_t>());
  EXPECT_EQ(evaluation.examples, golden.at("examples").get<int64_t>());
}

// Another memory layout and other kernels. One step, measured by how much it
// changes: where rounding moves a value over a ReLU's kink, gradients before it
// differ by parts in a hundred (also between PyTorch's own f32 and f64).
TEST_P(TrainingGolden, StepsInF32AreNearThoseInF64) {
  const Threads one(1);
  const json& golden = GetParam().json;
  const auto net = net_of(golden.at("net"));
  const Data data = data_of(golden);
  std::vector<NamedTensors> states;
  for (Precision precision : {Precision::kF64, Precision::kF32}) {
    NetTrainer trainer(*net, options_of(golden), at::kCPU, precision);
    trainer.set_state(fill_state(*net), {});
    trainer.set_data("train", data.examples, data.labels);
    const Trainer::Steps got =
        trainer.steps(order(8, data.examples.size(0)), 8, std::vector<double>{0.01}, 0);
    if (golden.at("batch") == 8) {
      EXPECT_NEAR(got.losses[0], golden.at("losses")[0].get<double>(), 1e-5);
    }
    states.push_back(copied(trainer.parameters()));
  }
  for (size_t i = 0; i < states[0].size(); ++i) {
    const at::Tensor &wide = states[0][i].second, &narrow = states[1][i].second;
    EXPECT_EQ(narrow.scalar_type(), wide.scalar_type() == at::kDouble ? at::kFloat : wide.scalar_type());
    const at::Tensor before = fill_parameter(states[0][i].first, wide.sizes()).to(wide.scalar_type());
    const double change = (wide - before).to(at::kDouble).norm().item<double>();
    EXPECT_LE((narrow - wide).to(at::kDouble).norm().item<double>(), 0.05 * change + 1e-6)
        << states[0][i].first;
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, TrainingGolden, testing::ValuesIn(goldens()), [](const auto& info) {
  std::string name = info.param.json.at("net");
  std::replace(name.begin(), name.end(), '-', '_');
  const std::string optimizer = info.param.json.at("optimizer").at("id");
  return name + "_" + optimizer + std::to_string(info.index);
});

// ---- repeatable, resumable

// A net with all that is random in training, and a batch norm.
std::unique_ptr<Net> random_net() {
  GraphBuilder b({3, 8, 8});
  int x = b.conv2d("conv", 0, {.channels = 8, .kernel = 3, .padding = {1, 1, 1, 1}});
  x = b.relu("relu", b.batch_norm("bn", x));
  x = b.dropout("drop1", b.flatten("flatten", x), 0.25);
  x = b.dropout("drop2", b.relu("relu2", b.linear("fc1", x, 32)), 0.5);
  Graph graph = b.finish(b.linear("fc2", x, 5), "");
  NetEntry entry;
  entry.id = "random";
  return std::make_unique<Net>(entry, std::move(graph));
}

TrainerOptions random_options(const std::string& optimizer) {
  TrainerOptions o;
  o.seed = 11;
  o.optimizer.id = optimizer;
  o.optimizer.momentum = 0.9;
  o.optimizer.weight_decay = 1e-3;
  o.augment = {.pad = 2, .flip = true};
  o.normalisation = {.scale = 255, .mean = {0.5}, .std = {0.25}};
  return o;
}

void give_random_data(Trainer& trainer, int64_t examples) {
  trainer.set_data("train", fill_values("pixels", {examples, 3, 8, 8}, 127.5, 127.5).to(at::kByte),
                   at::arange(examples).remainder(5));
}

struct Outcome {
  NamedTensors parameters, optimizer;
  std::vector<double> losses;
};

Outcome run(const std::string& optimizer, const std::vector<size_t>& calls, bool afresh) {
  const auto net = random_net();
  std::optional<NetTrainer> trainer;
  trainer.emplace(*net, random_options(optimizer), at::kCPU, Precision::kF32);
  give_random_data(*trainer, 40);
  const auto indices = order(240, 40);
  Outcome out;
  size_t done = 0;
  for (size_t steps : calls) {
    if (afresh && done > 0) {
      const NamedTensors parameters = copied(trainer->parameters()),
                         state = copied(trainer->optimizer_state());
      TrainerOptions options = random_options(optimizer);
      trainer.emplace(*net, options, at::kCPU, Precision::kF32);
      give_random_data(*trainer, 40);
      trainer->set_state(parameters, state);
    }
    const std::vector<double> rates(steps, 0.01);
    const auto part = c10::ArrayRef<int32_t>(indices).slice(done * 16, steps * 16);
    const auto losses = trainer->steps(part, 16, rates, static_cast<int64_t>(done)).losses;
    out.losses.insert(out.losses.end(), losses.begin(), losses.end());
    done += steps;
  }
  out.parameters = copied(trainer->parameters());
  out.optimizer = copied(trainer->optimizer_state());
  return out;
}

TEST(Training, IsTheSameBitForBitAgainInOtherCallsAndAfterACheckpoint) {
  const Threads one(1);
  for (const char* optimizer : {"sgd", "adam"}) {
    const Outcome want = run(optimizer, {15}, false);
    EXPECT_LT(want.losses.back(), want.losses.front());
    for (const Outcome& other :
         {run(optimizer, {15}, false), run(optimizer, {1, 9, 5}, false), run(optimizer, {6, 9}, true)}) {
      expect_equal(other.parameters, want.parameters);
      expect_equal(other.optimizer, want.optimizer);
      EXPECT_EQ(other.losses, want.losses);
    }
  }
}

TEST(Training, OfAConvolutionalNetIsTheSameAgainOnTwoThreads) {
  const Threads two(2);
  const auto net = Net::build("cnn3-cifar", {});
  const TrainerOptions options = random_options("sgd");
  std::optional<NamedTensors> want;
  for (int i = 0; i < 2; ++i) {
    NetTrainer trainer(*net, options, at::kCPU, Precision::kF32);
    trainer.set_data("train", fill_values("pixels", {40, 3, 32, 32}, 127.5, 127.5).to(at::kByte),
                     at::arange(40).remainder(10));
    trainer.steps(order(16, 40), 8, std::vector<double>(2, 0.1), 0);
    NamedTensors got = copied(trainer.parameters());
    if (want) expect_equal(got, *want);
    want = std::move(got);
  }
}

TEST(Training, DependsOnTheSeedAlone) {
  const auto net = random_net();
  std::vector<std::vector<double>> losses;
  for (uint64_t seed : {11, 12}) {
    TrainerOptions options = random_options("sgd");
    options.seed = seed;
    NetTrainer trainer(*net, options, at::kCPU, Precision::kF32);
    trainer.set_state(fill_state(*net), {});  // so that only the draws differ
    give_random_data(trainer, 40);
    at::manual_seed(static_cast<int64_t>(losses.size()));
    losses.push_back(trainer.steps(order(16, 40), 16, std::vector<double>{0.01}, 0).losses);
    // The same step has the same draws, whatever was called before.
    trainer.set_state(fill_state(*net), {});
    EXPECT_EQ(trainer.steps(order(16, 40), 16, std::vector<double>{0.01}, 0).losses, losses.back());
    trainer.set_state(fill_state(*net), {});
    EXPECT_NE(trainer.steps(order(16, 40), 16, std::vector<double>{0.01}, 1).losses, losses.back());
  }
  EXPECT_NE(losses[0], losses[1]);
}

TEST(Training, ReportsDivergenceAsALossThatIsNotFinite) {
  const auto net = Net::build("mlp", {});
  NetTrainer trainer(*net, {}, at::kCPU, Precision::kF32);
  trainer.set_data("train", fill_input({20, 64}), at::arange(20).remainder(10));
  const auto got = trainer.steps(order(60, 20), 20, std::vector<double>{1e30, 1e30, 1e30}, 0);
  EXPECT_TRUE(std::isfinite(got.losses[0]));
  EXPECT_FALSE(std::isfinite(got.losses[2]));
}

TEST(Training, InBF16StaysNearF32) {
  const auto net = random_net();
  std::vector<double> first;
  for (Precision precision : {Precision::kF32, Precision::kBF16}) {
    std::optional<NetTrainer> trainer;
    try {
      trainer.emplace(*net, random_options("sgd"), at::kCPU, precision);
    } catch (const Error& error) {
      ASSERT_EQ(error.code(), TX_UNSUPPORTED);
      GTEST_SKIP() << "SKIP: " << error.what();
    }
    give_random_data(*trainer, 40);
    const auto losses = trainer->steps(order(160, 40), 16, std::vector<double>(10, 0.01), 0).losses;
    for (const auto& [name, value] : trainer->parameters()) {
      EXPECT_TRUE(value.scalar_type() == at::kFloat || !value.is_floating_point()) << name;
    }
    if (first.empty()) first = losses;
    EXPECT_NEAR(losses[0], first[0], 0.02);
    EXPECT_NEAR(losses[9], first[9], 0.2);
  }
}

// ---- batches

// The definition, an element at a time: crop of the padded image, then mirror,
// then normalisation.
double moved(const at::Tensor& image, int64_t c, int64_t r, int64_t k, int64_t pad, int64_t top, int64_t left,
             bool flip, double scale, double mean, double std) {
  if (flip) k = image.size(2) - 1 - k;
  r += top - pad;
  k += left - pad;
  const bool inside = r >= 0 && r < image.size(1) && k >= 0 && k < image.size(2);
  return ((inside ? image[c][r][k].item<double>() : 0.) / scale - mean) / std;
}

TEST(Batches, AreCutMirroredAndNormalisedAsDefined) {
  const Augment augment{.pad = 2, .flip = true};
  const Normalisation normalisation{.scale = 255, .mean = {0.1, 0.2}, .std = {0.5, 2}};
  const at::Tensor pixels = fill_values("pixels", {6, 2, 5, 4}, 127.5, 127.5).to(at::kByte);
  const uint64_t key = random_key(3, "train/augment", "");
  const std::vector<int64_t> indices = {4, 0, 5, 5, 1, 2, 3, 0, 1, 5};
  const Moves moves = draw_moves(augment, key, 10, 4, 100);
  std::set<std::pair<int, int>> places;
  int flips = 0;
  for (const at::Tensor& raw : {pixels, pixels.to(at::kFloat) * 1.37 - 20}) {
    const Part part = make_part(raw, at::arange(6), {2, 5, 4}, 6, at::kCPU);
    for (at::MemoryFormat format : {at::MemoryFormat::Contiguous, at::MemoryFormat::ChannelsLast}) {
      for (at::ScalarType dtype : {at::kFloat, at::kDouble}) {
        Loader loader(part, normalisation, augment, dtype, format);
        loader.begin(indices, moves);
        for (int64_t begin = 0; begin < 10; begin += 4) {
          const int64_t n = std::min<int64_t>(4, 10 - begin);
          const at::Tensor got = loader.examples(begin, n);
          EXPECT_EQ(got.scalar_type(), dtype);
          EXPECT_TRUE(got.is_contiguous(format));
          EXPECT_TRUE(at::equal(got, loader.examples_by_tensors(begin, n)));
          for (int64_t i = 0; i < n; ++i) {
            const auto at = static_cast<size_t>(begin + i);
            EXPECT_EQ(loader.labels(begin, n)[i].item<int64_t>(), indices[at]);
            // As documented: step 100 + batch, place in the batch.
            const auto words = philox(key, 100 + static_cast<uint64_t>(begin / 4), static_cast<uint64_t>(i));
            const auto top = static_cast<int64_t>(uint64_t{words[0]} * 5 >> 32);
            const auto left = static_cast<int64_t>(uint64_t{words[1]} * 5 >> 32);
            const bool flip = words[2] >= 0x80000000;
            places.insert({top, left});
            flips += flip;
            for (int64_t c = 0; c < 2; ++c) {
              for (int64_t p = 0; p < 20; ++p) {
                const double want = moved(raw[indices[at]], c, p / 4, p % 4, 2, top, left, flip, 255,
                                          normalisation.mean[static_cast<size_t>(c)],
                                          normalisation.std[static_cast<size_t>(c)]);
                EXPECT_NEAR(got[i][c][p / 4][p % 4].item<double>(), want, dtype == at::kFloat ? 1e-6 : 1e-14);
              }
            }
          }
        }
      }
    }
  }
  EXPECT_GT(places.size(), 5u);
  EXPECT_GT(flips, 0);
  EXPECT_LT(flips, 80);
}

TEST(Batches, DrawEveryPlaceEquallyOftenAndFlipHalf) {
  constexpr int64_t kDraws = 81 * 500;
  const Moves moves =
      draw_moves({.pad = 4, .flip = true}, random_key(0, "train/augment", ""), kDraws, 128, 0);
  std::vector<double> counts(81);
  for (size_t i = 0; i < kDraws; ++i) ++counts[static_cast<size_t>(moves.top[i] * 9 + moves.left[i])];
  double chi = 0;
  for (double count : counts) chi += (count - 500) * (count - 500) / 500;
  EXPECT_LT(chi, 124.84);  // chi-squared, 80 degrees of freedom, p = .001
  const auto flips = std::accumulate(moves.flip.begin(), moves.flip.end(), int64_t{0});
  EXPECT_NEAR(static_cast<double>(flips) / kDraws, 0.5, 3.3 * 0.5 / std::sqrt(kDraws));
}

TEST(Batches, OfTablesAreNormalisedByColumn) {
  const at::Tensor table = fill_values("table", {7, 3}, 5, 1);
  const Part part = make_part(table, at::zeros({7}, at::kInt), {3}, 2, at::kCPU);
  Loader loader(part, {.scale = 2, .mean = {1, 2, 3}, .std = {4, 5, 6}}, {}, at::kDouble,
                at::MemoryFormat::Contiguous);
  loader.begin({6, 1}, {});
  const at::Tensor want =
      (table.index_select(0, at::tensor({6, 1})).to(at::kDouble) / 2 - at::tensor({1, 2, 3}, at::kDouble)) /
      at::tensor({4, 5, 6}, at::kDouble);
  EXPECT_TRUE(at::allclose(loader.examples(0, 2), want, 1e-14, 1e-14));
  EXPECT_TRUE(at::equal(loader.examples(0, 2), loader.examples_by_tensors(0, 2)));
}

// ---- dropout

TEST(Dropout, DropsWhatTheGeneratorSaysAndKeepsTheMean) {
  constexpr uint64_t kKey = 0x1234567890abcdef, kStep = (uint64_t{5} << 32) + 77;
  for (double p : {0.1, 0.5, 0.9}) {
    const at::Tensor mask = dropout_mask({37, 1001}, p, kKey, kStep, at::kDouble), flat = mask.flatten();
    for (int64_t i : {0, 1, 2, 3, 4, 5001, 37036}) {
      const bool dropped =
          philox(kKey, static_cast<uint64_t>(i / 4), kStep)[static_cast<size_t>(i % 4)] < p * 0x1p32;
      EXPECT_DOUBLE_EQ(flat[i].item<double>(), dropped ? 0 : 1 / (1 - p)) << i;
    }
    EXPECT_NEAR(mask.mean().item<double>(), 1, 3.3 * std::sqrt(p / (1 - p) / 37037));
    for (at::ScalarType type : {at::kDouble, at::kFloat}) {
      EXPECT_TRUE(at::equal(dropout_mask({37, 1001}, p, kKey, kStep, type),
                            dropout_mask_by_tensors({37, 1001}, p, kKey, kStep, type)));
    }
    // A smaller batch is the beginning of a larger one.
    EXPECT_TRUE(at::equal(dropout_mask({5, 1001}, p, kKey, kStep, at::kDouble), mask.narrow(0, 0, 5)));
    EXPECT_FALSE(at::equal(dropout_mask({37, 1001}, p, kKey, kStep + 1, at::kDouble), mask));
  }
  EXPECT_EQ(dropout_mask({8}, 1, kKey, kStep, at::kFloat).sum().item<double>(), 0);
}

// ---- initial parameters

TEST(Keys, AreThoseOfGo) {
  // rng.Key(7, "train/augment", "") and rng.Key(1<<63, "train/initial", "fc.weight").
  EXPECT_EQ(random_key(7, "train/augment", ""), 0x91c2b41934cab4c5);
  EXPECT_EQ(random_key(uint64_t{1} << 63, "train/initial", "fc.weight"), 0x47baf008f9277732);
}

TEST(Initial, ParametersHaveTheDistributionsOfPyTorchsLayers) {
  for (const char* id : {"cifar-resnet20", "small", "with a parameter"}) {
    const auto net = net_of(id);
    const auto all = initial_parameters(net->graph(), 5);
    for (const Op& op : net->graph().ops) {
      for (size_t i = 0; i < op.parameters.size(); ++i) {
        const auto p = static_cast<size_t>(op.parameters[i]);
        const std::string& name = net->parameters()[p].name;
        const at::Tensor& value = all[p];
        ASSERT_TRUE(value.defined()) << name;
        ASSERT_EQ(value.sizes(), at::IntArrayRef(net->parameters()[p].shape));
        if (op.kind == OpKind::kConv2d || op.kind == OpKind::kLinear) {
          const auto& weight = net->parameters()[static_cast<size_t>(op.parameters[0])].shape;
          const double fan_in = static_cast<double>(c10::multiply_integers(weight) / weight[0]);
          EXPECT_LE(value.abs().max().item<double>(), 1 / std::sqrt(fan_in)) << name;
          if (value.numel() < 400) continue;
          // Of a uniform variable: variance bound^2 / 3, whose estimate has variance 4/45 bound^4 / n.
          const double variance = 1 / (3 * fan_in), n = static_cast<double>(value.numel());
          EXPECT_NEAR(value.mean().item<double>(), 0, 5 * std::sqrt(variance / n)) << name;
          EXPECT_NEAR(value.square().mean().item<double>(), variance, 5 * variance * std::sqrt(0.8 / n))
              << name;
        } else if (op.kind == OpKind::kBatchNorm || op.kind == OpKind::kLayerNorm) {
          EXPECT_TRUE(at::equal(value, at::full_like(value, i == 0 || i == 3 ? 1. : 0.))) << name;
        } else if (op.kind == OpKind::kParameter && value.numel() > 400) {
          const double n = static_cast<double>(value.numel());
          EXPECT_NEAR(value.mean().item<double>(), 0, 5 * 0.02 / std::sqrt(n)) << name;
          EXPECT_NEAR(value.square().mean().item<double>(), 4e-4, 5 * 4e-4 * std::sqrt(2 / n)) << name;
        }
      }
    }
  }
}

// ---- state

TEST(State, OfOtherNamesShapesOrTypesIsRefusedAndNothingChanges) {
  const auto net = small_net();
  TrainerOptions options;
  options.optimizer.momentum = 0.5;
  NetTrainer trainer(*net, options, at::kCPU, Precision::kF32);
  const NamedTensors parameters = copied(trainer.parameters()), state = copied(trainer.optimizer_state());
  NamedTensors other;
  for (const auto& [name, value] : fill_state(*net)) other.emplace_back(name, value);
  const auto with = [](NamedTensors all, const std::string& name, const at::Tensor& value) {
    for (auto& entry : all) {
      if (entry.first == name) entry.second = value;
    }
    return all;
  };
  const auto without = [](NamedTensors all, const std::string& name) {
    std::erase_if(all, [&](const auto& entry) { return entry.first == name; });
    return all;
  };
  NamedTensors more = other;
  more.emplace_back("fc9.bias", at::zeros({1}));
  expect_says([&] { trainer.set_state(more, {}); }, "fc9.bias is not known here");
  more.back().first = "fc2.bias";
  expect_says([&] { trainer.set_state(more, {}); }, "fc2.bias comes twice");
  expect_says([&] { trainer.set_state(without(other, "fc1.bias"), {}); }, "fc1.bias is missing");
  expect_says([&] { trainer.set_state(with(other, "fc1.bias", at::zeros({11})), {}); },
              "fc1.bias has shape [11], want [12]");
  expect_says([&] { trainer.set_state(with(other, "fc1.bias", at::zeros({12}, at::kInt)), {}); }, "floating");
  expect_says([&] { trainer.set_state(other, without(state, "fc1.bias/momentum")); },
              "fc1.bias/momentum is missing");
  expect_says([&] { trainer.set_state({}, {}); }, "and ");
  expect_equal(trainer.parameters(), parameters);
  expect_equal(trainer.optimizer_state(), state);
  trainer.set_state(without(other, "bn1.num_batches_tracked"), state);
  trainer.set_state(with(other, "bn1.num_batches_tracked", at::full({}, 41, at::kLong)), {});
  for (const auto& [name, value] : trainer.parameters()) {
    if (name == "bn1.num_batches_tracked") {
      EXPECT_EQ(value.item<int64_t>(), 41);
    }
  }
}

// ---- mistakes

TEST(Mistakes, AreNamed) {
  const auto net = Net::build("cnn3", {});
  const auto made = [&](const std::function<void(TrainerOptions&)>& change,
                        Precision precision = Precision::kF32) {
    TrainerOptions options;
    change(options);
    NetTrainer(*net, options, at::kCPU, precision);
  };
  expect_says([&] { made([](auto& o) { o.optimizer.id = "lion"; }); }, "\"lion\": want one of sgd, adam");
  expect_says([&] { made([](auto& o) { o.optimizer.momentum = 1; }); }, "momentum 1");
  expect_says([&] { made([](auto& o) { o.optimizer.nesterov = true; }); }, "Nesterov");
  expect_says([&] { made([](auto& o) { o.optimizer.weight_decay = -1; }); }, "weightDecay -1");
  expect_says([&] { made([](auto& o) { o.label_smoothing = 1; }); }, "labelSmoothing 1");
  expect_says([&] { made([](auto& o) { o.augment.pad = -1; }); }, "pad -1");
  expect_says([&] { made([](auto& o) { o.normalisation.std = {0}; }); }, "std 0");
  expect_says([&] { made([](auto& o) { o.normalisation.scale = 0; }); }, "scale 0");

  NetTrainer trainer(*net, {}, at::kCPU, Precision::kF32);
  const at::Tensor x = fill_input({10, 1, 8, 8}), y = at::arange(10);
  const std::vector<double> one = {0.1};
  const auto steps = [&](const std::vector<int32_t>& indices, int64_t batch, const std::vector<double>& rates,
                         int64_t first = 0) { trainer.steps(indices, batch, rates, first); };
  expect_says([&] { steps({0}, 1, one); }, "data \"train\"");
  expect_says([&] { trainer.set_data("train", x.view({10, 64}), y); }, "want [N,1,8,8]");
  expect_says([&] { trainer.set_data("train", x.to(at::kDouble), y); }, "want u8 or f32");
  expect_says([&] { trainer.set_data("train", x, y.narrow(0, 0, 9)); }, "want integers [10]");
  expect_says([&] { trainer.set_data("train", x, y.to(at::kFloat)); }, "want integers [10]");
  expect_says([&] { trainer.set_data("train", x, y + 1); }, "label 9 is 10: want 0..9");
  expect_says([&] { trainer.set_data("train", x, y - 1); }, "label 0 is -1");
  expect_says([&] { trainer.set_data("train", x.narrow(0, 0, 0), y.narrow(0, 0, 0)); }, "no examples");
  trainer.set_data("train", x, y);
  expect_says([&] { trainer.evaluate("validation", 4); }, "data \"validation\"");
  expect_says([&] { trainer.evaluate("train", 0); }, "batch 0");
  expect_says([&] { steps({0, 1}, 0, one); }, "batch 0");
  expect_says([&] { steps({0, 10}, 2, one); }, "index 1 is 10: want 0..9");
  expect_says([&] { steps({-1, 1}, 2, one); }, "index 0 is -1");
  expect_says([&] { steps({0, 1, 2}, 2, one); }, "3 indices in batches of 2 are not 1 steps");
  expect_says([&] { steps({0, 1}, 2, {0.1, 0.1}); }, "are not 2 steps");
  expect_says([&] { steps({0}, 1, {std::numeric_limits<double>::quiet_NaN()}); }, "rate 0 is nan");
  expect_says([&] { steps({0}, 1, one, -1); }, "first step -1");
  EXPECT_TRUE(trainer.steps({}, 4, {}, 0).losses.empty());

  TrainerOptions flipping;
  flipping.augment.flip = true;
  const auto table = Net::build("mlp", {});
  NetTrainer columns(*table, flipping, at::kCPU, Precision::kF32);
  expect_says([&] { columns.set_data("train", x.view({10, 64}), y); }, "no images");
  columns.set_data("validation", x.view({10, 64}), y);
  columns.set_data("train", x, y);  // images of as many values
  columns.steps(order(10, 10), 5, std::vector<double>{0.1, 0.1}, 0);
  TrainerOptions means;
  means.normalisation.mean = {1, 2};
  NetTrainer wrong(*net, means, at::kCPU, Precision::kF32);
  expect_says([&] { wrong.set_data("train", x, y); }, "mean has 2 entries");

  const auto small = small_net();
  NetTrainer lonely(*small, {}, at::kCPU, Precision::kF32);
  lonely.set_data("train", fill_input({3, 2, 6, 6}), at::zeros({3}, at::kLong));
  expect_says(
      [&] {
        lonely.steps({0, 1, 2}, 2, std::vector<double>{0.1, 0.1}, 0);
      },
      "bn2: one value a channel");
}

// ---- memory

class Balance : public c10::MemoryReportingInfoBase {
 public:
  void reportMemoryUsage(void*, int64_t bytes, size_t, size_t, c10::Device) override { bytes_ += bytes; }
  bool memoryProfilingEnabled() const override { return true; }
  int64_t bytes() const { return bytes_; }

 private:
  int64_t bytes_ = 0;
};

TEST(Memory, StaysTheSameOverCallsAndIsGivenBack) {
  const Threads one(1);
  const auto balance = std::make_shared<Balance>();
  c10::DebugInfoGuard guard(c10::DebugInfoKind::PROFILER_STATE, balance);
  {
    const auto net = random_net();
    NetTrainer trainer(*net, random_options("adam"), at::kCPU, Precision::kF32);
    give_random_data(trainer, 40);
    int64_t after = 0;
    for (int i = 0; i < 4; ++i) {
      trainer.steps(order(80, 40), 16, std::vector<double>(5, 0.01), 0);
      trainer.evaluate("train", 16);
      copied(trainer.parameters());
      if (i == 0) after = balance->bytes();
      EXPECT_EQ(balance->bytes(), after) << "call " << i;
    }
    EXPECT_GT(after, 3 * 4 * 16384);  // parameters and two moments
  }
  EXPECT_EQ(balance->bytes(), 0);
}

}  // namespace
}  // namespace assay
