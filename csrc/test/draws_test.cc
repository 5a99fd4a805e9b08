// Normal numbers of methods: one function, made in two ways.
#include "attribution/draws.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "removal/philox.h"

namespace assay {
namespace {

const std::vector<uint64_t> kKeys = {1, 0xfedcba9876543210, 77};
const std::vector<uint64_t> kIndices = {0, 5, uint64_t{1} << 40};

TEST(Draws, WordsByTensorOperationsAreThoseOfPhilox) {
  const at::Tensor words = philox_words(kKeys, kIndices, Draw::kNoise, 9, at::kCPU);
  for (size_t r = 0; r < kKeys.size(); ++r) {
    for (uint64_t b = 0; b < 9; ++b) {
      const auto want = philox(kKeys[r], b, uint64_t{1} << 56 | kIndices[r]);
      for (size_t w = 0; w < 4; ++w) {
        EXPECT_EQ(
            words[static_cast<int64_t>(r)][static_cast<int64_t>(b)][static_cast<int64_t>(w)].item<int64_t>(),
            static_cast<int64_t>(want[w]));
      }
    }
  }
}

TEST(Draws, NormalsFollowTheirDefinition) {
  const at::Tensor got = normals(kKeys, kIndices, Draw::kNoise, {2, 3, 5}, at::kCPU, at::kDouble);
  ASSERT_EQ(got.sizes(), at::IntArrayRef({3, 2, 3, 5}));
  const at::Tensor rows = got.flatten(1);
  for (int64_t e = 0; e < 30; ++e) {
    const auto words = philox(kKeys[1], static_cast<uint64_t>(e / 4), uint64_t{1} << 56 | kIndices[1]);
    const size_t pair = static_cast<size_t>(e % 4 / 2) * 2;
    const double u = (words[pair] + .5) / 4294967296., v = (words[pair + 1] + .5) / 4294967296.;
    const double angle = 2 * std::numbers::pi * v;
    const double want = std::sqrt(-2 * std::log(u)) * (e % 2 == 0 ? std::cos(angle) : std::sin(angle));
    EXPECT_NEAR(rows[1][e].item<double>(), want, 1e-14);
  }
  const at::Tensor narrow = normals(kKeys, kIndices, Draw::kNoise, {2, 3, 5}, at::kCPU, at::kFloat);
  EXPECT_TRUE(at::allclose(narrow.to(at::kDouble), got, 1e-5, 1e-6));
}

// A row has the same bits in any company.
TEST(Draws, RowsDoNotSeeEachOther) {
  const at::Tensor all = normals(kKeys, kIndices, Draw::kNoise, {101}, at::kCPU, at::kFloat);
  const at::Tensor last = normals({kKeys[2]}, {kIndices[2]}, Draw::kNoise, {101}, at::kCPU, at::kFloat);
  EXPECT_TRUE(at::equal(all[2], last[0]));
  const at::Tensor other = normals({kKeys[2]}, {kIndices[2]}, Draw::kReference, {101}, at::kCPU, at::kFloat);
  EXPECT_FALSE(at::allclose(other, last));
}

TEST(Draws, NormalsAreStandardNormal) {
  const at::Tensor x = normals({3}, {0}, Draw::kNoise, {200000}, at::kCPU, at::kFloat).to(at::kDouble);
  EXPECT_NEAR(x.mean().item<double>(), 0, .01);
  EXPECT_NEAR(x.var().item<double>(), 1, .015);
  EXPECT_NEAR(x.pow(4).mean().item<double>(), 3, .1);
  EXPECT_NEAR((x.abs() > 1.959964).to(at::kDouble).mean().item<double>(), .05, .0025);
}

}  // namespace
}  // namespace assay
