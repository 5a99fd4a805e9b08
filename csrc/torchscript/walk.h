// The program of a TorchScript module, run with unknown rows, as a graph.
#pragma once

#include <torch/script.h>

#include "graph/graph.h"
#include "torchscript/call.h"

namespace assay::script {

// module: in eval mode. input: shape of one row. The modules' paths name the ops,
// the parameters keep their names of the state dict. Branches and loops are
// followed where what they depend on is known without the rows' values; an
// operator on constants is run as it is.
// Throws NoCounterpart where that ends, and invalid where the graph does not fit.
Target::Finished import_module(const torch::jit::Module& module, const Shape& input);

}  // namespace assay::script
