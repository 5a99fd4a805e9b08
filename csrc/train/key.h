// Keys of random numbers, the twin of internal/rng.Key: what is drawn here can
// be drawn again in Go.
#pragma once

#include <cstdint>
#include <string_view>

namespace assay {

// The 64-bit key of the stream of (seed, purpose, id): the first eight bytes,
// little-endian, of SHA-256(seed, length of purpose, purpose, id), numbers as
// eight bytes, little-endian.
uint64_t random_key(uint64_t seed, std::string_view purpose, std::string_view id);

}  // namespace assay
