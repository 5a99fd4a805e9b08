// The nets that assay can build: an explicit list, one entry a net.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "graph/graph.h"

namespace assay {

struct NetOptions {
  int64_t classes = 0;   // outputs; 0: the entry's own
  int64_t features = 0;  // columns, for nets on tables; 0: the entry's own
};

struct NetEntry {
  std::string id;              // "resnet18"
  std::string summary;         // one line
  std::string preset;          // default preprocessing; "table": none
  std::vector<int64_t> input;  // [C,H,W] or [F]
  int64_t classes;             // of the published weights
  std::string licence;         // of the published weights; "": there are none
  std::string paper;
  // input and classes with the options applied -> graph.
  std::function<Graph(const Shape& input, int64_t classes)> build;
};

// In the order in which they are listed to people.
const std::vector<NetEntry>& net_registry();
// Throws not-found, with ids that look alike, or all of them.
const NetEntry& net_entry(const std::string& id);

}  // namespace assay
