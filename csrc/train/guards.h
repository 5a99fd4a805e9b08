// Settings of libtorch for the time of one call; they are global or of the
// thread, and are put back.
#pragma once

#include <ATen/ATen.h>

#include "graph/net.h"

namespace assay {

// Deterministic algorithms where libtorch has them, TF32 only if asked for.
class ArithmeticGuard {
 public:
  ArithmeticGuard(at::Device device, Precision precision);
  ~ArithmeticGuard();
  ArithmeticGuard(const ArithmeticGuard&) = delete;
  ArithmeticGuard& operator=(const ArithmeticGuard&) = delete;

 private:
  bool cuda_;
  bool tf32_convolutions_ = false, tf32_products_ = false;
  bool deterministic_cudnn_ = false, benchmark_cudnn_ = false;
  bool deterministic_ = false, warn_only_ = false, fill_ = false;
};

// Mixed precision as torch.autocast does it: products in bf16, the rest and the
// parameters in f32. Does nothing for other precisions.
class AutocastGuard {
 public:
  AutocastGuard(at::Device device, Precision precision);
  ~AutocastGuard();
  AutocastGuard(const AutocastGuard&) = delete;
  AutocastGuard& operator=(const AutocastGuard&) = delete;

 private:
  bool on_;
  at::DeviceType type_;
  bool before_ = false;
  at::ScalarType dtype_ = at::kBFloat16;
};

}  // namespace assay
