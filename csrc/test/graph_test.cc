// Nets against other implementations, against their own ops run one by one, and
// against what inference promises: rows that do not see each other.
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <functional>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>

#include "api/error.h"
#include "graph/net.h"
#include "graph/ops.h"
#include "test/fill.h"

namespace assay {
namespace {

std::unique_ptr<Net> ready(const std::string& id, const NetOptions& options = {},
                           Precision precision = Precision::kF32, double gain = 1) {
  auto net = Net::build(id, options);
  net->load(fill_state(*net, gain));
  net->prepare(at::kCPU, precision);
  return net;
}

double largest(const at::Tensor& x) { return x.abs().max().item<double>(); }

std::string message_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

// ---- golden logits

struct Golden {
  std::string net;
  NetOptions options;
  double gain;  // of fill_state
  int64_t parameters;
  Shape input;
  std::vector<std::vector<double>> logits;
};

std::vector<Golden> goldens() {
  std::ifstream file(ASSAY_SOURCE_DIR "/testdata/golden_nets.json");
  std::vector<Golden> all;
  const auto parsed = nlohmann::json::parse(file);
  for (const auto& net : parsed.at("nets")) {
    all.push_back(
        {net.at("net"),
         {.classes = net.value("classes", int64_t{0}), .features = net.value("features", int64_t{0})},
         net.value("gain", 1.),
         net.at("parameters"),
         net.at("input"),
         net.at("logits")});
  }
  return all;
}

double gain_of(const std::string& net) {
  for (const Golden& golden : goldens()) {
    if (golden.net == net) return golden.gain;
  }
  return 1;
}

class GoldenTest : public testing::TestWithParam<Golden> {};

TEST_P(GoldenTest, LogitsAsElsewhere) {
  const Golden& golden = GetParam();
  at::Tensor want = at::empty({2, static_cast<int64_t>(golden.logits[0].size())}, at::kDouble);
  for (int64_t row = 0; row < 2; ++row) {
    for (int64_t c = 0; c < want.size(1); ++c) {
      want[row][c] = golden.logits[static_cast<size_t>(row)][static_cast<size_t>(c)];
    }
  }
  for (Precision precision : {Precision::kF32, Precision::kF64}) {
    const auto net = ready(golden.net, golden.options, precision, golden.gain);
    EXPECT_EQ(net->input_shape(), golden.input);
    EXPECT_EQ(net->parameter_count(), golden.parameters);
    const at::Tensor x = fill_input(*net, 2);
    const auto compare = [&](const at::Tensor& got) {
      ASSERT_EQ(got.sizes(), want.sizes());
      EXPECT_EQ(got.scalar_type(), precision == Precision::kF64 ? at::kDouble : at::kFloat);
      EXPECT_LE(largest(got - want), 1e-4 * largest(want));
      // What the two inputs do differently, which the net's depth makes small.
      EXPECT_LE(largest((got[0] - got[1]) - (want[0] - want[1])), 1e-2 * largest(want[0] - want[1]));
    };
    compare(net->forward(x));
    if (precision == Precision::kF32) compare(net->forward_plain(x).logits);
  }
}

INSTANTIATE_TEST_SUITE_P(Nets, GoldenTest, testing::ValuesIn(goldens()), [](const auto& info) {
  std::string name = info.param.net;
  std::replace(name.begin(), name.end(), '-', '_');
  if (info.param.options.classes) name += "_classes" + std::to_string(info.param.options.classes);
  return name;
});

TEST(Registry, EveryNetHasAGolden) {
  const auto all = goldens();
  for (const NetEntry& entry : net_registry()) {
    EXPECT_TRUE(std::any_of(all.begin(), all.end(), [&](const Golden& g) { return g.net == entry.id; }))
        << entry.id;
    EXPECT_FALSE(entry.summary.empty());
    EXPECT_FALSE(entry.preset.empty());
  }
}

// ---- rows do not see each other

struct RowCase {
  std::string net;
  int64_t batch;
};

class RowTest : public testing::TestWithParam<RowCase> {};

TEST_P(RowTest, BitsDependNeitherOnPlaceNorNeighbours) {
  const auto net = ready(GetParam().net, {}, Precision::kF32, gain_of(GetParam().net));
  const int64_t n = GetParam().batch;
  at::manual_seed(n);
  const at::Tensor x = fill_input(*net, n);
  const at::Tensor want = net->forward(x);
  EXPECT_TRUE(at::equal(net->forward(x), want)) << "the same batch again";
  const at::Tensor order = at::randperm(n);
  EXPECT_TRUE(at::equal(net->forward(x.index_select(0, order)), want.index_select(0, order))) << "places";
  for (int64_t row : {int64_t{0}, n / 2, n - 1}) {
    at::Tensor others = at::randn_like(x) * 3;
    others[n - 1 - row] = x[row];
    EXPECT_TRUE(at::equal(net->forward(others)[n - 1 - row], want[row])) << "neighbours of row " << row;
  }
}

std::vector<RowCase> row_cases() {
  std::vector<RowCase> cases;
  for (const char* net : {"cifar-resnet20", "cnn3", "cnn3-fashion", "cnn3-cifar", "mlp", "logistic"}) {
    for (int64_t batch : {1, 2, 3, 7, 8, 13, 16, 31, 50, 64, 100}) cases.push_back({net, batch});
  }
  for (const char* net : {"resnet18", "efficientnet-lite0"}) {
    for (int64_t batch : {3, 8, 16}) cases.push_back({net, batch});
  }
  for (const char* net : {"mobilenet-v3-small", "efficientnet-b0", "densenet121", "squeezenet1-1",
                          "convnext-tiny", "vit-b-16", "googlenet", "cifar-preresnet164"}) {
    cases.push_back({net, 3});
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Nets, RowTest, testing::ValuesIn(row_cases()), [](const auto& info) {
  std::string name = info.param.net + "_" + std::to_string(info.param.batch);
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

TEST(Rows, OfF64DoNotSeeEachOtherEither) {
  for (const char* id : {"cifar-resnet20", "mlp"}) {
    const auto net = ready(id, {}, Precision::kF64);
    const at::Tensor x = fill_input(*net, 7), want = net->forward(x);
    EXPECT_TRUE(at::equal(net->forward(x.flip(0)), want.flip(0))) << id;
  }
}

// ---- inputs

TEST(Forward, TakesAnyMemoryFormatAndDtypeAndLeavesTheInputAlone) {
  for (const char* id : {"cifar-resnet20", "cnn3-cifar"}) {
    const auto net = ready(id);
    const at::Tensor x = fill_input(*net, 4), kept = x.clone(), want = net->forward(x);
    EXPECT_TRUE(at::equal(x, kept));
    const at::Tensor last = x.contiguous(at::MemoryFormat::ChannelsLast);
    EXPECT_TRUE(at::equal(net->forward(last), want));
    EXPECT_TRUE(at::equal(last, kept));
    EXPECT_TRUE(at::equal(net->forward(x.to(at::kDouble)), want));
    EXPECT_TRUE(at::equal(net->forward(at::cat({x, x}, 3).narrow(3, 0, x.size(3))), want)) << "strided";
  }
}

TEST(Forward, TakesColumnsOfAWiderTable) {
  const auto net = ready("mlp");
  const at::Tensor wide = fill_input({3, 100});
  at::Tensor bad = wide.clone();
  bad.select(1, 99).fill_(std::numeric_limits<float>::quiet_NaN());
  EXPECT_TRUE(
      at::equal(net->forward(bad.narrow(1, 20, 64)), net->forward(wide.narrow(1, 20, 64).contiguous())));
}

TEST(Forward, GivesOrdinaryTensors) {
  const auto net = ready("cnn3");
  at::Tensor y = net->forward(fill_input(*net, 2));
  EXPECT_FALSE(y.is_inference());
  EXPECT_FALSE(y.requires_grad());
  EXPECT_TRUE(y.is_contiguous());
  y.add_(1);
  EXPECT_EQ(net->forward(fill_input(*net, 2).narrow(0, 0, 0)).sizes(), at::IntArrayRef({0, 10}));
}

TEST(Forward, NetsOnTablesFlattenImages) {
  const auto net = ready("mlp");
  const at::Tensor x = fill_input(*net, 3);
  EXPECT_TRUE(at::equal(net->forward(x.view({3, 1, 8, 8})), net->forward(x)));
}

TEST(Forward, SaysWhatInputItWants) {
  const auto net = ready("cnn3");
  EXPECT_EQ(message_of([&] {
              net->forward(at::zeros({2, 1, 8, 9}));
            }),
            "net cnn3: input [2, 1, 8, 9]: want [N,1,8,8]");
  EXPECT_EQ(message_of([&] {
              net->forward(at::zeros({2, 1, 8, 8}, at::kInt));
            }),
            "net cnn3: want a floating input");
  const auto unready = Net::build("cnn3", {});
  EXPECT_EQ(message_of([&] { unready->forward(at::zeros({2, 1, 8, 8})); }), "net cnn3: run before prepare");
  EXPECT_EQ(message_of([&] { unready->prepare(at::kCPU, Precision::kF32); }),
            "net cnn3: prepare before its weights are loaded");
}

// ---- NaN

TEST(NotFinite, RowsOfTheInputStayVisible) {
  for (const char* id : {"cifar-resnet20", "cnn3", "mlp"}) {
    for (Precision precision : {Precision::kF32, Precision::kF64}) {
      const auto net = ready(id, {}, precision);
      const at::Tensor clean = fill_input(*net, 4), want = net->forward(clean);
      for (double bad :
           {std::numeric_limits<double>::quiet_NaN(), -std::numeric_limits<double>::infinity()}) {
        at::Tensor x = clean.clone();
        x[2].view({-1})[5] = bad;
        const at::Tensor y = net->forward(x);
        EXPECT_TRUE(at::isnan(y[2]).all().item<bool>()) << id << " " << bad;
        for (int64_t row : {0, 1, 3}) EXPECT_TRUE(at::equal(y[row], want[row])) << id << " " << bad;
      }
    }
  }
}

TEST(NotFinite, ParametersStayVisible) {
  auto net = Net::build("cifar-resnet20", {});
  auto state = fill_state(*net);
  state[0].second[3][0][0][0] = std::numeric_limits<float>::quiet_NaN();
  net->load(state);
  net->prepare(at::kCPU, Precision::kF32);
  EXPECT_TRUE(at::isnan(net->forward(fill_input(*net, 2))).all().item<bool>());
}

// ---- loading

TEST(Load, NamesWhatIsWrong) {
  auto net = Net::build("mlp", {.classes = 3, .features = 5});
  auto state = fill_state(*net);
  state.pop_back();
  state[0].second = at::zeros({2, 2});
  state.emplace_back("extra", at::zeros({1}));
  state.emplace_back("fc2.bias", at::zeros({128}));
  EXPECT_EQ(message_of([&] { net->load(state); }),
            "weights for mlp: fc1.weight has shape [2, 2], want [128, 5]; extra is not a parameter of this "
            "net; fc2.bias comes twice; fc4.bias is missing");
  EXPECT_FALSE(net->loaded());
  EXPECT_EQ(message_of([&] { net->load({}); }),
            "weights for mlp: fc1.weight is missing; fc1.bias is missing; fc2.weight is missing; fc2.bias is "
            "missing; fc3.weight is missing; and 3 more");
}

TEST(Load, CopiesConvertsAndNeedsNoCounters) {
  auto net = Net::build("cifar-resnet20", {});
  std::vector<std::pair<std::string, at::Tensor>> state;
  for (auto& [name, tensor] : fill_state(*net)) {
    if (!name.ends_with(".num_batches_tracked")) state.emplace_back(name, tensor.to(at::kDouble));
  }
  net->load(state);
  for (auto& entry : state) entry.second.zero_();
  net->prepare(at::kCPU, Precision::kF32);
  const at::Tensor x = fill_input(*net, 2);
  EXPECT_TRUE(at::equal(net->forward(x), ready("cifar-resnet20")->forward(x)));
}

TEST(Load, MayFollowPrepare) {
  const auto net = ready("cnn3");
  auto state = fill_state(*net);
  for (auto& entry : state) entry.second.zero_();
  net->load(state);
  EXPECT_FALSE(net->prepared());
  net->prepare(at::kCPU, Precision::kF32);
  EXPECT_EQ(largest(net->forward(fill_input(*net, 2))), 0);
}

TEST(Build, SaysWhatIsThere) {
  EXPECT_NE(message_of([] { Net::build("resnet19", {}); }).find("net \"resnet19\": want one of resnet18, "),
            std::string::npos);
  EXPECT_EQ(message_of([] { Net::build("cnn3", {.features = 3}); }),
            "net cnn3: features 3: it takes images [1, 8, 8], leave features out");
}

// ---- layers and taps

TEST(Layers, HaveNamesAndShapes) {
  const auto net = Net::build("resnet18", {});
  std::map<std::string, LayerInfo> layers;
  for (const LayerInfo& layer : net->layers()) {
    EXPECT_TRUE(layers.emplace(layer.name, layer).second) << layer.name << " twice";
  }
  EXPECT_EQ(net->default_layer(), "layer4");
  EXPECT_EQ(layers.at("layer4").outputs, Shape({512, 7, 7}));
  EXPECT_EQ(layers.at("layer4").op, "stage");
  EXPECT_EQ(layers.at("layer2.0").op, "block");
  EXPECT_EQ(layers.at("maxpool").outputs, Shape({64, 56, 56}));
  EXPECT_EQ(layers.at("layer2.0.downsample.0").op, "conv2d");
  EXPECT_EQ(layers.at("fc").outputs, Shape({1000}));
  for (const NetEntry& entry : net_registry()) {
    const auto other = Net::build(entry.id, {});
    const auto all = other->layers();
    const auto is_default = [&](const LayerInfo& layer) { return layer.name == other->default_layer(); };
    EXPECT_TRUE(other->default_layer().empty() || std::any_of(all.begin(), all.end(), is_default))
        << entry.id;
  }
}

TEST(Plain, TapsAndGradients) {
  const auto net = ready("cifar-resnet20", {}, Precision::kF64);
  at::Tensor x = fill_input(*net, 2).to(at::kDouble).requires_grad_(true);
  const Net::Tapped out = net->forward_plain(x, {"layer3", "conv1", "linear"});
  ASSERT_EQ(out.taps.size(), 3u);
  EXPECT_EQ(out.taps[0].sizes(), at::IntArrayRef({2, 64, 8, 8}));
  EXPECT_EQ(out.taps[1].sizes(), at::IntArrayRef({2, 16, 32, 32}));
  EXPECT_TRUE(at::equal(out.taps[2], out.logits));
  const auto gradients = torch::autograd::grad({out.logits.select(1, 3).sum()}, {x, out.taps[0]});
  // Against a difference quotient along a direction.
  const at::Tensor direction = fill_values("direction", x.sizes(), 1, 0).to(at::kDouble);
  const double step = 1e-7;  // small enough to stay between the kinks of ReLU
  const auto score = [&](double at_step) {
    at::NoGradGuard no_grad;
    return net->forward_plain(x.detach() + at_step * direction).logits.select(1, 3).sum().item<double>();
  };
  const double slope = (score(step) - score(-step)) / (2 * step);
  EXPECT_NEAR((gradients[0] * direction).sum().item<double>(), slope, 1e-5 * std::abs(slope));
  EXPECT_EQ(gradients[1].sizes(), out.taps[0].sizes());
  EXPECT_EQ(message_of([&] { net->forward_plain(x, {"layer9"}); }),
            "net cifar-resnet20: layer \"layer9\": want a name that the net's description lists, for example "
            "layer3");
}

// ---- graphs that the nets do not have: what fusing must leave alone

Graph awkward() {
  GraphBuilder b({3, 9, 9});
  int x = b.conv2d("stem", 0, {.channels = 6, .kernel = 3, .padding = {0, 0, 1, 2}, .bias = true});
  int y = b.relu6("six", b.batch_norm("norm0", x));  // x is read twice below
  y = b.add("sum1", y, b.batch_norm("norm1", x));    // batch norm on its own
  int z = b.conv2d("a", y, {.channels = 6, .kernel = 3, .padding = {1, 1, 1, 1}});
  z = b.add("sum2", z, y);  // y is read again later
  int w = b.relu6("six2", b.add("sum3", b.conv2d("b", z, {.channels = 6}), y));
  w = b.add("twice", w, w);
  w = b.dropout("drop", w, 0.5);
  int v = b.conv2d("c", w, {.channels = 6, .groups = 3});
  v = b.add("sum4", v, w);  // its own input is the residual
  const int narrow = b.max_pool("pool", v, 3, 2, 1);
  int u = b.add("sum5", b.conv2d("d", v, {.channels = 8, .kernel = 3, .stride = 2, .padding = {1, 1, 1, 1}}),
                b.shortcut_a("short", v, 8));
  u = b.avg_pool("mean", u, 2, 2);
  (void)narrow;
  int t = b.linear("f1", b.flatten("flat", u), 5);
  t = b.add("sum6", b.relu("r", b.linear("f2", t, 5)), t);
  b.place("here", "block", t);
  return b.finish(b.linear("f3", t, 4), "here");
}

TEST(Fusing, KeepsTheMeaningOfAwkwardGraphs) {
  NetEntry entry;
  entry.id = "awkward";
  Net net(entry, awkward());
  net.load(fill_state(net));
  const at::Tensor x = fill_input(net, 3);
  for (Precision precision : {Precision::kF32, Precision::kF64}) {
    net.prepare(at::kCPU, precision);
    const at::Tensor want = net.forward_plain(x).logits;
    EXPECT_LE(largest(net.forward(x) - want), 1e-5 * largest(want));
  }
}

TEST(Builder, RefusesWhatDoesNotFit) {
  GraphBuilder b({3, 8, 8});
  EXPECT_EQ(message_of([&] { b.permute("turn", 0, {0, 1}); }), "turn: 2 axes for rows of [3,8,8]");
  const int x = b.conv2d("c", 0, {.channels = 4});
  EXPECT_EQ(message_of([&] { b.conv2d("c", 0, {.channels = 4}); }), "graph: two ops are named c");
  EXPECT_EQ(message_of([&] { b.add("sum", 0, x); }),
            "sum: [3,8,8] and [4,8,8]: want equal shapes, or sizes of 1");
  EXPECT_EQ(message_of([&] { b.max_pool("p", x, 9, 1); }),
            "p: a window of 9 does not fit into rows of [4,8,8]");
}

}  // namespace
}  // namespace assay
