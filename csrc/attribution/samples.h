// Perturbed copies of rows through the net in full batches, whatever row they
// are of, and the parameters that perturbation methods share.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <vector>

#include "attribution/method.h"

namespace assay {

// What runs at once: input k is sample sample[k] of row row[k]. Samples count from 0.
struct Block {
  std::vector<int64_t> row, sample;

  int64_t count() const { return static_cast<int64_t>(row.size()); }
  // rows of a tensor [N,...] on any device: [count,...], copied.
  at::Tensor of(const at::Tensor& rows) const;
};

// Outputs of samples[r] perturbed copies of each row r, in double: [row][sample].
// make: a block's inputs, [count,...] like rows.x; the blocks have batch() samples but
// the last one, so no more inputs than that are alive at a time.
std::vector<std::vector<double>> run_samples(Context& context, const Explained& rows,
                                             const std::vector<int64_t>& samples, Output output,
                                             const std::function<at::Tensor(const Block&)>& make);

// Images as [N,H,W,C], tables as [N,1,F,1], contiguous; and back, without a copy.
at::Tensor pixels_last(const at::Tensor& rows);
at::Tensor channels_first(const at::Tensor& pixels, bool is_table);

// A number a pixel: [N,1,H,W], or [N,F] of tables, like rows.x. values: [N][H*W or F].
at::Tensor maps_of(const Explained& rows, const std::vector<std::vector<double>>& values);

// {"name": "output", ...}: what is explained; with this default.
nlohmann::json output_parameter(const char* by_default = "logit");
// {"name": "baseline", ...}: what stands for features that are not there.
// by_segment: "patch-mean" too, which needs features.
nlohmann::json baseline_parameter(bool by_segment);

}  // namespace assay
