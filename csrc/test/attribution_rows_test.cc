// What one image's map may know of the images beside it: nothing.
#include <gtest/gtest.h>

#include <limits>
#include <utility>
#include <vector>

#include "test/explaining.h"

namespace assay {
namespace {

// The first rows whose largest logit is positive, as Ablation-CAM wants it, and their classes.
std::pair<at::Tensor, std::vector<int64_t>> said_with_confidence(const Net& net, size_t count) {
  at::NoGradGuard no_grad;
  const at::Tensor rows = fill_parameter("input", {64, 3, 9, 9}, 8).to(at::kFloat);
  const auto [logits, classes] = net.forward(rows).max(1);
  std::vector<at::Tensor> some;
  std::vector<int64_t> targets;
  for (int64_t k = 0; k < rows.size(0) && some.size() < count; ++k) {
    if (logits[k].item<float>() <= 0) continue;
    some.push_back(rows[k]);
    targets.push_back(classes[k].item<int64_t>());
  }
  return {at::stack(some), targets};
}

// Row 1 of three has a NaN: its map says so, the maps of the others have the same bits
// as without it.
TEST(Rows, NanIsOnesOwn) {
  const auto net = image_net({3, 9, 9}, Precision::kF32);
  const auto [clean, targets] = said_with_confidence(*net, 3);
  at::Tensor broken = clean.clone();
  broken[1][0][4][4] = std::numeric_limits<float>::quiet_NaN();
  int tried = 0;
  for (const MethodEntry& entry : method_registry()) {
    if (entry.needs.empty()) continue;
    ++tried;
    Asked asked{.method = {{"id", entry.id}}, .x = clean, .targets = targets};
    for (const auto& parameter : entry.parameters) {
      if (parameter["name"] == "layer") asked.method["layer"] = "relu2";
      if (parameter["name"] == "samples") asked.method["samples"] = 20;  // few are as good here
    }
    Asked with_nan = asked;
    with_nan.x = broken;
    const at::Tensor want = explain(*net, asked).maps, got = explain(*net, with_nan).maps;
    EXPECT_FALSE(at::isnan(want).any().item<bool>()) << entry.id;
    EXPECT_TRUE(at::isnan(got[1]).any().item<bool>()) << entry.id;
    for (const int row : {0, 2}) EXPECT_TRUE(at::equal(got[row], want[row])) << entry.id << " row " << row;
  }
  EXPECT_GT(tried, 20);
}

}  // namespace
}  // namespace assay
