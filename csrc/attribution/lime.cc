// LIME: a sparse linear model of the output around the row (Ribeiro, Singh and
// Guestrin 2016, equation 1 and section 3.4). Features are there with probability
// 1/2; a sample weighs exp(-d^2/(2 width^2)), d = 1 - cos(x, sample); the model
// minimises 1/(2n) sum w (y - c - b.z)^2 + alpha |b|_1 where the weights add up to n.
//
// Draws of sample i of a row: feature f is there where bit f%32 of word f/32%4 of
// Philox block (i, f/128) is set.
#include <cmath>

#include "api/error.h"
#include "attribution/least_squares.h"
#include "attribution/methods.h"
#include "attribution/segments.h"
#include "removal/philox.h"

namespace assay {
namespace {

bool is_present(uint64_t key, int64_t sample, int64_t feature) {
  const auto words = philox(key, static_cast<uint64_t>(sample), static_cast<uint64_t>(feature / 128));
  return words[static_cast<size_t>(feature / 32 % 4)] >> (feature % 32) & 1;
}

// Products of a row x with itself, with its baseline b and of b with itself, the
// numbers of each feature apart: enough for the cosine of any coalition.
struct Products {
  std::vector<double> xx, xb, bb;

  Products(const at::Tensor& row, const at::Tensor& baseline, const std::vector<int32_t>& map,
           int64_t features)
      : xx(static_cast<size_t>(features), 0), xb(xx), bb(xx) {
    const at::Tensor x = row.to(at::kCPU, at::kDouble).contiguous();
    const at::Tensor b = baseline.to(at::kCPU, at::kDouble).contiguous();
    const double *xs = x.const_data_ptr<double>(), *bs = b.const_data_ptr<double>();
    for (size_t i = 0; i < static_cast<size_t>(x.numel()); ++i) {
      const size_t f = static_cast<size_t>(map[i % map.size()]);
      xx[f] += xs[i] * xs[i];
      xb[f] += xs[i] * bs[i];
      bb[f] += bs[i] * bs[i];
    }
  }

  // 1 - cos(x, the sample), 1 where either is zero.
  template <typename Present>
  double distance(const Present& present) const {
    double with = 0, own = 0, all = 0;
    for (size_t f = 0; f < xx.size(); ++f) {
      with += present[f] ? xx[f] : xb[f];
      own += present[f] ? xx[f] : bb[f];
      all += xx[f];
    }
    return own == 0 || all == 0 ? 1 : 1 - with / std::sqrt(own * all);
  }
};

at::Tensor lime(const Method& method, Context& context, const Explained& rows) {
  const Parameters& parameters = method.parameters();
  const double width = parameters.number("width"), alpha = parameters.number("alpha");
  const int64_t count = parameters.integer("samples");
  Coalitions coalitions(context, rows, parameters);
  std::vector<std::vector<double>> values =
      coalitions.outputs(std::vector<int64_t>(static_cast<size_t>(rows.size()), count),
                         [&](int64_t row, int64_t sample, uint64_t* words) {
                           for (int64_t f = 0; f < coalitions.count(row); ++f) {
                             if (!is_present(coalitions.key(row), sample, f)) put_bit(words, f);
                           }
                         });
  for (int64_t r = 0; r < rows.size(); ++r) {
    std::vector<double>& row = values[static_cast<size_t>(r)];
    const int64_t features = coalitions.count(r);
    const Products products(rows.x[r], coalitions.baseline()[r], coalitions.segments().map(r), features);
    at::Tensor design = at::empty({count, features}, at::kDouble), weights = at::empty({count}, at::kDouble);
    double *next = design.mutable_data_ptr<double>(), *weight = weights.mutable_data_ptr<double>();
    for (int64_t s = 0; s < count; ++s) {
      const double* present = next;
      for (int64_t f = 0; f < features; ++f) *next++ = is_present(coalitions.key(r), s, f) ? 1 : 0;
      const double d = products.distance(present);
      *weight++ = std::exp(-d * d / (2 * width * width));
    }
    weights *= static_cast<double>(count) / weights.sum();
    const LassoFit fit = lasso(design, at::tensor(row, at::kDouble), weights, alpha);
    if (!fit.converged) {
      context.warn(concat("lime: the lasso of image ", r,
                          " did not converge: its output is not finite, or samples (", count,
                          ") are too few for ", features, " features and alpha ", alpha));
    }
    row = fit.coefficients;
  }
  return coalitions.maps(values);
}

}  // namespace

MethodEntry lime_method() {
  return {.id = "lime",
          .summary = "sparse linear model of the output on which features are there",
          .family = "perturbation",
          .needs = "forward",
          .paper = "Ribeiro et al. 2016, section 3.4",
          .parameters = segment_parameters(
              nlohmann::json::array({{{"name", "samples"},
                                      {"type", "int"},
                                      {"default", 50},
                                      {"minimum", 1},
                                      {"summary", "coalitions an image; captum's default is 25"}},
                                     {{"name", "alpha"},
                                      {"type", "float"},
                                      {"default", 0.01},
                                      {"minimum", 0.0},
                                      {"summary", "weight of the sum of absolute coefficients"}},
                                     {{"name", "width"},
                                      {"type", "float"},
                                      {"default", 1.0},
                                      {"minimum", 1e-3},
                                      {"summary", "of the kernel over cosine distances"}}})),
          .attribute = lime,
          .one_channel = true};
}

}  // namespace assay
