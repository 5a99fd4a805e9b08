// CPU inference through oneDNN's fused convolutions: convolution, bias, addition
// and activation in one pass over memory, on channels-last activations, with the
// weights in oneDNN's own order.
//
// A row's bits do not depend on the other rows: every output element of a
// convolution is one chain of products in an order given by the layer alone. A
// matrix product of MKL's (at::linear) does not have that property (its last rows
// take another kernel; seen with 7 rows), so linear layers are 1x1 convolutions here.
//
// oneDNN's ReLU turns NaN into 0, so NaN could go unseen: parameters with NaN or
// infinity are left to the other engine (Net::prepare), and rows of the input
// that hold one have NaN for every logit.
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/util/accumulate.h>

#include <array>
#include <limits>
#include <optional>
#include <string_view>
#include <vector>

#include "graph/engine.h"
#include "graph/kernels.h"
#include "graph/ops.h"

namespace assay {
namespace {

using Scalars = c10::List<std::optional<at::Scalar>>;

using ConvolutionOp = at::Tensor(const at::Tensor& x, const at::Tensor& weight,
                                 const std::optional<at::Tensor>& bias, at::IntArrayRef padding,
                                 at::IntArrayRef stride, at::IntArrayRef dilation, int64_t groups,
                                 std::string_view activation, Scalars scalars,
                                 std::optional<std::string_view> algorithm);
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

// The batch for which oneDNN is asked what order of weights it likes. One number
// for all, so that results at a batch shape do not depend on what ran before.
constexpr int64_t kTypicalBatch = 16;

class OneDnnEngine final : public Engine {
 public:
  OneDnnEngine(const Graph& graph, Plan plan, at::ScalarType dtype)
      : dtype_(dtype),
        plan_(std::move(plan)),
        convolution_(operation<ConvolutionOp>("mkldnn::_convolution_pointwise", "")),
        convolution_add_(operation<ConvolutionAddOp>("mkldnn::_convolution_pointwise_", "binary")) {
    for (Step& step : plan_.steps) {
      if (step.weighted) reorder(step, graph.values[static_cast<size_t>(step.inputs[0])].shape);
    }
  }

  at::Tensor forward(const at::Tensor& input) override {
    at::Tensor x = input.to(dtype_);
    x = x.contiguous(x.dim() == 4 ? at::MemoryFormat::ChannelsLast : at::MemoryFormat::Contiguous);
    at::Tensor logits = run_plan(plan_, x, [this](const Step& step, std::vector<at::Tensor>& values) {
      return step.weighted ? weighted(step, values) : plain(step, values);
    });
    if (logits.is_alias_of(input)) logits = logits.clone();
    mark_not_finite(input, x, logits);
    return logits;
  }

 private:
  // Padding as oneDNN's operator takes it: the same on both sides. What is more
  // on one side becomes part of the kernel, as zeros: for stride 2 this costs
  // less than a padded copy of the input.
  static std::array<int64_t, 2> padding(const Step& step) {
    const auto& p = step.op->attributes.padding;
    return {std::max(p[0], p[2]), std::max(p[1], p[3])};
  }

  void reorder(Step& step, Shape input) const {
    const Attributes& a = step.op->attributes;
    at::Tensor& weight = step.parameters[0];
    const auto symmetric = padding(step);
    weight = at::constant_pad_nd(weight, {symmetric[1] - a.padding[1], 0, symmetric[0] - a.padding[0], 0});
    if (step.op->kind == OpKind::kLinear) {  // see as_image
      input = {input.back(), c10::multiply_integers(input) / input.back(), 1};
    }
    input.insert(input.begin(), kTypicalBatch);
    weight = at::mkldnn_reorder_conv2d_weight(weight.contiguous().to_mkldnn(), symmetric, a.stride,
                                              a.dilation, a.groups, at::IntArrayRef(input));
  }

  at::Tensor weighted(const Step& step, std::vector<at::Tensor>& values) const {
    const Attributes& a = step.op->attributes;
    const bool linear = step.op->kind == OpKind::kLinear;
    at::Tensor x = values[static_cast<size_t>(step.inputs[0])];
    Shape outputs;  // of a linear layer
    if (linear) {
      outputs = x.sizes().vec();
      outputs.back() = a.channels;
      x = as_image(x);
    }
    x = x.contiguous(at::MemoryFormat::ChannelsLast);
    const at::Tensor& weight = step.parameters[0];
    const at::Tensor& bias = step.parameters[1];
    const auto pad = padding(step);
    at::Tensor y;
    if (step.residual >= 0) {
      y = values[static_cast<size_t>(step.residual)];
      if (linear) y = as_image(y);
      const bool ready = step.overwrite && y.is_contiguous(at::MemoryFormat::ChannelsLast);
      if (!ready) y = y.clone(at::MemoryFormat::ChannelsLast);
      std::optional<std::string_view> activation;
      const bool relu = step.activation != nullptr && step.activation->kind == OpKind::kRelu;
      if (relu) activation = "relu";  // the only one that this operator knows
      convolution_add_.call(y, x, weight, bias, pad, a.stride, a.dilation, a.groups, "add", std::nullopt,
                            activation, Scalars(), std::nullopt);
      if (!relu) y = activate(step.activation, y);
    } else {
      const std::optional<PostOp> post = post_op(step.activation);
      const PostOp done = post.value_or(PostOp{"none"});
      Scalars scalars;
      for (double scalar : done.scalars) scalars.push_back(at::Scalar(scalar));
      y = convolution_.call(x, weight, bias, pad, a.stride, a.dilation, a.groups, done.name, scalars,
                            done.algorithm);
      if (!post) y = activate(step.activation, y);
    }
    return linear ? y.permute({0, 2, 3, 1}).reshape(outputs) : y;
  }

  // [N,...,F] as an image of F channels, channels last: no copy where the last
  // axis is the innermost.
  static at::Tensor as_image(const at::Tensor& x) {
    return x.reshape({x.size(0), -1, 1, x.size(-1)}).permute({0, 3, 1, 2});
  }

  // An activation as oneDNN computes it together with a convolution.
  struct PostOp {
    std::string_view name;
    std::vector<double> scalars = {};
    std::string_view algorithm = {};
  };

  static std::optional<PostOp> post_op(const Op* activation) {
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

  // libtorch's kernels take another path for the elements that do not fill a
  // vector, whose last digit may differ: row by row every element keeps its path.
  static at::Tensor activate(const Op* activation, const at::Tensor& y) {
    if (activation == nullptr) return y;
    const OpDefinition& definition = op_definition(activation->kind);
    if (!definition.transcendental) return activated(activation, y);
    at::Tensor out = at::empty_like(y);
    for (int64_t row = 0; row < y.size(0); ++row) {
      out[row].copy_(definition.forward(*activation, {y.narrow(0, row, 1)}, {})[0]);
    }
    return out;
  }

  at::Tensor plain(const Step& step, const std::vector<at::Tensor>& values) const {
    std::vector<at::Tensor> inputs;
    for (int input : step.inputs) inputs.push_back(values[static_cast<size_t>(input)]);
    if (op_definition(step.op->kind).transcendental) return activate(step.op, inputs[0]);
    if (dtype_ == at::kFloat && !inputs.empty() && inputs[0].dim() == 4) {
      if (step.op->kind == OpKind::kMaxPool) {
        return max_pool_channels_last(inputs[0].contiguous(at::MemoryFormat::ChannelsLast),
                                      step.op->attributes);
      }
      if (step.op->kind == OpKind::kAdaptiveAvgPool &&
          step.op->attributes.output == std::array<int64_t, 2>{1, 1}) {
        return global_avg_pool_channels_last(inputs[0].contiguous(at::MemoryFormat::ChannelsLast));
      }
    }
    return op_definition(step.op->kind).forward(*step.op, inputs, step.parameters);
  }

  void mark_not_finite(const at::Tensor& input, const at::Tensor& x, at::Tensor& logits) const {
    // x has its rows one after another; f64 and bf16 inputs are looked at as f32.
    const at::Tensor rows = dtype_ == at::kFloat ? x : input.to(at::kFloat).contiguous();
    const std::vector<bool> bad = rows_not_finite(rows);
    for (size_t row = 0; row < bad.size(); ++row) {
      if (bad[row]) logits[static_cast<int64_t>(row)].fill_(std::numeric_limits<double>::quiet_NaN());
    }
  }

  at::ScalarType dtype_;
  Plan plan_;
  c10::TypedOperatorHandle<ConvolutionOp> convolution_;
  c10::TypedOperatorHandle<ConvolutionAddOp> convolution_add_;
};

}  // namespace

bool onednn_supports(at::ScalarType dtype) {
  if (!at::globalContext().hasMKLDNN() || !at::globalContext().userEnabledMkldnn()) return false;
  if (dtype == at::kFloat) return true;
  if (dtype != at::kBFloat16) return false;
  return operation<bool()>("mkldnn::_is_mkldnn_bf16_supported", "").call();
}

std::unique_ptr<Engine> make_onednn_engine(const Graph& graph, Plan plan, at::ScalarType dtype) {
  return std::make_unique<OneDnnEngine>(graph, std::move(plan), dtype);
}

}  // namespace assay
