#include "removal/noise.h"

#include <ATen/Dispatch.h>
#include <ATen/Parallel.h>

#include <cmath>
#include <vector>

#include "api/error.h"
#include "removal/philox.h"

namespace assay {

at::Tensor noisy(const at::Tensor& images, const NoisyRow* rows, int64_t count, double radius) {
  if (!images.is_cpu() || (images.scalar_type() != at::kFloat && images.scalar_type() != at::kDouble)) {
    throw invalid("images: want f32 or f64 on the CPU");
  }
  if (images.dim() < 2) throw invalid("images ", images.sizes(), ": want [N,...]");
  if (!(radius >= 0) || std::isinf(radius)) throw invalid("radius ", radius, ": want a number >= 0");
  for (int64_t i = 0; i < count; ++i) {
    if (rows[i].row < 0 || rows[i].row >= images.size(0)) {
      throw invalid("row[", i, "] is ", rows[i].row, ": want 0..", images.size(0) - 1);
    }
  }
  const at::Tensor from = images.contiguous();
  std::vector<int64_t> shape = from.sizes().vec();
  shape[0] = count;
  at::Tensor out = at::empty(shape, from.options());
  const int64_t each = from.numel() / from.size(0);
  AT_DISPATCH_FLOATING_TYPES(from.scalar_type(), "noisy", [&] {
    const scalar_t* source = from.const_data_ptr<scalar_t>();
    scalar_t* target = out.mutable_data_ptr<scalar_t>();
    at::parallel_for(0, count * each, 4096, [&](int64_t begin, int64_t end) {
      for (int64_t at = begin; at < end; ++at) {
        const NoisyRow& row = rows[at / each];
        const int64_t j = at % each;
        double value = source[row.row * each + j];
        if (radius > 0) {
          value += radius * (2 * philox_uniform(row.key, static_cast<uint64_t>(j), row.sample) - 1);
        }
        target[at] = static_cast<scalar_t>(value);
      }
    });
  });
  return out;
}

}  // namespace assay
