// Rows with uniform noise, for scores of how much a map moves when its image
// hardly does.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>

namespace assay {

// A row of images with noise that is a function of (key, sample) alone.
struct NoisyRow {
  int64_t row;
  uint64_t key, sample;
};

// Element j of row i of the result is element j of images[rows[i].row] plus
// radius (2 u - 1), u = philox_uniform(key, j, sample) in [0,1), j counting a row's
// elements in row-major order. images: [N,...], f32 or f64, on the CPU.
// radius 0: copies. Throws invalid for rows outside 0..N-1 and a radius that is
// negative or not finite.
at::Tensor noisy(const at::Tensor& images, const NoisyRow* rows, int64_t count, double radius);

}  // namespace assay
