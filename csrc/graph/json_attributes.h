// Single values of net files (json.h): what attributes look like in JSON, and
// how a value that does not fit is reported.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "api/error.h"
#include "graph/graph.h"

namespace assay {

// Integers are no larger, so that sums and products of two of them fit.
inline constexpr int64_t kMostInteger = int64_t{1} << 30;

// A value for a message: never the whole of something large.
std::string shown(const nlohmann::json& value);
std::string joined(const std::vector<std::string>& names);  // "a, b"
// "op conv1: "kernel": 3: want a list of 2 integers"
Error mistake(const std::string& where, const std::string& key, const nlohmann::json& got,
              const std::string& want);

// Where a value stands, for messages.
struct Field {
  const std::string& key;
  const std::string& where;
};

// Throw invalid for values of another type or beyond the bounds.
void read_value(const nlohmann::json& value, int64_t& out, const Field& field);
void read_value(const nlohmann::json& value, double& out, const Field& field);
void read_value(const nlohmann::json& value, bool& out, const Field& field);
void read_value(const nlohmann::json& value, std::vector<int64_t>& out, const Field& field);

struct AttributeCodec {
  std::string name;  // as in OpDefinition::attributes
  void (*read)(const nlohmann::json& value, Attributes& attributes, const Field& field);
  // Null where the value is the default.
  nlohmann::json (*write)(const Attributes& attributes);
};

const std::vector<AttributeCodec>& attribute_codecs();
// The table of ops names no attribute without one.
const AttributeCodec& attribute_codec(const std::string& name);

}  // namespace assay
