// Devices: what there is, how much memory, loading the CUDA half of libtorch.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace assay {

// Loads libtorch_cuda.so (found by RPATH) where it and a driver are there;
// remembers why not otherwise. Safe to call more than once.
void load_cuda();

// {built, available, reason?, devices: [{name, memory}]}.
nlohmann::json describe_cuda();

}  // namespace assay
