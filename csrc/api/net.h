// The net behind a tx_net.
#pragma once

#include <memory>

#include "graph/net.h"

struct tx_net {
  std::unique_ptr<assay::Net> net;
};
