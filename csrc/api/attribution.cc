// Attribution at the boundary.
#include <ATen/core/grad_mode.h>

#include <nlohmann/json.hpp>

#include "api/api.h"
#include "api/net.h"
#include "attribution/method.h"
#include "graph/json.h"

using namespace assay;
using nlohmann::json;

extern "C" {

tx_status* tx_attribute(tx_net* handle, const char* spec, tx_tensor images, const int32_t* targets,
                        const uint64_t* keys, const tx_attribute_options* options, tx_tensor* maps,
                        char** report) {
  return guard("attribute", [&] {
    required(maps, "maps");
    required(report, "report");
    required(targets, "targets");
    required(keys, "keys");
    at::NoGradGuard no_grad;
    const Net& net = *required(handle, "net")->net;
    const tx_attribute_options& with = *required(options, "options");
    const Method method(parse_json(required(spec, "spec"), "spec"));
    if (!net.prepared()) throw invalid("net ", net.id(), ": run before prepare");
    Explained rows;
    rows.x = tensor_of(images, "images");
    if (!rows.x.is_floating_point()) throw invalid("images: want a floating type");
    const at::IntArrayRef row = net.input_shape();
    if (rows.x.dim() < 2 || rows.x.sizes().slice(1) != row || rows.x.size(0) < 1) {
      throw invalid("images ", rows.x.sizes(), ": want [N,", c10::Join(",", row), "], N >= 1");
    }
    rows.x =
        rows.x.to(net.device(), net.precision() == Precision::kF64 ? at::kDouble : at::kFloat).contiguous();
    rows.targets.assign(targets, targets + rows.size());
    rows.keys.assign(keys, keys + rows.size());
    for (size_t r = 0; r < rows.targets.size(); ++r) {
      if (rows.targets[r] < 0 || rows.targets[r] >= net.classes()) {
        throw invalid("target[", r, "] is ", rows.targets[r], ": the net has classes 0..", net.classes() - 1);
      }
    }
    Context context(net, with.batch);
    const size_t channels = rows.is_table() ? 0 : static_cast<size_t>(rows.x.size(1));
    if (with.mean != nullptr) context.mean.assign(with.mean, with.mean + channels);
    if (with.std != nullptr) context.std.assign(with.std, with.std + channels);
    context.feature_map = with.feature_map;
    context.features = with.features;
    const at::Tensor out = method.attribute(context, rows).to(at::kCPU).contiguous();
    const json said{{"forwards", context.run.forwards()},
                    {"backwards", context.run.backwards()},
                    {"deltas", context.deltas},
                    {"warnings", context.warnings}};
    char* text = duplicate(said.dump());
    *maps = handle_of(out);
    *report = text;
  });
}

}  // extern "C"
