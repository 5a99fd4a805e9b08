#include "attribution/randomised.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <set>
#include <utility>

#include "api/error.h"
#include "graph/ops.h"
#include "train/initial.h"

namespace assay {

std::vector<LayerInfo> parametrised_layers(const Net& net) {
  std::vector<LayerInfo> layers;
  const Graph& graph = net.graph();
  for (const Op& op : graph.ops) {
    if (op.parameters.empty()) continue;
    layers.push_back(
        {op.name, op_definition(op.kind).name, graph.values[static_cast<size_t>(op.output)].shape});
  }
  return layers;
}

std::unique_ptr<Net> randomised(const Net& net, const std::vector<std::string>& layers, uint64_t seed) {
  if (net.is_black_box()) {
    throw unsupported("net ", net.id(), ": its layers cannot be randomised: it runs as a black box (",
                      net.reason(), ")");
  }
  if (!net.prepared()) throw invalid("net ", net.id(), ": randomised before prepare");
  const at::NoGradGuard no_grad;
  const Graph& graph = net.graph();
  std::set<size_t> drawn;
  for (const std::string& layer : layers) {
    const auto op =
        std::find_if(graph.ops.begin(), graph.ops.end(), [&](const Op& o) { return o.name == layer; });
    if (op == graph.ops.end()) {
      throw not_found("net ", net.id(), ": layer \"", layer, "\": want the name of an op with parameters");
    }
    if (op->parameters.empty()) {
      throw invalid("net ", net.id(), ": layer ", layer, " (", op_definition(op->kind).name,
                    ") has no parameters");
    }
    for (int p : op->parameters) drawn.insert(static_cast<size_t>(p));
  }
  const std::vector<at::Tensor> fresh = initial_parameters(graph, seed, &drawn);
  std::vector<std::pair<std::string, at::Tensor>> state;
  for (size_t p = 0; p < graph.parameters.size(); ++p) {
    const at::Tensor& value = drawn.contains(p) ? fresh[p] : net.state()[p];
    if (value.defined()) state.emplace_back(graph.parameters[p].name, value);
  }
  NetEntry entry;
  entry.id = net.id();
  entry.preset = net.preset();
  entry.input = net.input_shape();
  entry.classes = net.classes();
  auto copy = std::make_unique<Net>(std::move(entry), graph);
  copy->load(state);
  copy->prepare(net.device(), net.precision());
  return copy;
}

}  // namespace assay
