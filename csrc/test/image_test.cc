// Images through tx_images_decode against what Pillow and torchvision make of
// them (testdata/golden_images.json), and files that are not what they should be.
#include "image/image.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <random>

#include "removal/sha256.h"
#include "torchx.h"

namespace assay {
namespace {

using nlohmann::json;

std::string read(const std::string& name) {
  std::ifstream file(ASSAY_SOURCE_DIR "/testdata/" + name, std::ios::binary);
  EXPECT_TRUE(file) << name;
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string image(const std::string& name) { return read("images/" + name); }

tx_preset preset_of(const json& golden) {
  const std::vector<std::string> resizes = {"none", "shorter", "squash"};
  const std::vector<std::string> interpolations = {"bilinear", "bicubic"};
  const auto index = [](const std::vector<std::string>& names, const std::string& name) {
    return static_cast<int32_t>(std::find(names.begin(), names.end(), name) - names.begin());
  };
  tx_preset preset{};
  preset.resize = index(resizes, golden.at("resize"));
  preset.resize_height = golden.at("height");
  preset.resize_width = golden.at("width");
  preset.interpolation = index(interpolations, golden.at("interpolation"));
  preset.crop_height = golden.at("cropHeight");
  preset.crop_width = golden.at("cropWidth");
  preset.channels = golden.at("channels");
  for (int c = 0; c < preset.channels; c++) {
    preset.mean[c] = static_cast<float>(golden.at("mean").at(c).get<double>());
    preset.std[c] = static_cast<float>(golden.at("std").at(c).get<double>());
  }
  return preset;
}

const json& goldens() {
  static const json all = json::parse(read("golden_images.json"));
  return all;
}

tx_preset preset_named(const std::string& name) { return preset_of(goldens().at("presets").at(name)); }

struct Decoded {
  at::Tensor values;
  at::Tensor pixels;
  json errors;
  int32_t code = 0;
  std::string failure;
};

at::Tensor taken(tx_tensor handle) {
  if (handle == nullptr) return {};
  at::Tensor tensor = *static_cast<at::Tensor*>(handle);
  tx_tensor_free(handle);
  return tensor;
}

Decoded decode(const std::vector<std::string>& files, const tx_preset& preset, int threads = 2,
               bool want_values = true, bool want_pixels = true) {
  std::vector<const void*> bytes;
  std::vector<size_t> sizes;
  for (const std::string& file : files) {
    bytes.push_back(file.data());
    sizes.push_back(file.size());
  }
  tx_tensor values = nullptr;
  tx_tensor pixels = nullptr;
  char* errors = nullptr;
  tx_status* status =
      tx_images_decode(static_cast<int64_t>(files.size()), bytes.data(), sizes.data(), &preset, threads,
                       want_values ? &values : nullptr, want_pixels ? &pixels : nullptr, &errors);
  Decoded result{taken(values), taken(pixels), {}, 0, {}};
  if (status != nullptr) {
    result.code = tx_status_code(status);
    result.failure = tx_status_message(status);
    tx_status_free(status);
  } else {
    result.errors = json::parse(errors);
    tx_string_free(errors);
  }
  return result;
}

// The message of the only file, which must fail alone, its rows zero.
std::string message_for(const std::string& file, const std::string& preset = "imagenet") {
  const Decoded decoded = decode({file}, preset_named(preset));
  EXPECT_EQ(decoded.code, 0) << decoded.failure;
  if (decoded.code != 0 || decoded.errors.at(0).is_null()) return "none";
  EXPECT_EQ(decoded.values.count_nonzero().item<int64_t>(), 0);
  EXPECT_EQ(decoded.pixels.count_nonzero().item<int64_t>(), 0);
  return decoded.errors.at(0);
}

std::string digest(const at::Tensor& tensor) { return sha256(tensor.const_data_ptr(), tensor.nbytes()); }

std::string big_endian(uint32_t value) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift);
  return bytes;
}

// PNG's checksum, bit by bit (RFC 2083, 3.4).
uint32_t crc(const std::string& bytes) {
  uint32_t sum = 0xffffffff;
  for (unsigned char byte : bytes) {
    sum ^= byte;
    for (int i = 0; i < 8; i++) sum = sum & 1 ? 0xedb88320 ^ (sum >> 1) : sum >> 1;
  }
  return ~sum;
}

std::string chunk(const std::string& kind, const std::string& data) {
  return big_endian(static_cast<uint32_t>(data.size())) + kind + data + big_endian(crc(kind + data));
}

TEST(Sha256, FipsExamples) {
  EXPECT_EQ(sha256("abc", 3), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256("", 0), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  const std::string two_blocks = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
  EXPECT_EQ(sha256(two_blocks.data(), two_blocks.size()),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

TEST(Images, EqualPillowAndTorchvision) {
  int compared = 0;
  for (const json& golden : goldens().at("images")) {
    const std::string name = golden.at("file");
    const std::string file = image(name);
    for (const auto& [preset, want] : golden.at("results").items()) {
      SCOPED_TRACE(name + " " + preset);
      const Decoded got = decode({file}, preset_named(preset));
      ASSERT_EQ(got.code, 0) << got.failure;
      ASSERT_TRUE(got.errors.at(0).is_null()) << got.errors;
      const int64_t height = want.at("height");
      const int64_t width = want.at("width");
      const int64_t channels = goldens().at("presets").at(preset).at("channels");
      ASSERT_EQ(got.pixels.sizes(), (std::vector<int64_t>{1, height, width, channels}));
      ASSERT_EQ(got.values.sizes(), (std::vector<int64_t>{1, channels, height, width}));
      EXPECT_EQ(digest(got.pixels), want.at("pixels"));
      EXPECT_EQ(digest(got.values), want.at("values"));
      compared++;
    }
  }
  EXPECT_GE(compared, 400);
}

TEST(Images, BatchEqualsImagesOneByOne) {
  std::vector<std::string> files;
  for (const json& golden : goldens().at("images")) files.push_back(image(golden.at("file")));
  const tx_preset preset = preset_named("imagenet-squash");
  const Decoded together = decode(files, preset, 5);
  ASSERT_EQ(together.pixels.size(0), static_cast<int64_t>(files.size()));
  for (size_t i = 0; i < files.size(); i++) {
    const Decoded alone = decode({files[i]}, preset, 1);
    const auto row = static_cast<int64_t>(i);
    EXPECT_TRUE(together.errors.at(i).is_null());
    EXPECT_TRUE(at::equal(together.pixels[row], alone.pixels[0])) << i;
    EXPECT_TRUE(at::equal(together.values[row], alone.values[0])) << i;
  }
  EXPECT_TRUE(at::equal(decode(files, preset, 1, true, false).values, together.values));
  EXPECT_TRUE(at::equal(decode(files, preset, 3, false, true).pixels, together.pixels));
}

TEST(Images, OneBadFileLeavesTheOthers) {
  const std::string good = image("rgb-420.jpg");
  const Decoded got = decode({good, good.substr(0, good.size() / 2), good}, preset_named("imagenet"));
  ASSERT_EQ(got.code, 0) << got.failure;
  EXPECT_TRUE(got.errors.at(0).is_null());
  EXPECT_EQ(got.errors.at(1), "JPEG: Premature end of JPEG file");
  EXPECT_TRUE(got.errors.at(2).is_null());
  EXPECT_TRUE(at::equal(got.pixels[0], got.pixels[2]));
  EXPECT_GT(got.pixels[0].count_nonzero().item<int64_t>(), 0);
  EXPECT_EQ(got.pixels[1].count_nonzero().item<int64_t>(), 0);
  EXPECT_EQ(got.values[1].count_nonzero().item<int64_t>(), 0);
}

TEST(Images, NoFilesAreAnEmptyBatch) {
  const Decoded got = decode({}, preset_named("imagenet"));
  ASSERT_EQ(got.code, 0) << got.failure;
  EXPECT_EQ(got.values.sizes(), (std::vector<int64_t>{0, 3, 224, 224}));
  EXPECT_EQ(got.errors, json::array());
}

// Cut anywhere, a file is an error and never a grey picture.
TEST(Images, TruncatedFilesAreErrors) {
  for (const char* name : {"rgb-tiny.jpg", "grey-progressive.jpg", "cmyk.jpg", "rgb-restart.jpg",
                           "palette-transparent.png", "grey-1-bit-interlaced.png", "rgba.png"}) {
    const std::string file = image(name);
    const size_t step = file.size() > 1000 ? 37 : 1;
    for (size_t size = 0; size < file.size(); size += step) {
      EXPECT_NE(message_for(file.substr(0, size), "bilinear-small"), "none") << name << " cut to " << size;
    }
    EXPECT_NE(message_for(file.substr(0, file.size() - 1)), "none") << name;
  }
}

// Whatever the bytes are, there is an image or a message.
TEST(Images, DamagedFilesDoNoHarm) {
  std::mt19937 random(7);
  for (const char* name : {"rgb-restart.jpg", "grey-progressive.jpg", "cmyk.jpg", "ycck.jpg",
                           "rgb-interlaced.png", "palette-4-bit-short.png", "rgb-16-bit.png"}) {
    const std::string file = image(name);
    std::vector<std::string> damaged;
    for (int i = 0; i < 60; i++) {
      std::string copy = file;
      for (int k = 0; k <= i % 4; k++) copy[random() % copy.size()] = static_cast<char>(random());
      damaged.push_back(copy);
    }
    const Decoded got = decode(damaged, preset_named("bicubic-small"));
    ASSERT_EQ(got.code, 0) << name << ": " << got.failure;
    EXPECT_EQ(got.errors.size(), damaged.size());
  }
}

TEST(Images, MessagesSayWhatIsWrong) {
  EXPECT_EQ(message_for(""), "the file is empty");
  EXPECT_EQ(message_for("GIF89a!!!"), "neither a JPEG nor a PNG");
  std::string damaged = image("rgb.png");
  damaged[damaged.size() - 13] ^= 1;  // the last byte before the closing chunk
  EXPECT_EQ(message_for(damaged), "PNG: IDAT: CRC error");
  std::string two = image("rgb-stored.jpg");
  const size_t frame = two.find("\xff\xc0");
  two[frame + 9] = 2;
  two[frame + 3] = 14;  // the length of a frame header with two components
  EXPECT_NE(message_for(two), "none");
}

// A header that promises too much is refused before anything is allocated.
TEST(Images, AbsurdSizesAreRefused) {
  const std::string signature("\x89PNG\r\n\x1a\n");
  const std::string tail("\x08\x02\0\0\0", 5);
  const auto png = [&](uint32_t width, uint32_t height) {
    return signature + chunk("IHDR", big_endian(width) + big_endian(height) + tail) + chunk("IDAT", "x\x9c") +
           chunk("IEND", "");
  };
  EXPECT_EQ(message_for(png(900000, 900000)), "PNG: 900000x900000 pixels: want at most 178956970");
  // libpng itself refuses sides of more than a million.
  EXPECT_EQ(message_for(png(2000000000, 2000000000)), "PNG: Invalid IHDR data");
  std::string jpeg = image("rgb-444.jpg");
  const size_t frame = jpeg.find("\xff\xc0");
  for (size_t i = 5; i < 9; i++) jpeg[frame + i] = static_cast<char>(0xf0);
  EXPECT_EQ(message_for(jpeg), "JPEG: 61680x61680 pixels: want at most 178956970");
  // A sliver whose longer side would become huge.
  tx_preset preset = preset_named("imagenet");
  preset.resize_height = 16000;
  const Decoded got = decode({image("rgb-strip.jpg")}, preset);
  ASSERT_EQ(got.code, 0) << got.failure;
  EXPECT_EQ(got.errors.at(0), "resizing to 16000x914285 pixels: want 1 to 178956970");
}

TEST(Images, SizesMustAgree) {
  const std::vector<std::string> files = {"no image", image("rgb.png"), image("rgba.png"), image("grey.png")};
  const Decoded got = decode(files, preset_named("none"));
  EXPECT_EQ(got.code, TX_INVALID);
  EXPECT_EQ(got.failure,
            "image 3 comes out as 41x30 pixels, those before it as 45x33: "
            "want a preset that crops to one size or squashes");
  const Decoded same = decode({files[0], files[1], files[2]}, preset_named("none"));
  ASSERT_EQ(same.code, 0) << same.failure;
  EXPECT_EQ(same.pixels.sizes(), (std::vector<int64_t>{3, 33, 45, 3}));
  EXPECT_FALSE(same.errors.at(0).is_null());
  EXPECT_TRUE(same.errors.at(1).is_null());
  EXPECT_FALSE(decode({"no image"}, preset_named("none")).errors.at(0).is_null());
}

TEST(Images, BadPresetsAreInvalid) {
  const tx_preset good = preset_named("imagenet");
  const auto message = [&](auto change) {
    tx_preset preset = good;
    change(preset);
    const Decoded got = decode({image("rgb.png")}, preset);
    EXPECT_EQ(got.code, TX_INVALID);
    return got.failure;
  };
  EXPECT_EQ(message([](tx_preset& p) { p.channels = 2; }), "channels 2: want 1 or 3");
  EXPECT_EQ(message([](tx_preset& p) { p.resize = 3; }),
            "resize 3: want TX_RESIZE_NONE, TX_RESIZE_SHORTER or TX_RESIZE_SQUASH");
  EXPECT_EQ(message([](tx_preset& p) { p.interpolation = -1; }),
            "interpolation -1: want TX_BILINEAR or TX_BICUBIC");
  EXPECT_EQ(message([](tx_preset& p) { p.resize_height = 0; }), "resizing to 0x0: want 1..16384");
  EXPECT_EQ(message([](tx_preset& p) { p.crop_width = -4; }), "crop 224x-4: want 1..16384 or 0x0 for none");
  EXPECT_EQ(message([](tx_preset& p) { p.crop_width = 0; }), "crop 224x0: want 1..16384 or 0x0 for none");
  EXPECT_EQ(message([](tx_preset& p) { p.std[1] = 0; }), "std[1] is 0: want a number above 0");
  EXPECT_EQ(message([](tx_preset& p) { p.mean[2] = NAN; }), "mean[2] is nan: want a finite number");
  EXPECT_EQ(decode({image("rgb.png")}, good, 0).failure, "threads 0: want at least 1");
}

}  // namespace
}  // namespace assay
