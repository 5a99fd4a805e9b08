// The trained part of GAN imputation, ready to be run.
#pragma once

#include <ATen/ATen.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "graph/net.h"

namespace assay {

// The generator of a training (train/gain_trainer.h), its spectral norms divided out and
// batch norm folded. Not to be used by two threads at once.
class Generator {
 public:
  // state: tensors "generator.net..." and "mfv" of a training, of any floating type; others are let be.
  // Throws invalid naming what is missing or does not fit, unsupported for devices or precisions.
  Generator(const std::vector<std::pair<std::string, at::Tensor>>& state, at::Device device,
            Precision precision);

  const Shape& shape() const { return shape_; }  // [C,H,W] of the images

  // images: [R,C,H,W] of range 0..1, floating, on the device; removed: [R,H,W] bool; noise: [R,H,W], standard
  // normal. Returns images whose removed pixels are generated (within the mean image +-1), in the type of
  // images; a row depends on nothing but its own image, mask and noise.
  at::Tensor impute(const at::Tensor& images, const at::Tensor& removed, const at::Tensor& noise) const;

 private:
  Shape shape_;
  at::Tensor mean_;  // [C,H,W]
  std::unique_ptr<Net> net_;
};

}  // namespace assay
