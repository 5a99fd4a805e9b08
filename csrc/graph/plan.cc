// Folding and fusing.
#include "graph/plan.h"

#include <algorithm>

#include "graph/derivatives.h"
#include "graph/ops.h"

namespace assay {
namespace {

class Planner {
 public:
  Planner(const Graph& graph, const std::vector<at::Tensor>& state, at::ScalarType dtype,
          const PlanOptions& options)
      : graph_(graph),
        state_(state),
        dtype_(dtype),
        differentiable_(options.differentiable),
        users_(graph.values.size()),
        alias_(graph.values.size()) {
    for (size_t v = 0; v < alias_.size(); ++v) alias_[v] = static_cast<int>(v);
    for (const Op& op : graph.ops) {
      if (op.kind == OpKind::kDropout) {
        alias_[static_cast<size_t>(op.output)] = resolve(op.inputs[0]);
        continue;
      }
      for (int input : op.inputs) users_[static_cast<size_t>(resolve(input))].push_back(&op);
    }
    for (int value : options.keep) kept_.push_back(resolve(value));
  }

  Plan plan() {
    Plan plan;
    plan.values = graph_.values.size();
    std::vector<bool> done(graph_.ops.size(), false);
    const auto index = [&](const Op* op) { return static_cast<size_t>(op - graph_.ops.data()); };
    for (const Op& op : graph_.ops) {
      if (done[index(&op)] || op.kind == OpKind::kDropout) continue;
      if (op.kind != OpKind::kConv2d && op.kind != OpKind::kLinear) {
        plan.steps.push_back(plain(op));
        continue;
      }
      Chain chain = follow(op);
      // Where the other side of the addition comes later, that one may take this
      // one's output as its residual.
      if (chain.add != nullptr && !ready(chain, plan)) {
        chain.add = nullptr;
        chain.activation = nullptr;
      }
      for (const Op* part : {chain.norm, chain.add, chain.activation}) {
        if (part != nullptr) done[index(part)] = true;
      }
      plan.steps.push_back(weighted(op, chain));
    }
    plan.output = resolve(graph_.output);
    plan.alias = alias_;
    release(plan);
    return plan;
  }

 private:
  // What can be hung onto a convolution.
  struct Chain {
    const Op* norm = nullptr;
    const Op* add = nullptr;
    const Op* activation = nullptr;
    int residual = -1;
  };

  // The one op that reads a value, or none: fused values are never written.
  const Op* only_user(int value) const {
    const auto& users = users_[static_cast<size_t>(value)];
    const bool seen =
        value == resolve(graph_.output) || std::find(kept_.begin(), kept_.end(), value) != kept_.end();
    return users.size() == 1 && !seen ? users.front() : nullptr;
  }

  const Value& value_of(int value) const { return graph_.values[static_cast<size_t>(value)]; }

  // Whether one op may be hung onto another: only where the rows' first axis
  // counts the weighted op's outputs.
  bool normalises(const Op& weighted, const Op* next) const {
    return next != nullptr && next->kind == OpKind::kBatchNorm &&
           (weighted.kind == OpKind::kConv2d || value_of(weighted.output).shape.size() == 1);
  }

  // Equal shapes, and rows of its own for every row of the batch.
  bool fits_residual(const Op& add, int residual) const {
    return value_of(residual).batched && value_of(residual).shape == value_of(add.output).shape &&
           resolve(add.inputs[0]) != resolve(add.inputs[1]);
  }

  Chain follow(const Op& op) const {
    Chain chain;
    int value = op.output;
    const Op* next = only_user(value);
    if (normalises(op, next)) {
      chain.norm = next;
      value = next->output;
      next = only_user(value);
    }
    if (next != nullptr && next->kind == OpKind::kAdd) {
      const int residual = resolve(next->inputs[resolve(next->inputs[0]) == value ? 1 : 0]);
      if (!fits_residual(*next, residual)) return chain;
      chain.add = next;
      chain.residual = residual;
      next = only_user(next->output);
    }
    if (next != nullptr && op_definition(next->kind).activation &&
        (!differentiable_ || derivative_of_output(next->kind))) {
      chain.activation = next;
    }
    return chain;
  }

  // The residual is the input, or some step has written it already.
  bool ready(const Chain& chain, const Plan& plan) const {
    const int residual = resolve(chain.residual);
    return residual == 0 || std::any_of(plan.steps.begin(), plan.steps.end(),
                                        [&](const Step& step) { return step.output == residual; });
  }

  int resolve(int value) const { return alias_[static_cast<size_t>(value)]; }

  Step plain(const Op& op) const {
    Step step{.op = &op, .weighted = false, .inputs = {}, .output = op.output, .dead = {}, .parameters = {}};
    for (int input : op.inputs) step.inputs.push_back(resolve(input));
    for (int parameter : op.parameters) {
      if (graph_.parameters[static_cast<size_t>(parameter)].optional) continue;
      step.parameters.push_back(state_[static_cast<size_t>(parameter)].to(dtype_));
    }
    return step;
  }

  Step weighted(const Op& op, const Chain& chain) const {
    Step step{.op = &op,
              .weighted = true,
              .inputs = {resolve(op.inputs[0])},
              .output = op.output,
              .dead = {},
              .parameters = {}};
    const auto parameter = [&](const Op& of, size_t i) {
      return state_[static_cast<size_t>(of.parameters[i])].to(at::kDouble);
    };
    at::Tensor weight = parameter(op, 0);
    if (weight.dim() == 2) weight = weight.view({weight.size(0), weight.size(1), 1, 1});
    at::Tensor bias = op.parameters.size() > 1 ? parameter(op, 1) : at::zeros({weight.size(0)}, at::kDouble);
    if (chain.norm != nullptr) {
      const Op& norm = *chain.norm;
      const at::Tensor scale = parameter(norm, 0) / at::sqrt(parameter(norm, 3) + norm.attributes.epsilon);
      weight = weight * scale.view({-1, 1, 1, 1});
      bias = parameter(norm, 1) + (bias - parameter(norm, 2)) * scale;
      step.output = norm.output;
    }
    if (chain.add != nullptr) {
      step.residual = resolve(chain.residual);
      step.output = chain.add->output;
    }
    if (chain.activation != nullptr) {
      step.activation = chain.activation;
      step.output = chain.activation->output;
    }
    step.parameters = {weight.to(dtype_), bias.to(dtype_)};
    return step;
  }

  // Says after which step each value is dead, and which residuals may be
  // overwritten. Values that may share memory (flatten gives a view) live and
  // die together; the input is the caller's and is never written, and what is
  // made of parameters alone is no residual.
  void release(Plan& plan) const {
    std::vector<int> root(plan.values);
    for (size_t v = 0; v < root.size(); ++v) root[v] = static_cast<int>(v);
    for (const Step& step : plan.steps) {
      if (op_definition(step.op->kind).view && !step.inputs.empty()) {
        root[static_cast<size_t>(step.output)] = root[static_cast<size_t>(step.inputs[0])];
      }
    }
    const auto root_of = [&](int value) { return root[static_cast<size_t>(value)]; };
    std::vector<bool> live(plan.values, false);  // by root, seen from the end
    live[static_cast<size_t>(root_of(plan.output))] = true;
    for (auto step = plan.steps.rbegin(); step != plan.steps.rend(); ++step) {
      std::vector<int> read = step->inputs;
      if (step->residual >= 0) {
        const int residual = root_of(step->residual);
        const bool also_input = root_of(step->inputs[0]) == residual;
        step->overwrite = !live[static_cast<size_t>(residual)] && residual != root_of(0) && !also_input;
        read.push_back(step->residual);
      }
      std::vector<int> dying;
      for (int value : read) {
        const int r = root_of(value);
        if (live[static_cast<size_t>(r)]) continue;
        live[static_cast<size_t>(r)] = true;
        dying.push_back(r);
      }
      for (size_t v = 0; v < root.size(); ++v) {
        if (std::find(dying.begin(), dying.end(), root[v]) != dying.end()) {
          step->dead.push_back(static_cast<int>(v));
        }
      }
    }
  }

  const Graph& graph_;
  const std::vector<at::Tensor>& state_;
  at::ScalarType dtype_;
  bool differentiable_;
  std::vector<int> kept_;
  std::vector<std::vector<const Op*>> users_;
  std::vector<int> alias_;  // dropout's output is its input
};

}  // namespace

Plan make_plan(const Graph& graph, const std::vector<at::Tensor>& state, at::ScalarType dtype,
               const PlanOptions& options) {
  return Planner(graph, state, dtype, options).plan();
}

bool finite(const Plan& plan) {
  return std::all_of(plan.steps.begin(), plan.steps.end(), [](const Step& step) {
    return std::all_of(step.parameters.begin(), step.parameters.end(), [](const at::Tensor& parameter) {
      return at::isfinite(parameter).all().item<bool>();
    });
  });
}

}  // namespace assay
