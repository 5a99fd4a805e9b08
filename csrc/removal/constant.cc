// One colour, given in pixel space.
#include "removal/imputer.h"

namespace assay {

ImputerEntry constant_imputer() {
  return {"constant", "one grey level, given in pixel space: 0 is black, 1 is white", "TRACE, section 3",
          nlohmann::json::array(
              {{{"name", "value"},
                {"type", "float"},
                {"default", 0.0},
                {"summary", "grey level of the [0,1] image; for tables the normalised value"}}}),
          [](const ImputerInput& input, const Parameters& parameters) {
            const double value = parameters.number("value");
            if (input.is_table()) return at::full_like(input.images, value);
            const at::Tensor mean = per_channel(input, input.mean, "mean").to(at::kDouble);
            const at::Tensor std = per_channel(input, input.std, "std").to(at::kDouble);
            return (value - mean) / std;
          }};
}

}  // namespace assay
