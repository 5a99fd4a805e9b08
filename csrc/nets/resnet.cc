// ResNets for ImageNet, with torchvision's names: He, Zhang, Ren, Sun, "Deep
// Residual Learning for Image Recognition", CVPR 2016, table 1. The stride of a
// bottleneck sits on its 3x3 convolution ("v1.5"), as in torchvision's weights.
#include <array>
#include <string>

#include "nets/families.h"

namespace assay {
namespace {

struct Depths {
  std::array<int64_t, 4> blocks;  // a stage
  bool bottleneck;
};

int conv3x3(GraphBuilder& b, const std::string& name, int x, int64_t channels, int64_t stride) {
  return b.conv2d(name, x, {.channels = channels, .kernel = 3, .stride = stride, .padding = {1, 1, 1, 1}});
}

// relu(F(x) + shortcut(x)); the ops are named as torchvision's modules, whose
// one relu, used two or three times, becomes relu1, relu2, relu3.
int block(GraphBuilder& b, const std::string& name, int x, int64_t width, int64_t stride, bool bottleneck) {
  const int64_t channels = bottleneck ? 4 * width : width;
  int y = x;
  if (bottleneck) {
    y = b.conv2d(name + ".conv1", y, {.channels = width});
    y = b.relu(name + ".relu1", b.batch_norm(name + ".bn1", y));
    y = conv3x3(b, name + ".conv2", y, width, stride);
    y = b.relu(name + ".relu2", b.batch_norm(name + ".bn2", y));
    y = b.conv2d(name + ".conv3", y, {.channels = channels});
    y = b.batch_norm(name + ".bn3", y);
  } else {
    y = conv3x3(b, name + ".conv1", y, width, stride);
    y = b.relu(name + ".relu1", b.batch_norm(name + ".bn1", y));
    y = conv3x3(b, name + ".conv2", y, width, 1);
    y = b.batch_norm(name + ".bn2", y);
  }
  int shortcut = x;
  if (stride != 1 || b.shape(x)[0] != channels) {
    shortcut = b.conv2d(name + ".downsample.0", x, {.channels = channels, .stride = stride});
    shortcut = b.batch_norm(name + ".downsample.1", shortcut);
  }
  y = b.relu(name + (bottleneck ? ".relu3" : ".relu2"), b.add(name + ".add", y, shortcut));
  b.place(name, "block", y);
  return y;
}

// small: the stem for images of 32 pixels, a 3x3 convolution and no pooling.
Graph resnet(const Depths& depths, bool small, const Shape& input, int64_t classes) {
  GraphBuilder b(input);
  int x = small ? conv3x3(b, "conv1", 0, 64, 1)
                : b.conv2d("conv1", 0, {.channels = 64, .kernel = 7, .stride = 2, .padding = {3, 3, 3, 3}});
  x = b.relu("relu", b.batch_norm("bn1", x));
  if (!small) x = b.max_pool("maxpool", x, 3, 2, 1);
  for (int64_t stage = 0; stage < 4; ++stage) {
    const std::string name = "layer" + std::to_string(stage + 1);
    for (int64_t i = 0; i < depths.blocks[static_cast<size_t>(stage)]; ++i) {
      const int64_t stride = stage > 0 && i == 0 ? 2 : 1;
      x = block(b, name + "." + std::to_string(i), x, int64_t{64} << stage, stride, depths.bottleneck);
    }
    b.place(name, "stage", x);
  }
  x = b.flatten("flatten", b.adaptive_avg_pool("avgpool", x));
  return b.finish(b.linear("fc", x, classes), "layer4");
}

constexpr const char* kPaper = "He et al., Deep Residual Learning for Image Recognition, CVPR 2016";

// torchvision's ResNet-18 with the stem that CIFAR's small images want.
NetEntry cifar_stem() {
  NetEntry e;
  e.id = "resnet18-cifar";
  e.summary = "ResNet-18 with a 3x3 stem and no max-pooling, for CIFAR, 11.2 million parameters";
  e.preset = "cifar10-std";
  e.input = {3, 32, 32};
  e.classes = 10;
  e.paper = kPaper;
  e.build = [](const Shape& input, int64_t classes) {
    return resnet({{2, 2, 2, 2}, false}, true, input, classes);
  };
  return e;
}

NetEntry entry(const std::string& depth, const std::string& parameters, const Depths& depths) {
  return torchvision_entry(
      "resnet" + depth, "ResNet-" + depth + " for ImageNet, " + parameters + " million parameters", kPaper,
      [depths](const Shape& input, int64_t classes) { return resnet(depths, false, input, classes); });
}

}  // namespace

std::vector<NetEntry> resnets() {
  return {
      entry("18", "11.7", {{2, 2, 2, 2}, false}),
      entry("34", "21.8", {{3, 4, 6, 3}, false}),
      entry("50", "25.6", {{3, 4, 6, 3}, true}),
      entry("101", "44.5", {{3, 4, 23, 3}, true}),
      cifar_stem(),
  };
}

}  // namespace assay
