// Networks as files: the description of a net (graph.h) as JSON, its parameters
// beside it as safetensors. docs/own-models.md shows how people come by one.
//
//   {"format": "assay-net", "version": 1,
//    "name": "mymodel",                 what the net is called in records
//    "input": [3,224,224],              one row: [C,H,W] or [F]
//    "preset": "imagenet",              or an object with the fields of dataset.Preset; may be left out
//    "weights": "mymodel.safetensors",  a file in the same folder; may be left out
//    "classNames": ["cat", ...],        one a class; may be left out
//    "parameters": [{"name": "conv1.weight", "shape": [8,3,3,3], "buffer": false, "optional": false}, ...],
//    "ops": [{"op": "conv2d",           a name of the table of ops (ops.h)
//             "name": "conv1",          unique; "input" is taken
//             "inputs": ["input"],      names of ops before this one, or "input"
//             "channels": 8, ...,       the attributes that the table names for that op, and no other;
//                                       those with their default value (graph.h) may be left out
//             "parameters": ["conv1.weight", "conv1.bias"]}, ...],
//    "places": [{"name": "layer1", "kind": "stage", "value": "layer1.1.relu"}, ...],
//    "output": "fc",                    the op that writes the logits, [classes]
//    "defaultLayer": "layer1"}          what class activation maps look at; may be left out
//
// "buffer": not trained (false where left out). "optional": may be missing from
// the weights and is not used (false where left out): batch norm's counters, and
// whatever no op reads. Several ops may read one parameter. Inputs and parameters
// stand in the order that the op defines; where there are none the key may be
// left out, as "places" may.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"

namespace assay {

// What a file says besides the graph.
struct GraphHeader {
  std::string name = {};
  std::string preset = {};         // "": an object (preset_object), or not said
  std::string preset_object = {};  // JSON as it stands, its fields unchecked; "": a name, or not said
  std::string weights = {};        // file name; "": not said
  std::vector<std::string> class_names = {};  // one a class; empty: not said
};

// The most that a file may hold: far beyond any classifier, and little enough
// that reading one takes neither long nor much memory.
inline constexpr size_t kMostText = size_t{1} << 26;                // bytes
inline constexpr size_t kMostOps = 10000, kMostParameters = 40000;  // also places, inputs of an op
inline constexpr int64_t kMostRowElements = int64_t{1} << 28;       // of one row of a value
inline constexpr int64_t kMostParameterElements = int64_t{1} << 32;
inline constexpr size_t kMostAxes = 7;  // of one row

// JSON, strictly: throws invalid, with the place, for what is none, for a key
// that comes twice in an object, for nesting deeper than a net's and for more
// than kMostText bytes. what: for messages ("net file").
nlohmann::json parse_json(std::string_view text, const std::string& what);

// Throws invalid for everything that the format above does not allow, naming the
// op, what is wrong and what would be right. header (may be NULL) is written on success.
Graph read_graph(const nlohmann::json& file, GraphHeader* header = nullptr);
Graph parse_graph(std::string_view text, GraphHeader* header = nullptr);

// Attributes with default values are left out. A header without a name is called "net".
nlohmann::json write_graph(const Graph& graph, const GraphHeader& header = {});

}  // namespace assay
