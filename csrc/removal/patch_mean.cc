// The mean of the deleted patch itself.
#include "api/error.h"
#include "removal/imputer.h"

namespace assay {

ImputerEntry patch_mean_imputer() {
  return {
      "patch-mean", "the mean of each patch: its texture goes, its brightness stays",
      "TRACE, section 3 (and its repository)",
      nlohmann::json::array({{{"name", "perChannel"},
                              {"type", "bool"},
                              {"default", false},
                              {"summary", "one mean a channel instead of one a patch"}}}),

      [](const ImputerInput& input, const Parameters& parameters) {
        if (input.feature_map == nullptr || input.features < 1) {
          throw invalid("imputer patch-mean needs a map of patches");
        }
        const at::Tensor& images = input.images;
        const int64_t n = images.size(0),
                      pixels = images[0].numel() / (input.is_table() ? 1 : images.size(1));
        const int64_t channels = images[0].numel() / pixels;
        at::Tensor map = at::empty({pixels}, at::kLong);
        for (int64_t i = 0; i < pixels; ++i) {
          const int32_t feature = input.feature_map[i];
          if (feature < 0 || feature >= input.features) {
            throw invalid("feature_map[", i, "] is ", feature, ": want 0..", input.features - 1);
          }
          map.data_ptr<int64_t>()[i] = feature;
        }
        map = map.to(images.device());
        const at::Tensor flat = images.reshape({n, channels, pixels}).to(at::kDouble);
        const auto sums = at::zeros({n, channels, input.features}, flat.options()).index_add_(2, map, flat);
        const auto counts = at::zeros({input.features}, flat.options())
                                .index_add_(0, map, at::ones({pixels}, flat.options()));
        at::Tensor means = sums / counts;
        if (!parameters.flag("perChannel")) means = means.mean(1, /*keepdim=*/true).expand_as(sums);
        return means.index_select(2, map).reshape(images.sizes());
      }};
}

}  // namespace assay
