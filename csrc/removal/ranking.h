// Which pixels or columns go first: exact counts from either end of one ranking.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <string>
#include <vector>

namespace assay {

// Which of equal values comes first.
enum class Ties {
  kRandom,  // by a permutation that the image's key draws
  kIndex,   // the smaller index
  kNoise,   // standard normal noise times 1e-4 on the map scaled to 0..1, then the smaller index
};
// "random", "index", "noise"; throws invalid for others.
Ties ties_of(const std::string& name);

// The n indices of a map, the largest value first; NaN counts as the smallest. map NULL:
// all are equal, so that kRandom draws an order.
std::vector<int32_t> ranked(const float* map, int64_t n, Ties ties, uint64_t key);

// An image without its `removed` first features, or with `least` its last.
struct RemovalRow {
  int32_t image, removed;
  bool least;
};

// What rows remove, [R,n] bool: removed[r][i] of the ranking of rows[r].image.
at::Tensor removed_by(const std::vector<std::vector<int32_t>>& rankings, const std::vector<RemovalRow>& rows,
                      int64_t n);

// The total variation of a mask [height,width]: the mean |difference| of vertical
// neighbours plus that of horizontal ones. 0 where there are none.
double mask_variation(const bool* mask, int64_t height, int64_t width);

}  // namespace assay
