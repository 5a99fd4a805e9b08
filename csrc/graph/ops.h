// What each kind of op means: its name, its attributes and parameters, its shape
// rule and its plain forward, in one table. Rule-based backward passes will stand
// in the same table.
#pragma once

#include <ATen/ATen.h>

#include <string>
#include <vector>

#include "graph/graph.h"

namespace assay {

// Values of OpDefinition::inputs beside a number of inputs.
inline constexpr size_t kOneOrMore = 1000;

struct OpDefinition {
  OpKind kind;
  const char* name;     // "conv2d", as in LayerInfo::op and in files
  const char* summary;  // one line
  size_t inputs;        // how many, or kOneOrMore
  // The fields of Attributes that it reads.
  std::vector<std::string> attributes;
  // Shape of one row of the output. Throws invalid where the inputs or the
  // attributes do not fit.
  Shape (*shape)(const Op& op, const std::vector<Shape>& inputs);
  // What it reads, in order; names are suffixes of the op's (".weight"). nullptr: nothing.
  std::vector<ParameterInfo> (*parameters)(const Op& op, const std::vector<Shape>& inputs);
  // The op in inference, recorded by autograd where that is on; writes to no
  // input and may return a view of one. Optional parameters are not handed over.
  at::Tensor (*forward)(const Op& op, const std::vector<at::Tensor>& inputs,
                        const std::vector<at::Tensor>& parameters);
  bool view = false;            // the output may share the input's memory
  bool activation = false;      // elementwise, may be hung onto a convolution
  bool transcendental = false;  // elementwise, with functions whose vectorised last digit may differ
};

// How many positions a window (kernel, stride, padding, dilation, ceil) has along
// an axis of so many elements; axis 0: height, 1: width. 0 or less: it does not fit.
int64_t window_positions(const Attributes& window, size_t axis, int64_t size);

// All of them, in the order of OpKind.
const std::vector<OpDefinition>& op_definitions();
const OpDefinition& op_definition(OpKind kind);
// By name; nullptr: there is none.
const OpDefinition* find_op(const std::string& name);

}  // namespace assay
