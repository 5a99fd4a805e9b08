// Parameters and inputs from the formula that internal/fill documents.
#pragma once

#include <ATen/ATen.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "graph/net.h"

namespace assay {

inline at::Tensor fill_values(const std::string& name, at::IntArrayRef shape, double scale, double offset) {
  uint64_t state = 0xCBF29CE484222325;
  for (unsigned char byte : name) state = (state ^ byte) * 0x100000001B3;
  at::Tensor out = at::empty(shape, at::kFloat);
  float* values = out.mutable_data_ptr<float>();
  for (int64_t i = 0; i < out.numel(); ++i) {
    state += 0x9E3779B97F4A7C15;
    uint64_t z = state;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
    z ^= z >> 31;
    values[i] = static_cast<float>((std::ldexp(static_cast<double>(z >> 11), -52) - 1) * scale + offset);
  }
  return out;
}

// gain: of the products' weights, for nets in which signals die away otherwise.
inline at::Tensor fill_parameter(const std::string& name, at::IntArrayRef shape, double gain = 1) {
  if (shape.empty()) return fill_values(name, shape, 0, 0);
  if (shape.size() > 1) {
    return fill_values(name, shape,
                       gain * std::sqrt(3. / static_cast<double>(c10::multiply_integers(shape.slice(1)))), 0);
  }
  if (name.ends_with(".running_var") || name.ends_with(".weight")) return fill_values(name, shape, 0.25, 1);
  return fill_values(name, shape, 0.1, 0);
}

inline at::Tensor fill_input(at::IntArrayRef shape) { return fill_values("input", shape, std::sqrt(3.), 0); }

// [rows,C,H,W] or [rows,F] for a net.
inline at::Tensor fill_input(const Net& net, int64_t rows) {
  std::vector<int64_t> shape = net.input_shape();
  shape.insert(shape.begin(), rows);
  return fill_input(shape);
}

inline std::vector<std::pair<std::string, at::Tensor>> fill_state(const Net& net, double gain = 1) {
  std::vector<std::pair<std::string, at::Tensor>> state;
  for (const ParameterInfo& p : net.parameters())
    state.emplace_back(p.name, fill_parameter(p.name, p.shape, gain));
  return state;
}

}  // namespace assay
