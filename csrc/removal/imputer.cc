#include "removal/imputer.h"

#include <utility>

#include "api/error.h"

namespace assay {
const std::vector<ImputerEntry>& imputer_registry() {
  static const std::vector<ImputerEntry> entries = {
      zero_imputer(),       mean_imputer(),         channel_mean_imputer(), dataset_mean_imputer(),
      patch_mean_imputer(), blur_imputer(),         uniform_imputer(),      constant_imputer(),
      image_imputer(),      noisy_linear_imputer(), gain_imputer(),
  };
  return entries;
}

namespace {

const ImputerEntry& entry_of(const nlohmann::json& spec) {
  if (!spec.is_object() || !spec.contains("id") || !spec["id"].is_string()) {
    throw invalid("imputer: ", spec.dump(), ": want {\"id\": \"zero\", ...}");
  }
  const std::string id = spec["id"];
  std::string known;
  for (const ImputerEntry& entry : imputer_registry()) {
    if (entry.id == id) return entry;
    known += (known.empty() ? "" : ", ") + entry.id;
  }
  throw not_found("no imputer ", id, ": want one of ", known);
}

Parameters parameters_of(const ImputerEntry& entry, const nlohmann::json& spec) {
  return Parameters("imputer", entry.parameters, spec);
}

void check_images(const ImputerInput& input) {
  if (input.images.dim() != 4 && input.images.dim() != 2) {
    throw invalid("images: ", input.images.dim(), " dimensions: want [N,C,H,W] or [N,F]");
  }
}

// Replaces by a reference.
class ReferenceImputer : public Imputer {
 public:
  ReferenceImputer(at::Tensor images, at::Tensor references)
      : images_(std::move(images)), references_(std::move(references)) {}

  at::Tensor fill(const std::vector<int64_t>& which, const at::Tensor& removed, int32_t*) override {
    const at::Tensor rows = at::tensor(which, at::kLong).to(images_.device());
    const at::Tensor mask = images_.dim() == 4 ? removed.unsqueeze(1) : removed;
    return at::where(mask, references_.index_select(0, rows), images_.index_select(0, rows));
  }

 private:
  at::Tensor images_, references_;
};

}  // namespace

at::Tensor make_reference(const nlohmann::json& spec, const ImputerInput& input) {
  const ImputerEntry& entry = entry_of(spec);
  check_images(input);
  if (!entry.mask_independent()) {
    throw unsupported("imputer ", entry.id, ": depends on what else is removed: want one that does not here");
  }
  const at::Tensor made = entry.reference(input, parameters_of(entry, spec));
  return made.to(input.images.scalar_type()).expand_as(input.images).contiguous();
}

bool depends_on_mask(const nlohmann::json& spec) { return !entry_of(spec).mask_independent(); }

std::unique_ptr<Imputer> make_imputer(const nlohmann::json& spec, const ImputerInput& input) {
  const ImputerEntry& entry = entry_of(spec);
  if (entry.mask_independent()) {
    return std::make_unique<ReferenceImputer>(input.images, make_reference(spec, input));
  }
  check_images(input);
  return entry.make(input, parameters_of(entry, spec));
}

at::Tensor per_channel(const ImputerInput& input, const std::vector<double>& values, const char* name) {
  const int64_t channels = input.images.size(1);
  if (input.is_table() || static_cast<int64_t>(values.size()) != channels) {
    throw invalid(name, ": ", values.size(), " values for ", channels, " channels of images");
  }
  return at::tensor(values, at::kDouble).to(input.images.options()).view({1, channels, 1, 1});
}

}  // namespace assay
