#include "removal/imputer.h"

#include "api/error.h"

namespace assay {
namespace {

void check_parameter(const nlohmann::json& described, const nlohmann::json& value, const std::string& id) {
  const std::string name = described.at("name");
  const std::string type = described.at("type");
  const bool fits = (type == "float" && value.is_number()) || (type == "int" && value.is_number_integer()) ||
                    (type == "string" && value.is_string()) || (type == "bool" && value.is_boolean());
  if (!fits) throw invalid("imputer ", id, ": ", name, " is ", value.dump(), ": want a ", type);
  if (value.is_number()) {
    const double number = value;
    if (described.contains("minimum") && number < described["minimum"].get<double>()) {
      throw invalid("imputer ", id, ": ", name, " is ", value.dump(), ": want at least ",
                    described["minimum"].dump());
    }
    if (described.contains("maximum") && number > described["maximum"].get<double>()) {
      throw invalid("imputer ", id, ": ", name, " is ", value.dump(), ": want at most ",
                    described["maximum"].dump());
    }
  }
}

}  // namespace

Parameters::Parameters(const nlohmann::json& defaults, const nlohmann::json& given) {
  const std::string id = given.at("id");
  for (const auto& described : defaults)
    values_[described.at("name").get<std::string>()] = described["default"];
  for (const auto& [name, value] : given.items()) {
    if (name == "id") continue;
    const auto described =
        std::find_if(defaults.begin(), defaults.end(), [&](const auto& d) { return d.at("name") == name; });
    if (described == defaults.end()) {
      std::string known;
      for (const auto& d : defaults) known += (known.empty() ? "" : ", ") + d.at("name").get<std::string>();
      throw invalid("imputer ", id, ": no parameter ", name, ": want ", known.empty() ? "none" : known);
    }
    check_parameter(*described, value, id);
    values_[name] = value;
  }
}

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
      at::Tensor made = entry.reference(input, Parameters(entry.parameters, spec));
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
