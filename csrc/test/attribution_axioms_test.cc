// What maps must satisfy whatever the net is, on small random nets.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "attribution/method.h"
#include "test/explained.h"
#include "test/random_graph.h"

namespace assay {
namespace {

using nlohmann::json;
using Activations = RandomNet::Activations;

constexpr uint64_t kSeeds = 12;

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
  int64_t tried = 0;
  for (const Precision precision : {Precision::kF32, Precision::kF64}) {
    const bool single = precision == Precision::kF32;
    for (uint64_t seed = 1; seed <= 3; ++seed) {
      const RandomNet random{.seed = seed};
      const auto net = random.build(precision);
      Explained rows = explained(random.rows(7), random.classes);
      if (single) rows.x = rows.x.to(at::kFloat);
      if (spec.at("id") == "ablation-cam") {  // is defined for positive logits
        const at::Tensor logits = net->forward(rows.x);
        if (logits.amax(1).min().item<double>() <= 0) continue;
        const at::Tensor best = logits.argmax(1);
        for (int64_t r = 0; r < rows.size(); ++r) {
          rows.targets[static_cast<size_t>(r)] = best[r].item<int64_t>();
        }
      }
      ++tried;
      const auto map = [&](const Explained& some, int64_t batch) { return map_of(*net, spec, some, batch); };
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
  EXPECT_GT(tried, 0);
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

}  // namespace
}  // namespace assay
