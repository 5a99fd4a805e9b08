// Building graphs.
#include "graph/graph.h"

#include <c10/util/accumulate.h>

#include <algorithm>

#include "api/error.h"
#include "graph/ops.h"

namespace assay {
namespace {

// Of one row of a value: far more than any net has, and no product overflows.
constexpr int64_t kMostElements = int64_t{1} << 34;

}  // namespace

GraphBuilder::GraphBuilder(const Shape& input) { graph_.values.push_back({input, -1}); }

const Shape& GraphBuilder::shape(int value) const {
  return graph_.values.at(static_cast<size_t>(value)).shape;
}

std::vector<Shape> GraphBuilder::shapes(const std::vector<int>& inputs) const {
  std::vector<Shape> shapes;
  for (int input : inputs) {
    if (input < 0 || static_cast<size_t>(input) >= graph_.values.size()) {
      throw invalid("graph: there is no value ", input);
    }
    shapes.push_back(shape(input));
  }
  return shapes;
}

int GraphBuilder::declare(ParameterInfo parameter) {
  graph_.parameters.push_back(std::move(parameter));
  return static_cast<int>(graph_.parameters.size()) - 1;
}

int GraphBuilder::op(OpKind kind, const std::string& name, std::vector<int> inputs,
                     const Attributes& attributes) {
  const OpDefinition& definition = op_definition(kind);
  std::vector<int> parameters;
  if (definition.parameters != nullptr && inputs.size() == definition.inputs) {
    const Op op{kind, name, inputs, 0, attributes, {}};
    for (ParameterInfo& parameter : definition.parameters(op, shapes(inputs))) {
      parameter.name = name + parameter.name;
      parameters.push_back(declare(std::move(parameter)));
    }
  }
  return this->op(kind, name, std::move(inputs), attributes, std::move(parameters));
}

int GraphBuilder::op(OpKind kind, const std::string& name, std::vector<int> inputs,
                     const Attributes& attributes, std::vector<int> parameters) {
  const OpDefinition& definition = op_definition(kind);
  if (name.empty()) throw invalid("graph: a ", definition.name, " without a name");
  for (const Op& other : graph_.ops) {
    if (other.name == name) throw invalid("graph: two ops are named ", name);
  }
  const bool enough = definition.inputs == kOneOrMore ? !inputs.empty() : inputs.size() == definition.inputs;
  if (!enough) {
    throw invalid(name, ": ", inputs.size(), " inputs: a ", definition.name, " wants ",
                  definition.inputs == kOneOrMore ? "at least 1" : std::to_string(definition.inputs));
  }
  const int output = static_cast<int>(graph_.values.size());
  Op op{kind, name, std::move(inputs), output, attributes, std::move(parameters)};
  const std::vector<Shape> from = shapes(op.inputs);
  Value value{definition.shape(op, from), static_cast<int>(graph_.ops.size())};
  value.batched = std::any_of(op.inputs.begin(), op.inputs.end(),
                              [&](int input) { return graph_.values[static_cast<size_t>(input)].batched; });
  std::vector<ParameterInfo> wanted;
  if (definition.parameters != nullptr) wanted = definition.parameters(op, from);
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (i >= op.parameters.size()) {
      if (wanted[i].optional) continue;
      throw invalid(name, ": ", op.parameters.size(), " parameters: it wants ", wanted.size());
    }
    const int index = op.parameters[i];
    if (index < 0 || static_cast<size_t>(index) >= graph_.parameters.size()) {
      throw invalid(name, ": there is no parameter ", index);
    }
    const ParameterInfo& given = graph_.parameters[static_cast<size_t>(index)];
    // A parameter that stands as a value may be stored in another shape.
    const bool fits = kind == OpKind::kParameter
                          ? c10::multiply_integers(given.shape) == c10::multiply_integers(wanted[i].shape)
                          : given.shape == wanted[i].shape;
    if (!fits) {
      throw invalid(name, ": parameter ", given.name, " has shape [", c10::Join(",", given.shape),
                    "], want [", c10::Join(",", wanted[i].shape), "]");
    }
  }
  if (op.parameters.size() > wanted.size()) {
    throw invalid(name, ": ", op.parameters.size(), " parameters: it wants ", wanted.size());
  }
  int64_t elements = 1;
  for (int64_t size : value.shape) {
    if (__builtin_mul_overflow(elements, size, &elements) || elements > kMostElements) {
      throw invalid(name, ": rows of shape [", c10::Join(",", value.shape), "] are too large");
    }
  }
  graph_.values.push_back(std::move(value));
  graph_.ops.push_back(std::move(op));
  return output;
}

int GraphBuilder::simple(OpKind kind, const std::string& name, std::vector<int> inputs) {
  return op(kind, name, std::move(inputs), {});
}

int GraphBuilder::conv2d(const std::string& name, int x, const Conv& conv) {
  Attributes a;
  a.channels = conv.channels;
  a.bias = conv.bias;
  a.kernel = {conv.kernel, conv.kernel_width > 0 ? conv.kernel_width : conv.kernel};
  a.stride = {conv.stride, conv.stride};
  a.padding = conv.padding;
  a.groups = conv.groups;
  return op(OpKind::kConv2d, name, {x}, a);
}

int GraphBuilder::batch_norm(const std::string& name, int x, double epsilon, double momentum) {
  Attributes a;
  a.epsilon = epsilon;
  a.momentum = momentum;
  return op(OpKind::kBatchNorm, name, {x}, a);
}

int GraphBuilder::layer_norm(const std::string& name, int x, double epsilon) {
  Attributes a;
  a.epsilon = epsilon;
  return op(OpKind::kLayerNorm, name, {x}, a);
}

int GraphBuilder::relu(const std::string& name, int x) { return simple(OpKind::kRelu, name, {x}); }
int GraphBuilder::relu6(const std::string& name, int x) { return simple(OpKind::kRelu6, name, {x}); }

int GraphBuilder::max_pool(const std::string& name, int x, int64_t kernel, int64_t stride, int64_t padding,
                           bool ceil) {
  Attributes a;
  a.kernel = {kernel, kernel};
  a.stride = {stride, stride};
  a.padding = {padding, padding, padding, padding};
  a.ceil = ceil;
  return op(OpKind::kMaxPool, name, {x}, a);
}

int GraphBuilder::avg_pool(const std::string& name, int x, int64_t kernel, int64_t stride, int64_t padding) {
  Attributes a;
  a.kernel = {kernel, kernel};
  a.stride = {stride, stride};
  a.padding = {padding, padding, padding, padding};
  return op(OpKind::kAvgPool, name, {x}, a);
}

int GraphBuilder::adaptive_avg_pool(const std::string& name, int x, int64_t output) {
  Attributes a;
  a.output = {output, output};
  return op(OpKind::kAdaptiveAvgPool, name, {x}, a);
}

int GraphBuilder::flatten(const std::string& name, int x) { return simple(OpKind::kFlatten, name, {x}); }

int GraphBuilder::linear(const std::string& name, int x, int64_t outputs, bool bias) {
  Attributes a;
  a.channels = outputs;
  a.bias = bias;
  return op(OpKind::kLinear, name, {x}, a);
}

int GraphBuilder::add(const std::string& name, int x, int y) { return simple(OpKind::kAdd, name, {x, y}); }
int GraphBuilder::mul(const std::string& name, int x, int y) { return simple(OpKind::kMul, name, {x, y}); }

int GraphBuilder::concat(const std::string& name, const std::vector<int>& values, int64_t axis) {
  Attributes a;
  a.axis = axis;
  return op(OpKind::kConcat, name, values, a);
}

int GraphBuilder::reshape(const std::string& name, int x, const Shape& shape) {
  Attributes a;
  a.shape = shape;
  return op(OpKind::kReshape, name, {x}, a);
}

int GraphBuilder::permute(const std::string& name, int x, const std::vector<int64_t>& axes) {
  Attributes a;
  a.axes = axes;
  return op(OpKind::kPermute, name, {x}, a);
}

int GraphBuilder::slice(const std::string& name, int x, int64_t axis, int64_t begin, int64_t end) {
  Attributes a;
  a.axis = axis;
  a.begin = begin;
  a.end = end;
  return op(OpKind::kSlice, name, {x}, a);
}

int GraphBuilder::softmax(const std::string& name, int x, int64_t axis) {
  Attributes a;
  a.axis = axis;
  return op(OpKind::kSoftmax, name, {x}, a);
}

int GraphBuilder::matmul(const std::string& name, int x, int y, bool transpose) {
  Attributes a;
  a.transpose = transpose;
  return op(OpKind::kMatmul, name, {x, y}, a);
}

int GraphBuilder::parameter(const std::string& name, const Shape& shape, const std::vector<int64_t>& stored) {
  Attributes a;
  a.shape = shape;
  return op(OpKind::kParameter, name, {}, a, {declare({name, stored})});
}

int GraphBuilder::shortcut_a(const std::string& name, int x, int64_t channels) {
  const int64_t more = channels - shape(x)[0];
  if (more < 0) throw invalid(name, ": ", shape(x)[0], " channels to ", channels, ": want no fewer");
  Attributes a;
  a.channel_padding = {more / 2, more - more / 2};
  return op(OpKind::kShortcutA, name, {x}, a);
}

int GraphBuilder::dropout(const std::string& name, int x, double probability) {
  Attributes a;
  a.probability = probability;
  return op(OpKind::kDropout, name, {x}, a);
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
  if (!graph_.values[static_cast<size_t>(output)].batched) {
    throw invalid("graph: the output does not depend on the input");
  }
  graph_.output = output;
  graph_.default_layer = default_layer;
  return std::move(graph_);
}

}  // namespace assay
