// Philox4x32-10, the twin of internal/rng: a number is a pure function of
// (key, index, draw). Salmon, Moraes, Dror and Shaw, SC 2011.
#pragma once

#include <array>
#include <cstdint>

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

}  // namespace assay
