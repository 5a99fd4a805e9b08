#include "attribution/least_squares.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace assay {

namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

std::vector<double> undefined(int64_t unknowns) {
  return std::vector<double>(static_cast<size_t>(unknowns), kNaN);
}

bool finite(const at::Tensor& values) { return at::isfinite(values).all().item<bool>(); }

}  // namespace

std::vector<double> least_squares(const at::Tensor& a, const at::Tensor& b) {
  if (!finite(b)) return undefined(a.size(1));  // which LAPACK answers by an error
  const auto [x, residuals, rank, singular] = at::linalg_lstsq(a, b.unsqueeze(1), 1e-10, "gelsd");
  const at::Tensor out = x.squeeze(1).contiguous();
  return {out.const_data_ptr<double>(), out.const_data_ptr<double>() + out.numel()};
}

LassoFit lasso(const at::Tensor& x, const at::Tensor& y, const at::Tensor& weights, double alpha) {
  const int64_t n = x.size(0), m = x.size(1);
  if (!finite(y)) return {undefined(m), kNaN, true};
  // Weighted means taken off, the intercept drops out: the rest is
  // 1/2 b'G b - g'b + alpha |b|_1.
  const at::Tensor share = weights / static_cast<double>(n);
  const at::Tensor centre = share.matmul(x), level = share.dot(y);
  const at::Tensor centred = x - centre;
  const at::Tensor weighted = centred.t() * share;
  const at::Tensor gram = weighted.matmul(centred).contiguous(), slope = weighted.mv(y - level).contiguous();
  const double *G = gram.const_data_ptr<double>(), *g = slope.const_data_ptr<double>();

  LassoFit fit{std::vector<double>(static_cast<size_t>(m), 0), 0, false};
  std::vector<double>& b = fit.coefficients;
  std::vector<double> product(static_cast<size_t>(m), 0);  // G b
  double scale = alpha;
  for (int64_t j = 0; j < m; ++j) scale = std::max(scale, std::abs(g[j]));
  constexpr int kSweeps = 100000;
  for (int sweep = 0; sweep < kSweeps && !fit.converged; ++sweep) {
    for (int64_t j = 0; j < m; ++j) {
      const size_t at = static_cast<size_t>(j);
      const double curvature = G[j * m + j];
      if (!(curvature > 0)) continue;  // the same in every sample
      const double free = g[j] - product[at] + curvature * b[at];
      const double next = std::copysign(std::max(std::abs(free) - alpha, 0.), free) / curvature;
      const double step = next - b[at];
      if (step == 0) continue;
      b[at] = next;
      for (int64_t k = 0; k < m; ++k) product[static_cast<size_t>(k)] += step * G[j * m + k];
    }
    double worst = 0;
    for (int64_t j = 0; j < m; ++j) {
      const size_t at = static_cast<size_t>(j);
      if (!(G[j * m + j] > 0)) continue;
      const double pull = g[j] - product[at];
      const double off =
          b[at] == 0 ? std::max(std::abs(pull) - alpha, 0.) : std::abs(pull - std::copysign(alpha, b[at]));
      worst = std::max(worst, off);
    }
    fit.converged = worst <= 1e-12 * scale;
  }
  fit.intercept = level.item<double>();
  for (int64_t j = 0; j < m; ++j) fit.intercept -= b[static_cast<size_t>(j)] * centre[j].item<double>();
  return fit;
}

}  // namespace assay
