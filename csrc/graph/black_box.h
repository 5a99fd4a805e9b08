// A network of which only the outside is known.
#pragma once

#include <ATen/ATen.h>

namespace assay {

class BlackBox {
 public:
  virtual ~BlackBox() = default;
  // Moves the parameters; they are kept as they came, so that going back to a
  // wider type loses nothing.
  virtual void to(at::Device device, at::ScalarType dtype) = 0;
  // [N,...] to [N,classes]; recorded by autograd where that is on.
  virtual at::Tensor forward(const at::Tensor& x) = 0;
};

}  // namespace assay
