#include "attribution/samples.h"

#include <algorithm>
#include <numeric>

#include "api/error.h"

namespace assay {

at::Tensor Block::of(const at::Tensor& rows) const {
  return rows.index_select(0, at::tensor(row, at::kLong).to(rows.device()));
}

std::vector<std::vector<double>> run_samples(Context& context, const Explained& rows,
                                             const std::vector<int64_t>& samples, Output output,
                                             const std::function<at::Tensor(const Block&)>& make) {
  const int64_t total = std::accumulate(samples.begin(), samples.end(), int64_t{0});
  // Kept on the device until all have run: a GPU need not wait between blocks.
  std::vector<at::Tensor> outputs;
  int64_t row = 0, sample = 0;
  in_blocks(total, context.run.batch(), [&](int64_t, int64_t count) {
    Block block;
    std::vector<int64_t> targets;
    while (block.count() < count) {
      if (sample == samples[static_cast<size_t>(row)]) {
        ++row;
        sample = 0;
        continue;
      }
      block.row.push_back(row);
      block.sample.push_back(sample++);
      targets.push_back(rows.targets[static_cast<size_t>(row)]);
    }
    outputs.push_back(context.run.outputs(make(block), targets, output));
  });
  const at::Tensor all = at::cat(outputs).to(at::kCPU, at::kDouble).contiguous();
  const double* next = all.const_data_ptr<double>();
  std::vector<std::vector<double>> out;
  for (int64_t count : samples) {
    out.emplace_back(next, next + count);
    next += count;
  }
  return out;
}

at::Tensor pixels_last(const at::Tensor& rows) {
  if (rows.dim() == 2) return rows.contiguous().view({rows.size(0), 1, rows.size(1), 1});
  return rows.permute({0, 2, 3, 1}).contiguous();
}

at::Tensor channels_first(const at::Tensor& pixels, bool is_table) {
  return is_table ? pixels.flatten(1) : pixels.permute({0, 3, 1, 2});
}

at::Tensor maps_of(const Explained& rows, const std::vector<std::vector<double>>& values) {
  std::vector<int64_t> shape = rows.x.sizes().vec();
  if (!rows.is_table()) shape[1] = 1;
  at::Tensor out = at::empty(shape, at::kDouble);
  double* next = out.mutable_data_ptr<double>();
  for (const std::vector<double>& row : values) next = std::copy(row.begin(), row.end(), next);
  return out.to(rows.x.options());
}

nlohmann::json output_parameter(const char* by_default) {
  return {{"name", "output"},
          {"type", "string"},
          {"default", by_default},
          {"choices", {"logit", "probability", "log-probability"}},
          {"summary", "the number of the target class that is explained"}};
}

nlohmann::json baseline_parameter(bool by_segment) {
  nlohmann::json choices = {"zero", "mean", "channel-mean", "blur", "uniform", "constant"};
  if (by_segment) choices.push_back("patch-mean");
  return {{"name", "baseline"},
          {"type", "string"},
          {"default", "zero"},
          {"choices", choices},
          {"summary", "the imputer that says what absent features look like"}};
}

}  // namespace assay
