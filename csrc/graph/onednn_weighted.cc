// Convolutions by oneDNN: convolution, bias, addition and activation in one pass
// over memory, on channels-last activations, with the weights in oneDNN's own
// order; and their backward passes as convolutions of the same kind.
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/util/accumulate.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <vector>

#include "graph/engine.h"
#include "graph/kernels.h"
#include "graph/ops.h"
#include "graph/weighted.h"

namespace assay {
namespace {

using Scalars = c10::List<std::optional<at::Scalar>>;

using ConvolutionOp = at::Tensor(const at::Tensor& x, const at::Tensor& weight,
                                 const std::optional<at::Tensor>& bias, at::IntArrayRef padding,
                                 at::IntArrayRef stride, at::IntArrayRef dilation, int64_t groups,
                                 std::string_view activation, Scalars scalars,
                                 std::optional<std::string_view> algorithm);
using ConvolutionBinaryOp = at::Tensor(const at::Tensor& x, const at::Tensor& other, const at::Tensor& weight,
                                       const std::optional<at::Tensor>& bias, at::IntArrayRef padding,
                                       at::IntArrayRef stride, at::IntArrayRef dilation, int64_t groups,
                                       std::string_view binary, std::optional<at::Scalar> alpha,
                                       std::optional<std::string_view> activation, Scalars scalars,
                                       std::optional<std::string_view> algorithm);
using TransposedOp = at::Tensor(const at::Tensor& x, const at::Tensor& weight,
                                const std::optional<at::Tensor>& bias, at::IntArrayRef padding,
                                at::IntArrayRef output_padding, at::IntArrayRef stride,
                                at::IntArrayRef dilation, int64_t groups, std::string_view activation,
                                Scalars scalars, std::optional<std::string_view> algorithm);
using ReorderTransposedOp = at::Tensor(const at::Tensor& weight, at::IntArrayRef padding,
                                       at::IntArrayRef output_padding, at::IntArrayRef stride,
                                       at::IntArrayRef dilation, int64_t groups,
                                       at::OptionalIntArrayRef input);
using ConvolutionAddOp = at::Tensor&(at::Tensor& other, const at::Tensor& x, const at::Tensor& weight,
                                     const std::optional<at::Tensor>& bias, at::IntArrayRef padding,
                                     at::IntArrayRef stride, at::IntArrayRef dilation, int64_t groups,
                                     std::string_view binary, std::optional<at::Scalar> alpha,
                                     std::optional<std::string_view> activation, Scalars scalars,
                                     std::optional<std::string_view> algorithm);

template <typename Signature>
c10::TypedOperatorHandle<Signature> operation(const char* name, const char* overload) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, overload).typed<Signature>();
}

struct Operations {
  c10::TypedOperatorHandle<ConvolutionOp> convolution =
      operation<ConvolutionOp>("mkldnn::_convolution_pointwise", "");
  c10::TypedOperatorHandle<ConvolutionBinaryOp> convolution_binary =
      operation<ConvolutionBinaryOp>("mkldnn::_convolution_pointwise", "binary");
  c10::TypedOperatorHandle<ConvolutionAddOp> convolution_add =
      operation<ConvolutionAddOp>("mkldnn::_convolution_pointwise_", "binary");
  c10::TypedOperatorHandle<TransposedOp> transposed =
      operation<TransposedOp>("mkldnn::_convolution_transpose_pointwise", "");
  c10::TypedOperatorHandle<ReorderTransposedOp> reorder_transposed =
      operation<ReorderTransposedOp>("mkldnn::_reorder_convolution_transpose_weight", "");

  static const Operations& get() {
    static const Operations operations;
    return operations;
  }
};

// The batch for which oneDNN is asked what order of weights it likes. One number
// for all, so that results at a batch shape do not depend on what ran before.
constexpr int64_t kTypicalBatch = 16;

using Pair = std::array<int64_t, 2>;

at::Tensor reordered(const at::Tensor& weight, Pair padding, Pair stride, Pair dilation, int64_t groups,
                     Shape input) {
  input.insert(input.begin(), kTypicalBatch);
  return at::mkldnn_reorder_conv2d_weight(weight.contiguous().to_mkldnn(), padding, stride, dilation, groups,
                                          at::IntArrayRef(input));
}

// An activation as oneDNN computes it together with a convolution.
struct PostOp {
  std::string_view name;
  std::vector<double> scalars = {};
  std::string_view algorithm = {};
};

std::optional<PostOp> post_op(const Op* activation) {
  if (activation == nullptr) return PostOp{"none"};
  switch (activation->kind) {
    case OpKind::kRelu:
      return PostOp{"relu"};
    case OpKind::kRelu6:
      return PostOp{"hardtanh", {0., 6.}};
    case OpKind::kLeakyRelu:
      return PostOp{"leaky_relu", {activation->attributes.slope}};
    case OpKind::kGelu:
      return PostOp{"gelu", {}, activation->attributes.approximate ? "tanh" : "none"};
    case OpKind::kSilu:
      return PostOp{"swish"};
    case OpKind::kSigmoid:
      return PostOp{"sigmoid"};
    case OpKind::kTanh:
      return PostOp{"tanh"};
    case OpKind::kHardswish:
      return PostOp{"hardswish"};
    default:
      return std::nullopt;
  }
}

// The backward pass of a convolution to its input is a convolution too. Three forms:
class Pull {
 public:
  virtual ~Pull() = default;
  virtual at::Tensor operator()(const at::Tensor& gradient, at::IntArrayRef sizes) const = 0;
};

struct Geometry {
  Pair stride, padding, dilation;
  int64_t groups;
  Shape input, output;  // of a row
};

// [O,I/g,kH,kW] with the two channel axes exchanged: [I,O/g,kH,kW].
at::Tensor exchanged(const at::Tensor& weight, int64_t groups) {
  const int64_t out = weight.size(0) / groups, in = weight.size(1);
  return weight.reshape({groups, out, in, weight.size(2), weight.size(3)})
      .transpose(1, 2)
      .reshape({groups * in, out, weight.size(2), weight.size(3)});
}

// Stride 1: a convolution with the kernel turned around.
class TurnedPull final : public Pull {
 public:
  TurnedPull(const at::Tensor& weight, const Geometry& of) : of_(of) {
    for (size_t i = 0; i < 2; ++i)
      padding_[i] = of.dilation[i] * (weight.size(static_cast<int64_t>(i) + 2) - 1) - of.padding[i];
    weight_ = reordered(exchanged(weight, of.groups).flip({2, 3}), padding_, {1, 1}, of.dilation, of.groups,
                        of.output);
  }
  static bool fits(const at::Tensor& weight, const Geometry& of) {
    if (of.stride != Pair{1, 1}) return false;
    return of.dilation[0] * (weight.size(2) - 1) >= of.padding[0] &&
           of.dilation[1] * (weight.size(3) - 1) >= of.padding[1];
  }
  at::Tensor operator()(const at::Tensor& gradient, at::IntArrayRef) const override {
    return Operations::get().convolution.call(gradient, weight_, std::nullopt, padding_, Pair{1, 1},
                                              of_.dilation, of_.groups, "none", Scalars(), "");
  }

 private:
  Geometry of_;
  Pair padding_;
  at::Tensor weight_;
};

// Few input channels and a stride, as the first layers have: oneDNN's transposed
// convolution fills its vectors with input channels and is far slower than the
// forward. Here the pixels of a stride x stride cell are channels: one
// dense convolution at the output's resolution, then its channels spread out.
class CellPull final : public Pull {
 public:
  CellPull(const at::Tensor& weight, const Geometry& of) : of_(of) {
    // Input pixel s a + r takes output a + d by kernel element r + p - s d.
    const int64_t in = weight.size(1);
    Pair kernel;
    for (size_t i = 0; i < 2; ++i) {
      const int64_t s = of.stride[i], p = of.padding[i], k = weight.size(static_cast<int64_t>(i) + 2);
      first_[i] = -floor_div(k - 1 - p, s);          // r = 0, the last element
      const int64_t last = floor_div(s - 1 + p, s);  // r = s-1, element 0
      kernel[i] = last - first_[i] + 1;
      const int64_t cells = (of.input[i + 1] + s - 1) / s;
      padding_[i] = std::max<int64_t>({-first_[i], cells - 1 + last - (of.output[i + 1] - 1), 0});
    }
    at::Tensor cell =
        at::zeros({in, of.stride[0], of.stride[1], weight.size(0), kernel[0], kernel[1]}, weight.options());
    for (int64_t ry = 0; ry < of.stride[0]; ++ry) {
      for (int64_t rx = 0; rx < of.stride[1]; ++rx) {
        for (int64_t ky = 0; ky < kernel[0]; ++ky) {
          for (int64_t kx = 0; kx < kernel[1]; ++kx) {
            const int64_t y = ry + of.padding[0] - of.stride[0] * (first_[0] + ky);
            const int64_t x = rx + of.padding[1] - of.stride[1] * (first_[1] + kx);
            if (y < 0 || x < 0 || y >= weight.size(2) || x >= weight.size(3)) continue;
            cell.select(1, ry).select(1, rx).select(2, ky).select(2, kx).copy_(
                weight.select(2, y).select(2, x).t());
          }
        }
      }
    }
    weight_ = reordered(cell.flatten(0, 2), padding_, {1, 1}, {1, 1}, 1, of.output);
  }
  static bool fits(const at::Tensor& weight, const Geometry& of) {
    return of.groups == 1 && of.dilation == Pair{1, 1} && weight.size(1) <= 4 &&
           of.stride[0] * of.stride[1] > 1 && of.stride[0] <= weight.size(2) &&
           of.stride[1] <= weight.size(3);
  }
  at::Tensor operator()(const at::Tensor& gradient, at::IntArrayRef sizes) const override {
    const at::Tensor cells = Operations::get().convolution.call(
        gradient, weight_, std::nullopt, padding_, Pair{1, 1}, Pair{1, 1}, 1, "none", Scalars(), "");
    const int64_t sy = of_.stride[0], sx = of_.stride[1];
    const int64_t height = (sizes[2] + sy - 1) / sy, width = (sizes[3] + sx - 1) / sx;
    // [N,C sy sx,h,w] from the first cell on, as [N,C,h sy,w sx].
    return cells.slice(2, padding_[0] + first_[0], padding_[0] + first_[0] + height)
        .slice(3, padding_[1] + first_[1], padding_[1] + first_[1] + width)
        .reshape({sizes[0], sizes[1], sy, sx, height, width})
        .permute({0, 1, 4, 2, 5, 3})
        .reshape({sizes[0], sizes[1], height * sy, width * sx})
        .slice(2, 0, sizes[2])
        .slice(3, 0, sizes[3]);
  }

 private:
  static int64_t floor_div(int64_t a, int64_t b) { return a >= 0 ? a / b : -((-a + b - 1) / b); }

  Geometry of_;
  Pair first_, padding_;
  at::Tensor weight_;
};

// Everything else: oneDNN's transposed convolution.
class TransposedPull final : public Pull {
 public:
  TransposedPull(const at::Tensor& weight, const Geometry& of) : of_(of) {
    for (size_t i = 0; i < 2; ++i) {
      const int64_t extent = of.dilation[i] * (weight.size(static_cast<int64_t>(i) + 2) - 1) + 1;
      rest_[i] = of.input[i + 1] - ((of.output[i + 1] - 1) * of.stride[i] - 2 * of.padding[i] + extent);
    }
    Shape rows = of.output;
    rows.insert(rows.begin(), kTypicalBatch);
    weight_ = Operations::get().reorder_transposed.call(weight.contiguous(), of.padding, rest_, of.stride,
                                                        of.dilation, of.groups, at::IntArrayRef(rows));
  }
  at::Tensor operator()(const at::Tensor& gradient, at::IntArrayRef) const override {
    return Operations::get().transposed.call(gradient, weight_, std::nullopt, of_.padding, rest_, of_.stride,
                                             of_.dilation, of_.groups, "none", Scalars(), "");
  }

 private:
  Geometry of_;
  Pair rest_;  // rows and columns that no window of the forward reaches
  at::Tensor weight_;
};

std::unique_ptr<Pull> make_pull(const at::Tensor& weight, const Geometry& of) {
  if (TurnedPull::fits(weight, of)) return std::make_unique<TurnedPull>(weight, of);
  if (CellPull::fits(weight, of)) return std::make_unique<CellPull>(weight, of);
  return std::make_unique<TransposedPull>(weight, of);
}

class OneDnnWeighted final : public Weighted {
 public:
  OneDnnWeighted(const Step& step, Shape input, Use use)
      : op_(*step.op),
        activation_(step.activation),
        linear_(op_.kind == OpKind::kLinear),
        bias_(step.parameters[1]) {
    const Attributes& a = op_.attributes;
    const auto& p = a.padding;
    // Padding as oneDNN's operators take it: the same on both sides. What is more
    // on one side becomes part of the kernel, as zeros: for stride 2 this costs
    // less than a padded copy of the input.
    padding_ = {std::max(p[0], p[2]), std::max(p[1], p[3])};
    at::Tensor weight = step.parameters[0];
    if (linear_) input = {input.back(), c10::multiply_integers(input) / input.back(), 1};  // see as_image
    if (a.dilation == Pair{1, 1}) {
      weight = at::constant_pad_nd(
          weight, {padding_[1] - p[1], padding_[1] - p[3], padding_[0] - p[0], padding_[0] - p[2]});
    } else if (p[0] != p[2] || p[1] != p[3]) {
      around_ = p;
      padding_ = {0, 0};
      input = {input[0], input[1] + p[0] + p[2], input[2] + p[1] + p[3]};
    }
    weight_ = reordered(weight, padding_, a.stride, a.dilation, a.groups, input);
    if (use == Use::kForward) return;
    Geometry geometry{a.stride, padding_, a.dilation, a.groups, input, {weight.size(0)}};
    for (size_t i = 0; i < 2; ++i) {
      const int64_t extent = a.dilation[i] * (weight.size(static_cast<int64_t>(i) + 2) - 1) + 1;
      geometry.output.push_back((input[i + 1] + 2 * padding_[i] - extent) / a.stride[i] + 1);
    }
    pull_ = make_pull(weight, geometry);
  }

  at::Tensor apply(const at::Tensor& input, const at::Tensor& residual, bool overwrite) const override {
    const Attributes& a = op_.attributes;
    const Operations& run = Operations::get();
    Shape outputs;  // of a linear layer
    if (linear_) {
      outputs = input.sizes().vec();
      outputs.back() = a.channels;
    }
    at::Tensor x = linear_ ? as_image(input) : input;
    if (padded()) x = at::constant_pad_nd(x, {around_[1], around_[3], around_[0], around_[2]});
    x = x.contiguous(at::MemoryFormat::ChannelsLast);
    at::Tensor y;
    if (residual.defined()) {
      const at::Tensor other = linear_ ? as_image(residual) : residual;
      // The only activation that these operators know.
      const bool relu = activation_ != nullptr && activation_->kind == OpKind::kRelu;
      std::optional<std::string_view> activation;
      if (relu) activation = "relu";
      if (overwrite && other.is_contiguous(at::MemoryFormat::ChannelsLast)) {
        y = other;
        run.convolution_add.call(y, x, weight_, bias_, padding_, a.stride, a.dilation, a.groups, "add",
                                 std::nullopt, activation, Scalars(), std::nullopt);
      } else {
        y = run.convolution_binary.call(x, other.contiguous(at::MemoryFormat::ChannelsLast), weight_, bias_,
                                        padding_, a.stride, a.dilation, a.groups, "add", std::nullopt,
                                        activation, Scalars(), std::nullopt);
      }
      if (!relu) y = activated_by_row(activation_, y);
    } else {
      const std::optional<PostOp> post = post_op(activation_);
      const PostOp done = post.value_or(PostOp{"none"});
      Scalars scalars;
      for (double scalar : done.scalars) scalars.push_back(at::Scalar(scalar));
      y = run.convolution.call(x, weight_, bias_, padding_, a.stride, a.dilation, a.groups, done.name,
                               scalars, done.algorithm);
      if (!post) y = activated_by_row(activation_, y);
    }
    return linear_ ? y.permute({0, 2, 3, 1}).reshape(outputs) : y;
  }

  at::Tensor pull(const at::Tensor& gradient, at::IntArrayRef sizes) const override {
    if (padded()) {
      std::vector<int64_t> larger = sizes.vec();
      larger[2] += around_[0] + around_[2];
      larger[3] += around_[1] + around_[3];
      return (*pull_)(gradient.contiguous(at::MemoryFormat::ChannelsLast), larger)
          .slice(2, around_[0], around_[0] + sizes[2])
          .slice(3, around_[1], around_[1] + sizes[3]);
    }
    if (!linear_) return (*pull_)(gradient.contiguous(at::MemoryFormat::ChannelsLast), sizes);
    const at::Tensor g = as_image(gradient).contiguous(at::MemoryFormat::ChannelsLast);
    return (*pull_)(g, {}).permute({0, 2, 3, 1}).reshape(sizes);
  }

 private:
  // [N,...,F] as an image of F channels, channels last: no copy where the last
  // axis is the innermost.
  static at::Tensor as_image(const at::Tensor& x) {
    return x.reshape({x.size(0), -1, 1, x.size(-1)}).permute({0, 3, 1, 2});
  }

  bool padded() const { return around_ != std::array<int64_t, 4>{0, 0, 0, 0}; }

  const Op& op_;
  const Op* activation_;
  bool linear_;
  Pair padding_;
  // Zeros that go around the input by hand: where a dilated kernel cannot take them.
  std::array<int64_t, 4> around_ = {0, 0, 0, 0};
  at::Tensor weight_, bias_;
  std::unique_ptr<Pull> pull_;
};

}  // namespace

at::Tensor activated_by_row(const Op* activation, const at::Tensor& y) {
  if (activation == nullptr) return y;
  const OpDefinition& definition = op_definition(activation->kind);
  if (!definition.transcendental) return activated(activation, y);
  at::Tensor out = at::empty_like(y);
  for (int64_t row = 0; row < y.size(0); ++row) {
    out[row].copy_(definition.forward(*activation, {y.narrow(0, row, 1)}, {})[0]);
  }
  return out;
}

at::Tensor onednn_plain(const Step& step, const std::vector<at::Tensor>& inputs) {
  if (op_definition(step.op->kind).transcendental) return activated_by_row(step.op, inputs[0]);
  if (!inputs.empty() && inputs[0].dim() == 4 && inputs[0].scalar_type() == at::kFloat) {
    if (step.op->kind == OpKind::kMaxPool) {
      return max_pool_channels_last(inputs[0].contiguous(at::MemoryFormat::ChannelsLast),
                                    step.op->attributes);
    }
    if (step.op->kind == OpKind::kAdaptiveAvgPool && step.op->attributes.output == Pair{1, 1}) {
      return global_avg_pool_channels_last(inputs[0].contiguous(at::MemoryFormat::ChannelsLast));
    }
  }
  return op_definition(step.op->kind).forward(*step.op, inputs, step.parameters);
}

bool onednn_supports(at::ScalarType dtype) {
  if (!at::globalContext().hasMKLDNN() || !at::globalContext().userEnabledMkldnn()) return false;
  if (dtype == at::kFloat) return true;
  if (dtype != at::kBFloat16) return false;
  return operation<bool()>("mkldnn::_is_mkldnn_bf16_supported", "").call();
}

std::unique_ptr<Weighted> make_onednn_weighted(const Step& step, const Shape& input, Use use) {
  return std::make_unique<OneDnnWeighted>(step, input, use);
}

}  // namespace assay
