// Parameters of what the catalogue lists: declared as JSON, given as JSON.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace assay {

// The parameters of an imputer or a method as given, over the defaults of its entry.
class Parameters {
 public:
  // kind: "imputer", "method", for messages. declared: the catalogue's form,
  // [{name, type ("int", "float", "bool", "string"), default, minimum?, maximum?,
  // choices?, summary}]. given: {"id": ..., name: value...}; other keys in `besides`
  // are left alone. Throws invalid for unknown names, types and ranges.
  Parameters(const std::string& kind, const nlohmann::json& declared, const nlohmann::json& given,
             const std::vector<std::string>& besides = {});
  double number(const std::string& name) const { return values_.at(name).get<double>(); }
  int64_t integer(const std::string& name) const { return values_.at(name).get<int64_t>(); }
  bool flag(const std::string& name) const { return values_.at(name).get<bool>(); }
  std::string text(const std::string& name) const { return values_.at(name).get<std::string>(); }

 private:
  nlohmann::json values_;
};

}  // namespace assay
