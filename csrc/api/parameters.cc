#include "api/parameters.h"

#include <algorithm>

#include "api/error.h"

namespace assay {
namespace {

using nlohmann::json;

void check(const json& described, const json& value, const std::string& owner) {
  const std::string name = described.at("name");
  const std::string type = described.at("type");
  const bool fits = (type == "float" && value.is_number()) || (type == "int" && value.is_number_integer()) ||
                    (type == "string" && value.is_string()) || (type == "bool" && value.is_boolean());
  const auto mistake = [&](const std::string& want) {
    return invalid(owner, ": ", name, " is ", value.dump(), ": want ", want);
  };
  if (!fits) throw mistake("a " + type);
  if (described.contains("choices")) {
    const json& choices = described["choices"];
    if (std::find(choices.begin(), choices.end(), value) == choices.end()) {
      throw mistake("one of " + choices.dump());
    }
  }
  if (!value.is_number()) return;
  const double number = value;
  if (described.contains("minimum") && number < described["minimum"].get<double>()) {
    throw mistake("at least " + described["minimum"].dump());
  }
  if (described.contains("maximum") && number > described["maximum"].get<double>()) {
    throw mistake("at most " + described["maximum"].dump());
  }
}

}  // namespace

Parameters::Parameters(const std::string& kind, const json& declared, const json& given,
                       const std::vector<std::string>& besides) {
  const std::string owner = kind + " " + given.at("id").get<std::string>();
  for (const json& described : declared)
    values_[described.at("name").get<std::string>()] = described["default"];
  for (const auto& [name, value] : given.items()) {
    if (name == "id" || std::find(besides.begin(), besides.end(), name) != besides.end()) continue;
    const auto described = std::find_if(declared.begin(), declared.end(),
                                        [&, &key = name](const json& d) { return d.at("name") == key; });
    if (described == declared.end()) {
      std::string known;
      for (const json& d : declared) known += (known.empty() ? "" : ", ") + d.at("name").get<std::string>();
      throw invalid(owner, ": no parameter ", name, ": want ", known.empty() ? "none" : known);
    }
    check(*described, value, owner);
    values_[name] = value;
  }
}

}  // namespace assay
