// What is lost when one feature goes: f(x) - f(x with the feature at baseline),
// the whole difference for each of its pixels.
#include "attribution/methods.h"
#include "attribution/segments.h"

namespace assay {

MethodEntry feature_ablation_method() {
  return {.id = "feature-ablation",
          .summary = "change of the output when one feature (patch, superpixel, column) is removed",
          .family = "perturbation",
          .needs = "forward",
          .paper = "Zeiler and Fergus 2014, section 4.2",
          .parameters = segment_parameters(),
          .attribute =
              [](const Method& method, Context& context, const Explained& rows) {
                Coalitions coalitions(context, rows, method.parameters());
                std::vector<int64_t> samples;  // the row itself, then without feature 0, 1, ...
                for (int64_t r = 0; r < rows.size(); ++r) samples.push_back(1 + coalitions.count(r));
                std::vector<std::vector<double>> values =
                    coalitions.outputs(samples, [](int64_t, int64_t sample, uint64_t* words) {
                      if (sample > 0) put_bit(words, sample - 1);
                    });
                for (std::vector<double>& row : values) {
                  const double whole = row[0];
                  for (size_t f = 1; f < row.size(); ++f) row[f - 1] = whole - row[f];
                  row.pop_back();
                }
                return coalitions.maps(values);
              },
          .one_channel = true};
}

}  // namespace assay
