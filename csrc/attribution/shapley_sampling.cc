// Shapley values as the mean of what a feature adds when features come in random
// orders, from the baseline to the row (Castro, Gomez and Tejada 2009).
//
// Draws: permutation p of a row is philox_permutation(key, p, features).
#include <algorithm>
#include <numeric>

#include "attribution/methods.h"
#include "attribution/segments.h"
#include "removal/philox.h"

namespace assay {
namespace {

// The orders of one row; with antithetic, each odd one is the reverse of the one before.
std::vector<int64_t> order_of(uint64_t key, int64_t permutation, int64_t features, bool antithetic) {
  const bool turned = antithetic && permutation % 2 == 1;
  std::vector<int64_t> order =
      philox_permutation(key, static_cast<uint64_t>(turned ? permutation - 1 : permutation), features);
  if (turned) std::reverse(order.begin(), order.end());
  return order;
}

at::Tensor shapley_sampling(const Method& method, Context& context, const Explained& rows) {
  Coalitions coalitions(context, rows, method.parameters());
  const int64_t permutations = method.parameters().integer("samples");
  const bool antithetic = method.parameters().flag("antithetic");
  // Nothing and everything, which all orders share, then the first 1, 2, ... M-1
  // features of each order.
  std::vector<int64_t> samples;
  for (int64_t r = 0; r < rows.size(); ++r) samples.push_back(2 + permutations * (coalitions.count(r) - 1));
  // Samples come in order: the permutation of the last one serves again.
  std::vector<int64_t> order;
  int64_t order_row = -1, order_number = -1;
  std::vector<std::vector<double>> values =
      coalitions.outputs(samples, [&](int64_t row, int64_t sample, uint64_t* words) {
        const int64_t features = coalitions.count(row), inner = features - 1;
        if (sample == 0) {
          for (int64_t f = 0; f < features; ++f) put_bit(words, f);
        }
        if (sample < 2) return;
        const int64_t number = (sample - 2) / inner, present = 1 + (sample - 2) % inner;
        if (row != order_row || number != order_number) {
          order = order_of(coalitions.key(row), number, features, antithetic);
          order_row = row;
          order_number = number;
        }
        for (int64_t i = present; i < features; ++i) put_bit(words, order[static_cast<size_t>(i)]);
      });
  for (int64_t r = 0; r < rows.size(); ++r) {
    std::vector<double>& row = values[static_cast<size_t>(r)];
    const int64_t features = coalitions.count(r);
    std::vector<double> sums(static_cast<size_t>(features), 0);
    for (int64_t p = 0; p < permutations; ++p) {
      const std::vector<int64_t> of = order_of(coalitions.key(r), p, features, antithetic);
      double before = row[0];
      for (int64_t i = 0; i < features; ++i) {
        const double now = i == features - 1 ? row[1] : row[static_cast<size_t>(2 + p * (features - 1) + i)];
        sums[static_cast<size_t>(of[static_cast<size_t>(i)])] += now - before;
        before = now;
      }
    }
    for (double& sum : sums) sum /= static_cast<double>(permutations);
    row = sums;
  }
  return coalitions.maps(values);
}

}  // namespace

MethodEntry shapley_sampling_method() {
  return {.id = "shapley-sampling",
          .summary = "Shapley values: what features add on average when they come in random orders",
          .family = "perturbation",
          .needs = "forward",
          .paper = "Castro et al. 2009",
          .parameters = segment_parameters(
              nlohmann::json::array({{{"name", "samples"},
                                      {"type", "int"},
                                      {"default", 25},
                                      {"minimum", 1},
                                      {"summary", "orders an image"}},
                                     {{"name", "antithetic"},
                                      {"type", "bool"},
                                      {"default", false},
                                      {"summary", "each second order is the one before it backwards"}}})),
          .attribute = shapley_sampling,
          .one_channel = true};
}

}  // namespace assay
