// Inference with libtorch's own operators: CUDA (cuDNN's fused convolutions,
// channels-last), f64, parameters with NaN, and CPUs without oneDNN.
#include <numeric>
#include <optional>
#include <vector>

#include "graph/engine.h"
#include "graph/ops.h"
#include "graph/tf32.h"
#include "graph/weighted.h"

namespace assay {
namespace {

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
      weighted_.push_back(step.weighted ? make_aten_weighted(step, device, dtype) : nullptr);
      if (step.weighted) step.parameters.clear();
      for (at::Tensor& parameter : step.parameters) parameter = parameter.to(device);
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
    const Weighted& kernel = *weighted_[static_cast<size_t>(&step - plan_.steps.data())];
    const at::Tensor residual =
        step.residual >= 0 ? values[static_cast<size_t>(step.residual)] : at::Tensor();
    return kernel.apply(values[static_cast<size_t>(step.inputs[0])], residual, step.overwrite);
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
  std::vector<std::unique_ptr<Weighted>> weighted_;  // by step; nullptr: not weighted
};

}  // namespace

std::unique_ptr<Engine> make_black_box_engine(BlackBox& box, at::Device device, at::ScalarType dtype,
                                              bool tf32) {
  return std::make_unique<BlackBoxEngine>(box, device, dtype, tf32);
}

std::unique_ptr<Engine> make_aten_engine(Plan plan, at::Device device, at::ScalarType dtype, bool tf32) {
  return std::make_unique<AtenEngine>(std::move(plan), device, dtype, tf32);
}

}  // namespace assay
