// Engines: each runs a graph's plan on one kind of device.
#pragma once

#include <ATen/ATen.h>

#include <memory>
#include <vector>

#include "graph/black_box.h"
#include "graph/graph.h"
#include "graph/plan.h"

namespace assay {

class Engine {
 public:
  virtual ~Engine() = default;
  // x: [N,...] with N >= 1 in the graph's shape, on the engine's device, any
  // floating dtype. Returns [N,classes] in the engine's dtype. Called without
  // autograd.
  virtual at::Tensor forward(const at::Tensor& x) = 0;
};

// The plans' parameters are of that dtype.
//
// oneDNN's fused convolutions on the CPU; f32, or bf16 where oneDNN has it.
std::unique_ptr<Engine> make_onednn_engine(const Graph& graph, Plan plan, at::ScalarType dtype);
// Whether this libtorch and this CPU can do that.
bool onednn_supports(at::ScalarType dtype);

// libtorch's own convolutions, with cuDNN's fused ones on CUDA: any device, any dtype.
std::unique_ptr<Engine> make_aten_engine(Plan plan, at::Device device, at::ScalarType dtype, bool tf32);

// A network of which only the outside is known, on any device; box must outlive it.
std::unique_ptr<Engine> make_black_box_engine(BlackBox& box, at::Device device, at::ScalarType dtype,
                                              bool tf32);

// Runs the steps of a plan in order and frees values when they are dead.
// run_step(step, values): returns the step's output; values[id] are the values
// so far; may overwrite values[step.residual] where step.overwrite says so.
template <typename RunStep>
at::Tensor run_plan(const Plan& plan, const at::Tensor& x, RunStep&& run_step) {
  std::vector<at::Tensor> values(plan.values);
  values[0] = x;
  for (const Step& step : plan.steps) {
    at::Tensor output = run_step(step, values);
    for (int dead : step.dead) values[static_cast<size_t>(dead)] = at::Tensor();
    values[static_cast<size_t>(step.output)] = std::move(output);
  }
  return values[static_cast<size_t>(plan.output)];
}

}  // namespace assay
