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
#include <limits>
#include <vector>

#include "graph/engine.h"
#include "graph/kernels.h"
#include "graph/weighted.h"

namespace assay {
namespace {

class OneDnnEngine final : public Engine {
 public:
  OneDnnEngine(const Graph& graph, Plan plan, at::ScalarType dtype) : dtype_(dtype), plan_(std::move(plan)) {
    for (Step& step : plan_.steps) {
      const Shape& input =
          step.inputs.empty() ? Shape() : graph.values[static_cast<size_t>(step.inputs[0])].shape;
      weighted_.push_back(step.weighted ? make_onednn_weighted(step, input, Use::kForward) : nullptr);
      if (step.weighted) step.parameters.clear();
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
  at::Tensor weighted(const Step& step, std::vector<at::Tensor>& values) const {
    const Weighted& kernel = *weighted_[static_cast<size_t>(&step - plan_.steps.data())];
    const at::Tensor residual =
        step.residual >= 0 ? values[static_cast<size_t>(step.residual)] : at::Tensor();
    return kernel.apply(values[static_cast<size_t>(step.inputs[0])], residual, step.overwrite);
  }

  at::Tensor plain(const Step& step, const std::vector<at::Tensor>& values) const {
    std::vector<at::Tensor> inputs;
    for (int input : step.inputs) inputs.push_back(values[static_cast<size_t>(input)]);
    return onednn_plain(step, inputs);
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
  std::vector<std::unique_ptr<Weighted>> weighted_;  // by step; nullptr: not weighted
};

}  // namespace

std::unique_ptr<Engine> make_onednn_engine(const Graph& graph, Plan plan, at::ScalarType dtype) {
  return std::make_unique<OneDnnEngine>(graph, std::move(plan), dtype);
}

}  // namespace assay
