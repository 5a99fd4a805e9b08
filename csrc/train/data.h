// Training examples on the device, and batches of them: gathered by index,
// moved and mirrored at random, normalised.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <vector>

#include "graph/graph.h"

namespace assay {

// (value / scale - mean) / std, computed in double; mean and std have one entry,
// one for each index of an example's first axis, or none (0 and 1).
struct Normalisation {
  double scale = 1;
  std::vector<double> mean, std;
};

// Changes of training examples, of images only.
struct Augment {
  int64_t pad = 0;    // border of raw zeros from which a window of the old size is cut
  bool flip = false;  // mirrors half of the examples left to right
  bool any() const { return pad > 0 || flip; }
};

// A part of the data, checked.
struct Part {
  at::Tensor examples;  // u8 or f32 [N,C,H,W] or [N,F], contiguous, on the device
  at::Tensor labels;    // i64 [N], on the device
  int64_t count() const { return examples.size(0); }
};

// Checks and moves a part to a device. examples: u8 or f32 of shape [N, input]
// (a net on F columns also takes images of F values); labels: integers
// [N] in 0..classes-1. Memory is shared where both are on the device already.
// Throws invalid.
Part make_part(const at::Tensor& examples, const at::Tensor& labels, const Shape& input, int64_t classes,
               at::Device device);

// Where each example of a call is cut out and whether it is mirrored.
struct Moves {
  std::vector<int32_t> top, left;  // 0..2 pad
  std::vector<uint8_t> flip;
};

// Of `count` examples in batches of `batch`, the first of them in step `first`.
// From philox(key, step, place in the batch): word 0 gives the top, word 1 the
// left as floor(word (2 pad + 1) / 2^32), the highest bit of word 2 the flip.
Moves draw_moves(const Augment& augment, uint64_t key, int64_t count, int64_t batch, int64_t first);

// What a batch is made with.
class Loader {
 public:
  // Throws invalid where the lists of the normalisation do not fit the examples,
  // or the examples are no images and are to be augmented.
  Loader(const Part& part, const Normalisation& normalisation, const Augment& augment, at::ScalarType dtype,
         at::MemoryFormat format);

  // The examples of a whole call: indices into the part (checked) and their moves (empty
  // without augmentation). Moves what a GPU needs there once.
  void begin(std::vector<int64_t> indices, Moves moves);

  // Examples [n, ...] of places [begin, begin+n) of the call, in the dtype, 4-D
  // ones in the memory format; and their labels.
  at::Tensor examples(int64_t begin, int64_t n) const;
  at::Tensor labels(int64_t begin, int64_t n) const;

  // The same by tensor operations, as on GPUs; for tests.
  at::Tensor examples_by_tensors(int64_t begin, int64_t n) const;

 private:
  template <typename From, typename To>
  void fill(int64_t begin, at::Tensor& out) const;

  const Part& part_;
  Augment augment_;
  at::ScalarType dtype_;
  at::MemoryFormat format_;
  double scale_;
  std::vector<double> mean_, std_;  // one entry a group (first axis)
  at::Tensor mean_there_, std_there_;
  std::vector<int64_t> indices_;
  Moves moves_;
  at::Tensor indices_there_, top_there_, left_there_, flip_there_;  // on the device
};

}  // namespace assay
