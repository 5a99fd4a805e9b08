// What tests of attribution share: rows to explain, maps, comparing them.
#pragma once

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include <cctype>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "attribution/method.h"

namespace assay {

// One thread: small nets, and the many small products of depthwise convolutions in f64, gain
// nothing from more, and lose much where the machine is busy.
struct Quiet {
  Quiet() { at::set_num_threads(1); }
  ~Quiet() { at::set_num_threads(before); }
  Quiet(const Quiet&) = delete;
  Quiet& operator=(const Quiet&) = delete;

  const int before = at::get_num_threads();
  const at::NoGradGuard no_grad;
};

inline double largest(const at::Tensor& x) { return x.abs().max().item<double>(); }

// Within a share of the largest value.
inline void expect_close(const at::Tensor& got, const at::Tensor& want, double share,
                         const std::string& what) {
  ASSERT_EQ(got.sizes(), want.sizes()) << what;
  const double gap = largest(got - want);
  EXPECT_FALSE(std::isnan(gap)) << what;
  EXPECT_LE(gap, share * largest(want)) << what;
}

// Target r mod classes for row r, unless they are given.
inline Explained explained(const at::Tensor& x, int64_t classes, std::vector<int64_t> targets = {}) {
  Explained rows{.x = x, .targets = std::move(targets), .keys = {}};
  for (int64_t r = 0; r < x.size(0); ++r) {
    if (static_cast<int64_t>(rows.targets.size()) <= r) rows.targets.push_back(r % classes);
    rows.keys.push_back(static_cast<uint64_t>(r) * 77 + 5);
  }
  return rows;
}

inline at::Tensor map_of(const Net& net, const nlohmann::json& spec, const Explained& rows,
                         int64_t batch = 4) {
  Context context(net, batch);
  return Method(spec).attribute(context, rows);
}

inline at::Tensor outputs_of(const Net& net, const Explained& rows) {
  Context context(net, 4);
  return context.run.outputs(rows.x, rows.targets);
}

struct SpecCase {
  nlohmann::json spec;
};
inline void PrintTo(const SpecCase& c, std::ostream* out) { *out << c.spec.dump(); }

inline std::string test_name(const testing::TestParamInfo<SpecCase>& info) {
  std::string name;
  for (char c : info.param.spec.dump()) {
    if (std::isalnum(static_cast<unsigned char>(c))) name += c;
    if (c == '+') name += 'P';
  }
  return name;
}

}  // namespace assay
