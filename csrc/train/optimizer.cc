#include "train/optimizer.h"

#include <ATen/ops/_fused_adam.h>
#include <ATen/ops/_fused_sgd.h>

#include <cmath>

#include "api/error.h"

namespace assay {
namespace {

// torch.optim.SGD without dampening. A buffer of zeros makes the first step what
// PyTorch's first step is: the buffer becomes the gradient.
class Sgd final : public Optimizer {
 public:
  explicit Sgd(const OptimizerOptions& options) : o_(options) {}
  std::vector<std::string> kinds() const override {
    return o_.momentum > 0 ? std::vector<std::string>{"momentum"} : std::vector<std::string>{};
  }
  void step(const std::vector<at::Tensor>& parameters, const std::vector<at::Tensor>& gradients,
            const std::vector<std::vector<at::Tensor>>& states, double rate, int64_t) override {
    at::_fused_sgd_(parameters, gradients, states.empty() ? at::TensorList() : at::TensorList(states[0]),
                    o_.weight_decay, o_.momentum, rate, /*dampening=*/0, o_.nesterov, /*maximize=*/false,
                    /*is_first_step=*/false);
  }

 private:
  OptimizerOptions o_;
};

// torch.optim.Adam: Kingma and Ba 2015, algorithm 1, with L2 weight decay.
class Adam final : public Optimizer {
 public:
  explicit Adam(const OptimizerOptions& options) : o_(options) {}
  std::vector<std::string> kinds() const override { return {"exp_avg", "exp_avg_sq"}; }
  void step(const std::vector<at::Tensor>& parameters, const std::vector<at::Tensor>& gradients,
            const std::vector<std::vector<at::Tensor>>& states, double rate, int64_t number) override {
    if (parameters.empty()) return;
    const at::Tensor count =
        at::full({}, static_cast<double>(number + 1), parameters[0].options().dtype(at::kFloat));
    const std::vector<at::Tensor> counts(parameters.size(), count);
    at::_fused_adam_(parameters, gradients, states[0], states[1], {}, counts, rate, o_.beta1, o_.beta2,
                     o_.weight_decay, o_.epsilon, /*amsgrad=*/false, /*maximize=*/false);
  }

 private:
  OptimizerOptions o_;
};

template <typename T>
std::unique_ptr<Optimizer> make(const OptimizerOptions& options) {
  return std::make_unique<T>(options);
}

void want(bool good, const char* name, double value, const char* range) {
  if (!good) throw invalid("optimizer ", name, " ", value, ": want ", range);
}

}  // namespace

const std::vector<OptimizerEntry>& optimizer_registry() {
  static const std::vector<OptimizerEntry> entries = {
      {"sgd", "stochastic gradient descent with momentum, Nesterov's if asked for, and weight decay",
       make<Sgd>},
      {"adam", "Adam with L2 weight decay", make<Adam>},
  };
  return entries;
}

std::unique_ptr<Optimizer> make_optimizer(const OptimizerOptions& o) {
  want(o.momentum >= 0 && o.momentum < 1, "momentum", o.momentum, "0 <= momentum < 1");
  want(!o.nesterov || o.momentum > 0, "momentum", o.momentum, "more than 0 for Nesterov's");
  want(o.weight_decay >= 0 && std::isfinite(o.weight_decay), "weightDecay", o.weight_decay, "0 or more");
  want(o.beta1 >= 0 && o.beta1 < 1, "beta1", o.beta1, "0 <= beta1 < 1");
  want(o.beta2 >= 0 && o.beta2 < 1, "beta2", o.beta2, "0 <= beta2 < 1");
  want(o.epsilon >= 0 && std::isfinite(o.epsilon), "epsilon", o.epsilon, "0 or more");
  std::string known;
  for (const OptimizerEntry& entry : optimizer_registry()) {
    if (entry.id == o.id) return entry.make(o);
    known += (known.empty() ? "" : ", ") + entry.id;
  }
  throw not_found("optimizer \"", o.id, "\": want one of ", known);
}

}  // namespace assay
