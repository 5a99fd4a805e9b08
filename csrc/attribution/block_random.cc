// One rectangle at random, whatever fraction is removed (BlockRandom of the ROAR
// pitfalls, section 3.2 and Table 1, which draws one rectangle a fraction). A map
// orders all pixels once, so the rectangles are nested: the one that covers the
// share s of each edge begins at u (1-s) of the height and v (1-s) of the width, u
// and v drawn once. At any fraction s^2 it is a rectangle of the image's shape
// whose place is uniform over those that fit. A pixel's value is 1 - s for the
// smallest one that holds its centre. (A number of pixels that is no rectangle
// takes a part of the next one's new rows and columns.) A table is one row of pixels.
#include <algorithm>

#include "attribution/methods.h"
#include "attribution/samples.h"
#include "removal/philox.h"

namespace assay {
namespace {

// For each of size pixels: the share s at which [u (1-s), u (1-s) + s] reaches its centre.
std::vector<double> shares(int64_t size, double u) {
  std::vector<double> out;
  for (int64_t i = 0; i < size; ++i) {
    const double centre = (static_cast<double>(i) + 0.5) / static_cast<double>(size);
    out.push_back(centre < u ? (u - centre) / u : (centre - u) / (1 - u));
  }
  return out;
}

at::Tensor block_random(const Method&, Context&, const Explained& rows) {
  const int64_t height = rows.is_table() ? 1 : rows.x.size(2), width = rows.x.size(-1);
  std::vector<std::vector<double>> values;
  for (uint64_t key : rows.keys) {
    std::vector<double> down = shares(height, philox_uniform(key, 0, 0));
    const std::vector<double> across = shares(width, philox_uniform(key, 0, 1));
    if (rows.is_table()) down = {0};
    std::vector<double>& row = values.emplace_back();
    for (double y : down) {
      for (double x : across) row.push_back(1 - std::max(y, x));
    }
  }
  return maps_of(rows, values);
}

}  // namespace

MethodEntry block_random_method() {
  return {.id = "block-random",
          .summary = "a rectangle at random: any share of the pixels, in the map's order, is one",
          .family = "control",
          .needs = "",
          .paper = "ROAR pitfalls (DPI), section 3.2, BlockRandom",
          .parameters = nlohmann::json::array(),
          .attribute = block_random,
          .one_channel = true};
}

}  // namespace assay
