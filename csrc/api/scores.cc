// What scores of maps ask beside masked forwards and more maps.
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "api/api.h"
#include "api/net.h"
#include "attribution/evaluator.h"
#include "attribution/randomised.h"
#include "removal/noise.h"

using namespace assay;
using nlohmann::json;

extern "C" {

tx_status* tx_images_noisy(tx_tensor images, int64_t n, const int32_t* row, const uint64_t* key,
                           const uint64_t* sample, double radius, tx_tensor* rows) {
  return guard("images-noisy", [&] {
    required(rows, "rows");
    if (n < 1) throw invalid("n is ", n, ": want at least 1");
    required(row, "row");
    required(key, "key");
    required(sample, "sample");
    at::NoGradGuard no_grad;
    std::vector<NoisyRow> list(static_cast<size_t>(n));
    for (size_t i = 0; i < list.size(); ++i) list[i] = {row[i], key[i], sample[i]};
    const at::Tensor& from = tensor_of(images, "images");
    *rows = handle_of(noisy(from, list.data(), n, radius));
  });
}

tx_status* tx_scaled_forward(tx_net* handle, tx_tensor images, int64_t n, const int32_t* row,
                             const float* masks, const int32_t* target, int64_t batch, double* logit,
                             double* probability) {
  return guard("scaled-forward", [&] {
    const Net& net = *required(handle, "net")->net;
    required(row, "row");
    required(masks, "masks");
    required(target, "target");
    required(logit, "logit");
    required(probability, "probability");
    if (n < 0) throw invalid("n is ", n, ": want at least 0");
    if (!net.prepared()) throw invalid("net ", net.id(), ": run before prepare");
    at::NoGradGuard no_grad;
    Evaluator run(net, batch);
    const at::Tensor& all = tensor_of(images, "images");
    if (!all.is_floating_point() || (all.dim() != 4 && all.dim() != 2)) {
      throw invalid("images ", all.sizes(), ": want floats [N,C,H,W] or [N,F]");
    }
    std::vector<int64_t> shape = all.sizes().vec();
    if (all.dim() == 4) shape[1] = 1;
    const int64_t each = c10::multiply_integers(shape.begin() + 1, shape.end());
    const at::ScalarType dtype = net.precision() == Precision::kF64 ? at::kDouble : at::kFloat;
    for (int64_t begin = 0; begin < n; begin += batch) {
      const int64_t count = std::min(batch, n - begin);
      std::vector<int64_t> which(row + begin, row + begin + count);
      const std::vector<int64_t> targets(target + begin, target + begin + count);
      for (size_t i = 0; i < which.size(); ++i) {
        if (which[i] < 0 || which[i] >= all.size(0)) {
          throw invalid("row[", begin + static_cast<int64_t>(i), "] is ", which[i], ": want 0..",
                        all.size(0) - 1);
        }
        if (targets[i] < 0 || targets[i] >= net.classes()) {
          throw invalid("target[", begin + static_cast<int64_t>(i), "] is ", targets[i],
                        ": the net has classes 0..", net.classes() - 1);
        }
      }
      shape[0] = count;
      const at::Tensor mask = at::from_blob(const_cast<float*>(masks) + begin * each, shape, at::kFloat);
      const at::Tensor index = at::tensor(which, at::kLong).to(all.device());
      const at::Tensor x = all.index_select(0, index).to(net.device(), dtype) * mask.to(net.device(), dtype);
      const at::Tensor logits = run.logits(x);
      const auto read = [&](Output output, double* to) {
        const at::Tensor values = tracked(logits, targets, output).to(at::kCPU).contiguous();
        std::copy_n(values.const_data_ptr<double>(), count, to + begin);
      };
      read(Output::kLogit, logit);
      read(Output::kProbability, probability);
    }
  });
}

tx_status* tx_net_parametrised(const tx_net* handle, char** text) {
  return guard("net-parametrised", [&] {
    required(text, "json");
    json out = json::array();
    for (const LayerInfo& layer : parametrised_layers(*required(handle, "net")->net)) {
      out.push_back({{"name", layer.name}, {"op", layer.op}});
    }
    *text = duplicate(out.dump());
  });
}

tx_status* tx_net_randomised(const tx_net* handle, int64_t count, const char* const* layers, uint64_t seed,
                             tx_net** copy) {
  return guard("net-randomised", [&] {
    required(copy, "copy");
    const Net& net = *required(handle, "net")->net;
    if (count < 0) throw invalid("count ", count, ": want at least 0");
    if (count > 0) required(layers, "layers");
    std::vector<std::string> names;
    for (int64_t i = 0; i < count; ++i) names.emplace_back(required(layers[i], "a layer"));
    auto made = std::make_unique<tx_net>();
    made->net = randomised(net, names, seed);
    *copy = made.release();
  });
}

}  // extern "C"
