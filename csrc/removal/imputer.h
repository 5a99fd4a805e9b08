// What removed features become. An imputer that does not depend on the mask is
// a reference, computed once from the original image. What the others draw is drawn
// once an image: so in every case an input is a function of the image and the set of
// removed features alone.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "api/parameters.h"

namespace assay {

class Generator;  // removal/generator.h

struct ImputerInput {
  at::Tensor images;                           // [N,C,H,W] or [N,F], normalised
  std::vector<double> mean, std;               // per channel, of the preset
  const uint64_t* keys = nullptr;              // N, may be NULL
  int32_t features = 0;                        // of feature_map
  const int32_t* feature_map = nullptr;        // H*W or F, may be NULL
  at::Tensor other;                            // [C,H,W], [N,C,H,W] or undefined
  std::vector<double> dataset_mean;            // per channel or column, normalised; empty: not known
  std::shared_ptr<const Generator> generator;  // of "gain"; may be NULL

  bool is_table() const { return images.dim() == 2; }
};

// Fills removed features of the images that it was made for.
class Imputer {
 public:
  virtual ~Imputer() = default;
  // Copies of images which[r] (R rows, any of the N, any number of times) without the
  // features that removed [R,H,W] or [R,F] (bool, on the images' device) says; what is not
  // removed keeps its bits. A row depends on its image and mask alone. iterations, R
  // entries, gets those of a solver where there is one; it may be NULL.
  virtual at::Tensor fill(const std::vector<int64_t>& which, const at::Tensor& removed,
                          int32_t* iterations) = 0;
};

struct ImputerEntry {
  std::string id;
  std::string summary;
  std::string paper;
  // Catalogue form: [{name, type, default, minimum?, maximum?, choices?, summary}].
  nlohmann::json parameters;
  // What features become whatever the mask, [N,...] or what expands to it; NULL for
  // imputers that depend on the mask, which have `make`.
  at::Tensor (*reference)(const ImputerInput& input, const Parameters& parameters);
  std::unique_ptr<Imputer> (*make)(const ImputerInput& input, const Parameters& parameters) = nullptr;
  bool of_data = false;       // wants the mean of the data
  bool of_generator = false;  // wants a trained generator

  bool mask_independent() const { return reference != nullptr; }
};

// Every imputer, in the order of the catalogue.
const std::vector<ImputerEntry>& imputer_registry();

// The references of spec {"id": ..., parameters}; throws not-found or invalid,
// naming what there is, or unsupported for an imputer that depends on the mask.
at::Tensor make_reference(const nlohmann::json& spec, const ImputerInput& input);

// Whether the imputer of a spec depends on the mask.
bool depends_on_mask(const nlohmann::json& spec);

// Any imputer. It keeps what it needs of the input.
std::unique_ptr<Imputer> make_imputer(const nlohmann::json& spec, const ImputerInput& input);

// One entry each; see the file of the same name.
ImputerEntry zero_imputer();
ImputerEntry mean_imputer();
ImputerEntry channel_mean_imputer();
ImputerEntry dataset_mean_imputer();
ImputerEntry patch_mean_imputer();
ImputerEntry blur_imputer();
ImputerEntry uniform_imputer();
ImputerEntry constant_imputer();
ImputerEntry image_imputer();
ImputerEntry noisy_linear_imputer();
ImputerEntry gain_imputer();

// mean and std as [1,C,1,1] tensors like the images; throws invalid when the
// input has none for each channel.
at::Tensor per_channel(const ImputerInput& input, const std::vector<double>& values, const char* name);

// The mean of the data as [1,C,1,1] or [1,F]; throws invalid where it is not known.
at::Tensor dataset_mean(const ImputerInput& input, const std::string& imputer);

}  // namespace assay
