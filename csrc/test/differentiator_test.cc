// Gradients by rules on the folded plan against autograd on the unfolded ops.
#include "graph/differentiator.h"

#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <string>
#include <vector>

#include "api/error.h"
#include "graph/net.h"
#include "graph/ops.h"
#include "test/fill.h"

namespace assay {
namespace {

double worst(const at::Tensor& got, const at::Tensor& want) {
  const double scale = std::max(want.abs().max().item<double>(), 1e-300);
  return (got - want).abs().max().item<double>() / scale;
}

// Near a kink of ReLU the last digit decides: f32 is judged by the angle.
double cosine(const at::Tensor& got, const at::Tensor& want) {
  const at::Tensor a = got.to(at::kDouble).flatten(), b = want.to(at::kDouble).flatten();
  return a.dot(b).item<double>() / (a.norm() * b.norm()).item<double>();
}

// The plain gradient of two rows' own classes at a layer ("": the input).
at::Tensor by_autograd(const Net& net, const at::Tensor& x, const std::string& layer,
                       const at::Tensor& gradient) {
  const at::AutoGradMode grad(true);
  const at::Tensor input = x.detach().requires_grad_(true);
  const Net::Tapped out =
      net.forward_plain(input, layer.empty() ? std::vector<std::string>{} : std::vector{layer});
  return torch::autograd::grad({out.logits}, {layer.empty() ? input : out.taps[0]}, {gradient})[0];
}

at::Tensor by_rules(const Net& net, const at::Tensor& x, const std::string& layer,
                    const at::Tensor& gradient) {
  const Differentiator& d = net.differentiator(layer);
  return d.pull(d.record(d.head(x)), gradient);
}

// At the input and at layers, in both precisions.
void expect_same(Net& net, const std::vector<std::string>& layers) {
  net.load(fill_state(net));
  const at::Tensor x = fill_input(net, 2);
  at::Tensor gradient = at::zeros({2, net.classes()}, at::kDouble);
  gradient[0][0] = 1;
  gradient[1][net.classes() - 1] = -2;
  for (const std::string& layer : layers) {
    net.prepare(at::kCPU, Precision::kF64);
    const at::Tensor wide = by_rules(net, x.to(at::kDouble), layer, gradient);
    EXPECT_LT(worst(wide, by_autograd(net, x.to(at::kDouble), layer, gradient)), 1e-11) << layer;
    net.prepare(at::kCPU, Precision::kF32);
    const at::Tensor narrow = by_rules(net, x.to(at::kFloat), layer, gradient.to(at::kFloat));
    EXPECT_GT(cosine(narrow, wide), .9999) << layer;
    const Differentiator& d = net.differentiator(layer);
    EXPECT_GT(cosine(d.tail(d.head(x.to(at::kFloat))), net.forward(x.to(at::kFloat))), .999999) << layer;
  }
}

class NetGradients : public testing::TestWithParam<std::string> {};

TEST_P(NetGradients, AreThoseOfAutograd) {
  auto net = Net::build(GetParam(), {});
  std::vector<std::string> layers = {""};
  if (!net->default_layer().empty()) layers.push_back(net->default_layer());
  expect_same(*net, layers);
}

INSTANTIATE_TEST_SUITE_P(Nets, NetGradients,
                         testing::Values("cnn3", "cnn3-cifar", "mlp", "cifar-resnet20", "squeezenet1-1"));

// One of every op that the nets above have not, with values that skip layers, and a
// first convolution of every form of backward pass.
TEST(Differentiator, KnowsEveryOp) {
  GraphBuilder b({3, 17, 14});
  const int stem = b.relu(
      "stem.relu",
      b.batch_norm("stem.bn",
                   b.conv2d("stem", 0, {.channels = 8, .kernel = 5, .stride = 2, .padding = {2, 1, 1, 2}})));
  const int gate =
      b.simple(OpKind::kSigmoid, "gate",
               {b.conv2d("squeeze", b.adaptive_avg_pool("pool", stem), {.channels = 8, .bias = true})});
  const int gated = b.mul("gated", stem, gate);
  const int norm = b.batch_norm("norm", gated);
  const int bent = b.simple(OpKind::kSilu, "silu", {norm});
  Attributes up;
  up.output = {12, 10};
  up.bilinear = true;
  const int large = b.op(OpKind::kUpsample, "up", {bent}, up);
  const int strided = b.conv2d(
      "strided", large, {.channels = 6, .kernel = 3, .stride = 3, .padding = {1, 1, 1, 1}, .groups = 2});
  const int wide = b.conv2d("wide", large, {.channels = 6, .kernel = 1, .stride = 3});
  const int joined = b.concat(
      "joined", {strided, b.simple(OpKind::kTanh, "tanh", {b.simple(OpKind::kSub, "sub", {wide, strided})})});
  Attributes around;
  around.padding = {1, 0, 2, 1};
  const int padded = b.op(OpKind::kPad, "padded", {joined}, around);
  const int pooled = b.max_pool("max", padded, 3, 2, 1, true);
  const int mixed = b.relu6("relu6", b.add("add", pooled, b.avg_pool("avg", padded, 3, 2, 1)));
  const int turned = b.permute("turned", b.softmax("soft", mixed, 0), {1, 0, 2});
  const int part = b.slice("part", turned, 1, 2, 11);
  const int flat = b.flatten("flat", b.dropout("drop", part, .5));
  const Shape shape = b.shape(flat);
  const int norms = b.layer_norm("ln", b.reshape("reshape", flat, {1, shape[0]}));
  NetEntry entry;
  entry.id = "every";
  Net net(entry, b.finish(b.linear("fc", b.flatten("row", norms), 5), "silu"));
  expect_same(net, {"", "stem", "stem.bn", "stem.relu", "pool", "gate", "silu", "strided", "joined", "max",
                    "soft", "drop", "fc"});
}

// Padding that differs by side, with and without dilation.
TEST(Differentiator, PadsEverySideByItsOwn) {
  for (const int64_t dilation : {1, 2}) {
    GraphBuilder b({3, 11, 13});
    Attributes a;
    a.channels = 4;
    a.kernel = {3, 2};
    a.stride = {2, 1};
    a.padding = {2, 1, 1, 3};
    a.dilation = {dilation, dilation};
    const int x = b.relu("relu", b.op(OpKind::kConv2d, "first", {0}, a));
    const int y = b.op(OpKind::kConv2d, "second", {x}, a);
    NetEntry entry;
    entry.id = "padded";
    Net net(entry, b.finish(b.linear("fc", b.flatten("flat", y), 3), ""));
    expect_same(net, {"", "relu"});
    net.prepare(at::kCPU, Precision::kF32);
    const at::Tensor input = fill_input(net, 2).to(at::kFloat);
    EXPECT_GT(cosine(net.forward(input), net.forward_plain(input).logits), .999999) << dilation;
  }
}

// A layer may lie beside others that skip it.
TEST(Differentiator, RunsTheTailAlone) {
  auto net = Net::build("squeezenet1-1", {});
  net->load(fill_state(*net));
  net->prepare(at::kCPU, Precision::kF32);
  const at::Tensor x = fill_input(*net, 2).to(at::kFloat);
  const Differentiator& d = net->differentiator("features.4.expand3x3");
  std::vector<at::Tensor> values = d.head(x);
  ASSERT_GT(values.size(), 1U);
  EXPECT_TRUE(at::equal(d.tail(values), d.record(values).logits));
  values[0] = at::zeros_like(values[0]);
  EXPECT_FALSE(at::allclose(d.tail(values), net->forward(x)));
}

TEST(Differentiator, RefusesReluRulesForOtherActivations) {
  auto net = Net::build("efficientnet-b0", {});
  net->load(fill_state(*net));
  net->prepare(at::kCPU, Precision::kF32);
  try {
    net->differentiator().want_relus("guided-backprop");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), TX_UNSUPPORTED);
    EXPECT_NE(std::string(error.what()).find("silu at features.0.2"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace assay
