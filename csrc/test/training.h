// What tests of training share.
#pragma once

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "api/error.h"
#include "test/fill.h"

namespace assay {

inline std::string message_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

inline void expect_says(const std::function<void()>& body, const std::string& text) {
  EXPECT_NE(message_of(body).find(text), std::string::npos) << message_of(body) << "\nwant: " << text;
}

// Intra-op threads of this thread, for the time of a test: small work on a busy
// machine is slow on several.
class Threads {
 public:
  explicit Threads(int n) : before_(at::get_num_threads()) { at::set_num_threads(n); }
  ~Threads() { at::set_num_threads(before_); }
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

 private:
  int before_;
};

// A tensor against what golden_training.py keeps of it.
inline void expect_summary(const at::Tensor& got, const std::string& name, const nlohmann::json& want,
                           double tolerance) {
  const at::Tensor flat = got.to(at::kDouble).flatten();
  const double norm = want.at("norm");
  const at::Tensor probe = fill_values("projection " + name, flat.sizes(), 1, 0).to(at::kDouble);
  EXPECT_NEAR(flat.norm().item<double>(), norm, tolerance * (1 + norm)) << name;
  EXPECT_NEAR(flat.dot(probe).item<double>(), want.at("projection").get<double>(), tolerance * (1 + norm))
      << name;
  for (size_t i = 0; i < want.at("places").size(); ++i) {
    EXPECT_NEAR(flat[want["places"][i].get<int64_t>()].item<double>(), want["values"][i].get<double>(),
                tolerance)
        << name << " at " << want["places"][i];
  }
}

// The order in which those scripts take examples.
inline std::vector<int32_t> order(int64_t count, int64_t examples) {
  std::vector<int32_t> indices;
  for (int64_t i = 0; i < count; ++i) {
    indices.push_back(static_cast<int32_t>((i * 7 + i / examples * 3) % examples));
  }
  return indices;
}

}  // namespace assay
