// Another image (hot deck): the removed parts show what somebody else shows.
#include "api/error.h"
#include "removal/imputer.h"

namespace assay {

ImputerEntry image_imputer() {
  return {"image", "another image of the data (hot deck), given by its id", "TRACE, section 3",
          nlohmann::json::array({{{"name", "image"},
                                  {"type", "string"},
                                  {"default", ""},
                                  {"summary", "image id in the same data"}}}),
          [](const ImputerInput& input, const Parameters&) {
            if (!input.other.defined()) throw invalid("imputer image: no other image was given");
            at::Tensor other = input.other.to(input.images.options());
            if (other.dim() == input.images.dim() - 1) other = other.unsqueeze(0);
            const bool fits = other.dim() == input.images.dim() &&
                              other.sizes().slice(1) == input.images.sizes().slice(1) &&
                              (other.size(0) == 1 || other.size(0) == input.images.size(0));
            if (!fits) {
              throw invalid("imputer image: the other image is ", other.sizes(), ", the images are ",
                            input.images.sizes());
            }
            return other;
          }};
}

}  // namespace assay
