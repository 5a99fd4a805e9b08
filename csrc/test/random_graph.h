// Small random nets with everything that attribution has to get through: residual
// sums, concatenations, batch norm before and after convolutions, overlapping
// pools, values that several ops read.
#pragma once

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "graph/net.h"

namespace assay {

struct RandomNet {
  // Of nonlinear ops: none, ReLU and ReLU6, or smooth ones.
  enum class Activations { kNone, kRelu, kSmooth };

  uint64_t seed;
  Activations activations = Activations::kRelu;
  bool bias = true;     // biases and batch norm; else the net is homogeneous where its activations are
  bool folded = false;  // the same function with no batch norm after a convolution
  bool dead = false;    // the last channel (of tables: column) of the input is not read
  bool table = false;
  int64_t classes = 4;

  std::unique_ptr<Net> build(Precision precision = Precision::kF64) const;
  // [rows,3,10,9] or [rows,7], f64.
  at::Tensor rows(int64_t count) const;
  static Shape input(bool table) { return table ? Shape{7} : Shape{3, 10, 9}; }
};

namespace random_graph {

class Builder {
 public:
  explicit Builder(const RandomNet& options)
      : is_(options), random_(options.seed), graph_(RandomNet::input(options.table)) {}

  Graph graph() {
    int x = 0;
    if (is_.dead) x = graph_.slice("read", x, 0, 0, graph_.shape(0)[0] - 1);
    return is_.table ? table(x) : image(x);
  }
  const std::map<std::string, at::Tensor>& state() const { return state_; }

 private:
  int64_t below(int64_t n) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(n)); }
  bool chance(int64_t percent) { return below(100) < percent; }
  std::string name(const std::string& kind) { return kind + std::to_string(count_++); }

  at::Tensor values(at::IntArrayRef shape, double scale, double offset = 0) {
    at::Tensor out = at::empty(shape, at::kDouble);
    double* v = out.mutable_data_ptr<double>();
    for (int64_t i = 0; i < out.numel(); ++i) {
      v[i] = (static_cast<double>(random_() >> 11) * 0x1p-52 - 1) * scale + offset;
    }
    return out;
  }

  // Numbers of a batch norm: mean, variance, weight (of both signs), bias.
  std::vector<at::Tensor> norm(int64_t channels) {
    const at::Tensor sign = at::where(values({channels}, 1).lt(-.4), -1., 1.);
    return {values({channels}, .3), values({channels}, .4, 1), values({channels}, .5, 1) * sign,
            values({channels}, .4)};
  }
  int batch_norm(const std::string& name, int x, const std::vector<at::Tensor>& n) {
    const int y = graph_.batch_norm(name, x);
    state_[name + ".running_mean"] = n[0];
    state_[name + ".running_var"] = n[1];
    state_[name + ".weight"] = n[2];
    state_[name + ".bias"] = n[3];
    return y;
  }

  // Convolution, or one with a batch norm after it.
  int conv(int x, int64_t channels, int64_t kernel, int64_t stride, bool normed, bool depthwise = false) {
    const Shape in = graph_.shape(x);
    const int64_t groups = depthwise ? in[0] : 1, side = kernel / 2, inputs = in[0] / groups;
    at::Tensor weight = values({channels, inputs, kernel, kernel},
                               1.5 * std::sqrt(3. / static_cast<double>(inputs * kernel * kernel)));
    at::Tensor bias = values({channels}, .3);
    bool biased = is_.bias && chance(50);
    normed = normed && is_.bias;
    const std::string conv_name = name("conv");
    std::vector<at::Tensor> n;
    if (normed) n = norm(channels);
    if (normed && is_.folded) {
      const at::Tensor factor = n[2] / at::sqrt(n[1] + 1e-5);
      if (!biased) bias = at::zeros_like(bias);
      weight = weight * factor.view({-1, 1, 1, 1});
      bias = (bias - n[0]) * factor + n[3];
      biased = true;
    }
    int y = graph_.conv2d(conv_name, x,
                          {.channels = channels,
                           .kernel = kernel,
                           .stride = stride,
                           .padding = {side, side, side, side},
                           .groups = groups,
                           .bias = biased});
    state_[conv_name + ".weight"] = weight;
    if (biased) state_[conv_name + ".bias"] = bias;
    const std::string norm_name = name("bn");
    if (normed && !is_.folded) y = batch_norm(norm_name, y, n);
    return y;
  }

  int activation(int x) {
    switch (is_.activations) {
      case RandomNet::Activations::kNone:
        return x;
      case RandomNet::Activations::kRelu:
        return is_.bias && chance(35) ? graph_.relu6(name("relu6_"), x) : graph_.relu(name("relu"), x);
      case RandomNet::Activations::kSmooth: {
        const OpKind kinds[] = {OpKind::kGelu, OpKind::kSilu, OpKind::kTanh, OpKind::kSigmoid};
        return graph_.simple(kinds[below(4)], name("smooth"), {x});
      }
    }
    return x;
  }

  int pool(int x) {
    const Shape in = graph_.shape(x);
    if (std::min(in[1], in[2]) < 4) return x;
    // A maximum is no linear map, and has kinks where the net is to be smooth.
    const bool may_max = is_.activations == RandomNet::Activations::kRelu;
    const int64_t kind = below(3);
    if (kind == 0 && may_max) return graph_.max_pool(name("max"), x, 3, 2, 1);
    if (kind == 1 && may_max) return graph_.max_pool(name("max"), x, 2, 2);
    return graph_.avg_pool(name("average"), x, 2, 2);
  }

  int step(int x) {
    const int64_t channels = graph_.shape(x)[0];
    switch (below(6)) {
      case 0:
        return activation(conv(x, 3 + below(3), 3, 1 + below(2), chance(70)));
      case 1: {  // residual
        int y = activation(conv(x, channels, 3, 1, true));
        y = conv(y, channels, 1, 1, true);
        return activation(graph_.add(name("add"), y, x));
      }
      case 2: {  // residual with the activation before
        int y = x;
        if (is_.bias) y = batch_norm(name("bn"), y, norm(channels));
        y = conv(activation(y), channels, 3, 1, false);
        return graph_.add(name("add"), y, x);
      }
      case 3: {
        const int y = activation(conv(x, 2, 3, 1, chance(50)));
        return graph_.concat(name("concat"), {x, y});
      }
      case 4:
        return pool(x);
      default:
        return activation(conv(x, channels, 3, 1, true, true));
    }
  }

  int linear(int x, int64_t outputs) {
    const int64_t inputs = graph_.shape(x)[0];
    const std::string linear_name = name("fc");
    const int y = graph_.linear(linear_name, x, outputs, is_.bias);
    state_[linear_name + ".weight"] =
        values({outputs, inputs}, 1.5 * std::sqrt(3. / static_cast<double>(inputs)));
    if (is_.bias) state_[linear_name + ".bias"] = values({outputs}, .3);
    return y;
  }

  Graph image(int x) {
    x = activation(conv(x, 4, 3, 1, chance(60)));
    for (int64_t steps = 3 + below(4); steps > 0; --steps) x = step(x);
    // The layer of class activation maps: what an activation wrote.
    x = conv(x, 5, 1, 1, true);
    const int last = activation(x);
    graph_.place("last", "features", last);
    x = chance(50) ? graph_.adaptive_avg_pool("gap", last) : last;
    x = graph_.flatten("flatten", x);
    if (chance(50)) x = activation(linear(x, 6));
    return graph_.finish(linear(x, is_.classes), "last");
  }

  Graph table(int x) {
    x = activation(linear(x, 6));
    for (int64_t steps = 1 + below(3); steps > 0; --steps) {
      const int y = activation(linear(x, 6));
      x = graph_.shape(x)[0] == 6 && chance(60) ? graph_.add(name("add"), x, y)
                                                : graph_.concat(name("concat"), {x, y});
    }
    return graph_.finish(linear(x, is_.classes), "");
  }

  const RandomNet& is_;
  std::mt19937_64 random_;
  GraphBuilder graph_;
  std::map<std::string, at::Tensor> state_;
  int count_ = 0;
};

}  // namespace random_graph

inline std::unique_ptr<Net> RandomNet::build(Precision precision) const {
  random_graph::Builder builder(*this);
  NetEntry entry;
  entry.id = "random-" + std::to_string(seed);
  entry.input = input(table);
  entry.classes = classes;
  auto net = std::make_unique<Net>(entry, builder.graph());
  std::vector<std::pair<std::string, at::Tensor>> state(builder.state().begin(), builder.state().end());
  net->load(state);
  net->prepare(at::kCPU, precision);
  return net;
}

inline at::Tensor RandomNet::rows(int64_t count) const {
  Shape shape = input(table);
  shape.insert(shape.begin(), count);
  std::mt19937_64 random(seed + 1000);
  at::Tensor x = at::empty(shape, at::kDouble);
  double* v = x.mutable_data_ptr<double>();
  for (int64_t i = 0; i < x.numel(); ++i) v[i] = (static_cast<double>(random() >> 11) * 0x1p-52 - 1) * 2;
  return x;
}

}  // namespace assay
