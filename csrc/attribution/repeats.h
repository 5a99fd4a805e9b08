// Methods that look at several inputs for every image: (image, sample) pairs as
// one list of rows, a batch at a time, whatever image they are of.
#pragma once

#include <vector>

#include "attribution/method.h"

namespace assay {

struct Repeats {
  std::vector<int64_t> image;    // of every row of the block
  std::vector<uint64_t> sample;  // 0..samples-1
};

// f(block) for every block of at most `size` rows of the list in which image 0
// comes `samples` times, then image 1...
template <typename F>
void for_repeats(int64_t images, int64_t samples, int64_t size, F&& f) {
  in_blocks(images * samples, size, [&](int64_t begin, int64_t count) {
    Repeats block;
    for (int64_t r = begin; r < begin + count; ++r) {
      block.image.push_back(r / samples);
      block.sample.push_back(static_cast<uint64_t>(r % samples));
    }
    f(block);
  });
}

// per_row of numbers from the host.
inline at::Tensor column(const std::vector<double>& numbers, const at::Tensor& rows) {
  return per_row(at::tensor(numbers, at::kDouble), rows);
}

}  // namespace assay
