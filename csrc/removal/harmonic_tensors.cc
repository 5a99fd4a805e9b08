#include <limits>
#include <vector>

#include "removal/harmonic.h"
#include "removal/stencil.h"

namespace assay {
namespace {

// x shifted by (rows, columns), zeros coming in: y[r][c] = x[r+rows][c+columns].
at::Tensor at_offset(const at::Tensor& padded, int64_t rows, int64_t columns) {
  const int64_t h = padded.size(1) - 2, w = padded.size(2) - 2;
  return padded.slice(1, 1 + rows, 1 + rows + h).slice(2, 1 + columns, 1 + columns + w);
}

// The weighted sum of neighbours, x [B,h,w].
at::Tensor around(const at::Tensor& x) {
  const at::Tensor p = at::constant_pad_nd(x, {1, 1, 1, 1});
  const at::Tensor direct =
      at_offset(p, -1, 0) + at_offset(p, 1, 0) + at_offset(p, 0, -1) + at_offset(p, 0, 1);
  const at::Tensor diagonal =
      at_offset(p, -1, -1) + at_offset(p, -1, 1) + at_offset(p, 1, -1) + at_offset(p, 1, 1);
  return kDirect * direct + kDiagonal * diagonal;
}

struct Grid {
  at::Tensor unknown;   // [B,h,w] of 0 and 1
  at::Tensor diagonal;  // [1,h,w]
  at::Tensor gain;      // unknown / diagonal
};

at::Tensor apply(const Grid& grid, const at::Tensor& x) {
  return grid.unknown * (grid.diagonal * x - around(x));
}

// Pairs of a dimension with the weights of bilinear interpolation between cell centres:
// n values become ceil(n/2).
at::Tensor restrict_along(const at::Tensor& x, int64_t dim) {
  const int64_t n = x.size(dim), cells = (n + 1) / 2;
  const at::Tensor even = x.slice(dim, 0, n, 2);
  at::Tensor odd = x.slice(dim, 1, n, 2);
  if (odd.size(dim) < cells) odd = at::cat({odd, at::zeros_like(even.slice(dim, 0, 1))}, dim);
  at::Tensor out = .75 * (even + odd);
  out.slice(dim, 0, 1) += .25 * even.slice(dim, 0, 1);
  out.slice(dim, 0, cells - 1) += .25 * even.slice(dim, 1, cells);
  out.slice(dim, 1, cells) += .25 * odd.slice(dim, 0, cells - 1);
  out.slice(dim, cells - 1, cells) += .25 * odd.slice(dim, cells - 1, cells);
  return out;
}

// Its transpose: cells become n values.
at::Tensor prolong_along(const at::Tensor& x, int64_t dim, int64_t n) {
  const int64_t cells = x.size(dim);
  const at::Tensor before = at::cat({x.slice(dim, 0, 1), x.slice(dim, 0, cells - 1)}, dim);
  const at::Tensor after = at::cat({x.slice(dim, 1, cells), x.slice(dim, cells - 1, cells)}, dim);
  const at::Tensor pairs = at::stack({.75 * x + .25 * before, .75 * x + .25 * after}, dim + 1);
  return pairs.flatten(dim, dim + 1).slice(dim, 0, n);
}

// Damped Jacobi in place of Gauss-Seidel, which has no order that suits a whole tensor.
constexpr double kDamping = .85;
constexpr int kSweeps = 2, kLastSweeps = 4;

at::Tensor cycle(const std::vector<Grid>& grids, size_t level, const at::Tensor& b) {
  const Grid& grid = grids[level];
  const auto sweep = [&](const at::Tensor& x) { return x + kDamping * (grid.gain * (b + around(x)) - x); };
  const bool last = level + 1 == grids.size();
  at::Tensor x = kDamping * grid.gain * b;
  for (int k = 1; k < (last ? 2 * kLastSweeps : kSweeps); ++k) x = sweep(x);
  if (last) return x;
  const at::Tensor rest = grid.unknown * b - apply(grid, x);
  const at::Tensor e = cycle(grids, level + 1, restrict_along(restrict_along(rest, 1), 2));
  x = x + grid.unknown * prolong_along(prolong_along(e, 1, x.size(1)), 2, x.size(2));
  for (int k = 0; k < kSweeps; ++k) x = sweep(x);
  return x;
}

std::vector<Grid> grids_of(at::Tensor unknown, const at::TensorOptions& options) {
  std::vector<Grid> grids;
  while (unknown.any().item<bool>()) {
    const at::Tensor diagonal = around(at::ones({1, unknown.size(1), unknown.size(2)}, options));
    const at::Tensor u = unknown.to(options);
    grids.push_back({u, diagonal, at::where(unknown, 1 / diagonal, at::zeros({}, options))});
    if (unknown.size(1) == 1 && unknown.size(2) == 1) break;
    const int64_t h = unknown.size(1), w = unknown.size(2);
    // Cells outside count as unknown: a cell is what its pixels within the image are.
    const at::Tensor whole = at::constant_pad_nd(unknown, {0, w % 2, 0, h % 2}, 1);
    unknown = whole.view({whole.size(0), (h + 1) / 2, 2, (w + 1) / 2, 2}).all(4).all(2);
  }
  return grids;
}

at::Tensor per_plane(const at::Tensor& x) { return x.view({-1, 1, 1}); }

}  // namespace

HarmonicReport fill_harmonic_tensors(at::Tensor& values, const at::Tensor& removed,
                                     const HarmonicOptions& options) {
  const int64_t n = values.size(0), channels = values.size(1), h = values.size(2), w = values.size(3);
  const at::TensorOptions wide = values.options().dtype(at::kDouble);
  // Images of which all is known or nothing have no part in it.
  const at::Tensor count = removed.flatten(1).sum(1);
  const at::Tensor active = at::logical_and(count > 0, count < h * w);
  HarmonicReport report;
  report.iterations.assign(static_cast<size_t>(n), 0);
  const at::Tensor which = at::nonzero(active).squeeze(1);
  if (which.numel() == 0) return report;
  const int64_t m = which.size(0), planes = m * channels;
  const at::Tensor mask = removed.index_select(0, which);
  const at::Tensor unknown = mask.unsqueeze(1).expand({m, channels, h, w}).reshape({planes, h, w});
  const at::Tensor all = values.index_select(0, which).view({planes, h, w});
  const double infinity = std::numeric_limits<double>::infinity();
  const at::Tensor low = at::masked_fill(all, unknown, infinity).amin({1, 2});
  const at::Tensor high = at::masked_fill(all, unknown, -infinity).amax({1, 2});
  const at::Tensor known_count = at::logical_not(unknown).sum({1, 2});
  const at::Tensor shift =
      (at::masked_fill(all, unknown, 0).to(wide).sum({1, 2}) / known_count.to(wide)).to(values.scalar_type());
  const at::Tensor known = at::masked_fill(all - per_plane(shift), unknown, 0);

  const std::vector<Grid> grids = grids_of(unknown, values.options());
  const Grid& grid = grids[0];
  at::Tensor filled = known.clone();
  const auto norm_of = [](const at::Tensor& x) { return x.flatten(1).to(at::kDouble).norm(2, 1); };
  at::Tensor b = grid.unknown * around(known);
  const at::Tensor target = options.residual * norm_of(b);
  at::Tensor iterations = at::zeros({planes}, values.options().dtype(at::kInt));
  // Rounds: each solves for what is left, computed in double.
  at::Tensor running = norm_of(b) > 0;
  constexpr int kRounds = 4;
  int used = 0;
  for (int round = 0; round < kRounds && running.any().item<bool>(); ++round) {
    at::Tensor r = b, p, x = at::zeros_like(b), before;
    at::Tensor on = running;
    while (used < options.max_iterations && on.any().item<bool>()) {
      ++used;
      const at::Tensor z = cycle(grids, 0, r);
      const at::Tensor now = (r * z).sum({1, 2}, false, at::kDouble);
      p = before.defined() ? z + per_plane((now / before).nan_to_num(0, 0, 0).to(z.scalar_type())) * p : z;
      before = now;
      const at::Tensor q = apply(grid, p);
      const at::Tensor curvature = (p * q).sum({1, 2}, false, at::kDouble);
      const at::Tensor alpha = at::where(at::logical_and(on, curvature > 0), now / curvature, 0.);
      const at::Tensor move = per_plane(alpha.to(z.scalar_type()));
      const at::Tensor step = move * p;
      x = x + step;
      r = r - move * q;
      iterations += on.to(at::kInt);
      const at::Tensor done = at::logical_and(norm_of(r) <= target, step.abs().amax({1, 2}) <= options.step);
      on = at::logical_and(on, at::logical_not(at::logical_or(done, at::logical_not(curvature > 0))));
    }
    filled = filled + x;
    const at::Tensor f = filled.to(wide);
    const at::Tensor left = grid.unknown.to(wide) * (around(f) - around(at::ones({1, h, w}, wide)) * f);
    running = at::logical_and(running, norm_of(left) > target);
    b = left.to(values.scalar_type());
  }
  report.converged = !running.any().item<bool>();
  const at::Tensor within =
      at::minimum(at::maximum(filled + per_plane(shift), per_plane(low)), per_plane(high));
  // A constant stays the very same; what has no finite mean has no value.
  const at::Tensor flat = at::where(per_plane(low == high), per_plane(low), within);
  values.index_copy_(0, which, at::where(unknown, flat, all).view({m, channels, h, w}));
  const at::Tensor most = iterations.view({m, channels}).amax(1).to(at::kCPU).contiguous();
  const at::Tensor places = which.to(at::kCPU).contiguous();
  for (int64_t k = 0; k < m; ++k) {
    report.iterations[static_cast<size_t>(places.const_data_ptr<int64_t>()[k])] =
        most.const_data_ptr<int32_t>()[k];
  }
  return report;
}

}  // namespace assay
