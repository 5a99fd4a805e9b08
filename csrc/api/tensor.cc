// Tensors at the boundary: made from host memory, described, read, freed.
#include <ATen/core/grad_mode.h>

#include <cstdlib>
#include <cstring>

#include "api/api.h"

namespace assay {

namespace {
// The order of TX_F32...
constexpr at::ScalarType kTypes[] = {at::kFloat, at::kDouble, at::kHalf, at::kBFloat16, at::kByte,
                                     at::kChar,  at::kShort,  at::kInt,  at::kLong,     at::kBool};
}  // namespace

char* duplicate(const std::string& text) {
  char* copy = static_cast<char*>(std::malloc(text.size() + 1));
  if (copy == nullptr) throw std::bad_alloc();
  std::memcpy(copy, text.c_str(), text.size() + 1);
  return copy;
}

const at::Tensor& tensor_of(tx_tensor handle, const char* name) {
  required(handle, name);
  const at::Tensor& tensor = *static_cast<at::Tensor*>(handle);
  if (!tensor.defined()) throw invalid(name, " is an undefined tensor");
  return tensor;
}

std::vector<std::pair<std::string, at::Tensor>> tensors_of(int64_t count, const char* const* names,
                                                           const tx_tensor* tensors) {
  if (count < 0) throw invalid("count ", count, ": want at least 0");
  std::vector<std::pair<std::string, at::Tensor>> out;
  for (int64_t i = 0; i < count; ++i) {
    const char* name = required(required(names, "names")[i], "a name");
    out.emplace_back(name, tensor_of(required(tensors, "tensors")[i], name));
  }
  return out;
}

tx_tensor handle_of(at::Tensor tensor) { return new at::Tensor(std::move(tensor)); }

at::ScalarType dtype_of(int32_t dtype) {
  if (dtype < 0 || dtype >= static_cast<int32_t>(std::size(kTypes))) {
    throw invalid("dtype ", dtype, ": want 0..", std::size(kTypes) - 1, " (TX_F32...TX_BOOL)");
  }
  return kTypes[dtype];
}

at::Device device_of(tx_device device) {
  if (device.type == TX_CPU) return at::Device(at::kCPU);
  if (device.type == TX_CUDA && device.index >= 0 && device.index < 128) {
    return at::Device(at::kCUDA, static_cast<c10::DeviceIndex>(device.index));
  }
  throw invalid("device type ", device.type, " index ", device.index, ": want a device of tx_device_open");
}

}  // namespace assay

using namespace assay;

extern "C" {

tx_status* tx_tensor_new(int32_t dtype, const int64_t* shape, int32_t dimensions, const void* bytes,
                         size_t size, tx_tensor* tensor) {
  return guard("tensor-new", [&] {
    required(tensor, "tensor");
    if (dimensions < 0 || dimensions > TX_MAX_DIMENSIONS) {
      throw invalid("dimensions ", dimensions, ": want 0..", TX_MAX_DIMENSIONS);
    }
    if (dimensions > 0) required(shape, "shape");
    const at::ScalarType type = dtype_of(dtype);
    uint64_t want = at::elementSize(type);
    for (int32_t i = 0; i < dimensions; ++i) {
      if (shape[i] < 0 || __builtin_mul_overflow(want, static_cast<uint64_t>(shape[i]), &want) ||
          want > INT64_MAX) {
        throw invalid("shape: dimension ", i, " is ", shape[i], ": negative or too large");
      }
    }
    if (want != size) throw invalid("size ", size, " bytes: the shape and type want ", want);
    if (size > 0) required(bytes, "bytes");
    at::Tensor made = at::empty(at::IntArrayRef(shape, static_cast<size_t>(dimensions)), type);
    if (size > 0) std::memcpy(made.data_ptr(), bytes, size);
    *tensor = handle_of(std::move(made));
  });
}

tx_status* tx_tensor_describe(tx_tensor handle, int32_t* dtype, int32_t* dimensions,
                              int64_t shape[TX_MAX_DIMENSIONS], tx_device* device) {
  return guard("tensor-describe", [&] {
    const at::Tensor& tensor = tensor_of(handle, "tensor");
    if (tensor.dim() > TX_MAX_DIMENSIONS) throw unsupported("a tensor of ", tensor.dim(), " dimensions");
    int32_t code = -1;
    for (size_t i = 0; i < std::size(kTypes); ++i) {
      if (kTypes[i] == tensor.scalar_type()) code = static_cast<int32_t>(i);
    }
    if (code < 0) throw unsupported("a tensor of type ", at::toString(tensor.scalar_type()));
    *required(dtype, "dtype") = code;
    *required(dimensions, "dimensions") = static_cast<int32_t>(tensor.dim());
    required(shape, "shape");
    for (int64_t i = 0; i < tensor.dim(); ++i) shape[i] = tensor.size(i);
    if (device != nullptr) {
      *device = tensor.is_cuda() ? tx_device{TX_CUDA, tensor.device().index()} : tx_device{TX_CPU, 0};
    }
  });
}

tx_status* tx_tensor_read(tx_tensor handle, void* bytes, size_t size) {
  return guard("tensor-read", [&] {
    at::NoGradGuard no_grad;
    const at::Tensor host = tensor_of(handle, "tensor").to(at::kCPU).contiguous();
    if (host.nbytes() != size) throw invalid("size ", size, " bytes: the tensor has ", host.nbytes());
    if (size > 0) std::memcpy(required(bytes, "bytes"), host.const_data_ptr(), size);
  });
}

tx_status* tx_tensor_rows(tx_tensor handle, int64_t begin, int64_t end, int32_t squeeze, tx_tensor* rows) {
  return guard("tensor-rows", [&] {
    required(rows, "rows");
    const at::Tensor& tensor = tensor_of(handle, "tensor");
    const int64_t count = tensor.dim() == 0 ? 0 : tensor.size(0);
    if (begin < 0 || end < begin || end > count) {
      throw invalid("rows [", begin, ",", end, "): the tensor has ", count);
    }
    at::Tensor part = tensor.narrow(0, begin, end - begin);
    *rows = handle_of(squeeze != 0 && end - begin == 1 ? part.squeeze(0) : part);
  });
}

tx_status* tx_tensor_to(tx_tensor handle, tx_device device, tx_tensor* copy) {
  return guard("tensor-to", [&] {
    required(copy, "copy");
    at::NoGradGuard no_grad;
    const at::Tensor& tensor = tensor_of(handle, "tensor");
    *copy =
        handle_of(tensor.to(device_of(device), tensor.scalar_type(), /*non_blocking=*/false, /*copy=*/true));
  });
}

void tx_tensor_free(tx_tensor handle) { delete static_cast<at::Tensor*>(handle); }

}  // extern "C"
