// A scene holds images in slots, each with its reference or, where what deleted features
// become depends on what else is deleted, an imputer made for it; it makes the inputs of
// the masked forward: rows of (slot, set of deleted features).
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "removal/imputer.h"

namespace assay {

class Scene {
 public:
  // channels 0: a table of `width` columns (height 1). feature_map: height*width
  // entries in 0..features-1.
  Scene(at::Device device, int32_t slots, int32_t channels, int32_t height, int32_t width, int32_t features,
        const int32_t* feature_map);

  void put(int32_t slot, const at::Tensor& image, const at::Tensor& reference);
  // imputer: of this image alone.
  void put(int32_t slot, const at::Tensor& image, std::unique_ptr<Imputer> imputer);

  int32_t slots() const { return slots_; }
  int64_t words() const { return (features_ + 63) / 64; }
  at::Device device() const { return device_; }

  // The input of `count` states, [rows,C,H,W] (channels_last) or [rows,F]; rows
  // past count repeat the last state. sets: count*words() words.
  at::Tensor expand(int64_t count, int64_t rows, const int32_t* slot, const uint64_t* sets) const;

  // The two ways of expand, equal to the bit: copying runs of pixels (host), and
  // selecting by a mask (any device).
  at::Tensor expand_runs(int64_t count, int64_t rows, const int32_t* slot, const uint64_t* sets) const;
  at::Tensor expand_masks(int64_t count, int64_t rows, const int32_t* slot, const uint64_t* sets) const;

 private:
  // Of scenes with imputers.
  at::Tensor expand_imputed(int64_t count, int64_t rows, const int32_t* slot, const uint64_t* sets) const;
  // Which features are deleted, at every pixel or column: bool [rows,H*W] on the device.
  at::Tensor deleted(int64_t count, int64_t rows, const uint64_t* sets) const;
  // Consecutive pixels of one feature, in elements of the channels_last image.
  struct Run {
    int64_t begin, length;
    int32_t feature;
  };

  at::Device device_;
  int32_t slots_, channels_, height_, width_, features_;
  std::vector<bool> filled_;
  std::vector<Run> runs_;
  at::Tensor map_;     // int64 [H*W] on the device
  at::Tensor images_;  // [slots,H,W,C] or [slots,F], contiguous
  at::Tensor references_;
  std::vector<std::unique_ptr<Imputer>> imputers_;  // a slot each; empty: references
};

}  // namespace assay
