// The generator behind a tx_generator.
#pragma once

#include <memory>

#include "removal/generator.h"

struct tx_generator {
  std::shared_ptr<const assay::Generator> generator;
};
