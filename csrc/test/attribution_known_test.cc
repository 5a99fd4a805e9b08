// Nets so small that the maps are known: by hand, from captum's own tests, or by the
// distribution of what is drawn.
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "api/error.h"
#include "attribution/method.h"
#include "graph/ops.h"
#include "test/explained.h"

namespace assay {
namespace {

using nlohmann::json;

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
