// Philox4x32-10, the twin of internal/rng: a number is a pure function of
// (key, index, draw). Salmon, Moraes, Dror and Shaw, SC 2011.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <utility>
#include <vector>

namespace assay {

inline std::array<uint32_t, 4> philox(uint64_t key, uint64_t low, uint64_t high) {
  std::array<uint32_t, 4> c{static_cast<uint32_t>(low), static_cast<uint32_t>(low >> 32),
                            static_cast<uint32_t>(high), static_cast<uint32_t>(high >> 32)};
  uint32_t k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = uint64_t{0xD2511F53} * c[0];
    const uint64_t p1 = uint64_t{0xCD9E8D57} * c[2];
    c = {static_cast<uint32_t>(p1 >> 32) ^ c[1] ^ k0, static_cast<uint32_t>(p1),
         static_cast<uint32_t>(p0 >> 32) ^ c[3] ^ k1, static_cast<uint32_t>(p0)};
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  return c;
}

// U[0,1), a multiple of 2^-53: rng.Stream.Float64(index, draw).
inline double philox_uniform(uint64_t key, uint64_t index, uint64_t draw) {
  const auto words = philox(key, index, draw);
  return static_cast<double>((words[0] | uint64_t{words[1]} << 32) >> 11) * 0x1p-53;
}

// Standard normal, by Box and Muller from one block: rng.Stream.Normal(index, draw).
inline double philox_normal(uint64_t key, uint64_t index, uint64_t draw) {
  const auto words = philox(key, index, draw);
  const double u = static_cast<double>((words[0] | uint64_t{words[1]} << 32) >> 11) * 0x1p-53;
  const double v = static_cast<double>((words[2] | uint64_t{words[3]} << 32) >> 11) * 0x1p-53;
  return std::sqrt(-2 * std::log1p(-u)) * std::cos(2 * std::numbers::pi * v);
}

// Uniform on 0..n-1 without bias (Lemire 2019), n >= 1: rng.Stream.IntN(index, draw, n).
inline int64_t philox_below(uint64_t key, uint64_t index, uint64_t draw, int64_t n) {
  const uint64_t bound = static_cast<uint64_t>(n);
  for (uint64_t attempt = 0;; ++attempt) {
    const auto words = philox(key, index, draw | attempt << 32);
    for (const uint64_t word : {words[0] | uint64_t{words[1]} << 32, words[2] | uint64_t{words[3]} << 32}) {
      const __uint128_t product = static_cast<__uint128_t>(word) * bound;
      const uint64_t low = static_cast<uint64_t>(product);
      if (low >= bound || low >= -bound % bound) return static_cast<int64_t>(product >> 64);
    }
  }
}

// A permutation of 0..n-1, uniform over all: rng.Stream.Perm(index, n).
inline std::vector<int64_t> philox_permutation(uint64_t key, uint64_t index, int64_t n) {
  std::vector<int64_t> order(static_cast<size_t>(n));
  for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int64_t>(i);
  for (int64_t i = n - 1; i > 0; --i) {
    const int64_t j = philox_below(key, index, static_cast<uint64_t>(i), i + 1);
    std::swap(order[static_cast<size_t>(i)], order[static_cast<size_t>(j)]);
  }
  return order;
}

}  // namespace assay
