// Training of one net: its parameters, its optimiser's state and its data, on a
// device; steps by autograd over the graph's own ops.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "graph/graph.h"
#include "graph/net.h"
#include "train/data.h"
#include "train/optimizer.h"

namespace assay {

struct TrainerOptions {
  uint64_t seed = 0;  // of everything random: parameters, augmentation, dropout
  OptimizerOptions optimizer;
  double label_smoothing = 0;  // [0,1): PyTorch's CrossEntropyLoss
  Augment augment;             // of part "train" in steps
  Normalisation normalisation;
};

using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;

// Not to be used by two threads at once.
class Trainer {
 public:
  // Takes a copy of the net's graph; its parameters start as initial.h says.
  // Batch norm uses the statistics of the batch and follows them with the op's
  // momentum (variance unbiased), dropout draws from dropout.h under the key of
  // (seed, "train/dropout", the op's name) and the step.
  // Throws not-found, invalid or unsupported.
  Trainer(const Net& net, const TrainerOptions& options, at::Device device, Precision precision);

  // Part "train" is what steps see; any part can be evaluated. See make_part.
  void set_data(const std::string& part, const at::Tensor& examples, const at::Tensor& labels);

  struct Steps {
    std::vector<double> losses;  // one mean a step
    int64_t correct = 0, examples = 0;
  };
  // One step a rate: step i takes indices [i batch, (i+1) batch) of part
  // "train", the last one what is left, and counts as step first + i. What was
  // not finite is in the losses. After an error some of the steps may have been
  // made, the last one in part.
  Steps steps(c10::ArrayRef<int32_t> indices, int64_t batch, c10::ArrayRef<double> rates, int64_t first);

  struct Evaluation {
    double loss = 0;  // mean cross-entropy, without label smoothing
    int64_t correct = 0, examples = 0;
  };
  Evaluation evaluate(const std::string& part, int64_t batch);

  // In the order of the graph: the state dict (f64 at that precision, else f32;
  // num_batches_tracked i64), and the optimiser's tensors ("fc.weight/momentum").
  // The tensors are the trainer's own, which the next step changes: see host_copy.
  NamedTensors parameters() const;
  NamedTensors optimizer_state() const;
  // Takes copies. Names and shapes as above; num_batches_tracked and what the
  // net does not use may be missing. An empty optimiser state is that of a
  // new optimiser. Throws invalid and leaves all as it was.
  void set_state(const NamedTensors& parameters, const NamedTensors& optimizer);

 private:
  // An op with what is known before it runs.
  struct Node {
    const Op* op = nullptr;
    std::vector<size_t> parameters;  // indices, without optional ones
    std::vector<int> last_uses;      // values that nothing reads after it
    bool in_place = false;           // may write into its first input
    int64_t* batches = nullptr;      // batch norm: counts training steps
    uint64_t key = 0;                // dropout
  };

  void compile();
  at::Tensor forward(const at::Tensor& x, bool training, int64_t step);
  at::Tensor train_op(const Node& node, std::vector<at::Tensor>& inputs,
                      const std::vector<at::Tensor>& parameters, int64_t step) const;
  void step(const Loader& loader, int64_t begin, int64_t n, double rate, int64_t number, at::Tensor& loss,
            at::Tensor& correct);
  at::Tensor placed(const at::Tensor& value) const;
  const Part& part(const std::string& name) const;
  std::vector<std::vector<at::Tensor>> fresh_state() const;

  std::string id_;
  Graph graph_;
  Shape input_;
  int64_t classes_;
  TrainerOptions options_;
  at::Device device_;
  Precision precision_;
  at::ScalarType dtype_;     // of parameters and optimiser
  at::MemoryFormat format_;  // of images and of weights with four axes
  std::vector<Node> nodes_;
  std::vector<at::Tensor> values_;     // by parameter index
  std::map<size_t, int64_t> batches_;  // num_batches_tracked, by parameter index
  std::vector<size_t> trained_;        // parameters that the optimiser changes
  std::unique_ptr<Optimizer> optimizer_;
  std::vector<std::vector<at::Tensor>> optimizer_state_;  // [kind][place in trained_]
  std::map<std::string, Part> parts_;
};

}  // namespace assay
