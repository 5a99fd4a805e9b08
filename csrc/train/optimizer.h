// Optimisers with PyTorch's update rules: a registry, one class each.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace assay {

struct OptimizerOptions {
  std::string id = "sgd";
  double momentum = 0;      // SGD
  bool nesterov = false;    // SGD
  double weight_decay = 0;  // L2: added to the gradient
  double beta1 = 0.9;       // Adam
  double beta2 = 0.999;
  double epsilon = 1e-8;
};

// An optimiser holds no tensors of its own: the caller keeps one tensor a
// parameter and kind of state, in the parameter's layout, zero at first.
class Optimizer {
 public:
  virtual ~Optimizer() = default;
  // The kinds of state, as they are called in checkpoints ("momentum").
  virtual std::vector<std::string> kinds() const = 0;
  // Changes parameters and states (one list a kind) in place. number: of the
  // step since the start of training, from 0. Waits for no device.
  virtual void step(const std::vector<at::Tensor>& parameters, const std::vector<at::Tensor>& gradients,
                    const std::vector<std::vector<at::Tensor>>& states, double rate, int64_t number) = 0;
};

struct OptimizerEntry {
  std::string id;
  std::string summary;
  std::unique_ptr<Optimizer> (*make)(const OptimizerOptions& options);
};

const std::vector<OptimizerEntry>& optimizer_registry();
// Throws not-found for an unknown id, invalid for options out of range.
std::unique_ptr<Optimizer> make_optimizer(const OptimizerOptions& options);

}  // namespace assay
