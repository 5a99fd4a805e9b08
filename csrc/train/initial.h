// The parameters that training starts from.
#pragma once

#include <ATen/ATen.h>

#include <cstddef>
#include <cstdint>
#include <set>
#include <vector>

#include "graph/graph.h"

namespace assay {

// One tensor a parameter of the graph, on the CPU, f64; undefined for those that
// no op reads and that may be missing. The distributions are those of PyTorch's layers:
// - convolutions and linear layers: weight and bias uniform in +-1/sqrt(fan_in)
//   (kaiming_uniform with a = sqrt 5), fan_in = elements of weight[0];
// - norms: weight 1, bias 0, running mean 0, running variance 1;
// - parameters that stand as values (class tokens, positions): normal with
//   standard deviation 0.02, as in Dosovitskiy et al. 2021.
// The numbers are a function of (seed, name, place in the tensor) alone:
// rng.New(seed, "train/initial", name). only: the parameters (by index) that are
// wanted, the others stay undefined; NULL: all.
std::vector<at::Tensor> initial_parameters(const Graph& graph, uint64_t seed,
                                           const std::set<size_t>* only = nullptr);

}  // namespace assay
