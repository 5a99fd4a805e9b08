// Training of a classifier.
#pragma once

#include "train/trained_graph.h"
#include "train/trainer.h"

namespace assay {

// A net that learns labels by cross-entropy.
class NetTrainer final : public Trainer {
 public:
  // Takes a copy of the net's graph; its parameters start as initial.h says.
  // Throws not-found, invalid or unsupported.
  NetTrainer(const Net& net, const TrainerOptions& options, at::Device device, Precision precision);

  NamedTensors parameters() const override { return graph_.parameters(); }
  NamedTensors optimizer_state() const override { return graph_.optimizer_state(); }
  void set_state(const NamedTensors& parameters, const NamedTensors& optimizer) override;

 private:
  void step(const Loader& loader, int64_t begin, int64_t n, double rate, int64_t number, at::Tensor& loss,
            at::Tensor& correct) override;
  void judge(const Loader& loader, int64_t begin, int64_t n, at::Tensor& loss, at::Tensor& correct) override;

  std::string id_;
  TrainedGraph graph_;
};

}  // namespace assay
