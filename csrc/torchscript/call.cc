// Arguments of calls, and the table of counterparts.
#include "torchscript/call.h"

#include <algorithm>

namespace assay::script {

bool depends(const Item& item) {
  if (const auto* list = std::get_if<ListRef>(&item)) {
    return std::any_of((*list)->begin(), (*list)->end(), depends);
  }
  return !std::holds_alternative<c10::IValue>(item);
}

int64_t integer_of(const Item& item, const std::string& what) {
  if (const auto* value = std::get_if<c10::IValue>(&item)) {
    if (value->isInt()) return value->toInt();
    if (value->isTensor() && value->toTensor().dim() == 0 && !value->toTensor().is_floating_point()) {
      return value->toTensor().item<int64_t>();
    }
  }
  if (std::holds_alternative<Size>(item)) throw none(what, " depends on the number of rows");
  throw none(what, ": want a constant integer");
}

List list_of(const Item& item, const std::string& what) {
  if (const auto* list = std::get_if<ListRef>(&item)) return **list;
  if (const auto* value = std::get_if<c10::IValue>(&item)) {
    List all;
    if (value->isTuple()) {
      for (const c10::IValue& element : value->toTupleRef().elements()) all.push_back(element);
      return all;
    }
    if (value->isList()) {
      for (const c10::IValue& element : value->toListRef()) all.push_back(element);
      return all;
    }
  }
  throw none(what, ": want a list");
}

bool Call::takes(const std::string& argument) const {
  return schema_.argumentIndexWithName(argument).has_value();
}

const Item& Call::at(const std::string& argument) const {
  const auto index = schema_.argumentIndexWithName(argument);
  if (!index || static_cast<size_t>(*index) >= inputs_.size()) throw none(op, " without ", argument);
  return inputs_[static_cast<size_t>(*index)];
}

bool Call::given(const std::string& argument) const {
  if (!takes(argument)) return false;
  const auto* value = std::get_if<c10::IValue>(&at(argument));
  return value == nullptr || !value->isNone();
}

const Rows& Call::rows(const std::string& argument) const {
  const auto* rows = std::get_if<RowsRef>(&at(argument));
  if (rows == nullptr) throw none(op, ": its ", argument, " does not depend on the input");
  if ((*rows)->spread) throw none(op, " of an expanded tensor");
  return **rows;
}

int Call::first(const std::string& argument) const {
  const Rows& rows = this->rows(argument);
  if (!rows.first()) throw none(op, ": the rows are not along its first axis");
  return rows.id;
}

at::Tensor Call::tensor(const std::string& argument) const {
  const auto* value = std::get_if<c10::IValue>(&at(argument));
  if (value == nullptr) throw none(op, ": its ", argument, " depends on the input");
  if (!value->isTensor()) throw none(op, ": its ", argument, " is no tensor");
  return value->toTensor();
}

at::Tensor Call::tensor_or(const std::string& argument, const at::Tensor& otherwise) const {
  return given(argument) ? tensor(argument) : otherwise;
}

int64_t Call::integer(const std::string& argument) const {
  return integer_of(at(argument), concat(op, ": its ", argument));
}

std::optional<double> Call::maybe_number(const std::string& argument) const {
  const auto* value = std::get_if<c10::IValue>(&at(argument));
  if (value == nullptr) return std::nullopt;
  if (value->isInt()) return static_cast<double>(value->toInt());
  if (value->isDouble()) return value->toDouble();
  if (value->isTensor() && value->toTensor().dim() == 0) return value->toTensor().item<double>();
  return std::nullopt;
}

double Call::number(const std::string& argument) const {
  const auto number = maybe_number(argument);
  if (!number) throw none(op, ": its ", argument, " is not a constant number");
  return *number;
}

bool Call::flag(const std::string& argument) const {
  const auto* value = std::get_if<c10::IValue>(&at(argument));
  if (value == nullptr || !value->isBool())
    throw none(op, ": its ", argument, " is not a constant truth value");
  return value->toBool();
}

std::string Call::word(const std::string& argument) const {
  const auto* value = std::get_if<c10::IValue>(&at(argument));
  if (value == nullptr || !value->isString()) throw none(op, ": its ", argument, " is not a constant string");
  return value->toStringRef();
}

List Call::list(const std::string& argument) const {
  return list_of(at(argument), concat(op, ": its ", argument));
}

std::vector<int64_t> Call::integers(const std::string& argument) const {
  const Item& item = at(argument);
  const auto* value = std::get_if<c10::IValue>(&item);
  if (value != nullptr && value->isInt()) return {value->toInt()};
  std::vector<int64_t> all;
  for (const Item& element : list(argument)) {
    all.push_back(integer_of(element, concat(op, ": its ", argument)));
  }
  return all;
}

std::array<int64_t, 2> Call::pair(const std::string& argument) const {
  const std::vector<int64_t> all = integers(argument);
  if (all.size() != 1 && all.size() != 2) throw none(op, ": its ", argument, " is not of two dimensions");
  return {all.front(), all.back()};
}

int64_t Call::dim(const std::string& argument, size_t rank) const {
  const int64_t given = integer(argument), axes = static_cast<int64_t>(rank);
  const int64_t dim = given < 0 ? given + axes : given;
  if (dim < 0 || dim >= axes) throw none(op, ": axis ", given, " of ", rank);
  return dim;
}

Handler counterpart(const std::string& op) {
  static const std::map<std::string, Handler> table = [] {
    std::map<std::string, Handler> all;
    for (const auto& part : {layer_counterparts(), move_counterparts(), sum_counterparts()}) {
      for (const Counterpart& entry : part) all[entry.op] = entry.handler;
    }
    return all;
  }();
  const auto found = table.find(op);
  return found == table.end() ? nullptr : found->second;
}

}  // namespace assay::script
