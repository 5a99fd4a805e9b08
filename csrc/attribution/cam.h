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

// Activations A of one row at the layer, [1,C,h,w], and the gradient of the target's logit
// with respect to them, contiguous.
struct Activated {
  at::Tensor activations, gradients;
};

// map gives a row's [1,h,w] before the ReLU. Answers [N,1,H,W] after ReLU and upsampling
// ([N,1,h,w] with upsample=false).
at::Tensor class_activation(const Method& method, Context& context, const Explained& rows,
                            at::Tensor (*map)(const Activated& activated));

// Values of the layer and of what passes it by for at most a batch of images x: what
// the differentiator's head answers, without the padding.
std::vector<at::Tensor> values_at(Context& context, const std::string& layer, const at::Tensor& x);

// [N,h,w] as the method's map of images x: after ReLU and upsampling, NaN for images
// that are not finite.
at::Tensor finished(const Method& method, const at::Tensor& maps, const at::Tensor& x);

// sum over channels of weights [N,C] times activations [N,C,h,w].
at::Tensor weighted_sum(const at::Tensor& weights, const at::Tensor& activations);

// The same for a map at the image's size, with corners on corners or edges on edges.
at::Tensor finished(const at::Tensor& maps, const at::Tensor& x, bool align_corners);

// Grad-CAM's [1,h,w] of a row, before the ReLU.
at::Tensor grad_cam_map(const Activated& activated);

MethodEntry cam_entry(const std::string& id, const std::string& summary, const std::string& paper,
                      decltype(MethodEntry::attribute) attribute);

}  // namespace assay
