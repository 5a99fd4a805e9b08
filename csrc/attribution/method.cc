#include "attribution/method.h"

#include <c10/util/accumulate.h>

#include <algorithm>

#include "api/error.h"
#include "attribution/methods.h"
#include "removal/imputer.h"

namespace assay {
namespace {

using nlohmann::json;

const MethodEntry* find(const json& spec) {
  if (!spec.is_object() || !spec.contains("id") || !spec["id"].is_string()) {
    throw invalid("method: ", spec.dump(), ": want {\"id\": \"gradient\", ...}");
  }
  std::string known;
  for (const MethodEntry& entry : method_registry()) {
    if (entry.id == spec["id"]) return &entry;
    known += (known.empty() ? "" : ", ") + entry.id;
  }
  throw not_found("no method ", spec["id"].get<std::string>(), ": want one of ", known);
}

}  // namespace

const std::vector<MethodEntry>& method_registry() {
  static const std::vector<MethodEntry> entries = {
      // Gradients.
      gradient_method(),
      input_x_gradient_method(),
      integrated_gradients_method(),
      smoothgrad_method(),
      smoothgrad_sq_method(),
      vargrad_method(),
      gradient_shap_method(),
      guided_backprop_method(),
      deconvolution_method(),
      // Class activation maps.
      grad_cam_method(),
      grad_cam_plus_plus_method(),
      hires_cam_method(),
      layer_cam_method(),
      xgrad_cam_method(),
      eigen_cam_method(),
      score_cam_method(),
      ablation_cam_method(),
      guided_grad_cam_method(),
      // Perturbation.
      occlusion_method(),
      feature_ablation_method(),
      rise_method(),
      kernel_shap_method(),
      lime_method(),
      shapley_sampling_method(),
      // Controls.
      random_method(),
      pixel_random_method(),
      block_random_method(),
      centred_gaussian_method(),
      sobel_method(),
      blurred_method(),
  };
  return entries;
}

Explained Explained::rows(const std::vector<int64_t>& which) const {
  Explained out{
      .x = x.index_select(0, at::tensor(which, at::kLong).to(x.device())), .targets = {}, .keys = {}};
  for (int64_t r : which) {
    out.targets.push_back(targets[static_cast<size_t>(r)]);
    out.keys.push_back(keys[static_cast<size_t>(r)]);
  }
  return out;
}

void Context::warn(const std::string& text) {
  if (std::find(warnings.begin(), warnings.end(), text) == warnings.end()) warnings.push_back(text);
}

Features features_of(const Context& context, const Explained& rows, int64_t edge) {
  const std::vector<int64_t> shape = rows.x.sizes().slice(rows.is_table() ? 1 : 2).vec();
  if (context.feature_map != nullptr) {
    const int64_t pixels = c10::multiply_integers(shape);
    const std::vector<int64_t> map(context.feature_map, context.feature_map + pixels);
    for (int64_t f : map) {
      if (f < 0 || f >= context.features) {
        throw invalid("feature map: feature ", f, ": want 0..", context.features - 1);
      }
    }
    return {context.features, at::tensor(map, at::kLong).view(shape).to(rows.x.device())};
  }
  if (rows.is_table()) return {shape[0], at::arange(shape[0], at::kLong).to(rows.x.device())};
  const int64_t most = std::min(shape[0], shape[1]);
  if (edge < 1 || edge > most) {
    throw invalid("edge ", edge, ": want 1..", most, " patches along an image of ", shape[0], "x", shape[1]);
  }
  const auto along = [&](int64_t size) { return at::arange(size, at::kLong).mul(edge).div(size, "floor"); };
  const at::Tensor map = along(shape[0]).unsqueeze(1) * edge + along(shape[1]).unsqueeze(0);
  return {edge * edge, map.to(rows.x.device())};
}

at::Tensor reference_of(const Context& context, const Explained& rows, const std::string& imputer) {
  ImputerInput input;
  input.images = rows.x;
  input.mean = context.mean;
  input.std = context.std;
  input.keys = rows.keys.data();
  return make_reference({{"id", imputer}}, input);
}

Method::Method(const json& spec)
    : entry_(find(spec)), parameters_("method", entry_->parameters, spec, {"base"}) {
  if (!entry_->default_base.empty()) {
    base_ =
        std::make_unique<Method>(spec.contains("base") ? spec["base"] : json{{"id", entry_->default_base}});
  } else if (spec.contains("base")) {
    throw invalid("method ", entry_->id, ": it takes no other method");
  }
}

at::Tensor Method::attribute(Context& context, const Explained& rows) const {
  if (entry_->needs == "graph" && context.net.is_black_box()) {
    throw unsupported("method ", entry_->id, ": net ", context.net.id(), " runs as a black box (",
                      context.net.reason(), "): only forwards and gradients of its input are known");
  }
  return entry_->attribute(*this, context, rows);
}

}  // namespace assay
