// Zero in normalised space: what "zero" means in TRACE (section 3).
#include "removal/imputer.h"

namespace assay {

ImputerEntry zero_imputer() {
  return {"zero", "0 in the net's normalised input space (the preset's mean colour)", "TRACE, section 3",
          nlohmann::json::array(),
          [](const ImputerInput& input, const Parameters&) { return at::zeros_like(input.images); }};
}

}  // namespace assay
