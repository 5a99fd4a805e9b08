// ViT-B/16: Dosovitskiy et al., "An Image is Worth 16x16 Words", ICLR 2021,
// section 3.1, with torchvision's names.
#include <cmath>
#include <string>

#include "nets/families.h"

namespace assay {
namespace {

constexpr double kEpsilon = 1e-6;
constexpr int64_t kPatch = 16, kWidth = 768, kHeads = 12, kLayers = 12, kHidden = 3072;

// softmax(Q K^T / sqrt(d)) V of all heads (Vaswani et al. 2017, eq. 1); the
// names of nn.MultiheadAttention.
int self_attention(GraphBuilder& b, const std::string& name, int x) {
  const int64_t tokens = b.shape(x)[0], head = kWidth / kHeads;
  Attributes in;
  in.channels = 3 * kWidth;
  const int weight = b.declare({name + ".in_proj_weight", {3 * kWidth, kWidth}});
  const int bias = b.declare({name + ".in_proj_bias", {3 * kWidth}});
  const int all = b.op(OpKind::kLinear, name + ".in_proj", {x}, in, {weight, bias});
  const auto heads = [&](const std::string& part, int64_t index) {
    int y = b.slice(name + "." + part, all, 1, index * kWidth, (index + 1) * kWidth);
    y = b.reshape(name + "." + part + ".heads", y, {tokens, kHeads, head});
    return b.permute(name + "." + part + ".by_head", y, {1, 0, 2});
  };
  Attributes scale;
  scale.factor = 1 / std::sqrt(static_cast<double>(head));
  const int query = b.op(OpKind::kAffine, name + ".scaled", {heads("query", 0)}, scale);
  int y = b.matmul(name + ".scores", query, heads("key", 1), /*transpose=*/true);
  y = b.softmax(name + ".attention", y, 2);
  y = b.matmul(name + ".mixed", y, heads("value", 2));
  y = b.reshape(name + ".joined", b.permute(name + ".by_token", y, {1, 0, 2}), {tokens, kWidth});
  return b.linear(name + ".out_proj", y, kWidth);
}

int layer(GraphBuilder& b, const std::string& name, int x) {
  int y = self_attention(b, name + ".self_attention", b.layer_norm(name + ".ln_1", x, kEpsilon));
  x = b.add(name + ".add_1", y, x);
  y = b.linear(name + ".mlp.0", b.layer_norm(name + ".ln_2", x, kEpsilon), kHidden);
  y = b.linear(name + ".mlp.3", b.simple(OpKind::kGelu, name + ".mlp.1", {y}), kWidth);
  x = b.add(name + ".add_2", y, x);
  b.place(name, "block", x);
  return x;
}

Graph vit_b_16(const Shape& input, int64_t classes) {
  GraphBuilder b(input);
  const int token = b.parameter("class_token", {1, kWidth}, {1, 1, kWidth});
  int x = b.conv2d("conv_proj", 0, {.channels = kWidth, .kernel = kPatch, .stride = kPatch, .bias = true});
  const int64_t patches = b.shape(x)[1] * b.shape(x)[2];
  x = b.permute("tokens", b.reshape("patches", x, {kWidth, patches}), {1, 0});
  x = b.concat("cat", {token, x});
  const int place = b.parameter("encoder.pos_embedding", {patches + 1, kWidth}, {1, patches + 1, kWidth});
  x = b.add("embedded", x, place);
  for (int64_t i = 0; i < kLayers; ++i) x = layer(b, "encoder.layers.encoder_layer_" + std::to_string(i), x);
  x = b.layer_norm("encoder.ln", x, kEpsilon);
  x = b.flatten("class", b.slice("first", x, 0, 0, 1));
  return b.finish(b.linear("heads.head", x, classes), "");
}

}  // namespace

std::vector<NetEntry> vits() {
  return {torchvision_entry("vit-b-16", "ViT-B/16 for ImageNet, 86.6 million parameters",
                            "Dosovitskiy et al., An Image is Worth 16x16 Words: Transformers for Image "
                            "Recognition at Scale, ICLR 2021",
                            vit_b_16)};
}

}  // namespace assay
