// The catalogue: what there is to choose from, as JSON made from the registries.
#include <nlohmann/json.hpp>

#include "api/api.h"
#include "attribution/method.h"
#include "nets/registry.h"
#include "removal/imputer.h"

using namespace assay;
using nlohmann::json;

extern "C" {

tx_status* tx_catalogue(char** text) {
  return guard("catalogue", [&] {
    required(text, "json");
    json out{{"nets", json::array()}, {"methods", json::array()}, {"imputers", json::array()}};
    for (const NetEntry& net : net_registry()) {
      out["nets"].push_back({{"id", net.id},
                             {"summary", net.summary},
                             {"preset", net.preset},
                             {"input", net.input},
                             {"classes", net.classes},
                             {"licence", net.licence},
                             {"paper", net.paper}});
    }
    for (const MethodEntry& method : method_registry()) {
      out["methods"].push_back({{"id", method.id},
                                {"summary", method.summary},
                                {"family", method.family},
                                {"parameters", method.parameters},
                                {"base", method.default_base},
                                {"oneChannel", method.one_channel},
                                {"paper", method.paper},
                                {"needs", method.needs}});
    }
    for (const ImputerEntry& imputer : imputer_registry()) {
      out["imputers"].push_back({{"id", imputer.id},
                                 {"summary", imputer.summary},
                                 {"parameters", imputer.parameters},
                                 {"paper", imputer.paper},
                                 {"needs", imputer.of_data              ? "data"
                                           : imputer.mask_independent() ? ""
                                                                        : "mask"},
                                 {"generator", imputer.of_generator}});
    }
    *text = duplicate(out.dump());
  });
}

}  // extern "C"
