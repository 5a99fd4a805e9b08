// Methods that look at several inputs for every image: (image, sample) pairs as
// one list of rows, a batch at a time, whatever image they are of.
#pragma once

#include <algorithm>
#include <vector>

#include "attribution/method.h"

namespace assay {

struct Repeats {
  std::vector<int64_t> image;    // of every row of the block
  std::vector<uint64_t> sample;  // 0..samples-1
  Explained rows;                // the images, repeated
};

// f(block) for every block of at most `size` rows of the list in which image 0
// comes `samples` times, then image 1...
template <typename F>
void for_repeats(const Explained& images, int64_t samples, int64_t size, F&& f) {
  in_blocks(images.size() * samples, size, [&](int64_t begin, int64_t count) {
    Repeats block;
    for (int64_t r = begin; r < begin + count; ++r) {
      block.image.push_back(r / samples);
      block.sample.push_back(static_cast<uint64_t>(r % samples));
    }
    block.rows = images.rows(block.image);
    f(block);
  });
}

// One number a row, to be multiplied with rows of any shape.
inline at::Tensor column(const std::vector<double>& values, const at::Tensor& like) {
  std::vector<int64_t> shape(static_cast<size_t>(like.dim()), 1);
  shape[0] = static_cast<int64_t>(values.size());
  return at::tensor(values, at::kDouble).to(like.device(), like.scalar_type()).view(shape);
}

}  // namespace assay
