// Perturbation methods and controls against analytic answers, brute force and
// other implementations, and that a row's map is its own affair.
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "attribution/masks.h"
#include "attribution/slic.h"
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
        json{
            {"id", "feature-ablation"}, {"segments", "slic"}, {"superpixels", 6}, {"baseline", "patch-mean"}},

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

// The order of a map: a removed share is a rectangle, up to a part of one side.
TEST(BlockRandom, OrdersPixelsByNestedRectangles) {
  const int64_t height = 12, width = 9, pixels = height * width;
  const auto net = linear_net({1, height, width}, at::zeros({2, pixels}));
  const int64_t rows = 400;
  const at::Tensor maps = explain(*net, {{{"id", "block-random"}}, at::zeros({rows, 1, height, width})}).maps;
  double corner = 0;
  for (int64_t n = 0; n < rows; ++n) {
    const at::Tensor map = maps[n][0].contiguous();
    const double* values = map.const_data_ptr<double>();
    for (int64_t p = 0; p < pixels; ++p) {
      // All that is at least as large as this pixel is the rectangle around it.
      int64_t top = height, bottom = -1, left = width, right = -1, count = 0;
      for (int64_t q = 0; q < pixels; ++q) {
        if (values[q] < values[p]) continue;
        top = std::min(top, q / width);
        bottom = std::max(bottom, q / width);
        left = std::min(left, q % width);
        right = std::max(right, q % width);
        ++count;
      }
      ASSERT_EQ(count, (bottom - top + 1) * (right - left + 1));
    }
    // At half of each edge the first row begins anywhere in the first half.
    corner += map.ge(0.5).any(1).nonzero()[0][0].item<double>() / static_cast<double>(rows);
  }
  // Uniform on 0..6 (but for rounding at the ends) has mean 3, standard deviation 1.8.
  EXPECT_NEAR(corner, 3, 5 * 1.8 / std::sqrt(static_cast<double>(rows)));
}

TEST(CentredGaussian, IsTheDensityAlongTheAxes) {
  const auto net = linear_net({1, 4, 5}, at::zeros({2, 20}));
  const at::Tensor map =
      explain(*net, {{{"id", "centred-gaussian"}, {"sigma", 0.5}}, at::zeros({1, 1, 4, 5})}).maps[0][0];
  // Centres of pixels at 1/8 and 1/2 of the edges: .75 and 0 standard deviations off.
  EXPECT_NEAR(map[0][2].item<double>(), std::exp(-0.5 * 0.75 * 0.75), 1e-15);
  EXPECT_NEAR(map[3][2].item<double>(), std::exp(-0.5 * 0.75 * 0.75), 1e-15);
  EXPECT_NEAR(map[1][0].item<double>(), std::exp(-0.5 * (0.25 * 0.25 + 0.8 * 0.8)), 1e-15);
}

// ---- against other implementations

TEST(Golden, MapsAreAsElsewhere) {
  std::ifstream file(ASSAY_SOURCE_DIR "/testdata/golden_perturbation.json");
  const json golden = json::parse(file);
  const auto net = image_net({3, 13, 11});
  Asked asked{.method = {}, .x = fill_values("x", {2, 3, 13, 11}, 1, 0)};
  asked.targets = golden["targets"].get<std::vector<int64_t>>();
  asked.keys = golden["keys"].get<std::vector<uint64_t>>();
  for (const json& entry : golden["maps"]) {
    asked.method = entry["method"];
    const at::Tensor got = explain(*net, asked).maps;
    for (int64_t n = 0; n < 2; ++n) {
      const at::Tensor want =
          at::tensor(entry["maps"][static_cast<size_t>(n)].get<std::vector<double>>(), at::kDouble);
      EXPECT_LT(gap(got[n].flatten(), want), 1e-6) << asked.method << " image " << n;
    }
  }
}

// ---- RISE

TEST(Masks, BothWaysAgreeToTheBit) {
  for (const at::ScalarType dtype : {at::kFloat, at::kDouble}) {
    const at::Tensor pixels = fill_values("p", {2, 13, 10, 3}, 1, 0).to(dtype);
    const at::Tensor other = fill_values("q", {2, 13, 10, 3}, 1, 0).to(dtype);
    const Block block{{1, 0, 0, 1}, {0, 7, 8, 3}};
    for (int64_t cells : {1, 3, 10}) {
      const Masks masks{MaskAxis(13, cells), MaskAxis(10, cells), 0.5};
      for (const at::Tensor& baseline : {other, at::Tensor()}) {
        EXPECT_TRUE(at::equal(masked_by_rows(masks, block, {5, 6}, pixels, baseline),
                              masked_by_tensors(masks, block, {5, 6}, pixels, baseline)));
      }
    }
    const Windows windows{{13, 5, 2}, {10, 4, 3}};
    ASSERT_EQ(windows.count(), 5 * 3);
    const Block some{{1, 0, 0, 1}, {0, 15, 8, 3}};
    EXPECT_TRUE(at::equal(occluded_by_rows(some, windows, pixels, other),
                          occluded_by_tensors(some, windows, pixels, other)));
  }
}

// On a linear net the expectation is known: sum_q a_q x_q E[M_q M_p] / p, where the
// masks' second moments are p^2 + p(1-p) sum over cells of the products of the two
// pixels' weights, averaged over the offsets.
TEST(Rise, ConvergesToItsExpectation) {
  const int64_t size = 6, cells = 3, cell = 2, keys = 40;
  const double p = 0.3;
  const at::Tensor weights = fill_values("a", {2, size * size}, 1, 0.2);
  const auto net = linear_net({1, size, size}, weights);
  const at::Tensor x = fill_values("x", {1, 1, size, size}, 1, 0).to(at::kDouble);
  // [places,cells]: weights of cells at each place of the enlarged grid, by hand: 8
  // places over 3 cells, centres at (q + 1/2) 3/8 - 1/2, mirrored about 0 and 2.
  const at::Tensor u = at::tensor({11., 5.,  0., 15., 1., 0., 9., 7., 0.,  3., 13., 0.,
                                   0.,  13., 3., 0.,  7., 9., 0., 1., 15., 0., 5.,  11.},
                                  at::kDouble)
                           .view({8, 3}) /
                       16;
  at::Tensor moment = at::zeros({size, size}, at::kDouble);  // of the cells' weights along an axis
  for (int64_t offset = 0; offset < cell; ++offset) {
    const at::Tensor at = u.narrow(0, offset, size);
    moment += at.matmul(at.t()) / cell;
  }
  const at::Tensor second = p * p + p * (1 - p) * at::kron(moment, moment);
  const at::Tensor want = second.matmul(weights[1].to(at::kDouble) * x.flatten()) / p;

  const Answer got = explain(
      *net, {.method = {{"id", "rise"}, {"output", "logit"}, {"samples", 250}, {"cells", cells}, {"p", p}},
             .x = x.expand({keys, 1, size, size}),
             .targets = std::vector<int64_t>(static_cast<size_t>(keys), 1),
             .batch = 500});
  EXPECT_EQ(got.forwards, keys * 250);
  const at::Tensor maps = got.maps.flatten(1);
  const at::Tensor error = maps.std(0) / std::sqrt(static_cast<double>(keys));
  // 36 pixels, 39 degrees of freedom: beyond 5 standard errors once in thousands of seeds.
  EXPECT_LT(((maps.mean(0) - want) / error).abs().max().item<double>(), 5);
  EXPECT_LT((error / want.abs().max()).max().item<double>(), 0.05);  // which says something
}

TEST(Rise, OfATableTakesSetsOfColumns) {
  const at::Tensor weights = fill_values("a", {2, 4}, 1, 0);
  const auto net = linear_net({4}, weights);
  const at::Tensor x = one_row({1., -2., 3., 4.});
  const uint64_t key = 17;
  const at::Tensor got =
      explain(*net, {.method = {{"id", "rise"}, {"output", "logit"}, {"samples", 30}, {"p", 0.6}},
                     .x = x,
                     .targets = {1},
                     .keys = {key}})
          .maps[0];
  at::Tensor want = at::zeros({4}, at::kDouble);
  for (uint64_t i = 0; i < 30; ++i) {
    at::Tensor mask = at::zeros({4}, at::kDouble);
    for (int64_t f = 0; f < 4; ++f)
      mask[f] = philox_uniform(key, i, static_cast<uint64_t>(f)) < 0.6 ? 1. : 0.;
    want += mask * (x[0] * mask).dot(weights[1].to(at::kDouble)) / (30 * 0.6);
  }
  EXPECT_LT(gap(got, want), 1e-12);
}

// ---- Shapley values

// Columns through two layers of ReLUs: every order of interaction.
std::unique_ptr<Net> mixing_net(int64_t columns) {
  GraphBuilder b({columns});
  int x = b.relu("relu1", b.linear("one", 0, 8));
  x = b.relu("relu2", b.linear("two", x, 8));
  Graph graph = b.finish(b.linear("three", x, 3), "");
  State state;
  for (const ParameterInfo& p : graph.parameters) state.emplace_back(p.name, fill_parameter(p.name, p.shape));
  return net_of(std::move(graph), state);
}

// The definition (Shapley 1953): the mean over all orders of what a column adds.
at::Tensor shapley(const Net& net, const at::Tensor& row, const at::Tensor& baseline, int64_t target) {
  const int64_t columns = row.size(0);
  std::vector<double> outputs;
  for (int64_t set = 0; set < (int64_t{1} << columns); ++set) {
    at::Tensor x = baseline.clone();
    for (int64_t f = 0; f < columns; ++f) {
      if (set >> f & 1) x[f] = row[f];
    }
    outputs.push_back(output(net, x, target));
  }
  std::vector<int64_t> order(static_cast<size_t>(columns));
  std::iota(order.begin(), order.end(), 0);
  std::vector<double> values(order.size(), 0);
  double orders = 0;
  do {
    size_t set = 0;
    for (int64_t f : order) {
      const size_t with = set | size_t{1} << f;
      values[static_cast<size_t>(f)] += outputs[with] - outputs[set];
      set = with;
    }
    ++orders;
  } while (std::next_permutation(order.begin(), order.end()));
  return at::tensor(values, at::kDouble) / orders;
}

TEST(KernelShap, OfAllCoalitionsIsExact) {
  const auto captum = captum_net();
  EXPECT_LT(gap(explain(*captum, {{{"id", "kernel-shap"}}, captum_row()}).maps,
                one_row({230. / 3, 590. / 3, 350. / 3})),
            1e-10);
  for (int64_t columns : {1, 2, 6}) {
    const auto net = mixing_net(columns);
    const at::Tensor x = fill_values("x", {1, columns}, 1, 0).to(at::kDouble);
    // The mean of one column is the column.
    const std::string baseline = columns == 1 ? "zero" : "mean";
    const at::Tensor from = columns == 1 ? at::zeros({1}, at::kDouble) : x.mean().expand({columns});
    const Answer got = explain(*net, {{{"id", "kernel-shap"}, {"baseline", baseline}}, x, {2}});
    EXPECT_LT(gap(got.maps[0], shapley(*net, x[0], from, 2)), 1e-9) << columns;
    EXPECT_EQ(got.forwards, int64_t{1} << columns);
  }
}

// Where the output is linear, any coalitions that determine the values give them.
TEST(KernelShap, OfALinearNetIsExactFromFewSamples) {
  const at::Tensor weights = fill_values("a", {2, 30}, 1, 0);
  const auto net = linear_net({30}, weights);
  const at::Tensor x = fill_values("x", {3, 30}, 1, 0).to(at::kDouble);
  const Answer got = explain(*net, {{{"id", "kernel-shap"}, {"samples", 90}}, x, {1, 1, 1}, {}, 32});
  EXPECT_LT(gap(got.maps, x * weights[1].to(at::kDouble)), 1e-10);
  EXPECT_TRUE(got.warnings.empty());
  // With too few the values still add up, and that is said.
  const Answer few = explain(*net, {{{"id", "kernel-shap"}, {"samples", 10}}, x, {1, 1, 1}, {}, 32});
  EXPECT_LT(gap(few.maps.sum(1), x.matmul(weights[1].to(at::kDouble))), 1e-10);
  EXPECT_EQ(few.warnings.size(), 1);
}

TEST(KernelShap, OfSamplesConverges) {
  const auto net = mixing_net(6);
  const at::Tensor x = fill_values("x", {1, 6}, 1, 0).to(at::kDouble);
  const at::Tensor want = shapley(*net, x[0], at::zeros({6}, at::kDouble), 1);
  const int64_t keys = 40;
  // 63 samples: one less than would take all coalitions.
  const at::Tensor maps = explain(*net, {{{"id", "kernel-shap"}, {"samples", 63}},
                                         x.expand({keys, 6}),
                                         std::vector<int64_t>(static_cast<size_t>(keys), 1),
                                         {},
                                         64})
                              .maps;
  const at::Tensor error = maps.std(0) / std::sqrt(static_cast<double>(keys));
  EXPECT_LT(((maps.mean(0) - want) / error).abs().max().item<double>(), 5);
  EXPECT_LT((error / want.abs().max()).max().item<double>(), 0.05);
}

TEST(ShapleySampling, ConvergesAndAddsUp) {
  const auto net = captum_net();
  const int64_t keys = 40;
  const Answer got = explain(*net, {{{"id", "shapley-sampling"}}, captum_row().expand({keys, 3})});
  EXPECT_EQ(got.forwards, keys * (2 + 25 * 2));
  EXPECT_LT(gap(got.maps.sum(1), at::full({keys}, 390., at::kDouble)), 1e-12);
  const at::Tensor want = at::tensor({230. / 3, 590. / 3, 350. / 3}, at::kDouble);
  const at::Tensor error = got.maps.std(0) / std::sqrt(static_cast<double>(keys));
  EXPECT_LT(((got.maps.mean(0) - want) / error).abs().max().item<double>(), 5);
  EXPECT_LT(error.max().item<double>(), 1);
}

// An order and its reverse see each pair of columns both ways: exact where no more
// than two interact, as in a quadratic form.
TEST(ShapleySampling, OfAPairOfOrdersIsExactForPairs) {
  GraphBuilder b({7});
  const int form = b.mul("form", b.linear("left", 0, 2, false), b.linear("right", 0, 2, false));
  Graph graph = b.finish(form, "");
  const at::Tensor left = fill_values("l", {2, 7}, 1, 0), right = fill_values("r", {2, 7}, 1, 0);
  const auto net = net_of(std::move(graph), {{"left.weight", left}, {"right.weight", right}});
  const at::Tensor x = fill_values("x", {1, 7}, 1, 0).to(at::kDouble);
  const json method{{"id", "shapley-sampling"}, {"samples", 2}, {"antithetic", true}};
  const at::Tensor want = shapley(*net, x[0], at::zeros({7}, at::kDouble), 0);
  EXPECT_LT(gap(explain(*net, {method, x}).maps[0], want), 1e-10);
  json plain = method;
  plain["antithetic"] = false;
  EXPECT_GT(gap(explain(*net, {plain, x}).maps[0], want), 1e-3);
}

// ---- superpixels

// Tiles of distinct colours that are a grid's cells: one superpixel each, whatever
// the compactness; a speck of other colour in the middle of one is too small to stay.
TEST(Slic, FindsTiles) {
  for (double compactness : {1., 10.}) {
    at::Tensor colours = at::zeros({24, 32, 3}, at::kDouble);
    std::vector<int32_t> want;
    for (int64_t y = 0; y < 24; ++y) {
      for (int64_t x = 0; x < 32; ++x) {
        const int64_t tile = y / 8 * 4 + x / 8;
        colours[y][x][0] = static_cast<double>(tile * 37 % 12) * 30;
        want.push_back(static_cast<int32_t>(tile));
      }
    }
    colours[11][12][0] = 6 * 30;  // of the tile to the right
    const Superpixels got = slic(colours, 12, compactness);
    EXPECT_EQ(got.count, 12);
    EXPECT_EQ(got.map, want);
  }
}

// On noise: as many as asked for, more or less, each connected, none tiny.
TEST(Slic, SuperpixelsAreConnected) {
  const int64_t height = 40, width = 30;
  const at::Tensor image = fill_values("noise", {1, 3, height, width}, 1, 0);
  const Superpixels got = slic(slic_colours(image, {0.5, 0.5, 0.5}, {0.5, 0.5, 0.5})[0], 12, 10);
  EXPECT_GE(got.count, 6);
  EXPECT_LE(got.count, 24);
  std::vector<int64_t> group(got.map.size());  // union-find of pixels with equal neighbours
  std::iota(group.begin(), group.end(), 0);
  const std::function<int64_t(int64_t)> root = [&](int64_t p) {
    return group[static_cast<size_t>(p)] == p
               ? p
               : group[static_cast<size_t>(p)] = root(group[static_cast<size_t>(p)]);
  };
  for (int64_t p = 0; p < height * width; ++p) {
    for (int64_t q : {p % width + 1 < width ? p + 1 : p, p + width < height * width ? p + width : p}) {
      if (got.map[static_cast<size_t>(p)] == got.map[static_cast<size_t>(q)])
        group[static_cast<size_t>(root(q))] = root(p);
    }
  }
  std::vector<int64_t> parts(static_cast<size_t>(got.count), 0), pixels = parts;
  for (int64_t p = 0; p < height * width; ++p) {
    const size_t label = static_cast<size_t>(got.map[static_cast<size_t>(p)]);
    if (root(p) == p) ++parts[label];
    ++pixels[label];
  }
  for (size_t label = 0; label < parts.size(); ++label) {
    EXPECT_EQ(parts[label], 1) << label;
    EXPECT_GE(pixels[label], 25) << label;  // a quarter of 1200 / 12
  }
}

// Lab of sRGB primaries, white and grey, from Lindbloom's tables (D65).
TEST(Slic, ColoursAreLab) {
  const at::Tensor rgb =
      at::tensor({1., 0., 0., 1., 0.5, 0., 1., 0., 1., 0.5, 0., 0., 1., 1., 0.5}, at::kDouble)
          .view({1, 3, 1, 5});  // red, green, blue, white, grey
  const at::Tensor lab = slic_colours(rgb, {0, 0, 0}, {1, 1, 1}).flatten(0, 2);
  const at::Tensor want = at::tensor({53.24, 80.09, 67.20, 87.73, -86.18, 83.18, 32.30, 79.19, -107.86, 100.,
                                      0., 0., 53.39, 0., 0.},
                                     at::kDouble)
                              .view({5, 3});
  EXPECT_LT((lab - want).abs().max().item<double>(), 0.05);
}

TEST(Slic, FeaturesThatWereGivenComeFirst) {
  const auto net = image_net({3, 8, 8});
  const Asked asked{.method = {{"id", "feature-ablation"}, {"segments", "slic"}},
                    .x = fill_values("x", {1, 3, 8, 8}, 1, 0),
                    .feature_map = std::vector<int32_t>(64, 0),
                    .features = 1};
  EXPECT_EQ(explain(*net, asked).warnings,
            std::vector<std::string>({"segments slic: not used, features were given"}));
  const auto table = captum_net();
  EXPECT_EQ(complaint([&] {
              explain(*table, {asked.method, captum_row()});
            }),
            "segments slic: a table has no superpixels, its features are columns");
}

// ---- LIME

TEST(Lime, OfALinearNetIsTheWeights) {
  const at::Tensor weights = fill_values("a", {2, 6}, 1, 0);
  const auto net = linear_net({6}, weights);
  const at::Tensor x = fill_values("x", {2, 6}, 1, 0).to(at::kDouble);
  const Answer got = explain(*net, {{{"id", "lime"}, {"alpha", 0.0}}, x, {1, 0}});
  EXPECT_LT(gap(got.maps[0], x[0] * weights[1].to(at::kDouble)), 1e-9);
  EXPECT_LT(gap(got.maps[1], x[1] * weights[0].to(at::kDouble)), 1e-9);
  EXPECT_EQ(got.forwards, 100);
  EXPECT_TRUE(got.warnings.empty());
  // Nothing is worth an absolute coefficient that costs more than all there is.
  EXPECT_EQ(explain(*net, {{{"id", "lime"}, {"alpha", 10.0}}, x}).maps.abs().max().item<double>(), 0);
}

}  // namespace
}  // namespace assay
