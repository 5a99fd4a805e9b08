// Noise, masks and new parameters, against plain loops.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "attribution/randomised.h"
#include "graph/net.h"
#include "removal/noise.h"
#include "removal/philox.h"
#include "train/initial.h"

namespace assay {
namespace {

TEST(Noisy, IsAFunctionOfKeySampleAndElement) {
  const at::Tensor images = at::randn({3, 2, 4, 5}, at::kDouble);
  const std::vector<NoisyRow> rows = {{2, 7, 0}, {0, 7, 1}, {2, 7, 0}, {2, 8, 0}};
  const at::Tensor got = noisy(images, rows.data(), 4, .25);
  ASSERT_EQ(got.sizes(), at::IntArrayRef({4, 2, 4, 5}));
  for (int64_t r = 0; r < 4; ++r) {
    const NoisyRow& row = rows[static_cast<size_t>(r)];
    const at::Tensor flat = got[r].flatten(), plain = images[row.row].flatten();
    for (int64_t j = 0; j < 40; ++j) {
      const double u = philox_uniform(row.key, static_cast<uint64_t>(j), row.sample);
      ASSERT_DOUBLE_EQ(flat[j].item<double>(), plain[j].item<double>() + .25 * (2 * u - 1));
    }
  }
  EXPECT_TRUE(at::equal(got[0], got[2]));
  EXPECT_FALSE(at::equal(got[0], got[3]));
  EXPECT_TRUE(at::equal(noisy(images, rows.data(), 2, 0), images.index_select(0, at::tensor({2, 0}))));
  EXPECT_TRUE(at::equal(noisy(images.to(at::kFloat), rows.data(), 4, .25)[1],
                        noisy(images.to(at::kFloat).slice(0, 0, 1), rows.data() + 1, 1, .25)[0]));
}

// Of 20,000 numbers uniform in [-r,r): mean 0 and variance r^2/3 within five
// standard deviations.
TEST(Noisy, IsUniform) {
  const NoisyRow row{0, 11, 3};
  const at::Tensor got = noisy(at::zeros({1, 20000}, at::kDouble), &row, 1, .2);
  EXPECT_LT(std::abs(got.mean().item<double>()), 5 * .2 / std::sqrt(3. * 20000));
  EXPECT_NEAR(got.square().mean().item<double>(), .04 / 3, 5 * .04 * std::sqrt(4. / 45 / 20000));
  EXPECT_GE(got.min().item<double>(), -.2);
  EXPECT_LT(got.max().item<double>(), .2);
}

TEST(Noisy, RefusesWhatIsNotThere) {
  const NoisyRow row{3, 0, 0};
  EXPECT_ANY_THROW(noisy(at::zeros({3, 2}), &row, 1, .2));
  const NoisyRow fine{0, 0, 0};
  EXPECT_ANY_THROW(noisy(at::zeros({3, 2}), &fine, 1, -1));
  EXPECT_ANY_THROW(noisy(at::zeros({3, 2}, at::kLong), &fine, 1, .2));
}

// A net with parameters that are not those of seed 5.
std::unique_ptr<Net> small_net() {
  auto net = Net::build("cifar-resnet20", {});
  std::vector<std::pair<std::string, at::Tensor>> state;
  const auto initial = initial_parameters(net->graph(), 1);
  for (size_t p = 0; p < initial.size(); ++p) {
    if (initial[p].defined()) state.emplace_back(net->parameters()[p].name, initial[p] * 1.5 + .01);
  }
  net->load(state);
  net->prepare(at::kCPU, Precision::kF64);
  return net;
}

TEST(Randomised, ChangesTheNamedLayersAlone) {
  const auto net = small_net();
  const auto layers = parametrised_layers(*net);
  ASSERT_EQ(layers.front().name, "conv1");
  ASSERT_EQ(layers.back().name, "linear");
  const auto copy = randomised(*net, {"linear", "layer1.0.bn1"}, 5);
  const auto fresh = initial_parameters(net->graph(), 5);
  int changed = 0;
  for (size_t p = 0; p < net->parameters().size(); ++p) {
    const std::string& name = net->parameters()[p].name;
    if (!net->state()[p].defined()) continue;
    const bool is_new = name.starts_with("linear.") || name.starts_with("layer1.0.bn1.");
    EXPECT_TRUE(at::equal(copy->state()[p], is_new ? fresh[p] : net->state()[p])) << name;
    changed += is_new;
  }
  EXPECT_EQ(changed, 7);  // weight, bias; weight, bias, mean, variance, count of batches
}

TEST(Randomised, LayerByLayerIsTheSameAsAtOnce) {
  const auto net = small_net();
  const at::Tensor x = at::randn({2, 3, 32, 32}, at::kDouble);
  const at::Tensor before = net->forward(x);
  const auto at_once = randomised(*net, {"linear", "conv1"}, 5);
  const auto first = randomised(*net, {"linear"}, 5);
  const auto second = randomised(*first, {"conv1"}, 5);
  EXPECT_TRUE(at::equal(at_once->forward(x), second->forward(x)));
  EXPECT_FALSE(at::equal(at_once->forward(x), first->forward(x)));
  EXPECT_FALSE(at::equal(at_once->forward(x), before));
  EXPECT_TRUE(at::equal(net->forward(x), before));
  EXPECT_FALSE(at::equal(randomised(*net, {"linear"}, 6)->forward(x), first->forward(x)));

  // Every layer: the net that training with this seed begins with.
  std::vector<std::string> names;
  for (const LayerInfo& layer : parametrised_layers(*net)) names.push_back(layer.name);
  const auto all = randomised(*net, names, 5);
  auto initial = Net::build("cifar-resnet20", {});
  std::vector<std::pair<std::string, at::Tensor>> state;
  const auto fresh = initial_parameters(initial->graph(), 5);
  for (size_t p = 0; p < fresh.size(); ++p) {
    if (fresh[p].defined()) state.emplace_back(initial->parameters()[p].name, fresh[p]);
  }
  initial->load(state);
  initial->prepare(at::kCPU, Precision::kF64);
  EXPECT_TRUE(at::equal(all->forward(x), initial->forward(x)));
}

TEST(Randomised, RefusesByName) {
  const auto net = small_net();
  EXPECT_ANY_THROW(randomised(*net, {"nothing"}, 5));
  EXPECT_ANY_THROW(randomised(*net, {"layer1.0.relu1"}, 5));
}

}  // namespace
}  // namespace assay
