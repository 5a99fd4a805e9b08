// Reading and writing net files. Whoever wrote a file may be mistaken or mean
// harm: every number is bounded before anything is computed from it.
#include "graph/json.h"

#include <algorithm>
#include <cstring>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "api/error.h"
#include "graph/json_attributes.h"
#include "graph/ops.h"

namespace assay {
namespace {

using nlohmann::json;

constexpr const char* kFormat = "assay-net";
constexpr int64_t kVersion = 1;
constexpr const char* kInput = "input";
constexpr int kDeepest = 16;           // levels of nesting
constexpr size_t kLongestName = 1000;  // bytes
constexpr int64_t kMostClassNames = int64_t{1} << 20;

const json& at_key(const json& object, const std::string& key, const std::string& where) {
  const auto found = object.find(key);
  if (found == object.end()) throw invalid(where, ": \"", key, "\" is missing");
  return *found;
}

void want_object(const json& value, const std::string& where) {
  if (!value.is_object()) throw invalid(where, ": ", shown(value), ": want an object");
}

void want_keys(const json& object, const std::vector<std::string>& known, const std::string& where) {
  for (const auto& entry : object.items()) {
    if (std::find(known.begin(), known.end(), entry.key()) == known.end()) {
      throw invalid(where, ": ", shown(entry.key()), " is no key here: want ", joined(known));
    }
  }
}

const json& list_at(const json& object, const std::string& key, size_t most, const std::string& where) {
  static const json none = json::array();
  const auto found = object.find(key);
  if (found == object.end()) return none;
  if (!found->is_array()) throw mistake(where, key, *found, "a list");
  if (found->size() > most) throw mistake(where, key, *found, concat("at most ", most));
  return *found;
}

// A name that may stand in a message, a table and a record.
std::string name_of(const json& value, const std::string& key, const std::string& where) {
  if (!value.is_string()) throw mistake(where, key, value, "a name");
  const std::string& name = value.get_ref<const std::string&>();
  const bool plain =
      std::none_of(name.begin(), name.end(), [](unsigned char byte) { return byte < 0x20 || byte == 0x7F; });
  if (name.empty() || name.size() > kLongestName || !plain) {
    throw mistake(where, key, value, concat("a name of 1 to ", kLongestName, " bytes on one line"));
  }
  return name;
}

std::string name_at(const json& object, const std::string& key, const std::string& where) {
  return name_of(at_key(object, key, where), key, where);
}

// ---- shapes

int64_t elements_of(const Shape& shape, int64_t least, int64_t most, const Field& field) {
  int64_t elements = 1;
  for (int64_t size : shape) {
    if (size < least) {
      throw invalid(field.where, ": \"", field.key, "\": size ", size, ": want ", least, " or more");
    }
    if (__builtin_mul_overflow(elements, size, &elements) || elements > most) {
      throw invalid(field.where, ": \"", field.key, "\": [", c10::Join(",", shape), "]: want at most ", most,
                    " elements");
    }
  }
  return elements;
}

Shape shape_at(const json& object, const std::string& key, int64_t most, const std::string& where) {
  Shape shape;
  const Field field{key, where};
  read_value(at_key(object, key, where), shape, field);
  elements_of(shape, 1, most, field);
  return shape;
}

// ---- the parts of a file

class Reader {
 public:
  explicit Reader(const json& file) : file_(checked(file)), builder_(input_of(file)) {}

  Graph graph() {
    for (const json& parameter : list_at(file_, "parameters", kMostParameters, kWhere)) declare(parameter);
    const json& ops = list_at(file_, "ops", kMostOps, kWhere);
    if (ops.empty()) throw invalid(kWhere, ": no \"ops\"");
    // All names first, so that a reference to a later one is told from a misspelt one.
    for (size_t i = 0; i < ops.size(); ++i) {
      const std::string where = concat(kWhere, ": ops[", i, "]");
      want_object(ops[i], where);
      take_name(name_at(ops[i], "name", where), where);
    }
    for (const json& op : ops) add(op);
    for (const auto& [name, parameter] : parameters_) {
      if (!parameter.used && !parameter.info.optional) {
        throw invalid(kWhere, ": parameter ", name,
                      " is read by no op: take it out, or say \"optional\": true");
      }
    }
    for (const json& place : list_at(file_, "places", kMostOps, kWhere)) add_place(place);
    const std::string output = name_at(file_, "output", kWhere);
    std::string default_layer;
    if (file_.contains("defaultLayer")) {
      default_layer = name_at(file_, "defaultLayer", kWhere);
      if (default_layer == kInput || !names_.contains(default_layer)) {
        throw mistake(kWhere, "defaultLayer", default_layer, "a name of \"ops\" or \"places\"");
      }
    }
    const auto found = values_.find(output);
    if (found == values_.end()) throw mistake(kWhere, "output", output, "the name of an op");
    const Shape& shape = builder_.shape(found->second);
    if (shape.size() != 1) {
      throw invalid(kWhere, ": the output ", output, " has rows of shape [", c10::Join(",", shape),
                    "]: want [classes]");
    }
    classes_ = shape[0];
    return builder_.finish(found->second, default_layer);
  }

  // After graph().
  GraphHeader header() const {
    GraphHeader header;
    header.name = name_at(file_, "name", kWhere);
    if (file_.contains("preset")) {
      const json& preset = file_["preset"];
      if (preset.is_object()) {
        header.preset_object = preset.dump(-1, ' ', false, json::error_handler_t::replace);
      } else {
        header.preset = name_of(preset, "preset", kWhere);
      }
    }
    if (file_.contains("weights")) {
      header.weights = name_at(file_, "weights", kWhere);
      if (header.weights.find_first_of("/\\") != std::string::npos || header.weights == "." ||
          header.weights == "..") {
        throw mistake(kWhere, "weights", header.weights, "the name of a file in the same folder");
      }
    }
    for (const json& name : list_at(file_, "classNames", kMostClassNames, kWhere)) {
      header.class_names.push_back(name_of(name, "classNames", kWhere));
    }
    const auto named = static_cast<int64_t>(header.class_names.size());
    if (file_.contains("classNames") && named != classes_) {
      throw invalid(kWhere, ": ", named, " \"classNames\" for ", classes_, " outputs");
    }
    return header;
  }

 private:
  struct Parameter {
    int index;
    ParameterInfo info;
    bool used = false;
  };

  static const json& checked(const json& file) {
    want_object(file, kWhere);
    const json& format = at_key(file, "format", kWhere);
    if (format != kFormat) throw mistake(kWhere, "format", format, concat('"', kFormat, '"'));
    const json& version = at_key(file, "version", kWhere);
    if (version != kVersion) {
      throw mistake(kWhere, "version", version, concat(kVersion, ", the one that this program reads"));
    }
    want_keys(file,
              {"format", "version", "name", "input", "preset", "weights", "classNames", "parameters", "ops",
               "places", "output", "defaultLayer"},
              kWhere);
    return file;
  }

  static Shape input_of(const json& file) {
    const Shape shape = shape_at(file, kInput, kMostRowElements, kWhere);
    if (shape.size() != 1 && shape.size() != 3) {
      throw mistake(kWhere, kInput, file[kInput], "[C,H,W] or [F]");
    }
    return shape;
  }

  void take_name(const std::string& name, const std::string& where) {
    if (name == kInput) throw invalid(where, ": the name \"input\" is the net's input's");
    if (!names_.insert(name).second) throw invalid(where, ": the name ", name, " is taken");
  }

  void declare(const json& object) {
    const std::string at = concat(kWhere, ": parameters[", parameters_.size(), "]");
    want_object(object, at);
    ParameterInfo info;
    info.name = name_at(object, "name", at);
    const std::string where = concat(kWhere, ": parameter ", info.name);
    want_keys(object, {"name", "shape", "buffer", "optional"}, where);
    info.shape = shape_at(object, "shape", kMostParameterElements, where);
    for (const auto& [key, flag] : {std::pair{"buffer", &info.buffer}, {"optional", &info.optional}}) {
      if (object.contains(key)) read_value(object[key], *flag, {key, where});
    }
    const int index = builder_.declare(info);
    if (!parameters_.emplace(info.name, Parameter{index, info}).second) {
      throw invalid(where, ": the name is taken");
    }
  }

  void add(const json& object) {
    const std::string name = name_at(object, "name", kWhere), where = concat(kWhere, ": op ", name);
    const std::string kind = name_at(object, "op", where);
    const OpDefinition* definition = find_op(kind);
    if (definition == nullptr) {
      std::vector<std::string> known;
      for (const OpDefinition& other : op_definitions()) known.emplace_back(other.name);
      throw mistake(where, "op", kind, "one of " + joined(known));
    }
    std::vector<std::string> keys = {"op", "name", "inputs", "parameters"};
    keys.insert(keys.end(), definition->attributes.begin(), definition->attributes.end());
    want_keys(object, keys, concat(where, " (", kind, ")"));
    Attributes attributes;
    for (const std::string& attribute : definition->attributes) {
      const auto found = object.find(attribute);
      if (found != object.end()) attribute_codec(attribute).read(*found, attributes, {attribute, where});
    }
    const std::string shape_key = "shape";
    elements_of(attributes.shape, 1, kMostRowElements, {shape_key, where});
    std::vector<int> inputs, parameters;
    for (const json& input : list_at(object, "inputs", kMostOps, where)) {
      inputs.push_back(value(name_of(input, "inputs", where), "inputs", name, where));
    }
    std::vector<Parameter*> read;
    for (const json& parameter : list_at(object, "parameters", kMostParameters, where)) {
      const std::string wanted = name_of(parameter, "parameters", where);
      const auto found = parameters_.find(wanted);
      if (found == parameters_.end()) throw mistake(where, "parameters", wanted, "a name of \"parameters\"");
      found->second.used = true;
      parameters.push_back(found->second.index);
      read.push_back(&found->second);
    }
    const bool enough =
        definition->inputs == kOneOrMore ? !inputs.empty() : inputs.size() == definition->inputs;
    if (enough && definition->parameters != nullptr)
      want_flags(*definition, name, inputs, attributes, read, where);
    const int output = at_op(where, [&] {
      return builder_.op(definition->kind, name, std::move(inputs), attributes, std::move(parameters));
    });
    int64_t elements = 1;  // cannot overflow: the builder has bounded it
    for (int64_t size : builder_.shape(output)) elements *= size;
    if (elements > kMostRowElements) {
      throw invalid(where, ": rows of shape [", c10::Join(",", builder_.shape(output)), "]: want at most ",
                    kMostRowElements, " elements");
    }
    if (builder_.shape(output).size() > kMostAxes) {
      throw invalid(where, ": rows of ", builder_.shape(output).size(), " axes: want at most ", kMostAxes);
    }
    values_[name] = output;
  }

  // What the builder and the table say, with the file's word before it.
  template <typename Body>
  int at_op(const std::string& where, Body&& body) {
    try {
      return body();
    } catch (const Error& error) {
      throw Error(error.code(), concat(where, ": ", error.what()));
    }
  }

  // An op counts on parameters that are not optional being there, and training
  // on statistics being marked.
  void want_flags(const OpDefinition& definition, const std::string& name, const std::vector<int>& inputs,
                  const Attributes& attributes, const std::vector<Parameter*>& read,
                  const std::string& where) {
    std::vector<Shape> shapes;
    for (int input : inputs) shapes.push_back(builder_.shape(input));
    std::vector<ParameterInfo> wanted;
    at_op(where, [&] {
      wanted = definition.parameters(Op{definition.kind, name, inputs, 0, attributes, {}}, shapes);
      return 0;
    });
    for (size_t i = 0; i < std::min(wanted.size(), read.size()); ++i) {
      const ParameterInfo& given = read[i]->info;
      if (given.optional != wanted[i].optional) {
        throw invalid(where, ": parameter ", given.name,
                      ": \"optional\": ", given.optional ? "true" : "false", ": want ",
                      wanted[i].optional ? "true" : "false");
      }
      if (wanted[i].buffer && !given.buffer) {
        throw invalid(where, ": parameter ", given.name, " is not trained: want \"buffer\": true");
      }
    }
  }

  int value(const std::string& wanted, const std::string& key, const std::string& name,
            const std::string& where) const {
    if (wanted == kInput) return 0;
    const auto found = values_.find(wanted);
    if (found != values_.end()) return found->second;
    if (wanted == name) throw mistake(where, key, wanted, "ops before it, not itself");
    if (names_.contains(wanted)) {
      throw mistake(where, key, wanted, "ops before it: ops stand in the order in which they run");
    }
    throw mistake(where, key, wanted, "the name of an op before it, or \"input\"");
  }

  void add_place(const json& object) {
    const std::string at = concat(kWhere, ": places");
    want_object(object, at);
    const std::string name = name_at(object, "name", at), where = concat(kWhere, ": place ", name);
    want_keys(object, {"name", "kind", "value"}, where);
    take_name(name, where);
    const std::string wanted = name_at(object, "value", where);
    const auto found = values_.find(wanted);
    if (found == values_.end()) throw mistake(where, "value", wanted, "the name of an op");
    builder_.place(name, name_at(object, "kind", where), found->second);
  }

  static constexpr const char* kWhere = "net file";

  const json& file_;
  GraphBuilder builder_;
  std::unordered_set<std::string> names_;  // of ops and places
  std::unordered_map<std::string, int> values_;
  std::unordered_map<std::string, Parameter> parameters_;
  int64_t classes_ = 0;
};

}  // namespace

nlohmann::json parse_json(std::string_view text, const std::string& what) {
  if (text.size() > kMostText) {
    throw invalid(what, ": ", text.size(), " bytes: want at most ", kMostText);
  }
  std::vector<std::set<std::string>> keys;  // of the objects that are open
  const auto check = [&](int depth, json::parse_event_t event, json& parsed) {
    if (depth > kDeepest) throw invalid(what, ": nested deeper than ", kDeepest, " levels");
    if (event == json::parse_event_t::object_start) keys.emplace_back();
    if (event == json::parse_event_t::object_end) keys.pop_back();
    if (event == json::parse_event_t::key) {
      const std::string& key = parsed.get_ref<const std::string&>();
      if (!keys.back().insert(key).second) throw invalid(what, ": the key ", shown(parsed), " comes twice");
    }
    return true;
  };
  try {
    return json::parse(text.begin(), text.end(), check);
  } catch (const json::exception& error) {
    // The library's messages begin with "[json.exception.parse_error.101] ".
    const char* message = std::strstr(error.what(), "] ");
    throw invalid(what, ": ", message == nullptr ? error.what() : message + 2);
  }
}

Graph read_graph(const nlohmann::json& file, GraphHeader* header) {
  Reader reader(file);
  Graph graph = reader.graph();
  const GraphHeader said = reader.header();
  if (header != nullptr) *header = said;
  return graph;
}

Graph parse_graph(std::string_view text, GraphHeader* header) {
  return read_graph(parse_json(text, "net file"), header);
}

nlohmann::json write_graph(const Graph& graph, const GraphHeader& header) {
  const auto value_name = [&](int value) -> std::string {
    const int producer = graph.values.at(static_cast<size_t>(value)).producer;
    return producer < 0 ? kInput : graph.ops.at(static_cast<size_t>(producer)).name;
  };
  json file{{"format", kFormat},
            {"version", kVersion},
            {"name", header.name.empty() ? "net" : header.name},
            {"input", graph.values.at(0).shape},
            {"parameters", json::array()},
            {"ops", json::array()},
            {"output", value_name(graph.output)}};
  if (!header.preset_object.empty()) {
    file["preset"] = parse_json(header.preset_object, "preset");
  } else if (!header.preset.empty()) {
    file["preset"] = header.preset;
  }
  if (!header.weights.empty()) file["weights"] = header.weights;
  if (!header.class_names.empty()) file["classNames"] = header.class_names;
  if (!graph.default_layer.empty()) file["defaultLayer"] = graph.default_layer;
  for (const ParameterInfo& parameter : graph.parameters) {
    json entry{{"name", parameter.name}, {"shape", parameter.shape}};
    if (parameter.buffer) entry["buffer"] = true;
    if (parameter.optional) entry["optional"] = true;
    file["parameters"].push_back(std::move(entry));
  }
  for (const Op& op : graph.ops) {
    const OpDefinition& definition = op_definition(op.kind);
    json entry{{"op", definition.name}, {"name", op.name}};
    for (int input : op.inputs) entry["inputs"].push_back(value_name(input));
    for (int parameter : op.parameters) {
      entry["parameters"].push_back(graph.parameters.at(static_cast<size_t>(parameter)).name);
    }
    for (const std::string& attribute : definition.attributes) {
      json value = attribute_codec(attribute).write(op.attributes);
      if (!value.is_null()) entry[attribute] = std::move(value);
    }
    file["ops"].push_back(std::move(entry));
  }
  for (const Place& place : graph.places) {
    file["places"].push_back(
        {{"name", place.name}, {"kind", place.kind}, {"value", value_name(place.value)}});
  }
  return file;
}

}  // namespace assay
