// The list of nets.
#include "nets/registry.h"

#include <algorithm>

#include "api/error.h"
#include "nets/families.h"

namespace assay {

const std::vector<NetEntry>& net_registry() {
  static const std::vector<NetEntry> entries = [] {
    std::vector<NetEntry> all;
    for (auto* family :
         {resnets, vggs, alexnets, googlenets, inceptions, mobilenets, densenets, squeezenets, efficientnets,
          efficientnet_lites, convnexts, vits, cifar_resnets, cnn3s, dense_nets}) {
      for (NetEntry& entry : family()) all.push_back(std::move(entry));
    }
    return all;
  }();
  return entries;
}

const NetEntry& net_entry(const std::string& id) {
  const auto& entries = net_registry();
  const auto found =
      std::find_if(entries.begin(), entries.end(), [&](const NetEntry& entry) { return entry.id == id; });
  if (found != entries.end()) return *found;
  std::string known;
  for (const NetEntry& entry : entries) known += (known.empty() ? "" : ", ") + entry.id;
  throw not_found("net \"", id, "\": want one of ", known);
}

}  // namespace assay
