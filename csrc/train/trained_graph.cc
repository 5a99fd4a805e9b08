#include "train/trained_graph.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <set>

#include "api/error.h"
#include "graph/ops.h"
#include "train/dropout.h"
#include "train/key.h"

namespace assay {
namespace {

constexpr size_t kRunningMean = 2, kRunningVariance = 3, kBatches = 4;  // of a batch norm's parameters

// Ops whose gradient does not need their output, so that it may be overwritten.
bool output_is_free(OpKind kind) {
  return kind == OpKind::kConv2d || kind == OpKind::kBatchNorm || kind == OpKind::kAdd ||
         kind == OpKind::kLinear;
}

}  // namespace

at::ScalarType training_dtype(Precision precision) {
  return precision == Precision::kF64 ? at::kDouble : at::kFloat;
}

at::MemoryFormat training_format(at::Device device, Precision precision) {
  const bool last = device.is_cpu() ? precision != Precision::kF64
                                    : precision == Precision::kTF32 || precision == Precision::kBF16;
  return last ? at::MemoryFormat::ChannelsLast : at::MemoryFormat::Contiguous;
}

TrainedGraph::TrainedGraph(Graph graph, const std::vector<at::Tensor>& initial,
                           std::vector<std::string> names, const OptimizerOptions& optimizer, uint64_t seed,
                           at::Device device, Precision precision)
    : graph_(std::move(graph)),
      names_(std::move(names)),
      device_(device),
      dtype_(training_dtype(precision)),
      format_(training_format(device, precision)),
      optimizer_(make_optimizer(optimizer)) {
  at::NoGradGuard no_grad;
  if (names_.empty()) {
    for (const ParameterInfo& parameter : graph_.parameters) names_.push_back(parameter.name);
  }
  compile(seed);
  values_.resize(initial.size());
  for (size_t p = 0; p < initial.size(); ++p) {
    if (initial[p].defined() && !batches_.contains(p)) values_[p] = placed(initial[p]);
  }
  for (size_t p : trained_) values_[p].set_requires_grad(true);
  optimizer_state_ = fresh_state();
}

void TrainedGraph::compile(uint64_t seed) {
  std::vector<size_t> last_use(graph_.values.size(), 0), uses(graph_.values.size(), 0);
  for (size_t i = 0; i < graph_.ops.size(); ++i) {
    for (int value : graph_.ops[i].inputs) {
      last_use[static_cast<size_t>(value)] = i;
      ++uses[static_cast<size_t>(value)];
    }
  }
  const auto output = static_cast<size_t>(graph_.output);
  last_use[output] = graph_.ops.size();
  ++uses[output];
  std::set<size_t> trained;
  for (size_t i = 0; i < graph_.ops.size(); ++i) {
    const Op& op = graph_.ops[i];
    Node node;
    node.op = &op;
    for (size_t k = 0; k < op.parameters.size(); ++k) {
      const auto p = static_cast<size_t>(op.parameters[k]);
      const ParameterInfo& parameter = graph_.parameters[p];
      if (op.kind == OpKind::kBatchNorm && k == kBatches) {
        node.batches = &batches_[p];
      } else if (!parameter.optional) {
        node.parameters.push_back(p);
        if (!parameter.buffer) trained.insert(p);
      }
    }
    for (int value : std::set<int>(op.inputs.begin(), op.inputs.end())) {
      if (last_use[static_cast<size_t>(value)] == i) node.last_uses.push_back(value);
    }
    if (op.kind == OpKind::kRelu) {
      const Value& input = graph_.values[static_cast<size_t>(op.inputs[0])];
      node.in_place = input.producer >= 0 && uses[static_cast<size_t>(op.inputs[0])] == 1 &&
                      output_is_free(graph_.ops[static_cast<size_t>(input.producer)].kind);
    }
    if (op.kind == OpKind::kDropout) node.key = random_key(seed, "train/dropout", op.name);
    nodes_.push_back(std::move(node));
  }
  trained_.assign(trained.begin(), trained.end());
}

// A copy on the device in the type and layout of this training.
at::Tensor TrainedGraph::placed(const at::Tensor& value) const {
  return value.detach().to(at::TensorOptions(device_).dtype(dtype_), /*non_blocking=*/false, /*copy=*/true,
                           value.dim() == 4 ? format_ : at::MemoryFormat::Contiguous);
}

std::vector<std::vector<at::Tensor>> TrainedGraph::fresh_state() const {
  std::vector<std::vector<at::Tensor>> state(optimizer_->kinds().size());
  for (auto& kind : state) {
    for (size_t p : trained_) kind.push_back(at::zeros_like(values_[p]).set_requires_grad(false));
  }
  return state;
}

at::Tensor TrainedGraph::forward(const at::Tensor& x, bool training, int64_t step,
                                 const std::vector<at::Tensor>* in_place) {
  const std::vector<at::Tensor>& all = in_place == nullptr ? values_ : *in_place;
  std::vector<at::Tensor> values(graph_.values.size()), inputs, parameters;
  values[0] = x.dim() > 2 && input().size() == 1 ? x.flatten(1) : x;
  for (const Node& node : nodes_) {
    const Op& op = *node.op;
    inputs.clear();
    parameters.clear();
    for (int value : op.inputs) inputs.push_back(values[static_cast<size_t>(value)]);
    for (size_t p : node.parameters) parameters.push_back(all[p]);
    for (int value : node.last_uses) values[static_cast<size_t>(value)] = at::Tensor();
    at::Tensor& out = values[static_cast<size_t>(op.output)];
    out = training ? train_op(node, inputs, parameters, step)
                   : op_definition(op.kind).forward(op, inputs, parameters);
  }
  return values[static_cast<size_t>(graph_.output)].to(dtype_);
}

// What differs from inference.
at::Tensor TrainedGraph::train_op(const Node& node, std::vector<at::Tensor>& inputs,
                                  const std::vector<at::Tensor>& parameters, int64_t step) const {
  const Op& op = *node.op;
  const at::Tensor& x = inputs.empty() ? at::Tensor() : inputs[0];
  if (op.kind == OpKind::kBatchNorm) {
    if (x.numel() == x.size(1)) {
      throw invalid(op.name, ": one value a channel has no variance: want a batch of 2 or more");
    }
    if (node.batches != nullptr) ++*node.batches;
    return at::batch_norm(x, parameters[0], parameters[1], parameters[kRunningMean],
                          parameters[kRunningVariance], /*training=*/true, op.attributes.momentum,
                          op.attributes.epsilon, /*cudnn_enabled=*/true);
  }
  if (op.kind == OpKind::kDropout && op.attributes.probability > 0) {
    return x * dropout_mask(x.sizes(), op.attributes.probability, node.key, static_cast<uint64_t>(step),
                            at::TensorOptions(device_).dtype(dtype_))
                   .to(x.scalar_type());
  }
  if (node.in_place) return at::relu_(inputs[0]);
  return op_definition(op.kind).forward(op, inputs, parameters);
}

std::vector<at::Tensor> TrainedGraph::leaves() const {
  std::vector<at::Tensor> out;
  for (size_t p : trained_) out.push_back(values_[p]);
  return out;
}

void TrainedGraph::descend(std::vector<at::Tensor> gradients, double rate, int64_t number) {
  std::vector<at::Tensor> changed, downhill;
  std::vector<std::vector<at::Tensor>> state(optimizer_state_.size());
  for (size_t i = 0; i < trained_.size(); ++i) {
    at::Tensor& gradient = gradients[i];
    if (!gradient.defined()) continue;
    const at::Tensor& leaf = values_[trained_[i]];
    // Fused updates go through memory in order: layouts must be equal.
    if (gradient.strides() != leaf.strides()) gradient = at::empty_like(leaf).copy_(gradient);
    changed.push_back(leaf.detach());
    downhill.push_back(gradient);
    for (size_t kind = 0; kind < state.size(); ++kind) state[kind].push_back(optimizer_state_[kind][i]);
  }
  optimizer_->step(changed, downhill, state, rate, number);
}

NamedTensors TrainedGraph::parameters() const {
  NamedTensors out;
  for (size_t p = 0; p < graph_.parameters.size(); ++p) {
    if (const auto found = batches_.find(p); found != batches_.end()) {
      out.emplace_back(names_[p], at::full({}, found->second, at::kLong));
    } else if (values_[p].defined()) {
      out.emplace_back(names_[p], values_[p].detach());
    }
  }
  return out;
}

NamedTensors TrainedGraph::optimizer_state() const {
  NamedTensors out;
  const std::vector<std::string> kinds = optimizer_->kinds();
  for (size_t i = 0; i < trained_.size(); ++i) {
    for (size_t kind = 0; kind < kinds.size(); ++kind) {
      out.emplace_back(names_[trained_[i]] + "/" + kinds[kind], optimizer_state_[kind][i]);
    }
  }
  return out;
}

std::vector<Wanted> TrainedGraph::wanted_parameters() const {
  std::vector<Wanted> wanted;
  for (size_t p = 0; p < graph_.parameters.size(); ++p) {
    const ParameterInfo& parameter = graph_.parameters[p];
    wanted.push_back({names_[p], parameter.shape, parameter.optional, batches_.contains(p)});
  }
  return wanted;
}

std::vector<Wanted> TrainedGraph::wanted_optimizer_state() const {
  std::vector<Wanted> wanted;
  for (size_t p : trained_) {
    for (const std::string& kind : optimizer_->kinds()) {
      wanted.push_back({names_[p] + "/" + kind, graph_.parameters[p].shape, false, false});
    }
  }
  return wanted;
}

void TrainedGraph::take(c10::ArrayRef<at::Tensor> parameters, c10::ArrayRef<at::Tensor> optimizer) {
  at::NoGradGuard no_grad;
  std::vector<at::Tensor> values(parameters.size());
  std::map<size_t, int64_t> batches;
  for (size_t p = 0; p < parameters.size(); ++p) {
    if (batches_.contains(p)) {
      batches[p] = parameters[p].defined() ? parameters[p].to(at::kCPU, at::kLong).item<int64_t>() : 0;
    } else if (parameters[p].defined()) {
      values[p] = placed(parameters[p]);
    }
  }
  const size_t kinds = optimizer_->kinds().size();
  std::vector<std::vector<at::Tensor>> state(kinds);
  for (size_t i = 0; i < optimizer.size(); ++i) state[i % kinds].push_back(placed(optimizer[i]));
  for (size_t p : trained_) values[p].set_requires_grad(true);
  values_ = std::move(values);
  for (const auto& [p, count] : batches) batches_[p] = count;  // nodes point at the entries
  optimizer_state_ = optimizer.empty() ? fresh_state() : std::move(state);
}

}  // namespace assay
