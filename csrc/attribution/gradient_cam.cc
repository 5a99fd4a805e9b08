// Class activation maps from the gradient g = d logit / d A at a layer: they differ
// in how g weighs the activations A. ReLU and upsampling are the same for all (cam.h).
#include "attribution/cam.h"
#include "attribution/methods.h"

namespace assay {
namespace {

using Map = at::Tensor (*)(const Activated&);

template <Map kMap>
at::Tensor attribute(const Method& method, Context& context, const Explained& rows) {
  return class_activation(method, context, rows, kMap);
}

at::Tensor hires_cam(const Activated& a) { return (a.gradients * a.activations).sum(1); }

at::Tensor layer_cam(const Activated& a) { return (at::relu(a.gradients) * a.activations).sum(1); }

at::Tensor xgrad_cam(const Activated& a) {
  const at::Tensor weights = (a.gradients * a.activations).sum({2, 3}) / (a.activations.sum({2, 3}) + 1e-7);
  return weighted_sum(weights, a.activations);
}

// With the logit for its exponential, whose derivatives are those that cancel.
at::Tensor grad_cam_plus_plus(const Activated& a) {
  const at::Tensor& g = a.gradients;
  const at::Tensor g2 = g * g;
  const at::Tensor sums = a.activations.sum({2, 3}, /*keepdim=*/true);
  const at::Tensor alpha = g2 / (2 * g2 + sums * g2 * g + 1e-6);
  const at::Tensor weights = (at::relu(g) * at::where(g != 0, alpha, at::zeros_like(alpha))).sum({2, 3});
  return weighted_sum(weights, a.activations);
}

}  // namespace

at::Tensor grad_cam_map(const Activated& a) { return weighted_sum(a.gradients.mean({2, 3}), a.activations); }

MethodEntry grad_cam_method() {
  return cam_entry("grad-cam", "activations weighted by their channels' mean gradients",
                   "Selvaraju et al. 2017, equations 1 and 2", attribute<grad_cam_map>);
}

MethodEntry grad_cam_plus_plus_method() {
  return cam_entry("grad-cam++", "activations weighted by their positive gradients, each by its share",
                   "Chattopadhay et al. 2018, equations 5 and 19", attribute<grad_cam_plus_plus>);
}

MethodEntry hires_cam_method() {
  return cam_entry("hires-cam", "activations times gradients, element by element",
                   "Draelos and Carin 2020, equation 4", attribute<hires_cam>);
}

MethodEntry layer_cam_method() {
  return cam_entry("layer-cam", "activations times positive gradients, element by element",
                   "Jiang et al. 2021, equation 5", attribute<layer_cam>);
}

MethodEntry xgrad_cam_method() {
  return cam_entry("xgrad-cam", "activations weighted by gradients in proportion to the activations",
                   "Fu et al. 2020, equation 8", attribute<xgrad_cam>);
}

}  // namespace assay
