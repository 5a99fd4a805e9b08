// The table of ops.
#include "graph/ops.h"

#include <array>
#include <string>

#include "api/error.h"

namespace assay {
namespace {

using Tensors = std::vector<at::Tensor>;
using Shapes = std::vector<Shape>;

std::string text(const Shape& shape) { return concat("[", c10::Join(",", shape), "]"); }

void want_image(const Op& op, const Shape& shape) {
  if (shape.size() != 3) throw invalid(op.name, ": rows of shape ", text(shape), ": want [C,H,W]");
}

// Size after a window of the op has gone over the padded input.
Shape windowed(const Op& op, const Shape& in, int64_t channels) {
  want_image(op, in);
  const Attributes& a = op.attributes;
  Shape out = {channels};
  for (size_t axis = 0; axis < 2; ++axis) {
    const int64_t padded = in[axis + 1] + a.padding[axis] + a.padding[axis + 2];
    const int64_t extent = a.dilation[axis] * (a.kernel[axis] - 1) + 1;
    if (padded < extent) {
      throw invalid(op.name, ": a window of ", extent, " does not fit into rows of ", text(in));
    }
    out.push_back((padded - extent) / a.stride[axis] + 1);
  }
  return out;
}

Shape same_shape(const Op&, const Shapes& in) { return in[0]; }

// ---- conv2d

Shape conv2d_shape(const Op& op, const Shapes& in) { return windowed(op, in[0], op.attributes.output[0]); }

at::Tensor conv2d(const Op& op, const Tensors& in, const Tensors& p) {
  const Attributes& a = op.attributes;
  at::Tensor x = in[0];
  std::array<int64_t, 2> padding = {a.padding[0], a.padding[1]};
  if (a.padding[2] != padding[0] || a.padding[3] != padding[1]) {
    x = at::constant_pad_nd(x, {a.padding[1], a.padding[3], a.padding[0], a.padding[2]});
    padding = {0, 0};
  }
  return at::conv2d(x, p[0], p.size() > 1 ? p[1] : at::Tensor(), a.stride, padding, a.dilation, a.groups);
}

// ---- batch norm (inference: with the running statistics)

at::Tensor batch_norm(const Op& op, const Tensors& in, const Tensors& p) {
  return at::batch_norm(in[0], p[0], p[1], p[2], p[3], /*training=*/false, /*momentum=*/0.,
                        op.attributes.epsilon, /*cudnn_enabled=*/true);
}

// ---- activations

at::Tensor relu(const Op&, const Tensors& in, const Tensors&) { return at::relu(in[0]); }
at::Tensor relu6(const Op&, const Tensors& in, const Tensors&) { return at::hardtanh(in[0], 0, 6); }
at::Tensor dropout(const Op&, const Tensors& in, const Tensors&) { return in[0]; }

// ---- pooling

Shape pool_shape(const Op& op, const Shapes& in) {
  want_image(op, in[0]);
  return windowed(op, in[0], in[0][0]);
}

at::Tensor max_pool(const Op& op, const Tensors& in, const Tensors&) {
  const Attributes& a = op.attributes;
  return at::max_pool2d(in[0], a.kernel, a.stride, {a.padding[0], a.padding[1]}, a.dilation);
}

at::Tensor avg_pool(const Op& op, const Tensors& in, const Tensors&) {
  const Attributes& a = op.attributes;
  return at::avg_pool2d(in[0], a.kernel, a.stride);
}

Shape adaptive_avg_pool_shape(const Op& op, const Shapes& in) {
  want_image(op, in[0]);
  return {in[0][0], op.attributes.output[0], op.attributes.output[1]};
}

at::Tensor adaptive_avg_pool(const Op& op, const Tensors& in, const Tensors&) {
  return at::adaptive_avg_pool2d(in[0], op.attributes.output);
}

// ---- the rest

Shape flatten_shape(const Op&, const Shapes& in) {
  int64_t elements = 1;
  for (int64_t size : in[0]) elements *= size;
  return {elements};
}

at::Tensor flatten(const Op&, const Tensors& in, const Tensors&) { return at::flatten(in[0], 1); }

Shape linear_shape(const Op& op, const Shapes& in) {
  if (in[0].size() != 1) throw invalid(op.name, ": rows of shape ", text(in[0]), ": want [F]");
  return {op.attributes.output[0]};
}

at::Tensor linear(const Op&, const Tensors& in, const Tensors& p) {
  return at::linear(in[0], p[0], p.size() > 1 ? p[1] : at::Tensor());
}

Shape add_shape(const Op& op, const Shapes& in) {
  if (in[0] != in[1]) throw invalid(op.name, ": ", text(in[0]), " + ", text(in[1]), ": want equal shapes");
  return in[0];
}

at::Tensor add(const Op&, const Tensors& in, const Tensors&) { return at::add(in[0], in[1]); }

Shape shortcut_a_shape(const Op& op, const Shapes& in) {
  want_image(op, in[0]);
  const auto& channels = op.attributes.channel_padding;
  return {channels[0] + in[0][0] + channels[1], (in[0][1] + 1) / 2, (in[0][2] + 1) / 2};
}

at::Tensor shortcut_a(const Op& op, const Tensors& in, const Tensors&) {
  const auto& channels = op.attributes.channel_padding;
  const at::Tensor every_second = in[0].slice(2, 0, std::nullopt, 2).slice(3, 0, std::nullopt, 2);
  return at::constant_pad_nd(every_second, {0, 0, 0, 0, channels[0], channels[1]});
}

}  // namespace

const OpDefinition& op_definition(OpKind kind) {
  static const std::array<OpDefinition, 12> table = {{
      {OpKind::kConv2d, "conv2d", "convolution: kernel, stride, padding, dilation, groups", 1, conv2d_shape,
       conv2d},
      {OpKind::kBatchNorm, "batch_norm", "normalisation by running statistics: epsilon", 1, same_shape,
       batch_norm},
      {OpKind::kRelu, "relu", "max(x, 0)", 1, same_shape, relu},
      {OpKind::kRelu6, "relu6", "min(max(x, 0), 6)", 1, same_shape, relu6},
      {OpKind::kMaxPool, "max_pool", "maximum of a window: kernel, stride, padding", 1, pool_shape, max_pool},
      {OpKind::kAvgPool, "avg_pool", "mean of a window: kernel, stride", 1, pool_shape, avg_pool},
      {OpKind::kAdaptiveAvgPool, "adaptive_avg_pool", "mean over a grid of cells: output", 1,
       adaptive_avg_pool_shape, adaptive_avg_pool},
      {OpKind::kFlatten, "flatten", "[C,H,W] as [C*H*W]", 1, flatten_shape, flatten},
      {OpKind::kLinear, "linear", "matrix product and bias", 1, linear_shape, linear},
      {OpKind::kAdd, "add", "x + y", 2, add_shape, add},
      {OpKind::kShortcutA, "shortcut_a", "every second pixel, zero channels around: channel_padding", 1,
       shortcut_a_shape, shortcut_a},
      {OpKind::kDropout, "dropout", "identity in inference: probability", 1, same_shape, dropout},
  }};
  const OpDefinition& definition = table.at(static_cast<size_t>(kind));
  TORCH_INTERNAL_ASSERT(definition.kind == kind, "the table of ops is out of order");
  return definition;
}

}  // namespace assay
