// Masks of dropout from the counter-based generator.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>

namespace assay {

// What dropout multiplies with: 0 with the given probability, else
// 1 / (1 - probability), in the options' type and on their device, contiguous.
// Element i (row-major) is dropped where word i % 4 of philox(key, i / 4, step)
// is below probability * 2^32: it depends on nothing else, and on no device.
at::Tensor dropout_mask(at::IntArrayRef shape, double probability, uint64_t key, uint64_t step,
                        const at::TensorOptions& options);

// The same by tensor operations, as on GPUs; for tests.
at::Tensor dropout_mask_by_tensors(at::IntArrayRef shape, double probability, uint64_t key, uint64_t step,
                                   const at::TensorOptions& options);

}  // namespace assay
