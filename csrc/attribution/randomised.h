// Copies of nets with new parameters in some layers, for the sanity check of maps
// (Adebayo et al. 2018, section 3): a method that explains the net gives other maps.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "graph/net.h"

namespace assay {

// The ops that have parameters, in the graph's order; none for black boxes.
std::vector<LayerInfo> parametrised_layers(const Net& net);

// A copy on the same device at the same precision, ready to run, in which the
// parameters of the named ops are drawn anew by initial_parameters(seed): those of
// a layer depend on (seed, their names) alone, so that one layer at a time, on the
// copy of a copy, gives the same net as all at once. Statistics of batch norms
// become 0 and 1.
// Throws invalid before prepare and for ops without parameters, not-found for
// names that the net has not, unsupported for black boxes.
std::unique_ptr<Net> randomised(const Net& net, const std::vector<std::string>& layers, uint64_t seed);

}  // namespace assay
