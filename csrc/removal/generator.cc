#include "removal/generator.h"

#include <ATen/core/grad_mode.h>

#include <map>

#include "api/error.h"
#include "nets/gain.h"
#include "train/spectral.h"

namespace assay {
namespace {

// Rows that run at a time, padded: so a row's bits do not depend on how many are asked for.
constexpr int64_t kRows = 16;
constexpr const char* kPrefix = "generator.";

using State = std::map<std::string, at::Tensor>;

const at::Tensor& find(const State& state, const std::string& name) {
  const auto found = state.find(name);
  if (found == state.end()) {
    throw invalid("generator: ", name, " is missing: want what a training of imputer gain keeps");
  }
  return found->second;
}

// The graph's own parameters, weights of convolutions divided by their norms.
std::vector<std::pair<std::string, at::Tensor>> folded(const Graph& graph, const State& state) {
  std::map<std::string, int64_t> normed;  // names of weights, and the axis of their outputs
  for (const Op& op : graph.ops) {
    if (!has_spectral_norm(op.kind)) continue;
    normed[graph.parameters[static_cast<size_t>(op.parameters[0])].name] = output_axis(op.kind);
  }
  std::vector<std::pair<std::string, at::Tensor>> out;
  for (const ParameterInfo& parameter : graph.parameters) {
    if (parameter.optional) continue;
    const std::string name = kPrefix + parameter.name;
    const auto axis = normed.find(parameter.name);
    if (axis == normed.end()) {
      out.emplace_back(parameter.name, find(state, name).to(at::kDouble));
      continue;
    }
    const at::Tensor weight = find(state, name + "_orig").to(at::kDouble);
    const at::Tensor u = find(state, name + "_u").to(at::kDouble);
    const at::Tensor v = find(state, name + "_v").to(at::kDouble);
    if (weight.dim() != 4 || u.dim() != 1 || v.dim() != 1 || u.numel() != weight.size(axis->second) ||
        v.numel() * u.numel() != weight.numel()) {
      throw invalid("generator: ", name, "_orig of shape ", weight.sizes(), " with u ", u.sizes(), " and v ",
                    v.sizes(), ": want [O,I,h,w], [O] and [I*h*w]");
    }
    out.emplace_back(parameter.name, spectral_normalised(weight, u, v, axis->second));
  }
  return out;
}

}  // namespace

Generator::Generator(const std::vector<std::pair<std::string, at::Tensor>>& state, at::Device device,
                     Precision precision) {
  at::NoGradGuard no_grad;
  State cpu;
  for (const auto& [name, tensor] : state) cpu[name] = tensor.to(at::kCPU);
  const at::Tensor& mean = find(cpu, "mfv");
  const at::Tensor& first = find(cpu, "generator.net.0.weight_orig");
  if (mean.dim() != 3 || mean.numel() < 1) throw invalid("generator: mfv ", mean.sizes(), ": want [C,H,W]");
  if (first.dim() != 4) {
    throw invalid("generator: net.0.weight_orig of ", first.dim(), " axes: want [width,C+2,7,7]");
  }
  shape_ = mean.sizes().vec();
  Graph graph = gain_graph({shape_[0] + 2, shape_[1], shape_[2]}, shape_[0], first.size(0), OpKind::kTanh);
  const auto parameters = folded(graph, cpu);
  NetEntry entry;
  entry.id = "gain";
  net_ = std::make_unique<Net>(entry, std::move(graph));
  net_->load(parameters);
  // Reduced precision is for nets, not for what they are shown.
  net_->prepare(device, precision == Precision::kF64 ? precision : Precision::kF32);
  mean_ = mean.to(at::TensorOptions(device).dtype(precision == Precision::kF64 ? at::kDouble : at::kFloat));
}

at::Tensor Generator::impute(const at::Tensor& images, const at::Tensor& removed,
                             const at::Tensor& noise) const {
  const at::Tensor x = images.to(mean_.scalar_type()) - mean_;
  const at::Tensor gone = removed.unsqueeze(1);
  const at::Tensor known = gone.logical_not().to(x.scalar_type());
  const at::Tensor seen =
      at::cat({at::where(gone, 0, x), known, noise.to(x.scalar_type()).unsqueeze(1) * (1 - known)}, 1);
  std::vector<at::Tensor> made;
  for (int64_t i = 0; i < seen.size(0); i += kRows) {
    at::Tensor rows = seen.slice(0, i, std::min(i + kRows, seen.size(0)));
    const int64_t count = rows.size(0);
    if (count < kRows) {
      rows = at::cat({rows, rows.slice(0, count - 1).expand({kRows - count, -1, -1, -1})});
    }
    made.push_back(net_->forward(rows.contiguous()).slice(0, 0, count));
  }
  return at::where(gone, (at::cat(made).view_as(x) + mean_).to(images.scalar_type()), images);
}

}  // namespace assay
