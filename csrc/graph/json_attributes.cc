// Values of net files, by type; every attribute by its name.
#include "graph/json_attributes.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "graph/json.h"

namespace assay {

using nlohmann::json;

std::string shown(const json& value) {
  if (value.is_object()) return "an object";
  if (value.is_array()) return concat("a list of ", value.size());
  std::string text = value.dump(-1, ' ', false, json::error_handler_t::replace);
  constexpr size_t kShown = 60;
  if (text.size() > kShown) text = text.substr(0, kShown) + "...";
  return text;
}

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

Error mistake(const std::string& where, const std::string& key, const json& got, const std::string& want) {
  return invalid(where, ": \"", key, "\": ", shown(got), ": want ", want);
}

void read_value(const json& value, int64_t& out, const Field& field) {
  const std::string want = concat("an integer of size ", kMostInteger, " at most");
  if (!value.is_number_integer()) throw mistake(field.where, field.key, value, want);
  if (value.is_number_unsigned() && value.get<uint64_t>() > static_cast<uint64_t>(kMostInteger)) {
    throw mistake(field.where, field.key, value, want);
  }
  out = value.get<int64_t>();
  if (out < -kMostInteger || out > kMostInteger) throw mistake(field.where, field.key, value, want);
}

void read_value(const json& value, double& out, const Field& field) {
  if (!value.is_number()) throw mistake(field.where, field.key, value, "a number");
  out = value.get<double>();
  if (!std::isfinite(out)) throw mistake(field.where, field.key, value, "a finite number");
}

void read_value(const json& value, bool& out, const Field& field) {
  if (!value.is_boolean()) throw mistake(field.where, field.key, value, "true or false");
  out = value.get<bool>();
}

void read_value(const json& value, std::vector<int64_t>& out, const Field& field) {
  if (!value.is_array() || value.size() > kMostAxes) {
    throw mistake(field.where, field.key, value, concat("a list of at most ", kMostAxes, " integers"));
  }
  out.assign(value.size(), 0);
  for (size_t i = 0; i < out.size(); ++i) read_value(value[i], out[i], field);
}

namespace {

template <size_t N>
void read_value(const json& value, std::array<int64_t, N>& out, const Field& field) {
  if (!value.is_array() || value.size() != N) {
    throw mistake(field.where, field.key, value, concat("a list of ", N, " integers"));
  }
  for (size_t i = 0; i < N; ++i) read_value(value[i], out[i], field);
}

void read_value(const json& value, std::vector<double>& out, const Field& field) {
  if (!value.is_array()) throw mistake(field.where, field.key, value, "a list of numbers");
  out.assign(value.size(), 0);
  for (size_t i = 0; i < out.size(); ++i) read_value(value[i], out[i], field);
}

template <auto Member>
AttributeCodec codec(const char* name) {
  return {name,
          [](const json& value, Attributes& attributes, const Field& field) {
            read_value(value, attributes.*Member, field);
          },
          [](const Attributes& attributes) {
            return attributes.*Member == Attributes().*Member ? json() : json(attributes.*Member);
          }};
}

}  // namespace

const std::vector<AttributeCodec>& attribute_codecs() {
  using A = Attributes;
  static const std::vector<AttributeCodec> all = {
      codec<&A::channels>("channels"),
      codec<&A::bias>("bias"),
      codec<&A::kernel>("kernel"),
      codec<&A::stride>("stride"),
      codec<&A::padding>("padding"),
      codec<&A::dilation>("dilation"),
      codec<&A::output_padding>("output_padding"),
      codec<&A::groups>("groups"),
      codec<&A::ceil>("ceil"),
      codec<&A::count_padding>("count_padding"),
      codec<&A::epsilon>("epsilon"),
      codec<&A::momentum>("momentum"),
      codec<&A::dimensions>("dimensions"),
      codec<&A::slope>("slope"),
      codec<&A::approximate>("approximate"),
      codec<&A::probability>("probability"),
      codec<&A::output>("output"),
      codec<&A::bilinear>("bilinear"),
      codec<&A::align_corners>("align_corners"),
      codec<&A::axis>("axis"),
      codec<&A::axes>("axes"),
      codec<&A::keep>("keep"),
      codec<&A::begin>("begin"),
      codec<&A::end>("end"),
      codec<&A::step>("step"),
      codec<&A::shape>("shape"),
      codec<&A::factor>("factor"),
      codec<&A::shift>("shift"),
      codec<&A::factors>("factors"),
      codec<&A::shifts>("shifts"),
      codec<&A::transpose>("transpose"),
      codec<&A::channel_padding>("channel_padding"),
  };
  return all;
}

const AttributeCodec& attribute_codec(const std::string& name) {
  const auto found = std::find_if(attribute_codecs().begin(), attribute_codecs().end(),
                                  [&](const AttributeCodec& codec) { return codec.name == name; });
  TORCH_INTERNAL_ASSERT(found != attribute_codecs().end(), "no codec for the attribute ", name);
  return *found;
}

}  // namespace assay
