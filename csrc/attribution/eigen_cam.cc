// Eigen-CAM: activations along their first principal direction, whatever the class.
#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "attribution/cam.h"
#include "attribution/methods.h"

namespace assay {
namespace {

// The eigenvector of the largest eigenvalue of a symmetric matrix [n,n] without negative ones, doubles, by
// power iteration; undefined where that is not quick.
at::Tensor by_iteration(const at::Tensor& matrix) {
  constexpr int kIterations = 200;
  constexpr double kResidual = 1e-13;  // of |A v - lambda v|, in units of lambda
  const int64_t n = matrix.size(0);
  const double* const a = matrix.const_data_ptr<double>();
  // A column of the matrix has less of small directions than most vectors have.
  int64_t start = 0;
  for (int64_t i = 1; i < n; ++i) start = a[i * n + i] > a[start * n + start] ? i : start;
  at::Tensor vector = at::empty({n}, at::kDouble);
  double* const v = vector.data_ptr<double>();
  std::copy(a + start * n, a + (start + 1) * n, v);
  std::vector<double> next(static_cast<size_t>(n));
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
  return {};
}

// What is done image by image: sums of libtorch's may go another way for another number of images.
struct Image {
  at::Tensor pixels;    // pixels x channels, centred, double
  bool by_pixel;        // products of pixels, else of channels: the smaller matrix
  at::Tensor products;  // what a singular value decomposition would give, in less time
  at::Tensor first;     // their first eigenvector
};

Image image_of(const at::Tensor& activations) {
  Image image;
  image.pixels = activations.flatten(1).t().to(at::kDouble);
  image.pixels = image.pixels - image.pixels.mean(0, /*keepdim=*/true);
  image.by_pixel = image.pixels.size(0) <= image.pixels.size(1);
  const at::Tensor across = image.pixels.t();
  image.products =
      (image.by_pixel ? image.pixels.matmul(across) : across.matmul(image.pixels)).cpu().contiguous();
  return image;
}

// The sign of a singular vector is arbitrary: ours makes the map go up with the sum of
// all channels.
at::Tensor map_of(const Image& image, const at::Tensor& like) {
  at::Tensor first = image.first;
  if (!first.defined()) {
    const auto [values, vectors] = at::linalg_eigh(image.products);  // ascending
    first = vectors.select(1, image.products.size(0) - 1).contiguous();
  }
  first = first.to(image.pixels.device());
  // pixels v = sigma u
  const at::Tensor along =
      image.by_pixel ? first * at::sqrt(at::relu(first.dot(image.products.to(first.device()).mv(first))))
                     : image.pixels.matmul(first);
  const bool turn = along.dot(image.pixels.sum(1)).item<double>() < 0;  // the sum is centred
  return (turn ? along.neg() : along).view({like.size(1), like.size(2)}).to(like.scalar_type());
}

at::Tensor attribute(const Method& method, Context& context, const Explained& rows) {
  const std::string layer = layer_of(method, context);
  std::vector<at::Tensor> maps;
  in_blocks(rows.size(), context.run.batch(), [&](int64_t begin, int64_t count) {
    const at::Tensor activations = values_at(context, layer, rows.x.narrow(0, begin, count))[0].contiguous();
    context.run.count(count, 0);
    std::vector<Image> images;
    for (int64_t i = 0; i < count; ++i) images.push_back(image_of(activations[i]));
    at::parallel_for(0, count, 1, [&](int64_t from, int64_t to) {
      for (int64_t i = from; i < to; ++i) {
        Image& image = images[static_cast<size_t>(i)];
        image.first = by_iteration(image.products);
      }
    });
    for (int64_t i = 0; i < count; ++i) {
      maps.push_back(map_of(images[static_cast<size_t>(i)], activations[i]));
    }
  });
  return finished(method, at::stack(maps), rows.x);
}

}  // namespace

MethodEntry eigen_cam_method() {
  return cam_entry("eigen-cam", "activations along their first principal direction; the same for every class",
                   "Muhammad and Yeasin 2020, equation 4", attribute);
}

}  // namespace assay
