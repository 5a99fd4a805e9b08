// Eigen-CAM: activations along their first principal direction, whatever the class.
#include "attribution/cam.h"
#include "attribution/methods.h"

namespace assay {
namespace {

// The sign of a singular vector is arbitrary: ours makes the map go up with the
// sum of all channels.
at::Tensor map(const Activated& a) {
  const at::Tensor maps = a.activations[0];  // [C,h,w]
  at::Tensor pixels = maps.flatten(1).t();   // pixels x channels
  pixels = pixels - pixels.mean(0, /*keepdim=*/true);
  const at::Tensor v = std::get<2>(at::linalg_svd(pixels, /*full_matrices=*/false))[0];
  const at::Tensor along = pixels.matmul(v);
  const at::Tensor all = pixels.sum(1);  // centred
  const bool turn = along.dot(all).item<double>() < 0;
  return (turn ? along.neg() : along).view({1, maps.size(1), maps.size(2)});
}

}  // namespace

MethodEntry eigen_cam_method() {
  return cam_entry("eigen-cam", "activations along their first principal direction; the same for every class",
                   "Muhammad and Yeasin 2020, equation 4",
                   [](const Method& method, Context& context, const Explained& rows) {
                     return class_activation(method, context, rows, /*gradients=*/false, map);
                   });
}

}  // namespace assay
