// Eigen-CAM: activations along their first principal direction, whatever the class.
#include "attribution/cam.h"
#include "attribution/methods.h"

namespace assay {
namespace {

// By the smaller of the two matrices of products, in double: what a singular value
// decomposition would give, in less time. The sign of a singular vector is
// arbitrary: ours makes the map go up with the sum of all channels.
at::Tensor map(const Activated& a) {
  const at::Tensor maps = a.activations[0];                 // [C,h,w]
  at::Tensor pixels = maps.flatten(1).t().to(at::kDouble);  // pixels x channels
  pixels = pixels - pixels.mean(0, /*keepdim=*/true);
  const bool by_pixel = pixels.size(0) <= pixels.size(1);
  const at::Tensor products = by_pixel ? pixels.matmul(pixels.t()) : pixels.t().matmul(pixels);
  const auto [values, vectors] = at::linalg_eigh(products);  // ascending
  const at::Tensor first = vectors.select(1, vectors.size(1) - 1);
  // pixels v = sigma u
  const at::Tensor along =
      by_pixel ? first * at::sqrt(at::relu(values[values.size(0) - 1])) : pixels.matmul(first);
  const bool turn = along.dot(pixels.sum(1)).item<double>() < 0;  // the sum is centred
  return (turn ? along.neg() : along).view({1, maps.size(1), maps.size(2)}).to(maps.scalar_type());
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
