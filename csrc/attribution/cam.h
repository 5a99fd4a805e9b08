// What class activation maps share: the layer, its activations and gradients, and
// the way from a layer's map to the image's size.
#pragma once

#include <ATen/ATen.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "attribution/method.h"
#include "graph/differentiator.h"

namespace assay {

// A CAM's parameters: layer, align-corners, upsample.
nlohmann::json cam_parameters();

// The layer that a method was told, or the net's own; throws invalid where there is
// neither, or where the rows there are no [C,h,w].
std::string layer_of(const Method& method, const Context& context);

// Activations A ([count,C,h,w]) of a block of rows, contiguous, and where wanted the
// gradient of the target's logit with respect to them.
struct Activated {
  int64_t begin, count;
  at::Tensor activations, gradients;
};

// maps[row] = map(activated) for all rows, a batch at a time: [count,h,w] each, before
// the ReLU. Answers [N,1,H,W] after ReLU and upsampling ([N,1,h,w] with upsample=false).
at::Tensor class_activation(const Method& method, Context& context, const Explained& rows, bool gradients,
                            at::Tensor (*map)(const Activated& activated));

// Values of the layer and of what passes it by, for images[begin..begin+count) (head of the
// net's differentiator), without padding.
std::vector<at::Tensor> values_at(Context& context, const std::string& layer, const at::Tensor& x);

// [N,h,w] as the method's map of these rows.
at::Tensor finished(const Method& method, const at::Tensor& maps, const Explained& rows);

// sum over channels of weights [N,C] times activations [N,C,h,w].
at::Tensor weighted_sum(const at::Tensor& weights, const at::Tensor& activations);

MethodEntry cam_entry(const std::string& id, const std::string& summary, const std::string& paper,
                      decltype(MethodEntry::attribute) attribute);

}  // namespace assay
