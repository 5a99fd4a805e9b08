// Means of the image itself: one scalar, or one a channel.
#include "removal/imputer.h"

namespace assay {

ImputerEntry mean_imputer() {
  return {"mean", "one scalar an image: the mean over all channels and pixels, in normalised space",
          "TRACE, section 3", nlohmann::json::array(), [](const ImputerInput& input, const Parameters&) {
            const at::Tensor flat = input.images.flatten(1).to(at::kDouble).mean(1);
            return input.is_table() ? flat.view({-1, 1}) : flat.view({-1, 1, 1, 1});
          }};
}

ImputerEntry channel_mean_imputer() {
  return {"channel-mean", "the image's mean colour, one value a channel (ROAD's fixed value)",
          "ROAD, section 5", nlohmann::json::array(), [](const ImputerInput& input, const Parameters&) {
            // A column of a table is a channel of one pixel.
            if (input.is_table()) return input.images;
            return input.images.to(at::kDouble).mean({2, 3}, /*keepdim=*/true);
          }};
}

}  // namespace assay
