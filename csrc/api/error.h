// Errors that our own code throws; csrc/api/guard.h turns them, and libtorch's,
// into statuses at the C boundary.
#pragma once

#include <cstdint>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>

#include "torchx.h"

namespace assay {

class Error : public std::runtime_error {
 public:
  Error(int32_t code, const std::string& message) : std::runtime_error(message), code_(code) {}
  int32_t code() const noexcept { return code_; }

 private:
  int32_t code_;
};

// The parts as std::ostream prints them, one after another.
template <typename... Parts>
std::string concat(Parts&&... parts) {
  std::ostringstream out;
  (out << ... << std::forward<Parts>(parts));
  return out.str();
}

// Each builds an Error from parts that std::ostream can print:
// `throw invalid("edge ", edge, ": want at least 1")`.
template <typename... Parts>
Error invalid(Parts&&... parts) {
  return Error(TX_INVALID, concat(std::forward<Parts>(parts)...));
}
template <typename... Parts>
Error not_found(Parts&&... parts) {
  return Error(TX_NOT_FOUND, concat(std::forward<Parts>(parts)...));
}
template <typename... Parts>
Error unsupported(Parts&&... parts) {
  return Error(TX_UNSUPPORTED, concat(std::forward<Parts>(parts)...));
}

}  // namespace assay
