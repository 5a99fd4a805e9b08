#include "removal/stencil.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace assay {
namespace {

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__)
#define ASSAY_STENCIL_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define ASSAY_STENCIL_CLONES
#endif
#define ASSAY_INLINE inline __attribute__((always_inline))

// Even and odd columns of a row.
template <class T>
struct Halves {
  T* even;
  T* odd;
};

template <class T>
ASSAY_INLINE Halves<T> halves(const PlaneShape& s, T* plane, int64_t r) {
  T* even = plane + s.row(r);
  return {even, even + s.half()};
}

// W x at column j of the even half of the row between `up` and `down`, and of the odd half.
template <class T, class X>
ASSAY_INLINE T around_even(const Halves<X>& up, const Halves<X>& own, const Halves<X>& down, int64_t j) {
  return static_cast<T>(kDirect) * ((T(own.odd[j - 1]) + own.odd[j]) + (T(up.even[j]) + down.even[j])) +
         static_cast<T>(kDiagonal) * ((T(up.odd[j - 1]) + up.odd[j]) + (T(down.odd[j - 1]) + down.odd[j]));
}

template <class T, class X>
ASSAY_INLINE T around_odd(const Halves<X>& up, const Halves<X>& own, const Halves<X>& down, int64_t j) {
  return static_cast<T>(kDirect) * ((T(own.even[j]) + own.even[j + 1]) + (T(up.odd[j]) + down.odd[j])) +
         static_cast<T>(kDiagonal) *
             ((T(up.even[j]) + up.even[j + 1]) + (T(down.even[j]) + down.even[j + 1]));
}

template <class T>
ASSAY_INLINE void sweep_even(const PlaneShape& s, const Halves<const T>& g, const Halves<const T>& b,
                             const Halves<const T>& up, const Halves<const T>& down, const Halves<T>& x) {
  const Halves<const T> own{x.even, x.odd};
#pragma omp simd
  for (int64_t j = 0; j < s.span(); ++j) {
    x.even[j] = g.even[j] * (b.even[j] + around_even<T>(up, own, down, j));
  }
}

template <class T>
ASSAY_INLINE void sweep_odd(const PlaneShape& s, const Halves<const T>& g, const Halves<const T>& b,
                            const Halves<const T>& up, const Halves<const T>& down, const Halves<T>& x) {
  const Halves<const T> own{x.even, x.odd};
#pragma omp simd
  for (int64_t j = 0; j < s.span(); ++j) {
    x.odd[j] = g.odd[j] * (b.odd[j] + around_odd<T>(up, own, down, j));
  }
}

template <class T>
ASSAY_INLINE void from_zero(const Level<T>& level, const T* b, T* x) {
  const PlaneShape& s = level.shape;
  constexpr T direct = static_cast<T>(kDirect), diagonal = static_cast<T>(kDiagonal);
  for (int64_t r = 0; r < s.height; ++r) {
    const auto g = halves(s, level.gain.data(), r), rhs = halves(s, b, r);
    const auto up = halves(s, static_cast<const T*>(x), r - 1);
    const auto own = halves(s, x, r);
#pragma omp simd
    for (int64_t j = 0; j < s.span(); ++j) {
      own.even[j] = g.even[j] * (rhs.even[j] + direct * up.even[j] + diagonal * (up.odd[j - 1] + up.odd[j]));
    }
#pragma omp simd
    for (int64_t j = 0; j < s.span(); ++j) {
      own.odd[j] = g.odd[j] * (rhs.odd[j] + direct * (own.even[j] + own.even[j + 1] + up.odd[j]) +
                               diagonal * (up.even[j] + up.even[j + 1]));
    }
  }
}

template <class T>
ASSAY_INLINE void down(const Level<T>& level, const T* b, T* x) {
  const PlaneShape& s = level.shape;
  const T* const read = x;
  for (int64_t r = 0; r < s.height; ++r) {
    const auto g = halves(s, level.gain.data(), r), rhs = halves(s, b, r);
    const auto above = halves(s, read, r - 1), below = halves(s, read, r + 1);
    const auto own = halves(s, x, r);
    sweep_even(s, g, rhs, above, below, own);
    sweep_odd(s, g, rhs, above, below, own);
  }
}

template <class T>
ASSAY_INLINE double up(const Level<T>& level, const T* b, T* x) {
  const PlaneShape& s = level.shape;
  const T* const read = x;
  double product = 0;
  for (int64_t r = s.height - 1; r >= 0; --r) {
    const auto g = halves(s, level.gain.data(), r), rhs = halves(s, b, r);
    const auto above = halves(s, read, r - 1), below = halves(s, read, r + 1);
    const auto own = halves(s, x, r);
    sweep_odd(s, g, rhs, above, below, own);
    sweep_even(s, g, rhs, above, below, own);
    T sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t j = 0; j < s.span(); ++j) sum += rhs.even[j] * own.even[j] + rhs.odd[j] * own.odd[j];
    product += static_cast<double>(sum);
  }
  return product;
}

// Sums over the fine columns of a coarse cell, with the weights of bilinear interpolation:
// a fine column takes 3/4 of its own cell and 1/4 of the nearer neighbour, and all of its
// own where there is no such neighbour. Two rows, then rows of the coarse plane alike.
template <class T>
ASSAY_INLINE void restrict_columns(const PlaneShape& s, const Halves<const T>& r, T* out) {
#pragma omp simd
  for (int64_t j = 0; j < s.span(); ++j) {
    out[j] = T(.75) * (r.even[j] + r.odd[j]) + T(.25) * (r.even[j + 1] + r.odd[j - 1]);
  }
  for (int64_t c = 0; c < s.lanes; ++c) {
    const int64_t first = c * s.lane(), last = first + s.cells() - 1;
    out[first] += T(.25) * r.even[first];
    if (s.width % 2 == 0) out[last] += T(.25) * r.odd[last];
  }
}

template <class T>
ASSAY_INLINE void restricted(const Level<T>& level, const T* b, const T* x, T* scratch,
                             const PlaneShape& coarse, T* coarse_b) {
  const PlaneShape& s = level.shape;
  const int64_t n = s.span();
  // Row r of the scratch plane becomes its residual summed over columns: n values from
  // where its even half begins.
  std::vector<T> even(static_cast<size_t>(n + 2), T(0)), odd(static_cast<size_t>(n + 2), T(0));
  const Halves<const T> residual{even.data() + 1, odd.data() + 1};
  T *const re = even.data() + 1, *const ro = odd.data() + 1;
  for (int64_t r = 0; r < s.height; ++r) {
    const auto g = halves(s, level.gain.data(), r), rhs = halves(s, b, r);
    const auto above = halves(s, x, r - 1), own = halves(s, x, r), below = halves(s, x, r + 1);
    const T* const de = level.diagonal_of(r);
    const T* const dodd = de + s.half();
#pragma omp simd
    for (int64_t j = 0; j < n; ++j) {
      re[j] = de[j] * (g.even[j] * (rhs.even[j] + around_even<T>(above, own, below, j)) - own.even[j]);
      ro[j] = dodd[j] * (g.odd[j] * (rhs.odd[j] + around_odd<T>(above, own, below, j)) - own.odd[j]);
    }
    restrict_columns(s, residual, scratch + s.row(r));
  }
  std::vector<T> sum(static_cast<size_t>(n + 1), T(0));
  const std::vector<T> zeros(static_cast<size_t>(n), T(0));  // below the last row
  for (int64_t i = 0; i < coarse.height; ++i) {
    const int64_t first = 2 * i, second = 2 * i + 1;
    const T* const a = scratch + s.row(first);
    const T* const c = second < s.height ? scratch + s.row(second) : zeros.data();
    const T* const before = first > 0 ? scratch + s.row(first - 1) : a;
    const T* const after = second + 1 < s.height ? scratch + s.row(second + 1) : c;
#pragma omp simd
    for (int64_t j = 0; j < n; ++j)
      sum[static_cast<size_t>(j)] = T(.75) * (a[j] + c[j]) + T(.25) * (before[j] + after[j]);
    const auto to = halves(coarse, coarse_b, i);
    for (int64_t c = 0; c < s.lanes; ++c) {
      const T* const from = sum.data() + c * s.lane();
      T *const even = to.even + c * coarse.lane(), *const odd = to.odd + c * coarse.lane();
#pragma omp simd
      for (int64_t j = 0; j < coarse.cells(); ++j) {
        even[j] = from[2 * j];
        odd[j] = from[2 * j + 1];
      }
    }
  }
}

template <class T>
ASSAY_INLINE void prolonged(const Level<T>& level, const PlaneShape& coarse, const T* e, T* x) {
  const PlaneShape& s = level.shape;
  // A row of the coarse plane in its natural order, each channel between copies of its ends.
  const int64_t n = coarse.width, pitch = n + 3;
  std::vector<T> row(static_cast<size_t>(s.lanes * pitch));
  for (int64_t r = 0; r < s.height; ++r) {
    const int64_t own = r / 2;
    const int64_t near = std::clamp<int64_t>(own + (r % 2 == 0 ? -1 : 1), 0, coarse.height - 1);
    const auto a = halves(coarse, e, own), b = halves(coarse, e, near);
    const auto g = halves(s, level.gain.data(), r);
    const auto to = halves(s, x, r);
    for (int64_t c = 0; c < s.lanes; ++c) {
      T* const v = row.data() + c * pitch + 1;
      const int64_t from = c * coarse.lane(), into = c * s.lane();
#pragma omp simd
      for (int64_t j = 0; j < coarse.cells(); ++j) {
        v[2 * j] = T(.75) * a.even[from + j] + T(.25) * b.even[from + j];
        v[2 * j + 1] = T(.75) * a.odd[from + j] + T(.25) * b.odd[from + j];
      }
      v[-1] = v[0];
      v[n] = v[n - 1];
#pragma omp simd
      for (int64_t j = 0; j < s.cells(); ++j) {
        const T left = T(.75) * v[j] + T(.25) * v[j - 1], right = T(.75) * v[j] + T(.25) * v[j + 1];
        to.even[into + j] += g.even[into + j] > 0 ? left : T(0);
        to.odd[into + j] += g.odd[into + j] > 0 ? right : T(0);
      }
    }
  }
}

template <class T>
ASSAY_INLINE double directed(const Level<T>& level, const T* z, double beta, T* p, T* q) {
  const PlaneShape& s = level.shape;
  const T factor = static_cast<T>(beta);
  const auto update = [&](int64_t r) {
    T* const to = p + s.row(r);
    const T* const from = z + s.row(r);
    const int64_t n = s.half() + s.span();
#pragma omp simd
    for (int64_t j = 0; j < n; ++j) to[j] = from[j] + factor * to[j];
  };
  double product = 0;
  update(0);
  for (int64_t r = 0; r < s.height; ++r) {
    if (r + 1 < s.height) update(r + 1);
    const T* const read = p;
    const auto g = halves(s, level.gain.data(), r);
    const auto above = halves(s, read, r - 1), own = halves(s, read, r), below = halves(s, read, r + 1);
    const auto to = halves(s, q, r);
    const T* const de = level.diagonal_of(r);
    const T* const dodd = de + s.half();
    T sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t j = 0; j < s.span(); ++j) {
      const T a = de[j] * (own.even[j] - g.even[j] * around_even<T>(above, own, below, j));
      const T c = dodd[j] * (own.odd[j] - g.odd[j] * around_odd<T>(above, own, below, j));
      to.even[j] = a;
      to.odd[j] = c;
      sum += a * own.even[j] + c * own.odd[j];
    }
    product += static_cast<double>(sum);
  }
  return product;
}

template <class T>
ASSAY_INLINE Step advanced(size_t size, double alpha, const T* p, const T* q, T* x, T* r) {
  const T a = static_cast<T>(alpha);
  Step step{0, 0};
  constexpr size_t kBlock = 1024;  // sums of so many in T
  T largest = 0;
  for (size_t begin = 0; begin < size; begin += kBlock) {
    const size_t end = std::min(size, begin + kBlock);
    T sum = 0, most = 0;
#pragma omp simd reduction(+ : sum) reduction(max : most)
    for (size_t i = begin; i < end; ++i) {
      const T moved = a * p[i];
      x[i] += moved;
      const T rest = r[i] - a * q[i];
      r[i] = rest;
      sum += rest * rest;
      most = std::max(most, std::abs(moved));
    }
    step.residual += static_cast<double>(sum);
    largest = std::max(largest, most);
  }
  step.largest = static_cast<double>(largest);
  return step;
}

template <class T>
ASSAY_INLINE void known(const Level<T>& level, const T* k, T* b) {
  const PlaneShape& s = level.shape;
  for (int64_t r = 0; r < s.height; ++r) {
    const auto g = halves(s, level.gain.data(), r);
    const auto above = halves(s, k, r - 1), own = halves(s, k, r), below = halves(s, k, r + 1);
    const auto to = halves(s, b, r);
#pragma omp simd
    for (int64_t j = 0; j < s.span(); ++j) {
      const T e = around_even<T>(above, own, below, j), o = around_odd<T>(above, own, below, j);
      to.even[j] = g.even[j] > 0 ? e : T(0);
      to.odd[j] = g.odd[j] > 0 ? o : T(0);
    }
  }
}

template <class T>
ASSAY_INLINE std::vector<double> squared(const PlaneShape& s, const T* plane) {
  std::vector<double> out(static_cast<size_t>(s.lanes), 0);
  for (int64_t r = 0; r < s.height; ++r) {
    const auto own = halves(s, plane, r);
    for (int64_t c = 0; c < s.lanes; ++c) {
      T sum = 0;
#pragma omp simd reduction(+ : sum)
      for (int64_t j = c * s.lane(); j < c * s.lane() + s.cells(); ++j) {
        sum += own.even[j] * own.even[j] + own.odd[j] * own.odd[j];
      }
      out[static_cast<size_t>(c)] += static_cast<double>(sum);
    }
  }
  return out;
}

template <class T>
ASSAY_INLINE double exact(const Level<T>& level, const T* f, T* r) {
  const PlaneShape& s = level.shape;
  double norm = 0;
  for (int64_t i = 0; i < s.height; ++i) {
    const auto g = halves(s, level.gain.data(), i);
    const auto above = halves(s, f, i - 1), own = halves(s, f, i), below = halves(s, f, i + 1);
    const auto to = halves(s, r, i);
    const T* const de = level.diagonal_of(i);
    const T* const dodd = de + s.half();
    // The diagonal in double: the rounding of 2/3 would count.
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t j = 0; j < s.span(); ++j) {
      const double dj = std::round(12 * double(de[j])) / 12, dk = std::round(12 * double(dodd[j])) / 12;
      const double e = g.even[j] > 0 ? around_even<double>(above, own, below, j) - dj * own.even[j] : 0;
      const double o = g.odd[j] > 0 ? around_odd<double>(above, own, below, j) - dk * own.odd[j] : 0;
      to.even[j] = static_cast<T>(e);
      to.odd[j] = static_cast<T>(o);
      sum += e * e + o * o;
    }
    norm += sum;
  }
  return norm;
}

template <class T>
ASSAY_INLINE Known<T> surveyed(const PlaneShape& s, const T* values, const bool* removed) {
  constexpr T most = std::numeric_limits<T>::infinity();
  Known<T> all{0, most, -most};
  const auto* const bytes = reinterpret_cast<const unsigned char*>(removed);
  // The mask as numbers: comparisons of bytes and of numbers do not mix in a vector.
  std::vector<T> keep(static_cast<size_t>(s.width));
  for (int64_t r = 0; r < s.height; ++r) {
    const T* const v = values + r * s.width;
    const unsigned char* const gone = bytes + r * s.width;
    T* const k = keep.data();
#pragma omp simd
    for (int64_t c = 0; c < s.width; ++c) k[c] = static_cast<T>(gone[c]);
    T sum = 0, low = most, high = -most;
#pragma omp simd reduction(+ : sum) reduction(min : low) reduction(max : high)
    for (int64_t c = 0; c < s.width; ++c) {
      const T value = v[c];
      sum += k[c] > 0 ? T(0) : value;
      low = std::min(low, k[c] > 0 ? most : value);
      high = std::max(high, k[c] > 0 ? -most : value);
    }
    all.sum += static_cast<double>(sum);
    all.low = std::min(all.low, low);
    all.high = std::max(all.high, high);
  }
  return all;
}

template <class T>
ASSAY_INLINE void loaded(const Level<T>& level, int64_t channel, const T* values, T shift, T* plane) {
  const PlaneShape& s = level.shape;
  const int64_t begin = channel * s.lane(), pairs = s.width / 2;
  for (int64_t r = 0; r < s.height; ++r) {
    const T* const v = values + r * s.width;
    const auto g = halves(s, level.gain.data(), r);  // the same in every lane
    const auto row = halves(s, plane, r);
    T *const to_even = row.even + begin, *const to_odd = row.odd + begin;
#pragma omp simd
    for (int64_t j = 0; j < pairs; ++j) {
      const T even = v[2 * j] - shift, odd = v[2 * j + 1] - shift;
      to_even[j] = g.even[j] > 0 ? T(0) : even;
      to_odd[j] = g.odd[j] > 0 ? T(0) : odd;
    }
    if (s.width % 2 != 0) to_even[pairs] = g.even[pairs] > 0 ? T(0) : v[2 * pairs] - shift;
  }
}

template <class T>
ASSAY_INLINE void stored(const PlaneShape& s, int64_t channel, const T* plane, const bool* removed, T shift,
                         T low, T high, T* values) {
  const auto* const bytes = reinterpret_cast<const unsigned char*>(removed);
  std::vector<T> row(static_cast<size_t>(s.width + 1));
  T* const natural = row.data();
  for (int64_t r = 0; r < s.height; ++r) {
    T* const v = values + r * s.width;
    const unsigned char* const gone = bytes + r * s.width;
    const auto from = halves(s, plane, r);
    const T *const even = from.even + channel * s.lane(), *const odd = from.odd + channel * s.lane();
#pragma omp simd
    for (int64_t j = 0; j < s.cells(); ++j) {
      natural[2 * j] = even[j];
      natural[2 * j + 1] = odd[j];
    }
#pragma omp simd
    for (int64_t c = 0; c < s.width; ++c) {
      const T filled = natural[c] + shift, own = v[c];
      const T above = filled < low ? low : filled;
      const T within = above > high ? high : above;
      v[c] = gone[c] != 0 ? within : own;
    }
  }
}

template <class T>
ASSAY_INLINE int64_t gained(const PlaneShape& s, const bool* removed, const T* inverse, T* gain) {
  int64_t unknown = 0;
  for (int64_t r = 0; r < s.height; ++r) {
    const auto* const gone = reinterpret_cast<const unsigned char*>(removed) + r * s.width;
    const T* const even = inverse + ((r > 0) + (r + 1 < s.height)) * s.pitch() + 1;
    const T* const odd = even + s.half();
    const auto to = halves(s, gain, r);
    const int64_t pairs = s.width / 2;
    int32_t count = 0;
#pragma omp simd reduction(+ : count)
    for (int64_t j = 0; j < pairs; ++j) {
      const int32_t first = gone[2 * j], second = gone[2 * j + 1];
      const T e = even[j], o = odd[j];
      to.even[j] = first != 0 ? e : T(0);
      to.odd[j] = second != 0 ? o : T(0);
      count += first + second;
    }
    if (s.width % 2 != 0) {
      to.even[pairs] = gone[2 * pairs] ? even[pairs] : T(0);
      count += gone[2 * pairs];
    }
    for (int64_t c = 1; c < s.lanes; ++c) {
      std::copy_n(to.even, s.cells(), to.even + c * s.lane());
      std::copy_n(to.odd, s.cells(), to.odd + c * s.lane());
    }
    unknown += count;
  }
  return unknown;
}

}  // namespace

ASSAY_STENCIL_CLONES void coarsen(const PlaneShape& s, const bool* removed, bool* coarse) {
  const PlaneShape to = s.coarser();
  for (int64_t i = 0; i < to.height; ++i) {
    const bool* const a = removed + 2 * i * s.width;
    const bool* const b = 2 * i + 1 < s.height ? a + s.width : a;
    bool* const row = coarse + i * to.width;
    const int64_t pairs = s.width / 2;
#pragma omp simd
    for (int64_t j = 0; j < pairs; ++j) row[j] = (a[2 * j] & a[2 * j + 1]) & (b[2 * j] & b[2 * j + 1]);
    if (s.width % 2 != 0) row[pairs] = a[2 * pairs] & b[2 * pairs];
  }
}

#define ASSAY_STENCIL_FOR(T)                                                                                \
  ASSAY_STENCIL_CLONES void sweep_from_zero(const Level<T>& level, const T* b, T* x) {                      \
    from_zero(level, b, x);                                                                                 \
  }                                                                                                         \
  ASSAY_STENCIL_CLONES void sweep_down(const Level<T>& level, const T* b, T* x) { down(level, b, x); }      \
  ASSAY_STENCIL_CLONES double sweep_up(const Level<T>& level, const T* b, T* x) { return up(level, b, x); } \
  ASSAY_STENCIL_CLONES void restrict_residual(const Level<T>& level, const T* b, const T* x, T* scratch,    \
                                              const PlaneShape& coarse, T* coarse_b) {                      \
    restricted(level, b, x, scratch, coarse, coarse_b);                                                     \
  }                                                                                                         \
  ASSAY_STENCIL_CLONES void add_prolonged(const Level<T>& level, const PlaneShape& coarse, const T* e,      \
                                          T* x) {                                                           \
    prolonged(level, coarse, e, x);                                                                         \
  }                                                                                                         \
  ASSAY_STENCIL_CLONES double direct(const Level<T>& level, const T* z, double beta, T* p, T* q) {          \
    return directed(level, z, beta, p, q);                                                                  \
  }                                                                                                         \
  ASSAY_STENCIL_CLONES Step advance(size_t size, double alpha, const T* p, const T* q, T* x, T* r) {        \
    return advanced(size, alpha, p, q, x, r);                                                               \
  }                                                                                                         \
  ASSAY_STENCIL_CLONES Known<T> survey(const PlaneShape& s, const T* values, const bool* removed) {         \
    return surveyed(s, values, removed);                                                                    \
  }                                                                                                         \
  ASSAY_STENCIL_CLONES void load_known(const Level<T>& level, int64_t channel, const T* values, T shift,    \
                                       T* plane) {                                                          \
    loaded(level, channel, values, shift, plane);                                                           \
  }                                                                                                         \
  ASSAY_STENCIL_CLONES void store_filled(const PlaneShape& s, int64_t channel, const T* plane,              \
                                         const bool* removed, T shift, T low, T high, T* values) {          \
    stored(s, channel, plane, removed, shift, low, high, values);                                           \
  }                                                                                                         \
  ASSAY_STENCIL_CLONES int64_t load_gain(const PlaneShape& s, const bool* removed, const T* inverse,        \
                                         T* gain) {                                                         \
    return gained(s, removed, inverse, gain);                                                               \
  }                                                                                                         \
  ASSAY_STENCIL_CLONES void gather_known(const Level<T>& level, const T* k, T* b) { known(level, k, b); }   \
  ASSAY_STENCIL_CLONES std::vector<double> squares(const PlaneShape& s, const T* plane) {                   \
    return squared(s, plane);                                                                               \
  }                                                                                                         \
  ASSAY_STENCIL_CLONES double exact_residual(const Level<T>& level, const T* f, T* r) {                     \
    return exact(level, f, r);                                                                              \
  }

ASSAY_STENCIL_FOR(float)
ASSAY_STENCIL_FOR(double)

}  // namespace assay
