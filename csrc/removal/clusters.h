// Small holes of an image, each solved by itself: what harmonic.h solves for decouples where
// known pixels lie between.
#pragma once

#include <cstdint>
#include <vector>

namespace assay {

// The holes of a mask: removed pixels that touch, diagonally too. Memory is used again.
class Clusters {
 public:
  // A hole has at most so many pixels: its matrix is dense.
  static constexpr int kMost = 48;

  // Finds the holes of removed [height,width]. False where one is larger, or so many pixels are
  // removed that one probably is: then there is nothing to fill.
  bool find(const bool* removed, int64_t height, int64_t width);

  // Fills them in values [channels,height,width] by a factorisation each, in double. Filled pixels
  // are within the range of those around their hole; a channel that has known pixels that are no numbers
  // becomes NaN where it is filled.
  template <class T>
  void fill(const bool* removed, T* values, int64_t channels) const;

 private:
  int32_t height_ = 0, width_ = 0;
  std::vector<int32_t> pixels_;  // hole after hole
  std::vector<int32_t> ends_;    // of each in pixels_
  std::vector<int32_t> place_;   // of a removed pixel in its hole; -1: not removed
};

}  // namespace assay
