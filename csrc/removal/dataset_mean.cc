// The mean of all images, one value a channel (of tables: a column).
#include "api/error.h"
#include "removal/imputer.h"

namespace assay {

at::Tensor dataset_mean(const ImputerInput& input, const std::string& imputer) {
  const int64_t channels = input.images.size(1);
  if (input.dataset_mean.empty()) throw invalid("imputer ", imputer, ": the mean of the data was not given");
  if (static_cast<int64_t>(input.dataset_mean.size()) != channels) {
    throw invalid("dataset mean: ", input.dataset_mean.size(), " values for ", channels,
                  input.is_table() ? " columns" : " channels");
  }
  const at::Tensor mean = at::tensor(input.dataset_mean, at::kDouble).to(input.images.options());
  return input.is_table() ? mean.view({1, channels}) : mean.view({1, channels, 1, 1});
}

ImputerEntry dataset_mean_imputer() {
  return {.id = "dataset-mean",
          .summary = "the mean colour of the data, one value a channel or column",
          .paper = "ROAD, section 5 (\"global mean\")",
          .parameters = nlohmann::json::array(),
          .reference = [](const ImputerInput& input,
                          const Parameters&) { return dataset_mean(input, "dataset-mean"); },
          .of_data = true};
}

}  // namespace assay
