// The steps of inference: a graph with batch norm folded into the convolutions
// before it, and with additions and activations hung onto them.
#pragma once

#include <ATen/ATen.h>

#include <vector>

#include "graph/graph.h"

namespace assay {

struct Step {
  const Op* op;   // the convolution, the linear layer or the op that runs as it is
  bool weighted;  // a convolution or a linear layer: out = activation(op(in) [+ residual])
  const Op* activation = nullptr;
  std::vector<int> inputs;  // value ids
  int residual = -1;        // value id, -1: none
  bool overwrite = false;   // the residual's memory may take the output
  int output;               // value id
  std::vector<int> dead;    // values that nothing reads after this step
  // Weighted: weight [O,I/groups,kH,kW] (a linear layer: [O,I,1,1]) and bias
  // [O], folded in double and rounded once. Others: the op's own parameters.
  std::vector<at::Tensor> parameters;
};

struct Plan {
  std::vector<Step> steps;
  size_t values;  // ids are below this
  int output;
  std::vector<int> alias;  // by value id: the one that stands for it (dropout's input for its output)
};

struct PlanOptions {
  // Values that must be written: nothing is hung onto the ops that make them.
  std::vector<int> keep = {};
  // Only activations whose derivative follows from their output are hung onto others.
  bool differentiable = false;
};

// state: by parameter index, on the CPU. The steps point into graph, which must
// outlive the plan.
Plan make_plan(const Graph& graph, const std::vector<at::Tensor>& state, at::ScalarType dtype,
               const PlanOptions& options = {});

// No NaN or infinity in any step's parameters.
bool finite(const Plan& plan);

}  // namespace assay
