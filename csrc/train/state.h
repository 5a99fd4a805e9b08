// Tensors by name: taken from a checkpoint, checked; copied out for one.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace assay {

struct Wanted {
  std::string name;
  std::vector<int64_t> shape;
  bool optional = false;  // may be missing
  bool counter = false;   // one integer, in any shape of one element
};

// The given tensors in the order of what is wanted; undefined: missing and
// optional. Throws invalid, beginning with what it is about and naming
// up to five: unknown, missing or repeated names, other shapes, no floating types.
std::vector<at::Tensor> match(const std::string& about, const std::vector<Wanted>& wanted,
                              const std::vector<std::pair<std::string, at::Tensor>>& given);

// A contiguous copy on the CPU that shares no memory and records no gradient.
at::Tensor host_copy(const at::Tensor& value);

}  // namespace assay
