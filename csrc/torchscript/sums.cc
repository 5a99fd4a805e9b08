// Arithmetic, products and attention.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "torchscript/call.h"

namespace assay::script {
namespace {

Rows affine(Call& c, const Rows& x, double factor, double shift) {
  Attributes a;
  a.factor = factor;
  a.shift = shift;
  Rows out = x;
  out.id = c.target.op(OpKind::kAffine, {x.id}, a);
  return out;
}

// ---- sizes: multiples of the number of rows by whole numbers

bool of_size(Call& c) {
  const Item &x = c.inputs().at(0), &y = c.inputs().at(1);
  const auto *left = std::get_if<Size>(&x), *right = std::get_if<Size>(&y);
  if (left == nullptr && right == nullptr) return false;
  if (left != nullptr && right != nullptr) throw none(c.op, " of two numbers of rows");
  const int64_t other = integer_of(left != nullptr ? y : x, c.op);
  const int64_t factor = left != nullptr ? left->factor : right->factor;
  int64_t made = 0;
  if (c.op == "aten::mul") {
    if (__builtin_mul_overflow(factor, other, &made)) throw none(c.op, " of sizes beyond all");
  } else if (left != nullptr && other != 0 && factor % other == 0) {  // some kind of division
    made = factor / other;
  } else {
    throw none(c.op, " depends on the number of rows");
  }
  if (made < 1) throw none(c.op, " depends on the number of rows");
  c.give(Item(Size{made}));
  return true;
}

// Programs compare sizes in checks. There are two rows or more, as in the
// module's trial; whether there are exactly so many is not known.

bool equal(const Item& x, const Item& y, const std::string& what) {
  const auto *left = std::get_if<Size>(&x), *right = std::get_if<Size>(&y);
  if (left != nullptr && right != nullptr) {
    if (left->factor != right->factor) throw none(what, " depends on the number of rows");
    return true;
  }
  if (left != nullptr || right != nullptr) {
    const int64_t factor = left != nullptr ? left->factor : right->factor;
    const int64_t other = integer_of(left != nullptr ? y : x, what);
    if (other / factor >= 2 && other % factor == 0) throw none(what, " depends on the number of rows");
    return false;
  }
  const auto *a = std::get_if<c10::IValue>(&x), *b = std::get_if<c10::IValue>(&y);
  if (a != nullptr && b != nullptr && a->isInt() && b->isInt()) return a->toInt() == b->toInt();
  const List all = list_of(x, what), others = list_of(y, what);
  if (all.size() != others.size()) return false;
  for (size_t i = 0; i < all.size(); ++i) {
    if (!equal(all[i], others[i], what)) return false;
  }
  return true;
}

void want_sizes(Call& c) {
  for (const Item& item : c.inputs()) {
    if (std::holds_alternative<RowsRef>(item)) throw none("its op ", c.op, " has no counterpart");
  }
}

void eq(Call& c) {
  want_sizes(c);
  c.give(Item(c10::IValue(equal(c.inputs().at(0), c.inputs().at(1), c.op))));
}

void ne(Call& c) {
  want_sizes(c);
  c.give(Item(c10::IValue(!equal(c.inputs().at(0), c.inputs().at(1), c.op))));
}

// More than a number that two rows exceed already.
template <bool greater>
void order(Call& c) {
  want_sizes(c);
  const auto* size = std::get_if<Size>(&c.inputs().at(0));
  if (size == nullptr || integer_of(c.inputs().at(1), c.op) >= 2 * size->factor) {
    throw none(c.op, " depends on the number of rows");
  }
  c.give(Item(c10::IValue(greater)));
}

// ---- elementwise

// Shape of a row (without its rows' axis where that is alone) with axes of one
// element put before it, so that the program's tensor has so many axes.
Rows widened(Call& c, const Rows& x, size_t rank) {
  const size_t there = c.target.rank(x);
  if (there >= rank) return x;
  List sizes = c.target.sizes(x);
  sizes.insert(sizes.begin(), rank - there, Item(c10::IValue(int64_t{1})));
  return c.target.reshaped(x, sizes, c.op);
}

// A constant beside rows: its shape within a row.
int beside(Call& c, const at::Tensor& constant, const Rows& rows) {
  Shape shape = constant.sizes().vec();
  shape.insert(shape.begin(), c.target.rank(rows) - shape.size(), 1);
  if (shape[rows.axis] != 1) throw none(c.op, " with a constant for each of ", shape[rows.axis], " rows");
  if (rows.alone()) shape.erase(shape.begin() + static_cast<int64_t>(rows.axis));
  return c.target.value(constant, shape);
}

Rows unspread(const Rows& x) {
  Rows plain = x;
  plain.spread.reset();
  return plain;
}

void binary(Call& c, OpKind kind) {
  const bool left = c.is_rows("self");
  const Item &one = c.at(left ? "self" : "other"), &other = c.at(left ? "other" : "self");
  const auto* one_rows = std::get_if<RowsRef>(&one);
  if (one_rows == nullptr) throw none(c.op, " of what is no tensor");
  Rows x = unspread(**one_rows), y = x;
  std::vector<Shape> promised;
  if ((*one_rows)->spread) promised.push_back(*(*one_rows)->spread);
  if (const auto* rows = std::get_if<RowsRef>(&other)) {
    y = unspread(**rows);
    if ((*rows)->spread) promised.push_back(*(*rows)->spread);
    const size_t rank = std::max(c.target.rank(x), c.target.rank(y));
    x = widened(c, x, rank);
    y = widened(c, y, rank);
    if (!x.along(y)) throw none(c.op, " of rows along different axes");
  } else {
    const at::Tensor constant = c.tensor(left ? "other" : "self");
    x = widened(c, x, static_cast<size_t>(constant.dim()));
    y.id = beside(c, constant, x);
  }
  Rows out = x;
  out.id = left ? c.target.op(kind, {x.id, y.id}) : c.target.op(kind, {y.id, x.id});
  for (const Shape& shape : promised) {
    if (c.target.shape(out.id) != shape) throw none(c.op, " of an expanded tensor");
  }
  c.give(out);
}

// x + alpha y for a number y.
void add(Call& c) {
  if (std::holds_alternative<ListRef>(c.inputs().at(0)) ||
      std::holds_alternative<ListRef>(c.inputs().at(1))) {
    List all = list_of(c.inputs()[0], c.op);
    const List more = list_of(c.inputs()[1], c.op);
    all.insert(all.end(), more.begin(), more.end());
    return c.give(Item(std::make_shared<List>(std::move(all))));
  }
  if (of_size(c)) return;
  const double alpha = c.given("alpha") ? c.number("alpha") : 1;
  if (const auto y = c.maybe_number("other")) return c.give(affine(c, c.rows("self"), 1, alpha * *y));
  if (alpha != 1) throw none(c.op, " with a factor of ", alpha);
  if (const auto x = c.maybe_number("self")) return c.give(affine(c, c.rows("other"), 1, *x));
  binary(c, OpKind::kAdd);
}

void sub(Call& c) {
  if (of_size(c)) return;
  const double alpha = c.given("alpha") ? c.number("alpha") : 1;
  if (const auto y = c.maybe_number("other")) return c.give(affine(c, c.rows("self"), 1, -alpha * *y));
  if (alpha != 1) throw none(c.op, " with a factor of ", alpha);
  if (const auto x = c.maybe_number("self")) return c.give(affine(c, c.rows("other"), -1, *x));
  binary(c, OpKind::kSub);
}

// other - alpha self
void rsub(Call& c) {
  const double alpha = c.given("alpha") ? c.number("alpha") : 1;
  if (const auto y = c.maybe_number("other")) return c.give(affine(c, c.rows("self"), -alpha, *y));
  throw none(c.op, " of tensors");
}

void mul(Call& c) {
  if (of_size(c)) return;
  if (const auto y = c.maybe_number("other")) return c.give(affine(c, c.rows("self"), *y, 0));
  if (const auto x = c.maybe_number("self")) return c.give(affine(c, c.rows("other"), *x, 0));
  binary(c, OpKind::kMul);
}

void div(Call& c) {
  if (of_size(c)) return;
  if (c.given("rounding_mode")) throw none(c.op, " that rounds");
  if (const auto y = c.maybe_number("other")) return c.give(affine(c, c.rows("self"), 1 / *y, 0));
  if (c.maybe_number("self")) throw none(c.op, " of a number by a tensor");
  binary(c, OpKind::kDiv);
}

void divided_size(Call& c) {
  if (!of_size(c)) throw none("its ", c.op, " has no counterpart");
}

void neg(Call& c) { c.give(affine(c, c.rows("self"), -1, 0)); }

// ---- means

Rows averaged(Call& c) {
  Rows x = c.rows("self");
  if (!c.given("dim")) throw none(c.op, " over all rows");
  const std::vector<int64_t> dims = c.integers("dim");
  if (dims.empty()) throw none(c.op, " over all rows");
  Attributes a;
  a.keep = c.flag("keepdim");
  int64_t before = 0;
  for (int64_t dim : dims) {
    a.axes.push_back(static_cast<int64_t>(c.target.row_axis(x, dim, c.op)));
    const int64_t at = dim < 0 ? dim + static_cast<int64_t>(c.target.rank(x)) : dim;
    if (static_cast<size_t>(at) < x.axis) ++before;
  }
  if (!a.keep && a.axes.size() == c.target.shape(x.id).size()) throw none(c.op, " leaves no axis of a row");
  x.id = c.target.op(OpKind::kMean, {x.id}, a);
  if (!a.keep) x.axis -= static_cast<size_t>(before);
  return x;
}

void mean(Call& c) { c.give(averaged(c)); }

// As a mean times the number of elements.
void sum(Call& c) {
  const double before = static_cast<double>(c10::multiply_integers(c.target.shape(c.rows("self").id)));
  const Rows x = averaged(c);
  c.give(affine(c, x, before / static_cast<double>(c10::multiply_integers(c.target.shape(x.id))), 0));
}

// ---- products

// weight [outputs,F]
Rows linear_of(Call& c, const Rows& x, const at::Tensor& weight, const std::optional<at::Tensor>& bias) {
  if (weight.dim() != 2) throw none(c.op, " by a weight of ", weight.dim(), " axes");
  if (x.axis + 1 >= c.target.rank(x)) throw none(c.op, " along the axis of the rows");
  Attributes a;
  a.channels = weight.size(0);
  a.bias = bias.has_value();
  std::vector<at::Tensor> tensors = {weight};
  if (bias) tensors.push_back(*bias);
  Rows out = x;
  out.id = c.target.op(OpKind::kLinear, {x.id}, a, tensors);
  return out;
}

void linear(Call& c) {
  std::optional<at::Tensor> bias;
  if (c.given("bias")) bias = c.tensor("bias");
  c.give(linear_of(c, c.rows("input"), c.tensor("weight"), bias));
}

void addmm(Call& c) {
  if (c.number("beta") != 1 || c.number("alpha") != 1) throw none(c.op, " with factors");
  c.give(linear_of(c, c.rows("mat1"), c.tensor("mat2").t(), c.tensor("self")));
}

Rows product(Call& c, const Rows& x, const Rows& y, bool transpose = false) {
  if (!x.along(y) || x.axis + 2 >= c.target.rank(x)) throw none(c.op, " along the axis of the rows");
  Attributes a;
  a.transpose = transpose;
  Rows out = x;
  out.id = c.target.op(OpKind::kMatmul, {x.id, y.id}, a);
  return out;
}

void matmul(Call& c) {
  const char* second = c.takes("other") ? "other" : "mat2";
  if (!c.is_rows("self")) {
    const Rows& y = c.rows(second);
    const at::Tensor constant = c.tensor("self");
    if (constant.dim() < 2 || y.axis + 2 >= c.target.rank(y) || c.target.shape(y.id).size() != 2) {
      throw none(c.op, " of a constant of ", constant.dim(), " axes");
    }
    Rows x = y;
    x.id = beside(c, constant, y);
    return c.give(product(c, x, y));
  }
  const Rows& x = c.rows("self");
  if (c.is_rows(second)) return c.give(product(c, x, c.rows(second)));
  const at::Tensor constant = c.tensor(second);
  if (constant.dim() != 2) throw none(c.op, " by a constant of ", constant.dim(), " axes");
  const Shape row = c.target.shape(x.id);
  if (c.target.known(constant) && row.size() == 2 && x.axis + 2 < c.target.rank(x)) {
    Rows y = x;  // a parameter stays under its name, untransposed
    y.id = c.target.value(constant, constant.sizes().vec());
    return c.give(product(c, x, y));
  }
  c.give(linear_of(c, x, constant.t().contiguous(), std::nullopt));
}

// ---- attention

// softmax(q k^T scale) v
Rows attended(Call& c, const Rows& q, const Rows& k, const Rows& v, std::optional<double> scale) {
  const size_t rank = c.target.shape(q.id).size();
  Attributes last;
  last.axis = static_cast<int64_t>(rank) - 1;
  const double width = static_cast<double>(c.target.shape(q.id).back());
  Rows weights = product(c, affine(c, q, scale.value_or(1 / std::sqrt(width)), 0), k, true);
  weights.id = c.target.op(OpKind::kSoftmax, {weights.id}, last);
  return product(c, weights, v);
}

void attention(Call& c) {
  if (c.given("attn_mask") || c.number("dropout_p") != 0 || c.flag("is_causal") ||
      (c.takes("enable_gqa") && c.flag("enable_gqa"))) {
    throw none(c.op, " with a mask, dropout or groups");
  }
  std::optional<double> scale;
  if (c.given("scale")) scale = c.number("scale");
  c.give(attended(c, c.rows("query"), c.rows("key"), c.rows("value"), scale));
}

// nn.MultiheadAttention's fast path on itself: x [N,L,E].
Rows multihead(Call& c, const Rows& x, int64_t width, int64_t heads) {
  if (!x.first() || c.target.shape(x.id).size() != 2 || heads < 1 || width % heads != 0) {
    throw none(c.op, ": its rows are not [L,E]");
  }
  const int64_t length = c.target.shape(x.id)[0];
  Rows all = linear_of(c, x, c.tensor("qkv_weight"), c.tensor("qkv_bias"));
  Attributes order;
  order.axes = {1, 2, 0, 3};  // [L,3,H,E/H] to [3,H,L,E/H]
  all.id =
      c.target.op(OpKind::kPermute, {c.target.reshaped(all.id, {length, 3, heads, width / heads})}, order);
  std::array<Rows, 3> parts = {all, all, all};
  for (int64_t i = 0; i < 3; ++i) {
    Attributes slice;
    slice.begin = i;
    slice.end = i + 1;
    Rows& part = parts[static_cast<size_t>(i)];
    part.id = c.target.reshaped(c.target.op(OpKind::kSlice, {all.id}, slice), {heads, length, width / heads});
  }
  Rows y = attended(c, parts[0], parts[1], parts[2], std::nullopt);
  Attributes back;
  back.axes = {1, 0, 2};
  y.id = c.target.reshaped(c.target.op(OpKind::kPermute, {y.id}, back), {length, width});
  return linear_of(c, y, c.tensor("proj_weight"), c.tensor("proj_bias"));
}

void native_multihead(Call& c) {
  const Rows& x = c.rows("query");
  if (c.given("mask") || c.flag("need_weights") || c.rows("key").id != x.id || c.rows("value").id != x.id) {
    throw none(c.op, " with a mask, with weights, or between two tensors");
  }
  c.give(multihead(c, x, c.integer("embed_dim"), c.integer("num_head")));
}

// nn.TransformerEncoderLayer's fast path.
void native_encoder(Call& c) {
  if (c.given("mask")) throw none(c.op, " with a mask");
  const auto norm = [&](Rows x, const char* which) {
    Attributes a;
    a.epsilon = c.number("eps");
    x.id = c.target.op(OpKind::kLayerNorm, {x.id}, a,
                       {c.tensor(concat("norm_weight_", which)), c.tensor(concat("norm_bias_", which))});
    return x;
  };
  const auto sum = [&](Rows x, const Rows& y) {
    x.id = c.target.op(OpKind::kAdd, {x.id, y.id});
    return x;
  };
  const auto attend = [&](const Rows& x) {
    return multihead(c, x, c.integer("embed_dim"), c.integer("num_heads"));
  };
  const auto feed = [&](const Rows& x) {
    Rows y = linear_of(c, x, c.tensor("ffn_weight_1"), c.tensor("ffn_bias_1"));
    y.id = c.target.op(c.flag("use_gelu") ? OpKind::kGelu : OpKind::kRelu, {y.id});
    return linear_of(c, y, c.tensor("ffn_weight_2"), c.tensor("ffn_bias_2"));
  };
  Rows x = c.rows("src");
  if (c.flag("norm_first")) {
    x = sum(x, attend(norm(x, "1")));
    return c.give(sum(x, feed(norm(x, "2"))));
  }
  x = norm(sum(x, attend(x)), "1");
  c.give(norm(sum(x, feed(x)), "2"));
}

}  // namespace

std::vector<Counterpart> sum_counterparts() {
  return {
      {"aten::add", add},
      {"aten::sub", sub},
      {"aten::rsub", rsub},
      {"aten::mul", mul},
      {"aten::multiply", mul},
      {"aten::div", div},
      {"aten::true_divide", div},
      {"aten::floordiv", divided_size},
      {"aten::floor_divide", divided_size},
      {"aten::eq", eq},
      {"aten::ne", ne},
      {"aten::lt", order<false>},
      {"aten::le", order<false>},
      {"aten::gt", order<true>},
      {"aten::ge", order<true>},
      {"aten::neg", neg},
      {"aten::mean", mean},
      {"aten::sum", sum},
      {"aten::linear", linear},
      {"aten::addmm", addmm},
      {"aten::matmul", matmul},
      {"aten::mm", matmul},
      {"aten::bmm", matmul},
      {"aten::scaled_dot_product_attention", attention},
      {"aten::_native_multi_head_attention", native_multihead},
      {"aten::_transformer_encoder_layer_fwd", native_encoder},
  };
}

}  // namespace assay::script
