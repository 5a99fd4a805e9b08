#include "train/initial.h"

#include <c10/util/accumulate.h>

#include <cmath>
#include <map>
#include <numbers>

#include "graph/ops.h"
#include "removal/filled.h"
#include "removal/philox.h"
#include "train/key.h"

namespace assay {
namespace {

at::Tensor uniform(at::IntArrayRef shape, uint64_t key, double bound) {
  return filled(shape, [&](uint64_t i) { return bound * (2 * philox_uniform(key, i, 0) - 1); });
}

// Box and Muller 1958, one of the two numbers.
at::Tensor normal(at::IntArrayRef shape, uint64_t key, double deviation) {
  return filled(shape, [&](uint64_t i) {
    const double radius = std::sqrt(-2 * std::log(1 - philox_uniform(key, i, 0)));
    return deviation * radius * std::cos(2 * std::numbers::pi * philox_uniform(key, i, 1));
  });
}

// A rule for all parameters of a kind of op: the i-th of op.
using Rule = at::Tensor (*)(const Graph& graph, const Op& op, size_t i, at::IntArrayRef shape, uint64_t key);

at::Tensor by_fan_in(const Graph& graph, const Op& op, size_t, at::IntArrayRef shape, uint64_t key) {
  const auto& weight = graph.parameters[static_cast<size_t>(op.parameters[0])].shape;
  const int64_t fan_in = c10::multiply_integers(weight.begin() + 1, weight.end());
  return uniform(shape, key, 1 / std::sqrt(static_cast<double>(fan_in)));
}

// weight, bias, running mean, running variance, batches.
at::Tensor identity(const Graph&, const Op&, size_t i, at::IntArrayRef shape, uint64_t) {
  return at::full(shape, i == 0 || i == 3 ? 1. : 0., at::kDouble);
}

at::Tensor small_normal(const Graph&, const Op&, size_t, at::IntArrayRef shape, uint64_t key) {
  return normal(shape, key, 0.02);
}

const std::map<OpKind, Rule>& rules() {
  static const std::map<OpKind, Rule> table = {
      {OpKind::kConv2d, by_fan_in},       {OpKind::kConvTranspose2d, by_fan_in},
      {OpKind::kLinear, by_fan_in},       {OpKind::kBatchNorm, identity},
      {OpKind::kLayerNorm, identity},     {OpKind::kGroupNorm, identity},
      {OpKind::kParameter, small_normal},
  };
  return table;
}

}  // namespace

std::vector<at::Tensor> initial_parameters(const Graph& graph, uint64_t seed, const std::set<size_t>* only) {
  const auto wanted = [&](size_t p) { return only == nullptr || only->contains(p); };
  std::vector<at::Tensor> all(graph.parameters.size());
  for (const Op& op : graph.ops) {
    for (size_t i = 0; i < op.parameters.size(); ++i) {
      const auto p = static_cast<size_t>(op.parameters[i]);
      const ParameterInfo& parameter = graph.parameters[p];
      if (all[p].defined() || !wanted(p)) continue;
      const auto rule = rules().find(op.kind);
      TORCH_INTERNAL_ASSERT(rule != rules().end(), "no rule for the parameters of ",
                            op_definition(op.kind).name);
      all[p] = rule->second(graph, op, i, parameter.shape, random_key(seed, "train/initial", parameter.name));
    }
  }
  for (size_t p = 0; p < all.size(); ++p) {
    if (!all[p].defined() && wanted(p) && !graph.parameters[p].optional) {
      all[p] = at::zeros(graph.parameters[p].shape, at::kDouble);
    }
  }
  return all;
}

}  // namespace assay
