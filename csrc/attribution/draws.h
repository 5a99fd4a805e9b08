// Random numbers of methods: pure functions of (a row's key, purpose, index,
// element), so that they do not depend on batches, order or number of rows.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <vector>

namespace assay {

// What numbers are for; numbers of different purposes are unrelated.
enum class Draw : uint64_t { kNoise = 1, kInterpolation = 2, kReference = 3, kInner = 4 };

// [R,shape...]: element e of row r is normal number e of (keys[r], indices[r]),
// standard normal. Elements 4b..4b+3 come from block b: philox(key, b, purpose << 56 |
// index) gives words w0..w3, and two pairs by Box and Muller, (w0,w1) and (w2,w3):
// u = (w0 + 1/2) / 2^32, v = (w1 + 1/2) / 2^32, sqrt(-2 log u) (cos 2 pi v, sin 2 pi v). In
// f32 (f64 where dtype is): the words are the same, the functions are of that type.
at::Tensor normals(const std::vector<uint64_t>& keys, const std::vector<uint64_t>& indices, Draw purpose,
                   at::IntArrayRef shape, at::Device device, at::ScalarType dtype);
// The words by integer operations of libtorch, on any device: [R,blocks,4] int64. The
// other way of making them; here for the test that both agree.
at::Tensor philox_words(const std::vector<uint64_t>& keys, const std::vector<uint64_t>& indices, Draw purpose,
                        int64_t blocks, at::Device device);

// U[0,1): philox_uniform(key, index, purpose << 56).
double uniform(uint64_t key, uint64_t index, Draw purpose);

// The key of sample `index` of a row, for a method within another.
uint64_t inner_key(uint64_t key, uint64_t index);

}  // namespace assay
