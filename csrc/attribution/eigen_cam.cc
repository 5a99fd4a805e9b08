// Eigen-CAM: activations along their first principal direction, whatever the class.
#include <algorithm>
#include <cmath>
#include <vector>

#include "attribution/cam.h"
#include "attribution/methods.h"

namespace assay {
namespace {

// The eigenvector of the largest eigenvalue of a symmetric matrix [n,n] without negative
// ones, doubles: by power iteration where that is quick, else by decomposition.
at::Tensor first_eigenvector(const at::Tensor& matrix) {
  constexpr int kIterations = 200;
  constexpr double kResidual = 1e-13;  // of |A v - lambda v|, in units of lambda
  const int64_t n = matrix.size(0);
  const double* const a = matrix.const_data_ptr<double>();
  // A column of the matrix has less of small directions than most vectors have.
  at::Tensor vector = matrix.select(0, at::argmax(matrix.diagonal()).item<int64_t>()).clone();
  std::vector<double> next(static_cast<size_t>(n));
  double* const v = vector.data_ptr<double>();
  for (int iteration = 0; iteration < kIterations; ++iteration) {
    double norm = 0;
    for (int64_t i = 0; i < n; ++i) norm += v[i] * v[i];
    norm = std::sqrt(norm);
    if (!(norm > 0)) break;
    for (int64_t i = 0; i < n; ++i) v[i] /= norm;
    double lambda = 0;
    for (int64_t i = 0; i < n; ++i) {
      const double* const row = a + i * n;
      double sum = 0;
#pragma omp simd reduction(+ : sum)
      for (int64_t j = 0; j < n; ++j) sum += row[j] * v[j];
      next[static_cast<size_t>(i)] = sum;
      lambda += sum * v[i];
    }
    double off = 0;
    for (int64_t i = 0; i < n; ++i) off += std::pow(next[static_cast<size_t>(i)] - lambda * v[i], 2);
    if (std::sqrt(off) <= kResidual * lambda) return vector;
    std::copy(next.begin(), next.end(), v);
  }
  const auto [values, vectors] = at::linalg_eigh(matrix);  // ascending
  return vectors.select(1, n - 1).contiguous();
}

// By the smaller of the two matrices of products, in double: what a singular value
// decomposition would give, in less time. The sign of a singular vector is
// arbitrary: ours makes the map go up with the sum of all channels.
at::Tensor map(const Activated& a) {
  const at::Tensor maps = a.activations[0];                 // [C,h,w]
  at::Tensor pixels = maps.flatten(1).t().to(at::kDouble);  // pixels x channels
  pixels = pixels - pixels.mean(0, /*keepdim=*/true);
  const bool by_pixel = pixels.size(0) <= pixels.size(1);
  const at::Tensor products = by_pixel ? pixels.matmul(pixels.t()) : pixels.t().matmul(pixels);
  const at::Tensor first = first_eigenvector(products.contiguous());
  // pixels v = sigma u
  const at::Tensor along =
      by_pixel ? first * at::sqrt(at::relu(first.dot(products.mv(first)))) : pixels.matmul(first);
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
