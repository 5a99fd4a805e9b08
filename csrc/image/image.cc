#include "image/image.h"

#include <cmath>
#include <cstring>

#include "api/error.h"

namespace assay {

void check_size(const char* kind, int64_t height, int64_t width, size_t bytes, int64_t most) {
  if (height < 1 || width < 1 || height > kMaxPixels / width) {
    throw invalid(kind, ": ", width, "x", height, " pixels: want at most ", kMaxPixels);
  }
  if (height * width / most > static_cast<int64_t>(bytes)) {
    throw invalid(kind, ": ", width, "x", height, " pixels in ", bytes, " bytes: cut off or damaged");
  }
}

Image to_channels(Image image, int channels) {
  if (image.channels == channels) return image;
  Image out{image.height, image.width, channels,
            std::vector<uint8_t>(static_cast<size_t>(image.height * image.width * channels))};
  const uint8_t* from = image.pixels.data();
  uint8_t* to = out.pixels.data();
  for (int64_t i = 0; i < image.height * image.width; ++i) {
    if (channels == 3) {
      to[3 * i] = to[3 * i + 1] = to[3 * i + 2] = from[i];
    } else {  // ITU-R 601-2 luma in 16-bit fixed point, as Pillow's
      to[i] = static_cast<uint8_t>(
          (from[3 * i] * 19595 + from[3 * i + 1] * 38470 + from[3 * i + 2] * 7471 + 0x8000) >> 16);
    }
  }
  return out;
}

Image decode(const uint8_t* bytes, size_t size, int channels) {
  static constexpr uint8_t kPng[] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
  if (size == 0) throw invalid("the file is empty");
  if (size >= 3 && bytes[0] == 0xff && bytes[1] == 0xd8 && bytes[2] == 0xff) {
    return to_channels(decode_jpeg(bytes, size), channels);
  }
  if (size >= sizeof kPng && std::memcmp(bytes, kPng, sizeof kPng) == 0) {
    return to_channels(decode_png(bytes, size), channels);
  }
  throw invalid("neither a JPEG nor a PNG");
}

Image preprocess(const Image& image, const tx_preset& preset) {
  int64_t height = image.height, width = image.width;
  if (preset.resize == TX_RESIZE_SQUASH) {
    height = preset.resize_height;
    width = preset.resize_width;
  } else if (preset.resize == TX_RESIZE_SHORTER) {
    // torchvision: the longer side is int(size * long / short).
    const int64_t size = preset.resize_height, shorter = std::min(height, width),
                  longer = std::max(height, width);
    const auto other =
        static_cast<int64_t>(static_cast<double>(size * longer) / static_cast<double>(shorter));
    (width <= height ? width : height) = size;
    (image.width <= image.height ? height : width) = other;
  }
  if (height < 1 || width < 1 || height > kMaxPixels / width) {
    throw invalid("resizing to ", width, "x", height, " pixels: want 1 to ", kMaxPixels);
  }
  Box part{0, 0, height, width};
  if (preset.crop_height > 0) {
    // torchvision's CenterCrop pads a smaller image to the crop's size first
    // (floor on the left and the top), then cuts at round-half-to-even.
    const auto place = [](int64_t have, int64_t want) -> int64_t {
      if (want > have) return -((want - have) / 2);
      return static_cast<int64_t>(std::nearbyint(static_cast<double>(have - want) / 2.0));
    };
    part = {place(height, preset.crop_height), place(width, preset.crop_width), preset.crop_height,
            preset.crop_width};
  }
  return resize(image, height, width, preset.interpolation, part);
}

}  // namespace assay
