// Uniform noise, fixed for an image: U[0,1) for every pixel and channel in
// pixel space, then normalised by the preset. Numbers are keyed by the image,
// so that an image has the same noise in every batch.
#include "api/error.h"
#include "removal/imputer.h"
#include "removal/philox.h"

namespace assay {

ImputerEntry uniform_imputer() {
  return {"uniform", "uniform noise over the range of pixels, drawn once an image", "TRACE, section 3",
          nlohmann::json::array(), [](const ImputerInput& input, const Parameters&) {
            if (input.is_table())
              throw unsupported("imputer uniform: the range of a table's columns is not known");
            if (input.keys == nullptr) throw invalid("imputer uniform: keys is NULL");
            const at::Tensor mean = per_channel(input, input.mean, "mean");
            const at::Tensor std = per_channel(input, input.std, "std");
            at::Tensor noise = at::empty(input.images.sizes(), at::kDouble);
            const int64_t each = input.images[0].numel();
            double* values = noise.data_ptr<double>();
            for (int64_t n = 0; n < input.images.size(0); ++n) {
              for (int64_t i = 0; i < each; ++i) {
                values[n * each + i] = philox_uniform(input.keys[n], static_cast<uint64_t>(i), 0);
              }
            }
            return (noise.to(input.images.device()) - mean.to(at::kDouble)) / std.to(at::kDouble);
          }};
}

}  // namespace assay
