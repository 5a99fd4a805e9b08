// The table of ops. The parts: shapes, then parameters, then forwards, a kind
// after the other.
#include "graph/ops.h"

#include <c10/util/accumulate.h>

#include <algorithm>
#include <string>

#include "api/error.h"

namespace assay {
namespace {

using Tensors = std::vector<at::Tensor>;
using Shapes = std::vector<Shape>;
using Parameters = std::vector<ParameterInfo>;

std::string text(const Shape& shape) { return concat("[", c10::Join(",", shape), "]"); }

void want_image(const Op& op, const Shape& shape) {
  if (shape.size() != 3) throw invalid(op.name, ": rows of shape ", text(shape), ": want [C,H,W]");
}

template <typename Array>
void want_at_least(const Op& op, const char* what, const Array& values, int64_t least) {
  for (int64_t value : values) {
    // So much that no product of two of them overflows.
    if (value < least || value > (int64_t{1} << 30)) {
      throw invalid(op.name, ": ", what, " ", value, ": want ", least, " or more");
    }
  }
}

size_t axis_of(const Op& op, int64_t axis, const Shape& shape) {
  if (axis < 0 || axis >= static_cast<int64_t>(shape.size())) {
    throw invalid(op.name, ": axis ", axis, " of rows of shape ", text(shape));
  }
  return static_cast<size_t>(axis);
}

Shape same_shape(const Op&, const Shapes& in) { return in[0]; }

// ---- convolutions

void want_window(const Op& op) {
  const Attributes& a = op.attributes;
  want_at_least(op, "kernel", a.kernel, 1);
  want_at_least(op, "stride", a.stride, 1);
  want_at_least(op, "padding", a.padding, 0);
  want_at_least(op, "dilation", a.dilation, 1);
}

// Size after a window of the op has gone over the padded input.
Shape windowed(const Op& op, const Shape& in, int64_t channels) {
  want_image(op, in);
  want_window(op);
  const Attributes& a = op.attributes;
  Shape out = {channels};
  for (size_t axis = 0; axis < 2; ++axis) {
    out.push_back(window_positions(a, axis, in[axis + 1]));
    if (out.back() < 1) {
      const int64_t extent = a.dilation[axis] * (a.kernel[axis] - 1) + 1;
      throw invalid(op.name, ": a window of ", extent, " does not fit into rows of ", text(in));
    }
  }
  return out;
}

void want_groups(const Op& op, int64_t in, int64_t out) {
  const int64_t groups = op.attributes.groups;
  if (groups < 1 || out < 1 || in % groups != 0 || out % groups != 0) {
    throw invalid(op.name, ": ", in, " to ", out, " channels in ", groups, " groups");
  }
}

Shape conv2d_shape(const Op& op, const Shapes& in) {
  const Shape out = windowed(op, in[0], op.attributes.channels);
  want_groups(op, in[0][0], op.attributes.channels);
  return out;
}

Parameters conv2d_parameters(const Op& op, const Shapes& in) {
  const Attributes& a = op.attributes;
  want_image(op, in[0]);
  want_groups(op, in[0][0], a.channels);
  Parameters all = {{".weight", {a.channels, in[0][0] / a.groups, a.kernel[0], a.kernel[1]}}};
  if (a.bias) all.push_back({".bias", {a.channels}});
  return all;
}

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

Shape conv_transpose2d_shape(const Op& op, const Shapes& in) {
  const Attributes& a = op.attributes;
  want_image(op, in[0]);
  want_window(op);
  want_at_least(op, "output padding", a.output_padding, 0);
  want_groups(op, in[0][0], a.channels);
  if (a.padding[0] != a.padding[2] || a.padding[1] != a.padding[3]) {
    throw invalid(op.name, ": a transposed convolution pads both sides alike");
  }
  Shape out = {a.channels};
  for (size_t axis = 0; axis < 2; ++axis) {
    if (a.output_padding[axis] >= std::max(a.stride[axis], a.dilation[axis])) {
      throw invalid(op.name, ": output padding ", a.output_padding[axis], ": want less than the stride");
    }
    const int64_t size = (in[0][axis + 1] - 1) * a.stride[axis] - 2 * a.padding[axis] +
                         a.dilation[axis] * (a.kernel[axis] - 1) + a.output_padding[axis] + 1;
    if (size < 1) throw invalid(op.name, ": nothing is left of rows of ", text(in[0]));
    out.push_back(size);
  }
  return out;
}

Parameters conv_transpose2d_parameters(const Op& op, const Shapes& in) {
  const Attributes& a = op.attributes;
  want_image(op, in[0]);
  want_groups(op, in[0][0], a.channels);
  Parameters all = {{".weight", {in[0][0], a.channels / a.groups, a.kernel[0], a.kernel[1]}}};
  if (a.bias) all.push_back({".bias", {a.channels}});
  return all;
}

at::Tensor conv_transpose2d(const Op& op, const Tensors& in, const Tensors& p) {
  const Attributes& a = op.attributes;
  const std::array<int64_t, 2> padding = {a.padding[0], a.padding[1]};
  return at::conv_transpose2d(in[0], p[0], p.size() > 1 ? p[1] : at::Tensor(), a.stride, padding,
                              a.output_padding, a.groups, a.dilation);
}

// ---- products

Shape linear_shape(const Op& op, const Shapes& in) {
  if (in[0].empty()) throw invalid(op.name, ": rows without an axis: want [...,F]");
  if (op.attributes.channels < 1) throw invalid(op.name, ": ", op.attributes.channels, " outputs");
  Shape out = in[0];
  out.back() = op.attributes.channels;
  return out;
}

Parameters linear_parameters(const Op& op, const Shapes& in) {
  // Rows of images come here only by mistake: say so before a name of a weight.
  if (in[0].empty()) throw invalid(op.name, ": rows without an axis: want [...,F]");
  Parameters all = {{".weight", {op.attributes.channels, in[0].back()}}};
  if (op.attributes.bias) all.push_back({".bias", {op.attributes.channels}});
  return all;
}

at::Tensor linear(const Op&, const Tensors& in, const Tensors& p) {
  return at::linear(in[0], p[0], p.size() > 1 ? p[1] : at::Tensor());
}

// [...,M,K] by [...,K,N] (transpose: by [...,N,K]).
Shape matmul_shape(const Op& op, const Shapes& in) {
  const Shape &x = in[0], &y = in[1];
  const bool t = op.attributes.transpose;
  const auto fits = [&] {
    if (x.size() < 2 || x.size() != y.size()) return false;
    if (!std::equal(x.begin(), x.end() - 2, y.begin())) return false;
    return x[x.size() - 1] == y[y.size() - (t ? 1 : 2)];
  };
  if (!fits()) throw invalid(op.name, ": ", text(x), " by ", text(y), t ? " transposed" : "");
  Shape out = x;
  out.back() = y[y.size() - (t ? 2 : 1)];
  return out;
}

at::Tensor matmul(const Op& op, const Tensors& in, const Tensors&) {
  return at::matmul(in[0], op.attributes.transpose ? in[1].transpose(-2, -1) : in[1]);
}

// ---- norms (batch norm: with the running statistics)

Parameters batch_norm_parameters(const Op& op, const Shapes& in) {
  if (in[0].empty()) throw invalid(op.name, ": rows without channels");
  const int64_t channels = in[0][0];
  return {{".weight", {channels}},
          {".bias", {channels}},
          {".running_mean", {channels}, /*buffer=*/true},
          {".running_var", {channels}, /*buffer=*/true},
          {".num_batches_tracked", {}, /*buffer=*/true, /*optional=*/true}};
}

at::Tensor batch_norm(const Op& op, const Tensors& in, const Tensors& p) {
  return at::batch_norm(in[0], p[0], p[1], p[2], p[3], /*training=*/false, /*momentum=*/0.,
                        op.attributes.epsilon, /*cudnn_enabled=*/true);
}

Shape last_axes(const Op& op, const Shape& in) {
  const int64_t dimensions = op.attributes.dimensions;
  if (dimensions < 1 || dimensions > static_cast<int64_t>(in.size())) {
    throw invalid(op.name, ": the last ", dimensions, " axes of rows of ", text(in));
  }
  return {in.end() - dimensions, in.end()};
}

Shape layer_norm_shape(const Op& op, const Shapes& in) {
  last_axes(op, in[0]);
  return in[0];
}

Parameters layer_norm_parameters(const Op& op, const Shapes& in) {
  const Shape shape = last_axes(op, in[0]);
  return {{".weight", shape}, {".bias", shape}};
}

at::Tensor layer_norm(const Op& op, const Tensors& in, const Tensors& p) {
  return at::layer_norm(in[0], p[0].sizes(), p[0], p[1], op.attributes.epsilon);
}

Shape group_norm_shape(const Op& op, const Shapes& in) {
  if (in[0].empty()) throw invalid(op.name, ": rows without channels");
  want_groups(op, in[0][0], in[0][0]);
  return in[0];
}

Parameters group_norm_parameters(const Op& op, const Shapes& in) {
  group_norm_shape(op, in);
  return {{".weight", {in[0][0]}}, {".bias", {in[0][0]}}};
}

at::Tensor group_norm(const Op& op, const Tensors& in, const Tensors& p) {
  return at::group_norm(in[0], op.attributes.groups, p[0], p[1], op.attributes.epsilon);
}

// ---- activations

at::Tensor relu(const Op&, const Tensors& in, const Tensors&) { return at::relu(in[0]); }
at::Tensor relu6(const Op&, const Tensors& in, const Tensors&) { return at::hardtanh(in[0], 0, 6); }
at::Tensor leaky_relu(const Op& op, const Tensors& in, const Tensors&) {
  return at::leaky_relu(in[0], op.attributes.slope);
}
at::Tensor elu(const Op& op, const Tensors& in, const Tensors&) {
  return at::elu(in[0], op.attributes.slope);
}
at::Tensor gelu(const Op& op, const Tensors& in, const Tensors&) {
  return at::gelu(in[0], op.attributes.approximate ? "tanh" : "none");
}
at::Tensor silu(const Op&, const Tensors& in, const Tensors&) { return at::silu(in[0]); }
at::Tensor sigmoid(const Op&, const Tensors& in, const Tensors&) { return at::sigmoid(in[0]); }
at::Tensor tanh(const Op&, const Tensors& in, const Tensors&) { return at::tanh(in[0]); }
at::Tensor hardswish(const Op&, const Tensors& in, const Tensors&) { return at::hardswish(in[0]); }
at::Tensor hardsigmoid(const Op&, const Tensors& in, const Tensors&) { return at::hardsigmoid(in[0]); }
at::Tensor dropout(const Op&, const Tensors& in, const Tensors&) { return in[0]; }

Shape softmax_shape(const Op& op, const Shapes& in) {
  axis_of(op, op.attributes.axis, in[0]);
  return in[0];
}

at::Tensor softmax(const Op& op, const Tensors& in, const Tensors&) {
  return at::softmax(in[0], op.attributes.axis + 1);
}

// ---- pooling

Shape pool_shape(const Op& op, const Shapes& in) {
  want_image(op, in[0]);
  const Attributes& a = op.attributes;
  for (size_t axis = 0; axis < 2; ++axis) {
    if (a.padding[axis] != a.padding[axis + 2] || 2 * a.padding[axis] > a.kernel[axis]) {
      throw invalid(op.name, ": pooling pads both sides alike, by half the window or less");
    }
  }
  return windowed(op, in[0], in[0][0]);
}

at::Tensor max_pool(const Op& op, const Tensors& in, const Tensors&) {
  const Attributes& a = op.attributes;
  return at::max_pool2d(in[0], a.kernel, a.stride, {a.padding[0], a.padding[1]}, a.dilation, a.ceil);
}

at::Tensor avg_pool(const Op& op, const Tensors& in, const Tensors&) {
  const Attributes& a = op.attributes;
  return at::avg_pool2d(in[0], a.kernel, a.stride, {a.padding[0], a.padding[1]}, a.ceil, a.count_padding);
}

Shape adaptive_pool_shape(const Op& op, const Shapes& in) {
  want_image(op, in[0]);
  want_at_least(op, "output", op.attributes.output, 1);
  return {in[0][0], op.attributes.output[0], op.attributes.output[1]};
}

at::Tensor adaptive_avg_pool(const Op& op, const Tensors& in, const Tensors&) {
  return at::adaptive_avg_pool2d(in[0], op.attributes.output);
}

at::Tensor adaptive_max_pool(const Op& op, const Tensors& in, const Tensors&) {
  return std::get<0>(at::adaptive_max_pool2d(in[0], op.attributes.output));
}

Shape mean_shape(const Op& op, const Shapes& in) {
  const Attributes& a = op.attributes;
  std::vector<bool> gone(in[0].size(), false);
  for (int64_t axis : a.axes) {
    const size_t at = axis_of(op, axis, in[0]);
    if (gone[at]) throw invalid(op.name, ": axis ", axis, " comes twice");
    gone[at] = true;
  }
  if (a.axes.empty()) throw invalid(op.name, ": no axes");
  Shape out;
  for (size_t i = 0; i < in[0].size(); ++i) {
    if (!gone[i]) out.push_back(in[0][i]);
    if (gone[i] && a.keep) out.push_back(1);
  }
  return out;
}

at::Tensor mean(const Op& op, const Tensors& in, const Tensors&) {
  std::vector<int64_t> axes = op.attributes.axes;
  for (int64_t& axis : axes) ++axis;
  return at::mean(in[0], axes, op.attributes.keep);
}

at::Tensor upsample(const Op& op, const Tensors& in, const Tensors&) {
  const Attributes& a = op.attributes;
  if (a.bilinear) return at::upsample_bilinear2d(in[0], a.output, a.align_corners);
  return at::upsample_nearest2d(in[0], a.output);
}

// ---- two values: shapes of equal rank, with sizes of 1 spread

Shape broadcast_shape(const Op& op, const Shapes& in) {
  const auto mistake = [&] {
    return invalid(op.name, ": ", text(in[0]), " and ", text(in[1]), ": want equal shapes, or sizes of 1");
  };
  if (in[0].size() != in[1].size()) throw mistake();
  Shape out = in[0];
  for (size_t i = 0; i < out.size(); ++i) {
    if (out[i] == 1) out[i] = in[1][i];
    if (in[1][i] != 1 && in[1][i] != out[i]) throw mistake();
  }
  return out;
}

at::Tensor add(const Op&, const Tensors& in, const Tensors&) { return at::add(in[0], in[1]); }
at::Tensor sub(const Op&, const Tensors& in, const Tensors&) { return at::sub(in[0], in[1]); }
at::Tensor mul(const Op&, const Tensors& in, const Tensors&) { return at::mul(in[0], in[1]); }
at::Tensor div(const Op&, const Tensors& in, const Tensors&) { return at::div(in[0], in[1]); }

at::Tensor affine(const Op& op, const Tensors& in, const Tensors&) {
  return at::add(at::mul(in[0], op.attributes.factor), op.attributes.shift);
}

Shape channel_affine_shape(const Op& op, const Shapes& in) {
  const Attributes& a = op.attributes;
  const auto channels = in[0].empty() ? size_t{0} : static_cast<size_t>(in[0][0]);
  if (a.factors.size() != channels || a.shifts.size() != channels) {
    throw invalid(op.name, ": ", a.factors.size(), " factors and ", a.shifts.size(), " shifts for rows of ",
                  text(in[0]));
  }
  return in[0];
}

at::Tensor channel_affine(const Op& op, const Tensors& in, const Tensors&) {
  std::vector<int64_t> shape(static_cast<size_t>(in[0].dim()), 1);
  shape[1] = in[0].size(1);
  const auto constant = [&](const std::vector<double>& values) {
    return at::tensor(values, at::kDouble).view(shape).to(in[0].device(), in[0].scalar_type());
  };
  return at::add(at::mul(in[0], constant(op.attributes.factors)), constant(op.attributes.shifts));
}

// ---- parameters as values

Shape parameter_shape(const Op& op, const Shapes&) {
  want_at_least(op, "size", op.attributes.shape, 1);
  return op.attributes.shape;
}

Parameters parameter_parameters(const Op& op, const Shapes&) { return {{"", op.attributes.shape}}; }

at::Tensor parameter(const Op& op, const Tensors&, const Tensors& p) {
  Shape shape = op.attributes.shape;
  shape.insert(shape.begin(), 1);
  return p[0].reshape(shape);
}

// ---- moving values

Shape concat_shape(const Op& op, const Shapes& in) {
  const size_t axis = axis_of(op, op.attributes.axis, in[0]);
  Shape out = in[0];
  for (size_t i = 1; i < in.size(); ++i) {
    Shape other = in[i];
    if (other.size() == out.size()) other[axis] = out[axis];
    if (other != out) throw invalid(op.name, ": ", text(in[0]), " and ", text(in[i]), " do not fit together");
    out[axis] += in[i][axis];
  }
  return out;
}

at::Tensor concat_values(const Op& op, const Tensors& in, const Tensors&) {
  int64_t rows = 1;
  for (const at::Tensor& x : in) rows = std::max(rows, x.size(0));
  Tensors parts;
  for (const at::Tensor& x : in) {
    std::vector<int64_t> shape = x.sizes().vec();
    shape[0] = rows;
    parts.push_back(x.expand(shape));
  }
  return at::cat(parts, op.attributes.axis + 1);
}

Shape flatten_shape(const Op&, const Shapes& in) { return {c10::multiply_integers(in[0])}; }

at::Tensor flatten(const Op&, const Tensors& in, const Tensors&) { return at::flatten(in[0], 1); }

Shape reshape_shape(const Op& op, const Shapes& in) {
  want_at_least(op, "size", op.attributes.shape, 1);
  if (c10::multiply_integers(in[0]) != c10::multiply_integers(op.attributes.shape)) {
    throw invalid(op.name, ": ", text(in[0]), " as ", text(op.attributes.shape));
  }
  return op.attributes.shape;
}

at::Tensor reshape(const Op& op, const Tensors& in, const Tensors&) {
  Shape shape = op.attributes.shape;
  shape.insert(shape.begin(), in[0].size(0));
  return in[0].reshape(shape);
}

Shape permute_shape(const Op& op, const Shapes& in) {
  const auto& axes = op.attributes.axes;
  std::vector<bool> seen(in[0].size(), false);
  Shape out;
  for (int64_t axis : axes) {
    const size_t at = axis_of(op, axis, in[0]);
    if (seen[at]) throw invalid(op.name, ": axis ", axis, " comes twice");
    seen[at] = true;
    out.push_back(in[0][at]);
  }
  if (axes.size() != in[0].size())
    throw invalid(op.name, ": ", axes.size(), " axes for rows of ", text(in[0]));
  return out;
}

at::Tensor permute(const Op& op, const Tensors& in, const Tensors&) {
  std::vector<int64_t> axes = {0};
  for (int64_t axis : op.attributes.axes) axes.push_back(axis + 1);
  return in[0].permute(axes);
}

Shape slice_shape(const Op& op, const Shapes& in) {
  const Attributes& a = op.attributes;
  const size_t axis = axis_of(op, a.axis, in[0]);
  if (a.begin < 0 || a.end <= a.begin || a.end > in[0][axis] || a.step < 1) {
    throw invalid(op.name, ": ", a.begin, " to ", a.end, " by ", a.step, " of axis ", a.axis, " of rows of ",
                  text(in[0]));
  }
  Shape out = in[0];
  out[axis] = (a.end - a.begin + a.step - 1) / a.step;
  return out;
}

at::Tensor slice(const Op& op, const Tensors& in, const Tensors&) {
  const Attributes& a = op.attributes;
  return in[0].slice(a.axis + 1, a.begin, a.end, a.step);
}

Shape pad_shape(const Op& op, const Shapes& in) {
  want_image(op, in[0]);
  const auto& p = op.attributes.padding;
  want_at_least(op, "padding", p, 0);
  return {in[0][0], in[0][1] + p[0] + p[2], in[0][2] + p[1] + p[3]};
}

at::Tensor pad(const Op& op, const Tensors& in, const Tensors&) {
  const auto& p = op.attributes.padding;
  return at::constant_pad_nd(in[0], {p[1], p[3], p[0], p[2]});
}

Shape shortcut_a_shape(const Op& op, const Shapes& in) {
  want_image(op, in[0]);
  const auto& channels = op.attributes.channel_padding;
  want_at_least(op, "channel padding", channels, 0);
  return {channels[0] + in[0][0] + channels[1], (in[0][1] + 1) / 2, (in[0][2] + 1) / 2};
}

at::Tensor shortcut_a(const Op& op, const Tensors& in, const Tensors&) {
  const auto& channels = op.attributes.channel_padding;
  const at::Tensor every_second = in[0].slice(2, 0, std::nullopt, 2).slice(3, 0, std::nullopt, 2);
  return at::constant_pad_nd(every_second, {0, 0, 0, 0, channels[0], channels[1]});
}

// ---- the table

OpDefinition entry(OpKind kind, const char* name, const char* summary, size_t inputs,
                   std::vector<std::string> attributes, decltype(OpDefinition::shape) shape,
                   decltype(OpDefinition::parameters) parameters, decltype(OpDefinition::forward) forward) {
  return {.kind = kind,
          .name = name,
          .summary = summary,
          .inputs = inputs,
          .attributes = std::move(attributes),
          .shape = shape,
          .parameters = parameters,
          .forward = forward};
}

OpDefinition activation(OpKind kind, const char* name, const char* summary,
                        std::vector<std::string> attributes, decltype(OpDefinition::forward) forward,
                        bool transcendental = true) {
  OpDefinition d = entry(kind, name, summary, 1, std::move(attributes), same_shape, nullptr, forward);
  d.activation = true;
  d.transcendental = transcendental;
  return d;
}

OpDefinition view(OpDefinition definition) {
  definition.view = true;
  return definition;
}

std::vector<OpDefinition> definitions() {
  using K = OpKind;
  return {
      entry(K::kConv2d, "conv2d", "convolution", 1,
            {"channels", "bias", "kernel", "stride", "padding", "dilation", "groups"}, conv2d_shape,
            conv2d_parameters, conv2d),
      entry(K::kConvTranspose2d, "conv_transpose2d", "transposed convolution", 1,
            {"channels", "bias", "kernel", "stride", "padding", "dilation", "output_padding", "groups"},
            conv_transpose2d_shape, conv_transpose2d_parameters, conv_transpose2d),
      entry(K::kLinear, "linear", "matrix product and bias along the last axis", 1, {"channels", "bias"},
            linear_shape, linear_parameters, linear),
      entry(K::kMatmul, "matmul", "products of the matrices in the last two axes", 2, {"transpose"},
            matmul_shape, nullptr, matmul),
      entry(K::kBatchNorm, "batch_norm", "normalisation by running statistics", 1, {"epsilon", "momentum"},
            same_shape, batch_norm_parameters, batch_norm),
      entry(K::kLayerNorm, "layer_norm", "normalisation over the last axes of each row", 1,
            {"epsilon", "dimensions"}, layer_norm_shape, layer_norm_parameters, layer_norm),
      entry(K::kGroupNorm, "group_norm", "normalisation over groups of channels of each row", 1,
            {"epsilon", "groups"}, group_norm_shape, group_norm_parameters, group_norm),
      activation(K::kRelu, "relu", "max(x, 0)", {}, relu, false),
      activation(K::kRelu6, "relu6", "min(max(x, 0), 6)", {}, relu6, false),
      activation(K::kLeakyRelu, "leaky_relu", "x, or slope x below 0", {"slope"}, leaky_relu, false),
      activation(K::kElu, "elu", "x, or slope (exp(x) - 1) below 0", {"slope"}, elu),
      activation(K::kGelu, "gelu", "x times the normal distribution function of x", {"approximate"}, gelu),
      activation(K::kSilu, "silu", "x sigmoid(x)", {}, silu),
      activation(K::kSigmoid, "sigmoid", "1 / (1 + exp(-x))", {}, sigmoid),
      activation(K::kTanh, "tanh", "hyperbolic tangent", {}, tanh),
      activation(K::kHardswish, "hardswish", "x relu6(x + 3) / 6", {}, hardswish),
      activation(K::kHardsigmoid, "hardsigmoid", "relu6(x + 3) / 6", {}, hardsigmoid),
      entry(K::kSoftmax, "softmax", "exp(x) over its sum along an axis", 1, {"axis"}, softmax_shape, nullptr,
            softmax),
      entry(K::kDropout, "dropout", "identity in inference", 1, {"probability"}, same_shape, nullptr,
            dropout),
      entry(K::kMaxPool, "max_pool", "maximum of a window", 1,
            {"kernel", "stride", "padding", "dilation", "ceil"}, pool_shape, nullptr, max_pool),
      entry(K::kAvgPool, "avg_pool", "mean of a window", 1,
            {"kernel", "stride", "padding", "ceil", "count_padding"}, pool_shape, nullptr, avg_pool),
      entry(K::kAdaptiveAvgPool, "adaptive_avg_pool", "mean over a grid of cells", 1, {"output"},
            adaptive_pool_shape, nullptr, adaptive_avg_pool),
      entry(K::kAdaptiveMaxPool, "adaptive_max_pool", "maximum over a grid of cells", 1, {"output"},
            adaptive_pool_shape, nullptr, adaptive_max_pool),
      entry(K::kMean, "mean", "mean along axes", 1, {"axes", "keep"}, mean_shape, nullptr, mean),
      entry(K::kUpsample, "upsample", "larger image, nearest or bilinear", 1,
            {"output", "bilinear", "align_corners"}, adaptive_pool_shape, nullptr, upsample),
      entry(K::kAdd, "add", "x + y", 2, {}, broadcast_shape, nullptr, add),
      entry(K::kSub, "sub", "x - y", 2, {}, broadcast_shape, nullptr, sub),
      entry(K::kMul, "mul", "x y", 2, {}, broadcast_shape, nullptr, mul),
      entry(K::kDiv, "div", "x / y", 2, {}, broadcast_shape, nullptr, div),
      entry(K::kAffine, "affine", "factor x + shift", 1, {"factor", "shift"}, same_shape, nullptr, affine),
      entry(K::kChannelAffine, "channel_affine", "factor x + shift, one of each a channel", 1,
            {"factors", "shifts"}, channel_affine_shape, nullptr, channel_affine),
      entry(K::kConcat, "concat", "values one after another along an axis", kOneOrMore, {"axis"},
            concat_shape, nullptr, concat_values),
      view(entry(K::kParameter, "parameter", "a parameter, the same for every row", 0, {"shape"},
                 parameter_shape, parameter_parameters, parameter)),
      view(entry(K::kFlatten, "flatten", "[C,H,W] as [C*H*W]", 1, {}, flatten_shape, nullptr, flatten)),
      view(entry(K::kReshape, "reshape", "the same elements in another shape", 1, {"shape"}, reshape_shape,
                 nullptr, reshape)),
      view(entry(K::kPermute, "permute", "axes in another order", 1, {"axes"}, permute_shape, nullptr,
                 permute)),
      view(entry(K::kSlice, "slice", "a part along an axis", 1, {"axis", "begin", "end", "step"}, slice_shape,
                 nullptr, slice)),
      entry(K::kPad, "pad", "zeros around an image", 1, {"padding"}, pad_shape, nullptr, pad),
      view(entry(K::kShortcutA, "shortcut_a", "every second pixel, zero channels around", 1,
                 {"channel_padding"}, shortcut_a_shape, nullptr, shortcut_a)),
  };
}

}  // namespace

int64_t window_positions(const Attributes& a, size_t axis, int64_t size) {
  const int64_t extent = a.dilation[axis] * (a.kernel[axis] - 1) + 1;
  const int64_t room = size + a.padding[axis] + a.padding[axis + 2] - extent;
  if (room < 0) return 0;
  int64_t positions = (room + (a.ceil ? a.stride[axis] - 1 : 0)) / a.stride[axis] + 1;
  // As in PyTorch: no window begins in the padding after the input.
  if (a.ceil && (positions - 1) * a.stride[axis] >= size + a.padding[axis]) --positions;
  return positions;
}

const std::vector<OpDefinition>& op_definitions() {
  static const std::vector<OpDefinition> table = [] {
    std::vector<OpDefinition> all = definitions();
    for (size_t i = 0; i < all.size(); ++i) {
      TORCH_INTERNAL_ASSERT(all[i].kind == static_cast<OpKind>(i), "the table of ops is out of order");
    }
    return all;
  }();
  return table;
}

const OpDefinition& op_definition(OpKind kind) { return op_definitions().at(static_cast<size_t>(kind)); }

const OpDefinition* find_op(const std::string& name) {
  for (const OpDefinition& definition : op_definitions()) {
    if (name == definition.name) return &definition;
  }
  return nullptr;
}

}  // namespace assay
