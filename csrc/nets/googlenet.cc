// GoogLeNet: Szegedy et al., "Going Deeper with Convolutions", CVPR 2015, table
// 1, with torchvision's names and weights. As there, the "5x5" branch has a 3x3
// convolution, batch norm follows every convolution, and the two auxiliary heads
// are for training alone, so they are not here.
#include <string>

#include "nets/families.h"

namespace assay {
namespace {

struct Block {
  const char* name;
  int64_t one, three_in, three, five_in, five, pool;
  bool pool_before;  // a max-pool comes first: maxpool3, maxpool4
};

constexpr Block kBlocks[] = {
    {"3a", 64, 96, 128, 16, 32, 32, false},     {"3b", 128, 128, 192, 32, 96, 64, false},
    {"4a", 192, 96, 208, 16, 48, 64, true},     {"4b", 160, 112, 224, 24, 64, 64, false},
    {"4c", 128, 128, 256, 24, 64, 64, false},   {"4d", 112, 144, 288, 32, 64, 64, false},
    {"4e", 256, 160, 320, 32, 128, 128, false}, {"5a", 256, 160, 320, 32, 128, 128, true},
    {"5b", 384, 192, 384, 48, 128, 128, false},
};

int inception(GraphBuilder& b, const std::string& name, int x, const Block& block) {
  const int one = basic_conv(b, name + ".branch1", x, {.channels = block.one});
  int three = basic_conv(b, name + ".branch2.0", x, {.channels = block.three_in});
  three = basic_conv(b, name + ".branch2.1", three,
                     {.channels = block.three, .kernel = 3, .padding = {1, 1, 1, 1}});
  int five = basic_conv(b, name + ".branch3.0", x, {.channels = block.five_in});
  five = basic_conv(b, name + ".branch3.1", five,
                    {.channels = block.five, .kernel = 3, .padding = {1, 1, 1, 1}});
  int pool = b.max_pool(name + ".branch4.0", x, 3, 1, 1, /*ceil=*/true);
  pool = basic_conv(b, name + ".branch4.1", pool, {.channels = block.pool});
  const int y = b.concat(name + ".cat", {one, three, five, pool});
  b.place(name, "block", y);
  return y;
}

Graph googlenet(const Shape& input, int64_t classes) {
  GraphBuilder b(input);
  int x = transform_input(b, 0);
  x = basic_conv(b, "conv1", x, {.channels = 64, .kernel = 7, .stride = 2, .padding = {3, 3, 3, 3}});
  x = b.max_pool("maxpool1", x, 3, 2, 0, /*ceil=*/true);
  x = basic_conv(b, "conv2", x, {.channels = 64});
  x = basic_conv(b, "conv3", x, {.channels = 192, .kernel = 3, .padding = {1, 1, 1, 1}});
  x = b.max_pool("maxpool2", x, 3, 2, 0, /*ceil=*/true);
  for (const Block& block : kBlocks) {
    const std::string stage(1, block.name[0]);
    if (block.pool_before) {
      x = stage == "4" ? b.max_pool("maxpool3", x, 3, 2, 0, /*ceil=*/true)
                       : b.max_pool("maxpool4", x, 2, 2, 0, /*ceil=*/true);
    }
    x = inception(b, std::string("inception") + block.name, x, block);
  }
  x = b.flatten("flatten", b.adaptive_avg_pool("avgpool", x));
  x = b.dropout("dropout", x, .2);
  return b.finish(b.linear("fc", x, classes), "inception5b");
}

}  // namespace

std::vector<NetEntry> googlenets() {
  return {torchvision_entry("googlenet", "GoogLeNet for ImageNet, 6.6 million parameters",
                            "Szegedy et al., Going Deeper with Convolutions, CVPR 2015", googlenet)};
}

}  // namespace assay
