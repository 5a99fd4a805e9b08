// Damages files for tests, as internal/mutate does on Go's side: seeded, and
// aware of the formats, so that damage gets past checksums and lengths.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace assay::mutate {

using Generator = std::mt19937_64;

inline size_t below(Generator& g, size_t n) { return n == 0 ? 0 : static_cast<size_t>(g() % n); }

// A number at an edge, or any.
inline uint64_t number(Generator& g) {
  static constexpr std::array<uint64_t, 24> kEdges = {
      0,   1,   2,   3,    4,      7,      8,      9,      15,      16,       17,         127,
      128, 255, 256, 4096, 0x7fff, 0x8000, 0xfffe, 0xffff, 0x10000, 0xffffff, 0x7fffffff, 0xffffffff};
  return below(g, 3) == 0 ? g() : kEdges[below(g, kEdges.size())];
}

inline void set_big_endian(std::string& s, size_t at, size_t size, uint64_t value) {
  for (size_t i = 0; i < size && at + i < s.size(); ++i) {
    s[at + i] = static_cast<char>(value >> (8 * (size - 1 - i)));
  }
}

// Damages any bytes: bits, bytes, numbers, order, end.
inline void raw(Generator& g, std::string& s) {
  if (s.empty()) return;
  const size_t at = below(g, s.size());
  const size_t length = 1 + below(g, std::min<size_t>(s.size() - at, below(g, 4) == 0 ? s.size() : 64));
  switch (below(g, 7)) {
    case 0:
      for (size_t n = 1 + below(g, 8); n > 0; --n) {
        const size_t where = below(g, s.size());
        s[where] = static_cast<char>(s[where] ^ (1 << below(g, 8)));
      }
      break;
    case 1:
      for (size_t n = 1 + below(g, 8); n > 0; --n) s[below(g, s.size())] = static_cast<char>(number(g));
      break;
    case 2:
      set_big_endian(s, at, size_t{1} << below(g, 3), number(g));
      break;
    case 3:
      s.resize(at);
      break;
    case 4:
      s.insert(at, s.substr(at, length));
      break;
    case 5:
      s.erase(at, length);
      break;
    default:
      s.replace(below(g, s.size()), length, s.substr(at, length));
  }
}

// A stretch of a file: a JPEG's marker segment with what follows it, a PNG's chunk.
struct Part {
  size_t begin, size;
};

// Puts parts twice, elsewhere, or leaves them out; false if there are none.
inline bool shuffle(Generator& g, std::string& s, const std::vector<Part>& parts) {
  if (parts.empty()) return false;
  const Part from = parts[below(g, parts.size())], to = parts[below(g, parts.size())];
  const std::string content = s.substr(from.begin, from.size);
  switch (below(g, 3)) {
    case 0:
      s.erase(from.begin, from.size);
      break;
    case 1:
      s.insert(to.begin, content);
      break;
    default:
      for (size_t n = below(g, 200); n > 0 && s.size() < 200000; --n) s.insert(to.begin, content);
  }
  return true;
}

// Damages a JPEG's segments: lengths, sizes and sampling of the frame, tables,
// scans, restart intervals.
inline void jpeg(Generator& g, std::string& s) {
  std::vector<Part> segments;
  const auto byte = [&s](size_t i) { return static_cast<uint8_t>(s[i]); };
  for (size_t at = 2; at + 4 <= s.size();) {
    if (byte(at) != 0xff || byte(at + 1) == 0 || byte(at + 1) == 0xff) {
      ++at;  // entropy-coded data
      continue;
    }
    if (byte(at + 1) >= 0xd0 && byte(at + 1) <= 0xd9) {
      at += 2;
      continue;
    }
    const size_t size = 2 + (size_t{byte(at + 2)} << 8) + byte(at + 3);
    if (at + size > s.size()) break;
    segments.push_back({at, size});
    at += size;
  }
  if (segments.empty()) return raw(g, s);
  const Part part = segments[below(g, segments.size())];
  const uint8_t marker = byte(part.begin + 1);
  const bool frame = marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xcc;
  switch (below(g, 6)) {
    case 0:
      shuffle(g, s, segments);
      return;
    case 1:
      set_big_endian(s, part.begin + 2, 2, number(g));
      return;
    case 2:
      s[part.begin + 1] = static_cast<char>(0xc0 + below(g, 0x40));
      return;
    case 3:
      if (frame && part.size > 11) {
        const size_t field = below(g, 3);
        set_big_endian(s, part.begin + (field == 0 ? 5 : 7), field == 2 ? 1 : 2, number(g));
        return;
      }
      break;
    case 4:  // a restart interval, or scans without end
      if (below(g, 2) == 0) {
        std::string restart("\xff\xdd\x00\x04\x00\x00", 6);
        set_big_endian(restart, 4, 2, number(g));
        s.insert(part.begin, restart);
        return;
      }
      if (marker == 0xda) {
        const std::string scan = s.substr(part.begin, std::min<size_t>(part.size + 8, s.size() - part.begin));
        for (size_t n = below(g, 400); n > 0; --n) s.insert(part.begin, scan);
        return;
      }
      break;
    default:
      break;
  }
  std::string content = s.substr(part.begin + 4, part.size - 4);
  if (content.empty()) return raw(g, s);
  const size_t before = content.size();
  raw(g, content);
  content.resize(before);  // the length stays right
  s.replace(part.begin + 4, before, content);
}

inline uint32_t crc32(const std::string& s, size_t begin, size_t size) {
  uint32_t crc = 0xffffffff;
  for (size_t i = begin; i < begin + size; ++i) {
    crc ^= static_cast<uint8_t>(s[i]);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0xedb88320U : 0U);
  }
  return ~crc;
}

// A chunk with its length and checksum.
inline std::string chunk(const std::string& name, const std::string& content) {
  std::string s(4, '\0');
  set_big_endian(s, 0, 4, content.size());
  s += name + content;
  s += std::string(4, '\0');
  set_big_endian(s, s.size() - 4, 4, crc32(s, 4, s.size() - 8));
  return s;
}

// Damages a PNG's chunks; mostly the checksum is made right again.
inline void png(Generator& g, std::string& s) {
  std::vector<Part> chunks;
  for (size_t at = 8; at + 12 <= s.size();) {
    size_t size = 12;
    for (int i = 0; i < 4; ++i) size += size_t{static_cast<uint8_t>(s[at + i])} << (8 * (3 - i));
    if (at + size > s.size()) break;
    chunks.push_back({at, size});
    at += size;
  }
  if (chunks.empty()) return raw(g, s);
  const Part part = chunks[below(g, chunks.size())];
  switch (below(g, 5)) {
    case 0:
      shuffle(g, s, chunks);
      return;
    case 1:
      set_big_endian(s, part.begin, 4, number(g));
      return;
    case 2: {
      static const std::vector<std::string> kNames = {"IHDR", "PLTE", "IDAT", "IEND", "tRNS", "gAMA",
                                                      "iCCP", "tEXt", "zTXt", "iTXt", "sPLT", "eXIf",
                                                      "hIST", "acTL", "fdAT", "XXXX"};
      std::string content(below(g, 300), '\0');
      for (char& c : content) c = static_cast<char>(below(g, 3) == 0 ? 0 : g());
      s.insert(part.begin, chunk(kNames[below(g, kNames.size())], content));
      return;
    }
    default:
      break;
  }
  const std::string name = s.substr(part.begin + 4, 4);
  std::string content = s.substr(part.begin + 8, part.size - 12);
  if (name == "IHDR" && below(g, 3) != 0) {
    const size_t field = below(g, 7);
    set_big_endian(content, field < 2 ? 4 * field : 6 + field, field < 2 ? 4 : 1, number(g));
  } else {
    raw(g, content);
  }
  if (below(g, 8) != 0) {
    s.replace(part.begin, part.size, chunk(name, content));
  } else {
    s.replace(part.begin + 8, part.size - 12, content);
  }
}

}  // namespace assay::mutate
