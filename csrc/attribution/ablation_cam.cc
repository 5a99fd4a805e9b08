// Ablation-CAM: a channel weighs what the logit loses without it. Only the part of
// the net after the layer runs again.
#include <c10/util/accumulate.h>

#include <algorithm>

#include "api/error.h"
#include "attribution/cam.h"
#include "attribution/methods.h"

namespace assay {
namespace {

constexpr int64_t kBatches = 4;

// Elements of the largest value that the net has of an image.
int64_t largest(const Net& net) {
  int64_t most = 1;
  for (const Value& value : net.graph().values) {
    if (value.batched) most = std::max(most, c10::multiply_integers(value.shape));
  }
  return most;
}

at::Tensor attribute(const Method& method, Context& context, const Explained& rows) {
  const std::string layer = layer_of(method, context);
  const Differentiator& net = context.net.differentiator(layer);
  std::vector<at::Tensor> maps;
  in_blocks(rows.size(), context.run.batch(), [&](int64_t begin, int64_t count) {
    const std::vector<at::Tensor> values = values_at(context, layer, rows.x.narrow(0, begin, count));
    context.run.count(count, 0);
    const int64_t channels = values[0].size(1);
    // Rows of the tail that take no more memory than kBatches times the largest values of a batch of
    // images, in as many calls as that takes, each of as many rows.
    const int64_t each = values[0][0].numel();
    const int64_t most = kBatches * context.run.batch() * std::max<int64_t>(1, largest(context.net) / each);
    const int64_t calls = (channels + most) / most, size = (channels + calls) / calls;
    // Image by image, so that blocks are the same whatever the number of images.
    for (int64_t i = 0; i < count; ++i) {
      const int64_t target = rows.targets[static_cast<size_t>(begin + i)];
      std::vector<at::Tensor> scores;
      in_blocks(channels + 1, size, [&](int64_t first, int64_t some) {
        std::vector<at::Tensor> block;
        for (const at::Tensor& value : values) {
          const at::Tensor one = value.size(0) == 1 && count > 1 ? value : value.narrow(0, i, 1);
          std::vector<int64_t> sizes = one.sizes().vec();
          sizes[0] = some;
          block.push_back(one.expand(sizes));
        }
        // Row 0 of all is the whole; row c + 1 is without channel c.
        block[0] = block[0].clone(at::MemoryFormat::ChannelsLast);
        block[0].diagonal(first - 1, 0, 1).zero_();
        scores.push_back(net.tail(block).select(1, target).to(at::kDouble));
        context.run.count(some, 0);
      });
      const at::Tensor all = at::cat(scores);
      const double whole = all[0].item<double>();
      if (!(whole > 0)) {
        throw unsupported("method ablation-cam: the logit of class ", target, " is ", whole,
                          ": it is defined where that is positive");
      }
      const at::Tensor weights = ((whole - all.slice(0, 1)) / whole).to(values[0].scalar_type());
      maps.push_back(weighted_sum(weights.unsqueeze(0), values[0].narrow(0, i, 1).contiguous()));
    }
  });
  return finished(method, at::cat(maps), rows.x);
}

}  // namespace

MethodEntry ablation_cam_method() {
  return cam_entry("ablation-cam", "activations weighted by what the logit loses without their channel",
                   "Desai and Ramaswamy 2020, equations 3 and 4", attribute);
}

}  // namespace assay
