#include "attribution/masks.h"

#include <ATen/Parallel.h>

#include <cmath>

namespace assay {
namespace {

// Masked pixels of one sample: target, pixels and baseline (nullptr: zero) are [H,W,C].
template <typename T>
void mask_row(const Masks& masks, const std::vector<T>& grid, std::array<int64_t, 2> offsets,
              int64_t channels, const T* pixels, const T* baseline, T* target) {
  const int64_t line = masks.x.size * channels;
  // The grid's rows enlarged along x, every value once a channel.
  std::vector<T> wide(static_cast<size_t>(masks.y.cells * line));
  for (int64_t r = 0; r < masks.y.cells; ++r) {
    const T* row = grid.data() + r * masks.x.cells;
    T* out = wide.data() + r * line;
    for (int64_t j = 0; j < masks.x.size; ++j) {
      const size_t q = static_cast<size_t>(j + offsets[1]);
      const T value = between(row[masks.x.low[q]], row[masks.x.high[q]], static_cast<T>(masks.x.weight[q]));
      for (int64_t c = 0; c < channels; ++c) *out++ = value;
    }
  }
  for (int64_t i = 0; i < masks.y.size; ++i) {
    const size_t q = static_cast<size_t>(i + offsets[0]);
    const T *low = wide.data() + masks.y.low[q] * line, *high = wide.data() + masks.y.high[q] * line;
    const T weight = static_cast<T>(masks.y.weight[q]);
    const T* x = pixels + i * line;
    T* out = target + i * line;
    if (baseline == nullptr) {
      for (int64_t k = 0; k < line; ++k) out[k] = x[k] * between(low[k], high[k], weight);
    } else {
      const T* b = baseline + i * line;
      for (int64_t k = 0; k < line; ++k) out[k] = between(b[k], x[k], between(low[k], high[k], weight));
    }
  }
}

// What a block's samples draw: grids [count,cells] of 0 and 1, offsets [2][count].
struct Draws {
  at::Tensor grids, offsets;
};

Draws draws_of(const Masks& masks, const Block& block, const std::vector<uint64_t>& keys,
               at::ScalarType dtype) {
  const int64_t count = block.count();
  const at::Tensor grids = at::empty({count, masks.cells()}, at::kDouble),
                   offsets = at::empty({2, count}, at::kLong);
  double* grid = grids.mutable_data_ptr<double>();
  int64_t* offset = offsets.mutable_data_ptr<int64_t>();
  for (int64_t k = 0; k < count; ++k) {
    const uint64_t key = keys[static_cast<size_t>(block.row[static_cast<size_t>(k)])];
    const int64_t sample = block.sample[static_cast<size_t>(k)];
    for (int64_t c = 0; c < masks.cells(); ++c) *grid++ = masks.is_open(key, sample, c) ? 1 : 0;
    const std::array<int64_t, 2> both = masks.offsets(key, sample);
    offset[k] = both[0];
    offset[count + k] = both[1];
  }
  return {grids.to(dtype), offsets};
}

// Images under masks, [count,H,W,C], on the CPU: one pass over the pixels.
template <typename T>
at::Tensor masked_here(const Masks& masks, const Block& block, const Draws& draws, const at::Tensor& pixels,
                       const at::Tensor& baseline) {
  std::vector<int64_t> shape = pixels.sizes().vec();
  shape[0] = block.count();
  at::Tensor out = at::empty(shape, pixels.options());
  const int64_t each = pixels[0].numel(), cells = masks.cells();
  const T* from = pixels.const_data_ptr<T>();
  const T* other = baseline.defined() ? baseline.const_data_ptr<T>() : nullptr;
  const T* grids = draws.grids.const_data_ptr<T>();
  const int64_t* offsets = draws.offsets.const_data_ptr<int64_t>();
  T* to = out.mutable_data_ptr<T>();
  at::parallel_for(0, block.count(), 1, [&](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; ++k) {
      const int64_t row = block.row[static_cast<size_t>(k)];
      mask_row<T>(masks, std::vector<T>(grids + k * cells, grids + (k + 1) * cells),
                  {offsets[k], offsets[block.count() + k]}, pixels.size(3), from + row * each,
                  other == nullptr ? nullptr : other + row * each, to + k * each);
    }
  });
  return out;
}

}  // namespace

MaskAxis::MaskAxis(int64_t pixels, int64_t cells_along)
    : size(pixels), cells(cells_along), cell((pixels + cells_along - 1) / cells_along) {
  const int64_t places = (cells + 1) * cell;
  const auto mirrored = [&](int64_t i) {
    if (cells == 1) return int64_t{0};
    return i < 0 ? -i : i >= cells ? 2 * (cells - 1) - i : i;
  };
  for (int64_t q = 0; q < places; ++q) {
    const double at =
        (static_cast<double>(q) + 0.5) * static_cast<double>(cells) / static_cast<double>(places) - 0.5;
    const int64_t below = static_cast<int64_t>(std::floor(at));
    low.push_back(mirrored(below));
    high.push_back(mirrored(below + 1));
    weight.push_back(at - static_cast<double>(below));
  }
}

at::Tensor masked(const Masks& masks, const Block& block, const std::vector<uint64_t>& keys,
                  const at::Tensor& pixels, const at::Tensor& baseline) {
  return (pixels.is_cpu() ? masked_by_rows : masked_by_tensors)(masks, block, keys, pixels, baseline);
}

at::Tensor masked_by_rows(const Masks& masks, const Block& block, const std::vector<uint64_t>& keys,
                          const at::Tensor& pixels, const at::Tensor& baseline) {
  const Draws draws = draws_of(masks, block, keys, pixels.scalar_type());
  return (pixels.scalar_type() == at::kDouble ? masked_here<double> : masked_here<float>)(masks, block, draws,
                                                                                          pixels, baseline);
}

at::Tensor masked_by_tensors(const Masks& masks, const Block& block, const std::vector<uint64_t>& keys,
                             const at::Tensor& pixels, const at::Tensor& baseline) {
  const Draws draws = draws_of(masks, block, keys, pixels.scalar_type());
  const at::Device device = pixels.device();
  const int64_t count = block.count();
  const at::Tensor grid = draws.grids.to(device).view({count, masks.y.cells, masks.x.cells});
  const at::Tensor offsets = draws.offsets.to(device);
  // low, high [count,size] and weight of an axis.
  const auto places = [&](const MaskAxis& axis, int64_t which) {
    const at::Tensor q = (offsets[which].unsqueeze(1) + at::arange(axis.size, offsets.options())).flatten();
    const auto look_up = [&](const at::Tensor& table) {
      return table.to(device).index_select(0, q).view({count, axis.size});
    };
    return std::array<at::Tensor, 3>{look_up(at::tensor(axis.low, at::kLong)),
                                     look_up(at::tensor(axis.high, at::kLong)),
                                     look_up(at::tensor(axis.weight, at::kDouble).to(pixels.scalar_type()))};
  };
  const auto mix = [](const at::Tensor& a, const at::Tensor& b, const at::Tensor& weight) {
    return a + weight * (b - a);
  };
  const auto [left, right, across] = places(masks.x, 1);
  const auto column = [&](const at::Tensor& index) {
    return grid.gather(2, index.unsqueeze(1).expand({count, masks.y.cells, masks.x.size}));
  };
  const at::Tensor wide = mix(column(left), column(right), across.unsqueeze(1)).flatten(0, 1);
  const auto [up, down, along] = places(masks.y, 0);
  const at::Tensor first = at::arange(count, offsets.options()).unsqueeze(1) * masks.y.cells;
  const auto line = [&](const at::Tensor& index) {
    return wide.index_select(0, (index + first).flatten()).view({count, masks.y.size, masks.x.size});
  };
  const at::Tensor mask = mix(line(up), line(down), along.unsqueeze(2)).unsqueeze(3);
  if (!baseline.defined()) return block.of(pixels).mul_(mask);
  return mix(block.of(baseline), block.of(pixels), mask);
}

at::Tensor occluded(const Block& block, const Windows& windows, const at::Tensor& pixels,
                    const at::Tensor& baseline) {
  return (pixels.is_cpu() ? occluded_by_rows : occluded_by_tensors)(block, windows, pixels, baseline);
}

at::Tensor occluded_by_rows(const Block& block, const Windows& windows, const at::Tensor& pixels,
                            const at::Tensor& baseline) {
  at::Tensor out = block.of(pixels);
  for (int64_t k = 0; k < block.count(); ++k) {
    const int64_t sample = block.sample[static_cast<size_t>(k)];
    if (sample == 0) continue;
    const auto [top, bottom, left, right] = windows.window(sample - 1);
    const auto inside = [&, top = top, bottom = bottom, left = left, right = right](const at::Tensor& row) {
      return row.narrow(0, top, bottom - top).narrow(1, left, right - left);
    };
    inside(out[k]).copy_(inside(baseline[block.row[static_cast<size_t>(k)]]));
  }
  return out;
}

at::Tensor occluded_by_tensors(const Block& block, const Windows& windows, const at::Tensor& pixels,
                               const at::Tensor& baseline) {
  at::Tensor bounds = at::zeros({4, block.count(), 1}, at::kLong);
  int64_t* values = bounds.mutable_data_ptr<int64_t>();
  for (int64_t k = 0; k < block.count(); ++k) {
    const int64_t sample = block.sample[static_cast<size_t>(k)];
    if (sample == 0) continue;  // [0,0): no pixel
    const std::array<int64_t, 4> window = windows.window(sample - 1);
    for (int64_t b = 0; b < 4; ++b) values[b * block.count() + k] = window[static_cast<size_t>(b)];
  }
  bounds = bounds.to(pixels.device());
  const auto within = [&](int64_t size, int64_t bound) {
    const at::Tensor at = at::arange(size, bounds.options()).unsqueeze(0);
    return at.ge(bounds[bound]).logical_and(at.lt(bounds[bound + 1]));
  };
  const at::Tensor rows = within(windows.y.size, 0), columns = within(windows.x.size, 2);
  const at::Tensor hidden = rows.unsqueeze(2).logical_and(columns.unsqueeze(1)).unsqueeze(3);
  return at::where(hidden, block.of(baseline), block.of(pixels));
}

}  // namespace assay
