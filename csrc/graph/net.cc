// Nets: parameters in, logits out.
#include "graph/net.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <map>

#include "api/error.h"
#include "graph/black_box.h"
#include "graph/differentiator.h"
#include "graph/engine.h"
#include "graph/ops.h"

namespace assay {
namespace {

// What is wrong with a state dict: counted, the first few named.
class Complaints {
 public:
  template <typename... Parts>
  void add(Parts&&... parts) {
    if (count_ < kShown) text_ += (count_ ? "; " : "") + concat(std::forward<Parts>(parts)...);
    ++count_;
  }
  void raise(const std::string& net) const {
    if (count_ == 0) return;
    if (count_ > kShown) throw invalid("weights for ", net, ": ", text_, "; and ", count_ - kShown, " more");
    throw invalid("weights for ", net, ": ", text_);
  }

 private:
  static constexpr int kShown = 5;
  int count_ = 0;
  std::string text_;
};

Shape expected_input(const NetEntry& entry, const NetOptions& options) {
  Shape input = entry.input;
  if (options.features == 0) return input;
  if (input.size() != 1) {
    throw invalid("net ", entry.id, ": features ", options.features, ": it takes images ",
                  at::IntArrayRef(input), ", leave features out");
  }
  if (options.features < 1)
    throw invalid("net ", entry.id, ": features ", options.features, ": want at least 1");
  return {options.features};
}

}  // namespace

std::unique_ptr<Net> Net::build(const std::string& id, const NetOptions& options) {
  const NetEntry& entry = net_entry(id);
  if (options.classes < 0) throw invalid("net ", id, ": classes ", options.classes, ": want at least 1");
  const int64_t classes = options.classes == 0 ? entry.classes : options.classes;
  return std::make_unique<Net>(entry, entry.build(expected_input(entry, options), classes));
}

Net::Net(NetEntry entry, Graph graph) : entry_(std::move(entry)), graph_(std::move(graph)) {}

Net::Net(NetEntry entry, Graph graph, std::unique_ptr<BlackBox> box, std::string reason)
    : entry_(std::move(entry)),
      graph_(std::move(graph)),
      box_(std::move(box)),
      reason_(std::move(reason)),
      loaded_(true) {}

Net::~Net() = default;

void Net::unprepare() {
  engine_.reset();
  plain_.clear();
  differentiators_.clear();
}

int64_t Net::parameter_count() const {
  int64_t count = 0;
  for (const ParameterInfo& parameter : graph_.parameters) {
    if (!parameter.buffer) count += c10::multiply_integers(parameter.shape);
  }
  return count;
}

std::vector<LayerInfo> Net::layers() const {
  std::vector<LayerInfo> layers;
  const auto shape = [&](int value) { return graph_.values[static_cast<size_t>(value)].shape; };
  for (const Op& op : graph_.ops) {
    layers.push_back({op.name, op_definition(op.kind).name, shape(op.output)});
    for (const Place& place : graph_.places) {
      if (place.value == op.output) layers.push_back({place.name, place.kind, shape(place.value)});
    }
  }
  return layers;
}

void Net::load(const std::vector<std::pair<std::string, at::Tensor>>& state) {
  std::map<std::string, size_t> index;
  for (size_t i = 0; i < graph_.parameters.size(); ++i) index[graph_.parameters[i].name] = i;
  std::vector<at::Tensor> taken(graph_.parameters.size());
  Complaints complaints;
  for (const auto& [name, tensor] : state) {
    const auto found = index.find(name);
    if (found == index.end()) {
      complaints.add(name, " is not a parameter of this net");
      continue;
    }
    const ParameterInfo& parameter = graph_.parameters[found->second];
    at::Tensor& slot = taken[found->second];
    if (slot.defined()) {
      complaints.add(name, " comes twice");
    } else if (!tensor.defined()) {
      complaints.add(name, " is an undefined tensor");
    } else if (tensor.sizes() != at::IntArrayRef(parameter.shape) && !parameter.optional) {
      complaints.add(name, " has shape ", tensor.sizes(), ", want ", at::IntArrayRef(parameter.shape));
    } else if (!tensor.is_floating_point() && !parameter.optional) {
      complaints.add(name, " is ", at::toString(tensor.scalar_type()), ", want a floating type");
    } else {
      const at::ScalarType dtype = tensor.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
      slot = tensor.detach().to(at::TensorOptions(at::kCPU).dtype(dtype), /*non_blocking=*/false,
                                /*copy=*/true, at::MemoryFormat::Contiguous);
    }
  }
  // What is not there at all; what came wrongly has been said already.
  for (size_t i = 0; i < taken.size(); ++i) {
    const ParameterInfo& parameter = graph_.parameters[i];
    const bool came = std::any_of(state.begin(), state.end(),
                                  [&](const auto& entry) { return entry.first == parameter.name; });
    if (!parameter.optional && !came) complaints.add(parameter.name, " is missing");
  }
  complaints.raise(entry_.id);
  if (box_ != nullptr) {
    box_->load(taken);
  } else {
    state_ = std::move(taken);
  }
  loaded_ = true;
  unprepare();
}

void Net::prepare(at::Device device, Precision precision) {
  if (!loaded_) throw invalid("net ", entry_.id, ": prepare before its weights are loaded");
  if (!device.is_cpu() && !device.is_cuda())
    throw unsupported("device ", device.str(), ": want cpu or cuda:N");
  at::NoGradGuard no_grad;
  unprepare();
  const at::ScalarType dtype = precision == Precision::kF64    ? at::kDouble
                               : precision == Precision::kBF16 ? at::kBFloat16
                                                               : at::kFloat;
  if (device.is_cpu() && dtype == at::kBFloat16 && !onednn_supports(dtype)) {
    throw unsupported("precision bf16: this CPU or libtorch cannot, want f32");
  }
  if (box_ != nullptr) {
    box_->to(device, dtype);
    engine_ = make_black_box_engine(*box_, device, dtype, precision == Precision::kTF32);
    device_ = device;
    precision_ = precision;
    return;
  }
  Plan plan = make_plan(graph_, state_, dtype);
  if (device.is_cpu() && onednn_supports(dtype) && finite(plan)) {
    engine_ = make_onednn_engine(graph_, std::move(plan), dtype);
  } else {
    engine_ = make_aten_engine(std::move(plan), device, dtype, precision == Precision::kTF32);
  }
  device_ = device;
  precision_ = precision;
}

at::Tensor Net::checked(const at::Tensor& x) const {
  if (engine_ == nullptr) throw invalid("net ", entry_.id, ": run before prepare");
  if (!x.defined() || !x.is_floating_point()) throw invalid("net ", entry_.id, ": want a floating input");
  if (x.device() != device_) {
    throw invalid("net ", entry_.id, ": the input is on ", x.device().str(), ", the net on ", device_.str());
  }
  const Shape& row = input_shape();
  if (x.dim() >= 2 && x.sizes().slice(1) == at::IntArrayRef(row)) return x;
  if (row.size() == 1 && x.dim() == 4 && x.sizes().slice(1).size() == 3 && x.size(0) > 0 &&
      x.numel() / x.size(0) == row[0]) {
    return x.flatten(1);
  }
  throw invalid("net ", entry_.id, ": input ", x.sizes(), ": want [N,", c10::Join(",", row), "]");
}

at::Tensor Net::forward(const at::Tensor& input) const {
  const at::Tensor x = checked(input);
  const at::ScalarType dtype = precision_ == Precision::kF64 ? at::kDouble : at::kFloat;
  if (x.size(0) == 0) return at::empty({0, classes()}, x.options().dtype(dtype));
  // Without autograd's part of every call; unlike in inference mode, what comes
  // out are ordinary tensors.
  at::AutoDispatchBelowADInplaceOrView below_autograd;
  return engine_->forward(x.detach()).to(dtype).contiguous();
}

int Net::value_of(const std::string& layer) const {
  for (const Op& op : graph_.ops) {
    if (op.name == layer) return op.output;
  }
  for (const Place& place : graph_.places) {
    if (place.name == layer) return place.value;
  }
  if (box_ != nullptr) {
    throw unsupported("net ", entry_.id, ": layer \"", layer, "\": it runs as a black box (", reason_,
                      "), its layers have no names");
  }
  throw not_found("net ", entry_.id, ": layer \"", layer, "\": want a name that the net's description lists",
                  default_layer().empty() ? "" : ", for example ", default_layer());
}

const Differentiator& Net::differentiator(const std::string& layer) const {
  if (engine_ == nullptr) throw invalid("net ", entry_.id, ": run before prepare");
  if (box_ != nullptr) {
    throw unsupported("net ", entry_.id, " runs as a black box (", reason_,
                      "): its layers cannot be looked at");
  }
  const int value = layer.empty() ? 0 : value_of(layer);
  std::unique_ptr<Differentiator>& made = differentiators_[value];
  if (made == nullptr) {
    const at::ScalarType dtype = precision_ == Precision::kF64 ? at::kDouble : at::kFloat;
    made = std::make_unique<Differentiator>(graph_, state_, value, device_, dtype,
                                            precision_ == Precision::kTF32);
  }
  return *made;
}

Net::Tapped Net::forward_plain(const at::Tensor& input, const std::vector<std::string>& taps) const {
  const at::Tensor x = checked(input);
  std::vector<int> wanted;
  for (const std::string& tap : taps) wanted.push_back(value_of(tap));
  const at::ScalarType dtype = precision_ == Precision::kF64 ? at::kDouble : at::kFloat;
  if (box_ != nullptr) {
    Tapped out;
    out.logits = box_->forward(x.to(precision_ == Precision::kBF16 ? at::kBFloat16 : dtype)).to(dtype);
    return out;
  }
  if (plain_.empty()) {
    for (const at::Tensor& parameter : state_) {
      plain_.push_back(parameter.defined() ? parameter.to(device_, dtype) : parameter);
    }
  }
  std::vector<size_t> last_use(graph_.values.size(), 0);
  for (size_t i = 0; i < graph_.ops.size(); ++i) {
    for (int value : graph_.ops[i].inputs) last_use[static_cast<size_t>(value)] = i;
  }
  for (int value : wanted) last_use[static_cast<size_t>(value)] = graph_.ops.size();
  last_use[static_cast<size_t>(graph_.output)] = graph_.ops.size();
  std::vector<at::Tensor> values(graph_.values.size());
  values[0] = x.to(dtype);
  for (size_t i = 0; i < graph_.ops.size(); ++i) {
    const Op& op = graph_.ops[i];
    std::vector<at::Tensor> inputs, parameters;
    for (int value : op.inputs) inputs.push_back(values[static_cast<size_t>(value)]);
    for (int p : op.parameters) {
      if (!graph_.parameters[static_cast<size_t>(p)].optional)
        parameters.push_back(plain_[static_cast<size_t>(p)]);
    }
    values[static_cast<size_t>(op.output)] = op_definition(op.kind).forward(op, inputs, parameters);
    for (int value : op.inputs) {
      if (last_use[static_cast<size_t>(value)] == i) values[static_cast<size_t>(value)] = at::Tensor();
    }
  }
  Tapped out;
  out.logits = values[static_cast<size_t>(graph_.output)];
  for (int value : wanted) out.taps.push_back(values[static_cast<size_t>(value)]);
  return out;
}

}  // namespace assay
