#include "removal/imputer.h"

#include "api/error.h"

namespace assay {
const std::vector<ImputerEntry>& imputer_registry() {
  static const std::vector<ImputerEntry> entries = {
      zero_imputer(), mean_imputer(),    channel_mean_imputer(), patch_mean_imputer(),
      blur_imputer(), uniform_imputer(), constant_imputer(),     image_imputer(),
  };
  return entries;
}

at::Tensor make_reference(const nlohmann::json& spec, const ImputerInput& input) {
  if (!spec.is_object() || !spec.contains("id") || !spec["id"].is_string()) {
    throw invalid("reference: ", spec.dump(), ": want {\"id\": \"zero\", ...}");
  }
  if (input.images.dim() != 4 && input.images.dim() != 2) {
    throw invalid("images: ", input.images.dim(), " dimensions: want [N,C,H,W] or [N,F]");
  }
  const std::string id = spec["id"];
  std::string known;
  for (const ImputerEntry& entry : imputer_registry()) {
    if (entry.id == id) {
      at::Tensor made = entry.reference(input, Parameters("imputer", entry.parameters, spec));
      return made.to(input.images.scalar_type()).expand_as(input.images).contiguous();
    }
    known += (known.empty() ? "" : ", ") + entry.id;
  }
  throw not_found("no imputer ", id, ": want one of ", known);
}

at::Tensor per_channel(const ImputerInput& input, const std::vector<double>& values, const char* name) {
  const int64_t channels = input.images.size(1);
  if (input.is_table() || static_cast<int64_t>(values.size()) != channels) {
    throw invalid(name, ": ", values.size(), " values for ", channels, " channels of images");
  }
  return at::tensor(values, at::kDouble).to(input.images.options()).view({1, channels, 1, 1});
}

}  // namespace assay
