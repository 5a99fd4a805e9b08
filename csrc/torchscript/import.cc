// From TorchScript's operators to those of the network description.
//
// Values of the script's graph become one of: a value of ours, a constant
// tensor, a list, or a number, where sizes of the batch are a number of their
// own kind: a reshape may keep the batch and nothing else may depend on it.
#include "torchscript/import.h"

#include <torch/csrc/jit/ir/constants.h>
#include <torch/csrc/jit/passes/dead_code_elimination.h>
#include <torch/csrc/jit/passes/inliner.h>
#include <torch/csrc/jit/passes/lower_tuples.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <unordered_map>
#include <variant>

#include "api/error.h"
#include "graph/ops.h"

namespace assay {
namespace {

using torch::jit::Node;
using torch::jit::Value;

template <typename... Parts>
NoCounterpart none(Parts&&... parts) {
  return NoCounterpart(concat(std::forward<Parts>(parts)...));
}

struct Item;
using List = std::vector<Item>;
struct Batch {};  // the number of rows
struct Ours {     // a value of the graph being built
  int id;
};
struct Item
    : std::variant<std::monostate, Ours, at::Tensor, Batch, int64_t, double, bool, std::string, List> {
  using variant::variant;
};

class Importer {
 public:
  Importer(const std::vector<std::pair<std::string, at::Tensor>>& named, const Shape& input)
      : b_(input), named_(named) {}

  Imported run(const torch::jit::Module& module) {
    auto graph = module.get_method("forward").graph()->copy();
    torch::jit::Inline(*graph);
    torch::jit::LowerSimpleTuples(graph);
    torch::jit::EliminateDeadCode(graph);
    const auto inputs = graph->inputs();
    if (inputs.size() != 2) throw none("it takes ", inputs.size() - 1, " inputs, not one");
    set(inputs[1], Ours{0});
    for (Node* node : graph->nodes()) visit(node);
    const auto outputs = graph->outputs();
    if (outputs.size() != 1) throw none("it returns ", outputs.size(), " values, not one");
    const int output = tensor(outputs[0]);
    Imported out;
    out.graph = b_.finish(output, default_layer_);
    out.state = std::move(state_);
    return out;
  }

  // ---- what handlers ask for

  const Item& item(const Value* value) const {
    const auto found = items_.find(value);
    if (found == items_.end()) throw none("%", value->debugName(), " is of a kind that has no counterpart");
    return found->second;
  }
  const Item& in(const Node* node, size_t i) const { return item(node->inputs().at(i)); }
  bool is_none(const Node* node, size_t i) const {
    return i >= node->inputs().size() || std::holds_alternative<std::monostate>(in(node, i));
  }
  void set(const Value* value, Item item) { items_[value] = std::move(item); }
  void out(const Node* node, int id) { set(node->output(), Ours{id}); }

  // A value of ours; constants become one with as many axes as `like`.
  int tensor(const Value* value) {
    const auto* ours = std::get_if<Ours>(&item(value));
    if (ours == nullptr) throw none("%", value->debugName(), " is not a tensor that depends on the input");
    return ours->id;
  }
  int in_tensor(const Node* node, size_t i) { return tensor(node->inputs().at(i)); }
  const at::Tensor* constant(const Node* node, size_t i) const {
    return std::get_if<at::Tensor>(&in(node, i));
  }
  const at::Tensor& want_constant(const Node* node, size_t i) const {
    const at::Tensor* t = constant(node, i);
    if (t == nullptr) throw none(what(node), ": a weight that is not constant");
    return *t;
  }
  // A value of ours with the rank of rows of `rank` axes, whatever it is.
  int operand(const Node* node, size_t i, size_t rank) {
    if (const at::Tensor* t = constant(node, i)) return stored(*t, rank);
    return in_tensor(node, i);
  }

  int64_t integer(const Node* node, size_t i) const { return integer(in(node, i), node); }
  int64_t integer(const Item& item, const Node* node) const {
    if (const auto* n = std::get_if<int64_t>(&item)) return *n;
    if (std::holds_alternative<Batch>(item)) throw none(what(node), " depends on the number of rows");
    throw none(what(node), ": an argument that is not a constant integer");
  }
  double number(const Node* node, size_t i) const {
    const Item& item = in(node, i);
    if (const auto* n = std::get_if<int64_t>(&item)) return static_cast<double>(*n);
    if (const auto* x = std::get_if<double>(&item)) return *x;
    throw none(what(node), ": an argument that is not a constant number");
  }
  bool flag(const Node* node, size_t i, bool otherwise = false) const {
    if (is_none(node, i)) return otherwise;
    if (const auto* b = std::get_if<bool>(&in(node, i))) return *b;
    throw none(what(node), ": an argument that is not a constant truth value");
  }
  std::string word(const Node* node, size_t i) const {
    if (const auto* s = std::get_if<std::string>(&in(node, i))) return *s;
    throw none(what(node), ": an argument that is not a constant string");
  }
  const List& list(const Node* node, size_t i) const {
    if (const auto* l = std::get_if<List>(&in(node, i))) return *l;
    throw none(what(node), ": an argument that is not a list");
  }
  std::vector<int64_t> integers(const Node* node, size_t i) const {
    std::vector<int64_t> out;
    for (const Item& item : list(node, i)) out.push_back(integer(item, node));
    return out;
  }
  std::array<int64_t, 2> pair(const Node* node, size_t i) const {
    const std::vector<int64_t> all = integers(node, i);
    if (all.size() != 1 && all.size() != 2) throw none(what(node), ": not of two dimensions");
    return {all.front(), all.back()};
  }
  // An axis of rows; the batch is none.
  int64_t axis_at(const Node* node, size_t i, size_t rank) const {
    return axis(node, integer(node, i), rank);
  }
  int64_t axis(const Node* node, int64_t dim, size_t rank) const {
    if (dim < 0) dim += static_cast<int64_t>(rank) + 1;
    if (dim < 1 || dim > static_cast<int64_t>(rank)) throw none(what(node), " along the axis of the rows");
    return dim - 1;
  }

  void visit(Node* node);
  const Shape& shape(int id) const { return b_.shape(id); }
  static std::string what(const Node* node) { return node->kind().toQualString(); }

  // ---- building

  // A name for an op: the module's where its weight tells, else the kind's with a number.
  std::string name_of(const std::string& kind) { return fresh(kind + "_" + std::to_string(++counts_[kind])); }
  std::string fresh(const std::string& name) {
    std::string unique = name;
    for (int i = 2; !names_.insert(unique).second; ++i) unique = name + "_" + std::to_string(i);
    return unique;
  }
  std::string module_of(const at::Tensor& weight, const std::string& kind) {
    const std::string name = known_name(weight);
    const size_t dot = name.rfind('.');
    return name.empty() || dot == std::string::npos ? name_of(kind) : fresh(name.substr(0, dot));
  }

  int declare(const at::Tensor& value, const std::string& otherwise) {
    std::string name = known_name(value);
    if (name.empty()) name = fresh(otherwise);
    const auto known = declared_.find(name);
    if (known != declared_.end()) return known->second;
    const int id = b_.declare({name, value.sizes().vec(), /*buffer=*/!value.requires_grad()});
    declared_[name] = id;
    state_.emplace_back(name, value.detach());
    return id;
  }

  int add(OpKind kind, const std::string& name, std::vector<int> inputs, const Attributes& attributes,
          std::vector<int> parameters = {}) {
    const int id = b_.op(kind, name, std::move(inputs), attributes, std::move(parameters));
    const Shape& made = shape(id);
    if (made.size() == 3 && made[1] * made[2] > 1) default_layer_ = name;
    return id;
  }
  int add(OpKind kind, std::vector<int> inputs, const Attributes& attributes = {}) {
    return add(kind, name_of(op_definition(kind).name), std::move(inputs), attributes);
  }
  int reshaped(int x, const Shape& to) {
    if (shape(x) == to) return x;
    Attributes a;
    a.shape = to;
    return add(OpKind::kReshape, {x}, a);
  }
  // A constant as a value: axes of size 1 are put before it, or its batch of one is dropped.
  int stored(const at::Tensor& value, size_t rank) {
    Shape sizes = value.sizes().vec();
    if (sizes.size() == rank + 1 && sizes.front() == 1) sizes.erase(sizes.begin());
    if (sizes.size() > rank)
      throw none("a constant of shape ", value.sizes(), " beside rows of ", rank, " axes");
    sizes.insert(sizes.begin(), rank - sizes.size(), 1);
    Attributes a;
    a.shape = sizes;
    const int parameter = declare(value, "constant");
    return add(OpKind::kParameter, fresh(state_name(parameter) + ".value"), {}, a, {parameter});
  }

 private:
  // The original's name of a tensor that shares its memory.
  std::string known_name(const at::Tensor& value) const {
    for (const auto& [name, tensor] : named_) {
      if (tensor.data_ptr() == value.data_ptr() && tensor.sizes() == value.sizes() &&
          tensor.strides() == value.strides() && tensor.numel() > 0) {
        return name;
      }
    }
    return "";
  }
  std::string state_name(int parameter) const {
    for (const auto& [name, id] : declared_) {
      if (id == parameter) return name;
    }
    return "constant";
  }

  GraphBuilder b_;
  const std::vector<std::pair<std::string, at::Tensor>>& named_;
  std::unordered_map<const Value*, Item> items_;
  std::map<std::string, int> counts_, declared_;
  std::set<std::string> names_;
  std::vector<std::pair<std::string, at::Tensor>> state_;
  std::string default_layer_;
};

using Handler = void (*)(Importer&, Node*);

Item item_of(const c10::IValue& value) {
  if (value.isTensor()) return value.toTensor();
  if (value.isInt()) return value.toInt();
  if (value.isDouble()) return value.toDouble();
  if (value.isBool()) return value.toBool();
  if (value.isString()) return value.toStringRef();
  if (value.isDevice()) return std::string("device");
  if (value.isList() || value.isTuple()) {
    List out;
    if (value.isTuple()) {
      for (const c10::IValue& element : value.toTupleRef().elements()) out.push_back(item_of(element));
    } else {
      for (const c10::IValue& element : value.toListRef()) out.push_back(item_of(element));
    }
    return out;
  }
  return std::monostate{};
}

// ---- convolutions and products

// weight and bias of node's inputs 1 and 2.
std::vector<int> weight_and_bias(Importer& g, Node* node, const std::string& name, Attributes& a) {
  std::vector<int> parameters = {g.declare(g.want_constant(node, 1), name + ".weight")};
  a.bias = !g.is_none(node, 2);
  if (a.bias) parameters.push_back(g.declare(g.want_constant(node, 2), name + ".bias"));
  return parameters;
}

// aten::_convolution(x, weight, bias, stride, padding, dilation, transposed, output_padding, groups, ...)
// and aten::conv2d(x, weight, bias, stride, padding, dilation, groups).
void convolution(Importer& g, Node* node) {
  const bool general = node->kind() != c10::Symbol::fromQualString("aten::conv2d");
  const at::Tensor& weight = g.want_constant(node, 1);
  if (weight.dim() != 4) throw none("a convolution of ", weight.dim() - 2, " dimensions");
  const bool transposed = general && g.flag(node, 6);
  Attributes a;
  a.kernel = {weight.size(2), weight.size(3)};
  a.stride = g.pair(node, 3);
  a.dilation = g.pair(node, 5);
  a.groups = g.integer(node, general ? 8 : 6);
  if (std::holds_alternative<std::string>(g.in(node, 4))) {  // "same", "valid"
    if (g.word(node, 4) == "same") {
      for (size_t axis = 0; axis < 2; ++axis) {
        const int64_t total = a.dilation[axis] * (a.kernel[axis] - 1);
        a.padding[axis] = total / 2;
        a.padding[axis + 2] = total - total / 2;
      }
    }
  } else {
    const auto padding = g.pair(node, 4);
    a.padding = {padding[0], padding[1], padding[0], padding[1]};
  }
  a.channels = transposed ? weight.size(1) * a.groups : weight.size(0);
  if (transposed) a.output_padding = g.pair(node, 7);
  const OpKind kind = transposed ? OpKind::kConvTranspose2d : OpKind::kConv2d;
  const std::string name = g.module_of(weight, op_definition(kind).name);
  const std::vector<int> parameters = weight_and_bias(g, node, name, a);
  g.out(node, g.add(kind, name, {g.in_tensor(node, 0)}, a, parameters));
}

void linear_of(Importer& g, Node* node, int x, const at::Tensor& weight, const at::Tensor* bias) {
  Attributes a;
  a.channels = weight.size(0);
  a.bias = bias != nullptr;
  const std::string name = g.module_of(weight, "linear");
  std::vector<int> parameters = {g.declare(weight, name + ".weight")};
  if (bias != nullptr) parameters.push_back(g.declare(*bias, name + ".bias"));
  g.out(node, g.add(OpKind::kLinear, name, {x}, a, parameters));
}

void linear(Importer& g, Node* node) {
  linear_of(g, node, g.in_tensor(node, 0), g.want_constant(node, 1),
            g.is_none(node, 2) ? nullptr : &g.want_constant(node, 2));
}

// aten::addmm(bias, x, weight transposed, beta, alpha)
void addmm(Importer& g, Node* node) {
  if (g.number(node, 3) != 1 || g.number(node, 4) != 1) throw none("aten::addmm with factors");
  linear_of(g, node, g.in_tensor(node, 1), g.want_constant(node, 2).t(), &g.want_constant(node, 0));
}

void matmul(Importer& g, Node* node) {
  const int x = g.in_tensor(node, 0);
  if (const at::Tensor* weight = g.constant(node, 1)) {
    if (weight->dim() != 2) throw none("aten::matmul by a constant of ", weight->dim(), " axes");
    return linear_of(g, node, x, weight->t(), nullptr);
  }
  g.out(node, g.add(OpKind::kMatmul, {x, g.in_tensor(node, 1)}));
}

// aten::scaled_dot_product_attention(q, k, v, mask, dropout, causal, scale, enable_gqa)
void attention(Importer& g, Node* node) {
  if (!g.is_none(node, 3) || g.number(node, 4) != 0 || g.flag(node, 5) || g.flag(node, 7)) {
    throw none("attention with a mask, dropout or groups");
  }
  const int query = g.in_tensor(node, 0);
  Attributes scale;
  scale.factor =
      g.is_none(node, 6) ? 1 / std::sqrt(static_cast<double>(g.shape(query).back())) : g.number(node, 6);
  Attributes transposed, last;
  transposed.transpose = true;
  last.axis = static_cast<int64_t>(g.shape(query).size()) - 1;
  int y = g.add(OpKind::kAffine, {query}, scale);
  y = g.add(OpKind::kMatmul, {y, g.in_tensor(node, 1)}, transposed);
  y = g.add(OpKind::kSoftmax, {y}, last);
  g.out(node, g.add(OpKind::kMatmul, {y, g.in_tensor(node, 2)}));
}

// ---- norms

// aten::batch_norm(x, weight, bias, mean, variance, training, momentum, epsilon, cudnn)
void batch_norm(Importer& g, Node* node) {
  if (g.flag(node, 5)) throw none("aten::batch_norm with the batch's own statistics");
  const at::Tensor& mean = g.want_constant(node, 3);
  const std::string name = g.module_of(mean, "batch_norm");
  const auto or_constant = [&](size_t i, double otherwise) {
    return g.is_none(node, i) ? at::full_like(mean, otherwise) : g.want_constant(node, i);
  };
  Attributes a;
  a.momentum = g.number(node, 6);
  a.epsilon = g.number(node, 7);
  g.out(node, g.add(OpKind::kBatchNorm, name, {g.in_tensor(node, 0)}, a,
                    {g.declare(or_constant(1, 1), name + ".weight"),
                     g.declare(or_constant(2, 0), name + ".bias"), g.declare(mean, name + ".running_mean"),
                     g.declare(g.want_constant(node, 4), name + ".running_var")}));
}

// aten::layer_norm(x, shape, weight, bias, epsilon, cudnn)
void layer_norm(Importer& g, Node* node) {
  const std::vector<int64_t> sizes = g.integers(node, 1);
  const at::Tensor weight = g.is_none(node, 2) ? at::ones(sizes) : g.want_constant(node, 2);
  const at::Tensor bias = g.is_none(node, 3) ? at::zeros(sizes) : g.want_constant(node, 3);
  const std::string name = g.module_of(weight, "layer_norm");
  Attributes a;
  a.dimensions = static_cast<int64_t>(sizes.size());
  a.epsilon = g.number(node, 4);
  g.out(node, g.add(OpKind::kLayerNorm, name, {g.in_tensor(node, 0)}, a,
                    {g.declare(weight, name + ".weight"), g.declare(bias, name + ".bias")}));
}

// aten::group_norm(x, groups, weight, bias, epsilon, cudnn)
void group_norm(Importer& g, Node* node) {
  const int x = g.in_tensor(node, 0);
  const int64_t channels = g.shape(x).at(0);
  const at::Tensor weight = g.is_none(node, 2) ? at::ones({channels}) : g.want_constant(node, 2);
  const at::Tensor bias = g.is_none(node, 3) ? at::zeros({channels}) : g.want_constant(node, 3);
  const std::string name = g.module_of(weight, "group_norm");
  Attributes a;
  a.groups = g.integer(node, 1);
  a.epsilon = g.number(node, 4);
  g.out(node, g.add(OpKind::kGroupNorm, name, {x}, a,
                    {g.declare(weight, name + ".weight"), g.declare(bias, name + ".bias")}));
}

// ---- activations

template <OpKind kind>
void activation(Importer& g, Node* node) {
  g.out(node, g.add(kind, {g.in_tensor(node, 0)}));
}

void clamp(Importer& g, Node* node) {  // hardtanh and clamp: between 0 and 6 alone
  if (g.is_none(node, 1) || g.number(node, 1) != 0) throw none(g.what(node), ": not between 0 and 6");
  if (g.is_none(node, 2)) return activation<OpKind::kRelu>(g, node);
  if (g.number(node, 2) != 6) throw none(g.what(node), ": not between 0 and 6");
  activation<OpKind::kRelu6>(g, node);
}

void leaky_relu(Importer& g, Node* node) {
  Attributes a;
  a.slope = g.number(node, 1);
  g.out(node, g.add(OpKind::kLeakyRelu, {g.in_tensor(node, 0)}, a));
}

void elu(Importer& g, Node* node) {
  if (g.number(node, 2) != 1 || g.number(node, 3) != 1) throw none("aten::elu with scales");
  Attributes a;
  a.slope = g.number(node, 1);
  g.out(node, g.add(OpKind::kElu, {g.in_tensor(node, 0)}, a));
}

void gelu(Importer& g, Node* node) {
  Attributes a;
  a.approximate = !g.is_none(node, 1) && g.word(node, 1) == "tanh";
  g.out(node, g.add(OpKind::kGelu, {g.in_tensor(node, 0)}, a));
}

void softmax(Importer& g, Node* node) {
  const int x = g.in_tensor(node, 0);
  Attributes a;
  a.axis = g.axis_at(node, 1, g.shape(x).size());
  g.out(node, g.add(OpKind::kSoftmax, {x}, a));
}

void dropout(Importer& g, Node* node) {
  if (g.flag(node, 2)) throw none("dropout that is always on");
  Attributes a;
  a.probability = g.number(node, 1);
  g.out(node, g.add(OpKind::kDropout, {g.in_tensor(node, 0)}, a));
}

// ---- pooling

// aten::max_pool2d(x, kernel, stride, padding, dilation, ceil)
// aten::avg_pool2d(x, kernel, stride, padding, ceil, count_padding, divisor)
template <OpKind kind>
void pool(Importer& g, Node* node) {
  const bool largest = kind == OpKind::kMaxPool;
  Attributes a;
  a.kernel = g.pair(node, 1);
  a.stride = g.list(node, 2).empty() ? a.kernel : g.pair(node, 2);
  const auto padding = g.pair(node, 3);
  a.padding = {padding[0], padding[1], padding[0], padding[1]};
  if (largest) a.dilation = g.pair(node, 4);
  a.ceil = g.flag(node, largest ? 5 : 4);
  if (!largest) {
    a.count_padding = g.flag(node, 5, true);
    if (!g.is_none(node, 6)) throw none("aten::avg_pool2d with a divisor");
  }
  g.out(node, g.add(kind, {g.in_tensor(node, 0)}, a));
}

void adaptive_avg_pool(Importer& g, Node* node) {
  Attributes a;
  a.output = g.pair(node, 1);
  g.out(node, g.add(OpKind::kAdaptiveAvgPool, {g.in_tensor(node, 0)}, a));
}

void mean(Importer& g, Node* node) {
  const int x = g.in_tensor(node, 0);
  Attributes a;
  for (int64_t dim : g.integers(node, 1)) a.axes.push_back(g.axis(node, dim, g.shape(x).size()));
  a.keep = g.flag(node, 2);
  g.out(node, g.add(OpKind::kMean, {x}, a));
}

// aten::upsample_nearest2d(x, size, scales...), aten::upsample_bilinear2d(x, size, align_corners, scales...)
template <bool bilinear>
void upsample(Importer& g, Node* node) {
  const int x = g.in_tensor(node, 0);
  if (g.shape(x).size() != 3) throw none(g.what(node), " of what is no image");
  Attributes a;
  a.bilinear = bilinear;
  if (bilinear) a.align_corners = g.flag(node, 2);
  if (!g.is_none(node, 1)) {
    a.output = g.pair(node, 1);
  } else {
    const List& scales = g.list(node, bilinear ? 3 : 2);
    for (size_t i = 0; i < 2; ++i) {
      const auto* scale = std::get_if<double>(&scales.at(i));
      if (scale == nullptr) throw none(g.what(node), " without a size");
      a.output[i] = static_cast<int64_t>(std::floor(static_cast<double>(g.shape(x)[i + 1]) * *scale));
    }
  }
  g.out(node, g.add(OpKind::kUpsample, {x}, a));
}

// ---- arithmetic

bool is_number(const Item& item) {
  return std::holds_alternative<int64_t>(item) || std::holds_alternative<double>(item);
}

void affine(Importer& g, Node* node, int x, double factor, double shift) {
  Attributes a;
  a.factor = factor;
  a.shift = shift;
  g.out(node, g.add(OpKind::kAffine, {x}, a));
}

// The number of a constant tensor without axes, as traced files hold scalars.
std::optional<double> scalar(Importer& g, Node* node, size_t i) {
  const Item& item = g.in(node, i);
  if (is_number(item)) return g.number(node, i);
  if (const auto* t = std::get_if<at::Tensor>(&item); t != nullptr && t->dim() == 0) return t->item<double>();
  return std::nullopt;
}

// Sizes are computed with too: whole numbers only, and without the batch.
bool integers_only(Importer& g, Node* node) {
  const auto whole = [&](size_t i) {
    const auto* t = std::get_if<at::Tensor>(&g.in(node, i));
    return std::holds_alternative<int64_t>(g.in(node, i)) ||
           (t != nullptr && t->dim() == 0 && !t->is_floating_point());
  };
  return whole(0) && whole(1);
}

template <OpKind kind>
void arithmetic(Importer& g, Node* node) {
  constexpr bool sum = kind == OpKind::kAdd || kind == OpKind::kSub;
  if (sum && node->inputs().size() > 2 && g.number(node, 2) != 1) throw none(g.what(node), " with a factor");
  if (integers_only(g, node)) {
    const auto x = static_cast<int64_t>(*scalar(g, node, 0)), y = static_cast<int64_t>(*scalar(g, node, 1));
    if (kind == OpKind::kDiv && (y == 0 || x % y != 0)) throw none(g.what(node), " of sizes");
    g.set(node->output(), kind == OpKind::kAdd   ? x + y
                          : kind == OpKind::kSub ? x - y
                          : kind == OpKind::kMul ? x * y
                                                 : x / y);
    return;
  }
  const bool first = std::holds_alternative<Ours>(g.in(node, 0));
  const size_t ours = first ? 0 : 1;
  if (const auto number = scalar(g, node, 1 - ours)) {
    const int x = g.in_tensor(node, ours);
    switch (kind) {
      case OpKind::kAdd:
        return affine(g, node, x, 1, *number);
      case OpKind::kSub:
        return affine(g, node, x, first ? 1 : -1, first ? -*number : *number);
      case OpKind::kMul:
        return affine(g, node, x, *number, 0);
      default:
        if (!first) throw none(g.what(node), " of a number by a tensor");
        return affine(g, node, x, 1 / *number, 0);
    }
  }
  const size_t rank = g.shape(g.in_tensor(node, ours)).size();
  int x = g.operand(node, 0, rank), y = g.operand(node, 1, rank);
  if (g.shape(x).size() != g.shape(y).size()) throw none(g.what(node), " of rows with different axes");
  g.out(node, g.add(kind, {x, y}));
}

// ---- moving values

void concat_values(Importer& g, Node* node) {
  const List& parts = g.list(node, 0);
  size_t rank = 0;
  for (const Item& part : parts) {
    if (const auto* ours = std::get_if<Ours>(&part)) rank = g.shape(ours->id).size();
  }
  std::vector<int> values;
  for (const Item& part : parts) {
    if (const auto* ours = std::get_if<Ours>(&part)) values.push_back(ours->id);
    if (const auto* t = std::get_if<at::Tensor>(&part)) values.push_back(g.stored(*t, rank));
  }
  if (values.size() != parts.size()) throw none("aten::cat of what is no tensor");
  Attributes a;
  a.axis = g.axis_at(node, 1, rank);
  g.out(node, g.add(OpKind::kConcat, values, a));
}

void flatten(Importer& g, Node* node) {
  const int x = g.in_tensor(node, 0);
  const size_t rank = g.shape(x).size();
  const int64_t from = g.axis_at(node, 1, rank), to = g.axis_at(node, 2, rank);
  Shape out = g.shape(x);
  const auto begin = out.begin() + from, end = out.begin() + to + 1;
  const int64_t size = std::accumulate(begin, end, int64_t{1}, std::multiplies<>());
  *begin = size;
  out.erase(begin + 1, end);
  if (out.size() == 1) return g.out(node, g.shape(x) == out ? x : g.add(OpKind::kFlatten, {x}));
  g.out(node, g.reshaped(x, out));
}

// view, reshape: the first size keeps the batch, as its size or as -1.
void reshape(Importer& g, Node* node) {
  const int x = g.in_tensor(node, 0);
  const List& sizes = g.list(node, 1);
  if (sizes.empty()) throw none(g.what(node), " to no axes");
  Shape out;
  int64_t known = 1, open = -1;
  for (size_t i = 1; i < sizes.size(); ++i) {
    const int64_t size = g.integer(sizes[i], node);
    if (size == -1) open = static_cast<int64_t>(i) - 1;
    if (size != -1) known *= size;
    out.push_back(size);
  }
  const int64_t elements = c10::multiply_integers(g.shape(x));
  if (open >= 0 && known > 0) out[static_cast<size_t>(open)] = elements / known;
  const bool keeps = std::holds_alternative<Batch>(sizes[0]) ||
                     (std::holds_alternative<int64_t>(sizes[0]) && std::get<int64_t>(sizes[0]) == -1);
  if (!keeps || out.empty() || c10::multiply_integers(out) != elements) {
    throw none(g.what(node), " that does not keep rows apart");
  }
  g.out(node, g.reshaped(x, out));
}

void permute_to(Importer& g, Node* node, int x, const std::vector<int64_t>& axes) {
  Attributes a;
  a.axes = axes;
  g.out(node, g.add(OpKind::kPermute, {x}, a));
}

void permute(Importer& g, Node* node) {
  const int x = g.in_tensor(node, 0);
  const std::vector<int64_t> dims = g.integers(node, 1);
  if (dims.empty() || dims[0] != 0) throw none("aten::permute of the axis of the rows");
  std::vector<int64_t> axes;
  for (size_t i = 1; i < dims.size(); ++i) axes.push_back(g.axis(node, dims[i], g.shape(x).size()));
  permute_to(g, node, x, axes);
}

void transpose(Importer& g, Node* node) {
  if (const at::Tensor* t = g.constant(node, 0)) {
    return g.set(node->output(), t->transpose(g.integer(node, 1), g.integer(node, 2)));
  }
  const int x = g.in_tensor(node, 0);
  const size_t rank = g.shape(x).size();
  std::vector<int64_t> axes(rank);
  std::iota(axes.begin(), axes.end(), 0);
  std::swap(axes[static_cast<size_t>(g.axis_at(node, 1, rank))],
            axes[static_cast<size_t>(g.axis_at(node, 2, rank))]);
  permute_to(g, node, x, axes);
}

void unsqueeze(Importer& g, Node* node) {
  if (const at::Tensor* t = g.constant(node, 0)) {
    return g.set(node->output(), t->unsqueeze(g.integer(node, 1)));
  }
  const int x = g.in_tensor(node, 0);
  Shape out = g.shape(x);
  out.insert(out.begin() + g.axis_at(node, 1, out.size() + 1), 1);
  g.out(node, g.reshaped(x, out));
}

void squeeze(Importer& g, Node* node) {
  if (node->inputs().size() < 2) throw none("aten::squeeze without an axis, which may drop a batch of one");
  const int x = g.in_tensor(node, 0);
  Shape out = g.shape(x);
  std::vector<int64_t> dims =
      std::holds_alternative<List>(g.in(node, 1)) ? g.integers(node, 1) : std::vector{g.integer(node, 1)};
  std::set<int64_t> gone;
  for (int64_t dim : dims) gone.insert(g.axis(node, dim, out.size()));
  for (auto axis = gone.rbegin(); axis != gone.rend(); ++axis) {
    if (out[static_cast<size_t>(*axis)] == 1) out.erase(out.begin() + *axis);
  }
  g.out(node, g.reshaped(x, out));
}

int sliced(Importer& g, int x, int64_t axis, int64_t begin, int64_t end, int64_t step = 1) {
  const int64_t size = g.shape(x)[static_cast<size_t>(axis)];
  const auto within = [&](int64_t at) { return std::clamp<int64_t>(at < 0 ? at + size : at, 0, size); };
  Attributes a;
  a.axis = axis;
  a.begin = within(begin);
  a.end = within(end);
  a.step = step;
  if (a.begin == 0 && a.end == size && step == 1) return x;
  return g.add(OpKind::kSlice, {x}, a);
}

void select(Importer& g, Node* node) {
  const int x = g.in_tensor(node, 0);
  Shape out = g.shape(x);
  const int64_t axis = g.axis_at(node, 1, out.size());
  int64_t at = g.integer(node, 2);
  if (at < 0) at += out[static_cast<size_t>(axis)];
  out.erase(out.begin() + axis);
  g.out(node, g.reshaped(sliced(g, x, axis, at, at + 1), out));
}

// aten::slice(x, dim, begin, end, step)
void slice(Importer& g, Node* node) {
  const int x = g.in_tensor(node, 0);
  const int64_t begin = g.is_none(node, 2) ? 0 : g.integer(node, 2);
  const int64_t end = g.is_none(node, 3) ? std::numeric_limits<int64_t>::max() : g.integer(node, 3);
  const int64_t dim = g.integer(node, 1);
  if (dim == 0 && begin == 0 && end == std::numeric_limits<int64_t>::max() && g.integer(node, 4) == 1) {
    return g.out(node, x);  // all rows
  }
  g.out(node, sliced(g, x, g.axis(node, dim, g.shape(x).size()), begin, end, g.integer(node, 4)));
}

void parts(Importer& g, Node* node, const std::vector<int64_t>& sizes) {
  const int x = g.in_tensor(node, 0);
  const int64_t axis = g.axis_at(node, 2, g.shape(x).size());
  List out;
  int64_t begin = 0;
  for (int64_t size : sizes) {
    out.push_back(Ours{sliced(g, x, axis, begin, begin + size)});
    begin += size;
  }
  g.set(node->output(), out);
}

std::vector<int64_t> pieces(int64_t whole, int64_t size) {
  std::vector<int64_t> out;
  for (int64_t begin = 0; size > 0 && begin < whole; begin += size)
    out.push_back(std::min(size, whole - begin));
  return out;
}

void chunk(Importer& g, Node* node) {
  const int x = g.in_tensor(node, 0);
  const int64_t whole = g.shape(x)[static_cast<size_t>(g.axis_at(node, 2, g.shape(x).size()))];
  const int64_t count = g.integer(node, 1);
  if (count < 1) throw none("aten::chunk into ", count);
  parts(g, node, pieces(whole, (whole + count - 1) / count));
}

void split(Importer& g, Node* node) {
  if (std::holds_alternative<List>(g.in(node, 1))) return parts(g, node, g.integers(node, 1));
  const int x = g.in_tensor(node, 0);
  const int64_t whole = g.shape(x)[static_cast<size_t>(g.axis_at(node, 2, g.shape(x).size()))];
  parts(g, node, pieces(whole, g.integer(node, 1)));
}

// aten::constant_pad_nd(x, padding, value), aten::pad(x, padding, mode, value)
void pad(Importer& g, Node* node) {
  const bool named = node->kind() == c10::Symbol::fromQualString("aten::pad");
  const size_t value = named ? 3 : 2;
  if ((named && g.word(node, 2) != "constant") || (!g.is_none(node, value) && g.number(node, value) != 0)) {
    throw none("padding with anything but zeros");
  }
  const std::vector<int64_t> p = g.integers(node, 1);
  if (p.size() != 4) throw none("padding of ", p.size() / 2, " axes");
  Attributes a;
  a.padding = {p[2], p[0], p[3], p[1]};
  g.out(node, g.add(OpKind::kPad, {g.in_tensor(node, 0)}, a));
}

void same(Importer& g, Node* node) { g.set(node->output(), g.in(node, 0)); }

// A constant of one row, or of sizes of 1, that is spread over the batch.
void expand(Importer& g, Node* node) {
  const at::Tensor* t = g.constant(node, 0);
  const List& sizes = g.list(node, 1);
  if (t == nullptr || static_cast<size_t>(t->dim()) != sizes.size() || t->size(0) != 1) {
    throw none(g.what(node), " of anything but a constant row");
  }
  for (size_t i = 1; i < sizes.size(); ++i) {
    const int64_t size = g.integer(sizes[i], node);
    if (size != -1 && size != t->size(static_cast<int64_t>(i))) throw none(g.what(node), " of axes of a row");
  }
  g.set(node->output(), *t);
}

// ---- sizes and lists

Item size_at(Importer& g, Node* node, int64_t dim) {
  const Shape& row = g.shape(g.in_tensor(node, 0));
  if (dim < 0) dim += static_cast<int64_t>(row.size()) + 1;
  if (dim == 0) return Batch{};
  return row.at(static_cast<size_t>(dim) - 1);
}

void size(Importer& g, Node* node) {
  if (node->inputs().size() > 1) return g.set(node->output(), size_at(g, node, g.integer(node, 1)));
  List all;
  const auto rank = static_cast<int64_t>(g.shape(g.in_tensor(node, 0)).size());
  for (int64_t dim = 0; dim <= rank; ++dim) all.push_back(size_at(g, node, dim));
  g.set(node->output(), all);
}

void list_construct(Importer& g, Node* node) {
  List all;
  for (size_t i = 0; i < node->inputs().size(); ++i) all.push_back(g.in(node, i));
  g.set(node->output(), all);
}

void list_unpack(Importer& g, Node* node) {
  const List all = g.list(node, 0);
  if (all.size() != node->outputs().size()) throw none("a list of ", all.size(), " taken for another");
  for (size_t i = 0; i < all.size(); ++i) g.set(node->outputs()[i], all[i]);
}

void list_item(Importer& g, Node* node) {
  const List& all = g.list(node, 0);
  int64_t at = g.integer(node, 1);
  if (at < 0) at += static_cast<int64_t>(all.size());
  g.set(node->output(), all.at(static_cast<size_t>(at)));
}

void length(Importer& g, Node* node) {
  if (const auto* ours = std::get_if<Ours>(&g.in(node, 0))) {  // len(x) is the number of rows
    if (node->kind() == c10::Symbol::fromQualString("aten::len")) return g.set(node->output(), Batch{});
    return g.set(node->output(), static_cast<int64_t>(g.shape(ours->id).size()) + 1);
  }
  g.set(node->output(), static_cast<int64_t>(g.list(node, 0).size()));
}

// ---- decisions that a scripted module makes on shapes

template <typename Compare>
void compare(Importer& g, Node* node) {
  g.set(node->output(), Compare()(g.number(node, 0), g.number(node, 1)));
}

template <bool wanted>
void is_same(Importer& g, Node* node) {  // x is None, x is not None
  if (!g.is_none(node, 0) && !g.is_none(node, 1)) throw none(g.what(node), " of anything but None");
  g.set(node->output(), (g.is_none(node, 0) && g.is_none(node, 1)) == wanted);
}

void negate(Importer& g, Node* node) { g.set(node->output(), !g.flag(node, 0)); }

// Only the block that is taken; its values are known by then.
void decide(Importer& g, Node* node) {
  const torch::jit::Block* block = node->blocks().at(g.flag(node, 0) ? 0 : 1);
  for (Node* inner : const_cast<torch::jit::Block*>(block)->nodes()) g.visit(inner);
  for (size_t i = 0; i < node->outputs().size(); ++i) {
    g.set(node->outputs()[i], g.item(block->outputs()[i]));
  }
}

const std::map<std::string, Handler>& handlers() {
  using K = OpKind;
  static const std::map<std::string, Handler> table = {
      {"aten::_convolution", convolution},
      {"aten::convolution", convolution},
      {"aten::conv2d", convolution},
      {"aten::linear", linear},
      {"aten::addmm", addmm},
      {"aten::matmul", matmul},
      {"aten::mm", matmul},
      {"aten::bmm", matmul},
      {"aten::scaled_dot_product_attention", attention},
      {"aten::batch_norm", batch_norm},
      {"aten::layer_norm", layer_norm},
      {"aten::group_norm", group_norm},
      {"aten::relu", activation<K::kRelu>},
      {"aten::relu6", activation<K::kRelu6>},
      {"aten::silu", activation<K::kSilu>},
      {"aten::sigmoid", activation<K::kSigmoid>},
      {"aten::tanh", activation<K::kTanh>},
      {"aten::hardswish", activation<K::kHardswish>},
      {"aten::hardsigmoid", activation<K::kHardsigmoid>},
      {"aten::hardtanh", clamp},
      {"aten::clamp", clamp},
      {"aten::leaky_relu", leaky_relu},
      {"aten::elu", elu},
      {"aten::gelu", gelu},
      {"aten::softmax", softmax},
      {"aten::dropout", dropout},
      {"aten::feature_dropout", dropout},
      {"aten::max_pool2d", pool<K::kMaxPool>},
      {"aten::avg_pool2d", pool<K::kAvgPool>},
      {"aten::adaptive_avg_pool2d", adaptive_avg_pool},
      {"aten::mean", mean},
      {"aten::upsample_nearest2d", upsample<false>},
      {"aten::upsample_bilinear2d", upsample<true>},
      {"aten::add", arithmetic<K::kAdd>},
      {"aten::sub", arithmetic<K::kSub>},
      {"aten::mul", arithmetic<K::kMul>},
      {"aten::div", arithmetic<K::kDiv>},
      {"aten::floordiv", arithmetic<K::kDiv>},
      {"aten::floor_divide", arithmetic<K::kDiv>},
      {"aten::cat", concat_values},
      {"aten::flatten", flatten},
      {"aten::view", reshape},
      {"aten::reshape", reshape},
      {"aten::permute", permute},
      {"aten::transpose", transpose},
      {"aten::unsqueeze", unsqueeze},
      {"aten::squeeze", squeeze},
      {"aten::select", select},
      {"aten::slice", slice},
      {"aten::chunk", chunk},
      {"aten::split", split},
      {"aten::split_with_sizes", split},
      {"aten::constant_pad_nd", pad},
      {"aten::pad", pad},
      {"aten::contiguous", same},
      {"aten::detach", same},
      {"aten::clone", same},
      {"aten::alias", same},
      {"aten::Int", same},
      {"aten::ScalarImplicit", same},
      {"prim::NumToTensor", same},
      {"aten::expand", expand},
      {"aten::size", size},
      {"aten::len", length},
      {"aten::dim", length},
      {"aten::eq", compare<std::equal_to<>>},
      {"aten::ne", compare<std::not_equal_to<>>},
      {"aten::lt", compare<std::less<>>},
      {"aten::le", compare<std::less_equal<>>},
      {"aten::gt", compare<std::greater<>>},
      {"aten::ge", compare<std::greater_equal<>>},
      {"aten::__is__", is_same<true>},
      {"aten::__isnot__", is_same<false>},
      {"aten::__not__", negate},
      {"prim::If", decide},
      {"prim::ListConstruct", list_construct},
      {"prim::ListUnpack", list_unpack},
      {"prim::TupleConstruct", list_construct},
      {"prim::TupleUnpack", list_unpack},
      {"aten::__getitem__", list_item},
  };
  return table;
}

void Importer::visit(Node* node) {
  if (node->kind() == torch::jit::prim::Constant) {
    const auto value = torch::jit::toIValue(node->output());
    set(node->output(), value ? item_of(*value) : Item());
    return;
  }
  std::string kind = what(node);
  const bool in_place = kind.ends_with("_") && !kind.ends_with("__");
  if (in_place) kind.pop_back();
  const auto found = handlers().find(kind);
  if (found == handlers().end()) throw none("its ", what(node), " has no counterpart");
  found->second(*this, node);
  // Whoever reads the input later sees what was written into it.
  if (in_place) set(node->inputs().at(0), item(node->output()));
}

}  // namespace

Imported import_script(const torch::jit::Module& frozen,
                       const std::vector<std::pair<std::string, at::Tensor>>& named, const Shape& input) {
  return Importer(named, input).run(frozen);
}

}  // namespace assay
