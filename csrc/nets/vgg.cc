// VGG: Simonyan, Zisserman, "Very Deep Convolutional Networks for Large-Scale
// Image Recognition", ICLR 2015, table 1 (A, D, E), with torchvision's names;
// the variants with batch norm after every convolution are torchvision's.
#include <array>
#include <string>

#include "nets/families.h"

namespace assay {
namespace {

// Convolutions a stage; each stage ends in a max-pool.
using Depths = std::array<int64_t, 5>;

Graph vgg(const Depths& depths, bool norm, const Shape& input, int64_t classes) {
  GraphBuilder b(input);
  const int64_t channels[] = {64, 128, 256, 512, 512};
  int x = 0, index = 0;
  std::string last;  // the last ReLU before the last pool
  const auto next = [&] { return "features." + std::to_string(index++); };
  for (size_t stage = 0; stage < depths.size(); ++stage) {
    for (int64_t i = 0; i < depths[stage]; ++i) {
      x = b.conv2d(next(), x,
                   {.channels = channels[stage], .kernel = 3, .padding = {1, 1, 1, 1}, .bias = true});
      if (norm) x = b.batch_norm(next(), x);
      last = next();
      x = b.relu(last, x);
    }
    x = b.max_pool(next(), x, 2, 2);
  }
  b.place("features", "features", x);
  x = b.flatten("flatten", b.adaptive_avg_pool("avgpool", x, 7));
  x = b.relu("classifier.1", b.linear("classifier.0", x, 4096));
  x = b.dropout("classifier.2", x, .5);
  x = b.relu("classifier.4", b.linear("classifier.3", x, 4096));
  x = b.dropout("classifier.5", x, .5);
  return b.finish(b.linear("classifier.6", x, classes), last);
}

}  // namespace

std::vector<NetEntry> vggs() {
  struct Variant {
    const char *depth, *plain, *normed;  // million parameters
    Depths depths;
  };
  std::vector<NetEntry> all;
  for (const Variant& v :
       {Variant{"11", "132.9", "132.9", {1, 1, 2, 2, 2}}, Variant{"16", "138.4", "138.4", {2, 2, 3, 3, 3}},
        Variant{"19", "143.7", "143.7", {2, 2, 4, 4, 4}}}) {
    for (bool norm : {false, true}) {
      const Depths depths = v.depths;
      all.push_back(torchvision_entry(
          std::string("vgg") + v.depth + (norm ? "-bn" : ""),
          std::string("VGG-") + v.depth + (norm ? " with batch norm" : "") + " for ImageNet, " +
              (norm ? v.normed : v.plain) + " million parameters",
          "Simonyan, Zisserman, Very Deep Convolutional Networks for Large-Scale Image Recognition, ICLR "
          "2015",
          [depths, norm](const Shape& input, int64_t classes) { return vgg(depths, norm, input, classes); }));
    }
  }
  return all;
}

}  // namespace assay
