// What the importer of TorchScript knows of a program's values, and the graph
// that it builds from them. Nothing here needs libtorch's compiler.
//
// The program is run with unknown rows: a value is a constant (IValue), a value
// of the new graph (Rows), a size that is a multiple of the number of rows
// (Size), or a list of such. Programs move the axis of the rows about and merge
// it with others ([N,L,E] -> [L,N,E] -> [L,N*H,E/H]); graphs have no such axis,
// so Rows says where it would be.
#pragma once

#include <ATen/ATen.h>
#include <ATen/core/function_schema.h>
#include <ATen/core/ivalue.h>

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "api/error.h"
#include "graph/graph.h"

namespace assay::script {

// Why a module stays a black box.
struct NoCounterpart : std::runtime_error {
  using std::runtime_error::runtime_error;
};

template <typename... Parts>
NoCounterpart none(Parts&&... parts) {
  return NoCounterpart(concat(std::forward<Parts>(parts)...));
}

struct Item;
using List = std::vector<Item>;

// A tensor of the program that holds rows. Its axis `axis` has
// outer * N * inner elements, in that order; without that factor N its shape is
// the graph's value's, which lacks the axis where outer * inner is 1.
struct Rows {
  int id;
  size_t axis = 0;
  int64_t outer = 1, inner = 1;
  // expand was asked for this shape of a row, which broadcasting may give.
  std::optional<Shape> spread = std::nullopt;

  bool alone() const { return outer * inner == 1; }
  bool first() const { return axis == 0 && alone(); }
  bool along(const Rows& other) const {
    return axis == other.axis && outer == other.outer && inner == other.inner;
  }
};

// factor times the number of rows.
struct Size {
  int64_t factor;
};

// Rows and lists are shared as tensors and lists are: who writes in place is seen
// by all who hold it.
using RowsRef = std::shared_ptr<Rows>;
using ListRef = std::shared_ptr<List>;
struct Item : std::variant<c10::IValue, RowsRef, Size, ListRef> {
  using variant::variant;
};

// Whether it holds rows, or their number.
bool depends(const Item& item);

using Named = std::vector<std::pair<std::string, at::Tensor>>;

// The graph being built: a GraphBuilder that finds names.
class Target {
 public:
  // parameters, buffers: the module's own, by their names in its state dict.
  Target(const Shape& input, Named parameters, Named buffers);

  const Shape& shape(int id) const { return builder_.shape(id); }
  size_t rank(const Rows& rows) const { return shape(rows.id).size() + (rows.alone() ? 1 : 0); }
  // Sizes of the program's tensor: integers, and one Size.
  List sizes(const Rows& rows) const;
  // The graph's axis for one of the program's; throws for that of the rows.
  size_t row_axis(const Rows& rows, int64_t axis, const std::string& what) const;

  int op(OpKind kind, std::vector<int> inputs, const Attributes& attributes = {});
  // With parameters: tensors in the kind's order, the first of which gives the name.
  int op(OpKind kind, std::vector<int> inputs, const Attributes& attributes,
         const std::vector<at::Tensor>& tensors);
  // A constant as a value in this shape of a row.
  int value(const at::Tensor& constant, const Shape& shape);
  int reshaped(int x, const Shape& shape);
  Rows reshaped(const Rows& rows, const List& sizes, const std::string& what);
  Rows permuted(const Rows& rows, const std::vector<int64_t>& axes, const std::string& what);
  // Whether the tensor is one of the module's own, unchanged.
  bool known(const at::Tensor& tensor) const { return !name_of(tensor).empty(); }

  // Between them ops belong to the module of that path.
  void enter(const std::string& path, bool leaf, bool owns_tensors);
  void leave(const std::optional<Rows>& result);

  struct Finished {
    Graph graph;
    Named state;
  };
  Finished finish(const Rows& output);

 private:
  struct Scope {
    std::string path;
    bool leaf, owns_tensors, named;
  };

  std::string name_of(const at::Tensor& tensor) const;
  std::string fresh(const std::string& name);
  std::string inside(const std::string& name) const;
  int declared(const at::Tensor& tensor, const std::string& otherwise);
  int note(int id, const std::string& name);

  GraphBuilder builder_;
  Named own_;       // parameters, then buffers
  size_t trained_;  // how many are parameters
  std::set<std::string> names_;
  std::vector<Scope> scopes_;
  std::map<std::string, int> declared_;
  std::vector<std::pair<std::string, int>> places_;
  Named state_;
  std::pair<int, std::string> last_image_ = {0, ""};
};

// A call of an operator, its arguments by their names in its schema.
class Call {
 public:
  Call(Target& target, std::string op, const c10::FunctionSchema& schema, std::vector<Item> inputs)
      : target(target), op(std::move(op)), schema_(schema), inputs_(std::move(inputs)) {}

  Target& target;
  const std::string op;  // "aten::add", without the _ of writing in place
  List outputs;

  bool takes(const std::string& argument) const;
  const Item& at(const std::string& argument) const;
  bool given(const std::string& argument) const;  // takes it, and it is not None
  bool is_rows(const std::string& argument) const { return std::holds_alternative<RowsRef>(at(argument)); }
  // Each throws where the argument is something else.
  const Rows& rows(const std::string& argument) const;
  int first(const std::string& argument) const;  // id of rows whose axis is the first
  at::Tensor tensor(const std::string& argument) const;
  at::Tensor tensor_or(const std::string& argument, const at::Tensor& otherwise) const;
  int64_t integer(const std::string& argument) const;
  double number(const std::string& argument) const;
  std::optional<double> maybe_number(const std::string& argument) const;  // also a tensor without axes
  bool flag(const std::string& argument) const;
  std::string word(const std::string& argument) const;
  List list(const std::string& argument) const;
  std::vector<int64_t> integers(const std::string& argument) const;
  std::array<int64_t, 2> pair(const std::string& argument) const;
  // An axis counted from the end where it is negative.
  int64_t dim(const std::string& argument, size_t rank) const;

  void give(Rows rows) { outputs.push_back(std::make_shared<Rows>(std::move(rows))); }
  void give(Item item) { outputs.push_back(std::move(item)); }
  // The first argument itself.
  void same() { outputs.push_back(inputs_.at(0)); }
  const std::vector<Item>& inputs() const { return inputs_; }
  std::vector<Item>& inputs() { return inputs_; }

 private:
  const c10::FunctionSchema& schema_;
  std::vector<Item> inputs_;
};

int64_t integer_of(const Item& item, const std::string& what);
List list_of(const Item& item, const std::string& what);

// What an operator becomes. Called when an argument depends on the rows.
using Handler = void (*)(Call&);
struct Counterpart {
  const char* op;
  Handler handler;
};
std::vector<Counterpart> layer_counterparts();  // layers.cc: layers, norms, activations, pooling
std::vector<Counterpart> move_counterparts();   // moves.cc: shapes, lists, sizes
std::vector<Counterpart> sum_counterparts();    // sums.cc: arithmetic, products, attention
// nullptr: there is none.
Handler counterpart(const std::string& op);

}  // namespace assay::script
