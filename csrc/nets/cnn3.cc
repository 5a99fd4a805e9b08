// Small convolutional nets: three 3x3 convolutions with 32, 64 and 64 channels,
// each with ReLU, the second and the third followed by 2x2 max-pooling, then one
// linear layer. For the sizes of digits, Fashion-MNIST (also MNIST) and CIFAR.
#include <string>

#include "nets/families.h"

namespace assay {
namespace {

Graph cnn3(const Shape& input, int64_t classes) {
  GraphBuilder b(input);
  int x = 0;
  const int64_t channels[] = {32, 64, 64};
  for (int64_t i = 1; i <= 3; ++i) {
    const std::string number = std::to_string(i);
    x = b.conv2d("conv" + number, x,
                 {.channels = channels[i - 1], .kernel = 3, .padding = {1, 1, 1, 1}, .bias = true});
    x = b.relu("relu" + number, x);
    if (i > 1) x = b.max_pool("pool" + number, x, 2, 2);
  }
  return b.finish(b.linear("fc", b.flatten("flatten", x), classes), "relu3");
}

NetEntry entry(const std::string& id, const std::string& data, const std::string& preset, Shape input) {
  NetEntry e;
  e.id = id;
  e.summary = "three 3x3 convolutions (32, 64, 64) with max-pooling and a linear layer, for " + data;
  e.preset = preset;
  e.input = std::move(input);
  e.classes = 10;
  e.build = cnn3;
  return e;
}

}  // namespace

std::vector<NetEntry> cnn3s() {
  return {
      entry("cnn3", "digits of 8x8", "digits", {1, 8, 8}),
      entry("cnn3-fashion", "(Fashion-)MNIST", "fashion-mnist", {1, 28, 28}),
      entry("cnn3-cifar", "CIFAR", "cifar10", {3, 32, 32}),
  };
}

}  // namespace assay
