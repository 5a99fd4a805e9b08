// Photographers put what matters in the middle: a Gaussian there, whatever the image.
#include <cmath>

#include "api/error.h"
#include "attribution/methods.h"
#include "attribution/samples.h"

namespace assay {
namespace {

at::Tensor centred_gaussian(const Method& method, Context&, const Explained& rows) {
  if (rows.is_table()) throw unsupported("method centred-gaussian: a table has no centre");
  const double sigma = method.parameters().number("sigma");
  // Distance from the centre in standard deviations, squared.
  const auto along = [&](int64_t size, int64_t i) {
    const double d = ((static_cast<double>(i) + 0.5) / static_cast<double>(size) - 0.5) / sigma;
    return d * d;
  };
  const int64_t height = rows.x.size(2), width = rows.x.size(3);
  std::vector<double> map;
  for (int64_t i = 0; i < height; ++i) {
    for (int64_t j = 0; j < width; ++j) map.push_back(std::exp(-0.5 * (along(height, i) + along(width, j))));
  }
  return maps_of(rows, std::vector<std::vector<double>>(static_cast<size_t>(rows.size()), map));
}

}  // namespace

MethodEntry centred_gaussian_method() {
  return {.id = "centred-gaussian",
          .summary = "a Gaussian in the middle of the image, 1 at its top",
          .family = "control",
          .needs = "",
          .paper = "Judd et al. 2009, section 3 (centre prior)",
          .parameters = nlohmann::json::array(
              {{{"name", "sigma"},
                {"type", "float"},
                {"default", 0.25},
                {"minimum", 1e-3},
                {"summary", "standard deviation as a share of the image's height and width"}}}),
          .attribute = centred_gaussian,
          .one_channel = true};
}

}  // namespace assay
