// Net files: every net comes back from one as it was, what does not fit is
// refused with the reason, and own models give the logits that PyTorch gave.
#include "graph/json.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <fstream>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <tuple>

#include "api/error.h"
#include "graph/json_attributes.h"
#include "graph/net.h"
#include "graph/ops.h"
#include "test/fill.h"

namespace assay {
namespace {

using nlohmann::json;

std::string message_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), TX_INVALID) << error.what();
    return error.what();
  }
  return "no error";
}

// ---- there and back

void expect_same(const Graph& got, const Graph& want) {
  ASSERT_EQ(got.ops.size(), want.ops.size());
  for (size_t i = 0; i < want.ops.size(); ++i) {
    EXPECT_EQ(got.ops[i].kind, want.ops[i].kind);
    EXPECT_EQ(got.ops[i].name, want.ops[i].name);
    EXPECT_EQ(got.ops[i].inputs, want.ops[i].inputs) << want.ops[i].name;
    EXPECT_EQ(got.ops[i].output, want.ops[i].output) << want.ops[i].name;
    EXPECT_EQ(got.ops[i].parameters, want.ops[i].parameters) << want.ops[i].name;
  }
  ASSERT_EQ(got.values.size(), want.values.size());
  for (size_t i = 0; i < want.values.size(); ++i) {
    EXPECT_EQ(got.values[i].shape, want.values[i].shape) << "value " << i;
    EXPECT_EQ(got.values[i].producer, want.values[i].producer) << "value " << i;
    EXPECT_EQ(got.values[i].batched, want.values[i].batched) << "value " << i;
  }
  ASSERT_EQ(got.parameters.size(), want.parameters.size());
  for (size_t i = 0; i < want.parameters.size(); ++i) {
    EXPECT_EQ(got.parameters[i].name, want.parameters[i].name);
    EXPECT_EQ(got.parameters[i].shape, want.parameters[i].shape) << want.parameters[i].name;
    EXPECT_EQ(got.parameters[i].buffer, want.parameters[i].buffer) << want.parameters[i].name;
    EXPECT_EQ(got.parameters[i].optional, want.parameters[i].optional) << want.parameters[i].name;
  }
  ASSERT_EQ(got.places.size(), want.places.size());
  for (size_t i = 0; i < want.places.size(); ++i) {
    EXPECT_EQ(got.places[i].name, want.places[i].name);
    EXPECT_EQ(got.places[i].kind, want.places[i].kind);
    EXPECT_EQ(got.places[i].value, want.places[i].value);
  }
  EXPECT_EQ(got.output, want.output);
  EXPECT_EQ(got.default_layer, want.default_layer);
}

class EveryNet : public testing::TestWithParam<std::string> {};

TEST_P(EveryNet, ComesBackAsItWas) {
  const auto net = Net::build(GetParam(), {});
  const json file = write_graph(net->graph(), {.name = GetParam()});
  const Graph graph = parse_graph(file.dump());
  expect_same(graph, net->graph());
  // The attributes too, which have no comparison of their own.
  EXPECT_EQ(write_graph(graph, {.name = GetParam()}), file);
  if (net->parameter_count() > 300'000) return;
  Net again(net_entry(GetParam()), graph);
  for (Net* either : {net.get(), &again}) {
    either->load(fill_state(*either));
    either->prepare(at::kCPU, Precision::kF32);
  }
  const at::Tensor x = fill_input(*net, 2);
  EXPECT_TRUE(at::equal(again.forward(x), net->forward(x)));
}

std::vector<std::string> every_net() {
  std::vector<std::string> ids;
  for (const NetEntry& entry : net_registry()) ids.push_back(entry.id);
  return ids;
}

INSTANTIATE_TEST_SUITE_P(Json, EveryNet, testing::ValuesIn(every_net()), [](const auto& info) {
  std::string name = info.param;
  for (char& c : name) {
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  }
  return name;
});

// Attributes that the nets above leave at their defaults.
TEST(Json, KeepsEveryAttribute) {
  GraphBuilder b({4, 12, 10});
  Attributes conv;
  conv.channels = 6;
  conv.bias = false;
  conv.kernel = {3, 2};
  conv.stride = {2, 1};
  conv.padding = {1, 2, 3, 4};
  conv.dilation = {2, 3};
  conv.groups = 2;
  int x = b.op(OpKind::kConv2d, "conv", {0}, conv);
  Attributes up;
  up.channels = 3;
  up.kernel = {3, 3};
  up.stride = {2, 2};
  up.output_padding = {1, 0};
  x = b.op(OpKind::kConvTranspose2d, "up", {x}, up);
  Attributes pool;
  pool.kernel = {3, 3};
  pool.stride = {2, 2};
  pool.padding = {1, 1, 1, 1};
  pool.ceil = true;
  pool.count_padding = false;
  x = b.op(OpKind::kAvgPool, "pool", {x}, pool);
  Attributes numbers;
  numbers.factor = 0.1;
  numbers.shift = -1e-300;
  x = b.op(OpKind::kAffine, "numbers", {x}, numbers);
  Attributes channels;
  channels.factors = {1. / 3, 2, 3e10};
  channels.shifts = {0, -0.0, 1};
  x = b.op(OpKind::kChannelAffine, "channels", {x}, channels);
  Attributes norm;
  norm.epsilon = 1e-6;
  norm.dimensions = 2;
  x = b.op(OpKind::kLayerNorm, "norm", {x}, norm);
  Attributes gelu;
  gelu.approximate = true;
  x = b.op(OpKind::kGelu, "gelu", {x}, gelu);
  Attributes size;
  size.output = {7, 5};
  size.bilinear = true;
  size.align_corners = true;
  x = b.op(OpKind::kUpsample, "size", {x}, size);
  Attributes mean;
  mean.axes = {2, 1};
  mean.keep = true;
  x = b.op(OpKind::kMean, "mean", {x}, mean);
  Attributes slice;
  slice.axis = 0;
  slice.begin = 1;
  slice.end = 3;
  slice.step = 2;
  x = b.op(OpKind::kSlice, "slice", {x}, slice);
  x = b.linear("fc", b.flatten("flat", x), 3);
  const Graph want = b.finish(x, "");
  const json file = write_graph(want);
  const Graph got = read_graph(file);
  expect_same(got, want);
  const auto attributes = [](const Graph& graph, size_t op) { return graph.ops[op].attributes; };
  for (size_t i = 0; i < want.ops.size(); ++i) {
    const Attributes a = attributes(got, i), w = attributes(want, i);
    EXPECT_EQ(a.kernel, w.kernel);
    EXPECT_EQ(a.padding, w.padding);
    EXPECT_EQ(a.dilation, w.dilation);
    EXPECT_EQ(a.output_padding, w.output_padding);
    EXPECT_EQ(std::tie(a.bias, a.groups, a.ceil, a.count_padding, a.dimensions, a.approximate, a.bilinear),
              std::tie(w.bias, w.groups, w.ceil, w.count_padding, w.dimensions, w.approximate, w.bilinear));
    EXPECT_EQ(std::tie(a.align_corners, a.output, a.axes, a.keep, a.begin, a.end, a.step),
              std::tie(w.align_corners, w.output, w.axes, w.keep, w.begin, w.end, w.step));
    EXPECT_EQ(std::tie(a.epsilon, a.factor, a.shift, a.factors, a.shifts),
              std::tie(w.epsilon, w.factor, w.shift, w.factors, w.shifts));
  }
}

TEST(Json, KnowsEveryAttributeOfTheTable) {
  const auto& known = attribute_codecs();
  for (const OpDefinition& definition : op_definitions()) {
    for (const std::string& attribute : definition.attributes) {
      EXPECT_TRUE(std::any_of(known.begin(), known.end(),
                              [&](const AttributeCodec& codec) { return codec.name == attribute; }))
          << definition.name << "." << attribute;
    }
  }
}

TEST(Json, EveryOpStandsInTheManual) {
  std::ifstream in(ASSAY_SOURCE_DIR "/docs/own-models.md");
  std::ostringstream manual;
  manual << in.rdbuf();
  for (const OpDefinition& definition : op_definitions()) {
    EXPECT_NE(manual.str().find(concat('`', definition.name, '`')), std::string::npos) << definition.name;
    for (const std::string& attribute : definition.attributes) {
      EXPECT_NE(manual.str().find(concat('`', attribute, '`')), std::string::npos) << attribute;
    }
  }
}

// ---- what is refused

// conv1 -> relu -> pool -> flat -> fc on [3,8,8], five classes.
json small() {
  return json::parse(R"({
    "format": "assay-net", "version": 1, "name": "small", "input": [3,8,8], "preset": "cifar10",
    "weights": "small.safetensors", "classNames": ["a","b","c","d","e"],
    "parameters": [{"name": "c.w", "shape": [4,3,3,3]}, {"name": "c.b", "shape": [4]},
                   {"name": "n.weight", "shape": [4]}, {"name": "n.bias", "shape": [4]},
                   {"name": "n.mean", "shape": [4], "buffer": true},
                   {"name": "n.var", "shape": [4], "buffer": true},
                   {"name": "n.count", "shape": [], "buffer": true, "optional": true},
                   {"name": "fc.weight", "shape": [5,36]}],
    "ops": [{"op": "conv2d", "name": "conv1", "inputs": ["input"], "channels": 4, "kernel": [3,3],
             "parameters": ["c.w", "c.b"]},
            {"op": "batch_norm", "name": "n", "inputs": ["conv1"],
             "parameters": ["n.weight", "n.bias", "n.mean", "n.var", "n.count"]},
            {"op": "relu", "name": "relu", "inputs": ["n"]},
            {"op": "max_pool", "name": "pool", "inputs": ["relu"], "kernel": [2,2], "stride": [2,2]},
            {"op": "flatten", "name": "flat", "inputs": ["pool"]},
            {"op": "linear", "name": "fc", "inputs": ["flat"], "channels": 5, "bias": false,
             "parameters": ["fc.weight"]}],
    "places": [{"name": "block", "kind": "block", "value": "pool"}],
    "output": "fc", "defaultLayer": "block"})");
}

TEST(Json, ReadsWhatTheFileSays) {
  GraphHeader header;
  const Graph graph = read_graph(small(), &header);
  EXPECT_EQ(header.name, "small");
  EXPECT_EQ(header.preset, "cifar10");
  EXPECT_EQ(header.weights, "small.safetensors");
  EXPECT_EQ(header.class_names, (std::vector<std::string>{"a", "b", "c", "d", "e"}));
  EXPECT_EQ(write_graph(graph, header), small());
  json custom = small();
  custom["preset"] = {{"resize", "none"}, {"mean", {0.5, 0.5, 0.5}}};
  read_graph(custom, &header);
  EXPECT_EQ(header.preset, "");
  EXPECT_EQ(json::parse(header.preset_object), custom["preset"]);
  EXPECT_EQ(write_graph(graph, header), custom);
}

struct Wrong {
  const char* patch;  // RFC 7386 or, as a list, RFC 6902
  const char* says;
};

TEST(Json, SaysWhatIsWrongAndWhatWouldBeRight) {
  const Wrong cases[] = {
      {R"({"format": "onnx"})", R"(net file: "format": "onnx": want "assay-net")"},
      {R"({"version": 2})", R"(net file: "version": 2: want 1, the one that this program reads)"},
      {R"({"name": null})", R"(net file: "name" is missing)"},
      {R"({"name": "two\nlines"})",
       R"(net file: "name": "two\nlines": want a name of 1 to 1000 bytes on one line)"},
      {R"({"nets": 1})", R"(net file: "nets" is no key here: want format, version, )"},
      {R"({"input": [3, 8]})", R"(net file: "input": a list of 2: want [C,H,W] or [F])"},
      {R"({"input": [3, 0, 8]})", R"(net file: "input": size 0: want 1 or more)"},
      {R"({"input": [3, 8.0, 8]})", R"(net file: "input": 8.0: want an integer of size 1073741824 at most)"},
      {R"({"input": [16384, 16384, 2]})", R"(want at most 268435456 elements)"},
      {R"({"input": [18446744073709551615]})", R"(want an integer of size)"},
      {R"({"input": [3, 8, 10]})",
       R"(net file: op fc: fc: parameter fc.weight has shape [5,36], want [5,48])"},
      {R"({"preset": 3})", R"(net file: "preset": 3: want a name)"},
      {R"({"weights": "../x"})",
       R"(net file: "weights": "../x": want the name of a file in the same folder)"},
      {R"({"classNames": ["a"]})", R"(net file: 1 "classNames" for 5 outputs)"},
      {R"({"ops": null})", R"(net file: no "ops")"},
      {R"({"ops": {}})", R"(net file: "ops": an object: want a list)"},
      {R"({"output": "c"})", R"(net file: "output": "c": want the name of an op)"},
      {R"({"output": "input"})", R"(net file: "output": "input": want the name of an op)"},
      {R"({"output": "pool"})", R"(net file: the output pool has rows of shape [4,3,3]: want [classes])"},
      {R"({"defaultLayer": "c"})", R"(net file: "defaultLayer": "c": want a name of "ops" or "places")"},
      {R"([{"op": "replace", "path": "/ops/2/op", "value": "rleu"}])",
       R"(net file: op relu: "op": "rleu": want one of conv2d, )"},
      {R"([{"op": "add", "path": "/ops/0/dilatoin", "value": [1, 1]}])",
       R"(net file: op conv1 (conv2d): "dilatoin" is no key here: want op, name, inputs, parameters, channels, )"},
      {R"([{"op": "add", "path": "/ops/2/slope", "value": 1}])",
       R"(net file: op relu (relu): "slope" is no key here: want op, name, inputs, parameters)"},
      {R"([{"op": "replace", "path": "/ops/0/kernel", "value": 3}])",
       R"(net file: op conv1: "kernel": 3: want a list of 2 integers)"},
      {R"([{"op": "replace", "path": "/ops/0/kernel", "value": [9, 9]}])",
       R"(net file: op conv1: conv1: a window of 9 does not fit into rows of [3,8,8])"},
      {R"([{"op": "replace", "path": "/ops/0/channels", "value": 1073741825}])",
       R"(net file: op conv1: "channels": 1073741825: want an integer of size 1073741824 at most)"},
      {R"([{"op": "replace", "path": "/ops/0/channels", "value": 1073741824}])",
       R"(net file: op conv1: conv1: parameter c.w has shape [4,3,3,3], want [1073741824,3,3,3])"},
      {R"([{"op": "replace", "path": "/ops/5/bias", "value": 0}])",
       R"(net file: op fc: "bias": 0: want true or false)"},
      {R"([{"op": "replace", "path": "/ops/5/bias", "value": true}])",
       R"(net file: op fc: fc: 1 parameters: it wants 2)"},
      {R"([{"op": "add", "path": "/ops/1/epsilon", "value": "small"}])",
       R"(net file: op n: "epsilon": "small": want a number)"},
      {R"([{"op": "replace", "path": "/ops/2/inputs", "value": ["n", "n"]}])",
       R"(net file: op relu: relu: 2 inputs: a relu wants 1)"},
      {R"([{"op": "remove", "path": "/ops/2/inputs"}])",
       R"(net file: op relu: relu: 0 inputs: a relu wants 1)"},
      {R"([{"op": "replace", "path": "/ops/2/inputs", "value": ["relu"]}])",
       R"(net file: op relu: "inputs": "relu": want ops before it, not itself)"},
      {R"([{"op": "replace", "path": "/ops/2/inputs", "value": ["fc"]}])",
       R"(net file: op relu: "inputs": "fc": want ops before it: ops stand in the order in which they run)"},
      {R"([{"op": "replace", "path": "/ops/2/inputs", "value": ["nn"]}])",
       R"(net file: op relu: "inputs": "nn": want the name of an op before it, or "input")"},
      {R"([{"op": "replace", "path": "/ops/2/inputs", "value": ["block"]}])",
       R"(net file: op relu: "inputs": "block": want the name of an op before it, or "input")"},
      {R"([{"op": "replace", "path": "/ops/2/name", "value": "input"}])",
       R"(net file: ops[2]: the name "input" is the net's input's)"},
      {R"([{"op": "replace", "path": "/ops/2/name", "value": "n"}])",
       R"(net file: ops[2]: the name n is taken)"},
      {R"([{"op": "replace", "path": "/ops/2", "value": 7}])", R"(net file: ops[2]: 7: want an object)"},
      {R"([{"op": "replace", "path": "/ops/5/parameters", "value": ["x"]}])",
       R"(net file: op fc: "parameters": "x": want a name of "parameters")"},
      {R"([{"op": "remove", "path": "/ops/5/parameters"}])",
       R"(net file: op fc: fc: 0 parameters: it wants 1)"},
      {R"([{"op": "add", "path": "/parameters/7/optional", "value": true}])",
       R"(net file: op fc: parameter fc.weight: "optional": true: want false)"},
      {R"([{"op": "remove", "path": "/parameters/5/buffer"}])",
       R"(net file: op n: parameter n.var is not trained: want "buffer": true)"},
      {R"([{"op": "add", "path": "/parameters/-", "value": {"name": "x", "shape": [1]}}])",
       R"(net file: parameter x is read by no op: take it out, or say "optional": true)"},
      {R"([{"op": "add", "path": "/parameters/-", "value": {"name": "c.w", "shape": [1]}}])",
       R"(net file: parameter c.w: the name is taken)"},
      {R"([{"op": "add", "path": "/parameters/-", "value": {"name": "x", "shape": [65536, 65537]}}])",
       R"(net file: parameter x: "shape": [65536,65537]: want at most 4294967296 elements)"},
      {R"([{"op": "add", "path": "/parameters/-", "value": {"name": "x", "shape": [1,1,1,1,1,1,1,1]}}])",
       R"(net file: parameter x: "shape": a list of 8: want a list of at most 7 integers)"},
      {R"([{"op": "add", "path": "/parameters/-", "value": {"name": "x", "dtype": "f32"}}])",
       R"(net file: parameter x: "dtype" is no key here: want name, shape, buffer, optional)"},
      {R"({"places": [{"name": "pool", "kind": "block", "value": "pool"}]})",
       R"(net file: place pool: the name pool is taken)"},
      {R"({"places": [{"name": "a", "kind": "block", "value": "input"}]})",
       R"(net file: place a: "value": "input": want the name of an op)"},
  };
  for (const Wrong& wrong : cases) {
    const json patch = json::parse(wrong.patch);
    json file = small();
    if (patch.is_array()) {
      file = file.patch(patch);
    } else {
      file.merge_patch(patch);
    }
    const std::string said = message_of([&] { parse_graph(file.dump()); });
    EXPECT_NE(said.find(wrong.says), std::string::npos) << wrong.patch << "\n" << said;
  }
}

TEST(Json, RefusesWhatIsNoJson) {
  const auto said = [](const std::string& text) { return message_of([&] { parse_graph(text); }); };
  EXPECT_NE(said("").find("net file: parse error at line 1, column 1"), std::string::npos) << said("");
  EXPECT_NE(said("{\"name\": \n nul}").find("line 2"), std::string::npos);
  EXPECT_NE(said("\x80\x02}q").find("net file: parse error"), std::string::npos);
  EXPECT_EQ(said("[1]"), "net file: a list of 1: want an object");
  EXPECT_EQ(said(R"({"name": "a", "ops": [{"op": 1, "op": 2}]})"), "net file: the key \"op\" comes twice");
  EXPECT_EQ(said(std::string(1'000'000, '[')), "net file: nested deeper than 16 levels");
  std::string large(kMostText + 1, ' ');
  EXPECT_EQ(said(large), "net file: 67108865 bytes: want at most 67108864");
}

// Every single-byte change of a file is read or refused as invalid.
TEST(Json, NoChangeOfAByteIsMoreThanAMistake) {
  const std::string text = small().dump();
  for (size_t i = 0; i < text.size(); ++i) {
    for (char to : {'9', '"', '{', '-', '\0'}) {
      std::string changed = text;
      changed[i] = to;
      message_of([&] { parse_graph(changed); });  // fails on another code
    }
  }
}

// ---- own models: files of scripts/export_torch.py, logits of PyTorch

constexpr const char* kModels = ASSAY_SOURCE_DIR "/testdata/own_models/";

std::string content(const std::string& file) {
  std::ifstream in(kModels + file, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

// Of f32 and of counters, which the nets do not need.
std::vector<std::pair<std::string, at::Tensor>> safetensors(const std::string& file) {
  const std::string bytes = content(file);
  uint64_t size = 0;
  std::memcpy(&size, bytes.data(), sizeof size);
  std::vector<std::pair<std::string, at::Tensor>> state;
  const json header = json::parse(bytes.substr(8, size));
  for (const auto& entry : header.items()) {
    if (entry.value().at("dtype") != "F32") continue;
    at::Tensor tensor = at::empty(entry.value().at("shape").get<Shape>(), at::kFloat);
    const auto begin = entry.value().at("data_offsets")[0].get<size_t>();
    std::memcpy(tensor.mutable_data_ptr(), bytes.data() + 8 + size + begin, tensor.nbytes());
    state.emplace_back(entry.key(), tensor);
  }
  return state;
}

struct OwnModel {
  std::string name;
  int64_t parameters;
  std::vector<std::vector<double>> logits;
};

std::vector<OwnModel> own_models() {
  std::vector<OwnModel> models;
  const json parsed = json::parse(content("logits.json"));
  for (const json& model : parsed.at("models")) {
    models.push_back({model.at("model"), model.at("parameters"), model.at("logits")});
  }
  return models;
}

std::unique_ptr<Net> own_net(const std::string& name) {
  GraphHeader header;
  Graph graph = parse_graph(content(name + ".json"), &header);
  NetEntry entry;
  entry.id = header.name;
  auto net = std::make_unique<Net>(std::move(entry), std::move(graph));
  net->load(safetensors(header.weights));
  return net;
}

class OwnModelTest : public testing::TestWithParam<OwnModel> {};

TEST_P(OwnModelTest, GivesTheLogitsOfPyTorch) {
  const OwnModel& model = GetParam();
  const auto net = own_net(model.name);
  EXPECT_EQ(net->parameter_count(), model.parameters);
  at::Tensor want = at::empty({2, static_cast<int64_t>(model.logits[0].size())}, at::kDouble);
  for (int64_t row = 0; row < 2; ++row) {
    for (int64_t c = 0; c < want.size(1); ++c) {
      want[row][c] = model.logits[static_cast<size_t>(row)][static_cast<size_t>(c)];
    }
  }
  const at::Tensor x = fill_input(*net, 2);
  const double largest = want.abs().max().item<double>();
  for (const auto& [precision, tolerance] : {std::pair{Precision::kF32, 1e-5}, {Precision::kF64, 1e-9}}) {
    net->prepare(at::kCPU, precision);
    for (const at::Tensor& got : {net->forward(x), net->forward_plain(x).logits}) {
      ASSERT_EQ(got.sizes(), want.sizes());
      EXPECT_LE((got - want).abs().max().item<double>(), tolerance * largest);
    }
    // Whatever else is in the batch.
    const at::Tensor three = at::cat({x.flip(0), x.narrow(0, 0, 1)});
    EXPECT_LE((net->forward(three).narrow(0, 0, 2) - want.flip(0)).abs().max().item<double>(),
              tolerance * largest);
  }
}

INSTANTIATE_TEST_SUITE_P(Json, OwnModelTest, testing::ValuesIn(own_models()),
                         [](const auto& info) { return info.param.name; });

TEST(OwnModels, KeepTheNamesThatTheirAuthorsKnow) {
  const auto outputs = [](const Net& net) {
    std::map<std::string, LayerInfo> layers;
    for (const LayerInfo& layer : net.layers()) layers[layer.name] = layer;
    return layers;
  };
  const auto depthwise = own_net("depthwise");
  auto layers = outputs(*depthwise);
  EXPECT_EQ(depthwise->default_layer(), "blocks");
  EXPECT_EQ(layers.at("blocks").outputs, Shape({8, 9, 7}));
  EXPECT_EQ(layers.at("blocks.1").op, "block");
  EXPECT_EQ(layers.at("blocks.1.depthwise").op, "conv2d");
  EXPECT_EQ(layers.at("blocks.1.gate").outputs, Shape({16, 9, 7}));
  EXPECT_EQ(layers.at("classifier.2").op, "dropout");
  const auto unet = own_net("unet_head");
  layers = outputs(*unet);
  EXPECT_EQ(unet->default_layer(), "merge1");
  EXPECT_EQ(layers.at("bottom").outputs, Shape({10, 4, 4}));
  EXPECT_EQ(layers.at("up2").op, "conv_transpose2d");
  const auto transformer = own_net("transformer");
  layers = outputs(*transformer);
  EXPECT_EQ(transformer->default_layer(), "patches");
  EXPECT_EQ(layers.at("encoder").outputs, Shape({10, 12}));
  EXPECT_EQ(layers.at("head").outputs, Shape({6}));
}

}  // namespace
}  // namespace assay
