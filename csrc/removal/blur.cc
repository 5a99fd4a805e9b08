// Gaussian blur of the whole image: separable, reflected at the border, weights
// exp(-x^2 / (2 sigma^2)) at the integers, normalised over the kernel.
#include "api/error.h"
#include "removal/imputer.h"

namespace assay {

ImputerEntry blur_imputer() {
  return {"blur", "the image under a Gaussian blur (31 pixels, sigma 56 as in TRACE's repository)",
          "TRACE, section 3",
          nlohmann::json::array(
              {{{"name", "kernel"},
                {"type", "int"},
                {"default", 31},
                {"minimum", 1},
                {"summary", "width in pixels, odd, at most twice the image's shorter side - 1"}},
               {{"name", "sigma"},
                {"type", "float"},
                {"default", 56.0},
                {"minimum", 1e-3},
                {"summary", "standard deviation in pixels"}}}),
          [](const ImputerInput& input, const Parameters& parameters) {
            if (input.is_table()) throw unsupported("imputer blur: a table has no neighbours to blur with");
            const int64_t kernel = parameters.integer("kernel"), radius = kernel / 2;
            const at::Tensor& images = input.images;
            if (kernel % 2 == 0) throw invalid("imputer blur: kernel ", kernel, ": want an odd number");
            if (radius >= std::min(images.size(2), images.size(3))) {
              throw invalid("imputer blur: kernel ", kernel, " on an image of ", images.size(2), "x",
                            images.size(3), ": want at most ",
                            2 * std::min(images.size(2), images.size(3)) - 1);
            }
            const double sigma = parameters.number("sigma");
            const at::Tensor offsets = at::arange(kernel, at::TensorOptions(at::kDouble)) - radius;
            at::Tensor weights = at::exp(-0.5 * (offsets / sigma).square());
            weights = (weights / weights.sum()).to(images.device());
            const int64_t channels = images.size(1);
            const at::Tensor padded =
                at::reflection_pad2d(images.to(at::kDouble), {radius, radius, radius, radius});
            const at::Tensor rows = weights.view({1, 1, 1, kernel}).expand({channels, 1, 1, kernel});
            const at::Tensor columns = weights.view({1, 1, kernel, 1}).expand({channels, 1, kernel, 1});
            const auto convolve = [&](const at::Tensor& x, const at::Tensor& w) {
              return at::conv2d(x, w, {}, at::IntArrayRef{1, 1}, at::IntArrayRef{0, 0}, at::IntArrayRef{1, 1},
                                channels);
            };
            return convolve(convolve(padded, rows), columns);
          }};
}

}  // namespace assay
