// Integrated gradients: the gradient averaged along the straight line from a
// reference to the image, times their difference.
#include <cmath>
#include <numbers>

#include "attribution/methods.h"
#include "attribution/repeats.h"
#include "attribution/samples.h"

namespace assay {
namespace {

struct Rule {
  std::vector<double> at, weight;  // in [0,1]
};

// Nodes and weights of Gauss and Legendre on [0,1], by Newton's method on P_n
// (Abramowitz and Stegun 1964, 25.4.29 and 22.7.10).
Rule gauss_legendre(int64_t n) {
  Rule rule{std::vector<double>(static_cast<size_t>(n)), std::vector<double>(static_cast<size_t>(n))};
  for (int64_t i = 0; i < n; ++i) {
    double x = std::cos(std::numbers::pi * (static_cast<double>(i) + .75) / (static_cast<double>(n) + .5));
    double slope = 0;
    for (int step = 0; step < 100; ++step) {
      double p0 = 1, p1 = x;
      for (int64_t k = 2; k <= n; ++k) {
        const double k_ = static_cast<double>(k);
        const double p2 = ((2 * k_ - 1) * x * p1 - (k_ - 1) * p0) / k_;
        p0 = p1;
        p1 = p2;
      }
      slope = static_cast<double>(n) * (x * p1 - p0) / (x * x - 1);
      const double moved = p1 / slope;
      x -= moved;
      if (std::abs(moved) < 1e-16) break;
    }
    const size_t place = static_cast<size_t>(n - 1 - i);  // ascending
    rule.at[place] = .5 * (1 + x);
    rule.weight[place] = 1 / ((1 - x * x) * slope * slope);
  }
  return rule;
}

Rule rule_of(const std::string& name, int64_t n) {
  if (name == "gauss-legendre") return n == 1 ? Rule{{.5}, {1}} : gauss_legendre(n);
  Rule rule;
  const double count = static_cast<double>(n);
  for (int64_t i = 0; i < n; ++i) {
    const double place = static_cast<double>(i);
    if (name == "right") rule.at.push_back((place + 1) / count);
    if (name == "left") rule.at.push_back(place / count);
    if (name == "middle") rule.at.push_back((place + .5) / count);
    if (name == "trapezoid") rule.at.push_back(n == 1 ? .5 : place / (count - 1));
    const bool end = name == "trapezoid" && n > 1 && (i == 0 || i == n - 1);
    rule.weight.push_back((end ? .5 : 1) / (name == "trapezoid" && n > 1 ? count - 1 : count));
  }
  return rule;
}

at::Tensor attribute(const Method& method, Context& context, const Explained& images) {
  const Rule rule = rule_of(method.parameters().text("rule"), method.parameters().integer("steps"));
  const Output output = output_of(method.parameters().text("output"));
  const at::Tensor reference = reference_of(context, images, method.parameters().text("baseline"));
  const at::Tensor difference = images.x - reference;
  at::Tensor sum = at::zeros_like(images.x);
  for_repeats(
      images.size(), static_cast<int64_t>(rule.at.size()), context.run.batch(), [&](const Repeats& block) {
        std::vector<double> at;
        std::vector<int64_t> targets;
        for (uint64_t s : block.sample) at.push_back(rule.at[s]);
        for (int64_t i : block.image) targets.push_back(images.targets[static_cast<size_t>(i)]);
        const at::Tensor which = at::tensor(block.image, at::kLong).to(sum.device());
        const at::Tensor x =
            at::addcmul(reference.index_select(0, which), difference.index_select(0, which), column(at, sum));
        const at::Tensor gradients = context.run.gradients(x, targets, output);
        for (size_t r = 0; r < block.image.size(); ++r) {  // in the order of steps, whatever the blocks
          sum[block.image[r]].add_(gradients[static_cast<int64_t>(r)], rule.weight[block.sample[r]]);
        }
      });
  const at::Tensor maps = sum.mul_(difference);
  if (context.inner) return maps;
  const at::Tensor change = context.run.outputs(images.x, images.targets, output) -
                            context.run.outputs(reference, images.targets, output);
  const at::Tensor gap = (maps.flatten(1).sum(1, false, at::kDouble) - change).to(at::kCPU);
  context.deltas.assign(gap.const_data_ptr<double>(), gap.const_data_ptr<double>() + gap.numel());
  return maps;
}

}  // namespace

MethodEntry integrated_gradients_method() {
  return {.id = "integrated-gradients",
          .summary = "gradient averaged from a reference to the input, times their difference",
          .family = "gradient",
          .needs = "input gradient",
          .paper = "Sundararajan et al. 2017, equation 1",
          .parameters = {{{"name", "steps"},
                          {"type", "int"},
                          {"default", 50},
                          {"minimum", 1},
                          {"maximum", 100000},
                          {"summary", "points of the integral"}},
                         {{"name", "rule"},
                          {"type", "string"},
                          {"default", "gauss-legendre"},
                          {"choices", {"gauss-legendre", "right", "left", "middle", "trapezoid"}},
                          {"summary", "where the points lie"}},
                         baseline_parameter(false),
                         output_parameter("logit")},
          .attribute = attribute};
}

}  // namespace assay
