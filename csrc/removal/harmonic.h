// Pixels as the weighted mean of their neighbours, the known ones given: the linear
// part of ROAD's noisy linear imputation (Rong et al. 2022, section 4.3 and appendix B).
//
// Direct neighbours weigh 1/6, diagonal ones 1/12; those outside the image drop out and
// the weights are renormalised. For the unknown pixels x of a channel that is
//
//   d_i x_i - sum over unknown neighbours of w_ij x_j = sum over known neighbours of w_ij k_j,
//
// d_i the sum of the weights within the image: 1, at edges 2/3, in corners 5/12. The
// matrix is symmetric, and positive definite as soon as one pixel is known.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <memory>
#include <vector>

namespace assay {

struct HarmonicOptions {
  // Both must hold: |b - A x| <= residual |b| (Euclidean), and a last step that moved no
  // pixel by more than `step`, which for well-preconditioned steps bounds the error too.
  double residual = 1e-5;
  double step = 2e-4;
  int max_iterations = 200;
};

struct HarmonicReport {
  std::vector<int32_t> iterations;  // [N]: of the channels that took most; solved directly: 1
  bool converged = true;
};

// Planes that calls one after the other use again: they are large, and new memory takes
// as long as solving does. Not to be used by two calls at once.
class HarmonicScratch {
 public:
  HarmonicScratch();
  ~HarmonicScratch();
  HarmonicScratch(const HarmonicScratch&) = delete;
  HarmonicScratch& operator=(const HarmonicScratch&) = delete;

  struct Planes;
  std::unique_ptr<Planes> planes;
};

// Fills the removed pixels of values [N,C,H,W] (f32 or f64, contiguous) in place; removed
// [N,H,W] bool says which. An image of which nothing is known is left as it is. Known
// pixels keep their bits; filled ones stay within the range of the known ones of their
// channel. An image's result depends on no other image.
//
// Conjugate gradients on A, preconditioned by one symmetric multigrid cycle: cells of
// 2x2 pixels, unknown where all of their pixels are, the same stencil on every level,
// bilinear transfer, one Gauss-Seidel sweep down and its mirror image up.
HarmonicReport fill_harmonic(at::Tensor& values, const at::Tensor& removed, const HarmonicOptions& options,
                             HarmonicScratch& scratch);

// The two ways of fill_harmonic: planes of channels through vector kernels (host
// memory; images all of whose holes are small are solved hole by hole, see clusters.h), and tensor
// operations for the whole batch (any device).
HarmonicReport fill_harmonic_planes(at::Tensor& values, const at::Tensor& removed,
                                    const HarmonicOptions& options, HarmonicScratch& scratch);
HarmonicReport fill_harmonic_tensors(at::Tensor& values, const at::Tensor& removed,
                                     const HarmonicOptions& options);

}  // namespace assay
