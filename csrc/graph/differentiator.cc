#include "graph/differentiator.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "api/error.h"
#include "graph/engine.h"
#include "graph/ops.h"
#include "graph/tf32.h"

namespace assay {
namespace {

size_t at_value(int value) { return static_cast<size_t>(value); }

// Nothing else holds the tensor's memory.
bool owned(const at::Tensor& x) {
  return x.use_count() == 1 && x.storage().use_count() == 1 && x.is_non_overlapping_and_dense();
}

}  // namespace

Differentiator::Differentiator(const Graph& graph, const std::vector<at::Tensor>& state, int origin,
                               at::Device device, at::ScalarType dtype, bool tf32)
    : graph_(graph),
      device_(device),
      dtype_(dtype),
      tf32_(tf32),
      plan_(make_plan(graph, state, dtype, {.keep = {origin}, .differentiable = true})) {
  origin_ = plan_.alias[at_value(origin)];
  const bool onednn = device.is_cpu() && dtype == at::kFloat && onednn_supports(dtype) && finite(plan_);
  const size_t steps = plan_.steps.size();
  follows_.assign(plan_.values, false);
  follows_[at_value(origin_)] = true;
  for (size_t i = 0; i < steps; ++i) {
    Step& step = plan_.steps[i];
    const auto follows = [&](int value) { return value >= 0 && follows_[at_value(value)]; };
    const bool after =
        step.output != origin_ &&
        (std::any_of(step.inputs.begin(), step.inputs.end(), follows) || follows(step.residual));
    if (after) follows_[at_value(step.output)] = true;
    (after ? after_ : before_).push_back(i);
    if (!step.weighted) {
      weighted_.push_back(nullptr);
      for (at::Tensor& parameter : step.parameters) parameter = parameter.to(device);
      continue;
    }
    const Shape& input = graph.values[at_value(step.inputs[0])].shape;
    weighted_.push_back(onednn ? make_onednn_weighted(step, input, after ? Use::kBoth : Use::kForward)
                               : make_aten_weighted(step, device, dtype));
    step.parameters.clear();
  }
  if (!follows_[at_value(plan_.output)]) throw unsupported("the logits do not depend on the layer");
  frontier_ = {origin_};
  kept_.assign(plan_.values, false);
  last_before_.assign(plan_.values, 0);
  last_after_.assign(plan_.values, 0);
  for (size_t i = 0; i < steps; ++i) {
    const Step& step = plan_.steps[i];
    const bool after = follows_[at_value(step.output)] && step.output != origin_;
    std::vector<int> read = step.inputs;
    if (step.residual >= 0) read.push_back(step.residual);
    for (int value : read) {
      (after ? last_after_ : last_before_)[at_value(value)] = i;
      if (after && !follows_[at_value(value)] &&
          std::find(frontier_.begin(), frontier_.end(), value) == frontier_.end()) {
        frontier_.push_back(value);
      }
    }
    if (!after) continue;
    if (step.activation != nullptr) kept_[at_value(step.output)] = true;
    if (step.weighted) continue;
    const bool activation = op_definition(step.op->kind).activation && derivative_of_output(step.op->kind);
    const Derivative& rule = derivative(step.op->kind);
    if (activation || rule.output) kept_[at_value(step.output)] = true;
    if (!activation && rule.inputs) {
      for (int value : step.inputs) kept_[at_value(value)] = true;
    }
  }
}

at::Tensor Differentiator::run(const Step& step, const std::vector<at::Tensor>& values) const {
  if (step.weighted) {
    const at::Tensor residual = step.residual >= 0 ? values[at_value(step.residual)] : at::Tensor();
    return weighted_[static_cast<size_t>(&step - plan_.steps.data())]->apply(values[at_value(step.inputs[0])],
                                                                             residual,
                                                                             /*overwrite=*/false);
  }
  std::vector<at::Tensor> inputs;
  for (int input : step.inputs) inputs.push_back(values[at_value(input)]);
  if (device_.is_cpu() && dtype_ == at::kFloat) return onednn_plain(step, inputs);
  return op_definition(step.op->kind).forward(*step.op, inputs, step.parameters);
}

std::vector<at::Tensor> Differentiator::head(const at::Tensor& x) const {
  std::optional<TF32Guard> guard;
  if (device_.is_cuda()) guard.emplace(tf32_);
  std::vector<at::Tensor> values(plan_.values);
  values[0] = x.to(dtype_);
  if (x.dim() == 4) values[0] = values[0].contiguous(at::MemoryFormat::ChannelsLast);
  if (origin_ == 0 && frontier_.size() == 1) return {values[0]};
  const auto wanted = [&](int value) {
    return std::find(frontier_.begin(), frontier_.end(), value) != frontier_.end();
  };
  size_t missing = frontier_.size() - (wanted(0) ? 1 : 0);
  for (size_t i : before_) {
    const Step& step = plan_.steps[i];
    values[at_value(step.output)] = run(step, values);
    if (wanted(step.output) && --missing == 0) break;
    std::vector<int> read = step.inputs;
    if (step.residual >= 0) read.push_back(step.residual);
    for (int value : read) {
      if (last_before_[at_value(value)] == i && !wanted(value)) values[at_value(value)] = at::Tensor();
    }
  }
  std::vector<at::Tensor> out;
  for (int value : frontier_) out.push_back(values[at_value(value)]);
  return out;
}

at::Tensor Differentiator::forward(std::vector<at::Tensor> given, Tape* tape) const {
  std::optional<TF32Guard> guard;
  if (device_.is_cuda()) guard.emplace(tf32_);
  if (given.size() != frontier_.size()) {
    throw invalid(given.size(), " values for the part after the layer: want ", frontier_.size());
  }
  std::vector<at::Tensor> values(plan_.values);
  if (tape != nullptr) {
    tape->values.resize(plan_.values);
    tape->sizes.resize(plan_.values);
  }
  const auto note = [&](int value) {
    if (tape == nullptr) return;
    tape->sizes[at_value(value)] = values[at_value(value)].sizes().vec();
    if (kept_[at_value(value)]) tape->values[at_value(value)] = values[at_value(value)];
  };
  for (size_t i = 0; i < given.size(); ++i) {
    values[at_value(frontier_[i])] = std::move(given[i]);
    note(frontier_[i]);
  }
  for (size_t i : after_) {
    const Step& step = plan_.steps[i];
    values[at_value(step.output)] = run(step, values);
    note(step.output);
    std::vector<int> read = step.inputs;
    if (step.residual >= 0) read.push_back(step.residual);
    for (int value : read) {
      if (last_after_[at_value(value)] == i && value != plan_.output) values[at_value(value)] = at::Tensor();
    }
  }
  return values[at_value(plan_.output)];
}

std::vector<at::Tensor> Differentiator::head_of(const Tape& tape) const {
  std::vector<at::Tensor> out;
  for (int value : frontier_) {
    if (at_value(value) >= tape.values.size() || !tape.values[at_value(value)].defined()) return {};
    out.push_back(tape.values[at_value(value)]);
  }
  return out;
}

at::Tensor Differentiator::tail(const std::vector<at::Tensor>& values) const {
  return forward(values, nullptr);
}

Tape Differentiator::record(const std::vector<at::Tensor>& values) const {
  Tape tape;
  tape.logits = forward(values, &tape);
  return tape;
}

at::Tensor Differentiator::pull(Tape tape, const at::Tensor& gradient, ReluRule relu) const {
  std::optional<TF32Guard> guard;
  if (device_.is_cuda()) guard.emplace(tf32_);
  // Up to two summands a value: a sum goes through ReLU as it is made.
  struct Sum {
    at::Tensor gradient, more;
    void give(at::Tensor part) {
      if (!gradient.defined()) {
        gradient = std::move(part);
        return;
      }
      if (more.defined()) settle();
      more = std::move(part);
      if (!owned(gradient) && owned(more)) std::swap(gradient, more);
    }
    void settle() {
      if (!more.defined()) return;
      gradient = owned(gradient) ? gradient.add_(more) : gradient + more;
      more = at::Tensor();
    }
  };
  std::vector<Sum> sums(plan_.values);
  sums[at_value(plan_.output)].give(gradient.to(dtype_));
  const auto give = [&](int value, at::Tensor part) {
    if (follows_[at_value(value)]) sums[at_value(value)].give(std::move(part));
  };
  for (auto i = after_.rbegin(); i != after_.rend(); ++i) {
    const Step& step = plan_.steps[*i];
    Sum sum = std::exchange(sums[at_value(step.output)], {});
    if (!sum.gradient.defined()) continue;  // nothing that the logits depend on
    const at::Tensor output = std::exchange(tape.values[at_value(step.output)], {});
    const Op* activation = step.activation;
    const bool alone =
        !step.weighted && op_definition(step.op->kind).activation && derivative_of_output(step.op->kind);
    if (alone) activation = step.op;
    at::Tensor g;
    if (activation != nullptr) {
      const bool overwrite = owned(sum.gradient);
      g = pull_activation(*activation, std::move(sum.gradient), sum.more, output, overwrite, relu);
      sum = {};
    } else {
      sum.settle();
      g = std::move(sum.gradient);
    }
    if (alone) {
      give(step.inputs[0], std::move(g));
      continue;
    }
    if (step.weighted) {
      const int input = step.inputs[0];
      if (follows_[at_value(input)]) give(input, weighted_[*i]->pull(g, tape.sizes[at_value(input)]));
      if (step.residual >= 0) give(step.residual, std::move(g));
      continue;
    }
    std::vector<at::Tensor> inputs;
    std::vector<std::vector<int64_t>> sizes;
    for (int value : step.inputs) {
      inputs.push_back(tape.values[at_value(value)]);
      sizes.push_back(tape.sizes[at_value(value)]);
    }
    std::vector<at::Tensor> parts =
        derivative(step.op->kind).pull({*step.op, inputs, std::move(sizes), step.parameters, output}, g);
    g = at::Tensor();
    for (size_t k = 0; k < step.inputs.size(); ++k) give(step.inputs[k], std::move(parts[k]));
  }
  Sum& all = sums[at_value(origin_)];
  all.settle();
  return all.gradient;
}

void Differentiator::want_relus(const std::string& method) const {
  for (size_t i : after_) {
    for (const Op* op : {plan_.steps[i].op, plan_.steps[i].activation}) {
      if (op == nullptr || !op_definition(op->kind).activation) continue;
      if (op->kind == OpKind::kRelu || op->kind == OpKind::kRelu6) continue;
      throw unsupported("method ", method, ": not defined for ", op_definition(op->kind).name, " at ",
                        op->name, ": its rules are for nets of ReLU and ReLU6");
    }
  }
}

}  // namespace assay
