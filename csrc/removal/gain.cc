// GAN imputation (ROAD, appendix B): a generator fills in what is removed, from what is left and from
// noise. It was trained so that nobody can tell which pixels are its own.
#include "api/error.h"
#include "removal/filled.h"
#include "removal/generator.h"
#include "removal/imputer.h"
#include "removal/philox.h"

namespace assay {
namespace {

class Gain : public Imputer {
 public:
  explicit Gain(const ImputerInput& input) : images_(input.images), generator_(input.generator) {
    if (input.is_table()) throw unsupported("imputer gain: a table is no image");
    if (generator_ == nullptr) throw invalid("imputer gain: no generator was given");
    if (input.keys == nullptr) throw invalid("imputer gain: keys is NULL");
    if (images_.sizes().slice(1) != at::IntArrayRef(generator_->shape())) {
      throw invalid("imputer gain: the generator is for images ", at::IntArrayRef(generator_->shape()),
                    ", these are ", images_.sizes().slice(1));
    }
    mean_ = per_channel(input, input.mean, "mean");
    std_ = per_channel(input, input.std, "std");
    const auto pixels = static_cast<uint64_t>(images_.size(2) * images_.size(3));
    noise_ = filled({images_.size(0), images_.size(2), images_.size(3)},
                    [&](uint64_t i) { return philox_normal(input.keys[i / pixels], i % pixels, 0); })
                 .to(images_.scalar_type())
                 .to(images_.device());
  }

  at::Tensor fill(const std::vector<int64_t>& which, const at::Tensor& removed, int32_t*) override {
    const at::Tensor rows = at::tensor(which, at::kLong).to(images_.device());
    const at::Tensor own = images_.index_select(0, rows);
    const at::Tensor made = generator_->impute(own * std_ + mean_, removed, noise_.index_select(0, rows));
    return at::where(removed.unsqueeze(1), (made - mean_) / std_, own);
  }

 private:
  at::Tensor images_, mean_, std_, noise_;
  std::shared_ptr<const Generator> generator_;
};

}  // namespace

ImputerEntry gain_imputer() {
  return {
      .id = "gain",
      .summary =
          "what a trained generator makes of the rest (GAN): assay train --imputer gain, then --generator",
      .paper = "ROAD, appendix B; Yoon et al. 2018",
      .parameters = nlohmann::json::array(),
      .reference = nullptr,
      .make = [](const ImputerInput& input, const Parameters&) -> std::unique_ptr<Imputer> {
        return std::make_unique<Gain>(input);
      },
      .of_generator = true};
}

}  // namespace assay
