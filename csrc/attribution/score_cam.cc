// Score-CAM: every channel's map, as a mask of the image, gets the score of what it
// leaves to be seen.
#include "attribution/cam.h"
#include "attribution/methods.h"

namespace assay {
namespace {

at::Tensor attribute(const Method& method, Context& context, const Explained& rows) {
  const std::string layer = layer_of(method, context);
  std::vector<at::Tensor> parts;
  in_blocks(rows.size(), context.run.batch(), [&](int64_t begin, int64_t count) {
    parts.push_back(values_at(context, layer, rows.x.narrow(0, begin, count))[0].contiguous());
    context.run.count(count, 0);
  });
  const at::Tensor activations = at::cat(parts);  // [N,C,h,w]
  const int64_t channels = activations.size(1), total = rows.size() * channels;
  const at::Tensor flat = activations.flatten(0, 1);
  at::Tensor scores = at::empty({total}, flat.options().dtype(at::kDouble));
  in_blocks(total, context.run.batch(), [&](int64_t begin, int64_t count) {
    std::vector<int64_t> image, targets;
    for (int64_t r = begin; r < begin + count; ++r) {
      image.push_back(r / channels);
      targets.push_back(rows.targets[static_cast<size_t>(r / channels)]);
    }
    const at::Tensor up =
        at::upsample_bilinear2d(flat.narrow(0, begin, count).unsqueeze(1), rows.x.sizes().slice(2),
                                /*align_corners=*/true);
    const at::Tensor least = up.amin({1, 2, 3}, true), most = up.amax({1, 2, 3}, true);
    const at::Tensor mask = (up - least) / (most - least + 1e-8);
    const at::Tensor x = rows.x.index_select(0, at::tensor(image, at::kLong).to(rows.x.device())) * mask;
    scores.narrow(0, begin, count).copy_(context.run.outputs(x, targets));
  });
  const at::Tensor weights =
      at::softmax(scores.view({rows.size(), channels}), 1).to(activations.scalar_type());
  std::vector<at::Tensor> maps;
  for (int64_t i = 0; i < rows.size(); ++i) {
    maps.push_back(weighted_sum(weights.narrow(0, i, 1), activations.narrow(0, i, 1)));
  }
  return finished(method, at::cat(maps), rows.x);
}

}  // namespace

MethodEntry score_cam_method() {
  return cam_entry("score-cam", "activations weighted by the logits of the image seen through each channel",
                   "Wang et al. 2020, equations 4 to 6", attribute);
}

}  // namespace assay
