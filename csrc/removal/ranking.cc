#include "removal/ranking.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <numeric>

#include "api/error.h"
#include "removal/philox.h"

namespace assay {
namespace {

// Unsigned numbers in the reverse order of floats; -0 and 0 are one value.
uint32_t descending(float value) {
  if (std::isnan(value)) return std::numeric_limits<uint32_t>::max();
  const uint32_t bits = std::bit_cast<uint32_t>(value + 0.0f);
  return bits & 0x80000000u ? bits : ~(bits | 0x80000000u);
}

// Stable, so that ties keep the order that they came in: three digits of 11 bits.
void sort_by(const std::vector<uint32_t>& keys, std::vector<int32_t>& order) {
  constexpr int kBits = 11;
  constexpr uint32_t kMask = (1u << kBits) - 1;
  std::vector<int32_t> other(order.size());
  for (int shift = 0; shift < 32; shift += kBits) {
    std::array<int32_t, size_t{1} << kBits> begin{};
    for (const uint32_t key : keys) ++begin[key >> shift & kMask];
    int32_t sum = 0;
    for (int32_t& b : begin) sum += std::exchange(b, sum);
    for (const int32_t i : order) {
      other[static_cast<size_t>(begin[keys[static_cast<size_t>(i)] >> shift & kMask]++)] = i;
    }
    order.swap(other);
  }
}

}  // namespace

Ties ties_of(const std::string& name) {
  if (name == "random") return Ties::kRandom;
  if (name == "index") return Ties::kIndex;
  if (name == "noise") return Ties::kNoise;
  throw invalid("ties \"", name, "\": want random, index or noise");
}

std::vector<int32_t> ranked(const float* map, int64_t n, Ties ties, uint64_t key) {
  std::vector<int32_t> order(static_cast<size_t>(n));
  if (ties == Ties::kRandom) {
    const std::vector<int64_t> permutation = philox_permutation(key, 0, n);
    std::copy(permutation.begin(), permutation.end(), order.begin());
  } else {
    std::iota(order.begin(), order.end(), 0);
  }
  if (map == nullptr && ties != Ties::kNoise) return order;
  std::vector<uint32_t> keys(static_cast<size_t>(n));
  if (ties != Ties::kNoise) {
    for (size_t i = 0; i < keys.size(); ++i) keys[i] = descending(map[i]);
  } else {
    const auto at = [&](size_t i) { return map == nullptr ? 0.0 : static_cast<double>(map[i]); };
    double low = std::numeric_limits<double>::infinity(), high = -low;
    for (size_t i = 0; i < keys.size(); ++i) {
      low = std::min(low, at(i));
      high = std::max(high, at(i));
    }
    const double range = high > low ? high - low : 1;
    for (size_t i = 0; i < keys.size(); ++i) {
      keys[i] = descending(static_cast<float>((at(i) - low) / range + 1e-4 * philox_normal(key, i, 0)));
    }
  }
  sort_by(keys, order);
  return order;
}

at::Tensor removed_by(const std::vector<std::vector<int32_t>>& rankings, const std::vector<RemovalRow>& rows,
                      int64_t n) {
  at::Tensor removed = at::zeros({static_cast<int64_t>(rows.size()), n}, at::kBool);
  bool* const mask = removed.data_ptr<bool>();
  at::parallel_for(0, static_cast<int64_t>(rows.size()), 1, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const RemovalRow& row = rows[static_cast<size_t>(r)];
      const int32_t* const order = rankings[static_cast<size_t>(row.image)].data();
      const int64_t first = row.least ? n - row.removed : 0;
      for (int64_t k = 0; k < row.removed; ++k) mask[r * n + order[first + k]] = true;
    }
  });
  return removed;
}

double mask_variation(const bool* mask, int64_t height, int64_t width) {
  const auto* const m = reinterpret_cast<const unsigned char*>(mask);
  int64_t vertical = 0, horizontal = 0;
  for (int64_t r = 0; r < height; ++r) {
    const unsigned char* const row = m + r * width;
    int32_t across = 0, along = 0;
    for (int64_t c = 0; c + 1 < width; ++c) across += row[c] ^ row[c + 1];
    if (r + 1 < height) {
      for (int64_t c = 0; c < width; ++c) along += row[c] ^ row[c + width];
    }
    horizontal += across;
    vertical += along;
  }
  const auto mean = [](int64_t sum, int64_t count) {
    return count > 0 ? static_cast<double>(sum) / static_cast<double>(count) : 0;
  };
  return mean(vertical, (height - 1) * width) + mean(horizontal, height * (width - 1));
}

}  // namespace assay
