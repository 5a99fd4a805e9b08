// EfficientNet-B0: Tan, Le, "EfficientNet: Rethinking Model Scaling for
// Convolutional Neural Networks", ICML 2019, table 1, with torchvision's names.
// Stochastic depth, which torchvision trains with, is not here.
#include <string>

#include "nets/families.h"

namespace assay {
namespace {

struct Stage {
  int64_t expansion, kernel, stride, channels, blocks;
};
constexpr Stage kStages[] = {
    {1, 3, 1, 16, 1},  {6, 3, 2, 24, 2},  {6, 5, 2, 40, 2},  {6, 3, 2, 80, 3},
    {6, 5, 1, 112, 3}, {6, 5, 2, 192, 4}, {6, 3, 1, 320, 1},
};

int block(GraphBuilder& b, const std::string& name, int x, const Stage& stage, int64_t stride) {
  const int64_t in = b.shape(x)[0], inner = in * stage.expansion;
  int y = x, part = 0;
  const auto next = [&] { return name + ".block." + std::to_string(part++); };
  if (inner != in) y = conv_norm(b, next(), y, {.channels = inner, .kernel = 1}, OpKind::kSilu);
  y = conv_norm(b, next(), y, {.channels = inner, .kernel = stage.kernel, .stride = stride, .groups = inner},
                OpKind::kSilu);
  y = squeeze_excitation(b, next(), y, in / 4, OpKind::kSilu, OpKind::kSigmoid);
  y = conv_norm(b, next(), y, {.channels = stage.channels, .kernel = 1});
  if (stride == 1 && in == stage.channels) y = b.add(name + ".add", y, x);
  b.place(name, "block", y);
  return y;
}

Graph efficientnet_b0(const Shape& input, int64_t classes) {
  GraphBuilder b(input);
  int x = conv_norm(b, "features.0", 0, {.channels = 32, .stride = 2}, OpKind::kSilu);
  int index = 1;
  for (const Stage& stage : kStages) {
    const std::string name = "features." + std::to_string(index++);
    for (int64_t i = 0; i < stage.blocks; ++i) {
      x = block(b, name + "." + std::to_string(i), x, stage, i == 0 ? stage.stride : 1);
    }
    b.place(name, "stage", x);
  }
  x = conv_norm(b, "features." + std::to_string(index), x, {.channels = 1280, .kernel = 1}, OpKind::kSilu);
  b.place("features", "features", x);
  x = b.flatten("flatten", b.adaptive_avg_pool("avgpool", x));
  x = b.dropout("classifier.0", x, .2);
  return b.finish(b.linear("classifier.1", x, classes), "features");
}

}  // namespace

std::vector<NetEntry> efficientnets() {
  NetEntry e = torchvision_entry(
      "efficientnet-b0", "EfficientNet-B0 for ImageNet, 5.3 million parameters",
      "Tan, Le, EfficientNet: Rethinking Model Scaling for Convolutional Neural Networks, ICML 2019",
      efficientnet_b0);
  e.preset = "imagenet-bicubic";
  return {e};
}

}  // namespace assay
