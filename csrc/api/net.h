// The net behind a tx_net.
#pragma once

#include <cstdint>
#include <memory>

#include "graph/net.h"

struct tx_net {
  std::unique_ptr<assay::Net> net;
};

namespace assay {

// Of TX_PRECISION_*; throws invalid for others.
Precision precision_of(int32_t precision);

}  // namespace assay
