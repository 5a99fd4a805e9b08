#include "nets/gain.h"

#include <string>

#include "api/error.h"

namespace assay {
namespace {

constexpr int kBlocks = 4;

// "net.3" and so on: the places of the modules in the published files.
class Layers {
 public:
  explicit Layers(const Shape& input) : builder_(input) {}

  GraphBuilder& builder() { return builder_; }
  std::string next() { return "net." + std::to_string(count_++); }

  // Convolution, batch norm and ReLU: three places, or three within one.
  int normed(int x, int64_t channels, int64_t kernel, int64_t stride) {
    return activated(builder_.conv2d(next(), x, convolution(channels, kernel, stride)));
  }
  int block(int x) {
    const std::string name = next();
    const int64_t channels = builder_.shape(x)[0];
    int y = x;
    for (int i = 0; i < 6; i += 3) {
      y = builder_.conv2d(inner(name, i), y, convolution(channels, 3, 1));
      y = builder_.relu(inner(name, i + 2), builder_.batch_norm(inner(name, i + 1), y));
    }
    return builder_.add(name, y, x);
  }
  // Twice as large, to the size of rows that a stride of 2 left as they are.
  int up(int x, int64_t channels, const Shape& to) {
    Attributes a;
    a.channels = channels;
    a.kernel = {3, 3};
    a.stride = {2, 2};
    a.padding = {1, 1, 1, 1};
    a.output_padding = {1 - to[1] % 2, 1 - to[2] % 2};
    return activated(builder_.op(OpKind::kConvTranspose2d, next(), {x}, a));
  }
  int end(int x, int64_t outputs, OpKind last) {
    x = builder_.conv2d(next(), x, convolution(outputs, 7, 1));
    return builder_.simple(last, next(), {x});
  }

 private:
  static GraphBuilder::Conv convolution(int64_t channels, int64_t kernel, int64_t stride) {
    const int64_t p = kernel / 2;
    return {.channels = channels, .kernel = kernel, .stride = stride, .padding = {p, p, p, p}, .bias = true};
  }
  static std::string inner(const std::string& block, int i) { return block + ".conv." + std::to_string(i); }
  int activated(int x) {
    x = builder_.batch_norm(next(), x);
    return builder_.relu(next(), x);
  }

  GraphBuilder builder_;
  int count_ = 0;
};

}  // namespace

Graph gain_graph(const Shape& input, int64_t outputs, int64_t width, OpKind last) {
  if (input.size() != 3) throw invalid("gain: inputs of ", input.size(), " axes: want images [C,H,W]");
  if (width < 1 || width > 4096) throw invalid("width ", width, ": want 1..4096");
  Layers layers(input);
  int x = layers.normed(0, width, 7, 1);
  x = layers.normed(x, 2 * width, 3, 2);
  for (int i = 0; i < kBlocks; ++i) x = layers.block(x);
  x = layers.up(x, width, input);
  x = layers.end(x, outputs, last);
  return layers.builder().finish(layers.builder().flatten("flat", x), "");
}

}  // namespace assay
