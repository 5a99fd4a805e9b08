// CPU kernels for channels-last f32. The innermost loops run over channels, so
// that compilers make vectors of them without changing any order of summation.
#include "graph/kernels.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "graph/ops.h"

// One copy a family of CPUs, chosen when the library is loaded.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__)
#define ASSAY_CPU_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define ASSAY_CPU_CLONES
#endif

namespace assay {
namespace {

// Written so that a NaN on either side stays.
ASSAY_CPU_CLONES void take_maximum(float* __restrict__ out, const float* __restrict__ in, int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i] = (in[i] > out[i] || in[i] != in[i]) ? in[i] : out[i];
}

ASSAY_CPU_CLONES void accumulate(float* __restrict__ out, const float* __restrict__ in, int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i] += in[i];
}

// Hands the gradient of maxima to the first element that equals them; left is what
// has not been handed on yet.
ASSAY_CPU_CLONES void give_to_maximum(float* __restrict__ to, float* __restrict__ left,
                                      const float* __restrict__ in, const float* __restrict__ maximum,
                                      int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    const float given = in[i] == maximum[i] ? left[i] : 0.0f;
    to[i] += given;
    left[i] = in[i] == maximum[i] ? 0.0f : left[i];
  }
}

ASSAY_CPU_CLONES void sum_within(float* out, const float* a, const float* b, const float* y, float upper,
                                 int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i] = y[i] > 0.0f && y[i] < upper ? a[i] + b[i] : 0.0f;
}

ASSAY_CPU_CLONES uint32_t count_not_finite(const float* in, int64_t n) {
  constexpr uint32_t kExponent = 0x7f800000;
  uint32_t found = 0;
  for (int64_t i = 0; i < n; ++i) {
    uint32_t bits;
    std::memcpy(&bits, in + i, sizeof bits);
    found += (bits & kExponent) == kExponent ? 1 : 0;
  }
  return found;
}

}  // namespace

at::Tensor max_pool_channels_last(const at::Tensor& x, const Attributes& window) {
  const int64_t rows = x.size(0), channels = x.size(1), height = x.size(2), width = x.size(3);
  const int64_t out_height = window_positions(window, 0, height);
  const int64_t out_width = window_positions(window, 1, width);
  at::Tensor y = at::empty({rows, channels, out_height, out_width},
                           x.options().memory_format(at::MemoryFormat::ChannelsLast));
  const float* in = x.const_data_ptr<float>();
  float* out = y.mutable_data_ptr<float>();
  at::parallel_for(0, rows * out_height, 1, [&](int64_t begin, int64_t end) {
    for (int64_t line = begin; line < end; ++line) {
      const int64_t top = line % out_height * window.stride[0] - window.padding[0];
      const float* image = in + line / out_height * height * width * channels;
      for (int64_t column = 0; column < out_width; ++column) {
        const int64_t left = column * window.stride[1] - window.padding[1];
        float* best = out + (line * out_width + column) * channels;
        std::fill(best, best + channels, -std::numeric_limits<float>::infinity());
        for (int64_t ky = 0; ky < window.kernel[0]; ++ky) {
          const int64_t iy = top + ky * window.dilation[0];
          if (iy < 0 || iy >= height) continue;
          for (int64_t kx = 0; kx < window.kernel[1]; ++kx) {
            const int64_t ix = left + kx * window.dilation[1];
            if (ix < 0 || ix >= width) continue;
            take_maximum(best, image + (iy * width + ix) * channels, channels);
          }
        }
      }
    }
  });
  return y;
}

at::Tensor pull_max_pool_channels_last(const at::Tensor& gradient, const at::Tensor& x, const at::Tensor& y,
                                       const Attributes& window) {
  const int64_t rows = x.size(0), channels = x.size(1), height = x.size(2), width = x.size(3);
  const int64_t out_height = y.size(2), out_width = y.size(3);
  at::Tensor pulled = at::empty_like(x, at::MemoryFormat::ChannelsLast);
  const float* in = x.const_data_ptr<float>();
  const float* best = y.const_data_ptr<float>();
  const float* from = gradient.const_data_ptr<float>();
  float* to = pulled.mutable_data_ptr<float>();
  const int64_t line = width * channels;
  // Windows overlap: a row is one thread's.
  at::parallel_for(0, rows, 1, [&](int64_t begin, int64_t end) {
    std::vector<float> left(static_cast<size_t>(channels));
    for (int64_t row = begin; row < end; ++row) {
      const int64_t image = row * height;
      int64_t cleared = 0;  // lines, just before they are written to
      const auto clear = [&](int64_t until) {
        if (until <= cleared) return;
        std::fill(to + (image + cleared) * line, to + (image + until) * line, 0.0f);
        cleared = until;
      };
      for (int64_t cell = 0; cell < out_height * out_width; ++cell) {
        const int64_t at = (row * out_height * out_width + cell) * channels;
        std::copy(from + at, from + at + channels, left.begin());
        const int64_t top = cell / out_width * window.stride[0] - window.padding[0];
        const int64_t side = cell % out_width * window.stride[1] - window.padding[1];
        clear(std::min(height, top + window.dilation[0] * (window.kernel[0] - 1) + 1));
        for (int64_t ky = 0; ky < window.kernel[0]; ++ky) {
          const int64_t iy = top + ky * window.dilation[0];
          if (iy < 0 || iy >= height) continue;
          for (int64_t kx = 0; kx < window.kernel[1]; ++kx) {
            const int64_t ix = side + kx * window.dilation[1];
            if (ix < 0 || ix >= width) continue;
            const int64_t pixel = (image + iy) * line + ix * channels;
            give_to_maximum(to + pixel, left.data(), in + pixel, best + at, channels);
          }
        }
      }
      clear(height);
    }
  });
  return pulled;
}

void add_within(at::Tensor& a, const at::Tensor& b, const at::Tensor& y, float upper) {
  float* sum = a.mutable_data_ptr<float>();
  const float* more = b.const_data_ptr<float>();
  const float* of = y.const_data_ptr<float>();
  at::parallel_for(0, a.numel(), 16384, [&](int64_t begin, int64_t end) {
    sum_within(sum + begin, sum + begin, more + begin, of + begin, upper, end - begin);
  });
}

at::Tensor global_avg_pool_channels_last(const at::Tensor& x) {
  const int64_t rows = x.size(0), channels = x.size(1), pixels = x.size(2) * x.size(3);
  at::Tensor y = at::zeros({rows, channels, 1, 1}, x.options());
  const float* in = x.const_data_ptr<float>();
  float* out = y.mutable_data_ptr<float>();
  const float count = static_cast<float>(pixels);
  at::parallel_for(0, rows, 1, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      float* sum = out + row * channels;
      for (int64_t pixel = 0; pixel < pixels; ++pixel) {
        accumulate(sum, in + (row * pixels + pixel) * channels, channels);
      }
      for (int64_t c = 0; c < channels; ++c) sum[c] /= count;
    }
  });
  return y;
}

std::vector<bool> rows_not_finite(const at::Tensor& x) {
  const int64_t rows = x.size(0), elements = x.numel() / std::max<int64_t>(rows, 1);
  const float* in = x.const_data_ptr<float>();
  std::vector<uint32_t> found(static_cast<size_t>(rows));
  at::parallel_for(0, rows, 1, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      found[static_cast<size_t>(row)] = count_not_finite(in + row * elements, elements);
    }
  });
  return {found.begin(), found.end()};
}

}  // namespace assay
