// Damaged images: no crash, no hang, one clear line, and memory only for what
// the header may ask for. Under the sanitizers: `make asan`.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>

#include "api/error.h"
#include "image/image.h"
#include "test/mutate.h"

#if defined(__SANITIZE_ADDRESS__)
extern "C" int __sanitizer_install_malloc_and_free_hooks(void (*)(const volatile void*, size_t),
                                                         void (*)(const volatile void*));
#endif

namespace {

// Bytes that this thread has asked for while counting.
thread_local size_t allocated = 0;
thread_local bool counting = false;

void count(size_t size) {
  if (counting) allocated += size;
}

}  // namespace

#if defined(__SANITIZE_ADDRESS__)
namespace {
const int kHooks = __sanitizer_install_malloc_and_free_hooks(
    [](const volatile void*, size_t size) { count(size); }, [](const volatile void*) {});
}
#else
// The program's malloc is everybody's: libjpeg's and libpng's allocations are
// counted too. free stays glibc's, whose memory it is.
extern "C" {
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* malloc(size_t size) noexcept {
  count(size);
  return __libc_malloc(size);
}
void* calloc(size_t n, size_t size) noexcept {
  count(n * size);
  return __libc_calloc(n, size);
}
void* realloc(void* p, size_t size) noexcept {
  count(size);
  return __libc_realloc(p, size);
}
}
#endif

namespace assay {
namespace {

// What a decoder may ask for whatever the file: buffers of fixed size.
constexpr size_t kFixed = 4 << 20;

std::map<std::string, std::string> seeds(const std::string& ending) {
  std::map<std::string, std::string> all;
  for (const auto& entry : std::filesystem::directory_iterator(ASSAY_SOURCE_DIR "/testdata/images")) {
    if (entry.path().extension() != ending) continue;
    std::ifstream file(entry.path(), std::ios::binary);
    std::string bytes{std::istreambuf_iterator<char>(file), {}};
    if (bytes.size() < 8000) all[entry.path().filename()] = bytes;
  }
  return all;
}

int cases() {
  const char* text = std::getenv("ASSAY_MUTATIONS");
  return text != nullptr ? std::atoi(text) : 2000;
}

struct Answer {
  std::string error;  // "": decoded
  size_t bytes = 0;   // allocated
  int64_t height = 0, width = 0;
};

Answer answer(const std::string& file) {
  Answer result;
  allocated = 0;
  counting = true;
  try {
    const Image image = decode(reinterpret_cast<const uint8_t*>(file.data()), file.size(), 3);
    counting = false;
    result.height = image.height;
    result.width = image.width;
    EXPECT_EQ(image.pixels.size(), static_cast<size_t>(image.height * image.width * 3));
  } catch (const Error& e) {
    counting = false;
    result.error = e.what();
    EXPECT_EQ(e.code(), TX_INVALID) << e.what();
    EXPECT_FALSE(result.error.empty());
  }
  result.bytes = allocated;
  return result;
}

// Pixels of a file are at most kMaxPixels, and what its bytes can stand for
// (8256 a byte for a PNG, 1024 for a JPEG, csrc/image); a pixel takes at most 12
// bytes: 3 of the result, 3 or 4 as decoded, 6 of a progressive JPEG's coefficients.
size_t most(const std::string& file, size_t pixels_a_byte) {
  return 10 * file.size() + kFixed + 12 * std::min<size_t>(pixels_a_byte * file.size(), kMaxPixels);
}

void run(const std::string& ending, void (*mutator)(mutate::Generator&, std::string&), size_t pixels_a_byte) {
  const auto files = seeds(ending);
  ASSERT_GT(files.size(), 5U);
  for (const auto& [name, bytes] : files) ASSERT_EQ(answer(bytes).error, "") << name;
  int refused = 0;
  double slowest = 0;
  for (int n = 0; n < cases(); ++n) {
    mutate::Generator g(static_cast<uint64_t>(n));
    const auto& [name, seed] =
        *std::next(files.begin(), static_cast<long>(static_cast<size_t>(n) % files.size()));
    std::string file = seed;
    for (size_t steps = 1 + mutate::below(g, 4); steps > 0; --steps) {
      (mutate::below(g, 3) == 0 ? mutate::raw : mutator)(g, file);
    }
    SCOPED_TRACE(ending + " case " + std::to_string(n) + " of " + name);
    const auto began = std::chrono::steady_clock::now();
    const Answer got = answer(file);
    slowest =
        std::max(slowest, std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count());
    EXPECT_LE(got.bytes, most(file, pixels_a_byte));
    refused += got.error.empty() ? 0 : 1;
    EXPECT_LE(got.error.size(), 250U) << got.error;
    for (const char c : got.error) EXPECT_TRUE(c >= ' ' && c != 0x7f) << got.error;
    if (testing::Test::HasFailure()) break;
  }
  EXPECT_GT(refused, cases() / 4) << "the damage does not reach the decoder";
  // A hang, not a measure of speed: cases take milliseconds.
  EXPECT_LT(slowest, 60.0);

  std::printf("%s: %d cases, %d refused, the slowest %.3f s\n", ending.c_str(), cases(), refused, slowest);
}

TEST(Fuzz, DamagedJpeg) { run(".jpg", mutate::jpeg, 1024); }
TEST(Fuzz, DamagedPng) { run(".png", mutate::png, 8256); }

// The header's word alone takes no memory: neither sizes beyond the limit nor
// those that the file is too short for.
TEST(Fuzz, SizesAreCheckedBeforeMemoryIsTaken) {
  std::string jpeg = seeds(".jpg").at("rgb-tiny.jpg");
  const size_t frame = jpeg.find("\xff\xc0");
  ASSERT_NE(frame, std::string::npos);
  mutate::set_big_endian(jpeg, frame + 5, 2, 60000);
  mutate::set_big_endian(jpeg, frame + 7, 2, 60000);
  EXPECT_EQ(answer(jpeg).error, "JPEG: 60000x60000 pixels: want at most 178956970");
  EXPECT_LT(answer(jpeg).bytes, 1U << 20);
  mutate::set_big_endian(jpeg, frame + 7, 2, 2000);
  EXPECT_EQ(answer(jpeg).error,
            "JPEG: 2000x60000 pixels in " + std::to_string(jpeg.size()) + " bytes: cut off or damaged");
  EXPECT_LT(answer(jpeg).bytes, 1U << 20);

  for (const auto& [height, width] : {std::pair{200000, 1000}, {13000, 13000}, {1, 1000000}}) {
    std::string header(13, '\0');
    mutate::set_big_endian(header, 0, 4, static_cast<uint64_t>(width));
    mutate::set_big_endian(header, 4, 4, static_cast<uint64_t>(height));
    header[8] = 16;
    header[9] = 6;
    const std::string png = "\x89PNG\r\n\x1a\n" + mutate::chunk("IHDR", header) + mutate::chunk("IDAT", "x");
    const Answer got = answer(png);
    EXPECT_NE(got.error.find(std::to_string(width) + "x" + std::to_string(height)), std::string::npos)
        << got.error;
    EXPECT_LT(got.bytes, 1U << 20) << got.error;
  }
}

// Chunks that are not needed are stepped over, whatever length they claim.
TEST(Fuzz, ChunksAreNotUnpacked) {
  std::string png = seeds(".png").at("rgb.png");
  const Answer plain = answer(png);
  for (const char* name : {"zTXt", "tEXt", "iTXt", "iCCP", "eXIf", "sPLT"}) {
    std::string longer = png;
    longer.insert(33, mutate::chunk(name, std::string(3 << 20, 'x')));
    const Answer got = answer(longer);
    EXPECT_EQ(got.error, "") << name;
    EXPECT_EQ(got.width, plain.width);
    EXPECT_LT(got.bytes, plain.bytes + (1 << 20)) << name;
  }
}

// Scans that say nothing new each cost a walk over the image.
TEST(Fuzz, ScansAreCounted) {
  const std::string jpeg = seeds(".jpg").at("grey-progressive.jpg");
  const size_t first = jpeg.find("\xff\xda"), second = jpeg.find("\xff\xc4", first);
  ASSERT_NE(second, std::string::npos);
  std::string scan = jpeg.substr(first, second - first);
  ASSERT_EQ(scan[9], 1);  // Ah, Al: all but the lowest bit of the DC values
  scan[9] = 0;            // all bits: may come again and again
  const auto with = [&](int scans) {
    std::string file = jpeg.substr(0, first);
    for (int i = 0; i < scans; ++i) file += scan;
    return file + "\xff\xd9";
  };
  EXPECT_EQ(answer(with(100)).error, "");
  EXPECT_EQ(answer(with(101)).error, "JPEG: more than 100 scans");
}

}  // namespace
}  // namespace assay
