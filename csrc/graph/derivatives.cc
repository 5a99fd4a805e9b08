#include "graph/derivatives.h"

#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <array>
#include <limits>

#include "graph/kernels.h"
#include "graph/ops.h"

namespace assay {
namespace {

using Tensors = std::vector<at::Tensor>;

// Sums over the axes along which a factor or summand was spread. A value made of
// parameters alone has one row, whose gradient nobody asks for.
at::Tensor summed(const at::Tensor& gradient, const std::vector<int64_t>& sizes) {
  return at::sum_to(gradient, at::IntArrayRef(sizes));
}

// The rows one by one where the last digit of a function may depend on an element's place.
Tensors by_row(const Passed& p, const at::Tensor& gradient);

Tensors by_autograd(const Passed& p, const at::Tensor& gradient) {
  const bool moves = op_definition(p.op.kind).transcendental && gradient.is_cpu();
  if (moves && gradient.size(0) > 1) return by_row(p, gradient);
  const at::AutoGradMode grad(true);
  Tensors inputs;
  for (const at::Tensor& x : p.inputs) inputs.push_back(x.detach().requires_grad_(true));
  const at::Tensor y = op_definition(p.op.kind).forward(p.op, inputs, p.parameters);
  return torch::autograd::grad({y}, inputs, {gradient});
}

Tensors by_row(const Passed& p, const at::Tensor& gradient) {
  at::Tensor out = at::empty_like(p.inputs[0]);
  for (int64_t row = 0; row < gradient.size(0); ++row) {
    const Tensors inputs = {p.inputs[0].narrow(0, row, 1)};
    const Passed one{p.op, inputs, {inputs[0].sizes().vec()}, p.parameters, p.output};
    out.narrow(0, row, 1).copy_(by_autograd(one, gradient.narrow(0, row, 1))[0]);
  }
  return {out};
}

Tensors same(const Passed&, const at::Tensor& gradient) { return {gradient}; }

Tensors as_input(const Passed& p, const at::Tensor& gradient) { return {gradient.reshape(p.sizes[0])}; }

Tensors add(const Passed& p, const at::Tensor& g) { return {summed(g, p.sizes[0]), summed(g, p.sizes[1])}; }
Tensors sub(const Passed& p, const at::Tensor& g) {
  return {summed(g, p.sizes[0]), summed(g.neg(), p.sizes[1])};
}
Tensors mul(const Passed& p, const at::Tensor& g) {
  return {summed(g * p.inputs[1], p.sizes[0]), summed(g * p.inputs[0], p.sizes[1])};
}

Tensors affine(const Passed& p, const at::Tensor& g) { return {g * p.op.attributes.factor}; }

// By axis 1, the channels.
at::Tensor along_channels(const at::Tensor& values, int64_t dimensions) {
  std::vector<int64_t> shape(static_cast<size_t>(dimensions), 1);
  shape[1] = values.size(0);
  return values.view(shape);
}

Tensors channel_affine(const Passed& p, const at::Tensor& g) {
  const at::Tensor factors = at::tensor(p.op.attributes.factors, at::kDouble).to(g.device(), g.scalar_type());
  return {g * along_channels(factors, g.dim())};
}

Tensors batch_norm(const Passed& p, const at::Tensor& g) {
  const at::Tensor scale =
      p.parameters[0].to(at::kDouble) / at::sqrt(p.parameters[3].to(at::kDouble) + p.op.attributes.epsilon);
  return {g * along_channels(scale.to(g.scalar_type()), g.dim())};
}

Tensors concat_values(const Passed& p, const at::Tensor& g) {
  Tensors parts;
  const int64_t axis = p.op.attributes.axis + 1;
  int64_t begin = 0;
  for (const std::vector<int64_t>& sizes : p.sizes) {
    const int64_t size = sizes[static_cast<size_t>(axis)];
    parts.push_back(summed(g.narrow(axis, begin, size), sizes));
    begin += size;
  }
  return parts;
}

Tensors permute(const Passed& p, const at::Tensor& g) {
  std::vector<int64_t> back(p.op.attributes.axes.size() + 1, 0);
  for (size_t i = 0; i < p.op.attributes.axes.size(); ++i) {
    back[static_cast<size_t>(p.op.attributes.axes[i]) + 1] = static_cast<int64_t>(i) + 1;
  }
  return {g.permute(back)};
}

Tensors pad(const Passed& p, const at::Tensor& g) {
  const auto& around = p.op.attributes.padding;
  return {g.slice(2, around[0], around[0] + p.sizes[0][2]).slice(3, around[1], around[1] + p.sizes[0][3])};
}

Tensors shortcut_a(const Passed& p, const at::Tensor& g) {
  const auto& channels = p.op.attributes.channel_padding;
  const auto& sizes = p.sizes[0];
  const at::TensorOptions options = g.options().memory_format(at::MemoryFormat::ChannelsLast);
  at::Tensor x = at::empty(sizes, options).zero_();
  x.slice(2, 0, std::nullopt, 2).slice(3, 0, std::nullopt, 2).copy_(g.narrow(1, channels[0], sizes[1]));
  return {x};
}

Tensors max_pool(const Passed& p, const at::Tensor& g) {
  const at::Tensor& x = p.inputs[0];
  const Attributes& a = p.op.attributes;
  if (x.is_cpu() && x.scalar_type() == at::kFloat) {
    const auto format = at::MemoryFormat::ChannelsLast;
    return {pull_max_pool_channels_last(g.contiguous(format), x.contiguous(format),
                                        p.output.contiguous(format), a)};
  }
  const std::array<int64_t, 2> padding = {a.padding[0], a.padding[1]};
  const at::Tensor indices =
      std::get<1>(at::max_pool2d_with_indices(x, a.kernel, a.stride, padding, a.dilation, a.ceil));
  return {
      at::max_pool2d_with_indices_backward(g, x, a.kernel, a.stride, padding, a.dilation, a.ceil, indices)};
}

Tensors adaptive_avg_pool(const Passed& p, const at::Tensor& g) {
  const auto& sizes = p.sizes[0];
  if (p.op.attributes.output == std::array<int64_t, 2>{1, 1}) {
    return {(g / static_cast<double>(sizes[2] * sizes[3])).expand(sizes)};
  }
  const at::AutoGradMode grad(true);  // linear: any input has the same derivative
  const at::Tensor x = at::zeros({1}, g.options()).expand(sizes).detach().requires_grad_(true);
  return torch::autograd::grad({at::adaptive_avg_pool2d(x, p.op.attributes.output)}, {x}, {g.contiguous()});
}

struct Rule {
  OpKind kind;
  Derivative derivative;
};

std::vector<Rule> rules() {
  using K = OpKind;
  const auto rule = [](K kind, decltype(Derivative::pull) pull, bool inputs = false, bool output = false) {
    return Rule{kind, {.inputs = inputs, .output = output, .pull = pull}};
  };
  return {
      rule(K::kDropout, same),
      rule(K::kFlatten, as_input),
      rule(K::kReshape, as_input),
      rule(K::kAdd, add),
      rule(K::kSub, sub),
      rule(K::kMul, mul, true),
      rule(K::kAffine, affine),
      rule(K::kChannelAffine, channel_affine),
      rule(K::kBatchNorm, batch_norm),
      rule(K::kConcat, concat_values),
      rule(K::kPermute, permute),
      rule(K::kPad, pad),
      rule(K::kShortcutA, shortcut_a),
      rule(K::kMaxPool, max_pool, true, true),
      rule(K::kAdaptiveAvgPool, adaptive_avg_pool),
  };
}

}  // namespace

const Derivative& derivative(OpKind kind) {
  static const std::vector<Derivative> table = [] {
    std::vector<Derivative> all(op_definitions().size(), {.inputs = true, .pull = by_autograd});
    for (const Rule& rule : rules()) all[static_cast<size_t>(rule.kind)] = rule.derivative;
    return all;
  }();
  return table.at(static_cast<size_t>(kind));
}

bool derivative_of_output(OpKind kind) {
  return kind == OpKind::kRelu || kind == OpKind::kRelu6 || kind == OpKind::kSigmoid || kind == OpKind::kTanh;
}

at::Tensor pull_activation(const Op& activation, at::Tensor gradient, const at::Tensor& more,
                           const at::Tensor& output, bool overwrite, ReluRule rule) {
  const bool relu = activation.kind == OpKind::kRelu;
  if (more.defined()) {
    const bool alike = gradient.strides() == more.strides() && gradient.strides() == output.strides() &&
                       gradient.sizes() == output.sizes();
    if ((relu || activation.kind == OpKind::kRelu6) && rule == ReluRule::kGradient && overwrite && alike &&
        output.is_cpu() && output.scalar_type() == at::kFloat) {
      add_within(gradient, more, output, relu ? std::numeric_limits<float>::infinity() : 6);
      return gradient;
    }
    gradient = overwrite ? gradient.add_(more) : gradient + more;
    overwrite = true;
  }
  if (!relu && activation.kind != OpKind::kRelu6) {
    return activation.kind == OpKind::kTanh ? at::tanh_backward(gradient, output)
                                            : at::sigmoid_backward(gradient, output);
  }
  if (rule != ReluRule::kGradient) {
    gradient = overwrite ? at::relu_(gradient) : at::relu(gradient);
    overwrite = true;
  }
  if (rule == ReluRule::kDeconvolution) return gradient;
  at::Tensor out = overwrite ? gradient : at::empty_like(output);
  return relu ? at::threshold_backward_out(out, gradient, output, 0)
              : at::hardtanh_backward_out(out, gradient, output, 0, 6);
}

}  // namespace assay
