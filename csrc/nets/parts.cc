// What families of nets share.
#include <string>
#include <utility>

#include "nets/families.h"

namespace assay {

NetEntry torchvision_entry(const std::string& id, const std::string& summary, const std::string& paper,
                           std::function<Graph(const Shape& input, int64_t classes)> build) {
  NetEntry e;
  e.id = id;
  e.summary = summary + " (torchvision's weights)";
  e.preset = "imagenet";
  e.input = {3, 224, 224};
  e.classes = 1000;
  e.licence = "BSD-3-Clause (torchvision)";
  e.paper = paper;
  e.build = std::move(build);
  return e;
}

int conv_norm(GraphBuilder& b, const std::string& name, int x, const ConvBlock& block) {
  const int64_t side = (block.kernel - 1) / 2;
  x = b.conv2d(name + ".0", x,
               {.channels = block.channels,
                .kernel = block.kernel,
                .stride = block.stride,
                .padding = {side, side, side, side},
                .groups = block.groups});
  return b.batch_norm(name + ".1", x, block.epsilon, block.momentum);
}

int conv_norm(GraphBuilder& b, const std::string& name, int x, const ConvBlock& block, OpKind activation) {
  return b.simple(activation, name + ".2", {conv_norm(b, name, x, block)});
}

int basic_conv(GraphBuilder& b, const std::string& name, int x, const GraphBuilder::Conv& conv) {
  constexpr double kEpsilon = 1e-3;
  x = b.batch_norm(name + ".bn", b.conv2d(name + ".conv", x, conv), kEpsilon);
  return b.relu(name + ".relu", x);
}

int squeeze_excitation(GraphBuilder& b, const std::string& name, int x, int64_t squeezed, OpKind activation,
                       OpKind gate) {
  const int64_t channels = b.shape(x)[0];
  int y = b.adaptive_avg_pool(name + ".avgpool", x);
  y = b.conv2d(name + ".fc1", y, {.channels = squeezed, .bias = true});
  y = b.simple(activation, name + ".activation", {y});
  y = b.conv2d(name + ".fc2", y, {.channels = channels, .bias = true});
  y = b.simple(gate, name + ".scale_activation", {y});
  return b.mul(name + ".scale", y, x);
}

int transform_input(GraphBuilder& b, int x) {
  constexpr double kMean[] = {.485, .456, .406}, kStd[] = {.229, .224, .225};
  Attributes a;
  for (int c = 0; c < 3; ++c) {
    a.factors.push_back(kStd[c] / .5);
    a.shifts.push_back((kMean[c] - .5) / .5);
  }
  return b.op(OpKind::kChannelAffine, "transform_input", {x}, a);
}

}  // namespace assay
