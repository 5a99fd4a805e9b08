// Inference with libtorch's own operators: CUDA (cuDNN's fused convolutions,
// channels-last), f64, parameters with NaN, and CPUs without oneDNN.
#include <algorithm>
#include <array>
#include <condition_variable>
#include <mutex>
#include <numeric>
#include <optional>
#include <vector>

#include "graph/engine.h"
#include "graph/ops.h"

namespace assay {
namespace {

// TF32 for the time of one call. libtorch keeps the choice for the whole process:
// calls for several GPUs share a turn where they agree, else wait for one.
class TF32Guard {
 public:
  explicit TF32Guard(bool on) {
    Turn& turn = Turn::get();
    std::unique_lock lock(turn.mutex);
    turn.changed.wait(lock, [&] { return turn.users == 0 || turn.on == on; });
    if (turn.users++ > 0) return;
    turn.on = on;
    turn.convolutions = at::globalContext().allowTF32CuDNN();
    turn.products = at::globalContext().allowTF32CuBLAS();
    set(on, on);
  }
  ~TF32Guard() {
    Turn& turn = Turn::get();
    {
      const std::lock_guard lock(turn.mutex);
      if (--turn.users > 0) return;
      set(turn.convolutions, turn.products);
    }
    turn.changed.notify_all();
  }
  TF32Guard(const TF32Guard&) = delete;
  TF32Guard& operator=(const TF32Guard&) = delete;

 private:
  struct Turn {
    std::mutex mutex;
    std::condition_variable changed;
    int users = 0;
    bool on = false;
    bool convolutions = false, products = false;  // as they were before

    static Turn& get() {
      static Turn turn;
      return turn;
    }
  };

  static void set(bool convolutions, bool products) {
    at::globalContext().setAllowTF32CuDNN(convolutions);
    at::globalContext().setAllowTF32CuBLAS(products);
  }
};

// A row with NaN or infinity has NaN for every logit, whatever the activations of
// a backend make of it: (x * 0) is 0 for finite x.
at::Tensor marked(const at::Tensor& x, const at::Tensor& logits) {
  std::vector<int64_t> row(static_cast<size_t>(x.dim() - 1));
  std::iota(row.begin(), row.end(), 1);
  return logits + (x * 0).sum(row).unsqueeze(1);
}

class BlackBoxEngine final : public Engine {
 public:
  BlackBoxEngine(BlackBox& box, at::Device device, at::ScalarType dtype, bool tf32)
      : box_(box), device_(device), dtype_(dtype), tf32_(tf32) {}

  at::Tensor forward(const at::Tensor& input) override {
    std::optional<TF32Guard> guard;
    if (device_.is_cuda()) guard.emplace(tf32_);
    const at::Tensor x = input.to(dtype_);
    return marked(x, box_.forward(x));
  }

 private:
  BlackBox& box_;
  at::Device device_;
  at::ScalarType dtype_;
  bool tf32_;
};

class AtenEngine final : public Engine {
 public:
  AtenEngine(Plan plan, at::Device device, at::ScalarType dtype, bool tf32)
      : device_(device), dtype_(dtype), tf32_(tf32), plan_(std::move(plan)) {
    for (Step& step : plan_.steps) {
      for (at::Tensor& parameter : step.parameters) {
        parameter = parameter.to(device);
        if (device.is_cuda() && parameter.dim() == 4) {
          parameter = parameter.contiguous(at::MemoryFormat::ChannelsLast);
        }
      }
    }
  }

  at::Tensor forward(const at::Tensor& input) override {
    std::optional<TF32Guard> guard;
    if (device_.is_cuda()) guard.emplace(tf32_);
    at::Tensor x = input.to(dtype_);
    if (x.dim() == 4 && device_.is_cuda()) x = x.contiguous(at::MemoryFormat::ChannelsLast);
    at::Tensor logits = run_plan(plan_, x, [this](const Step& step, std::vector<at::Tensor>& values) {
      return step.weighted ? weighted(step, values) : plain(step, values);
    });
    return marked(x, logits);
  }

 private:
  at::Tensor weighted(const Step& step, std::vector<at::Tensor>& values) const {
    const Attributes& a = step.op->attributes;
    const bool linear = step.op->kind == OpKind::kLinear;
    const at::Tensor& weight = step.parameters[0];
    const at::Tensor& bias = step.parameters[1];
    at::Tensor x = values[static_cast<size_t>(step.inputs[0])];
    at::Tensor residual;
    if (step.residual >= 0) residual = values[static_cast<size_t>(step.residual)];
    // On the CPU a linear layer is a convolution of single pixels, which libtorch
    // computes row by row, so that a row does not depend on its place.
    const bool product = linear && device_.is_cuda();
    Shape outputs;  // of a linear layer
    if (linear) {
      outputs = x.sizes().vec();
      outputs.back() = weight.size(0);
    }
    if (linear && !product) x = x.reshape({-1, x.size(-1), 1, 1});
    std::array<int64_t, 2> padding = {a.padding[0], a.padding[1]};
    if (a.padding[2] != padding[0] || a.padding[3] != padding[1]) {
      x = at::constant_pad_nd(x, {a.padding[1], a.padding[3], a.padding[0], a.padding[2]});
      padding = {0, 0};
    }
    if (fused(step)) {
      if (residual.defined()) {
        return at::cudnn_convolution_add_relu(x, weight, residual, 1, bias, a.stride, padding, a.dilation,
                                              a.groups);
      }
      return at::cudnn_convolution_relu(x, weight, bias, a.stride, padding, a.dilation, a.groups);
    }
    at::Tensor y = product ? at::linear(x, weight.flatten(1), bias)
                           : at::conv2d(x, weight, bias, a.stride, padding, a.dilation, a.groups);
    if (linear && !product) y = y.reshape(outputs);
    if (residual.defined()) y.add_(residual);
    return activated(step.activation, y);
  }

  // cuDNN fuses convolution, bias, addition and ReLU for f32 and f16; a
  // depthwise convolution is faster in libtorch's own kernel.
  bool fused(const Step& step) const {
    return device_.is_cuda() && at::globalContext().userEnabledCuDNN() && step.op->kind == OpKind::kConv2d &&
           step.activation != nullptr && step.activation->kind == OpKind::kRelu &&
           step.op->attributes.groups == 1 && (dtype_ == at::kFloat || dtype_ == at::kHalf);
  }

  at::Tensor plain(const Step& step, const std::vector<at::Tensor>& values) const {
    std::vector<at::Tensor> inputs;
    for (int input : step.inputs) inputs.push_back(values[static_cast<size_t>(input)]);
    return op_definition(step.op->kind).forward(*step.op, inputs, step.parameters);
  }

  at::Device device_;
  at::ScalarType dtype_;
  bool tf32_;
  Plan plan_;
};

}  // namespace

std::unique_ptr<Engine> make_black_box_engine(BlackBox& box, at::Device device, at::ScalarType dtype,
                                              bool tf32) {
  return std::make_unique<BlackBoxEngine>(box, device, dtype, tf32);
}

at::Tensor activated(const Op* activation, at::Tensor y) {
  if (activation == nullptr) return y;
  if (activation->kind == OpKind::kRelu) return at::relu_(y);
  if (activation->kind == OpKind::kRelu6) return at::hardtanh_(y, 0, 6);
  return op_definition(activation->kind).forward(*activation, {y}, {});
}

std::unique_ptr<Engine> make_aten_engine(Plan plan, at::Device device, at::ScalarType dtype, bool tf32) {
  return std::make_unique<AtenEngine>(std::move(plan), device, dtype, tf32);
}

}  // namespace assay
