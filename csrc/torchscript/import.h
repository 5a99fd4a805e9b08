// The graph of a frozen TorchScript module as a network description.
#pragma once

#include <torch/script.h>

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "graph/graph.h"

namespace assay {

// Why a module stays a black box.
struct NoCounterpart : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Imported {
  Graph graph;
  std::vector<std::pair<std::string, at::Tensor>> state;
};

// frozen: with its parameters as constants; named: the original's parameters and
// buffers, after which the constants are called. input: shape of one row.
// Throws NoCounterpart where an operator, or the way it is used, has none.
Imported import_script(const torch::jit::Module& frozen,
                       const std::vector<std::pair<std::string, at::Tensor>>& named, const Shape& input);

}  // namespace assay
