// Statuses, and the translation of exceptions into them.
#include <c10/util/Exception.h>

#include <cstdlib>
#include <cstring>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>

#include "api/error.h"
#include "api/guard.h"

struct tx_status {
  int32_t code;
  std::string operation;
  std::string message;
  bool shared;  // the preallocated one: never freed
};

namespace assay {
namespace {

// Memory may be gone when a status is to be made: this one is made before.
tx_status* spare() noexcept {
  static tx_status status{TX_OUT_OF_MEMORY, "report", "out of memory while reporting an error", true};
  return &status;
}

tx_status* make(int32_t code, const char* operation, std::string_view message) noexcept {
  try {
    return new tx_status{code, operation, std::string(message), false};
  } catch (...) {
    return spare();
  }
}

// libtorch's CPU allocator reports exhaustion as a plain c10::Error.
bool is_cpu_out_of_memory(std::string_view message) {
  return message.find("DefaultCPUAllocator: can't allocate memory") != std::string_view::npos ||
         message.find("DefaultCPUAllocator: not enough memory") != std::string_view::npos;
}

}  // namespace

tx_status* classify(const char* operation) noexcept {
  try {
    throw;
  } catch (const Error& e) {
    return make(e.code(), operation, e.what());
  } catch (const c10::OutOfMemoryError& e) {
    return make(TX_OUT_OF_MEMORY, operation, e.what_without_backtrace());
  } catch (const c10::NotImplementedError& e) {
    return make(TX_UNSUPPORTED, operation, e.what_without_backtrace());
  } catch (const c10::IndexError& e) {
    return make(TX_INVALID, operation, e.what_without_backtrace());
  } catch (const c10::ValueError& e) {
    return make(TX_INVALID, operation, e.what_without_backtrace());
  } catch (const c10::TypeError& e) {
    return make(TX_INVALID, operation, e.what_without_backtrace());
  } catch (const c10::LinAlgError& e) {
    return make(TX_INVALID, operation, e.what_without_backtrace());
  } catch (const c10::Error& e) {
    const char* text = e.what_without_backtrace();
    return make(is_cpu_out_of_memory(text) ? TX_OUT_OF_MEMORY : TX_INTERNAL, operation, text);
  } catch (const std::bad_alloc&) {
    return make(TX_OUT_OF_MEMORY, operation, "out of host memory");
  } catch (const std::length_error& e) {
    return make(TX_OUT_OF_MEMORY, operation, e.what());
  } catch (const std::out_of_range& e) {
    return make(TX_INVALID, operation, e.what());
  } catch (const std::exception& e) {
    return make(TX_INTERNAL, operation, e.what());
  } catch (...) {
    return make(TX_INTERNAL, operation, "an exception of unknown type");
  }
}

}  // namespace assay

extern "C" {

int32_t tx_status_code(const tx_status* status) { return status == nullptr ? 0 : status->code; }

const char* tx_status_operation(const tx_status* status) {
  return status == nullptr ? "" : status->operation.c_str();
}

const char* tx_status_message(const tx_status* status) {
  return status == nullptr ? "" : status->message.c_str();
}

void tx_status_free(tx_status* status) {
  if (status != nullptr && !status->shared) delete status;
}

void tx_string_free(char* text) { std::free(text); }

}  // extern "C"
