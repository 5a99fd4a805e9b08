#include "train/dropout.h"

#include <ATen/Dispatch.h>
#include <ATen/Parallel.h>
#include <c10/util/accumulate.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "removal/philox.h"

namespace assay {
namespace {

constexpr int64_t kWords = 0xffffffff;

uint64_t threshold(double probability) { return static_cast<uint64_t>(std::ldexp(probability, 32)); }

double factor(double probability) { return probability < 1 ? 1 / (1 - probability) : 0; }

// The high and the low word of a 32-bit constant times x (32-bit values in int64).
std::array<at::Tensor, 2> product(int64_t constant, const at::Tensor& x) {
  const at::Tensor p = x * constant;  // wraps around: its 64 bits are right
  return {at::bitwise_and(at::bitwise_right_shift(p, 32), kWords), at::bitwise_and(p, kWords)};
}

}  // namespace

at::Tensor dropout_mask_by_tensors(at::IntArrayRef shape, double probability, uint64_t key, uint64_t step,
                                   const at::TensorOptions& options) {
  const int64_t count = c10::multiply_integers(shape), blocks = (count + 3) / 4;
  const at::TensorOptions integers = options.dtype(at::kLong);
  const at::Tensor index = at::arange(blocks, integers);
  std::array<at::Tensor, 4> c = {at::bitwise_and(index, kWords), at::bitwise_right_shift(index, 32),
                                 at::full({blocks}, static_cast<int64_t>(step & kWords), integers),
                                 at::full({blocks}, static_cast<int64_t>(step >> 32), integers)};
  auto k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const auto p0 = product(0xD2511F53, c[0]), p1 = product(0xCD9E8D57, c[2]);
    c = {at::bitwise_xor(at::bitwise_xor(p1[0], c[1]), int64_t{k0}), p1[1],
         at::bitwise_xor(at::bitwise_xor(p0[0], c[3]), int64_t{k1}), p0[1]};
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  const at::Tensor words = at::stack(c, 1).flatten().narrow(0, 0, count);
  return (words >= static_cast<int64_t>(threshold(probability)))
      .to(options)
      .mul_(factor(probability))
      .view(shape);
}

at::Tensor dropout_mask(at::IntArrayRef shape, double probability, uint64_t key, uint64_t step,
                        const at::TensorOptions& options) {
  if (!options.device().is_cpu()) return dropout_mask_by_tensors(shape, probability, key, step, options);
  at::Tensor mask = at::empty(shape, options);
  const int64_t count = mask.numel();
  const uint64_t below = threshold(probability);
  AT_DISPATCH_FLOATING_TYPES(mask.scalar_type(), "dropout_mask", [&] {
    auto* data = mask.mutable_data_ptr<scalar_t>();
    const auto keep = static_cast<scalar_t>(factor(probability));
    at::parallel_for(0, (count + 3) / 4, 1024, [&](int64_t begin, int64_t end) {
      for (int64_t block = begin; block < end; ++block) {
        const auto words = philox(key, static_cast<uint64_t>(block), step);
        for (int64_t i = 4 * block; i < std::min(count, 4 * block + 4); ++i) {
          data[i] = words[static_cast<size_t>(i % 4)] < below ? scalar_t(0) : keep;
        }
      }
    });
  });
  return mask;
}

}  // namespace assay
