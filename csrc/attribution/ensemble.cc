// Means and variances of another method's maps over noisy copies of the image.
#include "attribution/draws.h"
#include "attribution/methods.h"
#include "attribution/repeats.h"

namespace assay {
namespace {

using nlohmann::json;

// Standard deviation of the noise of every image.
std::vector<double> deviations(const Method& method, const Explained& images) {
  const double noise = method.parameters().number("noise");
  std::vector<double> all(static_cast<size_t>(images.size()), noise);
  if (method.parameters().text("scale") == "absolute") return all;
  const at::Tensor rows = images.x.flatten(1);
  const at::Tensor range = (rows.amax(1) - rows.amin(1)).to(at::kCPU, at::kDouble).contiguous();
  for (size_t i = 0; i < all.size(); ++i) all[i] *= range.const_data_ptr<double>()[i];
  return all;
}

// f(image, sample, map) for every noisy copy, in order.
template <typename F>
void for_noisy(const Method& method, Context& context, const Explained& images, F&& f) {
  const std::vector<double> deviation = deviations(method, images);
  const InnerScope inner(context);
  for_repeats(images.size(), method.parameters().integer("samples"), context.run.batch(),
              [&](const Repeats& block) {
                Explained rows = images.rows(block.image);
                std::vector<double> by_row;
                std::vector<uint64_t> keys = rows.keys;
                for (size_t r = 0; r < keys.size(); ++r) {
                  by_row.push_back(deviation[static_cast<size_t>(block.image[r])]);
                  rows.keys[r] = inner_key(keys[r], block.sample[r]);
                }
                const at::Tensor noise = normals(keys, block.sample, Draw::kNoise, images.x.sizes().slice(1),
                                                 images.x.device(), images.x.scalar_type());
                rows.x.addcmul_(noise, column(by_row, noise));
                const at::Tensor maps = method.base().attribute(context, rows);
                for (size_t r = 0; r < keys.size(); ++r)
                  f(block.image[r], block.sample[r], maps[static_cast<int64_t>(r)]);
              });
}

// Sums start with the first map, whose shape is the base's.
at::Tensor& slot(at::Tensor& sums, const Explained& images, const at::Tensor& map) {
  if (!sums.defined()) {
    std::vector<int64_t> sizes = map.sizes().vec();
    sizes.insert(sizes.begin(), images.size());
    sums = at::zeros(sizes, map.options());
  }
  return sums;
}

at::Tensor smoothgrad(const Method& method, Context& context, const Explained& images) {
  at::Tensor sum;
  for_noisy(method, context, images,
            [&](int64_t image, uint64_t, const at::Tensor& map) { slot(sum, images, map)[image].add_(map); });
  return sum.div_(static_cast<double>(method.parameters().integer("samples")));
}

at::Tensor smoothgrad_sq(const Method& method, Context& context, const Explained& images) {
  at::Tensor sum;
  for_noisy(method, context, images, [&](int64_t image, uint64_t, const at::Tensor& map) {
    slot(sum, images, map)[image].addcmul_(map, map);
  });
  return sum.div_(static_cast<double>(method.parameters().integer("samples")));
}

// By Welford's recurrence (Technometrics 4, 1962): E[a^2] - E[a]^2 goes negative in f32.
at::Tensor vargrad(const Method& method, Context& context, const Explained& images) {
  at::Tensor mean, squares;
  for_noisy(method, context, images, [&](int64_t image, uint64_t sample, const at::Tensor& map) {
    at::Tensor m = slot(mean, images, map)[image];
    const at::Tensor before = map - m;
    m.add_(before, 1. / static_cast<double>(sample + 1));
    slot(squares, images, map)[image].addcmul_(before, map - m);
  });
  return squares.div_(static_cast<double>(method.parameters().integer("samples")));
}

MethodEntry entry(const std::string& id, const std::string& summary, const std::string& paper,
                  decltype(MethodEntry::attribute) attribute) {
  return {
      .id = id,
      .summary = summary,
      .family = "gradient",
      .needs = "",  // the base's
      .paper = paper,
      .parameters = {{{"name", "samples"},
                      {"type", "int"},
                      {"default", 15},
                      {"minimum", 1},
                      {"maximum", 100000},
                      {"summary", "noisy copies of an image"}},
                     {{"name", "noise"},
                      {"type", "float"},
                      {"default", .15},
                      {"minimum", 0},
                      {"summary", "standard deviation of the noise"}},
                     {{"name", "scale"},
                      {"type", "string"},
                      {"default", "range"},
                      {"choices", {"range", "absolute"}},
                      {"summary",
                       "unit of noise: the image's largest minus smallest value, or 1 (both normalised)"}}},
      .attribute = attribute,
      .default_base = "gradient"};
}

}  // namespace

MethodEntry smoothgrad_method() {
  return entry("smoothgrad", "mean of a method's maps over noisy copies", "Smilkov et al. 2017, equation 2",
               smoothgrad);
}

MethodEntry smoothgrad_sq_method() {
  return entry("smoothgrad-sq", "mean of the squares of a method's maps over noisy copies",
               "Hooker et al. 2019, section 3.2", smoothgrad_sq);
}

MethodEntry vargrad_method() {
  return entry("vargrad", "variance of a method's maps over noisy copies", "Adebayo et al. 2018, section 3",
               vargrad);
}

}  // namespace assay
