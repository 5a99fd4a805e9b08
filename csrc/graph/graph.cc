// Building graphs.
#include "graph/graph.h"

#include "api/error.h"
#include "graph/ops.h"

namespace assay {

GraphBuilder::GraphBuilder(const Shape& input) { graph_.values.push_back({input, -1}); }

const Shape& GraphBuilder::shape(int value) const {
  return graph_.values.at(static_cast<size_t>(value)).shape;
}

int GraphBuilder::append(OpKind kind, const std::string& name, std::vector<int> inputs,
                         const Attributes& attributes, std::vector<ParameterInfo> parameters) {
  const OpDefinition& definition = op_definition(kind);
  for (const Op& op : graph_.ops) {
    if (op.name == name) throw invalid("graph: two ops are named ", name);
  }
  if (name.empty()) throw invalid("graph: a ", definition.name, " without a name");
  if (inputs.size() != definition.inputs) {
    throw invalid(name, ": ", inputs.size(), " inputs: a ", definition.name, " wants ", definition.inputs);
  }
  const int output = static_cast<int>(graph_.values.size());
  Op op{kind, name, std::move(inputs), output, attributes, {}};
  std::vector<Shape> shapes;
  for (int input : op.inputs) {
    if (input < 0 || input >= output) throw invalid(name, ": there is no value ", input, " before it");
    shapes.push_back(shape(input));
  }
  for (ParameterInfo& parameter : parameters) {
    op.parameters.push_back(static_cast<int>(graph_.parameters.size()));
    graph_.parameters.push_back(std::move(parameter));
  }
  graph_.values.push_back({definition.shape(op, shapes), static_cast<int>(graph_.ops.size())});
  graph_.ops.push_back(std::move(op));
  return output;
}

int GraphBuilder::conv2d(const std::string& name, int x, const Conv& conv) {
  const int64_t in = shape(x)[0];
  if (conv.groups < 1 || in % conv.groups != 0 || conv.channels % conv.groups != 0) {
    throw invalid(name, ": ", in, " to ", conv.channels, " channels in ", conv.groups, " groups");
  }
  Attributes a;
  a.kernel = {conv.kernel, conv.kernel};
  a.stride = {conv.stride, conv.stride};
  a.padding = conv.padding;
  a.groups = conv.groups;
  a.output = {conv.channels, 1};
  std::vector<ParameterInfo> parameters = {
      {name + ".weight", {conv.channels, in / conv.groups, conv.kernel, conv.kernel}}};
  if (conv.bias) parameters.push_back({name + ".bias", {conv.channels}});
  return append(OpKind::kConv2d, name, {x}, a, std::move(parameters));
}

int GraphBuilder::batch_norm(const std::string& name, int x, double epsilon) {
  Attributes a;
  a.epsilon = epsilon;
  const int64_t channels = shape(x)[0];
  return append(OpKind::kBatchNorm, name, {x}, a,
                {{name + ".weight", {channels}},
                 {name + ".bias", {channels}},
                 {name + ".running_mean", {channels}, /*buffer=*/true},
                 {name + ".running_var", {channels}, /*buffer=*/true},
                 {name + ".num_batches_tracked", {}, /*buffer=*/true, /*optional=*/true}});
}

int GraphBuilder::relu(const std::string& name, int x) { return append(OpKind::kRelu, name, {x}, {}); }
int GraphBuilder::relu6(const std::string& name, int x) { return append(OpKind::kRelu6, name, {x}, {}); }

int GraphBuilder::max_pool(const std::string& name, int x, int64_t kernel, int64_t stride, int64_t padding) {
  Attributes a;
  a.kernel = {kernel, kernel};
  a.stride = {stride, stride};
  a.padding = {padding, padding, padding, padding};
  return append(OpKind::kMaxPool, name, {x}, a);
}

int GraphBuilder::avg_pool(const std::string& name, int x, int64_t kernel, int64_t stride) {
  Attributes a;
  a.kernel = {kernel, kernel};
  a.stride = {stride, stride};
  return append(OpKind::kAvgPool, name, {x}, a);
}

int GraphBuilder::adaptive_avg_pool(const std::string& name, int x) {
  return append(OpKind::kAdaptiveAvgPool, name, {x}, {});
}

int GraphBuilder::flatten(const std::string& name, int x) { return append(OpKind::kFlatten, name, {x}, {}); }

int GraphBuilder::linear(const std::string& name, int x, int64_t outputs) {
  Attributes a;
  a.output = {outputs, 1};
  return append(OpKind::kLinear, name, {x}, a,
                {{name + ".weight", {outputs, shape(x)[0]}}, {name + ".bias", {outputs}}});
}

int GraphBuilder::add(const std::string& name, int x, int y) {
  return append(OpKind::kAdd, name, {x, y}, {});
}

int GraphBuilder::shortcut_a(const std::string& name, int x, int64_t channels) {
  const int64_t more = channels - shape(x)[0];
  if (more < 0) throw invalid(name, ": ", shape(x)[0], " channels to ", channels, ": want no fewer");
  Attributes a;
  a.channel_padding = {more / 2, more - more / 2};
  return append(OpKind::kShortcutA, name, {x}, a);
}

int GraphBuilder::dropout(const std::string& name, int x, double probability) {
  Attributes a;
  a.probability = probability;
  return append(OpKind::kDropout, name, {x}, a);
}

void GraphBuilder::place(const std::string& name, const std::string& kind, int value) {
  shape(value);
  for (const Op& op : graph_.ops) {
    if (op.name == name) throw invalid("graph: ", name, " names an op already");
  }
  graph_.places.push_back({name, kind, value});
}

Graph GraphBuilder::finish(int output, const std::string& default_layer) {
  if (shape(output).size() != 1) throw invalid("graph: the output is not [classes]");
  graph_.output = output;
  graph_.default_layer = default_layer;
  return std::move(graph_);
}

}  // namespace assay
