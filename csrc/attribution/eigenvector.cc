#include "attribution/eigenvector.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace assay {

double dot(const double* a, const double* b, int64_t n) {
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

namespace {

using Vector = std::vector<double>;

// The largest eigenvalue of a symmetric tridiagonal matrix, which is positive, and its eigenvector of length
// 1. diagonal: k numbers; beside: at least k-1, positive.
double largest(Vector diagonal, Vector beside, Vector& vector) {
  const size_t k = diagonal.size();
  // In units of its own size: squares of what is left over stay in range.
  const double unit = *std::max_element(diagonal.begin(), diagonal.end());
  for (double& x : diagonal) x /= unit;
  for (double& x : beside) x /= unit;
  double low = diagonal[0], high = diagonal[0];
  for (size_t i = 0; i < k; ++i) {
    low = std::max(low, diagonal[i]);
    high = std::max(high, diagonal[i] + (i > 0 ? beside[i - 1] : 0) + (i + 1 < k ? beside[i] : 0));
  }
  // Above the largest all pivots of x - T are positive.
  Vector pivots(k);
  const auto above = [&](double x) {
    for (size_t i = 0; i < k; ++i) {
      pivots[i] = x - diagonal[i] - (i > 0 ? beside[i - 1] * beside[i - 1] / pivots[i - 1] : 0);
      if (!(pivots[i] > 0)) return false;
    }
    return true;
  };
  constexpr double kTiny = 4e-16;
  high += kTiny * high;
  while (high - low > kTiny * high) {
    const double middle = low + (high - low) / 2;
    if (middle <= low || middle >= high) break;
    (above(middle) ? high : low) = middle;
  }
  while (!above(high)) high += kTiny * high;
  // Inverse iteration: all numbers are positive, so small ones are as exact as large ones.
  vector.assign(k, 1);
  for (int round = 0; round < 3; ++round) {
    for (size_t i = 1; i < k; ++i) vector[i] += beside[i - 1] / pivots[i - 1] * vector[i - 1];
    for (size_t i = k; i-- > 0;) {
      vector[i] = (vector[i] + (i + 1 < k ? beside[i] * vector[i + 1] : 0)) / pivots[i];
    }
    const double norm = std::sqrt(dot(vector.data(), vector.data(), static_cast<int64_t>(k)));
    for (double& x : vector) x /= norm;
  }
  return high * unit;
}

}  // namespace

std::vector<double> leading_eigenvector(const std::vector<double>& matrix, int64_t n) {
  constexpr int64_t kSteps = 60, kLook = 4;
  constexpr double kResidual = 1e-12;  // of |A v - lambda v|, in units of lambda
  const double* const a = matrix.data();
  // A column of the matrix has less of small directions than most vectors have.
  int64_t start = 0;
  for (int64_t i = 1; i < n; ++i) start = a[i * n + i] > a[start * n + start] ? i : start;
  std::vector<Vector> basis;
  Vector diagonal, beside, within, next(a + start * n, a + (start + 1) * n);
  double norm = std::sqrt(dot(next.data(), next.data(), n));
  if (!std::isfinite(norm)) return Vector(next.size(), std::numeric_limits<double>::quiet_NaN());
  if (norm == 0) return {};
  while (static_cast<int64_t>(basis.size()) < std::min(n, kSteps)) {
    for (double& x : next) x /= norm;
    basis.push_back(next);
    for (int64_t i = 0; i < n; ++i) next[static_cast<size_t>(i)] = dot(a + i * n, basis.back().data(), n);
    diagonal.push_back(dot(next.data(), basis.back().data(), n));
    for (int pass = 0; pass < 2; ++pass) {
      for (const Vector& q : basis) {
        const double along = dot(next.data(), q.data(), n);
        for (size_t i = 0; i < next.size(); ++i) next[i] -= along * q[i];
      }
    }
    norm = std::sqrt(dot(next.data(), next.data(), n));
    if (!std::isfinite(norm)) return Vector(next.size(), std::numeric_limits<double>::quiet_NaN());
    const auto done = static_cast<int64_t>(basis.size());
    if (done % kLook == 0 || done == n || norm <= kResidual * diagonal[0]) {
      const double lambda = largest(diagonal, beside, within);
      if (norm * std::abs(within.back()) <= kResidual * lambda) {
        Vector vector(next.size(), 0);
        for (size_t k = 0; k < basis.size(); ++k) {
          for (size_t i = 0; i < vector.size(); ++i) vector[i] += within[k] * basis[k][i];
        }
        return vector;
      }
    }
    beside.push_back(norm);
  }
  return {};
}

}  // namespace assay
