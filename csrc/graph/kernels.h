// CPU kernels for channels-last f32, where libtorch's own do more than inference
// needs (its max-pooling also stores where each maximum was).
#pragma once

#include <ATen/ATen.h>

#include <vector>

#include "graph/graph.h"

namespace assay {

// x: [N,C,H,W] f32, channels-last contiguous, on the CPU; so is the result.
// NaN in a window gives NaN. Windows lie at least partly on the image.
at::Tensor max_pool_channels_last(const at::Tensor& x, const Attributes& window);

// Its gradient with respect to x: that of every window goes to its first maximum, in
// row-major order. All channels-last contiguous f32; y = max_pool_channels_last(x).
at::Tensor pull_max_pool_channels_last(const at::Tensor& gradient, const at::Tensor& x, const at::Tensor& y,
                                       const Attributes& window);

// a = a + b where 0 < y < upper, else 0: a sum of gradients through a ReLU that gave y.
// All f32 with the same sizes and strides, without gaps.
void add_within(at::Tensor& a, const at::Tensor& b, const at::Tensor& y, float upper);

// [N,C,H,W] -> [N,C,1,1]: the mean of each channel, summed pixel by pixel in
// row-major order.
at::Tensor global_avg_pool_channels_last(const at::Tensor& x);

// For every row of the contiguous f32 x [N,...]: whether it holds a NaN or an infinity.
std::vector<bool> rows_not_finite(const at::Tensor& x);

}  // namespace assay
