#include "attribution/draws.h"

#include <ATen/Parallel.h>
#include <c10/util/accumulate.h>

#include <numbers>

#include "removal/philox.h"

namespace assay {
namespace {

uint64_t high(Draw purpose, uint64_t index) { return static_cast<uint64_t>(purpose) << 56 | index; }

// Normal numbers of words [...,4], as pairs.
at::Tensor box_muller(const at::Tensor& first, const at::Tensor& second) {
  const at::Tensor radius = first.log_().mul_(-2).sqrt_();
  const at::Tensor angle = second.mul_(2 * std::numbers::pi);
  return at::stack({radius * at::cos(angle), radius * at::sin(angle)}, -1);
}

// One row on the CPU: u and v of every pair, [2 blocks] each.
template <typename T>
void fill_pairs(uint64_t key, uint64_t index, int64_t blocks, T* u, T* v) {
  at::parallel_for(0, blocks, 2048, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) {
      const auto words = philox(key, static_cast<uint64_t>(b), index);
      const auto unit = [&](size_t i) {
        return static_cast<T>((static_cast<double>(words[i]) + .5) * 0x1p-32);
      };
      u[2 * b] = unit(0);
      v[2 * b] = unit(1);
      u[2 * b + 1] = unit(2);
      v[2 * b + 1] = unit(3);
    }
  });
}

}  // namespace

at::Tensor philox_words(const std::vector<uint64_t>& keys, const std::vector<uint64_t>& indices, Draw purpose,
                        int64_t blocks, at::Device device) {
  const int64_t rows = static_cast<int64_t>(keys.size());
  constexpr int64_t kLow = 0xffffffff;
  at::Tensor key = at::empty({rows, 2}, at::kLong), index = at::empty({rows, 2}, at::kLong);
  for (int64_t r = 0; r < rows; ++r) {
    const uint64_t k = keys[static_cast<size_t>(r)], i = high(purpose, indices[static_cast<size_t>(r)]);
    for (int64_t half = 0; half < 2; ++half) {
      key[r][half] = static_cast<int64_t>(k >> (32 * half) & kLow);
      index[r][half] = static_cast<int64_t>(i >> (32 * half) & kLow);
    }
  }
  key = key.to(device);
  index = index.to(device);
  const at::Tensor block =
      at::arange(blocks, at::TensorOptions(device).dtype(at::kLong)).unsqueeze(0).expand({rows, blocks});
  at::Tensor c0 = block.bitwise_and(kLow), c1 = block.bitwise_right_shift(32);
  at::Tensor c2 = index.select(1, 0).unsqueeze(1).expand({rows, blocks});
  at::Tensor c3 = index.select(1, 1).unsqueeze(1).expand({rows, blocks});
  at::Tensor k0 = key.select(1, 0).unsqueeze(1), k1 = key.select(1, 1).unsqueeze(1);
  for (int round = 0; round < 10; ++round) {
    // The product of two words fits 64 bits; its sign does not matter for its halves.
    const at::Tensor p0 = c0.mul(int64_t{0xD2511F53}), p1 = c2.mul(int64_t{0xCD9E8D57});
    const at::Tensor h0 = p0.bitwise_right_shift(32).bitwise_and(kLow),
                     h1 = p1.bitwise_right_shift(32).bitwise_and(kLow);
    const at::Tensor n0 = h1.bitwise_xor(c1).bitwise_xor(k0), n2 = h0.bitwise_xor(c3).bitwise_xor(k1);
    c1 = p1.bitwise_and(kLow);
    c3 = p0.bitwise_and(kLow);
    c0 = n0;
    c2 = n2;
    k0 = k0.add(int64_t{0x9E3779B9}).bitwise_and(kLow);
    k1 = k1.add(int64_t{0xBB67AE85}).bitwise_and(kLow);
  }
  return at::stack({c0, c1, c2, c3}, -1);
}

at::Tensor normals(const std::vector<uint64_t>& keys, const std::vector<uint64_t>& indices, Draw purpose,
                   at::IntArrayRef shape, at::Device device, at::ScalarType dtype) {
  const int64_t rows = static_cast<int64_t>(keys.size()), each = c10::multiply_integers(shape);
  const int64_t blocks = (each + 3) / 4;
  std::vector<int64_t> sizes = shape.vec();
  sizes.insert(sizes.begin(), rows);
  if (!device.is_cpu()) {
    const at::Tensor unit =
        philox_words(keys, indices, purpose, blocks, device).to(at::kDouble).add_(.5).mul_(0x1p-32).to(dtype);
    const at::Tensor pairs = unit.view({rows, blocks * 2, 2});
    return box_muller(pairs.select(2, 0).contiguous(), pairs.select(2, 1).contiguous())
        .view({rows, blocks * 4})
        .narrow(1, 0, each)
        .reshape(sizes);
  }
  const at::TensorOptions options =
      at::TensorOptions(at::kCPU).dtype(dtype == at::kDouble ? at::kDouble : at::kFloat);
  at::Tensor out = at::empty({rows, each}, options);
  for (int64_t r = 0; r < rows; ++r) {  // every row by itself: see onednn_engine.cc
    const size_t i = static_cast<size_t>(r);
    const at::Tensor u = at::empty({2 * blocks}, options), v = at::empty({2 * blocks}, options);
    if (dtype == at::kDouble) {
      fill_pairs(keys[i], high(purpose, indices[i]), blocks, u.data_ptr<double>(), v.data_ptr<double>());
    } else {
      fill_pairs(keys[i], high(purpose, indices[i]), blocks, u.data_ptr<float>(), v.data_ptr<float>());
    }
    out[r].copy_(box_muller(u, v).flatten().narrow(0, 0, each));
  }
  return out.view(sizes);
}

double uniform(uint64_t key, uint64_t index, Draw purpose) {
  return philox_uniform(key, index, high(purpose, 0));
}

uint64_t inner_key(uint64_t key, uint64_t index) {
  const auto words = philox(key, index, high(Draw::kInner, 0));
  return words[0] | uint64_t{words[1]} << 32;
}

}  // namespace assay
