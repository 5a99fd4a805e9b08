// Nets on tables: logistic regression, and three layers of 128 with ReLU.
#include <string>

#include "nets/families.h"

namespace assay {
namespace {

Graph logistic(const Shape& input, int64_t classes) {
  GraphBuilder b(input);
  return b.finish(b.linear("fc", 0, classes), "");
}

Graph mlp(const Shape& input, int64_t classes) {
  GraphBuilder b(input);
  int x = 0;
  for (int i = 1; i <= 3; ++i) {
    const std::string number = std::to_string(i);
    x = b.relu("relu" + number, b.linear("fc" + number, x, 128));
  }
  return b.finish(b.linear("fc4", x, classes), "");
}

NetEntry entry(const std::string& id, const std::string& summary,
               std::function<Graph(const Shape&, int64_t)> build) {
  NetEntry e;
  e.id = id;
  e.summary = summary;
  e.preset = "digits";
  e.input = {64};
  e.classes = 10;
  e.build = std::move(build);
  return e;
}

}  // namespace

std::vector<NetEntry> dense_nets() {
  return {
      entry("mlp", "three layers of 128 with ReLU and a linear layer, for tables (features=F) and digits",
            mlp),
      entry("logistic", "logistic regression, for tables (features=F) and digits", logistic),
  };
}

}  // namespace assay
