#include "train/trainer.h"

#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "api/error.h"
#include "graph/engine.h"
#include "graph/ops.h"
#include "train/dropout.h"
#include "train/guards.h"
#include "train/initial.h"
#include "train/key.h"
#include "train/state.h"

namespace assay {
namespace {

constexpr size_t kRunningMean = 2, kRunningVariance = 3, kBatches = 4;  // of a batch norm's parameters

// Channels last is what oneDNN and the tensor cores compute in: other layouts are
// copied to it and back. Plain f32 on GPUs and f64 have no such kernels.
at::MemoryFormat memory_format(at::Device device, Precision precision) {
  const bool last = device.is_cpu() ? precision != Precision::kF64
                                    : precision == Precision::kTF32 || precision == Precision::kBF16;
  return last ? at::MemoryFormat::ChannelsLast : at::MemoryFormat::Contiguous;
}

// Ops whose gradient does not need their output, so that it may be overwritten.
bool output_is_free(OpKind kind) {
  return kind == OpKind::kConv2d || kind == OpKind::kBatchNorm || kind == OpKind::kAdd ||
         kind == OpKind::kLinear;
}

}  // namespace

Trainer::Trainer(const Net& net, const TrainerOptions& options, at::Device device, Precision precision)
    : id_(net.id()),
      graph_(net.graph()),
      input_(net.input_shape()),
      classes_(net.classes()),
      options_(options),
      device_(device),
      precision_(precision),
      dtype_(precision == Precision::kF64 ? at::kDouble : at::kFloat),
      format_(memory_format(device, precision)),
      optimizer_(make_optimizer(options.optimizer)) {
  if (!device.is_cpu() && !device.is_cuda())
    throw unsupported("device ", device.str(), ": want cpu or cuda:N");
  if (!(options.label_smoothing >= 0 && options.label_smoothing < 1)) {
    throw invalid("labelSmoothing ", options.label_smoothing, ": want 0 <= labelSmoothing < 1");
  }
  if (options.augment.pad < 0 || options.augment.pad > 4096) {
    throw invalid("augment: pad ", options.augment.pad, ": want 0..4096");
  }
  const Normalisation& n = options.normalisation;
  if (!(n.scale > 0) || !std::isfinite(n.scale)) throw invalid("scale ", n.scale, ": want more than 0");
  for (double mean : n.mean) {
    if (!std::isfinite(mean)) throw invalid("mean ", mean, ": want a finite number");
  }
  for (double std : n.std) {
    if (!(std > 0) || !std::isfinite(std)) throw invalid("std ", std, ": want more than 0");
  }
  if (device.is_cpu() && precision == Precision::kBF16 && !onednn_supports(at::kBFloat16)) {
    throw unsupported("precision bf16: this CPU or libtorch cannot, want f32");
  }
  at::NoGradGuard no_grad;
  compile();
  const std::vector<at::Tensor> initial = initial_parameters(graph_, options.seed);
  values_.resize(initial.size());
  for (size_t p = 0; p < initial.size(); ++p) {
    if (initial[p].defined() && !batches_.contains(p)) values_[p] = placed(initial[p]);
  }
  for (size_t p : trained_) values_[p].set_requires_grad(true);
  optimizer_state_ = fresh_state();
}

void Trainer::compile() {
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
    if (op.kind == OpKind::kDropout) node.key = random_key(options_.seed, "train/dropout", op.name);
    nodes_.push_back(std::move(node));
  }
  trained_.assign(trained.begin(), trained.end());
}

// A copy on the device in the type and layout of this training.
at::Tensor Trainer::placed(const at::Tensor& value) const {
  return value.detach().to(at::TensorOptions(device_).dtype(dtype_), /*non_blocking=*/false, /*copy=*/true,
                           value.dim() == 4 ? format_ : at::MemoryFormat::Contiguous);
}

std::vector<std::vector<at::Tensor>> Trainer::fresh_state() const {
  std::vector<std::vector<at::Tensor>> state(optimizer_->kinds().size());
  for (auto& kind : state) {
    for (size_t p : trained_) kind.push_back(at::zeros_like(values_[p]).set_requires_grad(false));
  }
  return state;
}

void Trainer::set_data(const std::string& name, const at::Tensor& examples, const at::Tensor& labels) {
  at::NoGradGuard no_grad;
  Part part = make_part(examples, labels, input_, classes_, device_);
  const Loader check(part, options_.normalisation, name == "train" ? options_.augment : Augment{}, dtype_,
                     format_);
  parts_[name] = std::move(part);
}

const Part& Trainer::part(const std::string& name) const {
  const auto found = parts_.find(name);
  if (found == parts_.end()) throw not_found("data \"", name, "\": none was given");
  return found->second;
}

at::Tensor Trainer::forward(const at::Tensor& x, bool training, int64_t step) {
  std::vector<at::Tensor> values(graph_.values.size()), inputs, parameters;
  values[0] = x.dim() > 2 && input_.size() == 1 ? x.flatten(1) : x;
  for (const Node& node : nodes_) {
    const Op& op = *node.op;
    inputs.clear();
    parameters.clear();
    for (int value : op.inputs) inputs.push_back(values[static_cast<size_t>(value)]);
    for (size_t p : node.parameters) parameters.push_back(values_[p]);
    for (int value : node.last_uses) values[static_cast<size_t>(value)] = at::Tensor();
    at::Tensor& out = values[static_cast<size_t>(op.output)];
    out = training ? train_op(node, inputs, parameters, step)
                   : op_definition(op.kind).forward(op, inputs, parameters);
  }
  return values[static_cast<size_t>(graph_.output)].to(dtype_);
}

// What differs from inference.
at::Tensor Trainer::train_op(const Node& node, std::vector<at::Tensor>& inputs,
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

void Trainer::step(const Loader& loader, int64_t begin, int64_t n, double rate, int64_t number,
                   at::Tensor& loss_out, at::Tensor& correct) {
  const at::Tensor x = loader.examples(begin, n), y = loader.labels(begin, n);
  std::vector<at::Tensor> leaves, states;
  for (size_t p : trained_) leaves.push_back(values_[p]);
  torch::autograd::variable_list gradients;
  {
    at::AutoGradMode with_grad(true);
    at::Tensor logits;
    {
      AutocastGuard autocast(device_, precision_);
      logits = forward(x, /*training=*/true, number);
    }
    const at::Tensor loss =
        at::cross_entropy_loss(logits, y, {}, at::Reduction::Mean, -100, options_.label_smoothing);
    gradients = torch::autograd::grad({loss}, leaves, {}, /*retain_graph=*/false, /*create_graph=*/false,
                                      /*allow_unused=*/true);
    loss_out.copy_(loss.detach());
    correct.add_(logits.detach().argmax(1).eq(y).sum());
  }
  // Parameters that the output does not depend on have no gradient; they stay,
  // as in PyTorch.
  std::vector<at::Tensor> changed, downhill;
  std::vector<std::vector<at::Tensor>> state(optimizer_state_.size());
  for (size_t i = 0; i < leaves.size(); ++i) {
    at::Tensor& gradient = gradients[i];
    if (!gradient.defined()) continue;
    // Fused updates go through memory in order: layouts must be equal.
    if (gradient.strides() != leaves[i].strides()) gradient = at::empty_like(leaves[i]).copy_(gradient);
    changed.push_back(leaves[i].detach());
    downhill.push_back(gradient);
    for (size_t kind = 0; kind < state.size(); ++kind) state[kind].push_back(optimizer_state_[kind][i]);
  }
  optimizer_->step(changed, downhill, state, rate, number);
}

Trainer::Steps Trainer::steps(c10::ArrayRef<int32_t> indices, int64_t batch, c10::ArrayRef<double> rates,
                              int64_t first) {
  const Part& data = part("train");
  const auto count = static_cast<int64_t>(indices.size()), steps = static_cast<int64_t>(rates.size());
  if (batch < 1) throw invalid("batch ", batch, ": want at least 1");
  if (first < 0) throw invalid("first step ", first, ": want at least 0");
  if (steps != count / batch + (count % batch != 0)) {
    throw invalid(count, " indices in batches of ", batch, " are not ", steps, " steps, one for each rate");
  }
  std::vector<int64_t> wide(indices.begin(), indices.end());
  for (size_t i = 0; i < wide.size(); ++i) {
    if (wide[i] < 0 || wide[i] >= data.count()) {
      throw invalid("index ", i, " is ", wide[i], ": want 0..", data.count() - 1);
    }
  }
  for (size_t i = 0; i < rates.size(); ++i) {
    if (!std::isfinite(rates[i]) || rates[i] < 0) {
      throw invalid("rate ", i, " is ", rates[i], ": want a finite number, 0 or more");
    }
  }
  at::NoGradGuard no_grad;
  const ArithmeticGuard arithmetic(device_, precision_);
  Loader loader(data, options_.normalisation, options_.augment, dtype_, format_);
  const uint64_t key = random_key(options_.seed, "train/augment", "");
  loader.begin(std::move(wide), draw_moves(options_.augment, key, count, batch, first));
  // Read once, at the end: a GPU is not waited for between steps.
  at::Tensor losses = at::zeros({steps}, at::TensorOptions(device_).dtype(at::kDouble));
  at::Tensor correct = at::zeros({}, at::TensorOptions(device_).dtype(at::kLong));
  for (int64_t i = 0; i < steps; ++i) {
    at::Tensor loss = losses.select(0, i);
    step(loader, i * batch, std::min(batch, count - i * batch), rates[static_cast<size_t>(i)], first + i,
         loss, correct);
  }
  const at::Tensor read = losses.cpu();
  Steps out;
  out.losses.assign(read.const_data_ptr<double>(), read.const_data_ptr<double>() + steps);
  out.correct = correct.item<int64_t>();
  out.examples = count;
  return out;
}

Trainer::Evaluation Trainer::evaluate(const std::string& name, int64_t batch) {
  const Part& data = part(name);
  if (batch < 1) throw invalid("batch ", batch, ": want at least 1");
  at::NoGradGuard no_grad;
  const ArithmeticGuard arithmetic(device_, precision_);
  Loader loader(data, options_.normalisation, {}, dtype_, format_);
  std::vector<int64_t> all(static_cast<size_t>(data.count()));
  std::iota(all.begin(), all.end(), 0);
  loader.begin(std::move(all), {});
  at::Tensor loss = at::zeros({}, at::TensorOptions(device_).dtype(at::kDouble));
  at::Tensor correct = at::zeros({}, at::TensorOptions(device_).dtype(at::kLong));
  for (int64_t begin = 0; begin < data.count(); begin += batch) {
    const int64_t n = std::min(batch, data.count() - begin);
    const at::Tensor y = loader.labels(begin, n);
    at::Tensor logits;
    {
      AutocastGuard autocast(device_, precision_);
      logits = forward(loader.examples(begin, n), /*training=*/false, 0);
    }
    loss.add_(at::cross_entropy_loss(logits, y, {}, at::Reduction::Sum));
    correct.add_(logits.argmax(1).eq(y).sum());
  }
  return {loss.item<double>() / static_cast<double>(data.count()), correct.item<int64_t>(), data.count()};
}

NamedTensors Trainer::parameters() const {
  NamedTensors out;
  for (size_t p = 0; p < graph_.parameters.size(); ++p) {
    const std::string& name = graph_.parameters[p].name;
    if (const auto found = batches_.find(p); found != batches_.end()) {
      out.emplace_back(name, at::full({}, found->second, at::kLong));
    } else if (values_[p].defined()) {
      out.emplace_back(name, values_[p].detach());
    }
  }
  return out;
}

NamedTensors Trainer::optimizer_state() const {
  NamedTensors out;
  const std::vector<std::string> kinds = optimizer_->kinds();
  for (size_t i = 0; i < trained_.size(); ++i) {
    for (size_t kind = 0; kind < kinds.size(); ++kind) {
      out.emplace_back(graph_.parameters[trained_[i]].name + "/" + kinds[kind], optimizer_state_[kind][i]);
    }
  }
  return out;
}

void Trainer::set_state(const NamedTensors& parameters, const NamedTensors& optimizer) {
  at::NoGradGuard no_grad;
  std::vector<Wanted> wanted;
  for (size_t p = 0; p < graph_.parameters.size(); ++p) {
    const ParameterInfo& parameter = graph_.parameters[p];
    wanted.push_back({parameter.name, parameter.shape, parameter.optional, batches_.contains(p)});
  }
  const std::vector<at::Tensor> given = match(concat("weights for ", id_), wanted, parameters);
  wanted.clear();
  const std::vector<std::string> kinds = optimizer_->kinds();
  for (size_t p : trained_) {
    for (const std::string& kind : kinds) {
      wanted.push_back({graph_.parameters[p].name + "/" + kind, graph_.parameters[p].shape, false, false});
    }
  }
  std::vector<at::Tensor> optimizer_given;
  if (!optimizer.empty()) optimizer_given = match(concat("optimizer state for ", id_), wanted, optimizer);

  std::vector<at::Tensor> values(given.size());
  std::map<size_t, int64_t> batches;
  for (size_t p = 0; p < given.size(); ++p) {
    if (batches_.contains(p)) {
      batches[p] = given[p].defined() ? given[p].to(at::kCPU, at::kLong).item<int64_t>() : 0;
    } else if (given[p].defined()) {
      values[p] = placed(given[p]);
    }
  }
  std::vector<std::vector<at::Tensor>> state(kinds.size());
  for (size_t i = 0; i < optimizer_given.size(); ++i) {
    state[i % kinds.size()].push_back(placed(optimizer_given[i]));
  }
  for (size_t p : trained_) values[p].set_requires_grad(true);
  values_ = std::move(values);
  for (const auto& [p, count] : batches) batches_[p] = count;  // nodes point at the entries
  optimizer_state_ = optimizer.empty() ? fresh_state() : std::move(state);
}

}  // namespace assay
