// Derivatives of ops, one rule a kind; weighted ops' stand in weighted.h.
#pragma once

#include <ATen/ATen.h>

#include <vector>

#include "graph/graph.h"

namespace assay {

// What an op of a plan had in its forward pass, as far as its rule needs it.
struct Passed {
  const Op& op;
  const std::vector<at::Tensor>& inputs;    // undefined where the rule does not read inputs
  std::vector<std::vector<int64_t>> sizes;  // of the inputs
  const std::vector<at::Tensor>& parameters;
  const at::Tensor& output;  // undefined where the rule does not read it
};

struct Derivative {
  // What must be kept of the forward pass.
  bool inputs = false;
  bool output = false;
  // Gradients with respect to the inputs, of the inputs' sizes, from that with respect to
  // the output. They may share memory with it and with each other.
  std::vector<at::Tensor> (*pull)(const Passed& passed, const at::Tensor& gradient);
};

// Kinds without a rule of their own are differentiated by autograd, one op at a time.
const Derivative& derivative(OpKind kind);

// How a backward pass goes through ReLU and ReLU6.
enum class ReluRule {
  kGradient,
  kGuided,         // relu(gradient) where the input was passed (Springenberg et al. 2015, section 3.4)
  kDeconvolution,  // relu(gradient) (Zeiler and Fergus 2014, section 2.1)
};

// Whether an activation's derivative follows from its output.
bool derivative_of_output(OpKind kind);
// Gradient with respect to the input of such an activation, of the sum of two gradients
// (the second may be undefined); writes over the gradient
// where `overwrite` says so. rule: for ReLU and ReLU6.
at::Tensor pull_activation(const Op& activation, at::Tensor gradient, const at::Tensor& more,
                           const at::Tensor& output, bool overwrite, ReluRule rule);

}  // namespace assay
