// EfficientNet-Lite0 with the names of the weights that were converted from
// TensorFlow's for PyTorch (efficientnet-lite0-57934424.pth): the blocks of
// EfficientNet-B0 (Tan, Le, ICML 2019, table 1) without squeeze-and-excitation
// and with ReLU6. Convolutions pad as TensorFlow's "SAME", which for stride 2
// on an even size puts the odd pixel below and to the right.
#include <algorithm>
#include <string>

#include "nets/families.h"

namespace assay {
namespace {

constexpr double kEpsilon = 1e-3;

struct Stage {
  int64_t blocks, kernel, stride, expansion, channels;
};
constexpr Stage kStages[] = {
    {1, 3, 1, 1, 16},  {2, 3, 2, 6, 24},  {2, 5, 2, 6, 40},  {3, 3, 2, 6, 80},
    {3, 5, 1, 6, 112}, {4, 5, 2, 6, 192}, {1, 3, 1, 6, 320},
};

int same_conv(GraphBuilder& b, const std::string& name, int x, int64_t channels, int64_t kernel = 1,
              int64_t stride = 1, int64_t groups = 1) {
  GraphBuilder::Conv conv{.channels = channels, .kernel = kernel, .stride = stride, .groups = groups};
  for (size_t axis = 0; axis < 2; ++axis) {
    const int64_t size = b.shape(x)[axis + 1];
    const int64_t outputs = (size + stride - 1) / stride;
    const int64_t total = std::max<int64_t>((outputs - 1) * stride + kernel - size, 0);
    conv.padding[axis] = total / 2;
    conv.padding[axis + 2] = total - total / 2;
  }
  return b.conv2d(name, x, conv);
}

// Inverted bottleneck: expand, filter each channel, project, add where it can.
int block(GraphBuilder& b, const std::string& name, int x, const Stage& stage, int64_t stride) {
  const int64_t in = b.shape(x)[0];
  const int64_t inner = in * stage.expansion;
  int y = x;
  if (stage.expansion != 1) {
    y = b.batch_norm(name + "._bn0", same_conv(b, name + "._expand_conv", y, inner), kEpsilon);
    y = b.relu6(name + "._relu0", y);
  }
  y = same_conv(b, name + "._depthwise_conv", y, inner, stage.kernel, stride, inner);
  y = b.relu6(name + "._relu1", b.batch_norm(name + "._bn1", y, kEpsilon));
  y = b.batch_norm(name + "._bn2", same_conv(b, name + "._project_conv", y, stage.channels), kEpsilon);
  if (stride == 1 && in == stage.channels) y = b.add(name + "._add", y, x);
  b.place(name, "block", y);
  return y;
}

Graph lite0(const Shape& input, int64_t classes) {
  GraphBuilder b(input);
  int x = b.batch_norm("_bn0", same_conv(b, "_conv_stem", 0, 32, 3, 2), kEpsilon);
  x = b.relu6("_relu0", x);
  int64_t index = 0;
  for (const Stage& stage : kStages) {
    for (int64_t i = 0; i < stage.blocks; ++i) {
      x = block(b, "_blocks." + std::to_string(index++), x, stage, i == 0 ? stage.stride : 1);
    }
  }
  x = b.relu6("_relu1", b.batch_norm("_bn1", same_conv(b, "_conv_head", x, 1280), kEpsilon));
  b.place("features", "features", x);
  x = b.flatten("_flatten", b.adaptive_avg_pool("_avg_pooling", x));
  x = b.dropout("_dropout", x, 0.2);
  return b.finish(b.linear("_fc", x, classes), "features");
}

}  // namespace

std::vector<NetEntry> efficientnet_lites() {
  NetEntry e;
  e.id = "efficientnet-lite0";
  e.summary = "EfficientNet-Lite0 for ImageNet, 4.7 million parameters (efficientnet-lite0-57934424.pth)";
  e.preset = "tf-lite";
  e.input = {3, 224, 224};
  e.classes = 1000;
  e.licence = "Apache-2.0";
  e.paper = "Tan, Le, EfficientNet, ICML 2019; Lite variant: TensorFlow TPU models, 2020";
  e.build = lite0;
  return {e};
}

}  // namespace assay
