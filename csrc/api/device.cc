#include "api/device.h"

#include <ATen/Context.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <dlfcn.h>
#include <malloc.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <fstream>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "api/api.h"

namespace assay {
namespace {

// The one piece of process-wide state: dlopen is process-wide, too.
struct CudaLibrary {
  std::once_flag once;
  std::string reason;  // why it is not there; empty when loaded
};
CudaLibrary& cuda_library() {
  static CudaLibrary library;
  return library;
}

c10::DeviceAllocator* cuda_allocator() {
  return dynamic_cast<c10::DeviceAllocator*>(c10::GetAllocator(c10::DeviceType::CUDA));
}

// A number of bytes in a file of /proc or /sys, -1 where there is none.
int64_t read_number(const char* path) {
  std::ifstream file(path);
  int64_t value = -1;
  return file >> value ? value : -1;
}

int64_t meminfo(std::string_view key) {
  std::ifstream file("/proc/meminfo");
  for (std::string line; std::getline(file, line);) {
    long long kib = 0;
    if (line.starts_with(key) && std::sscanf(line.c_str() + key.size(), ": %lld kB", &kib) == 1) {
      return static_cast<int64_t>(kib) * 1024;
    }
  }
  return -1;
}

}  // namespace

void load_cuda() {
  CudaLibrary& library = cuda_library();
  std::call_once(library.once, [&] {
    // Without a driver the library could not be used, and loading it takes a second.
    if (void* driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL); driver == nullptr) {
      library.reason = "no NVIDIA driver (libcuda.so.1) on this machine";
      return;
    }
    if (dlopen("libtorch_cuda.so", RTLD_NOW | RTLD_GLOBAL) == nullptr) {
      const char* why = dlerror();
      library.reason = why == nullptr ? "libtorch_cuda.so could not be loaded" : why;
    }
  });
}

nlohmann::json describe_cuda() {
  nlohmann::json out;
  const std::string& reason = cuda_library().reason;
  out["loaded"] = reason.empty();
  if (!reason.empty()) out["reason"] = reason;
  out["devices"] = nlohmann::json::array();
  if (!reason.empty() || !at::hasCUDA()) return out;
  const c10::DeviceIndex count = at::detail::getCUDAHooks().deviceCount();
  for (c10::DeviceIndex i = 0; i < count; ++i) {
    nlohmann::json device{{"id", concat("cuda:", int{i})}};
    int64_t free_bytes = 0, total_bytes = 0;
    tx_status* status = tx_device_memory(tx_device{TX_CUDA, i}, &free_bytes, &total_bytes);
    if (status == nullptr) {
      device["memory"] = total_bytes;
      device["free"] = free_bytes;
    }
    tx_status_free(status);
    out["devices"].push_back(std::move(device));
  }
  return out;
}

}  // namespace assay

using namespace assay;

extern "C" {

tx_status* tx_device_open(const char* name, tx_device* device) {
  return guard("device-open", [&] {
    const std::string_view text = required(name, "name");
    required(device, "device");
    if (text == "cpu") {
      *device = tx_device{TX_CPU, 0};
      return;
    }
    int32_t index = 0;
    bool good = text == "cuda";
    if (text.starts_with("cuda:")) {
      const auto [end, error] = std::from_chars(text.data() + 5, text.data() + text.size(), index);
      good = error == std::errc() && end == text.data() + text.size() && index >= 0;
    }
    if (!good) throw invalid("device \"", text, "\": want cpu or cuda:N");
    load_cuda();
    if (!cuda_library().reason.empty()) {
      throw not_found("device ", text, ": ", cuda_library().reason, ": use --device cpu");
    }
    const int32_t count = at::detail::getCUDAHooks().deviceCount();
    if (index >= count) throw not_found("device ", text, ": there are ", count, " CUDA devices");
    *device = tx_device{TX_CUDA, index};
  });
}

tx_status* tx_device_memory(tx_device device, int64_t* free_bytes, int64_t* total_bytes) {
  return guard("device-memory", [&] {
    required(free_bytes, "free_bytes");
    required(total_bytes, "total_bytes");
    if (device_of(device).is_cpu()) {
      int64_t available = meminfo("MemAvailable");
      int64_t total = meminfo("MemTotal");
      // A container's limit counts as the machine's size.
      const int64_t limit = read_number("/sys/fs/cgroup/memory.max");
      const int64_t used = read_number("/sys/fs/cgroup/memory.current");
      if (limit > 0 && used >= 0) {
        total = std::min(total, limit);
        available = std::min(available, std::max<int64_t>(0, limit - used));
      }
      *free_bytes = available;
      *total_bytes = total;
      return;
    }
    c10::DeviceAllocator* allocator = cuda_allocator();
    if (allocator == nullptr) throw unsupported("this libtorch does not tell the memory of a CUDA device");
    const auto [available, total] = allocator->getMemoryInfo(static_cast<c10::DeviceIndex>(device.index));
    *free_bytes = static_cast<int64_t>(available);
    *total_bytes = static_cast<int64_t>(total);
  });
}

tx_status* tx_device_synchronize(tx_device device) {
  return guard("device-synchronize", [&] {
    const at::Device where = device_of(device);
    if (!where.is_cpu()) c10::impl::VirtualGuardImpl(where.type()).synchronizeDevice(where.index());
  });
}

tx_status* tx_device_trim(tx_device device) {
  return guard("device-trim", [&] {
    if (device_of(device).is_cpu()) {
      malloc_trim(0);
    } else if (c10::DeviceAllocator* allocator = cuda_allocator(); allocator != nullptr) {
      allocator->emptyCache();
    }
  });
}

}  // extern "C"
