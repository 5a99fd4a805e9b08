// ConvNeXt-Tiny: Liu et al., "A ConvNet for the 2020s", CVPR 2022, with
// torchvision's names. Stochastic depth, which torchvision trains with, is not
// here.
#include <string>

#include "nets/families.h"

namespace assay {
namespace {

constexpr double kEpsilon = 1e-6;

int to_last(GraphBuilder& b, const std::string& name, int x) { return b.permute(name, x, {1, 2, 0}); }
int to_first(GraphBuilder& b, const std::string& name, int x) { return b.permute(name, x, {2, 0, 1}); }

// Layer norm over the channels of every pixel of [C,H,W].
int channel_norm(GraphBuilder& b, const std::string& name, int x) {
  x = b.layer_norm(name, to_last(b, name + ".to_last", x), kEpsilon);
  return to_first(b, name + ".to_first", x);
}

int block(GraphBuilder& b, const std::string& name, int x) {
  const int64_t channels = b.shape(x)[0];
  int y = b.conv2d(
      name + ".block.0", x,
      {.channels = channels, .kernel = 7, .padding = {3, 3, 3, 3}, .groups = channels, .bias = true});
  y = to_last(b, name + ".block.1", y);
  y = b.layer_norm(name + ".block.2", y, kEpsilon);
  y = b.simple(OpKind::kGelu, name + ".block.4", {b.linear(name + ".block.3", y, 4 * channels)});
  y = to_first(b, name + ".block.6", b.linear(name + ".block.5", y, channels));
  const int scale = b.parameter(name + ".layer_scale", {channels, 1, 1}, {channels, 1, 1});
  y = b.add(name + ".add", b.mul(name + ".scaled", scale, y), x);
  b.place(name, "block", y);
  return y;
}

Graph convnext_tiny(const Shape& input, int64_t classes) {
  GraphBuilder b(input);
  int x = b.conv2d("features.0.0", 0, {.channels = 96, .kernel = 4, .stride = 4, .bias = true});
  x = channel_norm(b, "features.0.1", x);
  const int64_t blocks[] = {3, 3, 9, 3};
  for (int stage = 0; stage < 4; ++stage) {
    if (stage > 0) {
      const std::string name = "features." + std::to_string(2 * stage);
      x = channel_norm(b, name + ".0", x);
      x = b.conv2d(name + ".1", x,
                   {.channels = int64_t{96} << stage, .kernel = 2, .stride = 2, .bias = true});
    }
    const std::string name = "features." + std::to_string(2 * stage + 1);
    for (int64_t i = 0; i < blocks[stage]; ++i) x = block(b, name + "." + std::to_string(i), x);
    b.place(name, "stage", x);
  }
  b.place("features", "features", x);
  x = channel_norm(b, "classifier.0", b.adaptive_avg_pool("avgpool", x));
  return b.finish(b.linear("classifier.2", b.flatten("classifier.1", x), classes), "features");
}

}  // namespace

std::vector<NetEntry> convnexts() {
  NetEntry e = torchvision_entry("convnext-tiny", "ConvNeXt-Tiny for ImageNet, 28.6 million parameters",
                                 "Liu et al., A ConvNet for the 2020s, CVPR 2022", convnext_tiny);
  e.preset = "imagenet-236";
  return {e};
}

}  // namespace assay
