// Views, lists and sizes: what moves values without computing.
#include <algorithm>
#include <limits>
#include <numeric>

#include "torchscript/call.h"

namespace assay::script {
namespace {

Item number(int64_t value) { return c10::IValue(value); }

// ---- other shapes

void reshape(Call& c) {
  c.give(c.target.reshaped(c.rows("self"), c.list(c.takes("size") ? "size" : "shape"), c.op));
}

// One axis for the axes [from, to] of the sizes.
Item merged(const List& sizes, size_t from, size_t to, const std::string& what) {
  int64_t size = 1;
  bool rows = false;
  for (size_t i = from; i <= to; ++i) {
    if (const auto* some = std::get_if<Size>(&sizes[i])) {
      rows = true;
      size *= some->factor;
    } else {
      size *= integer_of(sizes[i], what);
    }
  }
  return rows ? Item(Size{size}) : number(size);
}

void flatten(Call& c) {
  const Rows& x = c.rows("self");
  const List sizes = c.target.sizes(x);
  const auto from = static_cast<size_t>(c.dim("start_dim", sizes.size()));
  const auto to = static_cast<size_t>(c.dim("end_dim", sizes.size()));
  if (from > to) throw none(c.op, " from axis ", from, " to ", to);
  List out(sizes.begin(), sizes.begin() + static_cast<int64_t>(from));
  out.push_back(merged(sizes, from, to, c.op));
  out.insert(out.end(), sizes.begin() + static_cast<int64_t>(to) + 1, sizes.end());
  c.give(c.target.reshaped(x, out, c.op));
}

void unflatten(Call& c) {
  const Rows& x = c.rows("self");
  List sizes = c.target.sizes(x);
  const int64_t dim = c.dim("dim", sizes.size());
  List parts = c.list("sizes");
  // Its -1 is what is missing of this axis, which reshaped would find too unless
  // the axis is that of the rows.
  const auto at = sizes.erase(sizes.begin() + dim);
  sizes.insert(at, parts.begin(), parts.end());
  c.give(c.target.reshaped(x, sizes, c.op));
}

void unsqueeze(Call& c) {
  const Rows& x = c.rows("self");
  List sizes = c.target.sizes(x);
  sizes.insert(sizes.begin() + c.dim("dim", sizes.size() + 1), number(1));
  c.give(c.target.reshaped(x, sizes, c.op));
}

// Without an axis: all of one element. The rows stay, also where there is one
// alone, for which the program itself would lose them.
void squeeze(Call& c) {
  const Rows& x = c.rows("self");
  const List sizes = c.target.sizes(x);
  std::vector<bool> asked(sizes.size(), !c.takes("dim"));
  if (c.takes("dim")) {
    for (int64_t dim : c.integers("dim")) {
      const int64_t at = dim < 0 ? dim + static_cast<int64_t>(sizes.size()) : dim;
      if (at < 0 || static_cast<size_t>(at) >= sizes.size()) throw none(c.op, ": axis ", dim);
      asked[static_cast<size_t>(at)] = true;
    }
  }
  List out;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (!asked[i] || std::holds_alternative<Size>(sizes[i]) || integer_of(sizes[i], c.op) != 1) {
      out.push_back(sizes[i]);
    }
  }
  c.give(c.target.reshaped(x, out, c.op));
}

void permute(Call& c) { c.give(c.target.permuted(c.rows("self"), c.integers("dims"), c.op)); }

void swapped(Call& c, int64_t one, int64_t other) {
  const Rows& x = c.rows("self");
  std::vector<int64_t> axes(c.target.rank(x));
  std::iota(axes.begin(), axes.end(), 0);
  std::swap(axes.at(static_cast<size_t>(one)), axes.at(static_cast<size_t>(other)));
  c.give(c.target.permuted(x, axes, c.op));
}

void transpose(Call& c) {
  const size_t rank = c.target.rank(c.rows("self"));
  const bool named = c.takes("dim0");
  swapped(c, c.dim(named ? "dim0" : "axis0", rank), c.dim(named ? "dim1" : "axis1", rank));
}

void t(Call& c) {
  if (c.target.rank(c.rows("self")) != 2) throw none(c.op, " of other than two axes");
  swapped(c, 0, 1);
}

// ---- parts

Rows sliced(Call& c, const Rows& x, size_t axis, int64_t begin, int64_t end, int64_t step = 1) {
  const int64_t size = c.target.shape(x.id)[axis];
  const auto within = [&](int64_t at) { return std::clamp<int64_t>(at < 0 ? at + size : at, 0, size); };
  Attributes a;
  a.axis = static_cast<int64_t>(axis);
  a.begin = within(begin);
  a.end = within(end);
  a.step = step;
  Rows out = x;
  if (a.begin != 0 || a.end != size || step != 1) out.id = c.target.op(OpKind::kSlice, {x.id}, a);
  return out;
}

Rows without_axis(Call& c, const Rows& x, int64_t dim) {
  List sizes = c.target.sizes(x);
  sizes.erase(sizes.begin() + dim);
  return c.target.reshaped(x, sizes, c.op);
}

Rows selected(Call& c, const Rows& x, int64_t dim, int64_t index) {
  const size_t axis = c.target.row_axis(x, dim, c.op);
  const int64_t size = c.target.shape(x.id)[axis];
  if (index < -size || index >= size) throw none(c.op, ": index ", index, " of ", size);
  const int64_t at = index < 0 ? index + size : index;
  return without_axis(c, sliced(c, x, axis, at, at + 1), dim);
}

void select(Call& c) {
  const Rows& x = c.rows("self");
  c.give(selected(c, x, c.dim("dim", c.target.rank(x)), c.integer("index")));
}

void unbind(Call& c) {
  const Rows& x = c.rows("self");
  const int64_t dim = c.dim("dim", c.target.rank(x));
  auto all = std::make_shared<List>();
  const int64_t count = c.target.shape(x.id)[c.target.row_axis(x, dim, c.op)];
  for (int64_t i = 0; i < count; ++i) all->push_back(std::make_shared<Rows>(selected(c, x, dim, i)));
  c.give(Item(all));
}

void list_slice(Call& c) {
  const List all = c.list("l");
  const auto size = static_cast<int64_t>(all.size());
  const auto bound = [&](const char* argument, int64_t otherwise) {
    const int64_t at = c.given(argument) ? c.integer(argument) : otherwise;
    return std::clamp<int64_t>(at < 0 ? at + size : at, 0, size);
  };
  const int64_t end = bound("end", size), step = c.integer("step");
  if (step < 1) throw none(c.op, " of a list by ", step);
  auto out = std::make_shared<List>();
  for (int64_t i = bound("start", 0); i < end; i += step) out->push_back(all[static_cast<size_t>(i)]);
  c.give(Item(out));
}

void slice(Call& c) {
  if (c.takes("l")) return list_slice(c);
  constexpr int64_t kEnd = std::numeric_limits<int64_t>::max();
  const Rows& x = c.rows("self");
  const int64_t dim = c.dim("dim", c.target.rank(x)), step = c.integer("step");
  const int64_t begin = c.given("start") ? c.integer("start") : 0;
  const bool rows = static_cast<size_t>(dim) == x.axis;
  // [:x.size(0)] is all of them too.
  const auto* whole = c.given("end") ? std::get_if<Size>(&c.at("end")) : nullptr;
  if (rows && begin == 0 && step == 1 && whole != nullptr && whole->factor == x.outer * x.inner)
    return c.give(x);
  const int64_t end = c.given("end") ? c.integer("end") : kEnd;
  if (rows && begin == 0 && step == 1 && end == kEnd) return c.give(x);
  c.give(sliced(c, x, c.target.row_axis(x, dim, c.op), begin, end, step));
}

void narrow(Call& c) {
  const Rows& x = c.rows("self");
  const int64_t start = c.integer("start"), length = c.integer("length");
  if (start < 0 || length < 1) throw none(c.op, " from ", start);
  c.give(sliced(c, x, c.target.row_axis(x, c.integer("dim"), c.op), start, start + length));
}

void parts(Call& c, const Rows& x, const std::vector<int64_t>& sizes) {
  const size_t axis = c.target.row_axis(x, c.integer("dim"), c.op);
  auto all = std::make_shared<List>();
  int64_t begin = 0;
  for (int64_t size : sizes) {
    all->push_back(std::make_shared<Rows>(sliced(c, x, axis, begin, begin + size)));
    begin += size;
  }
  c.give(Item(all));
}

void pieces(Call& c, const Rows& x, int64_t size) {
  const int64_t whole = c.target.shape(x.id)[c.target.row_axis(x, c.integer("dim"), c.op)];
  if (size < 1) throw none(c.op, " into parts of ", size);
  std::vector<int64_t> sizes;
  for (int64_t begin = 0; begin < whole; begin += size) sizes.push_back(std::min(size, whole - begin));
  parts(c, x, sizes);
}

void chunk(Call& c) {
  const Rows& x = c.rows("self");
  const int64_t whole = c.target.shape(x.id)[c.target.row_axis(x, c.integer("dim"), c.op)];
  const int64_t count = c.integer("chunks");
  if (count < 1) throw none(c.op, " into ", count, " parts");
  pieces(c, x, (whole + count - 1) / count);
}

void split(Call& c) {
  const Rows& x = c.rows("self");
  const char* argument = c.takes("split_sizes") ? "split_sizes" : "split_size";
  const std::vector<int64_t> sizes = c.integers(argument);
  const auto* one = std::get_if<c10::IValue>(&c.at(argument));
  if (one != nullptr && one->isInt()) return pieces(c, x, sizes[0]);
  parts(c, x, sizes);
}

// ---- together

Rows concatenated(Call& c, const List& all, int64_t dim) {
  const Rows* like = nullptr;
  for (const Item& item : all) {
    if (const auto* rows = std::get_if<RowsRef>(&item); rows != nullptr && like == nullptr)
      like = rows->get();
  }
  if (like == nullptr) throw none(c.op, " of no tensors");
  Attributes a;
  a.axis = static_cast<int64_t>(c.target.row_axis(*like, dim, c.op));
  std::vector<int> ids;
  for (const Item& item : all) {
    const auto* rows = std::get_if<RowsRef>(&item);
    if (rows == nullptr) throw none(c.op, " with a constant that has no rows");
    if (!(*rows)->along(*like) || (*rows)->spread) throw none(c.op, " of rows along different axes");
    ids.push_back((*rows)->id);
  }
  Rows out = *like;
  out.id = c.target.op(OpKind::kConcat, ids, a);
  return out;
}

void concat_values(Call& c) { c.give(concatenated(c, c.list("tensors"), c.integer("dim"))); }

void stack(Call& c) {
  List all;
  int64_t dim = 0;
  for (const Item& item : c.list("tensors")) {
    const auto* rows = std::get_if<RowsRef>(&item);
    if (rows == nullptr) throw none(c.op, " with a constant");
    List sizes = c.target.sizes(**rows);
    dim = c.dim("dim", sizes.size() + 1);
    sizes.insert(sizes.begin() + dim, number(1));
    all.push_back(std::make_shared<Rows>(c.target.reshaped(**rows, sizes, c.op)));
  }
  c.give(concatenated(c, all, dim));
}

void pad(Call& c) {
  const bool zeros = !c.takes("mode") || c.word("mode") == "constant";
  if (!zeros || (c.given("value") && c.number("value") != 0)) throw none(c.op, " with anything but zeros");
  const std::vector<int64_t> sides = c.integers("pad");
  if (sides.size() != 4 && sides.size() != 2) throw none(c.op, " of ", sides.size() / 2, " axes");
  Attributes a;
  a.padding = {0, sides[0], 0, sides[1]};
  if (sides.size() == 4) a.padding = {sides[2], sides[0], sides[3], sides[1]};
  c.give(Rows{c.target.op(OpKind::kPad, {c.first("self")}, a)});
}

// ---- spread

// A constant without rows, as a value of which every row is the same; sizes as expand has them.
Rows constant_rows(Call& c, const at::Tensor& constant, const List& sizes) {
  const auto more = static_cast<int64_t>(sizes.size()) - constant.dim();
  if (more < 0) throw none(c.op, " to fewer axes");
  std::optional<size_t> holder;
  Shape shape;
  for (size_t i = 0; i < sizes.size(); ++i) {
    const int64_t axis = static_cast<int64_t>(i) - more;
    const int64_t there = axis < 0 ? 1 : constant.size(axis);
    if (const auto* size = std::get_if<Size>(&sizes[i])) {
      if (holder || size->factor != 1 || there != 1)
        throw none(c.op, " of a constant along ", there, " rows");
      holder = i;
      continue;
    }
    const int64_t wanted = integer_of(sizes[i], c.op);
    shape.push_back(wanted == -1 ? there : wanted);
    if (there != 1 && shape.back() != there) throw none(c.op, " from ", there, " to ", wanted);
  }
  if (!holder || shape.empty()) throw none(c.op, " of a constant without the rows");
  at::Tensor value = constant;
  if (c10::multiply_integers(shape) != constant.numel()) {
    Shape whole = shape;
    whole.insert(whole.begin() + static_cast<int64_t>(*holder), 1);
    value = constant.expand(whole).reshape(shape);
  }
  return Rows{c.target.value(value, shape), *holder};
}

void expand_to(Call& c, const List& sizes) {
  if (!c.is_rows("self")) return c.give(constant_rows(c, c.tensor("self"), sizes));
  Rows x = c.rows("self");
  const List from = c.target.sizes(x);
  if (sizes.size() != from.size()) throw none(c.op, " to other axes");
  Shape to;
  for (size_t i = 0; i < sizes.size(); ++i) {
    const auto* size = std::get_if<Size>(&sizes[i]);
    if (i == x.axis) {
      const bool as_is =
          size != nullptr ? size->factor == x.outer * x.inner : integer_of(sizes[i], c.op) == -1;
      if (!as_is || !x.alone()) throw none(c.op, " of the rows");
      continue;
    }
    const int64_t there = integer_of(from[i], c.op), wanted = integer_of(sizes[i], c.op);
    to.push_back(wanted == -1 ? there : wanted);
    if (there != 1 && to.back() != there) throw none(c.op, " from ", there, " to ", wanted);
  }
  if (to != c.target.shape(x.id)) x.spread = to;
  c.give(x);
}

void expand(Call& c) { expand_to(c, c.list("size")); }
void expand_as(Call& c) { expand_to(c, c.target.sizes(c.rows("other"))); }

// Of a constant of one row to as many as there are.
void repeat(Call& c) {
  const at::Tensor constant = c.tensor("self");
  List sizes;
  const List repeats = c.list("repeats");
  const auto more = static_cast<int64_t>(repeats.size()) - constant.dim();
  for (size_t i = 0; i < repeats.size(); ++i) {
    const int64_t axis = static_cast<int64_t>(i) - more;
    const int64_t there = axis < 0 ? 1 : constant.size(axis);
    const bool rows = std::holds_alternative<Size>(repeats[i]);
    if (!rows && integer_of(repeats[i], c.op) != 1) throw none(c.op, " along an axis of a row");
    sizes.push_back(rows ? repeats[i] : number(there));
  }
  c.give(constant_rows(c, constant, sizes));
}

// ---- as it is

void same(Call& c) { c.same(); }

// A copy: what is written into it is not seen elsewhere.
void clone(Call& c) { c.give(Rows(c.rows("self"))); }

// Types and devices are the net's own choice; whole numbers are not.
void to(Call& c) {
  if (c.given("dtype")) {
    const auto dtype = static_cast<at::ScalarType>(c.integer("dtype"));
    if (dtype != at::kFloat && dtype != at::kDouble) throw none(c.op, " ", at::toString(dtype));
  }
  c.same();
}

// ---- questions

void size(Call& c) {
  const List sizes = c.target.sizes(*std::get<RowsRef>(c.at("self")));
  if (!c.takes("dim")) return c.give(Item(std::make_shared<List>(sizes)));
  c.give(sizes.at(static_cast<size_t>(c.dim("dim", sizes.size()))));
}

void dim(Call& c) { c.give(number(static_cast<int64_t>(c.target.rank(c.rows("self"))))); }
void truth(Call& c) { c.give(Item(c10::IValue(true))); }
void untruth(Call& c) { c.give(Item(c10::IValue(false))); }

// The same object: what depends on rows is never None.
bool identical(Call& c) {
  const Item &x = c.inputs().at(0), &y = c.inputs().at(1);
  if (const auto* a = std::get_if<RowsRef>(&x), *b = std::get_if<RowsRef>(&y); a != nullptr && b != nullptr)
    return *a == *b;
  if (const auto* a = std::get_if<ListRef>(&x), *b = std::get_if<ListRef>(&y); a != nullptr && b != nullptr)
    return *a == *b;
  return false;
}

void is(Call& c) { c.give(Item(c10::IValue(identical(c)))); }
void is_not(Call& c) { c.give(Item(c10::IValue(!identical(c)))); }

// ---- lists: shared, as the program's own

ListRef shared(Call& c, size_t i) {
  const auto* list = std::get_if<ListRef>(&c.inputs().at(i));
  if (list == nullptr) throw none(c.op, " of a constant list");
  return *list;
}

size_t position(const List& list, int64_t at, const std::string& what) {
  const auto size = static_cast<int64_t>(list.size());
  if (at < -size || at >= size) throw none(what, ": ", at, " of ", size);
  return static_cast<size_t>(at < 0 ? at + size : at);
}

void list_item(Call& c) {
  const List all = list_of(c.inputs().at(0), c.op);
  c.give(all[position(all, integer_of(c.inputs().at(1), c.op), c.op)]);
}

void list_set(Call& c) {
  List& all = *shared(c, 0);
  all[position(all, integer_of(c.inputs().at(1), c.op), c.op)] = c.inputs().at(2);
  c.same();
}

void list_append(Call& c) {
  shared(c, 0)->push_back(c.inputs().at(1));
  c.same();
}

void list_extend(Call& c) {
  const List more = list_of(c.inputs().at(1), c.op);
  const ListRef all = shared(c, 0);
  all->insert(all->end(), more.begin(), more.end());
  c.same();
}

void length(Call& c) {
  if (const auto* rows = std::get_if<RowsRef>(&c.inputs().at(0))) return c.give(c.target.sizes(**rows).at(0));
  c.give(number(static_cast<int64_t>(list_of(c.inputs().at(0), c.op).size())));
}

void list_copy(Call& c) { c.give(Item(std::make_shared<List>(list_of(c.inputs().at(0), c.op)))); }

}  // namespace

std::vector<Counterpart> move_counterparts() {
  return {
      {"aten::view", reshape},
      {"aten::reshape", reshape},
      {"aten::flatten", flatten},
      {"aten::unflatten", unflatten},
      {"aten::unsqueeze", unsqueeze},
      {"aten::squeeze", squeeze},
      {"aten::permute", permute},
      {"aten::transpose", transpose},
      {"aten::swapaxes", transpose},
      {"aten::swapdims", transpose},
      {"aten::t", t},
      {"aten::select", select},
      {"aten::unbind", unbind},
      {"aten::slice", slice},
      {"aten::narrow", narrow},
      {"aten::chunk", chunk},
      {"aten::split", split},
      {"aten::split_with_sizes", split},
      {"aten::cat", concat_values},
      {"aten::concat", concat_values},
      {"aten::stack", stack},
      {"aten::constant_pad_nd", pad},
      {"aten::pad", pad},
      {"aten::expand", expand},
      {"aten::expand_as", expand_as},
      {"aten::repeat", repeat},
      {"aten::contiguous", same},
      {"aten::detach", same},
      {"aten::alias", same},
      {"aten::clone", clone},
      {"aten::to", to},
      {"aten::type_as", same},
      {"aten::float", same},
      {"aten::size", size},
      {"aten::dim", dim},
      {"aten::len", length},
      {"aten::is_floating_point", truth},
      {"prim::requires_grad", truth},
      {"aten::requires_grad", truth},
      {"prim::is_cuda", untruth},
      {"prim::is_nested", untruth},
      {"prim::is_sparse", untruth},
      {"prim::is_quantized", untruth},
      {"prim::dtype", [](Call& c) { c.give(number(static_cast<int64_t>(at::kFloat))); }},
      {"prim::device", [](Call& c) { c.give(Item(c10::IValue(at::Device(at::kCPU)))); }},
      {"aten::__is__", is},
      {"aten::__isnot__", is_not},
      {"prim::unchecked_cast", same},
      {"prim::unchecked_unwrap_optional", same},
      {"prim::NumToTensor", same},
      {"aten::Int", same},
      {"aten::IntImplicit", same},
      {"aten::ScalarImplicit", same},
      {"aten::scalar_tensor", same},
      {"aten::__getitem__", list_item},
      {"aten::_set_item", list_set},
      {"aten::append", list_append},
      {"aten::extend", list_extend},
      {"aten::list", list_copy},
  };
}

}  // namespace assay::script
