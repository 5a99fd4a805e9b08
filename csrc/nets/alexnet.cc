// AlexNet in its form for one tower: Krizhevsky, "One weird trick for
// parallelizing convolutional neural networks", 2014, with torchvision's names.
#include <string>

#include "nets/families.h"

namespace assay {
namespace {

Graph alexnet(const Shape& input, int64_t classes) {
  GraphBuilder b(input);
  int x = b.conv2d("features.0", 0,
                   {.channels = 64, .kernel = 11, .stride = 4, .padding = {2, 2, 2, 2}, .bias = true});
  x = b.max_pool("features.2", b.relu("features.1", x), 3, 2);
  x = b.conv2d("features.3", x, {.channels = 192, .kernel = 5, .padding = {2, 2, 2, 2}, .bias = true});
  x = b.max_pool("features.5", b.relu("features.4", x), 3, 2);
  const int64_t channels[] = {384, 256, 256};
  for (int i = 0; i < 3; ++i) {
    x = b.conv2d("features." + std::to_string(6 + 2 * i), x,
                 {.channels = channels[i], .kernel = 3, .padding = {1, 1, 1, 1}, .bias = true});
    x = b.relu("features." + std::to_string(7 + 2 * i), x);
  }
  x = b.max_pool("features.12", x, 3, 2);
  b.place("features", "features", x);
  x = b.flatten("flatten", b.adaptive_avg_pool("avgpool", x, 6));
  x = b.dropout("classifier.0", x, .5);
  x = b.relu("classifier.2", b.linear("classifier.1", x, 4096));
  x = b.dropout("classifier.3", x, .5);
  x = b.relu("classifier.5", b.linear("classifier.4", x, 4096));
  return b.finish(b.linear("classifier.6", x, classes), "features.11");
}

}  // namespace

std::vector<NetEntry> alexnets() {
  return {torchvision_entry(
      "alexnet", "AlexNet for ImageNet, 61.1 million parameters",
      "Krizhevsky, One weird trick for parallelizing convolutional neural networks, 2014", alexnet)};
}

}  // namespace assay
