// What deleted features become. An imputer that does not depend on the mask is
// a reference: computed once from the original image, so that a state's score
// is a function of the set of deleted features alone.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "api/parameters.h"

namespace assay {

struct ImputerInput {
  at::Tensor images;                     // [N,C,H,W] or [N,F], normalised
  std::vector<double> mean, std;         // per channel, of the preset
  const uint64_t* keys = nullptr;        // N, may be NULL
  int32_t features = 0;                  // of feature_map
  const int32_t* feature_map = nullptr;  // H*W or F, may be NULL
  at::Tensor other;                      // [C,H,W], [N,C,H,W] or undefined

  bool is_table() const { return images.dim() == 2; }
};

struct ImputerEntry {
  std::string id;
  std::string summary;
  std::string paper;
  // Catalogue form: [{name, type, default, minimum?, maximum?, choices?, summary}].
  nlohmann::json parameters;
  // True: the same for every mask (a reference); all of these are, so far.
  bool mask_independent;
  at::Tensor (*reference)(const ImputerInput& input, const Parameters& parameters);
};

// Every imputer, in the order of the catalogue.
const std::vector<ImputerEntry>& imputer_registry();

// The references of spec {"id": ..., parameters}; throws not-found or invalid,
// naming what there is.
at::Tensor make_reference(const nlohmann::json& spec, const ImputerInput& input);

// One entry each; see the file of the same name.
ImputerEntry zero_imputer();
ImputerEntry mean_imputer();
ImputerEntry channel_mean_imputer();
ImputerEntry patch_mean_imputer();
ImputerEntry blur_imputer();
ImputerEntry uniform_imputer();
ImputerEntry constant_imputer();
ImputerEntry image_imputer();

// mean and std as [1,C,1,1] tensors like the images; throws invalid when the
// input has none for each channel.
at::Tensor per_channel(const ImputerInput& input, const std::vector<double>& values, const char* name);

}  // namespace assay
