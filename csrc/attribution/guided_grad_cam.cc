// Guided backpropagation, channel by channel, times Grad-CAM at the image's size: both
// from one forward pass.
#include <utility>

#include "attribution/cam.h"
#include "attribution/methods.h"

namespace assay {
namespace {

at::Tensor attribute(const Method& method, Context& context, const Explained& rows) {
  const Differentiator& whole = context.net.differentiator();
  whole.want_relus("guided-backprop");
  const Differentiator& rest = context.net.differentiator(layer_of(method, context));
  std::vector<at::Tensor> parts, maps;
  in_blocks(rows.size(), context.run.batch(), [&](int64_t begin, int64_t count) {
    const at::Tensor x = context.run.padded(rows.x.narrow(0, begin, count));
    std::vector<int64_t> targets(rows.targets.begin() + begin, rows.targets.begin() + begin + count);
    targets.resize(static_cast<size_t>(x.size(0)), targets.back());
    Tape tape = whole.record(whole.head(x));
    const at::Tensor of_logits = Evaluator::logit_gradient(tape.logits, targets);
    std::vector<at::Tensor> values = rest.head_of(tape);
    if (values.empty()) {
      values = rest.head(x);
      context.run.count(count, 0);
    }
    const at::Tensor activations = values[0].narrow(0, 0, count);
    const at::Tensor pulled = rest.pull(rest.record(values), of_logits).narrow(0, 0, count);
    // Image by image, as class_activation does.
    for (int64_t i = 0; i < count; ++i) {
      maps.push_back(
          grad_cam_map({activations.narrow(0, i, 1).contiguous(), pulled.narrow(0, i, 1).contiguous()}));
    }
    parts.push_back(
        whole.pull(std::move(tape), of_logits, ReluRule::kGuided).contiguous().narrow(0, 0, count));
    context.run.count(count, count);
  });
  return at::cat(parts) * finished(at::cat(maps), rows.x, method.parameters().flag("align-corners"));
}

}  // namespace

MethodEntry guided_grad_cam_method() {
  MethodEntry entry = cam_entry("guided-grad-cam", "guided backpropagation times Grad-CAM",
                                "Selvaraju et al. 2017, section 3.2", attribute);
  entry.parameters.erase(entry.parameters.size() - 1);  // upsample
  entry.one_channel = false;
  return entry;
}

}  // namespace assay
