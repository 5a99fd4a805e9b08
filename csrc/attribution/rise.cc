// RISE: random coarse masks, weighted by the output that they leave (Petsiuk, Das
// and Saenko 2018, equation 6). A mask is an s x s grid of Bernoulli(p) cells,
// enlarged bilinearly to (s+1) cells of ceil(H/s) x ceil(W/s) pixels and cut out at
// a random offset below one cell. The enlargement has half-pixel centres, the grid
// mirrored about its outermost cells, as in the authors' code (scikit-image).
//
// Draws of sample i of a row: cell (r,c) is open where U[0,1) number (i, r s + c)
// is below p; the offsets are numbers (i, s^2) and (i, s^2 + 1).
#include <ATen/Parallel.h>

#include <cmath>

#include "api/error.h"
#include "attribution/methods.h"
#include "attribution/samples.h"
#include "removal/philox.h"

namespace assay {
namespace {

// Along one axis: place q of the enlarged grid is (1-weight[q]) grid[low[q]] + weight[q] grid[high[q]].
struct Axis {
  int64_t size, cells, cell;  // pixels, cells, pixels a cell
  std::vector<int64_t> low, high;
  std::vector<double> weight;

  Axis(int64_t pixels, int64_t cells_along)
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
};

struct Masks {
  Axis y, x;
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

// Masked pixels of one sample: target, pixels and baseline (nullptr: zero) are [H,W,C].
template <typename T>
void mask_row(const Masks& masks, const std::vector<T>& grid, std::array<int64_t, 2> offsets,
              int64_t channels, const T* pixels, const T* baseline, T* target) {
  const int64_t line = masks.x.size * channels;
  // The grid's rows enlarged along x, every value once a channel.
  std::vector<T> wide(static_cast<size_t>(masks.y.cells * line)), mask(static_cast<size_t>(line));
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

// The same by whole-tensor operations, for other devices.
at::Tensor masked_there(const Masks& masks, const Block& block, const Draws& draws, const at::Tensor& pixels,
                        const at::Tensor& baseline) {
  const at::Device device = pixels.device();
  const int64_t count = block.count();
  const at::Tensor grid = draws.grids.to(device).view({count, masks.y.cells, masks.x.cells});
  const at::Tensor offsets = draws.offsets.to(device);
  // low, high [count,size] and weight of an axis.
  const auto places = [&](const Axis& axis, int64_t which) {
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

// sum over samples of output times mask, [H*W]. The masks of one pair of offsets
// are enlarged together: what is added up before are cells, in double.
std::vector<double> weighted_sum(const Masks& masks, uint64_t key, const std::vector<double>& outputs) {
  const Axis &y = masks.y, &x = masks.x;
  std::vector<double> cells(static_cast<size_t>(y.cell * x.cell * masks.cells()), 0);
  for (size_t i = 0; i < outputs.size(); ++i) {
    const int64_t sample = static_cast<int64_t>(i);
    const auto [down, right] = masks.offsets(key, sample);
    double* grid = cells.data() + (down * x.cell + right) * masks.cells();
    for (int64_t c = 0; c < masks.cells(); ++c) {
      if (masks.is_open(key, sample, c)) grid[c] += outputs[i];
    }
  }
  std::vector<double> sum(static_cast<size_t>(y.size * x.size), 0);
  std::vector<double> wide(static_cast<size_t>(y.cells * x.size));
  for (int64_t down = 0; down < y.cell; ++down) {
    std::fill(wide.begin(), wide.end(), 0);
    for (int64_t right = 0; right < x.cell; ++right) {
      const double* grid = cells.data() + (down * x.cell + right) * masks.cells();
      for (int64_t r = 0; r < y.cells; ++r) {
        for (int64_t j = 0; j < x.size; ++j) {
          const size_t q = static_cast<size_t>(j + right);
          wide[static_cast<size_t>(r * x.size + j)] +=
              between(grid[r * x.cells + x.low[q]], grid[r * x.cells + x.high[q]], x.weight[q]);
        }
      }
    }
    for (int64_t i = 0; i < y.size; ++i) {
      const size_t q = static_cast<size_t>(i + down);
      const double *low = wide.data() + y.low[q] * x.size, *high = wide.data() + y.high[q] * x.size;
      double* out = sum.data() + i * x.size;
      for (int64_t j = 0; j < x.size; ++j) out[j] += between(low[j], high[j], y.weight[q]);
    }
  }
  return sum;
}

Masks masks_of(const Parameters& parameters, const Explained& rows) {
  const double open = parameters.number("p");
  if (rows.is_table()) {  // a cell a column, nothing between cells
    Masks masks{Axis(1, 1), Axis(rows.x.size(1), rows.x.size(1)), open};
    for (Axis* axis : {&masks.y, &masks.x}) {
      for (int64_t q = 0; q < axis->size; ++q) axis->low[static_cast<size_t>(q)] = q;
      axis->high = axis->low;
      std::fill(axis->weight.begin(), axis->weight.end(), 0);
    }
    return masks;
  }
  const int64_t cells = parameters.integer("cells"), most = std::min(rows.x.size(2), rows.x.size(3));
  if (cells > most) {
    throw invalid("method rise: cells ", cells, ": want at most ", most, " along an image of ",
                  rows.x.size(2), "x", rows.x.size(3));
  }
  return {Axis(rows.x.size(2), cells), Axis(rows.x.size(3), cells), open};
}

at::Tensor rise(const Method& method, Context& context, const Explained& rows) {
  const Parameters& parameters = method.parameters();
  const Masks masks = masks_of(parameters, rows);
  const bool torchray = parameters.flag("torchray");
  const at::Tensor pixels = pixels_last(rows.x);
  at::Tensor baseline;  // undefined: zero, which masks multiply by
  if (parameters.text("baseline") != "zero") {
    baseline = pixels_last(reference_of(context, rows, parameters.text("baseline")));
  }
  const int64_t count = parameters.integer("samples");
  const auto make = [&](const Block& block) {
    const Draws draws = draws_of(masks, block, rows.keys, pixels.scalar_type());
    const auto masked = !pixels.is_cpu()                      ? masked_there
                        : pixels.scalar_type() == at::kDouble ? masked_here<double>
                                                              : masked_here<float>;
    return channels_first(masked(masks, block, draws, pixels, baseline), rows.is_table());
  };
  std::vector<std::vector<double>> values =
      run_samples(context, rows, std::vector<int64_t>(static_cast<size_t>(rows.size()), count),
                  torchray ? Output::kLogit : output_of(parameters.text("output")), make);
  for (size_t r = 0; r < values.size(); ++r) {
    if (torchray) {
      for (double& output : values[r]) output = 1 / (1 + std::exp(-output));
    }
    values[r] = weighted_sum(masks, rows.keys[r], values[r]);
    const double divisor = static_cast<double>(count) * (torchray ? 1 : masks.open);
    for (double& value : values[r]) value /= divisor;
  }
  return maps_of(rows, values);
}

}  // namespace

MethodEntry rise_method() {
  return {.id = "rise",
          .summary = "random coarse masks (of tables: sets of columns), weighted by the output under them",
          .family = "perturbation",
          .needs = "forward",
          .paper = "Petsiuk et al. 2018, equation 6",
          .parameters = {{{"name", "samples"},
                          {"type", "int"},
                          {"default", 8000},
                          {"minimum", 1},
                          {"summary", "masks an image; the authors' notebooks: 6000 and 5000"}},
                         {{"name", "cells"},
                          {"type", "int"},
                          {"default", 7},
                          {"minimum", 1},
                          {"summary", "cells of a mask along each edge; the authors' notebooks: 8 and 10"}},
                         {{"name", "p"},
                          {"type", "float"},
                          {"default", 0.5},
                          {"minimum", 1e-3},
                          {"maximum", 1.0},
                          {"summary", "probability that a cell is open; the authors' notebooks: 0.1"}},
                         {{"name", "torchray"},
                          {"type", "bool"},
                          {"default", false},
                          {"summary",
                           "as TorchRay: the sigmoid of the logit, whatever output says, and no "
                           "division by p"}},
                         baseline_parameter(/*by_segment=*/false),
                         output_parameter("probability")},
          .attribute = rise,
          .one_channel = true};
}

}  // namespace assay
