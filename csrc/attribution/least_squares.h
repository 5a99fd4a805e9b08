// Small regressions in float64, on the CPU.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <vector>

namespace assay {

// The x [m] of least norm among those that minimise |a x - b|; a [n,m], b [n], doubles.
// Directions whose singular value is below 1e-10 of the largest count as not determined.
// NaN where b is not finite.
std::vector<double> least_squares(const at::Tensor& a, const at::Tensor& b);

struct LassoFit {
  std::vector<double> coefficients;  // [m]
  double intercept;
  bool converged;
};

// Minimises 1/(2n) sum_i w_i (y_i - c - x_i.b)^2 + alpha |b|_1 over b and the
// intercept c by cyclic coordinate descent (Friedman, Hastie and Tibshirani 2010),
// until no derivative is off by more than 1e-12 of the largest. x [n,m], y [n],
// weights [n] >= 0 that sum to n, doubles.
LassoFit lasso(const at::Tensor& x, const at::Tensor& y, const at::Tensor& weights, double alpha);

}  // namespace assay
