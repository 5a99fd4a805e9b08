// Own CPU kernels against libtorch's.
#include "graph/kernels.h"

#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <vector>

namespace assay {
namespace {

at::Tensor channels_last(at::IntArrayRef shape) {
  return at::randn(shape).contiguous(at::MemoryFormat::ChannelsLast);
}

TEST(Kernels, MaxPoolIsLibtorchs) {
  struct Window {
    int64_t kernel, stride, padding, dilation;
  };
  for (const Window& w : {Window{3, 2, 1, 1}, Window{2, 2, 0, 1}, Window{3, 1, 1, 1}, Window{2, 3, 1, 2}}) {
    for (const std::vector<int64_t>& shape : {std::vector<int64_t>{2, 5, 7, 9}, {3, 32, 8, 8}}) {
      at::Tensor x = channels_last(shape);
      x[0][1][3][4] = std::numeric_limits<float>::quiet_NaN();
      x[1][0].fill_(-std::numeric_limits<float>::infinity());
      Attributes a;
      a.kernel = {w.kernel, w.kernel};
      a.stride = {w.stride, w.stride};
      a.padding = {w.padding, w.padding, w.padding, w.padding};
      a.dilation = {w.dilation, w.dilation};
      const at::Tensor got = max_pool_channels_last(x, a);
      const at::Tensor want = at::max_pool2d(x, a.kernel, a.stride, {w.padding, w.padding}, a.dilation);
      EXPECT_TRUE(at::allclose(got, want, 0, 0, /*equal_nan=*/true))
          << w.kernel << " " << at::IntArrayRef(shape);
      EXPECT_TRUE(got.is_contiguous(at::MemoryFormat::ChannelsLast));
    }
  }
}

TEST(Kernels, MaxPoolsGradientIsLibtorchs) {
  for (const auto& [kernel, stride, padding] : {std::array<int64_t, 3>{3, 2, 1}, {2, 2, 0}, {3, 1, 1}}) {
    at::Tensor x = channels_last({3, 19, 7, 9}).relu();  // with ties
    Attributes a;
    a.kernel = {kernel, kernel};
    a.stride = {stride, stride};
    a.padding = {padding, padding, padding, padding};
    const auto [y, indices] = at::max_pool2d_with_indices(x, a.kernel, a.stride, {padding, padding});
    const at::Tensor g = channels_last(y.sizes());
    const at::Tensor want = at::max_pool2d_with_indices_backward(g, x, a.kernel, a.stride, {padding, padding},
                                                                 {1, 1}, false, indices);
    const at::Tensor got = pull_max_pool_channels_last(g, x, y.contiguous(at::MemoryFormat::ChannelsLast), a);
    EXPECT_TRUE(at::allclose(got, want, 1e-6, 1e-6)) << kernel;
  }
}

TEST(Kernels, GlobalAverageIsTheMean) {
  const at::Tensor x = channels_last({3, 17, 7, 5});
  const at::Tensor want = x.to(at::kDouble).mean({2, 3}, /*keepdim=*/true);
  EXPECT_TRUE(at::allclose(global_avg_pool_channels_last(x).to(at::kDouble), want, 1e-6, 1e-6));
}

TEST(Kernels, FindsRowsThatAreNotFinite) {
  at::Tensor x = at::randn({5, 37});
  x[1][36] = std::numeric_limits<float>::quiet_NaN();
  x[3][0] = -std::numeric_limits<float>::infinity();
  x[4][7] = std::numeric_limits<float>::max();
  EXPECT_EQ(rows_not_finite(x), std::vector<bool>({false, true, false, true, false}));
}

}  // namespace
}  // namespace assay
