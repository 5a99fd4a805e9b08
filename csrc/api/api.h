// What the C functions share: checks of arguments, strings, tensors, devices.
#pragma once

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "api/error.h"
#include "api/guard.h"
#include "torchx.h"

namespace assay {

// A copy that tx_string_free frees.
char* duplicate(const std::string& text);

// Throws invalid unless the pointer is set: "image: is NULL".
template <typename T>
T* required(T* pointer, const char* name) {
  if (pointer == nullptr) throw invalid(name, " is NULL");
  return pointer;
}

// The tensor behind a handle; throws invalid for NULL and for undefined tensors.
const at::Tensor& tensor_of(tx_tensor handle, const char* name);
// A list of named tensors; throws invalid for counts below 0 and for NULL.
std::vector<std::pair<std::string, at::Tensor>> tensors_of(int64_t count, const char* const* names,
                                                           const tx_tensor* tensors);
// A new handle; the caller of the API owns it.
tx_tensor handle_of(at::Tensor tensor);

at::Device device_of(tx_device device);
at::ScalarType dtype_of(int32_t dtype);

}  // namespace assay
