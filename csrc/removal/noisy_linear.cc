// Noisy linear imputation (Rong et al. 2022, section 4.3): every removed pixel is the
// weighted mean of its neighbours, plus a little noise that hides which pixels were.
#include <ATen/Dispatch.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "api/error.h"
#include "removal/filled.h"
#include "removal/harmonic.h"
#include "removal/imputer.h"
#include "removal/philox.h"

namespace assay {
namespace {

class NoisyLinear : public Imputer {
 public:
  NoisyLinear(ImputerInput input, const Parameters& parameters)
      : input_(std::move(input)), redraw_(parameters.flag("redraw")) {
    if (input_.is_table()) throw unsupported("imputer noisy-linear: a table has no neighbours");
    sigma_ = parameters.number("noise");
    if (sigma_ > 0 && input_.keys == nullptr) throw invalid("imputer noisy-linear: keys is NULL");
    // The mean of neighbours commutes with what presets do to a channel, so pixels are
    // solved for as the net wants them; noise and tolerances are of the scale of pixels.
    if (sigma_ > 0) keys_.assign(input_.keys, input_.keys + input_.images.size(0));
    input_.keys = nullptr;  // the caller's
    std_ = per_channel(input_, input_.std, "std");
    options_.residual = parameters.number("tolerance");
    options_.step *= options_.residual / HarmonicOptions().residual;
    options_.step /= std_.max().item<double>();
    if (parameters.flag("clip")) {
      const at::Tensor mean = per_channel(input_, input_.mean, "mean");
      low_ = (-mean / std_).contiguous();
      high_ = ((1 - mean) / std_).contiguous();
    }
    if (sigma_ > 0 && !redraw_) noise_ = draw(keys_, {});
    if (sigma_ == 0 && low_.defined()) noise_ = at::zeros_like(input_.images);
  }

  at::Tensor fill(const std::vector<int64_t>& which, const at::Tensor& removed,
                  int32_t* iterations) override {
    const at::Tensor rows = at::tensor(which, at::kLong).to(input_.images.device());
    at::Tensor out = input_.images.index_select(0, rows).contiguous();
    const at::Tensor counts = removed.flatten(1).sum(1);
    const at::Tensor everything = counts == removed.size(1) * removed.size(2);
    if (everything.any().item<bool>()) {
      out = at::where(everything.view({-1, 1, 1, 1}),
                      dataset_mean(input_, "noisy-linear, where all of an image is removed"), out);
    }
    const at::Tensor mask = removed.contiguous();
    const HarmonicReport report = fill_harmonic(out, mask, options_, scratch_);
    if (!report.converged) {
      throw invalid("imputer noisy-linear: not solved to tolerance ", options_.residual, " in ",
                    options_.max_iterations, " steps: want a larger tolerance");
    }
    if (iterations != nullptr) std::copy(report.iterations.begin(), report.iterations.end(), iterations);
    if (sigma_ == 0 && !low_.defined()) return out;
    if (!noise_.defined()) {  // drawn again
      std::vector<uint64_t> keys;
      for (const int64_t r : which) keys.push_back(keys_[static_cast<size_t>(r)]);
      const at::Tensor host = counts.to(at::kCPU).contiguous();
      const at::Tensor noise =
          draw(keys, {host.const_data_ptr<int64_t>(), host.const_data_ptr<int64_t>() + host.numel()});
      std::vector<int64_t> own(which.size());
      std::iota(own.begin(), own.end(), 0);
      finish(out, mask, noise, own);
    } else {
      finish(out, mask, noise_, which);
    }
    return out;
  }

 private:
  // Adds row which[r] of the noise to what is removed of rows [R,C,H,W], and keeps it in range.
  void finish(at::Tensor& rows, const at::Tensor& removed, const at::Tensor& noise,
              const std::vector<int64_t>& which) const {
    if (rows.is_cpu()) {
      AT_DISPATCH_FLOATING_TYPES(rows.scalar_type(), "noisy-linear",
                                 [&] { finish_rows<scalar_t>(rows, removed, noise, which); });
      return;
    }
    at::Tensor filled = rows + noise.index_select(0, at::tensor(which, at::kLong).to(rows.device()));
    if (low_.defined()) filled = at::minimum(at::maximum(filled, low_), high_);
    rows = at::where(removed.unsqueeze(1), filled, rows);
  }

  // The same on the host, in place: new memory of a batch's size takes longer to get than to fill.
  template <class T>
  void finish_rows(at::Tensor& rows, const at::Tensor& removed, const at::Tensor& noise,
                   const std::vector<int64_t>& which) const {
    const int64_t channels = rows.size(1), pixels = rows.size(2) * rows.size(3);
    constexpr T infinity = std::numeric_limits<T>::infinity();
    T* const values = rows.data_ptr<T>();
    const auto* const gone = reinterpret_cast<const unsigned char*>(removed.const_data_ptr<bool>());
    const T* const drawn = noise.const_data_ptr<T>();
    at::parallel_for(0, rows.size(0) * channels, 1, [&](int64_t begin, int64_t end) {
      for (int64_t k = begin; k < end; ++k) {
        const int64_t row = k / channels, channel = k % channels;
        const T low = low_.defined() ? low_.const_data_ptr<T>()[channel] : -infinity;
        const T high = low_.defined() ? high_.const_data_ptr<T>()[channel] : infinity;
        T* const v = values + k * pixels;
        const unsigned char* const m = gone + row * pixels;
        const T* const added = drawn + (which[static_cast<size_t>(row)] * channels + channel) * pixels;
#pragma omp simd
        for (int64_t i = 0; i < pixels; ++i) {
          const T own = v[i], noisy = own + added[i];
          const T above = noisy < low ? low : noisy, within = above > high ? high : above;
          v[i] = m[i] != 0 ? within : own;
        }
      }
    });
  }

  // sigma / std of the channel times standard normals of (key, element of [C,H,W], draw).
  at::Tensor draw(const std::vector<uint64_t>& keys, const std::vector<int64_t>& draws) const {
    const auto each = static_cast<uint64_t>(input_.images[0].numel());
    std::vector<int64_t> shape = input_.images.sizes().vec();
    shape[0] = static_cast<int64_t>(keys.size());
    const at::Tensor noise = filled(shape, [&](uint64_t i) {
      const size_t row = i / each;
      return philox_normal(keys[row], i % each, draws.empty() ? 0 : static_cast<uint64_t>(draws[row]));
    });
    return (noise.to(input_.images.device()) * (sigma_ / std_.to(at::kDouble)))
        .to(input_.images.scalar_type());
  }

  ImputerInput input_;
  std::vector<uint64_t> keys_;
  double sigma_ = 0;
  bool redraw_;
  HarmonicOptions options_;
  HarmonicScratch scratch_;
  at::Tensor std_, low_, high_, noise_;
};

}  // namespace

ImputerEntry noisy_linear_imputer() {
  return {
      "noisy-linear",
      "the weighted mean of each pixel's neighbours, removed or not, plus a little noise (ROAD)",
      "ROAD, section 4.3",
      nlohmann::json::array({{{"name", "noise"},
                              {"type", "float"},
                              {"default", 0.01},
                              {"minimum", 0},
                              {"summary", "standard deviation of the noise on imputed pixels of range 0..1"}},
                             {{"name", "redraw"},
                              {"type", "bool"},
                              {"default", false},
                              {"summary", "other noise for other numbers of removed pixels"}},
                             {{"name", "clip"},
                              {"type", "bool"},
                              {"default", false},
                              {"summary", "keep imputed pixels within 0..1"}},
                             {{"name", "tolerance"},
                              {"type", "float"},
                              {"default", 1e-5},
                              {"minimum", 1e-12},
                              {"maximum", 1e-2},
                              {"summary", "relative residual of the equations"}}}),
      nullptr,
      [](const ImputerInput& input, const Parameters& parameters) -> std::unique_ptr<Imputer> {
        return std::make_unique<NoisyLinear>(input, parameters);
      }};
}

}  // namespace assay
