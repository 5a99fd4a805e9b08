#include "removal/scene.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "api/error.h"

namespace assay {

Scene::Scene(at::Device device, int32_t slots, int32_t channels, int32_t height, int32_t width,
             int32_t features, const int32_t* feature_map)
    : device_(device),
      slots_(slots),
      channels_(channels),
      height_(height),
      width_(width),
      features_(features),
      filled_(static_cast<size_t>(slots), false) {
  const int64_t pixels = int64_t{height} * width, depth = channels == 0 ? 1 : channels;
  map_ = at::empty({pixels}, at::kLong);
  for (int64_t i = 0; i < pixels; ++i) {
    const int32_t feature = feature_map[i];
    if (feature < 0 || feature >= features) {
      throw invalid("feature_map[", i, "] is ", feature, ": want 0..", features - 1);
    }
    map_.data_ptr<int64_t>()[i] = feature;
    if (!runs_.empty() && runs_.back().feature == feature) {
      runs_.back().length += depth;
    } else {
      runs_.push_back({i * depth, depth, feature});
    }
  }
  map_ = map_.to(device);
  std::vector<int64_t> shape = {slots, height, width, depth};
  if (channels == 0) shape = {slots, width};
  images_ = at::zeros(shape, at::TensorOptions(at::kFloat).device(device));
  references_ = at::zeros_like(images_);
}

void Scene::put(int32_t slot, const at::Tensor& image, const at::Tensor& reference) {
  if (slot < 0 || slot >= slots_) throw invalid("slot ", slot, ": want 0..", slots_ - 1);
  std::vector<int64_t> shape = {channels_, height_, width_};
  if (channels_ == 0) shape = {width_};
  for (const auto& [name, tensor] : {std::pair{"image", image}, std::pair{"reference", reference}}) {
    if (tensor.sizes() != at::IntArrayRef(shape)) {
      throw invalid(name, " is ", tensor.sizes(), ": the scene wants ", at::IntArrayRef(shape));
    }
    // A float64 image makes a float64 scene: the net's precision decides.
    if (tensor.scalar_type() == at::kDouble && images_.scalar_type() == at::kFloat) {
      images_ = images_.to(at::kDouble);
      references_ = references_.to(at::kDouble);
    }
  }
  const auto layout = [&](const at::Tensor& t) { return channels_ == 0 ? t : t.permute({1, 2, 0}); };
  images_[slot].copy_(layout(image));
  references_[slot].copy_(layout(reference));
  filled_[static_cast<size_t>(slot)] = true;
}

void Scene::put(int32_t slot, const at::Tensor& image, std::unique_ptr<Imputer> imputer) {
  put(slot, image, image);
  imputers_.resize(static_cast<size_t>(slots_));
  imputers_[static_cast<size_t>(slot)] = std::move(imputer);
}

at::Tensor Scene::expand(int64_t count, int64_t rows, const int32_t* slot, const uint64_t* sets) const {
  for (int64_t r = 0; r < count; ++r) {
    if (slot[r] < 0 || slot[r] >= slots_)
      throw invalid("slot[", r, "] is ", slot[r], ": want 0..", slots_ - 1);
    if (!filled_[static_cast<size_t>(slot[r])]) throw invalid("slot ", slot[r], " holds no image");
  }
  if (!imputers_.empty()) return expand_imputed(count, rows, slot, sets);
  return device_.is_cpu() ? expand_runs(count, rows, slot, sets) : expand_masks(count, rows, slot, sets);
}

at::Tensor Scene::expand_runs(int64_t count, int64_t rows, const int32_t* slot, const uint64_t* sets) const {
  std::vector<int64_t> shape = images_.sizes().vec();
  shape[0] = rows;
  at::Tensor out = at::empty(shape, images_.options());
  const size_t element = images_.element_size();
  const int64_t row_bytes = images_[0].numel() * static_cast<int64_t>(element), word_count = words();
  const char* image = static_cast<const char*>(images_.const_data_ptr());
  const char* reference = static_cast<const char*>(references_.const_data_ptr());
  char* target = static_cast<char*>(out.data_ptr());
  at::parallel_for(0, rows, 1, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const int64_t state = std::min(r, count - 1);
      const uint64_t* set = sets + state * word_count;
      const char* kept = image + slot[state] * row_bytes;
      const char* deleted = reference + slot[state] * row_bytes;
      char* row = target + r * row_bytes;
      for (const Run& run : runs_) {
        const bool is_deleted = (set[run.feature / 64] >> (run.feature % 64)) & 1;
        const size_t offset = static_cast<size_t>(run.begin) * element;
        std::memcpy(row + offset, (is_deleted ? deleted : kept) + offset,
                    static_cast<size_t>(run.length) * element);
      }
    }
  });
  return channels_ == 0 ? out : out.permute({0, 3, 1, 2});
}

at::Tensor Scene::deleted(int64_t count, int64_t rows, const uint64_t* sets) const {
  const int64_t word_count = words();
  // Pinned, so that a GPU fetches them while it still works on the batch before.
  at::Tensor bits =
      at::empty({rows, word_count}, at::TensorOptions(at::kLong).pinned_memory(device_.is_cuda()));
  for (int64_t r = 0; r < rows; ++r) {
    std::memcpy(bits.data_ptr<int64_t>() + r * word_count, sets + std::min(r, count - 1) * word_count,
                static_cast<size_t>(word_count) * sizeof(uint64_t));
  }
  bits = bits.to(device_, /*non_blocking=*/true);
  const at::Tensor word = map_.div(64, "floor"), bit = map_.remainder(64);
  return bits.index_select(1, word).bitwise_right_shift(bit).bitwise_and(1).to(at::kBool);
}

at::Tensor Scene::expand_masks(int64_t count, int64_t rows, const int32_t* slot, const uint64_t* sets) const {
  at::Tensor slots = at::empty({rows}, at::TensorOptions(at::kLong).pinned_memory(device_.is_cuda()));
  for (int64_t r = 0; r < rows; ++r) slots.data_ptr<int64_t>()[r] = slot[std::min(r, count - 1)];
  slots = slots.to(device_, /*non_blocking=*/true);
  const at::Tensor all = deleted(count, rows, sets);
  const at::Tensor mask = channels_ == 0 ? all : all.view({rows, height_, width_, 1});
  const at::Tensor out = at::where(mask, references_.index_select(0, slots), images_.index_select(0, slots));
  return channels_ == 0 ? out : out.permute({0, 3, 1, 2});
}

at::Tensor Scene::expand_imputed(int64_t count, int64_t rows, const int32_t* slot,
                                 const uint64_t* sets) const {
  at::Tensor mask = deleted(count, count, sets);
  if (channels_ != 0) mask = mask.view({count, height_, width_});
  std::vector<std::vector<int64_t>> of_slot(static_cast<size_t>(slots_));
  for (int64_t r = 0; r < count; ++r) of_slot[static_cast<size_t>(slot[r])].push_back(r);
  std::vector<int64_t> shape = {rows, channels_, height_, width_};
  if (channels_ == 0) shape = {rows, width_};
  at::Tensor out = at::empty(shape, images_.options());
  for (size_t s = 0; s < of_slot.size(); ++s) {
    if (of_slot[s].empty()) continue;
    const at::Tensor which = at::tensor(of_slot[s], at::kLong).to(device_);
    const at::Tensor own = mask.index_select(0, which).contiguous();
    out.index_copy_(
        0, which,
        imputers_[s]->fill(std::vector<int64_t>(of_slot[s].size(), 0), own, nullptr).to(out.scalar_type()));
  }
  for (int64_t r = count; r < rows; ++r) out[r].copy_(out[count - 1]);
  return out;
}

}  // namespace assay
