// What each kind of op means: its name, its shape rule and its plain forward,
// in one table. Rule-based backward passes will stand in the same table.
#pragma once

#include <ATen/ATen.h>

#include <vector>

#include "graph/graph.h"

namespace assay {

struct OpDefinition {
  OpKind kind;
  const char* name;     // "conv2d", as in LayerInfo::op
  const char* summary;  // one line, with the attributes that it reads
  size_t inputs;
  // Shape of one row of the output. Throws invalid where the inputs do not fit.
  Shape (*shape)(const Op& op, const std::vector<Shape>& inputs);
  // The op in inference, recorded by autograd where that is on; writes to no
  // input and may return a view of one.
  at::Tensor (*forward)(const Op& op, const std::vector<at::Tensor>& inputs,
                        const std::vector<at::Tensor>& parameters);
};

const OpDefinition& op_definition(OpKind kind);

}  // namespace assay
