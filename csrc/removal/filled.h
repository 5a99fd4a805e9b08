// Tensors of what is drawn.
#pragma once

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <cstdint>

namespace assay {

// On the CPU, f64: element i, in row-major order, is value(i) (uint64_t to double), asked for on several
// threads.
template <typename Value>
at::Tensor filled(at::IntArrayRef shape, const Value& value) {
  at::Tensor out = at::empty(shape, at::kDouble);
  auto* data = out.mutable_data_ptr<double>();
  at::parallel_for(0, out.numel(), 4096, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) data[i] = value(static_cast<uint64_t>(i));
  });
  return out;
}

}  // namespace assay
