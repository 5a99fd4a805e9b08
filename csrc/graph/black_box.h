// A network of which only the outside is known.
#pragma once

#include <ATen/ATen.h>

#include <vector>

namespace assay {

class BlackBox {
 public:
  virtual ~BlackBox() = default;
  // New parameters, by index in the net's list; undefined ones stay.
  virtual void load(const std::vector<at::Tensor>& state) = 0;
  // Moves the parameters; they are kept as they came, so that going back to a
  // wider type loses nothing.
  virtual void to(at::Device device, at::ScalarType dtype) = 0;
  // [N,...] to [N,classes]; recorded by autograd where that is on. Whether rows
  // depend on each other is the network's own affair.
  virtual at::Tensor forward(const at::Tensor& x) = 0;
};

}  // namespace assay
