// Images as Pillow and torchvision see them: decoding, resizing and cropping
// give the same 8-bit values to the last bit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "torchx.h"

namespace assay {

// 8-bit pixels, interleaved, row by row.
struct Image {
  int64_t height = 0, width = 0, channels = 0;
  std::vector<uint8_t> pixels;

  uint8_t* row(int64_t y) { return pixels.data() + y * width * channels; }
  const uint8_t* row(int64_t y) const { return pixels.data() + y * width * channels; }
};

// Larger images are refused before their memory is asked for: Pillow's limit
// for a decompression bomb (twice its MAX_IMAGE_PIXELS).
inline constexpr int64_t kMaxPixels = 178956970;

// Refuses sizes beyond kMaxPixels, and those that a file of so many bytes cannot
// hold, being cut off or lying. most: pixels that a byte of the format can stand
// for. kind names the format in the error.
void check_size(const char* kind, int64_t height, int64_t width, size_t bytes, int64_t most);

// Decodes a JPEG or PNG, told by its first bytes, to 3 (RGB) or 1 (grey)
// channels as Pillow's convert("RGB") and convert("L") do: grey is spread, alpha
// is dropped, CMYK is taken as Adobe's, 16 bits become 8. No EXIF rotation.
// Throws invalid for anything else, for truncated and corrupt data.
Image decode(const uint8_t* bytes, size_t size, int channels);
Image decode_jpeg(const uint8_t* bytes, size_t size);  // 1 or 3 channels
Image decode_png(const uint8_t* bytes, size_t size);   // 1 or 3 channels
Image to_channels(Image image, int channels);

// Part of an image: top, left may be negative (zeros are put there).
struct Box {
  int64_t top, left, height, width;
};

// Pillow's resize to height x width, of which only the pixels of `part` are
// made. interpolation: TX_BILINEAR or TX_BICUBIC.
Image resize(const Image& image, int64_t height, int64_t width, int interpolation, const Box& part);

// The preset without normalisation: resize and centre crop as torchvision's
// Resize and CenterCrop.
Image preprocess(const Image& image, const tx_preset& preset);

}  // namespace assay
