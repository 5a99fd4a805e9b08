// Runs the graphs of TorchScript's compiler on Items.
#include "torchscript/walk.h"

#include <ATen/core/grad_mode.h>
#include <torch/csrc/jit/api/function_impl.h>
#include <torch/csrc/jit/ir/constants.h>
#include <torch/csrc/jit/ir/ir.h>

#include <string_view>
#include <unordered_map>

namespace assay::script {
namespace {

using torch::jit::Block;
using torch::jit::Node;
using torch::jit::Value;
namespace prim = torch::jit::prim;
namespace attr = torch::jit::attr;

// A loop that ends later than that is no classifier's.
constexpr int64_t kMostNodes = 1'000'000;
constexpr size_t kMostCalls = 200;  // within each other

// " (model.py:12)", where the file still knows its source; "" otherwise.
std::string place_of(const Node* node) {
  const auto place = node->sourceRange().file_line_col();
  if (!place) return "";
  const auto& [file, line, column] = *place;
  const std::string base = file.substr(file.rfind('/') + 1);
  if (base.starts_with("__")) return "";  // what torch.jit.save made of it
  return concat(" (", base, ":", line, ")");
}

class Walker {
 public:
  explicit Walker(Target& target) : target_(target) {}

  // The values of one call of a function.
  using Frame = std::unordered_map<const Value*, Item>;

  void learn(const torch::jit::Module& module) {
    for (const auto& part : module.named_modules()) paths_.emplace(part.value._ivalue().get(), part.name);
  }

  List function(const torch::jit::Function& called, const List& inputs) {
    if (!called.isGraphFunction()) throw none("a call of ", called.name(), " has no counterpart");
    if (++calls_ > kMostCalls) throw none("calls within calls without end");
    const auto graph = torch::jit::toGraphFunction(called).graph();
    Frame frame;
    if (graph->inputs().size() != inputs.size())
      throw none(called.name(), " takes ", graph->inputs().size(), " inputs");
    for (size_t i = 0; i < inputs.size(); ++i) frame[graph->inputs()[i]] = inputs[i];
    block(frame, graph->block());
    List outputs;
    for (const Value* output : graph->outputs()) outputs.push_back(item(frame, output));
    --calls_;
    return outputs;
  }

  List method(const c10::IValue& object, const std::string& name, List inputs) {
    const auto called = object.toObject();
    const torch::jit::Function* function = called->type()->findMethod(name);
    if (function == nullptr) throw none("there is no method ", name);
    const auto path = paths_.find(called.get());
    if (path == paths_.end()) return this->function(*function, inputs);
    bool leaf = true, owns_tensors = false;
    for (const auto& slot : called->slots()) {
      if (slot.isObject()) leaf = false;
      if (slot.isTensor()) owns_tensors = true;
    }
    target_.enter(path->second, leaf, owns_tensors);
    List outputs = this->function(*function, inputs);
    const auto* rows = outputs.size() == 1 ? std::get_if<RowsRef>(&outputs[0]) : nullptr;
    target_.leave(rows == nullptr ? std::nullopt : std::optional<Rows>(**rows));
    return outputs;
  }

 private:
  static const Item& item(const Frame& frame, const Value* value) {
    const auto found = frame.find(value);
    if (found == frame.end()) throw none("%", value->debugName(), " has no counterpart");
    return found->second;
  }

  static List inputs(const Frame& frame, const Node* node) {
    List all;
    for (const Value* value : node->inputs()) all.push_back(item(frame, value));
    return all;
  }

  void block(Frame& frame, const Block* block) {
    for (const Node* node : block->nodes()) {
      if (++nodes_ > kMostNodes) throw none("a program of more than ", kMostNodes, " steps");
      step(frame, const_cast<Node*>(node));
    }
  }

  void step(Frame& frame, Node* node) {
    const auto set = [&](Item item) { frame[node->output()] = std::move(item); };
    switch (node->kind()) {
      case prim::Constant: {
        // Functions are constants too; their calls look at the type.
        const auto value = torch::jit::toIValue(node->output());
        return set(value.value_or(c10::IValue()));
      }
      case prim::GetAttr:
        return set(constant(item(frame, node->input()), node->input()->type())
                       .toObject()
                       ->getAttr(node->s(attr::name)));
      case prim::CallMethod: {
        List all = inputs(frame, node);
        const c10::IValue object = constant(all.at(0), node->inputs()[0]->type());
        return bind(frame, node->outputs(), method(object, node->s(attr::name), all));
      }
      case prim::CallFunction: {
        List all = inputs(frame, node);
        all.erase(all.begin());
        const auto type = node->inputs().at(0)->type()->expect<c10::FunctionType>();
        return bind(frame, node->outputs(), function(*type->function(), all));
      }
      case prim::If:
        return branch(frame, node);
      case prim::Loop:
        return loop(frame, node);
      case prim::ListConstruct:
      case prim::TupleConstruct:
        return set(std::make_shared<List>(inputs(frame, node)));
      case prim::ListUnpack:
      case prim::TupleUnpack: {
        const List all = list_of(item(frame, node->input()), node->kind().toQualString());
        if (all.size() != node->outputs().size()) {
          throw none("a list of ", all.size(), " taken for one of ", node->outputs().size());
        }
        return bind(frame, node->outputs(), all);
      }
      case prim::TupleIndex: {
        const List all = list_of(item(frame, node->inputs()[0]), "prim::TupleIndex");
        const int64_t index = integer_of(item(frame, node->inputs()[1]), "prim::TupleIndex");
        const auto size = static_cast<int64_t>(all.size());
        return set(all.at(static_cast<size_t>(index < 0 ? index + size : index)));
      }
      case prim::Uninitialized:
        return;
      case prim::RaiseException:
        throw none("the program raises an exception for such an input");
      default:
        if (std::string_view(node->kind().toQualString()) == "aten::warn") return;
        return call(frame, node);
    }
  }

  template <typename Values>
  static void bind(Frame& frame, const Values& values, const List& items) {
    for (size_t i = 0; i < values.size() && i < items.size(); ++i) frame[values[i]] = items[i];
  }

  static bool truth(const Item& item, const Node* node) {
    const auto* value = std::get_if<c10::IValue>(&item);
    if (value == nullptr || !value->isBool())
      throw none("what it does depends on the input's values", place_of(node));
    return value->toBool();
  }

  void branch(Frame& frame, const Node* node) {
    const bool yes = truth(item(frame, node->inputs().at(0)), node);
    const Block* taken = node->blocks().at(yes ? 0 : 1);
    block(frame, taken);
    for (size_t i = 0; i < node->outputs().size(); ++i) {
      const auto found = frame.find(taken->outputs()[i]);
      if (found != frame.end()) frame[node->outputs()[i]] = Item(found->second);
    }
  }

  // inputs: most rounds, whether to begin, what is carried; the body's: the round,
  // what is carried; its outputs: whether to go on, what is carried.
  void loop(Frame& frame, const Node* node) {
    const int64_t most = integer_of(item(frame, node->inputs().at(0)), "a loop");
    bool on = truth(item(frame, node->inputs().at(1)), node);
    const Block* body = node->blocks().at(0);
    List carried;
    for (size_t i = 2; i < node->inputs().size(); ++i) carried.push_back(item(frame, node->inputs()[i]));
    for (int64_t round = 0; on && round < most; ++round) {
      frame[body->inputs()[0]] = c10::IValue(round);
      for (size_t i = 0; i < carried.size(); ++i) frame[body->inputs()[i + 1]] = carried[i];
      block(frame, body);
      on = truth(item(frame, body->outputs()[0]), node);
      for (size_t i = 0; i < carried.size(); ++i) carried[i] = item(frame, body->outputs()[i + 1]);
    }
    bind(frame, node->outputs(), carried);
  }

  // A constant as libtorch's operators take it, lists with their static type.
  static c10::IValue constant(const Item& item, const c10::TypePtr& type) {
    if (const auto* value = std::get_if<c10::IValue>(&item)) return *value;
    const auto* list = std::get_if<ListRef>(&item);
    if (list == nullptr) throw none("a constant is wanted");
    if (const auto tuple = type->cast<c10::TupleType>()) {
      std::vector<c10::IValue> all;
      for (size_t i = 0; i < (*list)->size(); ++i)
        all.push_back(constant((**list)[i], tuple->elements().at(i)));
      return c10::ivalue::Tuple::create(std::move(all));
    }
    c10::TypePtr wanted = type;
    if (const auto optional = wanted->cast<c10::OptionalType>()) wanted = optional->getElementType();
    const auto list_type = wanted->cast<c10::ListType>();
    if (list_type == nullptr) throw none("a list for a ", type->str());
    c10::impl::GenericList out(list_type->getElementType());
    for (const Item& element : **list) out.push_back(constant(element, list_type->getElementType()));
    return out;
  }

  void call(Frame& frame, Node* node) {
    List all = inputs(frame, node);
    const c10::FunctionSchema* schema = node->maybeSchema();
    std::string op = node->kind().toQualString();
    const bool writes = schema != nullptr && schema->is_mutable();
    if (!writes && std::none_of(all.begin(), all.end(), depends)) return evaluate(frame, node, all);
    const bool in_place = op.ends_with("_") && !op.ends_with("__");
    if (in_place) op.pop_back();
    const Handler handler = counterpart(op);
    if (handler == nullptr || schema == nullptr) {
      throw none("its op ", node->kind().toQualString(), " has no counterpart", place_of(node));
    }
    Call made(target_, op, *schema, all);
    try {
      handler(made);
    } catch (const NoCounterpart& error) {
      throw none(error.what(), place_of(node));
    }
    if (in_place) {
      // Whoever holds the tensor sees what was written into it.
      auto* held = std::get_if<RowsRef>(&all.at(0));
      const auto* written = made.outputs.empty() ? nullptr : std::get_if<RowsRef>(&made.outputs[0]);
      if (held == nullptr || written == nullptr) throw none(op, "_ writes into a constant", place_of(node));
      **held = Rows(**written);
      made.outputs[0] = *held;
    }
    bind(frame, node->outputs(), made.outputs);
  }

  // Without rows, libtorch itself knows what an operator gives.
  static void evaluate(Frame& frame, Node* node, const List& all) {
    const std::string_view op = node->kind().toQualString();
    if (node->isNondeterministic() || (node->hasSideEffects() && !op.starts_with("aten::is_"))) {
      throw none("its op ", node->kind().toQualString(), " has no counterpart", place_of(node));
    }
    torch::jit::Stack stack;
    for (size_t i = 0; i < all.size(); ++i) stack.push_back(constant(all[i], node->inputs()[i]->type()));
    try {
      node->getOperation()(stack);
    } catch (const c10::Error& error) {
      throw none(node->kind().toQualString(), ": ", error.what_without_backtrace());
    }
    for (size_t i = 0; i < node->outputs().size() && i < stack.size(); ++i)
      frame[node->outputs()[i]] = stack[i];
  }

  Target& target_;
  std::unordered_map<const c10::ivalue::Object*, std::string> paths_;
  int64_t nodes_ = 0;
  size_t calls_ = 0;
};

}  // namespace

Target::Finished import_module(const torch::jit::Module& module, const Shape& input) {
  Named parameters, buffers;
  for (const auto& parameter : module.named_parameters())
    parameters.emplace_back(parameter.name, parameter.value);
  for (const auto& buffer : module.named_buffers()) buffers.emplace_back(buffer.name, buffer.value);
  Target target(input, std::move(parameters), std::move(buffers));
  Walker walker(target);
  walker.learn(module);
  // Programs that ask get the answer that keeps gradients possible.
  const at::AutoGradMode grad(true);
  List inputs = {Item(c10::IValue(module._ivalue())), Item(std::make_shared<Rows>(Rows{0}))};
  const List outputs = walker.method(module._ivalue(), "forward", std::move(inputs));
  const auto* rows = outputs.size() == 1 ? std::get_if<RowsRef>(&outputs[0]) : nullptr;
  if (rows == nullptr) throw none("its output is not one tensor that depends on the input");
  return target.finish(**rows);
}

}  // namespace assay::script
