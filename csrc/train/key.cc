#include "train/key.h"

#include <string>

#include "removal/sha256.h"

namespace assay {
namespace {

void append(std::string& text, uint64_t number) {
  for (int shift = 0; shift < 64; shift += 8) text += static_cast<char>(number >> shift & 0xff);
}

uint32_t reversed(uint32_t word) {
  return word >> 24 | (word >> 8 & 0xff00) | (word << 8 & 0xff0000) | word << 24;
}

}  // namespace

uint64_t random_key(uint64_t seed, std::string_view purpose, std::string_view id) {
  std::string text;
  append(text, seed);
  append(text, purpose.size());
  text += purpose;
  text += id;
  const auto words = sha256_words(text.data(), text.size());
  return reversed(words[0]) | uint64_t{reversed(words[1])} << 32;
}

}  // namespace assay
