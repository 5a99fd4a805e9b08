// Any map after a filter that knows neither net nor image: what a score likes about
// blur alone (ROAR pitfalls, section 3.2 and appendix A: SciPy's Gaussian filter of
// sigma 1 and maximum filter of 3 x 3, borders as SciPy's default "reflect", which
// repeats the border pixel). Their squared maps are squared first: `reduction`.
#include <cmath>

#include "api/error.h"
#include "attribution/methods.h"

namespace assay {
namespace {

// The middle `size` places of x along dim, moved by `by`, mirrored at the borders.
at::Tensor mirrored(const at::Tensor& x, int64_t dim, int64_t by) {
  const int64_t size = x.size(dim);
  std::vector<int64_t> index;
  for (int64_t i = 0; i < size; ++i) {
    const int64_t at = ((i + by) % (2 * size) + 2 * size) % (2 * size);
    index.push_back(at < size ? at : 2 * size - 1 - at);
  }
  return x.index_select(dim, at::tensor(index, at::kLong).to(x.device()));
}

at::Tensor gaussian(const Parameters& parameters, at::Tensor x) {
  const double sigma = parameters.number("sigma");
  const int64_t radius = static_cast<int64_t>(4 * sigma + 0.5);  // SciPy's truncate=4
  std::vector<double> weights;
  double sum = 0;
  for (int64_t i = -radius; i <= radius; ++i) {
    weights.push_back(std::exp(-0.5 * std::pow(static_cast<double>(i) / sigma, 2)));
    sum += weights.back();
  }
  for (int64_t dim : {2, 3}) {
    at::Tensor out = at::zeros_like(x);
    for (int64_t i = -radius; i <= radius; ++i) {
      out += mirrored(x, dim, i) * (weights[static_cast<size_t>(i + radius)] / sum);
    }
    x = out;
  }
  return x;
}

at::Tensor maximum(const Parameters& parameters, at::Tensor x) {
  const int64_t kernel = parameters.integer("kernel"), radius = kernel / 2;
  if (kernel % 2 == 0) throw invalid("method blurred: kernel ", kernel, ": want an odd number");
  for (int64_t dim : {2, 3}) {
    at::Tensor out = x;
    for (int64_t i = -radius; i <= radius; ++i) out = at::maximum(out, mirrored(x, dim, i));
    x = out;
  }
  return x;
}

template <typename F>
struct Named {
  const char* name;
  F* apply;
};

constexpr Named<at::Tensor(const Parameters&, at::Tensor)> kFilters[] = {{"gaussian", gaussian},
                                                                         {"max", maximum}};

constexpr Named<at::Tensor(const at::Tensor&)> kReductions[] = {
    {"none", [](const at::Tensor& x) { return x; }},
    {"abs-mean", [](const at::Tensor& x) { return x.abs().mean(1, /*keepdim=*/true); }},
    {"abs-max", [](const at::Tensor& x) { return x.abs().amax(1, /*keepdim=*/true); }},
    {"abs-sum", [](const at::Tensor& x) { return x.abs().sum(1, /*keepdim=*/true); }},
    {"sum", [](const at::Tensor& x) { return x.sum(1, /*keepdim=*/true); }},
    {"square-sum", [](const at::Tensor& x) { return x.square().sum(1, /*keepdim=*/true); }},
};

template <typename Entries>
const auto& named(const Entries& entries, const std::string& name) {
  for (const auto& entry : entries) {
    if (entry.name == name) return entry;
  }
  throw invalid("method blurred: no ", name);
}

template <typename Entries>
nlohmann::json names(const Entries& entries) {
  nlohmann::json out = nlohmann::json::array();
  for (const auto& entry : entries) out.push_back(entry.name);
  return out;
}

at::Tensor blurred(const Method& method, Context& context, const Explained& rows) {
  if (rows.is_table()) throw unsupported("method blurred: a table has no neighbours to blur with");
  const Parameters& parameters = method.parameters();
  const at::Tensor maps = method.base().attribute(context, rows).to(at::kDouble);
  context.deltas.clear();  // a blurred map is not complete
  const at::Tensor reduced = named(kReductions, parameters.text("reduction")).apply(maps);
  return named(kFilters, parameters.text("kind")).apply(parameters, reduced).to(rows.x.scalar_type());
}

}  // namespace

MethodEntry blurred_method() {
  return {.id = "blurred",
          .summary = "another method's map under a Gaussian or maximum filter",
          .family = "control",
          .needs = "",
          .paper = "ROAR pitfalls (DPI), section 3.2",
          .parameters = {{{"name", "kind"},
                          {"type", "string"},
                          {"default", "gaussian"},
                          {"choices", names(kFilters)},
                          {"summary", "the filter"}},
                         {{"name", "sigma"},
                          {"type", "float"},
                          {"default", 1.0},
                          {"minimum", 1e-3},
                          {"maximum", 1000.0},
                          {"summary", "gaussian: standard deviation in pixels"}},
                         {{"name", "kernel"},
                          {"type", "int"},
                          {"default", 3},
                          {"minimum", 1},
                          {"summary", "max: edge in pixels, odd"}},
                         {{"name", "reduction"},
                          {"type", "string"},
                          {"default", "none"},
                          {"choices", names(kReductions)},
                          {"summary", "of the map's channels, before the filter"}}},
          .attribute = blurred,
          .default_base = "gradient"};
}

}  // namespace assay
