// Imputation and ranking, against SciPy's direct solver, dense algebra and what must hold
// for any image.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "api/error.h"
#include "removal/clusters.h"
#include "removal/harmonic.h"
#include "removal/imputer.h"
#include "removal/philox.h"
#include "removal/ranking.h"

namespace assay {
namespace {

using nlohmann::json;
using Fill = HarmonicReport (*)(at::Tensor&, const at::Tensor&, const HarmonicOptions&);

HarmonicReport planes(at::Tensor& values, const at::Tensor& removed, const HarmonicOptions& options) {
  HarmonicScratch scratch;
  return fill_harmonic_planes(values, removed, options, scratch);
}

constexpr HarmonicOptions kExact{.residual = 1e-13, .step = 1e-12, .max_iterations = 500};

at::Tensor uniform(at::IntArrayRef shape, uint64_t key) {
  at::Tensor out = at::empty(shape, at::kDouble);
  for (int64_t i = 0; i < out.numel(); ++i) {
    out.data_ptr<double>()[i] = philox_uniform(key, static_cast<uint64_t>(i), 0);
  }
  return out;
}

// A photograph's kind of image: neighbours are alike. Values in 0..1.
at::Tensor smooth(at::IntArrayRef shape, uint64_t key) {
  const at::Tensor walk = (uniform(shape, key) - .5).cumsum(2).cumsum(3);
  const at::Tensor low = walk.amin({2, 3}, true), high = walk.amax({2, 3}, true);
  return ((walk - low) / (high - low).clamp_min(1e-9)).contiguous();
}

at::Tensor hole(const std::string& kind, int64_t n, int64_t h, int64_t w) {
  at::Tensor mask = at::zeros({n, h, w}, at::kBool);
  if (kind == "square") mask.slice(1, h / 8, h - h / 8).slice(2, w / 8, w - w / 8).fill_(true);
  if (kind == "half") mask.slice(2, 0, w / 2).fill_(true);
  if (kind == "all but one") {
    mask.fill_(true);
    mask.select(1, h / 3).select(1, w / 2).fill_(false);
  }
  if (kind.back() == '%') mask = uniform({n, h, w}, 77) < std::stod(kind) / 100;
  return mask.contiguous();
}

// |b - A x| / |b| of each channel, in double, by the definition of the weights.
double relative_residual(const at::Tensor& image, const at::Tensor& filled, const at::Tensor& removed) {
  const auto around = [](const at::Tensor& x) {
    const at::Tensor kernel =
        at::tensor({1., 2., 1., 2., 0., 2., 1., 2., 1.}, at::kDouble).view({1, 1, 3, 3}) / 12;
    const at::Tensor flat = x.reshape({-1, 1, x.size(2), x.size(3)});
    return at::conv2d(flat, kernel, {}, at::IntArrayRef{1, 1}, at::IntArrayRef{1, 1}).view(x.sizes());
  };
  const at::Tensor wide = filled.to(at::kDouble), m = removed.unsqueeze(1).to(at::kDouble);
  const at::Tensor d = around(at::ones_like(wide));
  const at::Tensor b = m * around(image.to(at::kDouble) * (1 - m));
  const at::Tensor r = m * (around(wide) - d * wide);
  return (r.flatten(2).norm(2, 2) / b.flatten(2).norm(2, 2)).max().item<double>();
}

class Both : public testing::TestWithParam<Fill> {
 protected:
  HarmonicReport fill(at::Tensor& values, const at::Tensor& removed,
                      const HarmonicOptions& options = {}) const {
    return GetParam()(values, removed, options);
  }
};

TEST_P(Both, SolveAsSciPyDoes) {
  std::ifstream file(ASSAY_SOURCE_DIR "/testdata/golden_impute.json");
  ASSERT_TRUE(file) << "testdata/golden_impute.json";
  const json golden = json::parse(file);
  int compared = 0;
  for (const json& one : golden["cases"]) {
    const int64_t c = one["channels"], h = one["height"], w = one["width"];
    const auto pixels = one["image"].get<std::vector<double>>();
    const at::Tensor image = (at::tensor(pixels, at::kDouble) / 255).view({1, c, h, w});
    at::Tensor removed = at::zeros({1, h, w}, at::kBool);
    for (int64_t r = 0; r < h; ++r) {
      const std::string row = one["mask"][static_cast<size_t>(r)];
      for (int64_t k = 0; k < w; ++k) removed[0][r][k] = row[static_cast<size_t>(k)] == '1';
    }
    at::Tensor want = image.clone();
    if (one["solution"].is_null()) {
      ASSERT_TRUE(removed.all().item<bool>());
    } else {
      for (int64_t k = 0; k < c; ++k) {
        const auto values = one["solution"][static_cast<size_t>(k)].get<std::vector<double>>();
        ASSERT_EQ(static_cast<int64_t>(values.size()), removed.sum().item<int64_t>());
        want[0][k].masked_scatter_(removed[0], at::tensor(values, at::kDouble));
      }
    }
    const std::string name =
        one["name"].get<std::string>() + " " + std::to_string(h) + "x" + std::to_string(w);
    at::Tensor exact = image.clone();
    EXPECT_TRUE(fill(exact, removed, kExact).converged) << name;
    EXPECT_LE((exact - want).abs().max().item<double>(), 1e-10) << name;
    at::Tensor single = image.to(at::kFloat).contiguous();
    EXPECT_TRUE(fill(single, removed).converged) << name;
    EXPECT_LE((single.to(at::kDouble) - want).abs().max().item<double>(), 1e-4) << name;
    compared += one["solution"].is_null() ? 0 : 1;
  }
  EXPECT_GT(compared, 100);
}

TEST_P(Both, FewStepsWhateverTheSize) {
  for (const char* kind : {"10%", "30%", "50%", "70%", "90%", "99%", "square", "half"}) {
    for (const auto& [h, w] : {std::pair<int64_t, int64_t>{32, 32}, {63, 94}, {224, 224}, {299, 299}}) {
      if (GetParam() == &fill_harmonic_tensors && h > 224) continue;  // which takes its time
      const at::Tensor image = smooth({2, 3, h, w}, 5), removed = hole(kind, 2, h, w);
      at::Tensor filled = image.to(at::kFloat).contiguous();
      const HarmonicReport report = fill(filled, removed);
      EXPECT_TRUE(report.converged);
      for (const int32_t n : report.iterations) {
        EXPECT_LE(n, GetParam() == &planes ? 12 : 20) << kind << " " << h << "x" << w;
      }
      EXPECT_LE(relative_residual(image.to(at::kFloat), filled, removed), 1e-5)
          << kind << " " << h << "x" << w;
      if (h > 100) continue;
      at::Tensor exact = image.clone();
      EXPECT_TRUE(fill(exact, removed, kExact).converged);
      EXPECT_LE((filled.to(at::kDouble) - exact).abs().max().item<double>(), 1e-3)
          << kind << " " << h << "x" << w;
    }
  }
}

TEST_P(Both, OneKnownPixelIsEverywhere) {
  const at::Tensor image = smooth({1, 3, 224, 224}, 9), removed = hole("all but one", 1, 224, 224);
  at::Tensor filled = image.to(at::kFloat).contiguous();
  EXPECT_TRUE(fill(filled, removed).converged);
  const at::Tensor want = image.slice(2, 74, 75).slice(3, 112, 113).to(at::kFloat);
  EXPECT_TRUE(at::equal(filled, want.expand_as(filled)));
}

TEST_P(Both, SaysThatStepsWereTooFew) {
  at::Tensor values = smooth({1, 3, 32, 32}, 5).to(at::kFloat).contiguous();
  EXPECT_FALSE(fill(values, hole("90%", 1, 32, 32), {.max_iterations = 2}).converged);
}

// Two known pixels have the conditioning of one, and a solution that is not known beforehand.
TEST_P(Both, TwoKnownPixelsAreHeldToo) {
  const at::Tensor image = smooth({1, 1, 96, 96}, 9);
  at::Tensor removed = at::ones({1, 96, 96}, at::kBool);
  removed[0][3][90] = false;
  removed[0][60][4] = false;
  at::Tensor filled = image.to(at::kFloat).contiguous(), exact = image.clone();
  const HarmonicReport report = fill(filled, removed);
  EXPECT_TRUE(report.converged);
  EXPECT_LE(report.iterations[0], 40);
  EXPECT_TRUE(fill(exact, removed, kExact).converged);
  EXPECT_LE((filled.to(at::kDouble) - exact).abs().max().item<double>(), 1e-3);
}

TEST_P(Both, KeepsWhatMustHold) {
  for (const char* kind : {"10%", "60%", "95%", "square", "half"}) {
    for (const auto& [h, w] :
         {std::pair<int64_t, int64_t>{1, 9}, {9, 1}, {2, 2}, {13, 17}, {32, 32}, {50, 31}}) {
      const at::Tensor image = uniform({4, 2, h, w}, 21).to(at::kFloat);
      const at::Tensor removed = hole(kind, 4, h, w);
      at::Tensor filled = image.clone();
      fill(filled, removed);
      for (int64_t n = 0; n < 4; ++n) {
        const at::Tensor gone = removed[n];
        if (gone.all().item<bool>()) {
          EXPECT_TRUE(at::equal(filled[n], image[n])) << "nothing known: left as it is";
          continue;
        }
        for (int64_t c = 0; c < 2; ++c) {
          const at::Tensor known = image[n][c].masked_select(at::logical_not(gone));
          EXPECT_TRUE(at::equal(filled[n][c].masked_select(at::logical_not(gone)), known));
          EXPECT_GE(filled[n][c].min().item<float>(), known.min().item<float>());
          EXPECT_LE(filled[n][c].max().item<float>(), known.max().item<float>());
        }
        // Alone or in a batch.
        at::Tensor alone = image.slice(0, n, n + 1).contiguous().clone();
        fill(alone, removed.slice(0, n, n + 1).contiguous());
        if (GetParam() == &planes) {
          EXPECT_TRUE(at::equal(alone[0], filled[n]));
        } else {
          EXPECT_LE((alone[0] - filled[n]).abs().max().item<float>(), 1e-4);
        }
      }
      // A constant stays the very same.
      at::Tensor constant = at::full({4, 2, h, w}, .3f, at::kFloat);
      fill(constant, removed);
      EXPECT_TRUE((constant == .3f).all().item<bool>());
    }
  }
}

TEST_P(Both, NanGoesWhereItCounts) {
  at::Tensor image = uniform({2, 2, 8, 8}, 3).to(at::kFloat);
  const at::Tensor removed = hole("50%", 2, 8, 8), clean = image.clone();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  // In a removed pixel it is not seen, in a known one the channel's filled ones have it.
  const at::Tensor gone = at::nonzero(removed[0]), here = at::nonzero(at::logical_not(removed[0]));
  at::Tensor unseen = clean.clone(), seen = clean.clone(), want = clean.clone();
  unseen[0][0][gone[0][0].item<int64_t>()][gone[0][1].item<int64_t>()] = nan;
  seen[0][0][here[0][0].item<int64_t>()][here[0][1].item<int64_t>()] = nan;
  fill(want, removed);
  fill(unseen, removed);
  fill(seen, removed);
  EXPECT_TRUE(at::equal(unseen, want));
  EXPECT_TRUE(at::isnan(seen[0][0].masked_select(removed[0])).all().item<bool>());
  // Channels may share their steps, images do not.
  EXPECT_LE((seen[0][1] - want[0][1]).abs().max().item<float>(), 1e-4);
  EXPECT_TRUE(at::equal(seen[1], want[1]));
}

// What a scratch was used for before, larger or smaller, with more levels or fewer, is
// not seen.
// Small holes are factorised, larger ones iterated for: each has the same solution, on either side
// of where one becomes the other.
TEST(Harmonic, HolesOfEverySizeHaveTheSolutionOfTheDefinition) {
  for (int64_t size = 1; size <= 60; ++size) {
    const at::Tensor image = smooth({1, 2, 40, 37}, 100 + static_cast<uint64_t>(size));
    at::Tensor removed = at::zeros({1, 40, 37}, at::kBool);
    // A walk from a corner or from within, until it has been to so many pixels.
    int64_t r = size % 2 == 0 ? 0 : 20, c = size % 2 == 0 ? 0 : 18;
    for (uint64_t step = 0; removed.sum().item<int64_t>() < size; ++step) {
      removed[0][r][c] = true;
      r = std::clamp<int64_t>(r + philox_below(7, step, static_cast<uint64_t>(size), 3) - 1, 0, 39);
      c = std::clamp<int64_t>(c + philox_below(8, step, static_cast<uint64_t>(size), 3) - 1, 0, 36);
    }
    at::Tensor filled = image.clone();
    HarmonicScratch scratch;
    const HarmonicReport report = fill_harmonic_planes(filled, removed, kExact, scratch);
    EXPECT_TRUE(report.converged);
    EXPECT_TRUE(report.iterations[0] == 1 || size > Clusters::kMost) << size;
    EXPECT_LT(relative_residual(image, filled, removed), 1e-11) << size;
    at::Tensor other = image.clone();
    fill_harmonic_tensors(other, removed, kExact);
    EXPECT_LT((filled - other).abs().max().item<double>(), 1e-9) << size;
  }
}

TEST(Clusters, AreThePixelsThatTouch) {
  Clusters clusters;
  at::Tensor mask = at::zeros({12, 60}, at::kBool);
  mask[3].slice(0, 2, 2 + Clusters::kMost).fill_(true);
  EXPECT_TRUE(clusters.find(mask.const_data_ptr<bool>(), 12, 60));
  mask[4][2 + Clusters::kMost] = true;  // touches by its corner
  EXPECT_FALSE(clusters.find(mask.const_data_ptr<bool>(), 12, 60));
  mask[4][2 + Clusters::kMost] = false;
  mask[4][3 + Clusters::kMost] = true;  // does not
  EXPECT_TRUE(clusters.find(mask.const_data_ptr<bool>(), 12, 60));
}

TEST(Harmonic, ScratchIsClean) {
  HarmonicScratch scratch;
  for (int round = 0; round < 2; ++round) {
    for (const auto& [h, w] : {std::pair<int64_t, int64_t>{50, 31}, {9, 1}, {96, 97}, {13, 17}}) {
      for (const char* kind : {"square", "10%", "99%", "half"}) {
        for (const at::ScalarType type : {at::kFloat, at::kDouble}) {
          const at::Tensor image = uniform({3, 2, h, w}, 5).to(type), removed = hole(kind, 3, h, w);
          at::Tensor used = image.clone(), fresh = image.clone();
          fill_harmonic_planes(used, removed, {}, scratch);
          planes(fresh, removed, {});
          EXPECT_TRUE(at::equal(used, fresh)) << kind << " " << h << "x" << w;
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Harmonic, Both, testing::Values(&planes, &fill_harmonic_tensors),
                         [](const auto& info) { return info.index == 0 ? "Planes" : "Tensors"; });

// ---- the registry

ImputerInput input_of(const at::Tensor& images, const std::vector<uint64_t>& keys) {
  ImputerInput input;
  input.images = images;
  input.mean = {.5, .4, .3};
  input.std = {.25, .2, .5};
  input.keys = keys.data();
  input.dataset_mean = {.1, -.2, .3};
  return input;
}

TEST(NoisyLinear, AddsNoiseOfAnImagesOwn) {
  const at::Tensor images = uniform({3, 3, 12, 10}, 4).to(at::kFloat), removed = hole("50%", 4, 12, 10);
  const std::vector<uint64_t> keys{11, 12, 13};
  const ImputerInput input = input_of(images, keys);
  const std::vector<int64_t> which{2, 0, 2, 1};
  std::vector<int32_t> iterations(4);
  const at::Tensor plain =
      make_imputer({{"id", "noisy-linear"}, {"noise", 0}}, input)->fill(which, removed, iterations.data());
  const at::Tensor noisy =
      make_imputer({{"id", "noisy-linear"}, {"noise", .1}}, input)->fill(which, removed, nullptr);
  for (const int32_t n : iterations) EXPECT_GE(n, 1);
  for (size_t r = 0; r < which.size(); ++r) {
    for (int64_t c = 0; c < 3; ++c) {
      for (int64_t y = 0; y < 12; ++y) {
        for (int64_t x = 0; x < 10; ++x) {
          const int64_t row = static_cast<int64_t>(r);
          const float before = plain[row][c][y][x].item<float>(), after = noisy[row][c][y][x].item<float>();
          if (!removed[row][y][x].item<bool>()) {
            EXPECT_EQ(after, images[which[r]][c][y][x].item<float>());
            continue;
          }
          const double sigma = .1 / input.std[static_cast<size_t>(c)];
          const double draw = philox_normal(keys[static_cast<size_t>(which[r])],
                                            static_cast<uint64_t>((c * 12 + y) * 10 + x), 0);
          EXPECT_NEAR(after, before + sigma * draw, 1e-5);
        }
      }
    }
  }
}

// Solving what the net wants, normalised, is normalising what was solved.
TEST(NoisyLinear, CommutesWithThePreset) {
  const at::Tensor pixels = uniform({1, 3, 14, 9}, 4), removed = hole("70%", 1, 14, 9);
  const std::vector<uint64_t> keys{1};
  const at::Tensor mean = at::tensor({.5, .4, .3}, at::kDouble).view({1, 3, 1, 1}),
                   std = at::tensor({.25, .2, .5}, at::kDouble).view({1, 3, 1, 1});
  at::Tensor solved = pixels.clone();
  planes(solved, removed, kExact);
  const auto imputer = make_imputer({{"id", "noisy-linear"}, {"noise", 0}, {"tolerance", 1e-12}},
                                    input_of((pixels - mean) / std, keys));
  const at::Tensor got = imputer->fill({0}, removed, nullptr);
  EXPECT_LE((got - (solved - mean) / std).abs().max().item<double>(), 1e-9);
}

TEST(NoisyLinear, WithNothingLeftIsTheMeanOfTheData) {
  const at::Tensor images = uniform({1, 3, 5, 4}, 4).to(at::kFloat), all = at::ones({1, 5, 4}, at::kBool);
  const std::vector<uint64_t> keys{1};
  ImputerInput input = input_of(images, keys);
  const at::Tensor got = make_imputer({{"id", "noisy-linear"}, {"noise", 0}}, input)->fill({0}, all, nullptr);
  EXPECT_TRUE(at::equal(got, at::tensor({.1f, -.2f, .3f}).view({1, 3, 1, 1}).expand({1, 3, 5, 4})));
  input.dataset_mean.clear();
  const auto imputer = make_imputer({{"id", "noisy-linear"}}, input);
  EXPECT_THROW(imputer->fill({0}, all, nullptr), Error);
}

TEST(NoisyLinear, StaysWithinTheRangeOfPixelsWhereAsked) {
  const at::Tensor pixels = (uniform({2, 3, 16, 16}, 4) > .5).to(at::kDouble),
                   removed = hole("60%", 2, 16, 16);
  const std::vector<uint64_t> keys{1, 2};
  const at::Tensor mean = at::tensor({.5, .4, .3}, at::kDouble).view({1, 3, 1, 1}),
                   std = at::tensor({.25, .2, .5}, at::kDouble).view({1, 3, 1, 1});
  const ImputerInput input = input_of((pixels - mean) / std, keys);
  const auto range = [&](bool clip) {
    const at::Tensor got = make_imputer({{"id", "noisy-linear"}, {"noise", .5}, {"clip", clip}}, input)
                                   ->fill({0, 1}, removed, nullptr) *
                               std +
                           mean;
    return std::max(got.max().item<double>() - 1, -got.min().item<double>());
  };
  EXPECT_LE(range(true), 1e-12);
  EXPECT_GT(range(false), .1);
}

TEST(Imputers, ReplaceWhatIsRemovedByTheirReference) {
  const at::Tensor images = uniform({2, 3, 6, 7}, 4).to(at::kFloat), removed = hole("40%", 3, 6, 7);
  const std::vector<uint64_t> keys{5, 6};
  const ImputerInput input = input_of(images, keys);
  const std::vector<int64_t> which{1, 0, 1};
  for (const char* id : {"zero", "mean", "channel-mean", "dataset-mean", "uniform"}) {
    const at::Tensor reference = make_reference({{"id", id}}, input);
    const at::Tensor got = make_imputer({{"id", id}}, input)->fill(which, removed, nullptr);
    for (int64_t r = 0; r < 3; ++r) {
      const int64_t n = which[static_cast<size_t>(r)];
      EXPECT_TRUE(at::equal(got[r], at::where(removed[r].unsqueeze(0), reference[n], images[n]))) << id;
    }
  }
  EXPECT_TRUE(depends_on_mask({{"id", "noisy-linear"}}));
  EXPECT_FALSE(depends_on_mask({{"id", "channel-mean"}}));
  EXPECT_THROW(make_reference({{"id", "noisy-linear"}}, input), Error);
}

// ---- rankings

TEST(Ranking, PutsTheLargestFirst) {
  std::vector<float> map(5000);
  for (size_t i = 0; i < map.size(); ++i) {
    map[i] = static_cast<float>(std::floor(philox_normal(3, i, 0) * 100)) * (i % 7 == 0 ? 0.f : 1e-3f);
  }
  map[17] = std::numeric_limits<float>::infinity();
  map[18] = -std::numeric_limits<float>::infinity();
  map[19] = -0.f;
  for (const Ties ties : {Ties::kRandom, Ties::kIndex}) {
    std::vector<int64_t> start = philox_permutation(42, 0, 5000);
    if (ties == Ties::kIndex) std::iota(start.begin(), start.end(), 0);
    std::stable_sort(start.begin(), start.end(), [&](int64_t a, int64_t b) {
      return map[static_cast<size_t>(a)] > map[static_cast<size_t>(b)];
    });
    const std::vector<int32_t> got = ranked(map.data(), 5000, ties, 42);
    EXPECT_TRUE(std::equal(got.begin(), got.end(), start.begin(), start.end()));
  }
}

TEST(Ranking, PutsNanLast) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> map{nan, -1, 3, -nan, -std::numeric_limits<float>::infinity()};
  EXPECT_EQ(ranked(map.data(), 5, Ties::kIndex, 0), (std::vector<int32_t>{2, 1, 4, 0, 3}));
}

// Every place is as likely to be first where all are equal.
TEST(Ranking, OfTiesIsUniform) {
  std::vector<int> first(8, 0);
  for (uint64_t key = 0; key < 8000; ++key)
    ++first[static_cast<size_t>(ranked(nullptr, 8, Ties::kRandom, key)[0])];
  double chi = 0;
  for (const int n : first) chi += (n - 1000.) * (n - 1000.) / 1000;
  EXPECT_LT(chi, 24.3);  // 99.9 % of chi-squared with 7 degrees of freedom
}

TEST(Ranking, NoiseSwapsWhatIsAlmostEqualAlone) {
  std::vector<float> map(200);
  for (size_t i = 0; i < map.size(); ++i) map[i] = static_cast<float>(i / 2) + (i % 2 ? 1e-4f : 0.f);
  const std::vector<int32_t> got = ranked(map.data(), 200, Ties::kNoise, 9);
  int swapped = 0;
  for (int32_t k = 0; k < 100; ++k) {
    const int32_t a = got[static_cast<size_t>(2 * k)], b = got[static_cast<size_t>(2 * k + 1)];
    EXPECT_EQ(std::min(a, b), 198 - 2 * k);
    EXPECT_EQ(std::max(a, b), 199 - 2 * k);
    swapped += a < b ? 1 : 0;
  }
  EXPECT_GT(swapped, 20);
  EXPECT_LT(swapped, 80);
}

TEST(Ranking, RemovesExactCountsFromEitherEnd) {
  const int64_t n = 60;
  const std::vector<std::vector<int32_t>> rankings{ranked(nullptr, n, Ties::kRandom, 1),
                                                   ranked(nullptr, n, Ties::kRandom, 2)};
  std::vector<RemovalRow> rows;
  for (int32_t k = 0; k <= n; ++k) rows.push_back({k % 2, k, false});
  for (int32_t k = 0; k <= n; ++k) rows.push_back({k % 2, static_cast<int32_t>(n) - k, true});
  const at::Tensor removed = removed_by(rankings, rows, n);
  for (int64_t k = 0; k <= n; ++k) {
    EXPECT_EQ(removed[k].sum().item<int64_t>(), k);
    // The least relevant n - k are what the most relevant k are not.
    EXPECT_TRUE(at::equal(removed[n + 1 + k], at::logical_not(removed[k])));
  }
}

TEST(Ranking, VariationCountsEdges) {
  const at::Tensor half = hole("half", 1, 6, 8);
  EXPECT_DOUBLE_EQ(mask_variation(half.const_data_ptr<bool>(), 6, 8), 6 / 42.);
  const at::Tensor checkers =
      at::arange(48).add(at::arange(6).repeat_interleave(8)).fmod(2).to(at::kBool).contiguous();
  EXPECT_DOUBLE_EQ(mask_variation(checkers.const_data_ptr<bool>(), 6, 8), 2);
  EXPECT_DOUBLE_EQ(mask_variation(half.const_data_ptr<bool>(), 1, 1), 0);
}

}  // namespace
}  // namespace assay
