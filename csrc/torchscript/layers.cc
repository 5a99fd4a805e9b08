// Layers, norms, activations and pooling. Arguments are called as in PyTorch's
// schemas (native_functions.yaml).
#include <cmath>

#include "torchscript/call.h"

namespace assay::script {
namespace {

std::vector<at::Tensor> weight_and_bias(Call& c, Attributes& a) {
  std::vector<at::Tensor> tensors = {c.tensor("weight")};
  a.bias = c.given("bias");
  if (a.bias) tensors.push_back(c.tensor("bias"));
  return tensors;
}

void convolution(Call& c) {
  const at::Tensor weight = c.tensor("weight");
  if (weight.dim() != 4) throw none(c.op, " over ", weight.dim() - 2, " dimensions");
  Attributes a;
  a.kernel = {weight.size(2), weight.size(3)};
  a.stride = c.pair("stride");
  a.dilation = c.pair("dilation");
  a.groups = c.integer("groups");
  const auto* padding = std::get_if<c10::IValue>(&c.at("padding"));
  if (padding != nullptr && padding->isString()) {
    for (size_t axis = 0; axis < 2 && padding->toStringRef() == "same"; ++axis) {
      const int64_t total = a.dilation[axis] * (a.kernel[axis] - 1);
      a.padding[axis] = total / 2;
      a.padding[axis + 2] = total - total / 2;
    }
  } else {
    const auto sides = c.pair("padding");
    a.padding = {sides[0], sides[1], sides[0], sides[1]};
  }
  const bool transposed = c.takes("transposed") ? c.flag("transposed") : c.op == "aten::conv_transpose2d";
  a.channels = transposed ? weight.size(1) * a.groups : weight.size(0);
  if (transposed) a.output_padding = c.pair("output_padding");
  const std::vector<at::Tensor> tensors = weight_and_bias(c, a);
  c.give(Rows{
      c.target.op(transposed ? OpKind::kConvTranspose2d : OpKind::kConv2d, {c.first("input")}, a, tensors)});
}

void batch_norm(Call& c) {
  if (c.flag("training") || !c.given("running_mean")) throw none(c.op, " by the batch's own statistics");
  const at::Tensor mean = c.tensor("running_mean");
  Attributes a;
  a.momentum = c.number("momentum");
  a.epsilon = c.number("eps");
  c.give(Rows{c.target.op(OpKind::kBatchNorm, {c.first("input")}, a,
                          {c.tensor_or("weight", at::ones_like(mean)),
                           c.tensor_or("bias", at::zeros_like(mean)), mean, c.tensor("running_var")})});
}

void layer_norm(Call& c) {
  Rows x = c.rows("input");
  const std::vector<int64_t> sizes = c.integers("normalized_shape");
  if (x.axis + sizes.size() >= c.target.rank(x)) throw none(c.op, " over the axis of the rows");
  Attributes a;
  a.dimensions = static_cast<int64_t>(sizes.size());
  a.epsilon = c.number("eps");
  x.id = c.target.op(OpKind::kLayerNorm, {x.id}, a,
                     {c.tensor_or("weight", at::ones(sizes)), c.tensor_or("bias", at::zeros(sizes))});
  c.give(x);
}

void normalised_groups(Call& c, int64_t groups) {
  const int x = c.first("input");
  const int64_t channels = c.target.shape(x).at(0);
  Attributes a;
  a.groups = groups;
  a.epsilon = c.number("eps");
  c.give(Rows{c.target.op(
      OpKind::kGroupNorm, {x}, a,
      {c.tensor_or("weight", at::ones({channels})), c.tensor_or("bias", at::zeros({channels}))})});
}

void group_norm(Call& c) { normalised_groups(c, c.integer("num_groups")); }

// As many groups as channels.
void instance_norm(Call& c) {
  if (!c.flag("use_input_stats")) throw none(c.op, " by running statistics");
  normalised_groups(c, c.target.shape(c.first("input")).at(0));
}

// ---- activations: elementwise, so that it does not matter where the rows are

void elementwise(Call& c, OpKind kind, const Attributes& a = {}) {
  Rows x = c.rows("self");
  x.id = c.target.op(kind, {x.id}, a);
  c.give(x);
}

template <OpKind kind>
void activation(Call& c) {
  elementwise(c, kind);
}

void leaky_relu(Call& c) {
  Attributes a;
  a.slope = c.number("negative_slope");
  elementwise(c, OpKind::kLeakyRelu, a);
}

void elu(Call& c) {
  if (c.number("scale") != 1 || c.number("input_scale") != 1) throw none(c.op, " with scales");
  Attributes a;
  a.slope = c.number("alpha");
  elementwise(c, OpKind::kElu, a);
}

void gelu(Call& c) {
  Attributes a;
  a.approximate = c.takes("approximate") && c.word("approximate") == "tanh";
  elementwise(c, OpKind::kGelu, a);
}

void clamped(Call& c, const char* least, const char* most) {
  if (!c.given(least) || c.number(least) != 0) throw none(c.op, " that does not begin at 0");
  if (!c.given(most)) return elementwise(c, OpKind::kRelu);
  if (c.number(most) != 6) throw none(c.op, " to ", c.number(most), ": want 6");
  elementwise(c, OpKind::kRelu6);
}

void clamp(Call& c) { clamped(c, "min", "max"); }
void hardtanh(Call& c) { clamped(c, "min_val", "max_val"); }

void softmax(Call& c) {
  Rows x = c.rows("self");
  Attributes a;
  a.axis = static_cast<int64_t>(c.target.row_axis(x, c.integer("dim"), c.op));
  x.id = c.target.op(OpKind::kSoftmax, {x.id}, a);
  c.give(x);
}

void dropout(Call& c) {
  if (c.flag("train")) throw none(c.op, " that is always on");
  Attributes a;
  a.probability = c.number("p");
  Rows x = c.rows("input");
  x.id = c.target.op(OpKind::kDropout, {x.id}, a);
  c.give(x);
}

// ---- pooling

template <OpKind kind>
void pool(Call& c) {
  Attributes a;
  a.kernel = c.pair("kernel_size");
  a.stride = c.given("stride") && !c.integers("stride").empty() ? c.pair("stride") : a.kernel;
  const auto padding = c.pair("padding");
  a.padding = {padding[0], padding[1], padding[0], padding[1]};
  a.ceil = c.flag("ceil_mode");
  if (c.takes("dilation")) a.dilation = c.pair("dilation");
  if (c.takes("count_include_pad")) a.count_padding = c.flag("count_include_pad");
  if (c.given("divisor_override")) throw none(c.op, " with a divisor");
  c.give(Rows{c.target.op(kind, {c.first("self")}, a)});
}

template <OpKind kind>
void adaptive_pool(Call& c) {
  const int x = c.first("self");
  Attributes a;
  const List sizes = c.list("output_size");
  if (sizes.empty() || sizes.size() > 2) throw none(c.op, " to ", sizes.size(), " axes");
  for (size_t i = 0; i < 2; ++i) {
    const Item& size = sizes[sizes.size() == 2 ? i : 0];
    const auto* value = std::get_if<c10::IValue>(&size);
    const bool as_is = value != nullptr && value->isNone();
    a.output[i] = as_is ? c.target.shape(x).at(i + 1) : integer_of(size, c.op);
  }
  c.give(Rows{c.target.op(kind, {x}, a)});
}

template <bool bilinear>
void upsample(Call& c) {
  const char* argument = c.takes("self") ? "self" : "input";
  const int x = c.first(argument);
  const Shape& row = c.target.shape(x);
  if (row.size() != 3) throw none(c.op, " of what is no image");
  Attributes a;
  a.bilinear = bilinear;
  if (bilinear) a.align_corners = c.flag("align_corners");
  if (c.given("output_size")) {
    a.output = c.pair("output_size");
  } else {
    const List factors = c.list("scale_factors");
    for (size_t i = 0; i < 2; ++i) {
      const auto* factor = std::get_if<c10::IValue>(&factors.at(i));
      if (factor == nullptr || !factor->isDouble()) throw none(c.op, " without a size");
      const double size = std::floor(static_cast<double>(row[i + 1]) * factor->toDouble());
      if (!(size >= 1 && size < 1e6)) throw none(c.op, " to a size of ", size);
      a.output[i] = static_cast<int64_t>(size);
      // Else PyTorch places pixels by the factor, assay by the ratio of sizes.
      if (size != static_cast<double>(row[i + 1]) * factor->toDouble()) throw none(c.op, " by a fraction");
    }
  }
  c.give(Rows{c.target.op(OpKind::kUpsample, {x}, a)});
}

}  // namespace

std::vector<Counterpart> layer_counterparts() {
  using K = OpKind;
  return {
      {"aten::conv2d", convolution},
      {"aten::_convolution", convolution},
      {"aten::_convolution_mode", convolution},
      {"aten::convolution", convolution},
      {"aten::conv_transpose2d", convolution},
      {"aten::batch_norm", batch_norm},
      {"aten::layer_norm", layer_norm},
      {"aten::group_norm", group_norm},
      {"aten::instance_norm", instance_norm},
      {"aten::relu", activation<K::kRelu>},
      {"aten::relu6", activation<K::kRelu6>},
      {"aten::silu", activation<K::kSilu>},
      {"aten::sigmoid", activation<K::kSigmoid>},
      {"aten::tanh", activation<K::kTanh>},
      {"aten::hardswish", activation<K::kHardswish>},
      {"aten::hardsigmoid", activation<K::kHardsigmoid>},
      {"aten::leaky_relu", leaky_relu},
      {"aten::elu", elu},
      {"aten::gelu", gelu},
      {"aten::clamp", clamp},
      {"aten::clamp_min", [](Call& c) { clamped(c, "min", "max"); }},
      {"aten::hardtanh", hardtanh},
      {"aten::softmax", softmax},
      {"aten::dropout", dropout},
      {"aten::feature_dropout", dropout},
      {"aten::alpha_dropout", dropout},
      {"aten::max_pool2d", pool<K::kMaxPool>},
      {"aten::avg_pool2d", pool<K::kAvgPool>},
      {"aten::adaptive_avg_pool2d", adaptive_pool<K::kAdaptiveAvgPool>},
      {"aten::adaptive_max_pool2d", adaptive_pool<K::kAdaptiveMaxPool>},
      {"aten::upsample_nearest2d", upsample<false>},
      {"aten::upsample_bilinear2d", upsample<true>},
  };
}

}  // namespace assay::script
