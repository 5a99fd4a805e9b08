// The gradient of the target's logit, signed. Others report its absolute value
// (captum's Saliency) or the largest over channels: here those are reductions.
#include "attribution/methods.h"

namespace assay {

MethodEntry gradient_method() {
  return {.id = "gradient",
          .summary = "gradient of the target's logit with respect to the input",
          .family = "gradient",
          .needs = "input gradient",
          .paper = "Simonyan et al. 2014, section 3",
          .parameters = nlohmann::json::array(),
          .attribute = [](const Method&, Context& context, const Explained& rows) {
            return context.run.gradients(rows.x, rows.targets);
          }};
}

}  // namespace assay
