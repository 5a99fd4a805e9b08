// Maps that know nothing: independent numbers, one a pixel (a column), drawn from
// the row's key.
#include "attribution/methods.h"
#include "attribution/samples.h"
#include "removal/philox.h"

namespace assay {
namespace {

// draw(key, index) at each pixel.
template <double (*draw)(uint64_t key, uint64_t index, uint64_t draw)>
at::Tensor noise(const Method&, Context&, const Explained& rows) {
  const int64_t each = rows.is_table() ? rows.x.size(1) : rows.x.size(2) * rows.x.size(3);
  std::vector<std::vector<double>> values;
  for (uint64_t key : rows.keys) {
    std::vector<double>& row = values.emplace_back();
    for (int64_t p = 0; p < each; ++p) row.push_back(draw(key, static_cast<uint64_t>(p), 0));
  }
  return maps_of(rows, values);
}

}  // namespace

MethodEntry random_method() {
  return {.id = "random",
          .summary = "independent standard normal numbers, one a pixel",
          .family = "control",
          .needs = "",
          .paper = "Hooker et al. 2019, section 4",
          .parameters = nlohmann::json::array(),
          .attribute = noise<philox_normal>,
          .one_channel = true};
}

MethodEntry pixel_random_method() {
  return {.id = "pixel-random",
          .summary = "pixels in a random order: independent uniform numbers in [0,1), one a pixel",
          .family = "control",
          .needs = "",
          .paper = "ROAR pitfalls (DPI), section 3.2, PixelRandom",
          .parameters = nlohmann::json::array(),
          .attribute = noise<philox_uniform>,
          .one_channel = true};
}

}  // namespace assay
