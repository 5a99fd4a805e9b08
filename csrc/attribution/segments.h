// Features of rows: patches, superpixels or columns, and coalitions of them,
// the inputs in which some features are as in the row and the others as in a baseline.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <vector>

#include "attribution/method.h"
#include "attribution/samples.h"
#include "removal/scene.h"

namespace assay {

struct Segments {
  // One map for all rows, or one a row: the feature of each of H*W pixels (F columns).
  std::vector<std::vector<int32_t>> maps;
  std::vector<int32_t> counts;  // features of each map

  bool shared() const { return maps.size() == 1; }
  const std::vector<int32_t>& map(int64_t row) const { return maps[shared() ? 0 : static_cast<size_t>(row)]; }
  int64_t count(int64_t row) const { return counts[shared() ? 0 : static_cast<size_t>(row)]; }
};

// The context's feature map, or what parameters ask for; see segment_parameters.
Segments segments_of(Context& context, const Explained& rows, const Parameters& parameters);

// The declarations of edge, segments, superpixels and compactness, which
// segments_of reads, of baseline and output, followed by more.
nlohmann::json segment_parameters(const nlohmann::json& more = nlohmann::json::array());

// Coalitions of the features of rows.
class Coalitions {
 public:
  // Reads the parameters of segment_parameters.
  Coalitions(Context& context, const Explained& rows, const Parameters& parameters);

  int64_t rows() const { return rows_.size(); }
  uint64_t key(int64_t row) const { return rows_.keys[static_cast<size_t>(row)]; }
  // Features of a row.
  int64_t count(int64_t row) const { return segments_.count(row); }
  const Segments& segments() const { return segments_; }
  const at::Tensor& baseline() const { return baseline_; }  // like rows.x

  // absent: sets bit f%64 of words[f/64] for each feature f that is not in the
  // coalition; the words are 0 before. A pure function of (row, sample).
  using Absent = std::function<void(int64_t row, int64_t sample, uint64_t* words)>;
  // The output on samples[r] coalitions of each row r: [row][sample].
  std::vector<std::vector<double>> outputs(const std::vector<int64_t>& samples, const Absent& absent);

  // A number a feature, [row][feature], given to all of its pixels: [N,1,H,W] or [N,F].
  at::Tensor maps(const std::vector<std::vector<double>>& values) const;

 private:
  at::Tensor inputs(const Block& block, const Absent& absent) const;

  Context& context_;
  const Explained& rows_;
  Output output_;
  Segments segments_;
  at::Tensor baseline_;
  std::vector<Scene> scenes_;  // one a map
};

inline void put_bit(uint64_t* words, int64_t bit) { words[bit / 64] |= uint64_t{1} << (bit % 64); }

}  // namespace assay
