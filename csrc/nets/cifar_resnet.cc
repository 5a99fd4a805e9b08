// ResNets for CIFAR-10 with 6n+2 layers: He et al. 2016, section 4.2, with
// shortcuts without parameters (option A) and the names of Idelbayev's state
// dicts ("Proper ResNet Implementation for CIFAR10/CIFAR100 in PyTorch"). And
// ResNet-164 with bottlenecks and projections, after or before ("identity
// mappings", He et al., ECCV 2016, figure 1) its activations, with the names of
// Yang's state dicts (pytorch-classification).
#include <string>

#include "nets/families.h"

namespace assay {
namespace {

int conv3x3(GraphBuilder& b, const std::string& name, int x, int64_t channels, int64_t stride) {
  return b.conv2d(name, x, {.channels = channels, .kernel = 3, .stride = stride, .padding = {1, 1, 1, 1}});
}

int block(GraphBuilder& b, const std::string& name, int x, int64_t channels, int64_t stride) {
  const bool narrower = b.shape(x)[0] != channels;
  // First the shortcut, so that the second convolution can be added to it.
  const int shortcut = narrower ? b.shortcut_a(name + ".shortcut", x, channels) : x;
  int y = conv3x3(b, name + ".conv1", x, channels, stride);
  y = b.relu(name + ".relu1", b.batch_norm(name + ".bn1", y));
  y = b.batch_norm(name + ".bn2", conv3x3(b, name + ".conv2", y, channels, 1));
  y = b.relu(name + ".relu2", b.add(name + ".add", y, shortcut));
  b.place(name, "block", y);
  return y;
}

Graph cifar_resnet(int64_t blocks, const Shape& input, int64_t classes) {
  GraphBuilder b(input);
  int x = conv3x3(b, "conv1", 0, 16, 1);
  x = b.relu("relu", b.batch_norm("bn1", x));
  for (int64_t stage = 0; stage < 3; ++stage) {
    const std::string name = "layer" + std::to_string(stage + 1);
    for (int64_t i = 0; i < blocks; ++i) {
      x = block(b, name + "." + std::to_string(i), x, int64_t{16} << stage, stage > 0 && i == 0 ? 2 : 1);
    }
    b.place(name, "stage", x);
  }
  x = b.flatten("flatten", b.adaptive_avg_pool("avgpool", x));
  return b.finish(b.linear("linear", x, classes), "layer3");
}

// ---- ResNet-164

constexpr int64_t kBlocks164 = 18, kExpansion = 4;

int bottleneck(GraphBuilder& b, const std::string& name, int x, int64_t width, int64_t stride) {
  const int64_t channels = kExpansion * width;
  int y = b.conv2d(name + ".conv1", x, {.channels = width});
  y = b.relu(name + ".relu1", b.batch_norm(name + ".bn1", y));
  y = conv3x3(b, name + ".conv2", y, width, stride);
  y = b.relu(name + ".relu2", b.batch_norm(name + ".bn2", y));
  y = b.batch_norm(name + ".bn3", b.conv2d(name + ".conv3", y, {.channels = channels}));
  int shortcut = x;
  if (stride != 1 || b.shape(x)[0] != channels) {
    shortcut = b.conv2d(name + ".downsample.0", x, {.channels = channels, .stride = stride});
    shortcut = b.batch_norm(name + ".downsample.1", shortcut);
  }
  y = b.relu(name + ".relu3", b.add(name + ".add", y, shortcut));
  b.place(name, "block", y);
  return y;
}

int pre_activated(GraphBuilder& b, const std::string& name, int x, int64_t width, int64_t stride) {
  const int64_t channels = kExpansion * width;
  int shortcut = x;
  if (stride != 1 || b.shape(x)[0] != channels) {
    shortcut = b.conv2d(name + ".downsample.0", x, {.channels = channels, .stride = stride});
  }
  int y = b.relu(name + ".relu1", b.batch_norm(name + ".bn1", x));
  y = b.conv2d(name + ".conv1", y, {.channels = width});
  y = b.relu(name + ".relu2", b.batch_norm(name + ".bn2", y));
  y = conv3x3(b, name + ".conv2", y, width, stride);
  y = b.relu(name + ".relu3", b.batch_norm(name + ".bn3", y));
  y = b.conv2d(name + ".conv3", y, {.channels = channels});
  y = b.add(name + ".add", y, shortcut);
  b.place(name, "block", y);
  return y;
}

Graph resnet164(bool before, const Shape& input, int64_t classes) {
  GraphBuilder b(input);
  int x = conv3x3(b, "conv1", 0, 16, 1);
  if (!before) x = b.relu("relu", b.batch_norm("bn1", x));
  for (int64_t stage = 0; stage < 3; ++stage) {
    const std::string name = "layer" + std::to_string(stage + 1);
    for (int64_t i = 0; i < kBlocks164; ++i) {
      const int64_t width = int64_t{16} << stage, stride = stage > 0 && i == 0 ? 2 : 1;
      x = (before ? pre_activated : bottleneck)(b, name + "." + std::to_string(i), x, width, stride);
    }
    b.place(name, "stage", x);
  }
  if (before) x = b.relu("relu", b.batch_norm("bn", x));
  x = b.flatten("flatten", b.avg_pool("avgpool", x, 8, 1));
  return b.finish(b.linear("fc", x, classes), before ? "relu" : "layer3");
}

NetEntry entry164(const std::string& id, const std::string& what, bool before, const std::string& paper) {
  NetEntry e;
  e.id = id;
  e.summary = "ResNet-164 for CIFAR-10 with bottlenecks, " + what + ", 1.7 million parameters";
  e.preset = "cifar10-std";
  e.input = {3, 32, 32};
  e.classes = 10;
  e.paper = paper;
  e.build = [before](const Shape& input, int64_t classes) { return resnet164(before, input, classes); };
  return e;
}

NetEntry entry(const std::string& depth, const std::string& parameters, int64_t blocks) {
  NetEntry e;
  e.id = "cifar-resnet" + depth;
  e.summary =
      "ResNet-" + depth + " for CIFAR-10, " + parameters + " million parameters (akamaster's weights)";
  e.preset = "cifar10";
  e.input = {3, 32, 32};
  e.classes = 10;
  e.licence = "BSD-2-Clause (akamaster/pytorch_resnet_cifar10)";
  e.paper = "He et al., Deep Residual Learning for Image Recognition, CVPR 2016, section 4.2";
  e.build = [blocks](const Shape& input, int64_t classes) { return cifar_resnet(blocks, input, classes); };
  return e;
}

}  // namespace

std::vector<NetEntry> cifar_resnets() {
  return {
      entry("20", "0.27", 3),
      entry("32", "0.46", 5),
      entry("44", "0.66", 7),
      entry("56", "0.85", 9),
      entry("110", "1.73", 18),
      entry164("cifar-resnet164", "post-activation", false,
               "He et al., Deep Residual Learning for Image Recognition, CVPR 2016"),
      entry164("cifar-preresnet164", "pre-activation", true,
               "He et al., Identity Mappings in Deep Residual Networks, ECCV 2016"),
  };
}

}  // namespace assay
