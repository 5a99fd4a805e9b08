// Edges of the image, whatever the net: squared Sobel responses, summed over channels.
#include "api/error.h"
#include "attribution/methods.h"

namespace assay {
namespace {

// x[..., i + by] along dim, the border repeated.
at::Tensor shifted(const at::Tensor& x, int64_t dim, int64_t by) {
  const at::Tensor index = (at::arange(x.size(dim), at::TensorOptions(at::kLong).device(x.device())) + by)
                               .clamp(0, x.size(dim) - 1);
  return x.index_select(dim, index);
}

at::Tensor sobel(const Method&, Context&, const Explained& rows) {
  if (rows.is_table()) throw unsupported("method sobel: a table has no edges");
  const at::Tensor x = rows.x.to(at::kDouble);
  // The derivative along one axis of what is smoothed, 1 2 1, along the other.
  const auto response = [&](int64_t along, int64_t across) {
    const at::Tensor change = shifted(x, along, 1) - shifted(x, along, -1);
    return shifted(change, across, -1) + 2 * change + shifted(change, across, 1);
  };
  const at::Tensor energy = response(3, 2).square() + response(2, 3).square();
  at::Tensor sum = energy.select(1, 0).clone();
  for (int64_t c = 1; c < energy.size(1); ++c) sum += energy.select(1, c);
  return sum.unsqueeze(1).to(rows.x.scalar_type());
}

}  // namespace

MethodEntry sobel_method() {
  return {.id = "sobel",
          .summary = "squared Sobel edges of the (normalised) image, summed over channels",
          .family = "control",
          .needs = "",
          .paper = "Hooker et al. 2019, section 4.2",
          .parameters = nlohmann::json::array(),
          .attribute = sobel,
          .one_channel = true};
}

}  // namespace assay
