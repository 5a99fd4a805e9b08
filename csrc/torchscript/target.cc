// The graph being built: names, parameters, and where the rows are.
#include <algorithm>
#include <numeric>

#include "graph/ops.h"
#include "torchscript/call.h"

namespace assay::script {
namespace {

int64_t product(const Shape& shape) { return c10::multiply_integers(shape); }

}  // namespace

Target::Target(const Shape& input, Named parameters, Named buffers)
    : builder_(input), own_(std::move(parameters)), trained_(own_.size()), names_{"input"} {
  own_.insert(own_.end(), buffers.begin(), buffers.end());
}

List Target::sizes(const Rows& rows) const {
  List all;
  for (int64_t size : rows.spread.value_or(shape(rows.id))) all.push_back(c10::IValue(size));
  const auto at = all.begin() + static_cast<int64_t>(rows.axis);
  const Item size = Size{rows.outer * rows.inner};
  if (rows.alone()) {
    all.insert(at, size);
  } else {
    *at = size;
  }
  return all;
}

size_t Target::row_axis(const Rows& rows, int64_t axis, const std::string& what) const {
  const int64_t all = static_cast<int64_t>(rank(rows));
  const int64_t from_begin = axis < 0 ? axis + all : axis;
  if (from_begin < 0 || from_begin >= all) throw none(what, ": axis ", axis, " of ", all);
  const auto at = static_cast<size_t>(from_begin);
  if (at == rows.axis) throw none(what, " along the axis of the rows");
  return rows.alone() && at > rows.axis ? at - 1 : at;
}

// ---- names

std::string Target::name_of(const at::Tensor& tensor) const {
  const at::Tensor* same = nullptr;
  for (const auto& [name, own] : own_) {
    if (own.is_same(tensor)) return name;
  }
  // Also what transposing twice gives back.
  for (const auto& [name, own] : own_) {
    same = &own;
    if (tensor.numel() > 0 && same->numel() == tensor.numel() && same->dtype() == tensor.dtype() &&
        same->sizes() == tensor.sizes() && same->strides() == tensor.strides() &&
        same->data_ptr() == tensor.data_ptr()) {
      return name;
    }
  }
  return "";
}

std::string Target::fresh(const std::string& name) {
  std::string unique = name;
  for (int i = 2; !names_.insert(unique).second; ++i) unique = name + "_" + std::to_string(i);
  return unique;
}

std::string Target::inside(const std::string& name) const {
  return scopes_.empty() || scopes_.back().path.empty() ? name : scopes_.back().path + "." + name;
}

int Target::declared(const at::Tensor& tensor, const std::string& otherwise) {
  if (!tensor.is_floating_point()) throw none("a constant of type ", at::toString(tensor.scalar_type()));
  std::string name = name_of(tensor);
  bool trained = false;
  if (name.empty()) {
    name = otherwise;
    const auto taken = [&] {
      return declared_.contains(name) ||
             std::any_of(own_.begin(), own_.end(), [&](const auto& entry) { return entry.first == name; });
    };
    for (int i = 2; taken(); ++i) name = otherwise + "_" + std::to_string(i);
  } else {
    trained = std::any_of(own_.begin(), own_.begin() + static_cast<int64_t>(trained_),
                          [&](const auto& entry) { return entry.first == name; });
  }
  const auto found = declared_.find(name);
  if (found != declared_.end()) return found->second;
  const int index = builder_.declare({name, tensor.sizes().vec(), /*buffer=*/!trained});
  declared_[name] = index;
  state_.emplace_back(name, tensor.detach());
  return index;
}

// ---- ops

int Target::note(int id, const std::string& name) {
  const Shape& made = shape(id);
  if (made.size() == 3 && made[1] * made[2] > 1) last_image_ = {id, name};
  return id;
}

int Target::op(OpKind kind, std::vector<int> inputs, const Attributes& attributes) {
  // A module that is one op names it: the first op of each of its calls.
  std::string name = inside(op_definition(kind).name);
  if (!scopes_.empty()) {
    Scope& scope = scopes_.back();
    if (scope.leaf && !scope.owns_tensors && !scope.path.empty() && !scope.named) name = scope.path;
    scope.named = true;
  }
  name = fresh(name);
  return note(builder_.op(kind, name, std::move(inputs), attributes, {}), name);
}

int Target::op(OpKind kind, std::vector<int> inputs, const Attributes& attributes,
               const std::vector<at::Tensor>& tensors) {
  std::string name;
  for (const at::Tensor& tensor : tensors) {
    const std::string known = name_of(tensor);
    const size_t dot = known.rfind('.');
    if (name.empty() && dot != std::string::npos) name = known.substr(0, dot);
  }
  // MultiheadAttention's in_proj_weight: not the only op of its module.
  const bool of_scope = !scopes_.empty() && scopes_.back().path == name;
  if (name.empty() || (of_scope && !scopes_.back().leaf)) name = inside(op_definition(kind).name);
  name = fresh(name);
  const OpDefinition& definition = op_definition(kind);
  const Op like{kind, name, inputs, 0, attributes, {}};
  std::vector<Shape> shapes;
  for (int input : inputs) shapes.push_back(shape(input));
  const std::vector<ParameterInfo> wanted = definition.parameters(like, shapes);
  std::vector<int> indices;
  for (size_t i = 0; i < tensors.size(); ++i)
    indices.push_back(declared(tensors[i], name + wanted.at(i).name));
  return note(builder_.op(kind, name, std::move(inputs), attributes, std::move(indices)), name);
}

int Target::value(const at::Tensor& constant, const Shape& shape) {
  Attributes a;
  a.shape = shape;
  const at::Tensor floating = constant.is_floating_point() ? constant : constant.to(at::kFloat);
  const int index = declared(floating, inside("constant"));
  std::string name = inside("constant");
  for (const auto& [known, i] : declared_) {
    if (i == index) name = known;
  }
  return builder_.op(OpKind::kParameter, fresh(name), {}, a, {index});
}

int Target::reshaped(int x, const Shape& shape) {
  if (this->shape(x) == shape) return x;
  if (shape.size() == 1) return op(OpKind::kFlatten, {x});
  Attributes a;
  a.shape = shape;
  return op(OpKind::kReshape, {x}, a);
}

// The order of elements stays, so the number of a row's elements before the axis
// of the rows stays too: exactly one of the new axes must be cut there.
Rows Target::reshaped(const Rows& rows, const List& sizes, const std::string& what) {
  const Shape from = shape(rows.id);
  const int64_t elements = product(from);
  int64_t before = rows.outer;
  for (size_t i = 0; i < rows.axis; ++i) before *= from[i];
  Shape to(sizes.size());
  std::optional<size_t> holder, open;
  int64_t known = 1;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (const auto* size = std::get_if<Size>(&sizes[i])) {
      if (holder) throw none(what, ": the number of rows comes twice");
      holder = i;
      to[i] = size->factor;
    } else {
      to[i] = integer_of(sizes[i], what);
      if (to[i] == -1) open = i;
    }
    if (to[i] != -1) known *= to[i];
  }
  if (open) {
    if (known < 1 || elements % known != 0) throw none(what, " does not keep the rows apart");
    to[*open] = elements / known;
    if (!holder) holder = open;
  }
  if (!holder || product(to) != elements) throw none(what, " does not keep the rows apart");
  const int64_t earlier = product({to.begin(), to.begin() + static_cast<int64_t>(*holder)});
  Rows out{rows.id, *holder};
  out.outer = before / earlier;
  if (before % earlier != 0 || out.outer < 1 || to[*holder] % out.outer != 0) {
    throw none(what, " does not keep the rows apart");
  }
  out.inner = to[*holder] / out.outer;
  if (out.alone()) to.erase(to.begin() + static_cast<int64_t>(*holder));
  if (to.empty()) throw none(what, " leaves no axis of a row");
  out.id = reshaped(rows.id, to);
  return out;
}

Rows Target::permuted(const Rows& rows, const std::vector<int64_t>& axes, const std::string& what) {
  const size_t all = rank(rows);
  if (axes.size() != all) throw none(what, ": ", axes.size(), " axes of ", all);
  Attributes a;
  Rows out = rows;
  for (size_t i = 0; i < all; ++i) {
    const int64_t axis = axes[i] < 0 ? axes[i] + static_cast<int64_t>(all) : axes[i];
    if (axis < 0 || static_cast<size_t>(axis) >= all) throw none(what, ": axis ", axes[i], " of ", all);
    const auto from = static_cast<size_t>(axis);
    if (from == rows.axis) out.axis = i;
    if (from == rows.axis && rows.alone()) continue;
    a.axes.push_back(static_cast<int64_t>(rows.alone() && from > rows.axis ? from - 1 : from));
  }
  if (!std::is_sorted(a.axes.begin(), a.axes.end())) out.id = op(OpKind::kPermute, {rows.id}, a);
  return out;
}

// ---- modules

void Target::enter(const std::string& path, bool leaf, bool owns_tensors) {
  scopes_.push_back({path, leaf, owns_tensors, false});
}

void Target::leave(const std::optional<Rows>& result) {
  const Scope scope = scopes_.back();
  scopes_.pop_back();
  if (!result || scope.leaf || scope.path.empty() || result->id == 0) return;
  if (names_.insert(scope.path).second) places_.emplace_back(scope.path, result->id);
}

Target::Finished Target::finish(const Rows& output) {
  if (!output.first() || output.spread || shape(output.id).size() != 1) {
    throw none("its output is not [N,classes]");
  }
  for (const auto& [name, id] : places_) builder_.place(name, "block", id);
  // What no op reads may stand in a state dict all the same.
  for (size_t i = 0; i < own_.size(); ++i) {
    const auto& [name, tensor] = own_[i];
    if (!declared_.contains(name)) {
      builder_.declare({name, tensor.sizes().vec(), /*buffer=*/i >= trained_, /*optional=*/true});
    }
  }
  std::string layer = last_image_.second;
  for (const auto& [name, id] : places_) {  // the outermost module that ends with it
    if (id == last_image_.first) layer = name;
  }
  return {builder_.finish(output.id, layer), std::move(state_)};
}

}  // namespace assay::script
