// Perturbation methods and controls against analytic answers, brute force and
// other implementations, and that a row's map is its own affair.
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "removal/philox.h"
#include "test/explaining.h"

namespace assay {
namespace {

using nlohmann::json;

const at::Tensor& captum_row() {
  static const at::Tensor row = one_row({20., 50., 30.});
  return row;
}

double output(const Net& net, const at::Tensor& row, int64_t target) {
  return net.forward(row.unsqueeze(0))[0][target].item<double>();
}

// ---- what all of them promise

// Every method that needs no more than forwards, with few samples.
class EveryMethod : public testing::TestWithParam<json> {};

std::string id_of(const testing::TestParamInfo<json>& info) {
  std::string name = info.param["id"].get<std::string>() + "_" + std::to_string(info.index);
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

TEST_P(EveryMethod, MapsOfARowAreItsOwn) {
  const auto net = image_net({3, 9, 8}, Precision::kF32);
  const at::Tensor x = fill_values("x", {5, 3, 9, 8}, 1, 0);
  const std::vector<int64_t> targets = {0, 3, 1, 2, 3};
  const std::vector<uint64_t> keys = {11, 12, 13, 14, 15};
  for (int64_t batch : {1, 7}) {
    const at::Tensor all = explain(*net, {GetParam(), x, targets, keys, batch}).maps;
    ASSERT_EQ(all.size(0), 5);
    ASSERT_TRUE(at::isfinite(all).all().item<bool>());
    const std::vector<size_t> order = {4, 1, 2, 1};
    std::vector<at::Tensor> some;
    std::vector<int64_t> some_targets;
    std::vector<uint64_t> some_keys;
    for (size_t r : order) {
      some.push_back(x[static_cast<int64_t>(r)]);
      some_targets.push_back(targets[r]);
      some_keys.push_back(keys[r]);
    }
    const at::Tensor again =
        explain(*net, {GetParam(), at::stack(some), some_targets, some_keys, batch}).maps;
    for (size_t k = 0; k < order.size(); ++k) {
      EXPECT_TRUE(at::equal(again[static_cast<int64_t>(k)], all[static_cast<int64_t>(order[k])]))
          << "batch " << batch << " row " << order[k];
    }
    const at::Tensor alone =
        explain(*net, {GetParam(), x.narrow(0, 3, 1), {targets[3]}, {keys[3]}, batch}).maps;
    EXPECT_TRUE(at::equal(alone[0], all[3])) << "batch " << batch;
  }
}

// In double another batch changes no more than the last digits.
TEST_P(EveryMethod, BatchesChangeNothing) {
  const auto net = image_net({3, 9, 8});
  const at::Tensor x = fill_values("x", {3, 3, 9, 8}, 1, 0);
  const at::Tensor want = explain(*net, {GetParam(), x, {0, 3, 1}, {}, 1}).maps;
  for (int64_t batch : {5, 300}) {
    EXPECT_LT(gap(explain(*net, {GetParam(), x, {0, 3, 1}, {}, batch}).maps, want), 1e-9);
  }
  EXPECT_EQ(want.scalar_type(), at::kDouble);
}

INSTANTIATE_TEST_SUITE_P(
    Perturbation, EveryMethod,
    testing::Values(
        json{{"id", "occlusion"}}, json{{"id", "occlusion"}, {"window", 4}, {"stride", 3}},
        json{{"id", "feature-ablation"}, {"edge", 3}, {"baseline", "mean"}},
        json{{"id", "rise"}, {"samples", 12}, {"cells", 3}},
        json{{"id", "rise"}, {"samples", 12}, {"cells", 3}, {"torchray", true}, {"baseline", "channel-mean"}},
        json{{"id", "kernel-shap"}, {"samples", 20}, {"edge", 3}},
        json{{"id", "lime"}, {"samples", 20}, {"edge", 3}, {"baseline", "patch-mean"}},
        json{{"id", "shapley-sampling"}, {"samples", 3}, {"edge", 2}, {"antithetic", true}},
        json{{"id", "random"}}, json{{"id", "pixel-random"}}, json{{"id", "block-random"}},
        json{{"id", "centred-gaussian"}},
        json{{"id", "blurred"}, {"base", {{"id", "occlusion"}}}, {"kind", "max"}},

        json{{"id", "sobel"}}),
    id_of);

// ---- occlusion and ablation

TEST(Occlusion, IsTheChangeOnCaptumsNet) {
  const auto net = captum_net();
  const at::Tensor want = one_row({80., 200., 120.});
  EXPECT_LT(gap(explain(*net, {{{"id", "occlusion"}}, captum_row()}).maps, want), 1e-12);
  EXPECT_LT(gap(explain(*net, {{{"id", "feature-ablation"}}, captum_row()}).maps, want), 1e-12);
  const Answer grouped = explain(*net, {.method = {{"id", "feature-ablation"}},
                                        .x = captum_row(),
                                        .targets = {},
                                        .keys = {},
                                        .feature_map = {0, 1, 0},
                                        .features = 2});
  EXPECT_LT(gap(grouped.maps, one_row({200., 200., 200.})), 1e-12);
  EXPECT_EQ(grouped.forwards, 3);
}

TEST(Occlusion, IsAPlainLoop) {
  const auto net = image_net({3, 8, 7});
  const at::Tensor x = fill_values("x", {2, 3, 8, 7}, 1, 0).to(at::kDouble);
  const std::vector<int64_t> targets = {2, 1};
  struct Case {
    int64_t window, stride, high, wide;  // asked for; what 0 means
  };
  for (const Case& c : {Case{4, 3, 4, 4}, Case{0, 0, 2, 1}, Case{7, 5, 7, 7}, Case{1, 1, 1, 1}}) {
    const at::Tensor got =
        explain(*net, {{{"id", "occlusion"}, {"window", c.window}, {"stride", c.stride}}, x, targets}).maps;
    const int64_t down = c.stride == 0 ? c.high : c.stride, across = c.stride == 0 ? c.wide : c.stride;
    for (int64_t n = 0; n < 2; ++n) {
      at::Tensor sum = at::zeros({1, 8, 7}, at::kDouble), cover = at::zeros({1, 8, 7}, at::kDouble);
      const double plain = output(*net, x[n], targets[static_cast<size_t>(n)]);
      // The last window is the first that reaches the border.
      for (int64_t top = 0;; top += down) {
        const int64_t bottom = std::min<int64_t>(top + c.high, 8);
        for (int64_t left = 0;; left += across) {
          const int64_t right = std::min<int64_t>(left + c.wide, 7);
          at::Tensor hidden = x[n].clone();
          hidden.slice(1, top, bottom).slice(2, left, right).zero_();
          const double change = plain - output(*net, hidden, targets[static_cast<size_t>(n)]);
          sum.slice(1, top, bottom).slice(2, left, right).add_(change);
          cover.slice(1, top, bottom).slice(2, left, right).add_(1);
          if (right == 7) break;
        }
        if (bottom == 8) break;
      }
      EXPECT_LT(gap(got[n], sum / cover), 1e-9) << "window " << c.window;
    }
  }
}

TEST(Occlusion, SaysWhatDoesNotFit) {
  const auto net = image_net({3, 13, 11});
  const at::Tensor x = fill_values("x", {1, 3, 13, 11}, 1, 0);
  const auto asked = [&](json method) { return complaint([&] { explain(*net, {method, x}); }); };
  EXPECT_EQ(asked({{"id", "occlusion"}, {"window", 3}, {"stride", 4}}),
            "method occlusion: stride 4: want at most the window, 3: pixels between windows would never be "
            "covered");
  EXPECT_EQ(asked({{"id", "occlusion"}, {"window", 12}}),
            "method occlusion: window 12: want at most 11, the size of the image");
  EXPECT_EQ(asked({{"id", "feature-ablation"}, {"edge", 12}}),
            "edge 12: want 1..11 patches along an image of 13x11");
}

// With patches, the loop over patches; the first of them is 2 x 2 pixels.
TEST(FeatureAblation, IsTheChangeOfAPatch) {
  const auto net = image_net({3, 14, 14});
  const at::Tensor x = fill_values("x", {1, 3, 14, 14}, 1, 0).to(at::kDouble);
  const Answer got = explain(*net, {{{"id", "feature-ablation"}, {"output", "probability"}}, x, {3}});
  EXPECT_EQ(got.forwards, 50);
  ASSERT_EQ(got.maps.sizes(), at::IntArrayRef({1, 1, 14, 14}));
  const auto probability = [&](const at::Tensor& row) {
    return at::softmax(net->forward(row), 1)[0][3].item<double>();
  };
  for (int64_t i = 0; i < 14; i += 2) {
    for (int64_t j = 0; j < 14; j += 2) {
      at::Tensor without = x.clone();
      without.slice(2, i, i + 2).slice(3, j, j + 2).zero_();
      const double change = probability(x) - probability(without);
      EXPECT_NEAR(got.maps[0][0][i + 1][j].item<double>(), change, 1e-12);
    }
  }
}

// ---- controls

TEST(Random, IsNormalAndUniform) {
  const auto net = linear_net({1, 100, 100}, at::zeros({2, 10000}));
  const at::Tensor x = at::zeros({2, 1, 100, 100});
  const at::Tensor normal = explain(*net, {{{"id", "random"}}, x}).maps;
  // Five standard errors of 20000 draws: of the mean, the variance, the share below 1.
  EXPECT_NEAR(normal.mean().item<double>(), 0, 5 / std::sqrt(20000.));
  EXPECT_NEAR(normal.var().item<double>(), 1, 5 * std::sqrt(2 / 20000.));
  EXPECT_NEAR(normal.lt(1).to(at::kDouble).mean().item<double>(), 0.841345,
              5 * std::sqrt(.841345 * .158655 / 20000));
  EXPECT_FALSE(at::equal(normal[0], normal[1]));
  const at::Tensor uniform = explain(*net, {{{"id", "pixel-random"}}, x}).maps;
  EXPECT_GE(uniform.min().item<double>(), 0);
  EXPECT_LT(uniform.max().item<double>(), 1);
  EXPECT_NEAR(uniform.mean().item<double>(), 0.5, 5 / std::sqrt(12 * 20000.));
  EXPECT_NEAR(uniform.lt(0.25).to(at::kDouble).mean().item<double>(), 0.25, 5 * std::sqrt(.25 * .75 / 20000));
}

TEST(Sobel, IsTheSquaredResponse) {
  const auto net = linear_net({2, 3, 4}, at::zeros({2, 24}));
  // Ramps: 8 times the slope inside, half of the ramp missing at the border.
  const at::Tensor across = at::arange(4, at::kDouble).view({1, 4}).expand({3, 4});
  const at::Tensor down = 3 * at::arange(3, at::kDouble).view({3, 1}).expand({3, 4});
  const at::Tensor got = explain(*net, {{{"id", "sobel"}}, at::stack({across, down}).unsqueeze(0)}).maps;
  const double a = 64, b = 16, c = 9 * 64, d = 9 * 16;
  const at::Tensor want =
      at::tensor({b + d, a + d, a + d, b + d, b + c, a + c, a + c, b + c, b + d, a + d, a + d, b + d},
                 at::kDouble)
          .view({1, 1, 3, 4});
  EXPECT_TRUE(at::equal(got, want));
  const auto table = captum_net();
  EXPECT_EQ(complaint([&] {
              explain(*table, {{{"id", "sobel"}}, captum_row()});
            }),
            "method sobel: a table has no edges");
}

}  // namespace
}  // namespace assay
