#include "train/data.h"

#include <ATen/Dispatch.h>
#include <ATen/Parallel.h>
#include <c10/util/accumulate.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "api/error.h"
#include "removal/philox.h"

namespace assay {
namespace {

// One entry a group from none, one, or one a group.
std::vector<double> spread(const std::vector<double>& values, int64_t groups, double otherwise,
                           const char* name) {
  const auto count = static_cast<size_t>(groups);
  if (values.empty()) return std::vector<double>(count, otherwise);
  if (values.size() == 1) return std::vector<double>(count, values[0]);
  if (values.size() == count) return values;
  throw invalid(name, " has ", values.size(), " entries, the examples ", groups,
                " channels: want as many, 1 or none");
}

at::Tensor integers_there(const void* data, size_t count, at::ScalarType dtype, at::Device device) {
  // from_blob wants a pointer that may be written to; the copy is made at once.
  return at::from_blob(const_cast<void*>(data), {static_cast<int64_t>(count)}, dtype)
      .to(device, dtype, /*non_blocking=*/false, /*copy=*/true);
}

}  // namespace

Part make_part(const at::Tensor& examples, const at::Tensor& labels, const Shape& input, int64_t classes,
               at::Device device) {
  const at::ScalarType type = examples.scalar_type();
  if (type != at::kByte && type != at::kFloat) {
    throw invalid("examples are ", at::toString(type), ": want u8 or f32");
  }
  const at::IntArrayRef sizes = examples.sizes();
  const bool fits =
      sizes.size() >= 2 &&
      (sizes.slice(1) == at::IntArrayRef(input) ||
       (input.size() == 1 && sizes.size() == 4 && c10::multiply_integers(sizes.slice(1)) == input[0]));
  if (!fits) {
    throw invalid("examples ", sizes, ": want [N,", c10::Join(",", input), "]",
                  input.size() == 1 ? " or images [N,C,H,W] of as many values" : "");
  }
  if (sizes[0] < 1) throw invalid("no examples: want at least 1");
  if (!at::isIntegralType(labels.scalar_type(), /*includeBool=*/false) || labels.dim() != 1 ||
      labels.size(0) != sizes[0]) {
    throw invalid("labels are ", at::toString(labels.scalar_type()), " ", labels.sizes(), ": want integers [",
                  sizes[0], "]");
  }
  const at::Tensor wide = labels.to(at::kCPU, at::kLong).contiguous();
  const auto* data = wide.const_data_ptr<int64_t>();
  for (int64_t i = 0; i < wide.size(0); ++i) {
    if (data[i] < 0 || data[i] >= classes) {
      throw invalid("label ", i, " is ", data[i], ": want 0..", classes - 1);
    }
  }
  return {examples.contiguous().to(device), wide.to(device)};
}

Moves draw_moves(const Augment& augment, uint64_t key, int64_t count, int64_t batch, int64_t first) {
  Moves moves;
  if (!augment.any()) return moves;
  const auto n = static_cast<size_t>(count);
  moves.top.resize(n);
  moves.left.resize(n);
  moves.flip.resize(n);
  const uint64_t places = 2 * static_cast<uint64_t>(augment.pad) + 1;
  for (int64_t i = 0; i < count; ++i) {
    const auto words =
        philox(key, static_cast<uint64_t>(first + i / batch), static_cast<uint64_t>(i % batch));
    const auto at = static_cast<size_t>(i);
    moves.top[at] = static_cast<int32_t>(words[0] * places >> 32);
    moves.left[at] = static_cast<int32_t>(words[1] * places >> 32);
    moves.flip[at] = augment.flip && words[2] >> 31 != 0;
  }
  return moves;
}

Loader::Loader(const Part& part, const Normalisation& normalisation, const Augment& augment,
               at::ScalarType dtype, at::MemoryFormat format)
    : part_(part), augment_(augment), dtype_(dtype), format_(format), scale_(normalisation.scale) {
  const at::Tensor& x = part.examples;
  if (augment.any() && x.dim() != 4) {
    throw invalid("examples ", x.sizes(), " are no images: they cannot be cropped or flipped");
  }
  mean_ = spread(normalisation.mean, x.size(1), 0, "mean");
  std_ = spread(normalisation.std, x.size(1), 1, "std");
  std::vector<int64_t> shape(static_cast<size_t>(x.dim()), 1);
  shape[1] = x.size(1);
  mean_there_ = at::tensor(mean_, at::kDouble).view(shape).to(x.device());
  std_there_ = at::tensor(std_, at::kDouble).view(shape).to(x.device());
}

void Loader::begin(std::vector<int64_t> indices, Moves moves) {
  indices_ = std::move(indices);
  moves_ = std::move(moves);
  const at::Device device = part_.examples.device();
  indices_there_ = integers_there(indices_.data(), indices_.size(), at::kLong, device);
  if (moves_.top.empty()) return;
  top_there_ = integers_there(moves_.top.data(), moves_.top.size(), at::kInt, device);
  left_there_ = integers_there(moves_.left.data(), moves_.left.size(), at::kInt, device);
  flip_there_ = integers_there(moves_.flip.data(), moves_.flip.size(), at::kByte, device);
}

at::Tensor Loader::labels(int64_t begin, int64_t n) const {
  return part_.labels.index_select(0, indices_there_.narrow(0, begin, n));
}

at::Tensor Loader::examples(int64_t begin, int64_t n) const {
  if (!part_.examples.device().is_cpu()) return examples_by_tensors(begin, n);
  std::vector<int64_t> shape = part_.examples.sizes().vec();
  shape[0] = n;
  at::Tensor out = at::empty(shape, dtype_, std::nullopt, std::nullopt, std::nullopt,
                             shape.size() == 4 ? format_ : at::MemoryFormat::Contiguous);
  AT_DISPATCH_FLOATING_TYPES(dtype_, "examples", [&] {
    if (part_.examples.scalar_type() == at::kByte) {
      fill<uint8_t, scalar_t>(begin, out);
    } else {
      fill<float, scalar_t>(begin, out);
    }
  });
  return out;
}

// One pass from raw values to the batch.
template <typename From, typename To>
void Loader::fill(int64_t begin, at::Tensor& out) const {
  const at::Tensor& all = part_.examples;
  const bool images = all.dim() == 4;
  const int64_t channels = all.size(1), height = images ? all.size(2) : 1, width = images ? all.size(3) : 1;
  const int64_t over_channels = out.stride(1), over_rows = images ? out.stride(2) : 1,
                over_columns = images ? out.stride(3) : 1;
  const int64_t each = channels * height * width;
  const From* from = all.const_data_ptr<From>();
  To* to = out.mutable_data_ptr<To>();
  const auto value = [&](From raw, int64_t c) {
    const auto group = static_cast<size_t>(c);
    return static_cast<To>((static_cast<double>(raw) / scale_ - mean_[group]) / std_[group]);
  };
  // A byte has only so many values.
  constexpr bool kBytes = std::is_same_v<From, uint8_t>;
  std::vector<To> table;
  if constexpr (kBytes) {
    table.resize(static_cast<size_t>(channels) * 256);
    for (size_t i = 0; i < table.size(); ++i) {
      table[i] = value(static_cast<uint8_t>(i % 256), static_cast<int64_t>(i / 256));
    }
  }
  const auto normalised = [&](From raw, int64_t c) {
    if constexpr (kBytes) {
      return table[static_cast<size_t>(c) * 256 + raw];
    } else {
      return value(raw, c);
    }
  };
  const int64_t grain = std::max<int64_t>(1, 16384 / std::max<int64_t>(1, each));
  at::parallel_for(0, out.size(0), grain, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      const auto place = static_cast<size_t>(begin + i);
      const From* example = from + indices_[place] * each;
      const bool moved = !moves_.top.empty();
      const int64_t top = moved ? moves_.top[place] - augment_.pad : 0;
      const int64_t left = moved ? moves_.left[place] - augment_.pad : 0;
      const bool flip = moved && moves_.flip[place] != 0;
      for (int64_t c = 0; c < channels; ++c) {
        const To border = normalised(From(0), c);
        for (int64_t r = 0; r < height; ++r) {
          To* row = to + i * each + c * over_channels + r * over_rows;
          const int64_t source = r + top;
          const bool inside = source >= 0 && source < height;
          const From* line = example + (c * height + (inside ? source : 0)) * width;
          for (int64_t k = 0; k < width; ++k) {
            const int64_t column = (flip ? width - 1 - k : k) + left;
            row[k * over_columns] =
                inside && column >= 0 && column < width ? normalised(line[column], c) : border;
          }
        }
      }
    }
  });
}

at::Tensor Loader::examples_by_tensors(int64_t begin, int64_t n) const {
  at::Tensor x = part_.examples.index_select(0, indices_there_.narrow(0, begin, n));
  if (!moves_.top.empty()) {
    const int64_t height = x.size(2), width = x.size(3);
    const auto column = [&](const at::Tensor& all) {
      return all.narrow(0, begin, n).to(at::kLong).unsqueeze(1);
    };
    const at::TensorOptions integers = x.options().dtype(at::kLong);
    const at::Tensor rows = at::arange(height, integers) + (column(top_there_) - augment_.pad);
    const at::Tensor across = at::arange(width, integers).unsqueeze(0);
    const at::Tensor columns = at::where(column(flip_there_) != 0, width - 1 - across, across) +
                               (column(left_there_) - augment_.pad);
    const at::Tensor inside = ((rows >= 0).logical_and_(rows < height))
                                  .unsqueeze(2)
                                  .logical_and((columns >= 0).logical_and_(columns < width).unsqueeze(1));
    const at::Tensor from =
        rows.clamp(0, height - 1).mul_(width).unsqueeze(2) + columns.clamp(0, width - 1).unsqueeze(1);
    x = x.flatten(2)
            .gather(2, from.flatten(1).unsqueeze(1).expand({n, x.size(1), height * width}))
            .view(x.sizes())
            .masked_fill(inside.logical_not().unsqueeze(1), 0);
  }
  x = x.to(at::kDouble).div_(scale_).sub_(mean_there_).div_(std_there_).to(dtype_);
  return x.dim() == 4 ? x.contiguous(format_) : x;
}

}  // namespace assay
