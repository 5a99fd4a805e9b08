// What maps must satisfy whatever the net is, on small random nets; and nets so
// small that the answers are known.
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "api/error.h"
#include "attribution/method.h"
#include "graph/ops.h"
#include "test/random_graph.h"

namespace assay {
namespace {

using nlohmann::json;
using Activations = RandomNet::Activations;

constexpr uint64_t kSeeds = 12;

// Small nets gain nothing from threads.
struct Quiet {
  Quiet() { at::set_num_threads(1); }
  ~Quiet() { at::set_num_threads(before); }
  Quiet(const Quiet&) = delete;
  Quiet& operator=(const Quiet&) = delete;

  const int before = at::get_num_threads();
  const at::NoGradGuard no_grad;
};

double largest(const at::Tensor& x) { return x.abs().max().item<double>(); }

// Within a share of the largest value.
void expect_close(const at::Tensor& got, const at::Tensor& want, double share, const std::string& what) {
  ASSERT_EQ(got.sizes(), want.sizes()) << what;
  const double gap = largest(got - want);
  EXPECT_FALSE(std::isnan(gap)) << what;
  EXPECT_LE(gap, share * largest(want)) << what;
}

// Target r mod classes for row r, unless they are given.
Explained explained(const at::Tensor& x, int64_t classes, std::vector<int64_t> targets = {}) {
  Explained rows{.x = x, .targets = std::move(targets), .keys = {}};
  for (int64_t r = 0; r < x.size(0); ++r) {
    if (static_cast<int64_t>(rows.targets.size()) <= r) rows.targets.push_back(r % classes);
    rows.keys.push_back(static_cast<uint64_t>(r) * 77 + 5);
  }
  return rows;
}

at::Tensor map_of(const Net& net, const json& spec, const Explained& rows, int64_t batch = 4) {
  Context context(net, batch);
  return Method(spec).attribute(context, rows);
}

at::Tensor outputs_of(const Net& net, const Explained& rows) {
  Context context(net, 4);
  return context.run.outputs(rows.x, rows.targets);
}

// d output / d x of a few elements, by central differences.
void expect_derivatives(const Net& net, const Explained& rows, const at::Tensor& map,
                        const std::string& what) {
  constexpr double kStep = 1e-6;
  const int64_t elements = rows.x[0].numel();
  for (int64_t k = 0; k < 12; ++k) {
    const int64_t at = k * 37 % elements;
    const auto moved = [&](double by) {
      Explained there = rows;
      there.x = rows.x.clone();
      there.x.view({rows.size(), -1}).select(1, at).add_(by);
      return outputs_of(net, there);
    };
    const at::Tensor want = (moved(kStep) - moved(-kStep)) / (2 * kStep);
    const at::Tensor got = map.reshape({rows.size(), -1}).select(1, at);
    EXPECT_LE(largest(got - want), 1e-6 * std::max(1., largest(map))) << what << ", element " << at;
  }
}

TEST(Axioms, GradientIsTheDerivativeOfEachTarget) {
  const Quiet quiet;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    for (const bool table : {false, true}) {
      const RandomNet random{.seed = seed, .activations = Activations::kSmooth, .table = table};
      const auto net = random.build();
      // One image with every target, in one call.
      const at::Tensor x = random.rows(1);
      std::vector<int64_t> shape(static_cast<size_t>(x.dim()), 1);
      shape[0] = random.classes;
      const Explained rows = explained(x.repeat(shape), random.classes);
      expect_derivatives(*net, rows, map_of(*net, {{"id", "gradient"}}, rows, 3),
                         "seed " + std::to_string(seed));
    }
  }
}

// Sundararajan et al. 2017, proposition 1.
TEST(Axioms, IntegratedGradientsAreComplete) {
  const Quiet quiet;
  for (uint64_t seed = 1; seed <= kSeeds / 2; ++seed) {
    for (const bool table : {false, true}) {
      for (const Activations kind : {Activations::kSmooth, Activations::kRelu}) {
        const RandomNet random{.seed = seed, .activations = kind, .table = table};
        const auto net = random.build();
        const Explained rows = explained(random.rows(2), random.classes);
        Explained none = rows;
        none.x = at::zeros_like(rows.x);
        const at::Tensor change = outputs_of(*net, rows) - outputs_of(*net, none);
        Context context(*net, 4);
        const bool smooth = kind == Activations::kSmooth;
        const Method method({{"id", "integrated-gradients"}, {"steps", smooth ? 40 : 200}});
        const at::Tensor map = method.attribute(context, rows);
        const at::Tensor sums = map.flatten(1).sum(1);
        // Quadrature is as good as exact along a smooth path. A kinked one is off by
        // about a step's share of what the gradient changes.
        const double scale = map.flatten(1).abs().sum(1).max().item<double>();
        EXPECT_LE(largest(sums - change), (smooth ? 1e-6 : 2e-2) * scale) << "seed " << seed;
        ASSERT_EQ(context.deltas.size(), 2U);
        for (int64_t r = 0; r < 2; ++r) {
          EXPECT_NEAR(context.deltas[static_cast<size_t>(r)], (sums - change)[r].item<double>(), 1e-9)
              << "seed " << seed;
        }
      }
    }
  }
}

// Every rule of quadrature comes to the same with many steps.
TEST(Axioms, QuadraturesAgree) {
  const Quiet quiet;
  const RandomNet random{.seed = 3, .activations = Activations::kSmooth};
  const auto net = random.build();
  const Explained rows = explained(random.rows(1), random.classes);
  const auto with = [&](const char* rule, int64_t steps) {
    return map_of(*net, {{"id", "integrated-gradients"}, {"rule", rule}, {"steps", steps}}, rows, 64);
  };
  const at::Tensor want = with("gauss-legendre", 40);
  // Errors of order 1/n and 1/n^2.
  for (const char* rule : {"left", "right"}) expect_close(with(rule, 200), want, 1e-1, rule);
  for (const char* rule : {"middle", "trapezoid"}) expect_close(with(rule, 200), want, 4e-4, rule);
  expect_close((with("left", 200) + with("right", 200)) / 2, want, 4e-4, "left and right");
}

struct SpecCase {
  json spec;
};
void PrintTo(const SpecCase& c, std::ostream* out) { *out << c.spec.dump(); }

std::string test_name(const testing::TestParamInfo<SpecCase>& info) {
  std::string name;
  for (char c : info.param.spec.dump()) {
    if (std::isalnum(static_cast<unsigned char>(c))) name += c;
    if (c == '+') name += 'P';
  }
  return name;
}

std::vector<SpecCase> cases(std::initializer_list<const char*> specs) {
  std::vector<SpecCase> all;
  for (const char* text : specs) all.push_back({json::parse(text)});
  return all;
}

class SpecTest : public testing::TestWithParam<SpecCase> {
 protected:
  const json& spec = GetParam().spec;
  const Quiet quiet;
};

// ---- what the net does not read gets nothing

class DeadInput : public SpecTest {};

TEST_P(DeadInput, GetsNothing) {
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    for (const bool table : {false, true}) {
      const RandomNet random{.seed = seed, .dead = true, .table = table};
      const auto net = random.build();
      const Explained rows = explained(random.rows(2), random.classes);
      const at::Tensor map = map_of(*net, spec, rows);
      EXPECT_EQ(largest(map.select(1, map.size(1) - 1)), 0) << "seed " << seed;
      EXPECT_FALSE(at::isnan(map).any().item<bool>());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Methods, DeadInput,
                         testing::ValuesIn(cases({
                             R"({"id":"gradient"})",
                             R"({"id":"input-x-gradient"})",
                             R"({"id":"integrated-gradients","steps":7})",
                             R"({"id":"smoothgrad","samples":3})",
                             R"({"id":"smoothgrad-sq","samples":3})",
                             R"({"id":"vargrad","samples":3})",
                             R"({"id":"gradient-shap","noise":0.2})",
                             R"({"id":"guided-backprop"})",
                             R"({"id":"deconvolution"})",
                         })),
                         test_name);

// ---- perturbation: a column that is not read

class DeadColumn : public SpecTest {};

TEST_P(DeadColumn, GetsNothing) {
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const RandomNet random{.seed = seed, .dead = true, .table = true};
    const auto net = random.build();
    const Explained rows = explained(random.rows(2), random.classes);
    const at::Tensor map = map_of(*net, spec, rows, 16);
    EXPECT_LE(largest(map.select(1, map.size(1) - 1)), 1e-9 * largest(map)) << "seed " << seed;
  }
}

// KernelSHAP takes all coalitions of 7 columns.
INSTANTIATE_TEST_SUITE_P(Methods, DeadColumn,
                         testing::ValuesIn(cases({
                             R"({"id":"feature-ablation"})",
                             R"({"id":"shapley-sampling"})",
                             R"({"id":"kernel-shap"})",
                         })),
                         test_name);

// ---- a linear net: f(x) = w x + b

struct Linear {
  RandomNet random;
  std::unique_ptr<Net> net;
  Explained rows;
  at::Tensor weights;  // like rows.x: w of each row's target

  Linear(uint64_t seed, bool table)
      : random{.seed = seed, .activations = Activations::kNone, .table = table},
        net(random.build()),
        rows(explained(random.rows(3), random.classes)) {
    // w from what the net says of every unit vector.
    const int64_t elements = rows.x[0].numel();
    std::vector<int64_t> shape = rows.x.sizes().vec();
    shape[0] = elements;
    const at::Tensor at_zero = net->forward(at::zeros_like(rows.x.narrow(0, 0, 1)));
    const at::Tensor logits = net->forward(at::eye(elements, at::kDouble).view(shape)) - at_zero;
    weights = at::empty_like(rows.x);
    for (int64_t r = 0; r < rows.size(); ++r) {
      weights[r] = logits.select(1, rows.targets[static_cast<size_t>(r)]).view(rows.x[0].sizes());
    }
  }
};

struct LinearCase {
  json spec;
  enum { kWeight, kProduct, kSquare, kNothing } answer;
  bool images = true, tables = true;
};
void PrintTo(const LinearCase& c, std::ostream* out) { *out << c.spec.dump(); }

class LinearNet : public testing::TestWithParam<LinearCase> {};

TEST_P(LinearNet, HasTheAnalyticAnswer) {
  const json& spec = GetParam().spec;
  const Quiet quiet;
  for (uint64_t seed = 1; seed <= kSeeds / 3; ++seed) {
    for (const bool table : {false, true}) {
      if (table ? !GetParam().tables : !GetParam().images) continue;
      const Linear linear(seed, table);
      at::Tensor want = linear.weights;
      if (GetParam().answer == LinearCase::kProduct) want = want * linear.rows.x;
      if (GetParam().answer == LinearCase::kSquare) want = want.square();
      const at::Tensor got = map_of(*linear.net, spec, linear.rows, 32);
      const std::string what = "seed " + std::to_string(seed);
      if (GetParam().answer == LinearCase::kNothing) {
        EXPECT_LE(largest(got), 1e-20 + 1e-12 * largest(want.square())) << what;
      } else {
        expect_close(got, want, 1e-9, what);
      }
    }
  }
}

std::vector<LinearCase> linear_cases() {
  const auto of = [](const char* text) { return json::parse(text); };
  return {
      {of(R"({"id":"gradient"})"), LinearCase::kWeight},
      {of(R"({"id":"guided-backprop"})"), LinearCase::kWeight},
      {of(R"({"id":"deconvolution"})"), LinearCase::kWeight},
      {of(R"({"id":"smoothgrad","samples":4})"), LinearCase::kWeight},
      {of(R"({"id":"smoothgrad-sq","samples":4})"), LinearCase::kSquare},
      {of(R"({"id":"vargrad","samples":4})"), LinearCase::kNothing},
      {of(R"({"id":"input-x-gradient"})"), LinearCase::kProduct},
      {of(R"({"id":"integrated-gradients"})"), LinearCase::kProduct},
      {of(R"({"id":"integrated-gradients","steps":5,"rule":"left"})"), LinearCase::kProduct},
      {of(R"({"id":"integrated-gradients","steps":5,"rule":"right"})"), LinearCase::kProduct},
      {of(R"({"id":"integrated-gradients","steps":5,"rule":"middle"})"), LinearCase::kProduct},
      // captum's weights sum to 1 - 1/n: 20 % too little here.
      {of(R"({"id":"integrated-gradients","steps":5,"rule":"trapezoid"})"), LinearCase::kProduct},
      {of(R"({"id":"gradient-shap"})"), LinearCase::kProduct},
      {of(R"({"id":"feature-ablation"})"), LinearCase::kProduct, false, true},
      {of(R"({"id":"shapley-sampling"})"), LinearCase::kProduct, false, true},
      {of(R"({"id":"kernel-shap"})"), LinearCase::kProduct, false, true},
  };
}

INSTANTIATE_TEST_SUITE_P(Methods, LinearNet, testing::ValuesIn(linear_cases()), [](const auto& info) {
  return test_name({SpecCase{info.param.spec}, info.index});
});

// ---- convolution with batch norm, or the same as one convolution

class Folded : public SpecTest {};

TEST_P(Folded, GivesTheSameMap) {
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    RandomNet random{.seed = seed};
    const auto net = random.build();
    random.folded = true;
    const auto folded = random.build();
    const Explained rows = explained(random.rows(2), random.classes);
    ASSERT_LE(largest(outputs_of(*net, rows) - outputs_of(*folded, rows)), 1e-10) << "seed " << seed;
    expect_close(map_of(*net, spec, rows, 16), map_of(*folded, spec, rows, 16), 1e-8,
                 "seed " + std::to_string(seed));
  }
}

INSTANTIATE_TEST_SUITE_P(Methods, Folded,
                         testing::ValuesIn(cases({
                             R"({"id":"gradient"})",
                             R"({"id":"integrated-gradients","steps":9})",
                             R"({"id":"guided-backprop"})",
                             R"({"id":"deconvolution"})",
                             R"({"id":"smoothgrad","samples":3})",
                             R"({"id":"grad-cam"})",
                             R"({"id":"guided-grad-cam"})",
                             R"({"id":"occlusion"})",
                             R"({"id":"feature-ablation"})",
                             R"({"id":"shapley-sampling","samples":4})",
                         })),
                         test_name);

// ---- no biases: the net is homogeneous of degree 1 (Euler's theorem)

TEST(Axioms, InputXGradientSumsToTheLogitWithoutBiases) {
  const Quiet quiet;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    for (const bool table : {false, true}) {
      const RandomNet random{.seed = seed, .bias = false, .table = table};
      const auto net = random.build();
      const Explained rows = explained(random.rows(3), random.classes);
      const at::Tensor map = map_of(*net, {{"id", "input-x-gradient"}}, rows);
      expect_close(map.flatten(1).sum(1), outputs_of(*net, rows), 1e-10, "seed " + std::to_string(seed));
    }
  }
}

// ---- rows do not see each other

class Rows : public SpecTest {};

// To the bit in f32. In f64 matrix products are MKL's, whose last digit may depend on where a
// row lies in memory.
TEST_P(Rows, DoNotDependOnTheSplitNorTheOrder) {
  constexpr int64_t kBatch = 4;
  for (const Precision precision : {Precision::kF32, Precision::kF64}) {
    const bool single = precision == Precision::kF32;
    for (uint64_t seed = 1; seed <= 3; ++seed) {
      const RandomNet random{.seed = seed};
      const auto net = random.build(precision);
      Explained rows = explained(random.rows(7), random.classes);
      if (single) rows.x = rows.x.to(at::kFloat);
      // NaN is Ablation-CAM's answer where a logit is not positive.
      const auto map = [&](const Explained& some, int64_t batch) {
        return at::nan_to_num(map_of(*net, spec, some, batch), -1);
      };
      const at::Tensor all = map(rows, kBatch);
      EXPECT_GT(all.max().item<double>(), 0);
      const auto expect_same = [&](const at::Tensor& got, const at::Tensor& want, const char* what) {
        const std::string where = "seed " + std::to_string(seed) + ": " + what;
        if (single) {
          EXPECT_TRUE(at::equal(got, want)) << where;
        } else {
          expect_close(got, want, 1e-9, where);
        }
      };
      expect_same(map(rows, kBatch), all, "again");
      const std::vector<int64_t> order = {5, 0, 6, 3, 1, 4, 2};
      expect_same(map(rows.rows(order), kBatch), all.index_select(0, at::tensor(order, at::kLong)),
                  "another order");
      for (const int64_t alone : {0, 6}) {
        expect_same(map(rows.rows({alone}), kBatch)[0], all[alone], "alone");
      }
      // Another batch shape may round differently.
      expect_close(map(rows, 3), all, single ? 1e-3 : 1e-9, "another batch");
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Methods, Rows,
    testing::ValuesIn(cases({
        R"({"id":"gradient"})",
        R"({"id":"input-x-gradient"})",
        R"({"id":"integrated-gradients","steps":7})",
        R"({"id":"smoothgrad","samples":3})",
        R"({"id":"smoothgrad-sq","samples":3})",
        R"({"id":"vargrad","samples":5})",
        R"({"id":"smoothgrad","samples":3,"base":{"id":"integrated-gradients","steps":5}})",
        R"({"id":"gradient-shap","noise":0.1})",
        R"({"id":"guided-backprop"})",
        R"({"id":"deconvolution"})",
        R"({"id":"grad-cam"})",
        R"({"id":"grad-cam++"})",
        R"({"id":"hires-cam"})",
        R"({"id":"layer-cam"})",
        R"({"id":"xgrad-cam"})",
        R"({"id":"eigen-cam"})",
        R"({"id":"score-cam"})",
        R"({"id":"ablation-cam","layer":"last"})",
        R"({"id":"guided-grad-cam"})",
    })),
    test_name);

// ---- answers that are known

std::unique_ptr<Net> net_of(const std::string& id, const Graph& graph,
                            const std::vector<std::pair<std::string, at::Tensor>>& state) {
  NetEntry entry;
  entry.id = id;
  auto net = std::make_unique<Net>(entry, graph);
  net->load(state);
  net->prepare(at::kCPU, Precision::kF64);
  return net;
}

at::Tensor doubles(const std::vector<double>& values) { return at::tensor(values, at::kDouble); }

// relu(s-10) + 3 relu(s+1) - 1 of s = x1+x2+x3: BasicModel_MultiLayer of captum's tests.
std::unique_ptr<Net> multi_layer() {
  GraphBuilder b({3});
  const int x = b.relu("relu", b.linear("linear1", b.linear("linear0", 0, 3), 4));
  return net_of("multi-layer", b.finish(b.linear("linear2", x, 2), ""),
                {{"linear0.weight", at::eye(3, at::kDouble)},
                 {"linear0.bias", at::zeros({3}, at::kDouble)},
                 {"linear1.weight", at::ones({4, 3}, at::kDouble)},
                 {"linear1.bias", doubles({-10, 1, 1, 1})},
                 {"linear2.weight", at::ones({2, 4}, at::kDouble)},
                 {"linear2.bias", doubles({-1, 1})}});
}

struct Known {
  json spec;
  std::vector<double> want;
  double tolerance;
};
void PrintTo(const Known& c, std::ostream* out) { *out << c.spec.dump(); }

class MultiLayer : public testing::TestWithParam<Known> {};

TEST_P(MultiLayer, HasTheKnownAnswer) {
  const Known& answer = GetParam();
  const Quiet quiet;
  const auto net = multi_layer();
  const Explained rows = explained(doubles({20, 50, 30}).unsqueeze(0), 2, {0});
  EXPECT_EQ(outputs_of(*net, rows).item<double>(), 392);
  const at::Tensor got = map_of(*net, answer.spec, rows, 8);
  EXPECT_LE(largest(got[0] - doubles(answer.want)), answer.tolerance) << got;
}

// The gradient is 4 where s > 10, 3 below: 3 for the first tenth of the path from 0.
std::vector<Known> answers() {
  const auto of = [](const char* text) { return json::parse(text); };
  return {
      {of(R"({"id":"gradient"})"), {4, 4, 4}, 1e-12},
      {of(R"({"id":"input-x-gradient"})"), {80, 200, 120}, 1e-10},
      // captum 0.9, n_steps=50.
      {of(R"({"id":"integrated-gradients"})"), {78.0359, 195.0897, 117.0538}, 5e-5},
      // By hand: 5 of 50 points i/50 have s <= 10, of the points (i-1/2)/50 as well.
      {of(R"({"id":"integrated-gradients","rule":"right"})"), {78, 195, 117}, 1e-10},
      {of(R"({"id":"integrated-gradients","rule":"middle"})"), {78, 195, 117}, 1e-10},
      // 6 of the points (i-1)/50.
      {of(R"({"id":"integrated-gradients","rule":"left"})"), {77.6, 194, 116.4}, 1e-10},
      // Of the points (i-1)/49 five have s <= 10 (the first counts half): 4.5/49.
      {of(R"({"id":"integrated-gradients","rule":"trapezoid"})"),
       {20 * (4 - 4.5 / 49), 50 * (4 - 4.5 / 49), 30 * (4 - 4.5 / 49)},
       1e-10},
      {of(R"({"id":"guided-backprop"})"), {4, 4, 4}, 1e-12},
      {of(R"({"id":"deconvolution"})"), {4, 4, 4}, 1e-12},
      {of(R"({"id":"feature-ablation"})"), {80, 200, 120}, 1e-10},
      // Exact Shapley values, from all 8 coalitions.
      {of(R"({"id":"kernel-shap"})"), {230. / 3, 590. / 3, 350. / 3}, 1e-8},
  };
}

INSTANTIATE_TEST_SUITE_P(Methods, MultiLayer, testing::ValuesIn(answers()), [](const auto& info) {
  return test_name({SpecCase{info.param.spec}, info.index});
});

// BasicModel_ConvNet_One_Conv of captum's tests, input 0..15.
class OneConv : public testing::Test {
 protected:
  void SetUp() override {
    GraphBuilder b({1, 4, 4});
    int x = b.relu("relu1", b.conv2d("conv1", 0, {.channels = 2, .kernel = 3, .bias = true}));
    x = b.relu("relu2", b.linear("fc1", b.flatten("flatten", x), 4));
    net_ =
        net_of("one-conv", b.finish(x, "relu1"),
               {{"conv1.weight", at::ones({2, 1, 3, 3}, at::kDouble)},
                {"conv1.bias", doubles({-50, -75})},
                {"fc1.weight", at::cat({at::ones({4, 5}, at::kDouble), -at::ones({4, 3}, at::kDouble)}, 1)},
                {"fc1.bias", at::zeros({4}, at::kDouble)}});
    rows_ = explained(at::arange(16, at::kDouble).view({1, 1, 4, 4}), 4);
  }
  at::Tensor map(const json& spec) { return map_of(*net_, spec, rows_, 2); }

  std::unique_ptr<Net> net_;
  Explained rows_;
  const Quiet quiet_;
};

TEST_F(OneConv, GradCamBeforeAndAfterTheActivation) {
  const auto at_layer = [&](const char* layer) {
    return map({{"id", "grad-cam"}, {"layer", layer}, {"upsample", false}}).view(-1);
  };
  EXPECT_LE(largest(at_layer("conv1") - doubles({11.25, 13.5, 20.25, 22.5})), 1e-10);
  EXPECT_LE(largest(at_layer("relu1") - doubles({0, 4, 28, 32.5})), 1e-10);
  EXPECT_LE(largest(at_layer("") - doubles({0, 4, 28, 32.5})), 1e-10) << "the net's default layer";
}

// Both kinds of upsampling of the 2x2 map to 4x4, by hand.
TEST_F(OneConv, MapsAreUpsampledBilinearly) {
  const at::Tensor small = doubles({0, 4, 28, 32.5}).view({2, 2});
  for (const bool corners : {false, true}) {
    // Place i of 4 lies between the two rows at this share of the second.
    const std::vector<double> share =
        corners ? std::vector<double>{0, 1. / 3, 2. / 3, 1} : std::vector<double>{0, .25, .75, 1};
    const at::Tensor along = at::stack({1 - doubles(share), doubles(share)}, 1);
    const at::Tensor want = at::mm(at::mm(along, small), along.t());
    const at::Tensor got = map({{"id", "grad-cam"}, {"align-corners", corners}});
    ASSERT_EQ(got.sizes(), at::IntArrayRef({1, 1, 4, 4}));
    EXPECT_LE(largest(got[0][0] - want), 1e-10) << corners;
  }
}

// ---- what is not defined is not made up

TEST(GuidedRules, AreRefusedByOpAndLayer) {
  const Quiet quiet;
  for (const OpKind kind : {OpKind::kLeakyRelu, OpKind::kElu, OpKind::kGelu, OpKind::kSilu, OpKind::kSigmoid,
                            OpKind::kTanh, OpKind::kHardswish, OpKind::kHardsigmoid}) {
    GraphBuilder b({3});
    const int x = b.simple(kind, "bend", {b.linear("one", 0, 4, false)});
    const auto net = net_of(
        "bent", b.finish(b.linear("two", x, 2, false), ""),
        {{"one.weight", at::ones({4, 3}, at::kDouble)}, {"two.weight", at::ones({2, 4}, at::kDouble)}});
    const Explained rows = explained(at::ones({1, 3}, at::kDouble), 2);
    for (const char* id : {"guided-backprop", "deconvolution"}) {
      std::string message = "no error";
      try {
        map_of(*net, {{"id", id}}, rows);
      } catch (const Error& error) {
        message = error.what();
      }
      const std::string op = op_definition(kind).name;
      EXPECT_NE(message.find(std::string(id) + ": not defined for " + op + " at bend"), std::string::npos)
          << message;
    }
  }
}

// ---- random draws have the distribution they should

// (w1 x)(w2 x): the gradient is linear in x, H x.
struct Quadratic {
  std::unique_ptr<Net> net;
  at::Tensor hessian;  // [F,F]
  Quadratic() {
    GraphBuilder b({5});
    const int first = b.linear("one", 0, 1, false), second = b.linear("two", 0, 1, false);
    const at::Tensor one = doubles({1, -2, .5, 0, 1.5}), two = doubles({.3, .7, -1, 0, 2});
    net = net_of("quadratic", b.finish(b.mul("product", first, second), ""),
                 {{"one.weight", one.unsqueeze(0)}, {"two.weight", two.unsqueeze(0)}});
    hessian = at::outer(one, two) + at::outer(two, one);
  }
};

TEST(Draws, OfSmoothGradHaveMeanAndVariance) {
  const Quiet quiet;
  const Quadratic quadratic;
  const Explained rows = explained(doubles({1, 2, -1, .5, 3}).unsqueeze(0), 1, {0});
  constexpr int64_t kSamples = 1500;
  const at::Tensor gradient = at::mv(quadratic.hessian, rows.x[0]);
  // Of H(x+e), e ~ N(0,s^2): mean H x, variance s^2 times the sum of H's squares in a row.
  const at::Tensor spread = quadratic.hessian.square().sum(1);
  for (const bool range : {true, false}) {
    const double noise = .2, s = range ? noise * 4 : noise;  // max - min is 4
    const json with{{"samples", kSamples}, {"noise", noise}, {"scale", range ? "range" : "absolute"}};
    const auto of = [&](const char* id) {
      json spec = with;
      spec["id"] = id;
      return map_of(*quadratic.net, spec, rows, 500)[0];
    };
    const at::Tensor variance = s * s * spread;
    // Five standard errors: of a mean, and of a normal sample's variance.
    const at::Tensor error = 5 * at::sqrt(variance / kSamples);
    EXPECT_TRUE((of("smoothgrad") - gradient).abs().le(error + 1e-12).all().item<bool>());
    const double relative = 5 * std::sqrt(2. / kSamples);
    EXPECT_TRUE((of("vargrad") - variance).abs().le(relative * variance + 1e-12).all().item<bool>());
    EXPECT_LE(largest(of("smoothgrad-sq") - of("vargrad") - of("smoothgrad").square()), 1e-9);
    EXPECT_GT(largest(of("smoothgrad") - gradient), 0) << "there is noise";
  }
}

TEST(Draws, OfGradientShapAreUniformAlongThePath) {
  const Quiet quiet;
  const Quadratic quadratic;
  const Explained rows = explained(doubles({1, 2, -1, .5, 3}).unsqueeze(0), 1, {0});
  constexpr int64_t kSamples = 4000;
  // x * H(a x), a ~ U(0,1): half of x * H x, standard deviation 1/sqrt(12) of it.
  const at::Tensor whole = rows.x[0] * at::mv(quadratic.hessian, rows.x[0]);
  const at::Tensor got =
      map_of(*quadratic.net, {{"id", "gradient-shap"}, {"samples", kSamples}}, rows, 64)[0];
  EXPECT_TRUE(
      (got - whole / 2).abs().le(5 * whole.abs() / std::sqrt(12. * kSamples) + 1e-12).all().item<bool>());
}

}  // namespace
}  // namespace assay
