// The two ways of expanding masks agree to the bit, and with a plain loop.
#include "removal/scene.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>
#include <vector>

namespace assay {
namespace {

class SceneTest : public testing::TestWithParam<std::tuple<int, int, int, int>> {};

TEST_P(SceneTest, BothWaysEqualThePlainLoop) {
  const auto [channels, height, width, features] = GetParam();
  std::mt19937_64 random(static_cast<uint64_t>(features));
  std::vector<int32_t> map(static_cast<size_t>(height * width));
  for (int32_t& f : map) f = static_cast<int32_t>(random() % static_cast<uint64_t>(features));
  const int32_t slots = 3;
  Scene scene(at::kCPU, slots, channels, height, width, features, map.data());
  std::vector<int64_t> shape = {channels, height, width};
  if (channels == 0) shape = {width};
  std::vector<at::Tensor> images, references;
  for (int32_t s = 0; s < slots; ++s) {
    images.push_back(at::randn(shape));
    references.push_back(at::randn(shape));
    scene.put(s, images.back(), references.back());
  }
  const int64_t count = 5, rows = 8, words = (features + 63) / 64;
  std::vector<int32_t> slot;
  std::vector<uint64_t> sets;
  for (int64_t r = 0; r < count; ++r) {
    slot.push_back(static_cast<int32_t>(random() % slots));
    for (int64_t w = 0; w < words; ++w) sets.push_back(random());
  }
  const at::Tensor runs = scene.expand_runs(count, rows, slot.data(), sets.data());
  const at::Tensor masks = scene.expand_masks(count, rows, slot.data(), sets.data());
  ASSERT_TRUE(at::equal(runs, masks));
  for (int64_t r = 0; r < rows; ++r) {
    const size_t state = static_cast<size_t>(std::min(r, count - 1));
    at::Tensor want = images[static_cast<size_t>(slot[state])].clone();
    for (size_t p = 0; p < map.size(); ++p) {
      const size_t f = static_cast<size_t>(map[p]);
      if (((sets[state * static_cast<size_t>(words) + f / 64] >> (f % 64)) & 1) == 0) continue;
      const int64_t pixel = static_cast<int64_t>(p);
      const at::Tensor& reference = references[static_cast<size_t>(slot[state])];
      if (channels == 0) {
        want[pixel] = reference[pixel];
      } else {
        want.select(1, pixel / width)
            .select(1, pixel % width)
            .copy_(reference.select(1, pixel / width).select(1, pixel % width));
      }
    }
    ASSERT_TRUE(at::equal(runs[r], want)) << "row " << r;
  }
}

// States of a scene with imputers are what the imputer makes of the image and the set.
TEST(Scene, ImputesEveryState) {
  const int32_t height = 12, width = 10, features = 30;
  std::vector<int32_t> map;
  for (int32_t i = 0; i < height * width; ++i) map.push_back(i / width / 2 * 5 + i % width / 2);
  Scene scene(at::kCPU, 2, 3, height, width, features, map.data());
  const nlohmann::json spec{{"id", "noisy-linear"}, {"noise", .05}};
  const std::vector<uint64_t> keys{7, 8};
  ImputerInput all;
  all.images = at::rand({2, 3, height, width});
  all.mean = {0, 0, 0};
  all.std = {1, 1, 1};
  all.keys = keys.data();
  for (int32_t s = 0; s < 2; ++s) {
    ImputerInput own = all;
    own.images = all.images.slice(0, s, s + 1).contiguous();
    own.keys = &keys[static_cast<size_t>(s)];
    scene.put(s, own.images[0], make_imputer(spec, own));
  }
  const std::vector<int32_t> slot{1, 0, 1};
  const std::vector<uint64_t> sets{0b1011, 1u << 29, 0};
  const at::Tensor got = scene.expand(3, 4, slot.data(), sets.data());
  at::Tensor removed = at::zeros({3, height, width}, at::kBool);
  for (int64_t r = 0; r < 3; ++r) {
    for (int64_t i = 0; i < height * width; ++i) {
      removed[r].view({-1})[i] = ((sets[static_cast<size_t>(r)] >> map[static_cast<size_t>(i)]) & 1) != 0;
    }
  }
  const at::Tensor want = make_imputer(spec, all)->fill({1, 0, 1}, removed, nullptr);
  EXPECT_TRUE(at::equal(got.slice(0, 0, 3), want));
  EXPECT_TRUE(at::equal(got[3], want[2])) << "padding repeats the last";
}

INSTANTIATE_TEST_SUITE_P(Shapes, SceneTest,
                         testing::Values(std::tuple{3, 6, 5, 4}, std::tuple{1, 9, 9, 80},
                                         std::tuple{0, 1, 30, 30}, std::tuple{3, 4, 4, 1},
                                         std::tuple{2, 16, 16, 130}));

}  // namespace
}  // namespace assay
