// JPEG by libjpeg-turbo with its default settings, which decode as Pillow does.
#include <csetjmp>
#include <cstdio>
// jpeglib.h wants size_t and FILE.
#include <jerror.h>
#include <jpeglib.h>

#include <string>

#include "api/error.h"
#include "image/image.h"

namespace assay {
namespace {

struct Errors {
  jpeg_error_mgr manager;  // first: libjpeg hands back a pointer to it
  std::jmp_buf jump;
  char message[JMSG_LENGTH_MAX];
  bool damaged;
};

[[noreturn]] void on_error(j_common_ptr info) {
  auto* errors = reinterpret_cast<Errors*>(info->err);
  info->err->format_message(info, errors->message);
  std::longjmp(errors->jump, 1);
}

// libjpeg fills the rest of a truncated file with grey and warns; here that is
// an error. Data that is merely superfluous is not.
void on_message(j_common_ptr info, int level) {
  if (level >= 0) return;
  const int code = info->err->msg_code;
  if (code == JWRN_EXTRANEOUS_DATA || code == JWRN_ADOBE_XFORM || code == JWRN_JFIF_MAJOR) return;
  auto* errors = reinterpret_cast<Errors*>(info->err);
  if (!errors->damaged) info->err->format_message(info, errors->message);
  errors->damaged = true;
}

// Every scan of a progressive file goes over the whole image, though it may be
// a few bytes; encoders write about ten.
constexpr int kMaxScans = 100;

// With Huffman codes every block of 8x8 values has at least one bit, and at
// most 128 pixels share a block (two components, 4x1 and 1x4). Arithmetic codes
// have no such bound; the number is that of an image in one colour.
constexpr int64_t kPixelsAByte = 1024;
constexpr int64_t kPixelsAnArithmeticByte = 1 << 20;

void on_progress(j_common_ptr info) {
  auto* errors = reinterpret_cast<Errors*>(info->err);
  const int scans = reinterpret_cast<j_decompress_ptr>(info)->input_scan_number;
  if (scans > kMaxScans && !errors->damaged) {
    std::snprintf(errors->message, sizeof errors->message, "more than %d scans", kMaxScans);
    errors->damaged = true;
  }
  if (errors->damaged) std::longjmp(errors->jump, 1);
}

struct Reader {
  jpeg_decompress_struct info;
  Errors errors;
  jpeg_progress_mgr progress;
  Image image;

  Reader() : info(), errors(), progress() {
    info.err = jpeg_std_error(&errors.manager);
    errors.manager.error_exit = on_error;
    errors.manager.emit_message = on_message;
    errors.manager.output_message = [](j_common_ptr) {};
    progress.progress_monitor = on_progress;
  }
  ~Reader() { jpeg_destroy_decompress(&info); }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;
};

// Nothing in these two has a destructor that longjmp could skip.
bool read_header(Reader& reader, const uint8_t* bytes, size_t size) {
  if (setjmp(reader.errors.jump) != 0) return false;
  jpeg_create_decompress(&reader.info);
  reader.info.progress = &reader.progress;
  jpeg_mem_src(&reader.info, bytes, static_cast<unsigned long>(size));
  jpeg_read_header(&reader.info, TRUE);
  if (reader.info.jpeg_color_space == JCS_GRAYSCALE) {
    reader.info.out_color_space = JCS_GRAYSCALE;
  } else if (reader.info.num_components == 4) {
    reader.info.out_color_space = JCS_CMYK;
  } else {
    reader.info.out_color_space = JCS_RGB;
  }
  return true;
}

bool read_rows(Reader& reader) {
  if (setjmp(reader.errors.jump) != 0) return false;
  jpeg_start_decompress(&reader.info);
  while (reader.info.output_scanline < reader.info.output_height) {
    JSAMPROW row = reader.image.row(reader.info.output_scanline);
    jpeg_read_scanlines(&reader.info, &row, 1);
    if (reader.errors.damaged) return false;
  }
  jpeg_finish_decompress(&reader.info);
  return !reader.errors.damaged;
}

// Pillow's CMYK to RGB, for values stored inverted as Adobe does.
Image from_cmyk(const Image& image) {
  Image out{image.height, image.width, 3,
            std::vector<uint8_t>(static_cast<size_t>(image.height * image.width * 3))};
  const uint8_t* from = image.pixels.data();
  uint8_t* to = out.pixels.data();
  for (int64_t i = 0; i < image.height * image.width; ++i, from += 4, to += 3) {
    const int light = from[3];  // 255 - black
    for (int c = 0; c < 3; ++c) {
      const int product = (255 - from[c]) * light + 128;
      to[c] = static_cast<uint8_t>(light - (((product >> 8) + product) >> 8));
    }
  }
  return out;
}

}  // namespace

Image decode_jpeg(const uint8_t* bytes, size_t size) {
  Reader reader;
  if (!read_header(reader, bytes, size)) throw invalid("JPEG: ", reader.errors.message);
  if (reader.errors.damaged) throw invalid("JPEG: ", reader.errors.message);
  const int64_t height = reader.info.image_height, width = reader.info.image_width;
  check_size("JPEG", height, width, size,
             reader.info.arith_code != FALSE ? kPixelsAnArithmeticByte : kPixelsAByte);
  const int channels = reader.info.out_color_space == JCS_GRAYSCALE ? 1
                       : reader.info.out_color_space == JCS_CMYK    ? 4
                                                                    : 3;
  reader.image =
      Image{height, width, channels, std::vector<uint8_t>(static_cast<size_t>(height * width * channels))};
  if (!read_rows(reader)) throw invalid("JPEG: ", reader.errors.message);
  return channels == 4 ? from_cmyk(reader.image) : std::move(reader.image);
}

}  // namespace assay
