#include "removal/harmonic.h"

#include "api/error.h"

namespace assay {

HarmonicReport fill_harmonic(at::Tensor& values, const at::Tensor& removed, const HarmonicOptions& options,
                             HarmonicScratch& scratch) {
  if (values.dim() != 4 || !values.is_contiguous() ||
      (values.scalar_type() != at::kFloat && values.scalar_type() != at::kDouble)) {
    throw invalid("values ", values.sizes(), ": want [N,C,H,W], contiguous, f32 or f64");
  }
  if (removed.scalar_type() != at::kBool || !removed.is_contiguous() || removed.dim() != 3 ||
      removed.size(0) != values.size(0) || removed.sizes().slice(1) != values.sizes().slice(2)) {
    throw invalid("removed ", removed.sizes(), ": want bool [N,H,W] of values ", values.sizes());
  }
  return values.is_cpu() ? fill_harmonic_planes(values, removed, options, scratch)
                         : fill_harmonic_tensors(values, removed, options);
}

}  // namespace assay
