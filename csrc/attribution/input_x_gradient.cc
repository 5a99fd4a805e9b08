// The input times the gradient of the target's logit.
#include "attribution/methods.h"

namespace assay {

MethodEntry input_x_gradient_method() {
  return {.id = "input-x-gradient",
          .summary = "the input times the gradient of the target's logit",
          .family = "gradient",
          .needs = "input gradient",
          .paper = "Shrikumar et al. 2016, section 2",
          .parameters = nlohmann::json::array(),
          .attribute = [](const Method&, Context& context, const Explained& rows) {
            return context.run.gradients(rows.x, rows.targets) * rows.x;
          }};
}

}  // namespace assay
