#include "attribution/slic.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace assay {
namespace {

// CIELAB of sRGB in [0,1], in place: IEC 61966-2-1 to linear light and XYZ, CIE
// 15:2004 to Lab with white D65.
void to_lab(double* rgb) {
  std::array<double, 3> linear{};
  for (size_t c = 0; c < 3; ++c) {
    const double v = std::clamp(rgb[c], 0., 1.);
    linear[c] = v <= 0.04045 ? v / 12.92 : std::pow((v + 0.055) / 1.055, 2.4);
  }
  constexpr double kToXyz[3][3] = {
      {0.4124, 0.3576, 0.1805}, {0.2126, 0.7152, 0.0722}, {0.0193, 0.1192, 0.9505}};
  constexpr double kWhite[3] = {0.9505, 1, 1.089};
  std::array<double, 3> f{};
  for (size_t i = 0; i < 3; ++i) {
    double t = 0;
    for (size_t c = 0; c < 3; ++c) t += kToXyz[i][c] * linear[c] / kWhite[i];
    constexpr double kDelta = 6. / 29;
    f[i] = t > kDelta * kDelta * kDelta ? std::cbrt(t) : t / (3 * kDelta * kDelta) + 4. / 29;
  }
  rgb[0] = 116 * f[1] - 16;
  rgb[1] = 500 * (f[0] - f[1]);
  rgb[2] = 200 * (f[1] - f[2]);
}

// One run of the algorithm on an image.
class Clustering {
 public:
  Clustering(const at::Tensor& colours, int64_t asked, double compactness)
      : height_(colours.size(0)),
        width_(colours.size(1)),
        channels_(colours.size(2)),
        colours_(colours.const_data_ptr<double>()),
        interval_(std::sqrt(static_cast<double>(height_ * width_) / static_cast<double>(asked))),
        weight_(compactness * compactness / (interval_ * interval_)),
        labels_(static_cast<size_t>(height_ * width_), -1) {
    seed();
  }

  void iterate() {
    assign();
    update();
  }
  double interval() const { return interval_; }
  const std::vector<int32_t>& labels() const { return labels_; }

 private:
  struct Centre {
    double y, x;
    std::vector<double> colour;
  };

  const double* colour(int64_t y, int64_t x) const { return colours_ + (y * width_ + x) * channels_; }
  double colour_distance(const double* a, const double* b) const {
    double sum = 0;
    for (int64_t c = 0; c < channels_; ++c) sum += (a[c] - b[c]) * (a[c] - b[c]);
    return sum;
  }
  // Squared change of colour across a pixel (the authors' earlier report, equation 2).
  double gradient(int64_t y, int64_t x) const {
    const auto in = [&](int64_t i, int64_t j) {
      return colour(std::clamp<int64_t>(i, 0, height_ - 1), std::clamp<int64_t>(j, 0, width_ - 1));
    };
    return colour_distance(in(y + 1, x), in(y - 1, x)) + colour_distance(in(y, x + 1), in(y, x - 1));
  }

  // Centres on a regular grid, each moved to the flattest of the 3x3 pixels there,
  // away from edges and noise.
  void seed() {
    const int64_t down =
        std::clamp<int64_t>(std::lround(static_cast<double>(height_) / interval_), 1, height_);
    const int64_t across =
        std::clamp<int64_t>(std::lround(static_cast<double>(width_) / interval_), 1, width_);
    for (int64_t i = 0; i < down; ++i) {
      for (int64_t j = 0; j < across; ++j) {
        const int64_t y = (2 * i + 1) * height_ / (2 * down), x = (2 * j + 1) * width_ / (2 * across);
        int64_t best_y = y, best_x = x;
        double flattest = gradient(y, x);
        for (int64_t v = std::max<int64_t>(y - 1, 0); v <= std::min(y + 1, height_ - 1); ++v) {
          for (int64_t u = std::max<int64_t>(x - 1, 0); u <= std::min(x + 1, width_ - 1); ++u) {
            const double g = gradient(v, u);
            if (g < flattest) {
              flattest = g;
              best_y = v;
              best_x = u;
            }
          }
        }
        const double* at = colour(best_y, best_x);
        centres_.push_back({static_cast<double>(best_y), static_cast<double>(best_x),
                            std::vector<double>(at, at + channels_)});
      }
    }
  }

  // Each pixel to the nearest centre whose 2S x 2S window holds it (equation 3).
  void assign() {
    std::vector<double> nearest(labels_.size(), std::numeric_limits<double>::infinity());
    for (size_t k = 0; k < centres_.size(); ++k) {
      const Centre& centre = centres_[k];
      const auto window = [&](double at, int64_t size) {
        return std::array<int64_t, 2>{
            std::max<int64_t>(static_cast<int64_t>(std::ceil(at - interval_)), 0),
            std::min<int64_t>(static_cast<int64_t>(std::floor(at + interval_)), size - 1)};
      };
      const auto [top, bottom] = window(centre.y, height_);
      const auto [left, right] = window(centre.x, width_);
      for (int64_t y = top; y <= bottom; ++y) {
        for (int64_t x = left; x <= right; ++x) {
          const double dy = static_cast<double>(y) - centre.y, dx = static_cast<double>(x) - centre.x;
          const double distance =
              colour_distance(colour(y, x), centre.colour.data()) + weight_ * (dy * dy + dx * dx);
          const size_t p = static_cast<size_t>(y * width_ + x);
          if (distance < nearest[p]) {
            nearest[p] = distance;
            labels_[p] = static_cast<int32_t>(k);
          }
        }
      }
    }
  }

  // Each centre to the mean of its pixels; one that has none stays.
  void update() {
    std::vector<double> counts(centres_.size(), 0);
    std::vector<Centre> sums(centres_.size(), {0, 0, std::vector<double>(static_cast<size_t>(channels_), 0)});
    for (int64_t y = 0; y < height_; ++y) {
      for (int64_t x = 0; x < width_; ++x) {
        const int32_t label = labels_[static_cast<size_t>(y * width_ + x)];
        if (label < 0) continue;  // in no window
        const size_t k = static_cast<size_t>(label);
        ++counts[k];
        sums[k].y += static_cast<double>(y);
        sums[k].x += static_cast<double>(x);
        for (int64_t c = 0; c < channels_; ++c) sums[k].colour[static_cast<size_t>(c)] += colour(y, x)[c];
      }
    }
    for (size_t k = 0; k < centres_.size(); ++k) {
      if (counts[k] == 0) continue;
      sums[k].y /= counts[k];
      sums[k].x /= counts[k];
      for (double& value : sums[k].colour) value /= counts[k];
      centres_[k] = sums[k];
    }
  }

  int64_t height_, width_, channels_;
  const double* colours_;
  double interval_, weight_;  // S; m^2 / S^2
  std::vector<int32_t> labels_;
  std::vector<Centre> centres_;
};

// Connected parts (by edges of pixels) of equal labels become superpixels, in scan
// order; one of fewer than `least` pixels joins the one before it that it touches.
Superpixels connected(const std::vector<int32_t>& labels, int64_t height, int64_t width, int64_t least) {
  Superpixels out{std::vector<int32_t>(labels.size(), -1), 0};
  std::vector<int64_t> part;
  for (int64_t start = 0; start < height * width; ++start) {
    if (out.map[static_cast<size_t>(start)] >= 0) continue;
    int32_t neighbour = -1;
    part.assign(1, start);
    out.map[static_cast<size_t>(start)] = out.count;
    for (size_t i = 0; i < part.size(); ++i) {
      const int64_t y = part[i] / width, x = part[i] % width;
      const auto look = [&](int64_t v, int64_t u) {
        if (v < 0 || v >= height || u < 0 || u >= width) return;
        const size_t q = static_cast<size_t>(v * width + u);
        int32_t& is = out.map[q];
        if (is < 0 && labels[q] == labels[static_cast<size_t>(start)]) {
          is = out.count;
          part.push_back(static_cast<int64_t>(q));
        } else if (is >= 0 && is != out.count && neighbour < 0) {
          neighbour = is;
        }
      };
      look(y, x - 1);
      look(y - 1, x);
      look(y, x + 1);
      look(y + 1, x);
    }
    if (static_cast<int64_t>(part.size()) < least && neighbour >= 0) {
      for (int64_t q : part) out.map[static_cast<size_t>(q)] = neighbour;
    } else {
      ++out.count;
    }
  }
  return out;
}

}  // namespace

at::Tensor slic_colours(const at::Tensor& images, const std::vector<double>& mean,
                        const std::vector<double>& std) {
  at::Tensor out = images.to(at::kCPU, at::kDouble).permute({0, 2, 3, 1}).contiguous().clone();
  const int64_t channels = out.size(3), each = out[0].numel();
  const bool known =
      static_cast<int64_t>(mean.size()) == channels && static_cast<int64_t>(std.size()) == channels;
  for (int64_t n = 0; n < out.size(0); ++n) {
    double* values = out.mutable_data_ptr<double>() + n * each;
    const auto [low, high] = std::minmax_element(values, values + each);
    const double from = *low, range = *high > *low ? *high - *low : 1;
    for (int64_t i = 0; i < each; ++i) {
      const size_t c = static_cast<size_t>(i % channels);
      values[i] = known ? values[i] * std[c] + mean[c] : (values[i] - from) / range;
      if (channels != 3) values[i] *= 100;
    }
    for (int64_t i = 0; channels == 3 && i < each; i += 3) to_lab(values + i);
  }
  return out;
}

Superpixels slic(const at::Tensor& colours, int64_t asked, double compactness) {
  Clustering clustering(colours, asked, compactness);
  constexpr int kIterations = 10;  // section 3.1: enough for most images
  for (int i = 0; i < kIterations; ++i) clustering.iterate();
  const double area = clustering.interval() * clustering.interval();
  return connected(clustering.labels(), colours.size(0), colours.size(1), static_cast<int64_t>(area / 4));
}

}  // namespace assay
