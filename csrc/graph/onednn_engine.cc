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

#include <array>
#include <limits>
#include <optional>
#include <string_view>

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
    input.insert(input.begin(), kTypicalBatch);
    input.resize(4, 1);
    weight = at::mkldnn_reorder_conv2d_weight(weight.contiguous().to_mkldnn(), symmetric, a.stride,
                                              a.dilation, a.groups, at::IntArrayRef(input));
  }

  at::Tensor weighted(const Step& step, std::vector<at::Tensor>& values) const {
    const Attributes& a = step.op->attributes;
    const bool linear = step.op->kind == OpKind::kLinear;
    at::Tensor x = values[static_cast<size_t>(step.inputs[0])];
    if (linear) x = x.unsqueeze(2).unsqueeze(3);
    x = x.contiguous(at::MemoryFormat::ChannelsLast);
    const at::Tensor& weight = step.parameters[0];
    const at::Tensor& bias = step.parameters[1];
    const auto pad = padding(step);
    at::Tensor y;
    if (step.residual >= 0) {
      y = values[static_cast<size_t>(step.residual)];
      if (linear) y = y.unsqueeze(2).unsqueeze(3);
      const bool ready = step.overwrite && y.is_contiguous(at::MemoryFormat::ChannelsLast);
      if (!ready) y = y.clone(at::MemoryFormat::ChannelsLast);
      std::optional<std::string_view> activation;
      if (step.activation == Activation::kRelu) activation = "relu";
      convolution_add_.call(y, x, weight, bias, pad, a.stride, a.dilation, a.groups, "add", std::nullopt,
                            activation, Scalars(), std::nullopt);
      if (step.activation == Activation::kRelu6) at::hardtanh_(y, 0, 6);
    } else {
      Scalars scalars;
      std::string_view activation = "none";
      if (step.activation == Activation::kRelu) activation = "relu";
      if (step.activation == Activation::kRelu6) {
        activation = "hardtanh";
        scalars.push_back(at::Scalar(0.));
        scalars.push_back(at::Scalar(6.));
      }
      y = convolution_.call(x, weight, bias, pad, a.stride, a.dilation, a.groups, activation, scalars,
                            std::string_view());
    }
    return linear ? y.flatten(1) : y;
  }

  at::Tensor plain(const Step& step, const std::vector<at::Tensor>& values) const {
    std::vector<at::Tensor> inputs;
    for (int input : step.inputs) inputs.push_back(values[static_cast<size_t>(input)]);
    if (dtype_ == at::kFloat && inputs[0].dim() == 4) {
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
