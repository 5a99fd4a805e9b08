// Inputs of which parts are hidden: under the soft random masks of RISE, and under
// windows. Each comes in two ways that agree to the bit: row by row (host), and by
// operations on whole tensors (any device). Pixels are [N,H,W,C], see pixels_last.
#pragma once

#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "attribution/samples.h"
#include "removal/philox.h"

namespace assay {

// ---- RISE (Petsiuk, Das and Saenko 2018, section 3.2). A mask is an s x s grid of
// Bernoulli(p) cells, enlarged bilinearly to (s+1) cells of ceil(H/s) x ceil(W/s)
// pixels and cut out at a random offset below one cell. The enlargement has half-pixel
// centres, the grid mirrored about its outermost cells, as in the authors' code
// (scikit-image).
//
// Draws of sample i of a row: cell (r,c) is open where U[0,1) number (i, r s + c)
// is below p; the offsets are integers (i, s^2) and (i, s^2 + 1).

// Along one axis: place q of the enlarged grid is (1-weight[q]) grid[low[q]] + weight[q] grid[high[q]].
struct MaskAxis {
  int64_t size, cells, cell;  // pixels, cells, pixels a cell
  std::vector<int64_t> low, high;
  std::vector<double> weight;

  MaskAxis(int64_t pixels, int64_t cells_along);
};

struct Masks {
  MaskAxis y, x;
  double open;  // the probability of a cell

  int64_t cells() const { return y.cells * x.cells; }
  bool is_open(uint64_t key, int64_t sample, int64_t cell) const {
    return philox_uniform(key, static_cast<uint64_t>(sample), static_cast<uint64_t>(cell)) < open;
  }
  // Rows and columns that are cut off before the mask begins.
  std::array<int64_t, 2> offsets(uint64_t key, int64_t sample) const {
    const uint64_t index = static_cast<uint64_t>(sample), draw = static_cast<uint64_t>(cells());
    return {philox_below(key, index, draw, y.cell), philox_below(key, index, draw + 1, x.cell)};
  }
};

// a + weight (b - a), the same roundings in every implementation.
template <typename T>
T between(T a, T b, T weight) {
  return a + weight * (b - a);
}

// The block's samples under their masks, [count,H,W,C]: baseline + mask (x -
// baseline). keys: one a row. baseline: like pixels, or undefined: zero.
at::Tensor masked(const Masks& masks, const Block& block, const std::vector<uint64_t>& keys,
                  const at::Tensor& pixels, const at::Tensor& baseline);
at::Tensor masked_by_rows(const Masks& masks, const Block& block, const std::vector<uint64_t>& keys,
                          const at::Tensor& pixels, const at::Tensor& baseline);
at::Tensor masked_by_tensors(const Masks& masks, const Block& block, const std::vector<uint64_t>& keys,
                             const at::Tensor& pixels, const at::Tensor& baseline);

// ---- Windows.

// The windows along one axis: ceil((size-window)/stride) + 1 of them, the last
// one clipped at the border.
struct WindowAxis {
  int64_t size, window, stride;

  int64_t count() const { return (size - window + stride - 1) / stride + 1; }
  int64_t begin(int64_t i) const { return i * stride; }
  int64_t end(int64_t i) const { return std::min(size, begin(i) + window); }
  // How many windows cover a place.
  std::vector<double> cover() const {
    std::vector<double> out(static_cast<size_t>(size), 0);
    for (int64_t i = 0; i < count(); ++i) {
      for (int64_t p = begin(i); p < end(i); ++p) ++out[static_cast<size_t>(p)];
    }
    return out;
  }
};

struct Windows {
  WindowAxis y, x;

  int64_t count() const { return y.count() * x.count(); }
  // Window w in row-major order: [top, bottom) x [left, right).
  std::array<int64_t, 4> window(int64_t w) const {
    const int64_t i = w / x.count(), j = w % x.count();
    return {y.begin(i), y.end(i), x.begin(j), x.end(j)};
  }
};

// The block's samples, [count,H,W,C]: sample 0 is the row itself, sample 1 + w has
// the baseline in window w.
at::Tensor occluded(const Block& block, const Windows& windows, const at::Tensor& pixels,
                    const at::Tensor& baseline);
at::Tensor occluded_by_rows(const Block& block, const Windows& windows, const at::Tensor& pixels,
                            const at::Tensor& baseline);
at::Tensor occluded_by_tensors(const Block& block, const Windows& windows, const at::Tensor& pixels,
                               const at::Tensor& baseline);

}  // namespace assay
