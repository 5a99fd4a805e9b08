// MobileNetV2 (Sandler et al., CVPR 2018, table 2) and MobileNetV3 (Howard et
// al., ICCV 2019, tables 1 and 2), with torchvision's names.
#include <algorithm>
#include <string>

#include "nets/families.h"

namespace assay {
namespace {

// ---- version 2

struct StageV2 {
  int64_t expansion, channels, blocks, stride;
};
constexpr StageV2 kStagesV2[] = {
    {1, 16, 1, 1}, {6, 24, 2, 2}, {6, 32, 3, 2}, {6, 64, 4, 2}, {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1},
};

int block_v2(GraphBuilder& b, const std::string& name, int x, const StageV2& stage, int64_t stride) {
  const int64_t in = b.shape(x)[0], inner = in * stage.expansion;
  int y = x, part = 0;
  const auto next = [&] { return name + ".conv." + std::to_string(part++); };
  if (stage.expansion != 1) {
    y = conv_norm(b, next(), y, {.channels = inner, .kernel = 1}, OpKind::kRelu6);
  }
  y = conv_norm(b, next(), y, {.channels = inner, .stride = stride, .groups = inner}, OpKind::kRelu6);
  y = b.conv2d(next(), y, {.channels = stage.channels});
  y = b.batch_norm(next(), y);
  if (stride == 1 && in == stage.channels) y = b.add(name + ".add", y, x);
  b.place(name, "block", y);
  return y;
}

Graph mobilenet_v2(const Shape& input, int64_t classes) {
  GraphBuilder b(input);
  int x = conv_norm(b, "features.0", 0, {.channels = 32, .stride = 2}, OpKind::kRelu6);
  int index = 1;
  for (const StageV2& stage : kStagesV2) {
    for (int64_t i = 0; i < stage.blocks; ++i) {
      x = block_v2(b, "features." + std::to_string(index++), x, stage, i == 0 ? stage.stride : 1);
    }
  }
  x = conv_norm(b, "features." + std::to_string(index), x, {.channels = 1280, .kernel = 1}, OpKind::kRelu6);
  b.place("features", "features", x);
  x = b.flatten("flatten", b.adaptive_avg_pool("avgpool", x));
  x = b.dropout("classifier.0", x, .2);
  return b.finish(b.linear("classifier.1", x, classes), "features");
}

// ---- version 3

constexpr double kEpsilon = 1e-3, kMomentum = .01;

struct BlockV3 {
  int64_t kernel, inner, channels;
  bool gate, hardswish;
  int64_t stride;
};

const std::vector<BlockV3>& blocks_v3(bool large) {
  static const std::vector<BlockV3> small_blocks = {
      {3, 16, 16, true, false, 2}, {3, 72, 24, false, false, 2}, {3, 88, 24, false, false, 1},
      {5, 96, 40, true, true, 2},  {5, 240, 40, true, true, 1},  {5, 240, 40, true, true, 1},
      {5, 120, 48, true, true, 1}, {5, 144, 48, true, true, 1},  {5, 288, 96, true, true, 2},
      {5, 576, 96, true, true, 1}, {5, 576, 96, true, true, 1},
  };
  static const std::vector<BlockV3> large_blocks = {
      {3, 16, 16, false, false, 1}, {3, 64, 24, false, false, 2}, {3, 72, 24, false, false, 1},
      {5, 72, 40, true, false, 2},  {5, 120, 40, true, false, 1}, {5, 120, 40, true, false, 1},
      {3, 240, 80, false, true, 2}, {3, 200, 80, false, true, 1}, {3, 184, 80, false, true, 1},
      {3, 184, 80, false, true, 1}, {3, 480, 112, true, true, 1}, {3, 672, 112, true, true, 1},
      {5, 672, 160, true, true, 2}, {5, 960, 160, true, true, 1}, {5, 960, 160, true, true, 1},
  };
  return large ? large_blocks : small_blocks;
}

// The multiple of 8 that is nearest, not less than nine tenths of it.
int64_t divisible(int64_t channels) {
  const int64_t rounded = std::max<int64_t>(8, (channels + 4) / 8 * 8);
  return rounded * 10 < channels * 9 ? rounded + 8 : rounded;
}

int block_v3(GraphBuilder& b, const std::string& name, int x, const BlockV3& block) {
  const int64_t in = b.shape(x)[0];
  const OpKind activation = block.hardswish ? OpKind::kHardswish : OpKind::kRelu;
  int y = x, part = 0;
  const auto next = [&] { return name + ".block." + std::to_string(part++); };
  ConvBlock conv{.channels = block.inner, .kernel = 1, .epsilon = kEpsilon, .momentum = kMomentum};
  if (block.inner != in) y = conv_norm(b, next(), y, conv, activation);
  conv.kernel = block.kernel;
  conv.stride = block.stride;
  conv.groups = block.inner;
  y = conv_norm(b, next(), y, conv, activation);
  if (block.gate) {
    y = squeeze_excitation(b, next(), y, divisible(block.inner / 4), OpKind::kRelu, OpKind::kHardsigmoid);
  }
  y = conv_norm(b, next(), y,
                {.channels = block.channels, .kernel = 1, .epsilon = kEpsilon, .momentum = kMomentum});
  if (block.stride == 1 && in == block.channels) y = b.add(name + ".add", y, x);
  b.place(name, "block", y);
  return y;
}

Graph mobilenet_v3(bool large, const Shape& input, int64_t classes) {
  GraphBuilder b(input);
  ConvBlock conv{.channels = 16, .stride = 2, .epsilon = kEpsilon, .momentum = kMomentum};
  int x = conv_norm(b, "features.0", 0, conv, OpKind::kHardswish);
  int index = 1;
  for (const BlockV3& block : blocks_v3(large)) {
    x = block_v3(b, "features." + std::to_string(index++), x, block);
  }
  conv = {.channels = 6 * b.shape(x)[0], .kernel = 1, .epsilon = kEpsilon, .momentum = kMomentum};
  x = conv_norm(b, "features." + std::to_string(index), x, conv, OpKind::kHardswish);
  b.place("features", "features", x);
  x = b.flatten("flatten", b.adaptive_avg_pool("avgpool", x));
  x = b.linear("classifier.0", x, large ? 1280 : 1024);
  x = b.simple(OpKind::kHardswish, "classifier.1", {x});
  x = b.dropout("classifier.2", x, .2);
  return b.finish(b.linear("classifier.3", x, classes), "features");
}

}  // namespace

std::vector<NetEntry> mobilenets() {
  const auto v3 = [](bool large) {
    return torchvision_entry(
        large ? "mobilenet-v3-large" : "mobilenet-v3-small",
        large ? "MobileNetV3 large for ImageNet, 5.5 million parameters"
              : "MobileNetV3 small for ImageNet, 2.5 million parameters",
        "Howard et al., Searching for MobileNetV3, ICCV 2019",
        [large](const Shape& input, int64_t classes) { return mobilenet_v3(large, input, classes); });
  };
  return {
      torchvision_entry("mobilenet-v2", "MobileNetV2 for ImageNet, 3.5 million parameters",
                        "Sandler et al., MobileNetV2: Inverted Residuals and Linear Bottlenecks, CVPR 2018",
                        mobilenet_v2),
      v3(false), v3(true)};
}

}  // namespace assay
