// Expected gradients: integrated gradients by one random point of the line to a
// random reference, for a noisy copy of the image.
#include "attribution/draws.h"
#include "attribution/methods.h"
#include "attribution/repeats.h"
#include "attribution/samples.h"

namespace assay {
namespace {

at::Tensor attribute(const Method& method, Context& context, const Explained& images) {
  const int64_t samples = method.parameters().integer("samples");
  const double deviation = method.parameters().number("noise");
  at::Tensor sum = at::zeros_like(images.x);
  for_repeats(images.size(), samples, context.run.batch(), [&](const Repeats& block) {
    Explained rows = images.rows(block.image);
    const std::vector<uint64_t> keys = rows.keys;
    std::vector<double> place;
    for (size_t r = 0; r < keys.size(); ++r) {
      place.push_back(uniform(keys[r], block.sample[r], Draw::kInterpolation));
      rows.keys[r] = inner_key(keys[r], block.sample[r]);  // references that draw: anew for every sample
    }
    if (deviation > 0) {
      rows.x.add_(normals(keys, block.sample, Draw::kNoise, rows.x.sizes().slice(1), rows.x.device(),
                          rows.x.scalar_type()),
                  deviation);
    }
    const at::Tensor reference = reference_of(context, rows, method.parameters().text("baseline"));
    const at::Tensor difference = rows.x - reference;
    const at::Tensor x = at::addcmul(reference, difference, column(place, difference));
    const at::Tensor maps = context.run.gradients(x, rows.targets).mul_(difference);
    for (size_t r = 0; r < keys.size(); ++r) sum[block.image[r]].add_(maps[static_cast<int64_t>(r)]);
  });
  return sum.div_(static_cast<double>(samples));
}

}  // namespace

MethodEntry gradient_shap_method() {
  return {.id = "gradient-shap",
          .summary = "gradients at random points between references and noisy copies, times their difference",
          .family = "gradient",
          .needs = "input gradient",
          .paper = "Lundberg and Lee 2017; Erion et al. 2021, equation 3",
          .parameters = {{{"name", "samples"},
                          {"type", "int"},
                          {"default", 5},
                          {"minimum", 1},
                          {"maximum", 100000},
                          {"summary", "points drawn for an image"}},
                         {{"name", "noise"},
                          {"type", "float"},
                          {"default", 0.},
                          {"minimum", 0},
                          {"summary", "standard deviation of the noise, in normalised units"}},
                         baseline_parameter(false)},
          .attribute = attribute};
}

}  // namespace assay
