#include "train/spectral.h"

#include <ATen/core/grad_mode.h>

#include <utility>

#include "graph/ops.h"
#include "removal/filled.h"
#include "removal/philox.h"
#include "train/initial.h"
#include "train/key.h"

namespace assay {
namespace {

constexpr double kDeviation = 0.02, kTiny = 1e-12;

at::Tensor matrix(const at::Tensor& weight, int64_t axis) {
  const at::Tensor first = weight.movedim(axis, 0);
  return first.reshape({first.size(0), -1});
}

at::Tensor unit(const at::Tensor& x) { return x / x.norm().clamp_min(kTiny); }

at::Tensor normals(at::IntArrayRef shape, uint64_t seed, const std::string& name, double mean,
                   double deviation) {
  const uint64_t key = random_key(seed, "train/initial", name);
  return filled(shape, [&](uint64_t i) { return mean + deviation * philox_normal(key, i, 0); });
}

std::vector<std::string> names_of(const Graph& graph, const std::string& prefix) {
  std::vector<std::string> names;
  for (const ParameterInfo& parameter : graph.parameters) names.push_back(prefix + parameter.name);
  for (const Op& op : graph.ops) {
    if (has_spectral_norm(op.kind)) names[static_cast<size_t>(op.parameters[0])] += "_orig";
  }
  return names;
}

std::vector<at::Tensor> initial_of(const Graph& graph, const std::string& prefix, uint64_t seed) {
  std::vector<at::Tensor> initial = initial_parameters(graph, seed);
  for (const Op& op : graph.ops) {
    const bool norm = op.kind == OpKind::kBatchNorm;
    if (!norm && !has_spectral_norm(op.kind)) continue;
    const auto p = static_cast<size_t>(op.parameters[0]);
    initial[p] =
        normals(graph.parameters[p].shape, seed, prefix + graph.parameters[p].name, norm ? 1 : 0, kDeviation);
  }
  return initial;
}

}  // namespace

bool has_spectral_norm(OpKind kind) { return kind == OpKind::kConv2d || kind == OpKind::kConvTranspose2d; }

int64_t output_axis(OpKind kind) { return kind == OpKind::kConvTranspose2d ? 1 : 0; }

at::Tensor spectral_normalised(const at::Tensor& weight, const at::Tensor& u, const at::Tensor& v,
                               int64_t axis) {
  return weight / u.dot(matrix(weight, axis).mv(v));
}

SpectralGraph::SpectralGraph(Graph graph, const std::string& prefix, const OptimizerOptions& optimizer,
                             uint64_t seed, at::Device device, Precision precision)
    : graph_(graph, initial_of(graph, prefix, seed), names_of(graph, prefix), optimizer, seed, device,
             precision) {
  at::NoGradGuard no_grad;
  const at::TensorOptions there = at::TensorOptions(device).dtype(training_dtype(precision));
  for (const Op& op : graph.ops) {
    if (!has_spectral_norm(op.kind)) continue;
    Norm n;
    n.parameter = static_cast<size_t>(op.parameters[0]);
    n.axis = output_axis(op.kind);
    n.name = prefix + graph.parameters[n.parameter].name;
    const at::Tensor w = matrix(graph_.values()[n.parameter], n.axis);
    n.u = unit(normals({w.size(0)}, seed, n.name + "_u", 0, 1)).to(there);
    n.v = unit(normals({w.size(1)}, seed, n.name + "_v", 0, 1)).to(there);
    norms_.push_back(std::move(n));
  }
}

at::Tensor SpectralGraph::forward(const at::Tensor& x, bool training, int64_t step) {
  std::vector<at::Tensor> values = graph_.values();
  for (Norm& n : norms_) {
    at::Tensor& weight = values[n.parameter];
    if (training) {
      at::NoGradGuard no_grad;
      const at::Tensor w = matrix(weight, n.axis);
      // New tensors: autograd may hold those of the forward before.
      n.v = unit(w.t().mv(n.u));
      n.u = unit(w.mv(n.v));
    }
    weight = spectral_normalised(weight, n.u, n.v, n.axis);
  }
  return graph_.forward(x, training, step, &values);
}

NamedTensors SpectralGraph::parameters() const {
  NamedTensors out = graph_.parameters();
  for (const Norm& n : norms_) {
    out.emplace_back(n.name + "_u", n.u);
    out.emplace_back(n.name + "_v", n.v);
  }
  return out;
}

std::vector<Wanted> SpectralGraph::wanted_parameters() const {
  std::vector<Wanted> wanted = graph_.wanted_parameters();
  for (const Norm& n : norms_) {
    wanted.push_back({n.name + "_u", n.u.sizes().vec(), false, false});
    wanted.push_back({n.name + "_v", n.v.sizes().vec(), false, false});
  }
  return wanted;
}

void SpectralGraph::take(c10::ArrayRef<at::Tensor> parameters, c10::ArrayRef<at::Tensor> optimizer) {
  const size_t own = graph_.graph().parameters.size();
  graph_.take(parameters.slice(0, own), optimizer);
  for (size_t i = 0; i < norms_.size(); ++i) {
    Norm& n = norms_[i];
    n.u = parameters[own + 2 * i].to(n.u.options(), /*non_blocking=*/false, /*copy=*/true);
    n.v = parameters[own + 2 * i + 1].to(n.v.options(), /*non_blocking=*/false, /*copy=*/true);
  }
}

}  // namespace assay
