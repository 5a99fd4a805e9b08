// PNG by libpng: 8 bits, alpha dropped, no gamma. Of 16 bits the upper 8 are
// kept, as Pillow does, but grey without alpha is clipped at 255 (its I;16 to L).
#include <png.h>

#include <csetjmp>
#include <cstdio>
#include <cstring>
#include <vector>

#include "api/error.h"
#include "image/image.h"

namespace assay {
namespace {

struct Reader {
  png_structp png = nullptr;
  png_infop info = nullptr;
  const uint8_t* bytes;
  size_t left;
  char message[160] = "out of memory";
  bool clipped = false;  // two-byte samples, to be clipped
  Image image;
  std::vector<png_bytep> rows;

  Reader(const uint8_t* from, size_t size) : bytes(from), left(size) {}
  ~Reader() { png_destroy_read_struct(&png, &info, nullptr); }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;
};

[[noreturn]] void on_error(png_structp png, png_const_charp text) {
  auto* reader = static_cast<Reader*>(png_get_error_ptr(png));
  std::snprintf(reader->message, sizeof reader->message, "%s", text);
  png_longjmp(png, 1);
}

void on_read(png_structp png, png_bytep to, size_t count) {
  auto* reader = static_cast<Reader*>(png_get_io_ptr(png));
  if (count > reader->left) png_error(png, "the file ends too early");
  std::memcpy(to, reader->bytes, count);
  reader->bytes += count;
  reader->left -= count;
}

// deflate shrinks to 1/1032 at best, and a pixel has at least one bit.
constexpr int64_t kPixelsAByte = 1032 * 8;

// Nothing in these has a destructor that longjmp could skip.
bool read_header(Reader& reader) {
  reader.png =
      png_create_read_struct(PNG_LIBPNG_VER_STRING, &reader, on_error, [](png_structp, png_const_charp) {});
  if (reader.png == nullptr) return false;
  reader.info = png_create_info_struct(reader.png);
  if (reader.info == nullptr) return false;
  if (setjmp(png_jmpbuf(reader.png)) != 0) return false;
  png_set_read_fn(reader.png, &reader, on_read);
  // Texts, profiles and the like are stepped over: some unpack to megabytes.
  png_set_keep_unknown_chunks(reader.png, PNG_HANDLE_CHUNK_NEVER, nullptr, -1);
  png_read_info(reader.png, reader.info);
  return true;
}

// Row buffers are made here.
bool choose_format(Reader& reader) {
  if (setjmp(png_jmpbuf(reader.png)) != 0) return false;
  reader.clipped = png_get_color_type(reader.png, reader.info) == PNG_COLOR_TYPE_GRAY &&
                   png_get_bit_depth(reader.png, reader.info) == 16;
  if (!reader.clipped) png_set_strip_16(reader.png);
  png_set_palette_to_rgb(reader.png);
  png_set_expand_gray_1_2_4_to_8(reader.png);
  png_set_strip_alpha(reader.png);
  png_set_interlace_handling(reader.png);
  png_read_update_info(reader.png, reader.info);
  return true;
}

bool read_rows(Reader& reader) {
  if (setjmp(png_jmpbuf(reader.png)) != 0) return false;
  png_read_image(reader.png, reader.rows.data());
  png_read_end(reader.png, nullptr);
  return true;
}

}  // namespace

Image decode_png(const uint8_t* bytes, size_t size) {
  Reader reader(bytes, size);
  if (!read_header(reader)) throw invalid("PNG: ", reader.message);
  const int64_t height = png_get_image_height(reader.png, reader.info);
  const int64_t width = png_get_image_width(reader.png, reader.info);
  check_size("PNG", height, width, size, kPixelsAByte);
  if (!choose_format(reader)) throw invalid("PNG: ", reader.message);
  const int64_t channels = png_get_channels(reader.png, reader.info);
  if (channels != 1 && channels != 3) throw invalid("PNG: ", channels, " channels: want grey or colour");
  const int64_t stride = width * channels * (reader.clipped ? 2 : 1);
  if (png_get_rowbytes(reader.png, reader.info) != static_cast<size_t>(stride)) {
    throw invalid("PNG: rows of an unexpected size");
  }
  reader.image = Image{height, width, channels, std::vector<uint8_t>(static_cast<size_t>(height * stride))};
  std::vector<uint8_t>& pixels = reader.image.pixels;
  for (int64_t y = 0; y < height; ++y) reader.rows.push_back(pixels.data() + y * stride);
  if (!read_rows(reader)) throw invalid("PNG: ", reader.message);
  if (reader.clipped) {
    for (size_t i = 0; i < pixels.size() / 2; ++i) pixels[i] = pixels[2 * i] != 0 ? 255 : pixels[2 * i + 1];
    pixels.resize(pixels.size() / 2);
  }
  return std::move(reader.image);
}

}  // namespace assay
