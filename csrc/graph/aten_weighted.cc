// Convolutions and linear layers by libtorch's own operators: CUDA (cuDNN's fused
// convolutions, channels-last), f64, parameters with NaN, and CPUs without oneDNN.
#include <array>
#include <vector>

#include "graph/ops.h"
#include "graph/weighted.h"

namespace assay {
namespace {

class AtenWeighted final : public Weighted {
 public:
  AtenWeighted(const Step& step, at::Device device, at::ScalarType dtype)
      : op_(*step.op),
        activation_(step.activation),
        linear_(step.op->kind == OpKind::kLinear),
        product_(linear_ && device.is_cuda()),
        dtype_(dtype),
        weight_(step.parameters[0].to(device)),
        bias_(step.parameters[1].to(device)) {
    if (device.is_cuda()) weight_ = weight_.contiguous(at::MemoryFormat::ChannelsLast);
  }

  at::Tensor apply(const at::Tensor& input, const at::Tensor& residual, bool) const override {
    const Attributes& a = op_.attributes;
    at::Tensor x = input;
    Shape outputs;  // of a linear layer
    if (linear_) {
      outputs = x.sizes().vec();
      outputs.back() = weight_.size(0);
    }
    if (linear_ && !product_) x = as_pixels(x);
    std::array<int64_t, 2> padding = {a.padding[0], a.padding[1]};
    if (!symmetric()) {
      x = at::constant_pad_nd(x, {a.padding[1], a.padding[3], a.padding[0], a.padding[2]});
      padding = {0, 0};
    }
    if (fused(x)) {
      if (residual.defined()) {
        return at::cudnn_convolution_add_relu(x, weight_, residual, 1, bias_, a.stride, padding, a.dilation,
                                              a.groups);
      }
      return at::cudnn_convolution_relu(x, weight_, bias_, a.stride, padding, a.dilation, a.groups);
    }
    at::Tensor y = product_ ? at::linear(x, weight_.flatten(1), bias_)
                            : at::conv2d(x, weight_, bias_, a.stride, padding, a.dilation, a.groups);
    if (linear_ && !product_) y = y.reshape(outputs);
    if (residual.defined()) y.add_(residual);
    return activated(activation_, y);
  }

  at::Tensor pull(const at::Tensor& gradient, at::IntArrayRef sizes) const override {
    const Attributes& a = op_.attributes;
    if (product_) return at::matmul(gradient, weight_.flatten(1));
    at::Tensor g = linear_ ? as_pixels(gradient) : gradient;
    std::vector<int64_t> padded = sizes.vec();
    std::array<int64_t, 2> padding = {a.padding[0], a.padding[1]};
    if (linear_) {
      padded = {g.size(0), weight_.size(1), 1, 1};
    } else if (!symmetric()) {
      padded[2] += a.padding[0] + a.padding[2];
      padded[3] += a.padding[1] + a.padding[3];
      padding = {0, 0};
    }
    // Only the input's shape is looked at: an input without memory has it too.
    const at::Tensor like = at::empty({1}, g.options()).expand(padded);
    at::Tensor x = std::get<0>(at::convolution_backward(
        g, like, weight_, std::nullopt, a.stride, padding, a.dilation, /*transposed=*/false,
        /*output_padding=*/{0, 0}, a.groups, {true, false, false}));
    if (linear_) return x.reshape(sizes);
    if (!symmetric())
      x = x.slice(2, a.padding[0], a.padding[0] + sizes[2]).slice(3, a.padding[1], a.padding[1] + sizes[3]);
    return x;
  }

 private:
  // On the CPU a linear layer is a convolution of single pixels, which libtorch
  // computes row by row, so that a row does not depend on its place.
  static at::Tensor as_pixels(const at::Tensor& x) { return x.reshape({-1, x.size(-1), 1, 1}); }

  bool symmetric() const {
    const auto& p = op_.attributes.padding;
    return p[0] == p[2] && p[1] == p[3];
  }

  // cuDNN fuses convolution, bias, addition and ReLU for f32 and f16; a
  // depthwise convolution is faster in libtorch's own kernel.
  bool fused(const at::Tensor& x) const {
    return x.is_cuda() && at::globalContext().userEnabledCuDNN() && op_.kind == OpKind::kConv2d &&
           activation_ != nullptr && activation_->kind == OpKind::kRelu && op_.attributes.groups == 1 &&
           (dtype_ == at::kFloat || dtype_ == at::kHalf);
  }

  const Op& op_;
  const Op* activation_;
  bool linear_, product_;
  at::ScalarType dtype_;
  at::Tensor weight_, bias_;
};

}  // namespace

at::Tensor activated(const Op* activation, at::Tensor y) {
  if (activation == nullptr) return y;
  if (activation->kind == OpKind::kRelu) return at::relu_(y);
  if (activation->kind == OpKind::kRelu6) return at::hardtanh_(y, 0, 6);
  return op_definition(activation->kind).forward(*activation, {y}, {});
}

std::unique_ptr<Weighted> make_aten_weighted(const Step& step, at::Device device, at::ScalarType dtype) {
  return std::make_unique<AtenWeighted>(step, device, dtype);
}

}  // namespace assay
