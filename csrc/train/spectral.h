// Spectral normalisation (Miyato et al. 2018) as torch.nn.utils.spectral_norm does it.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <string>
#include <vector>

#include "train/trained_graph.h"

namespace assay {

// Whether ops of a kind, convolutions, are divided by their norm here; and the axis of their weights'
// outputs.
bool has_spectral_norm(OpKind kind);
int64_t output_axis(OpKind kind);

// weight over u' W v, its largest singular value as far as u and v are the singular vectors; W: weight as a
// matrix [outputs, rest]. Autograd records it.
at::Tensor spectral_normalised(const at::Tensor& weight, const at::Tensor& u, const at::Tensor& v,
                               int64_t axis);

// A graph in training whose convolutions are divided by their spectral norm. Their weights are called
// "x.weight_orig" in checkpoints, the vectors that follow their singular vectors "x.weight_u" and
// "x.weight_v".
class SpectralGraph {
 public:
  // prefix: before all names in checkpoints ("generator."). Weights are drawn from N(0, .02), those of batch
  // norm from N(1, .02), biases of convolutions as initial.h says, u and v from the sphere, all of them by
  // (seed, name).
  SpectralGraph(Graph graph, const std::string& prefix, const OptimizerOptions& optimizer, uint64_t seed,
                at::Device device, Precision precision);

  // In training u and v take one step of the power method first.
  at::Tensor forward(const at::Tensor& x, bool training, int64_t step);

  TrainedGraph& graph() { return graph_; }
  // As TrainedGraph's, with u and v.
  NamedTensors parameters() const;
  std::vector<Wanted> wanted_parameters() const;
  NamedTensors optimizer_state() const { return graph_.optimizer_state(); }
  std::vector<Wanted> wanted_optimizer_state() const { return graph_.wanted_optimizer_state(); }
  void take(c10::ArrayRef<at::Tensor> parameters, c10::ArrayRef<at::Tensor> optimizer);

 private:
  struct Norm {
    size_t parameter;
    int64_t axis;
    std::string name;  // "generator.net.0.weight"
    at::Tensor u, v;
  };

  TrainedGraph graph_;
  std::vector<Norm> norms_;
};

}  // namespace assay
