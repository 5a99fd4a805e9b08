// SqueezeNet 1.1: Iandola et al., "SqueezeNet: AlexNet-level accuracy with 50x
// fewer parameters", 2016, in the version of its authors' repository, with
// torchvision's names.
#include <string>

#include "nets/families.h"

namespace assay {
namespace {

int fire(GraphBuilder& b, const std::string& name, int x, int64_t squeezed, int64_t expanded) {
  x = b.conv2d(name + ".squeeze", x, {.channels = squeezed, .bias = true});
  x = b.relu(name + ".squeeze_activation", x);
  int one = b.conv2d(name + ".expand1x1", x, {.channels = expanded, .bias = true});
  one = b.relu(name + ".expand1x1_activation", one);
  int three = b.conv2d(name + ".expand3x3", x,
                       {.channels = expanded, .kernel = 3, .padding = {1, 1, 1, 1}, .bias = true});
  three = b.relu(name + ".expand3x3_activation", three);
  const int y = b.concat(name + ".cat", {one, three});
  b.place(name, "block", y);
  return y;
}

Graph squeezenet1_1(const Shape& input, int64_t classes) {
  GraphBuilder b(input);
  int x = b.conv2d("features.0", 0, {.channels = 64, .kernel = 3, .stride = 2, .bias = true});
  x = b.relu("features.1", x);
  int index = 2;
  const auto next = [&] { return "features." + std::to_string(index++); };
  // Two fires of a size, a pool before each of the first three sizes.
  const int64_t squeezed[] = {16, 32, 48, 64};
  for (int i = 0; i < 4; ++i) {
    if (i < 3) x = b.max_pool(next(), x, 3, 2, 0, /*ceil=*/true);
    for (int twice = 0; twice < 2; ++twice) x = fire(b, next(), x, squeezed[i], 4 * squeezed[i]);
  }
  const std::string last = "features." + std::to_string(index - 1);
  x = b.dropout("classifier.0", x, .5);
  x = b.relu("classifier.2", b.conv2d("classifier.1", x, {.channels = classes, .bias = true}));
  return b.finish(b.flatten("flatten", b.adaptive_avg_pool("classifier.3", x)), last);
}

}  // namespace

std::vector<NetEntry> squeezenets() {
  return {torchvision_entry(
      "squeezenet1-1", "SqueezeNet 1.1 for ImageNet, 1.2 million parameters",
      "Iandola et al., SqueezeNet: AlexNet-level accuracy with 50x fewer parameters, 2016", squeezenet1_1)};
}

}  // namespace assay
