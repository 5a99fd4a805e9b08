#include "attribution/cam.h"

#include "api/error.h"

namespace assay {

nlohmann::json cam_parameters() {
  return {
      {{"name", "layer"},
       {"type", "string"},
       {"default", ""},
       {"summary", "whose activations (list layers); \"\": the net's own"}},
      {{"name", "align-corners"},
       {"type", "bool"},
       {"default", false},
       {"summary", "upsampling puts corner pixels on corner pixels (TRACE's protocol), not edge on edge"}},
      {{"name", "upsample"},
       {"type", "bool"},
       {"default", true},
       {"summary", "to the image's size, bilinear"}}};
}

std::string layer_of(const Method& method, const Context& context) {
  std::string layer = method.parameters().text("layer");
  if (layer.empty()) layer = context.net.default_layer();
  if (layer.empty()) {
    throw invalid("method ", method.entry().id, ": net ", context.net.id(),
                  " has no layer of its own for it: want layer=, a name of the net's layers");
  }
  for (const LayerInfo& info : context.net.layers()) {
    if (info.name == layer && info.outputs.size() != 3) {
      throw invalid("method ", method.entry().id, ": layer ", layer, " gives rows of [",
                    c10::Join(",", info.outputs), "]: want one of maps, [C,h,w]");
    }
  }
  return layer;
}

std::vector<at::Tensor> values_at(Context& context, const std::string& layer, const at::Tensor& x) {
  const int64_t count = x.size(0);
  std::vector<at::Tensor> values = context.net.differentiator(layer).head(context.run.padded(x));
  for (at::Tensor& value : values) {
    if (value.size(0) > count) value = value.narrow(0, 0, count);
  }
  return values;
}

at::Tensor finished(const Method& method, const at::Tensor& maps, const at::Tensor& x) {
  if (method.parameters().flag("upsample")) {
    return finished(maps, x, method.parameters().flag("align-corners"));
  }
  const at::Tensor out = at::relu(maps).unsqueeze(1);
  return out + per_row(finite_mark(x), out);
}

at::Tensor finished(const at::Tensor& maps, const at::Tensor& x, bool align_corners) {
  const at::Tensor out =
      at::upsample_bilinear2d(at::relu(maps).unsqueeze(1), x.sizes().slice(2), align_corners);
  return out + per_row(finite_mark(x), out);
}

at::Tensor weighted_sum(const at::Tensor& weights, const at::Tensor& activations) {
  return (weights.unsqueeze(-1).unsqueeze(-1) * activations).sum(1);
}

at::Tensor class_activation(const Method& method, Context& context, const Explained& rows,
                            at::Tensor (*map)(const Activated& activated)) {
  const Differentiator& net = context.net.differentiator(layer_of(method, context));
  std::vector<at::Tensor> parts;
  in_blocks(rows.size(), context.run.batch(), [&](int64_t begin, int64_t count) {
    const at::Tensor x = context.run.padded(rows.x.narrow(0, begin, count));
    const std::vector<at::Tensor> values = net.head(x);
    const at::Tensor activations = values[0].narrow(0, 0, count).contiguous();
    std::vector<int64_t> targets(rows.targets.begin() + begin, rows.targets.begin() + begin + count);
    targets.resize(static_cast<size_t>(x.size(0)), targets.back());
    Tape tape = net.record(values);
    const at::Tensor of_logits = Evaluator::logit_gradient(tape.logits, targets);
    const at::Tensor pulled = net.pull(std::move(tape), of_logits).narrow(0, 0, count).contiguous();
    context.run.count(count, count);
    // Image by image: sums of libtorch's may go another way for another number of images.
    std::vector<at::Tensor> maps;
    for (int64_t i = 0; i < count; ++i) {
      maps.push_back(map({activations.narrow(0, i, 1), pulled.narrow(0, i, 1)}));
    }
    parts.push_back(at::cat(maps));
  });
  return finished(method, at::cat(parts), rows.x);
}

MethodEntry cam_entry(const std::string& id, const std::string& summary, const std::string& paper,
                      decltype(MethodEntry::attribute) attribute) {
  return {.id = id,
          .summary = summary,
          .family = "cam",
          .needs = "graph",
          .paper = paper,
          .parameters = cam_parameters(),
          .attribute = attribute,
          .one_channel = true};
}

}  // namespace assay
