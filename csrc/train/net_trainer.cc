#include "train/net_trainer.h"

#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/autograd.h>

#include "api/error.h"
#include "train/guards.h"
#include "train/initial.h"

namespace assay {

NetTrainer::NetTrainer(const Net& net, const TrainerOptions& options, at::Device device, Precision precision)
    : Trainer(net.input_shape(), net.classes(), options, device, precision),
      id_(net.id()),
      graph_(net.graph(), initial_parameters(net.graph(), options.seed), {}, options.optimizer, options.seed,
             device, precision) {
  if (!(options.label_smoothing >= 0 && options.label_smoothing < 1)) {
    throw invalid("labelSmoothing ", options.label_smoothing, ": want 0 <= labelSmoothing < 1");
  }
}

void NetTrainer::step(const Loader& loader, int64_t begin, int64_t n, double rate, int64_t number,
                      at::Tensor& loss_out, at::Tensor& correct) {
  const at::Tensor x = loader.examples(begin, n), y = loader.labels(begin, n);
  torch::autograd::variable_list gradients;
  {
    at::AutoGradMode with_grad(true);
    at::Tensor logits;
    {
      AutocastGuard autocast(device(), precision());
      logits = graph_.forward(x, /*training=*/true, number);
    }
    const at::Tensor loss =
        at::cross_entropy_loss(logits, y, {}, at::Reduction::Mean, -100, options().label_smoothing);
    gradients = torch::autograd::grad({loss}, graph_.leaves(), {}, /*retain_graph=*/false,
                                      /*create_graph=*/false, /*allow_unused=*/true);
    loss_out.copy_(loss.detach());
    correct.add_(logits.detach().argmax(1).eq(y).sum());
  }
  graph_.descend(std::move(gradients), rate, number);
}

void NetTrainer::judge(const Loader& loader, int64_t begin, int64_t n, at::Tensor& loss,
                       at::Tensor& correct) {
  const at::Tensor y = loader.labels(begin, n);
  at::Tensor logits;
  {
    AutocastGuard autocast(device(), precision());
    logits = graph_.forward(loader.examples(begin, n), /*training=*/false, 0);
  }
  loss.add_(at::cross_entropy_loss(logits, y, {}, at::Reduction::Sum));
  correct.add_(logits.argmax(1).eq(y).sum());
}

void NetTrainer::set_state(const NamedTensors& parameters, const NamedTensors& optimizer) {
  const std::vector<at::Tensor> given =
      match(concat("weights for ", id_), graph_.wanted_parameters(), parameters);
  std::vector<at::Tensor> state;
  if (!optimizer.empty()) {
    state = match(concat("optimizer state for ", id_), graph_.wanted_optimizer_state(), optimizer);
  }
  graph_.take(given, state);
}

}  // namespace assay
