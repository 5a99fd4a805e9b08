// The library as a whole: start, description of hardware and libtorch, threads.
#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <c10/util/Logging.h>
#include <dlfcn.h>
#include <malloc.h>
#include <torch/csrc/inductor/aoti_torch/c/shim.h>
#include <torch/headeronly/version.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "api/api.h"
#include "api/device.h"

using namespace assay;
using nlohmann::json;

namespace {

// Warnings of libtorch are for its own users; what matters here is a status.
class SilentWarnings : public c10::WarningHandler {
 public:
  void process(const c10::Warning&) override {}
};

std::string dotted(uint64_t abi) {
  return concat(abi >> 56, ".", (abi >> 48) & 0xff, ".", (abi >> 40) & 0xff);
}

// Files of libtorch (and of GNU OpenMP) that this process has mapped.
json mapped_libraries() {
  std::set<std::string> found;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    const size_t slash = line.find('/');
    if (slash == std::string::npos) continue;
    const std::string path = line.substr(slash);
    for (const char* name :
         {"/libtorch", "/libc10", "/libgomp", "/libcgotorch", "/libcudart", "/libcudnn."}) {
      if (path.find(name) != std::string::npos) found.insert(path);
    }
  }
  return json(found);
}

// Activations of one forward are freed and asked for again by the next. By
// default glibc gives blocks of that size back to the system every time, and the
// page faults of getting them again cost a third of EfficientNet-Lite0's time.
// One arena, because others cannot hold such blocks. tx_device_trim gives back.
void keep_freed_memory() {
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, 0x7fffffff);
  mallopt(M_ARENA_MAX, 1);
}

}  // namespace

extern "C" {

uint32_t tx_abi(void) { return TX_ABI; }

tx_status* tx_start(void) {
  return guard("start", [] {
    const uint64_t running = aoti_torch_abi_version();
    constexpr uint64_t built = TORCH_ABI_VERSION;
    // The patch version and the tag may differ; major and minor may not.
    if ((running >> 48) != (built >> 48)) {
      throw unsupported("libtorch ", dotted(running), " was loaded, but this library was built for ",
                        dotted(built), ": run make build with the same LIBTORCH");
    }
    static SilentWarnings silent;
    c10::WarningUtils::set_warning_handler(&silent);
    keep_freed_memory();
    load_cuda();
    at::globalContext().setFloat32MatmulPrecision("highest");
    at::globalContext().setAllowTF32CuDNN(false);
    at::globalContext().setBenchmarkCuDNN(false);
    at::globalContext().setDeterministicCuDNN(true);
  });
}

tx_status* tx_runtime(char** text) {
  return guard("runtime", [&] {
    required(text, "json");
    json out;
    out["torch"] = dotted(aoti_torch_abi_version());
    out["torchBuilt"] = TORCH_VERSION;
    out["cpu"] = at::get_cpu_capability();
    out["threads"] = at::get_num_threads();
    out["mkldnn"] = at::globalContext().hasMKLDNN();
    out["mkl"] = at::globalContext().hasMKL();
    out["openmp"] = at::globalContext().hasOpenMP();
    out["cuda"] = describe_cuda();
    out["torchLibraries"] = mapped_libraries();
    *text = duplicate(out.dump());
  });
}

tx_status* tx_set_threads(int32_t n) {
  return guard("set-threads", [&] {
    if (n < 1 || n > 4096) throw invalid("threads ", n, ": want 1..4096");
    at::set_num_threads(n);
  });
}

}  // extern "C"
