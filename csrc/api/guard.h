// guard() wraps the body of every C function: no exception leaves the library.
#pragma once

#include <exception>

#include "torchx.h"

namespace assay {

// The status for the exception being handled; never throws. Not inline: the
// catch clauses stand once in the library, not once in every function.
tx_status* classify(const char* operation) noexcept;

template <typename Body>
tx_status* guard(const char* operation, Body&& body) noexcept {
  try {
    body();
    return nullptr;
  } catch (...) {
    return classify(operation);
  }
}

}  // namespace assay
