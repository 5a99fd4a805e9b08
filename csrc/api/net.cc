// Nets at the boundary: built, described, loaded, prepared, run.
#include "api/net.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "api/api.h"
#include "graph/json.h"
#include "torchscript/script.h"

namespace assay {

Precision precision_of(int32_t precision) {
  if (precision < TX_PRECISION_F32 || precision > TX_PRECISION_F64) {
    throw invalid("precision ", precision, ": want TX_PRECISION_F32...TX_PRECISION_F64");
  }
  return static_cast<Precision>(precision);
}

}  // namespace assay

using namespace assay;
using nlohmann::json;

namespace {

int64_t option(const json& spec, const char* name) {
  if (!spec.contains(name)) return 0;
  if (!spec[name].is_number_integer() || spec[name].get<int64_t>() < 0) {
    throw invalid(name, ": ", spec[name].dump(), ": want an integer >= 0");
  }
  return spec[name];
}

// A net of a file's description, which says by itself what the options would say.
std::unique_ptr<Net> net_of_graph(const json& spec) {
  for (const auto& entry : spec.items()) {
    const bool nothing = entry.value() == "" || entry.value() == 0;
    if (entry.key() != "graph" && !nothing) {
      throw invalid("spec: ", entry.key(), " beside \"graph\": want \"graph\" alone");
    }
  }
  GraphHeader header;
  const json& file = spec["graph"];
  Graph graph =
      file.is_string() ? parse_graph(file.get_ref<const std::string&>(), &header) : read_graph(file, &header);
  NetEntry entry;
  entry.id = header.name;
  entry.summary = "from a file";
  entry.preset = header.preset;
  entry.input = graph.values.front().shape;
  entry.classes = graph.values[static_cast<size_t>(graph.output)].shape[0];
  return std::make_unique<Net>(std::move(entry), std::move(graph));
}

}  // namespace

extern "C" {

tx_status* tx_net_new(const char* text, tx_net** net) {
  return guard("net-new", [&] {
    required(net, "net");
    const json spec = parse_json(required(text, "spec"), "spec");
    if (spec.is_object() && spec.contains("graph")) {
      auto made = std::make_unique<tx_net>();
      made->net = net_of_graph(spec);
      *net = made.release();
      return;
    }
    if (!spec.is_object() || !spec.contains("net") || !spec["net"].is_string()) {
      throw invalid("spec: want {\"net\": id, ...} or {\"graph\": net file}");
    }
    NetOptions options;
    options.classes = option(spec, "classes");
    options.features = option(spec, "features");
    auto made = std::make_unique<tx_net>();
    made->net = Net::build(spec["net"], options);
    *net = made.release();
  });
}

tx_status* tx_net_from_torchscript(const void* bytes, size_t size, const char* text, tx_net** net) {
  return guard("net-from-torchscript", [&] {
    required(net, "net");
    const json spec = parse_json(required(text, "spec"), "spec");
    if (!spec.is_object())
      throw invalid("spec: want {\"name\": ..., \"input\": [C,H,W] or [F], \"preset\": id}");
    ScriptOptions options;
    options.name = spec.value("name", std::string("net"));
    options.input = spec.value("input", Shape{3, 224, 224});
    options.preset = spec.value("preset", options.preset);
    for (int64_t side : options.input) {
      if (side < 1 || side > (int64_t{1} << 20)) throw invalid("input: a size of ", side, ": want 1 or more");
    }
    auto made = std::make_unique<tx_net>();
    made->net = net_of_script(required(bytes, "bytes"), size, options);
    *net = made.release();
  });
}

tx_status* tx_net_describe(const tx_net* handle, char** text) {
  return guard("net-describe", [&] {
    required(text, "json");
    const Net& net = *required(handle, "net")->net;
    json out{{"net", net.id()},
             {"preset", net.preset()},
             {"input", net.input_shape()},
             {"classes", net.classes()},
             {"parameterCount", net.parameter_count()},
             {"defaultLayer", net.default_layer()},
             {"blackBox", net.is_black_box()},
             {"reason", net.reason()},
             {"parameters", json::array()},
             {"layers", json::array()}};
    for (const ParameterInfo& p : net.parameters()) {
      out["parameters"].push_back(
          {{"name", p.name}, {"shape", p.shape}, {"buffer", p.buffer}, {"optional", p.optional}});
    }
    for (const LayerInfo& layer : net.layers()) {
      out["layers"].push_back({{"name", layer.name}, {"op", layer.op}, {"outputs", layer.outputs}});
    }
    *text = duplicate(out.dump());
  });
}

tx_status* tx_net_load(tx_net* handle, int64_t count, const char* const* names, const tx_tensor* tensors) {
  return guard("net-load", [&] {
    at::NoGradGuard no_grad;
    Net& net = *required(handle, "net")->net;
    net.load(tensors_of(count, names, tensors));
  });
}

tx_status* tx_net_prepare(tx_net* handle, tx_device device, int32_t precision) {
  return guard("net-prepare", [&] {
    at::NoGradGuard no_grad;
    required(handle, "net")->net->prepare(device_of(device), precision_of(precision));
  });
}

tx_status* tx_net_forward(tx_net* handle, tx_tensor x, int64_t batch, tx_tensor* logits) {
  return guard("net-forward", [&] {
    at::NoGradGuard no_grad;
    required(logits, "logits");
    const Net& net = *required(handle, "net")->net;
    const at::Tensor& all = tensor_of(x, "x");
    if (!all.is_floating_point() || all.dim() < 2) {
      throw invalid("x is ", at::toString(all.scalar_type()), " ", all.sizes(),
                    ": want floats [N,C,H,W] or [N,F]");
    }
    const int64_t rows = all.size(0), step = batch > 0 ? batch : rows;
    const bool wide = net.precision() == Precision::kF64;
    at::Tensor out = at::empty({rows, net.classes()}, wide ? at::kDouble : at::kFloat);
    for (int64_t begin = 0; begin < rows; begin += step) {
      const int64_t count = std::min(step, rows - begin);
      at::Tensor part = all.narrow(0, begin, count);
      if (net.device().is_cuda() && part.device().is_cpu()) part = part.pin_memory();
      part = part.to(net.device(), /*non_blocking=*/true);
      if (count < step) {  // the last row again, so that the shape stays the same
        std::vector<int64_t> shape = part.sizes().vec();
        shape[0] = step - count;
        part = at::cat({part, part.narrow(0, count - 1, 1).expand(shape)});
      }
      out.narrow(0, begin, count).copy_(net.forward(part).narrow(0, 0, count));
    }
    *logits = handle_of(std::move(out));
  });
}

void tx_net_free(tx_net* net) { delete net; }

}  // extern "C"
