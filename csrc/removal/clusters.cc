#include "removal/clusters.h"

#include <algorithm>
#include <array>
#include <limits>

#include "removal/stencil.h"

namespace assay {
namespace {

// With eight neighbours holes of random pixels join up from .41 on (the percolation threshold);
// below this share larger ones than kMost are rare, and multigrid is slower.
constexpr double kMostShare = .17;

// Calls visit(neighbour, weight) for the pixels around pixel p.
template <class Visit>
inline void around(int32_t p, int32_t height, int32_t width, const Visit& visit) {
  const int32_t r = p / width, c = p % width;
  if (r > 0 && c > 0 && r + 1 < height && c + 1 < width) {
    const int32_t above = p - width, below = p + width;
    visit(above - 1, kDiagonal);
    visit(above, kDirect);
    visit(above + 1, kDiagonal);
    visit(p - 1, kDirect);
    visit(p + 1, kDirect);
    visit(below - 1, kDiagonal);
    visit(below, kDirect);
    visit(below + 1, kDiagonal);
    return;
  }
  for (int32_t y = std::max(r - 1, 0); y <= std::min(r + 1, height - 1); ++y) {
    for (int32_t x = std::max(c - 1, 0); x <= std::min(c + 1, width - 1); ++x) {
      const int32_t q = y * width + x;
      if (q != p) visit(q, y == r || x == c ? kDirect : kDiagonal);
    }
  }
}

// The equations of a hole of n pixels, for all channels.
struct Equations {
  int n = 0;
  std::array<double, Clusters::kMost * Clusters::kMost> a;  // lower triangle, rows of kMost
  std::array<double, Clusters::kMost> d, x;

  double* row(int i) { return a.data() + i * Clusters::kMost; }

  // A = L D L', L in place of A without its diagonal of ones.
  void factor() {
    for (int i = 0; i < n; ++i) {
      double* const ai = row(i);
      for (int j = 0; j < i; ++j) {
        const double* const aj = row(j);
        double sum = ai[j];
        for (int k = 0; k < j; ++k) sum -= ai[k] * aj[k];
        ai[j] = sum;  // L D until the row is done
      }
      double own = d[static_cast<size_t>(i)];
      for (int j = 0; j < i; ++j) {
        const double l = ai[j] / d[static_cast<size_t>(j)];
        own -= l * ai[j];
        ai[j] = l;
      }
      d[static_cast<size_t>(i)] = own;
    }
  }
  // x in place of the right side.
  void solve() {
    for (int i = 0; i < n; ++i) {
      const double* const ai = row(i);
      double sum = x[static_cast<size_t>(i)];
      for (int j = 0; j < i; ++j) sum -= ai[j] * x[static_cast<size_t>(j)];
      x[static_cast<size_t>(i)] = sum;
    }
    for (int i = 0; i < n; ++i) x[static_cast<size_t>(i)] /= d[static_cast<size_t>(i)];
    for (int i = n - 1; i > 0; --i) {
      const double* const ai = row(i);
      for (int j = 0; j < i; ++j) x[static_cast<size_t>(j)] -= ai[j] * x[static_cast<size_t>(i)];
    }
  }
};

}  // namespace

bool Clusters::find(const bool* removed, int64_t height, int64_t width) {
  height_ = static_cast<int32_t>(height);
  width_ = static_cast<int32_t>(width);
  pixels_.clear();
  ends_.clear();
  const int32_t all = height_ * width_;
  if (static_cast<double>(std::count(removed, removed + all, true)) > kMostShare * static_cast<double>(all)) {
    return false;
  }
  place_.assign(static_cast<size_t>(all), -1);
  for (int32_t p = 0; p < all; ++p) {
    if (!removed[p] || place_[static_cast<size_t>(p)] >= 0) continue;
    const size_t begin = pixels_.size();
    const auto add = [&](int32_t q) {
      place_[static_cast<size_t>(q)] = static_cast<int32_t>(pixels_.size() - begin);
      pixels_.push_back(q);
    };
    add(p);
    for (size_t i = begin; i < pixels_.size(); ++i) {
      around(pixels_[i], height_, width_, [&](int32_t q, double) {
        if (removed[q] && place_[static_cast<size_t>(q)] < 0) add(q);
      });
    }
    if (pixels_.size() - begin > kMost) return false;
    ends_.push_back(static_cast<int32_t>(pixels_.size()));
  }
  return true;
}

template <class T>
void Clusters::fill(const bool* removed, T* values, int64_t channels) const {
  const int64_t all = int64_t{height_} * width_;
  std::vector<bool> finite;
  for (int64_t c = 0; c < channels; ++c) {
    // What is no number makes the sum none.
    T sum = 0;
    for (int64_t i = 0; i < all; ++i) sum += removed[i] ? T(0) : values[c * all + i] * T(0);
    finite.push_back(sum == 0);
  }
  Equations e;
  int32_t begin = 0;
  for (const int32_t end : ends_) {
    const int32_t* const hole = pixels_.data() + begin;
    e.n = end - begin;
    begin = end;
    for (int i = 0; i < e.n; ++i) {
      double* const row = e.row(i);
      std::fill_n(row, i, 0.);
      double sum = 0;
      around(hole[i], height_, width_, [&](int32_t q, double weight) {
        sum += weight;
        if (removed[q] && place_[static_cast<size_t>(q)] < i) row[place_[static_cast<size_t>(q)]] = -weight;
      });
      e.d[static_cast<size_t>(i)] = sum;
    }
    e.factor();
    for (int64_t c = 0; c < channels; ++c) {
      T* const own = values + c * all;
      if (!finite[static_cast<size_t>(c)]) {
        for (int i = 0; i < e.n; ++i) own[hole[i]] = std::numeric_limits<T>::quiet_NaN();
        continue;
      }
      T low = std::numeric_limits<T>::infinity(), high = -low;
      for (int i = 0; i < e.n; ++i) {
        double sum = 0;
        around(hole[i], height_, width_, [&](int32_t q, double weight) {
          if (removed[q]) return;
          sum += weight * static_cast<double>(own[q]);
          low = std::min(low, own[q]);
          high = std::max(high, own[q]);
        });
        e.x[static_cast<size_t>(i)] = sum;
      }
      e.solve();
      for (int i = 0; i < e.n; ++i) {
        own[hole[i]] = std::clamp(static_cast<T>(e.x[static_cast<size_t>(i)]), low, high);
      }
    }
  }
}

template void Clusters::fill<float>(const bool*, float*, int64_t) const;
template void Clusters::fill<double>(const bool*, double*, int64_t) const;

}  // namespace assay
