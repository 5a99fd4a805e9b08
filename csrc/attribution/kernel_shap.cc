// Kernel SHAP: Shapley values as the weighted linear regression of the output on
// which features are there (Lundberg and Lee 2017, section 4.1, theorem 2). The two
// coalitions of infinite weight, nothing and everything, hold exactly: the values
// add up to f(x) - f(baseline).
#include <algorithm>
#include <cmath>
#include <numeric>

#include "api/error.h"
#include "attribution/least_squares.h"
#include "attribution/methods.h"
#include "attribution/segments.h"
#include "removal/philox.h"

namespace assay {
namespace {

// The coalitions of one row. Sample 0 is everything, sample 1 nothing; then either
// all others once, with their weight, or others drawn with that probability.
class Design {
 public:
  // asked: how many coalitions, 0: 10 M + 200.
  Design(uint64_t key, int64_t features, int64_t asked) : key_(key), features_(features) {
    samples_ = asked == 0 ? 10 * features + 200 : asked;
    complete_ = features < 62 && (int64_t{1} << features) <= samples_;
    if (complete_) samples_ = int64_t{1} << features;
    // The kernel's weight of all coalitions of k features together (theorem 2), up to a constant.
    for (int64_t k = 1; k < features; ++k) {
      const double weight = 1 / (static_cast<double>(k) * static_cast<double>(features - k));
      cumulative_.push_back(weight + (cumulative_.empty() ? 0 : cumulative_.back()));
    }
  }

  int64_t samples() const { return samples_; }
  int64_t features() const { return features_; }
  bool underdetermined() const { return samples_ - 2 < features_ - 1; }

  // The features of a sample, ones.
  std::vector<char> present(int64_t sample) const {
    std::vector<char> out(static_cast<size_t>(features_), sample == 0);
    if (sample < 2) return out;
    if (complete_) {
      for (int64_t f = 0; f < features_; ++f) out[static_cast<size_t>(f)] = (sample - 1) >> f & 1;
      return out;
    }
    // The size by draw 0, the subset by a shuffle of draws 1, 2, ... that stops there.
    const uint64_t index = static_cast<uint64_t>(sample);
    const double at = philox_uniform(key_, index, 0) * cumulative_.back();
    const auto found = std::upper_bound(cumulative_.begin(), cumulative_.end() - 1, at);
    const int64_t size = 1 + (found - cumulative_.begin());
    std::vector<int64_t> order(out.size());
    std::iota(order.begin(), order.end(), 0);
    for (int64_t i = 0; i < size; ++i) {
      const int64_t j = i + philox_below(key_, index, static_cast<uint64_t>(1 + i), features_ - i);
      std::swap(order[static_cast<size_t>(i)], order[static_cast<size_t>(j)]);
      out[static_cast<size_t>(order[static_cast<size_t>(i)])] = 1;
    }
    return out;
  }

  // The weight of a coalition of that many features: drawn ones have been weighted by the draw.
  double weight(int64_t size) const {
    if (!complete_) return 1;
    double coalitions = 1;  // of that size
    for (int64_t i = 0; i < size; ++i) {
      coalitions *= static_cast<double>(features_ - i) / static_cast<double>(i + 1);
    }
    return 1 / (coalitions * static_cast<double>(size) * static_cast<double>(features_ - size));
  }

 private:
  uint64_t key_;
  int64_t features_, samples_;
  bool complete_;
  std::vector<double> cumulative_;  // over sizes 1, 2, ...
};

// Values that add up to the whole change, change / M each plus what the other
// samples say; those rows, their mean taken off, leave the sum alone.
std::vector<double> solve(const Design& design, const std::vector<double>& outputs) {
  const int64_t features = design.features();
  const double nothing = outputs[1], change = outputs[0] - outputs[1];
  std::vector<double> values(static_cast<size_t>(features), 0);
  if (design.samples() > 2) {
    const at::Tensor a = at::empty({design.samples() - 2, features}, at::kDouble);
    const at::Tensor b = at::empty({design.samples() - 2}, at::kDouble);
    double *row = a.mutable_data_ptr<double>(), *right = b.mutable_data_ptr<double>();
    for (int64_t s = 2; s < design.samples(); ++s) {
      const std::vector<char> present = design.present(s);
      const int64_t size = std::count(present.begin(), present.end(), 1);
      const double share = static_cast<double>(size) / static_cast<double>(features);
      const double root = std::sqrt(design.weight(size));
      for (char is : present) *row++ = root * (is - share);
      *right++ = root * (outputs[static_cast<size_t>(s)] - nothing - share * change);
    }
    values = least_squares(a, b);
  }
  for (double& value : values) value += change / static_cast<double>(features);
  return values;
}

at::Tensor kernel_shap(const Method& method, Context& context, const Explained& rows) {
  Coalitions coalitions(context, rows, method.parameters());
  const int64_t asked = method.parameters().integer("samples");
  if (asked == 1) throw invalid("method kernel-shap: samples 1: want 0, or at least 2");
  std::vector<Design> designs;
  std::vector<int64_t> samples;
  for (int64_t r = 0; r < rows.size(); ++r) {
    designs.emplace_back(coalitions.key(r), coalitions.count(r), asked);
    samples.push_back(designs.back().samples());
    if (designs.back().underdetermined()) {
      context.warn(concat(
          "kernel-shap: ", samples.back(), " samples do not determine the values of ", coalitions.count(r),
          " features: the ones of least norm are given; want samples >= ", coalitions.count(r) + 1));
    }
  }
  std::vector<std::vector<double>> values =
      coalitions.outputs(samples, [&](int64_t row, int64_t sample, uint64_t* words) {
        const std::vector<char> present = designs[static_cast<size_t>(row)].present(sample);
        for (size_t f = 0; f < present.size(); ++f) {
          if (!present[f]) put_bit(words, static_cast<int64_t>(f));
        }
      });
  for (size_t r = 0; r < values.size(); ++r) values[r] = solve(designs[r], values[r]);
  return coalitions.maps(values);
}

}  // namespace

MethodEntry kernel_shap_method() {
  return {.id = "kernel-shap",
          .summary = "Shapley values by weighted regression on coalitions of features",
          .family = "perturbation",
          .needs = "forward",
          .paper = "Lundberg and Lee 2017, theorem 2",
          .parameters = segment_parameters(nlohmann::json::array(
              {{{"name", "samples"},
                {"type", "int"},
                {"default", 0},
                {"minimum", 0},
                {"summary",
                 "coalitions an image, everything and nothing among them; 0: 10 a feature and 200; "
                 "where all 2^features are no more, they are taken, and the values are exact"}}})),
          .attribute = kernel_shap,
          .one_channel = true};
}

}  // namespace assay
