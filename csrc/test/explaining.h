// Small nets and calls for tests of attribution methods.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "api/error.h"
#include "attribution/method.h"
#include "graph/net.h"
#include "test/fill.h"

namespace assay {

using State = std::vector<std::pair<std::string, at::Tensor>>;

inline std::unique_ptr<Net> net_of(Graph graph, const State& state, Precision precision = Precision::kF64) {
  NetEntry entry{.id = "small",
                 .summary = "",
                 .preset = "",
                 .input = graph.values.front().shape,
                 .classes = 2,
                 .licence = "",
                 .paper = "",
                 .build = nullptr};
  auto net = std::make_unique<Net>(entry, std::move(graph));
  net->load(state);
  net->prepare(at::kCPU, precision);
  return net;
}

// The net that captum's tests call BasicModel_MultiLayer: 3 columns, a hidden
// layer of 4 ReLUs, 2 classes.
inline std::unique_ptr<Net> captum_net() {
  GraphBuilder b({3});
  const int x = b.linear("linear1", b.linear("linear0", 0, 3, /*bias=*/false), 4);
  Graph graph = b.finish(b.linear("linear2", b.relu("relu", x), 2), "");
  return net_of(std::move(graph), {{"linear0.weight", at::eye(3)},
                                   {"linear1.weight", at::ones({4, 3})},
                                   {"linear1.bias", at::tensor({-10., 1., 1., 1.})},
                                   {"linear2.weight", at::ones({2, 4})},
                                   {"linear2.bias", at::tensor({-1., 1.})}});
}

// Pixels (or columns) times weights: classes [classes, numbers of a row], no bias.
inline std::unique_ptr<Net> linear_net(const Shape& input, const at::Tensor& weights,
                                       Precision precision = Precision::kF64) {
  GraphBuilder b(input);
  const int x = input.size() == 1 ? 0 : b.flatten("flat", 0);
  Graph graph = b.finish(b.linear("linear", x, weights.size(0), /*bias=*/false), "");
  return net_of(std::move(graph), {{"linear.weight", weights}}, precision);
}

// Two convolutions and a classifier of 4 classes on images of any size.
inline std::unique_ptr<Net> image_net(const Shape& input, Precision precision = Precision::kF64) {
  GraphBuilder b(input);
  int x = b.relu("relu1", b.conv2d("conv1", 0, {.channels = 8, .kernel = 3, .padding = {1, 1, 1, 1}}));
  x = b.relu("relu2", b.conv2d("conv2", x, {.channels = 8, .kernel = 3, .stride = 2}));
  x = b.flatten("flat", b.adaptive_avg_pool("pool", x, 2));
  Graph graph = b.finish(b.linear("fc", x, 4), "");
  State state;
  for (const ParameterInfo& p : graph.parameters) state.emplace_back(p.name, fill_parameter(p.name, p.shape));
  return net_of(std::move(graph), state, precision);
}

struct Asked {
  nlohmann::json method;
  at::Tensor x;
  std::vector<int64_t> targets = {};  // empty: class 0 of all rows
  std::vector<uint64_t> keys = {};    // empty: 1, 2, ...
  int64_t batch = 4;
  std::vector<int32_t> feature_map = {};
  int64_t features = 0;
  std::vector<double> mean = {}, std = {};
};

struct Answer {
  at::Tensor maps;
  int64_t forwards;
  std::vector<std::string> warnings;
};

inline Answer explain(const Net& net, Asked asked) {
  at::NoGradGuard no_grad;
  const Method method(asked.method);
  const at::ScalarType dtype = net.precision() == Precision::kF64 ? at::kDouble : at::kFloat;
  Explained rows{.x = asked.x.to(dtype).contiguous(), .targets = asked.targets, .keys = asked.keys};
  rows.targets.resize(static_cast<size_t>(rows.size()), 0);
  for (size_t k = rows.keys.size(); k < rows.targets.size(); ++k) rows.keys.push_back(k + 1);
  Context context(net, asked.batch);
  context.mean = asked.mean;
  context.std = asked.std;
  if (!asked.feature_map.empty()) {
    context.feature_map = asked.feature_map.data();
    context.features = asked.features;
  }
  const at::Tensor maps = method.attribute(context, rows);
  return {maps, context.run.forwards(), context.warnings};
}

// [1,F] in double.
inline at::Tensor one_row(const std::vector<double>& values) {
  return at::tensor(values, at::kDouble).unsqueeze(0);
}

// What an Error says, or "no error".
inline std::string complaint(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

// The largest difference, relative to the largest of want.
inline double gap(const at::Tensor& got, const at::Tensor& want) {
  const at::Tensor g = got.to(at::kDouble), w = want.to(at::kDouble);
  if (g.sizes() != w.sizes()) return std::numeric_limits<double>::infinity();
  return ((g - w).abs().max() / w.abs().max()).item<double>();
}

}  // namespace assay
