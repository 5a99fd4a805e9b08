// Inception-v3: Szegedy et al., "Rethinking the Inception Architecture for
// Computer Vision", CVPR 2016, with torchvision's names and weights. The
// auxiliary head is for training alone, so it is not here.
#include <string>

#include "nets/families.h"

namespace assay {
namespace {

using Conv = GraphBuilder::Conv;

Conv conv1x1(int64_t channels) { return {.channels = channels}; }
Conv conv3x3(int64_t channels) { return {.channels = channels, .kernel = 3, .padding = {1, 1, 1, 1}}; }
Conv stride2(int64_t channels) { return {.channels = channels, .kernel = 3, .stride = 2}; }
Conv wide(int64_t channels, int64_t size) {  // 1 x size
  const int64_t side = size / 2;
  return {.channels = channels, .kernel = 1, .padding = {0, side, 0, side}, .kernel_width = size};
}
Conv high(int64_t channels, int64_t size) {  // size x 1
  const int64_t side = size / 2;
  return {.channels = channels, .kernel = size, .padding = {side, 0, side, 0}, .kernel_width = 1};
}

// A block's branches; names are below the block's.
struct Block {
  GraphBuilder& b;
  std::string name;
  int input;
  std::vector<int> branches = {};

  int conv(const std::string& part, int x, const Conv& conv) {
    return basic_conv(b, name + "." + part, x, conv);
  }
  void branch(int value) { branches.push_back(value); }
  void pooled(int64_t channels) {
    branch(conv("branch_pool", b.avg_pool(name + ".avg_pool", input, 3, 1, 1), conv1x1(channels)));
  }
  int finish() {
    const int y = b.concat(name + ".cat", branches);
    b.place(name, "block", y);
    return y;
  }
};

int block_a(GraphBuilder& b, const std::string& name, int x, int64_t pool) {
  Block k{b, name, x};
  k.branch(k.conv("branch1x1", x, conv1x1(64)));
  const Conv five = {.channels = 64, .kernel = 5, .padding = {2, 2, 2, 2}};
  k.branch(k.conv("branch5x5_2", k.conv("branch5x5_1", x, conv1x1(48)), five));
  int y = k.conv("branch3x3dbl_1", x, conv1x1(64));
  y = k.conv("branch3x3dbl_2", y, conv3x3(96));
  k.branch(k.conv("branch3x3dbl_3", y, conv3x3(96)));
  k.pooled(pool);
  return k.finish();
}

int block_b(GraphBuilder& b, const std::string& name, int x) {
  Block k{b, name, x};
  k.branch(k.conv("branch3x3", x, stride2(384)));
  int y = k.conv("branch3x3dbl_1", x, conv1x1(64));
  y = k.conv("branch3x3dbl_2", y, conv3x3(96));
  k.branch(k.conv("branch3x3dbl_3", y, stride2(96)));
  k.branch(b.max_pool(name + ".max_pool", x, 3, 2));
  return k.finish();
}

int block_c(GraphBuilder& b, const std::string& name, int x, int64_t c) {
  Block k{b, name, x};
  k.branch(k.conv("branch1x1", x, conv1x1(192)));
  int y = k.conv("branch7x7_1", x, conv1x1(c));
  y = k.conv("branch7x7_2", y, wide(c, 7));
  k.branch(k.conv("branch7x7_3", y, high(192, 7)));
  y = k.conv("branch7x7dbl_1", x, conv1x1(c));
  y = k.conv("branch7x7dbl_2", y, high(c, 7));
  y = k.conv("branch7x7dbl_3", y, wide(c, 7));
  y = k.conv("branch7x7dbl_4", y, high(c, 7));
  k.branch(k.conv("branch7x7dbl_5", y, wide(192, 7)));
  k.pooled(192);
  return k.finish();
}

int block_d(GraphBuilder& b, const std::string& name, int x) {
  Block k{b, name, x};
  k.branch(k.conv("branch3x3_2", k.conv("branch3x3_1", x, conv1x1(192)), stride2(320)));
  int y = k.conv("branch7x7x3_1", x, conv1x1(192));
  y = k.conv("branch7x7x3_2", y, wide(192, 7));
  y = k.conv("branch7x7x3_3", y, high(192, 7));
  k.branch(k.conv("branch7x7x3_4", y, stride2(192)));
  k.branch(b.max_pool(name + ".max_pool", x, 3, 2));
  return k.finish();
}

int block_e(GraphBuilder& b, const std::string& name, int x) {
  Block k{b, name, x};
  k.branch(k.conv("branch1x1", x, conv1x1(320)));
  int y = k.conv("branch3x3_1", x, conv1x1(384));
  k.branch(k.conv("branch3x3_2a", y, wide(384, 3)));
  k.branch(k.conv("branch3x3_2b", y, high(384, 3)));
  y = k.conv("branch3x3dbl_1", x, conv1x1(448));
  y = k.conv("branch3x3dbl_2", y, conv3x3(384));
  k.branch(k.conv("branch3x3dbl_3a", y, wide(384, 3)));
  k.branch(k.conv("branch3x3dbl_3b", y, high(384, 3)));
  k.pooled(192);
  return k.finish();
}

Graph inception_v3(const Shape& input, int64_t classes) {
  GraphBuilder b(input);
  int x = transform_input(b, 0);
  x = basic_conv(b, "Conv2d_1a_3x3", x, stride2(32));
  x = basic_conv(b, "Conv2d_2a_3x3", x, {.channels = 32, .kernel = 3});
  x = basic_conv(b, "Conv2d_2b_3x3", x, conv3x3(64));
  x = b.max_pool("maxpool1", x, 3, 2);
  x = basic_conv(b, "Conv2d_3b_1x1", x, conv1x1(80));
  x = basic_conv(b, "Conv2d_4a_3x3", x, {.channels = 192, .kernel = 3});
  x = b.max_pool("maxpool2", x, 3, 2);
  x = block_a(b, "Mixed_5b", x, 32);
  x = block_a(b, "Mixed_5c", x, 64);
  x = block_a(b, "Mixed_5d", x, 64);
  x = block_b(b, "Mixed_6a", x);
  x = block_c(b, "Mixed_6b", x, 128);
  x = block_c(b, "Mixed_6c", x, 160);
  x = block_c(b, "Mixed_6d", x, 160);
  x = block_c(b, "Mixed_6e", x, 192);
  x = block_d(b, "Mixed_7a", x);
  x = block_e(b, "Mixed_7b", x);
  x = block_e(b, "Mixed_7c", x);
  x = b.dropout("dropout", b.adaptive_avg_pool("avgpool", x), .5);
  return b.finish(b.linear("fc", b.flatten("flatten", x), classes), "Mixed_7c");
}

}  // namespace

std::vector<NetEntry> inceptions() {
  NetEntry e = torchvision_entry(
      "inception-v3", "Inception-v3 for ImageNet at 299 pixels, 23.8 million parameters",
      "Szegedy et al., Rethinking the Inception Architecture for Computer Vision, CVPR 2016", inception_v3);
  e.input = {3, 299, 299};
  e.preset = "imagenet-299";
  return {e};
}

}  // namespace assay
