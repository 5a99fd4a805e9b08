#include "train/guards.h"

#include <ATen/autocast_mode.h>

namespace assay {

ArithmeticGuard::ArithmeticGuard(at::Device device, Precision precision) : cuda_(device.is_cuda()) {
  if (!cuda_) return;
  at::Context& context = at::globalContext();
  tf32_convolutions_ = context.allowTF32CuDNN();
  tf32_products_ = context.allowTF32CuBLAS();
  deterministic_cudnn_ = context.deterministicCuDNN();
  benchmark_cudnn_ = context.benchmarkCuDNN();
  deterministic_ = context.deterministicAlgorithms();
  warn_only_ = context.deterministicAlgorithmsWarnOnly();
  fill_ = context.deterministicFillUninitializedMemory();
  context.setAllowTF32CuDNN(precision == Precision::kTF32);
  context.setAllowTF32CuBLAS(precision == Precision::kTF32);
  context.setDeterministicCuDNN(true);
  context.setBenchmarkCuDNN(false);
  // Operations without a deterministic form run all the same.
  context.setDeterministicAlgorithms(true, /*warn_only=*/true);
  context.setDeterministicFillUninitializedMemory(false);
}

ArithmeticGuard::~ArithmeticGuard() {
  if (!cuda_) return;
  at::Context& context = at::globalContext();
  context.setAllowTF32CuDNN(tf32_convolutions_);
  context.setAllowTF32CuBLAS(tf32_products_);
  context.setDeterministicCuDNN(deterministic_cudnn_);
  context.setBenchmarkCuDNN(benchmark_cudnn_);
  context.setDeterministicAlgorithms(deterministic_, warn_only_);
  context.setDeterministicFillUninitializedMemory(fill_);
}

AutocastGuard::AutocastGuard(at::Device device, Precision precision)
    : on_(precision == Precision::kBF16), type_(device.type()) {
  if (!on_) return;
  before_ = at::autocast::is_autocast_enabled(type_);
  dtype_ = at::autocast::get_autocast_dtype(type_);
  at::autocast::set_autocast_enabled(type_, true);
  at::autocast::set_autocast_dtype(type_, at::kBFloat16);
}

AutocastGuard::~AutocastGuard() {
  if (!on_) return;
  at::autocast::clear_cache();
  at::autocast::set_autocast_enabled(type_, before_);
  at::autocast::set_autocast_dtype(type_, dtype_);
}

}  // namespace assay
