// DenseNet-BC: Huang et al., "Densely Connected Convolutional Networks", CVPR
// 2017, table 1, with torchvision's names.
#include <array>
#include <string>

#include "nets/families.h"

namespace assay {
namespace {

struct Size {
  int64_t growth, first;
  std::array<int64_t, 4> layers;
};

Graph densenet(const Size& size, const Shape& input, int64_t classes) {
  GraphBuilder b(input);
  int x = b.conv2d("features.conv0", 0,
                   {.channels = size.first, .kernel = 7, .stride = 2, .padding = {3, 3, 3, 3}});
  x = b.relu("features.relu0", b.batch_norm("features.norm0", x));
  x = b.max_pool("features.pool0", x, 3, 2, 1);
  for (size_t block = 0; block < size.layers.size(); ++block) {
    const std::string number = std::to_string(block + 1), name = "features.denseblock" + number;
    for (int64_t i = 1; i <= size.layers[block]; ++i) {
      const std::string layer = name + ".denselayer" + std::to_string(i);
      int y = b.relu(layer + ".relu1", b.batch_norm(layer + ".norm1", x));
      y = b.conv2d(layer + ".conv1", y, {.channels = 4 * size.growth});
      y = b.relu(layer + ".relu2", b.batch_norm(layer + ".norm2", y));
      y = b.conv2d(layer + ".conv2", y, {.channels = size.growth, .kernel = 3, .padding = {1, 1, 1, 1}});
      x = b.concat(layer + ".cat", {x, y});
    }
    b.place(name, "block", x);
    if (block + 1 == size.layers.size()) break;
    const std::string transition = "features.transition" + number;
    x = b.relu(transition + ".relu", b.batch_norm(transition + ".norm", x));
    x = b.conv2d(transition + ".conv", x, {.channels = b.shape(x)[0] / 2});
    x = b.avg_pool(transition + ".pool", x, 2, 2);
  }
  x = b.relu("relu", b.batch_norm("features.norm5", x));
  x = b.flatten("flatten", b.adaptive_avg_pool("avgpool", x));
  return b.finish(b.linear("classifier", x, classes), "relu");
}

NetEntry entry(const std::string& depth, const std::string& parameters, const Size& size) {
  return torchvision_entry(
      "densenet" + depth, "DenseNet-" + depth + " for ImageNet, " + parameters + " million parameters",
      "Huang et al., Densely Connected Convolutional Networks, CVPR 2017",
      [size](const Shape& input, int64_t classes) { return densenet(size, input, classes); });
}

}  // namespace

std::vector<NetEntry> densenets() {
  return {entry("121", "8.0", {32, 64, {6, 12, 24, 16}}), entry("161", "28.7", {48, 96, {6, 12, 36, 24}})};
}

}  // namespace assay
