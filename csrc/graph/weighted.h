// The weighted steps of a plan, convolutions and linear layers, on one kind of
// device: forwards with what is hung onto them, and backwards to their input.
#pragma once

#include <ATen/ATen.h>

#include <memory>
#include <vector>

#include "graph/graph.h"
#include "graph/plan.h"

namespace assay {

class Weighted {
 public:
  virtual ~Weighted() = default;
  // activation(op(x) + residual), the residual where it is defined; its memory
  // may take the output where `overwrite` says so.
  virtual at::Tensor apply(const at::Tensor& x, const at::Tensor& residual, bool overwrite) const = 0;
  // Gradient with respect to x of the op alone, without residual and activation:
  // gradient is that of op(x), sizes are x's. Only of those made for it.
  virtual at::Tensor pull(const at::Tensor& gradient, at::IntArrayRef sizes) const = 0;
};

enum class Use { kForward, kBoth };  // whether pull will be called

// oneDNN on the CPU, f32 or bf16 (forward only). input: shape of one row of x.
std::unique_ptr<Weighted> make_onednn_weighted(const Step& step, const Shape& input, Use use);
// libtorch's own, with cuDNN's fused convolutions on CUDA.
std::unique_ptr<Weighted> make_aten_weighted(const Step& step, at::Device device, at::ScalarType dtype);

// A step that is not weighted, as the CPU's engine runs it: every row the same bits.
at::Tensor onednn_plain(const Step& step, const std::vector<at::Tensor>& inputs);

// The activation of a step on its output, in place where that can be; nullptr: none.
at::Tensor activated(const Op* activation, at::Tensor y);
// The same, row by row where libtorch's kernels take another path for elements
// that do not fill a vector, whose last digit may differ: every row the same bits.
at::Tensor activated_by_row(const Op* activation, const at::Tensor& y);

}  // namespace assay
