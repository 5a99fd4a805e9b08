// Backward passes with another rule at every ReLU and ReLU6. Nets with another
// activation have no such map: others return the plain gradient there.
#include "attribution/methods.h"
#include "graph/differentiator.h"

namespace assay {
namespace {

template <ReluRule kRule>
at::Tensor attribute(const Method& method, Context& context, const Explained& rows) {
  context.net.differentiator().want_relus(method.entry().id);
  return context.run.gradients(rows.x, rows.targets, Output::kLogit, kRule);
}

}  // namespace

MethodEntry guided_backprop_method() {
  return {.id = "guided-backprop",
          .summary = "gradient that passes ReLUs only where it and the ReLU's input are positive",
          .family = "gradient",
          .needs = "graph",
          .paper = "Springenberg et al. 2015, section 3.4",
          .parameters = nlohmann::json::array(),
          .attribute = attribute<ReluRule::kGuided>};
}

MethodEntry deconvolution_method() {
  return {.id = "deconvolution",
          .summary = "gradient that passes ReLUs only where it is positive",
          .family = "gradient",
          .needs = "graph",
          .paper = "Zeiler and Fergus 2014, section 2.1",
          .parameters = nlohmann::json::array(),
          .attribute = attribute<ReluRule::kDeconvolution>};
}

}  // namespace assay
