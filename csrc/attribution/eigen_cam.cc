// Eigen-CAM: activations along their first principal direction, whatever the class.
#include <ATen/Dispatch.h>
#include <ATen/Parallel.h>

#include <cmath>
#include <vector>

#include "attribution/cam.h"
#include "attribution/eigenvector.h"
#include "attribution/methods.h"

namespace assay {
namespace {

using Vector = std::vector<double>;

// One image's activations as a matrix of rows, whose products are the smaller of the two matrices that
// there are: what a singular value decomposition would give, in less time.
struct Image {
  int64_t rows, columns;
  bool by_pixel;    // rows are pixels, else channels
  Vector values;    // rows x columns; every channel less its mean
  Vector totals;    // sum over channels of each pixel's
  Vector products;  // rows x rows
  Vector first;     // their first eigenvector
};

// activations: [channels,pixels].
template <class T>
void prepare(const T* activations, int64_t channels, int64_t pixels, Image& image) {
  image.by_pixel = pixels <= channels;
  image.rows = image.by_pixel ? pixels : channels;
  image.columns = image.by_pixel ? channels : pixels;
  image.values.resize(static_cast<size_t>(channels * pixels));
  image.totals.assign(static_cast<size_t>(pixels), 0);
  for (int64_t c = 0; c < channels; ++c) {
    const T* const own = activations + c * pixels;
    double sum = 0;
    for (int64_t p = 0; p < pixels; ++p) sum += static_cast<double>(own[p]);
    const double mean = sum / static_cast<double>(pixels);
    for (int64_t p = 0; p < pixels; ++p) {
      const double centred = static_cast<double>(own[p]) - mean;
      image.values[static_cast<size_t>(image.by_pixel ? p * channels + c : c * pixels + p)] = centred;
      image.totals[static_cast<size_t>(p)] += centred;
    }
  }
  const int64_t n = image.rows;
  image.products.resize(static_cast<size_t>(n * n));
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j <= i; ++j) {
      const double product = dot(image.values.data() + i * image.columns,
                                 image.values.data() + j * image.columns, image.columns);
      image.products[static_cast<size_t>(i * n + j)] = image.products[static_cast<size_t>(j * n + i)] =
          product;
    }
  }
  image.first = leading_eigenvector(image.products, n);
}

void by_decomposition(Image& image) {
  const at::Tensor matrix =
      at::from_blob(image.products.data(), {image.rows, image.rows}, at::kDouble).clone();
  const auto [values, vectors] = at::linalg_eigh(matrix);  // ascending
  const at::Tensor last = vectors.select(1, image.rows - 1).contiguous();
  image.first.assign(last.const_data_ptr<double>(), last.const_data_ptr<double>() + image.rows);
}

// The image along its first direction. The sign of a singular vector is arbitrary: ours makes the map go
// up with the sum of all channels.
template <class T>
void finish(const Image& image, T* map) {
  const int64_t n = image.rows;
  Vector along(image.totals.size(), 0);
  if (image.by_pixel) {  // pixels v = sigma u
    double lambda = 0;
    for (int64_t i = 0; i < n; ++i) {
      lambda +=
          image.first[static_cast<size_t>(i)] * dot(image.products.data() + i * n, image.first.data(), n);
    }
    const double sigma = lambda > 0 ? std::sqrt(lambda) : lambda * 0;  // NaN stays
    for (size_t p = 0; p < along.size(); ++p) along[p] = sigma * image.first[p];
  } else {
    for (int64_t c = 0; c < n; ++c) {
      const double* const own = image.values.data() + c * image.columns;
      const double weight = image.first[static_cast<size_t>(c)];
      for (size_t p = 0; p < along.size(); ++p) along[p] += weight * own[p];
    }
  }
  const double sign = dot(along.data(), image.totals.data(), static_cast<int64_t>(along.size())) < 0 ? -1 : 1;
  for (size_t p = 0; p < along.size(); ++p) map[p] = static_cast<T>(sign * along[p]);
}

at::Tensor attribute(const Method& method, Context& context, const Explained& rows) {
  const std::string layer = layer_of(method, context);
  std::vector<at::Tensor> maps;
  in_blocks(rows.size(), context.run.batch(), [&](int64_t begin, int64_t count) {
    const at::Tensor there = values_at(context, layer, rows.x.narrow(0, begin, count))[0];
    context.run.count(count, 0);
    const at::Tensor activations = there.cpu().contiguous();
    const int64_t channels = activations.size(1), pixels = activations.size(2) * activations.size(3);
    at::Tensor out = at::empty({count, activations.size(2), activations.size(3)}, activations.options());
    std::vector<Image> images(static_cast<size_t>(count));
    AT_DISPATCH_FLOATING_TYPES(activations.scalar_type(), "eigen-cam", [&] {
      const scalar_t* const from = activations.const_data_ptr<scalar_t>();
      scalar_t* const to = out.data_ptr<scalar_t>();
      at::parallel_for(0, count, 1, [&](int64_t first, int64_t last) {
        for (int64_t i = first; i < last; ++i) {
          Image& image = images[static_cast<size_t>(i)];
          prepare(from + i * channels * pixels, channels, pixels, image);
          if (!image.first.empty()) finish(image, to + i * pixels);
        }
      });
      // One after the other: libtorch's decomposition may go another way within a parallel loop.
      for (int64_t i = 0; i < count; ++i) {
        Image& image = images[static_cast<size_t>(i)];
        if (!image.first.empty()) continue;
        by_decomposition(image);
        finish(image, to + i * pixels);
      }
    });
    maps.push_back(out.to(there.device()));
  });
  return finished(method, at::cat(maps), rows.x);
}

}  // namespace

MethodEntry eigen_cam_method() {
  return cam_entry("eigen-cam", "activations along their first principal direction; the same for every class",
                   "Muhammad and Yeasin 2020, equation 4", attribute);
}

}  // namespace assay
