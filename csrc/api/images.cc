// Decoding and preprocessing of a list of images on several threads.
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <exception>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "api/api.h"
#include "image/image.h"

namespace assay {
namespace {

void check(const tx_preset& preset) {
  if (preset.channels != 1 && preset.channels != 3)
    throw invalid("channels ", preset.channels, ": want 1 or 3");
  if (preset.resize < TX_RESIZE_NONE || preset.resize > TX_RESIZE_SQUASH) {
    throw invalid("resize ", preset.resize, ": want TX_RESIZE_NONE, TX_RESIZE_SHORTER or TX_RESIZE_SQUASH");
  }
  const bool sized = preset.resize != TX_RESIZE_NONE;
  if ((sized && (preset.resize_height < 1 || preset.resize_height > 1 << 14)) ||
      (preset.resize == TX_RESIZE_SQUASH && (preset.resize_width < 1 || preset.resize_width > 1 << 14))) {
    throw invalid("resizing to ", preset.resize_height, "x", preset.resize_width, ": want 1..", 1 << 14);
  }
  if (preset.crop_height < 0 || preset.crop_width < 0 || preset.crop_height > 1 << 14 ||
      preset.crop_width > 1 << 14 || (preset.crop_height == 0) != (preset.crop_width == 0)) {
    throw invalid("crop ", preset.crop_height, "x", preset.crop_width, ": want 1..", 1 << 14,
                  " or 0x0 for none");
  }
  if (preset.interpolation != TX_BILINEAR && preset.interpolation != TX_BICUBIC) {
    throw invalid("interpolation ", preset.interpolation, ": want TX_BILINEAR or TX_BICUBIC");
  }
  for (int c = 0; c < preset.channels; ++c) {
    if (!std::isfinite(preset.mean[c])) {
      throw invalid("mean[", c, "] is ", preset.mean[c], ": want a finite number");
    }
    if (!(preset.std[c] > 0)) throw invalid("std[", c, "] is ", preset.std[c], ": want a number above 0");
  }
}

// The size that every image comes out with, where the preset alone fixes it.
std::optional<std::pair<int64_t, int64_t>> fixed_size(const tx_preset& preset) {
  if (preset.crop_height > 0) return std::pair<int64_t, int64_t>{preset.crop_height, preset.crop_width};
  if (preset.resize == TX_RESIZE_SQUASH)
    return std::pair<int64_t, int64_t>{preset.resize_height, preset.resize_width};
  return std::nullopt;
}

// ToTensor and Normalize in f32, channel planes: ((v/255) - mean) / std.
void normalise(const Image& image, const tx_preset& preset, float* to) {
  const int64_t pixels = image.height * image.width;
  for (int64_t c = 0; c < image.channels; ++c) {
    float table[256];
    for (int v = 0; v < 256; ++v) {
      table[v] = (static_cast<float>(v) / 255.0F - preset.mean[c]) / preset.std[c];
    }
    const uint8_t* from = image.pixels.data() + c;
    for (int64_t i = 0; i < pixels; ++i) to[c * pixels + i] = table[from[i * image.channels]];
  }
}

// A tensor of zeros on pages of its own, which go back to the system with it.
// Decoded images come and go beside the activations of a running net; in one
// heap with them, which keeps what is freed (tx_start), they leave holes and
// memory grows with the number of images.
at::Tensor zeros_on_pages(at::IntArrayRef shape, at::ScalarType type) {
  const size_t size = static_cast<size_t>(c10::multiply_integers(shape)) * at::elementSize(type);
  if (size == 0) return at::zeros(shape, type);
  void* pages = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED) throw std::bad_alloc();
  return at::from_blob(
      pages, shape, [size](void* p) { munmap(p, size); }, type);
}

// Calls work(i) for i of 0..count-1 on several threads; work must not throw.
template <typename Work>
void in_parallel(int64_t count, int32_t threads, const Work& work) {
  std::atomic<int64_t> next{0};
  const auto run = [&] {
    for (int64_t i = next++; i < count; i = next++) work(i);
  };
  std::vector<std::jthread> helpers;
  try {
    for (int64_t t = 1; t < std::min<int64_t>(threads, count); ++t) helpers.emplace_back(run);
  } catch (const std::system_error&) {
    // The system gives no more threads: those that are there do the work.
  }
  run();
}

std::string message_of_current_exception() {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    return "out of memory";
  } catch (const std::exception& e) {
    return e.what();
  }
}

}  // namespace
}  // namespace assay

using namespace assay;

extern "C" {

tx_status* tx_images_decode(int64_t count, const void* const* bytes, const size_t* sizes,
                            const tx_preset* preset, int32_t threads, tx_tensor* values, tx_tensor* pixels,
                            char** errors) {
  return guard("images-decode", [&] {
    if (count < 0) throw invalid("count ", count, ": want at least 0");
    if (threads < 1) throw invalid("threads ", threads, ": want at least 1");
    check(*required(preset, "preset"));
    required(errors, "errors");
    if (count > 0) {
      required(bytes, "bytes");
      required(sizes, "sizes");
    }
    const auto decode_one = [&](int64_t i) {
      return preprocess(
          decode(static_cast<const uint8_t*>(bytes[i]), bytes[i] == nullptr ? 0 : sizes[i], preset->channels),
          *preset);
    };
    std::vector<std::string> messages(static_cast<size_t>(count));
    auto size = fixed_size(*preset);
    for (int64_t i = 0; i < count && !size; ++i) {  // the first good image says
      try {
        const Image image = decode_one(i);
        size = {image.height, image.width};
      } catch (const Error&) {
      }
    }
    const auto [height, width] = size.value_or(std::pair<int64_t, int64_t>{1, 1});
    const int64_t channels = preset->channels;
    at::Tensor value_rows, pixel_rows;
    if (values != nullptr) value_rows = zeros_on_pages({count, channels, height, width}, at::kFloat);
    if (pixels != nullptr) pixel_rows = zeros_on_pages({count, height, width, channels}, at::kByte);
    float* value_data = values != nullptr ? value_rows.data_ptr<float>() : nullptr;
    uint8_t* pixel_data = pixels != nullptr ? pixel_rows.data_ptr<uint8_t>() : nullptr;
    const int64_t each = channels * height * width;
    std::vector<std::pair<int64_t, int64_t>> came_out(static_cast<size_t>(count), {height, width});
    in_parallel(count, threads, [&, height = height, width = width](int64_t i) {
      try {
        const Image image = decode_one(i);
        if (image.height != height || image.width != width) {
          came_out[static_cast<size_t>(i)] = {image.height, image.width};
          return;
        }
        if (value_data != nullptr) normalise(image, *preset, value_data + i * each);
        if (pixel_data != nullptr) std::copy(image.pixels.begin(), image.pixels.end(), pixel_data + i * each);
      } catch (...) {
        messages[static_cast<size_t>(i)] = message_of_current_exception();
      }
    });
    for (int64_t i = 0; i < count; ++i) {
      const auto [rows, columns] = came_out[static_cast<size_t>(i)];
      if (rows == height && columns == width) continue;
      throw invalid("image ", i, " comes out as ", columns, "x", rows, " pixels, those before it as ", width,
                    "x", height, ": want a preset that crops to one size or squashes");
    }
    nlohmann::json list = nlohmann::json::array();
    for (const std::string& message : messages) {
      list.push_back(message.empty() ? nlohmann::json() : nlohmann::json(message));
    }
    char* text = duplicate(list.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
    if (values != nullptr) *values = handle_of(std::move(value_rows));
    if (pixels != nullptr) *pixels = handle_of(std::move(pixel_rows));
    *errors = text;
  });
}

}  // extern "C"
