// RISE: random coarse masks, weighted by the output that they leave (Petsiuk, Das
// and Saenko 2018, equation 6); masks.h says what masks are.
#include <cmath>

#include "api/error.h"
#include "attribution/masks.h"
#include "attribution/methods.h"
#include "attribution/samples.h"

namespace assay {
namespace {

// sum over samples of output times mask, [H*W]. The masks of one pair of offsets
// are enlarged together: what is added up before are cells, in double.
std::vector<double> weighted_sum(const Masks& masks, uint64_t key, const std::vector<double>& outputs) {
  const MaskAxis &y = masks.y, &x = masks.x;
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
    Masks masks{MaskAxis(1, 1), MaskAxis(rows.x.size(1), rows.x.size(1)), open};
    for (MaskAxis* axis : {&masks.y, &masks.x}) {
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
  return {MaskAxis(rows.x.size(2), cells), MaskAxis(rows.x.size(3), cells), open};
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
    return channels_first(masked(masks, block, rows.keys, pixels, baseline), rows.is_table());
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
