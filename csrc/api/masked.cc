// Scenes, references and the masked forward.
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "api/api.h"
#include "api/generator.h"
#include "api/net.h"
#include "graph/json.h"
#include "removal/imputer.h"
#include "removal/scene.h"

struct tx_scene {
  assay::Scene scene;
};

namespace assay {
namespace {

// The tracked class's output and its softmax, for `count` rows of logits.
// On the host row by row in one order of summation; on a device one small
// batch of operations, so that only two numbers a row come back.
void scores(const at::Tensor& logits, int64_t count, const int32_t* target, double* logit,
            double* probability) {
  const int64_t classes = logits.size(1);
  for (int64_t r = 0; r < count; ++r) {
    if (target[r] < 0 || target[r] >= classes) {
      throw invalid("target[", r, "] is ", target[r], ": the net has classes 0..", classes - 1);
    }
  }
  if (!logits.is_cpu()) {
    at::Tensor index = at::empty({count, 1}, at::kLong);
    for (int64_t r = 0; r < count; ++r) index.data_ptr<int64_t>()[r] = target[r];
    const at::Tensor wide = logits.narrow(0, 0, count).to(at::kDouble);
    const at::Tensor tracked = wide.gather(1, index.to(logits.device()));
    const at::Tensor both = at::cat({tracked, at::exp(tracked - at::logsumexp(wide, 1, /*keepdim=*/true))}, 1)
                                .to(at::kCPU)
                                .contiguous();
    const double* values = both.const_data_ptr<double>();
    for (int64_t r = 0; r < count; ++r) {
      logit[r] = values[2 * r];
      probability[r] = values[2 * r + 1];
    }
    return;
  }
  const at::Tensor wide = logits.narrow(0, 0, count).to(at::kDouble).contiguous();
  const double* values = wide.const_data_ptr<double>();
  for (int64_t r = 0; r < count; ++r) {
    const double* row = values + r * classes;
    const double largest = *std::max_element(row, row + classes);
    double sum = 0;
    for (int64_t c = 0; c < classes; ++c) sum += std::exp(row[c] - largest);
    logit[r] = row[target[r]];
    probability[r] = std::exp(row[target[r]] - largest) / sum;
  }
}

}  // namespace
}  // namespace assay

using namespace assay;

extern "C" {

tx_status* tx_scene_new(tx_device device, int32_t slots, int32_t channels, int32_t height, int32_t width,
                        int32_t features, const int32_t* feature_map, tx_scene** scene) {
  return guard("scene-new", [&] {
    required(feature_map, "feature_map");
    required(scene, "scene");
    if (slots < 1) throw invalid("slots ", slots, ": want at least 1");
    if (channels < 0 || height < 1 || width < 1 || (channels == 0 && height != 1)) {
      throw invalid("a scene of ", channels, "x", height, "x", width,
                    ": want sizes >= 1, or 0x1xF for tables");
    }
    if (features < 1) throw invalid("features ", features, ": want at least 1");
    at::NoGradGuard no_grad;
    *scene = new tx_scene{Scene(device_of(device), slots, channels, height, width, features, feature_map)};
  });
}

tx_status* tx_scene_put(tx_scene* scene, int32_t slot, tx_tensor image, tx_tensor reference) {
  return guard("scene-put", [&] {
    at::NoGradGuard no_grad;
    required(scene, "scene")->scene.put(slot, tensor_of(image, "image"), tensor_of(reference, "reference"));
  });
}

tx_status* tx_scene_put_imputed(tx_scene* scene, int32_t slot, tx_tensor image, const char* spec,
                                const tx_generator* generator, const float* mean, const float* std,
                                uint64_t key, const double* dataset_mean) {
  return guard("scene-put-imputed", [&] {
    at::NoGradGuard no_grad;
    Scene& to = required(scene, "scene")->scene;
    const at::Tensor own = tensor_of(image, "image").to(to.device()).unsqueeze(0).contiguous().clone();
    ImputerInput input;
    input.images = own;
    const size_t channels = own.dim() == 4 ? static_cast<size_t>(own.size(1)) : 0;
    if (mean != nullptr) input.mean.assign(mean, mean + channels);
    if (std != nullptr) input.std.assign(std, std + channels);
    if (dataset_mean != nullptr) input.dataset_mean.assign(dataset_mean, dataset_mean + own.size(1));
    input.keys = &key;
    if (generator != nullptr) input.generator = generator->generator;
    to.put(slot, own.squeeze(0), make_imputer(parse_json(required(spec, "spec"), "spec"), input));
  });
}

tx_status* tx_masked_forward(tx_net* net, const tx_scene* scene, int64_t n, const int32_t* slot,
                             const uint64_t* sets, const int32_t* target, int64_t batch, double* logit,
                             double* probability) {
  return guard("masked-forward", [&] {
    required(net, "net");
    const Scene& from = required(scene, "scene")->scene;
    if (n < 0) throw invalid("n is ", n, ": want at least 0");
    if (batch < 1) throw invalid("batch ", batch, ": want at least 1");
    if (n == 0) return;
    for (const auto& [name, pointer] : {std::pair<const char*, const void*>{"slot", slot},
                                        {"sets", sets},
                                        {"target", target},
                                        {"logit", logit},
                                        {"probability", probability}}) {
      required(pointer, name);
    }
    at::NoGradGuard no_grad;
    for (int64_t begin = 0; begin < n; begin += batch) {
      const int64_t count = std::min(batch, n - begin);
      const at::Tensor x = from.expand(count, batch, slot + begin, sets + begin * from.words());
      scores(net->net->forward(x), count, target + begin, logit + begin, probability + begin);
    }
  });
}

void tx_scene_free(tx_scene* scene) { delete scene; }

tx_status* tx_reference(const char* spec, tx_tensor images, const float* mean, const float* std,
                        const uint64_t* keys, int32_t features, const int32_t* feature_map, tx_tensor other,
                        const double* dataset_mean, tx_tensor* references) {
  return guard("reference", [&] {
    required(references, "references");
    at::NoGradGuard no_grad;
    ImputerInput input;
    input.images = tensor_of(images, "images");
    const size_t channels = input.images.dim() == 4 ? static_cast<size_t>(input.images.size(1)) : 0;
    if (mean != nullptr) input.mean.assign(mean, mean + channels);
    if (std != nullptr) input.std.assign(std, std + channels);
    input.keys = keys;
    input.features = features;
    input.feature_map = feature_map;
    if (other != nullptr) input.other = tensor_of(other, "other");
    if (dataset_mean != nullptr) {
      input.dataset_mean.assign(dataset_mean, dataset_mean + input.images.size(1));
    }
    const auto parsed = nlohmann::json::parse(required(spec, "spec"), nullptr, /*allow_exceptions=*/false);
    *references = handle_of(make_reference(parsed, input));
  });
}

}  // extern "C"
