// Attribution methods: which inputs made the net say what it said. A method is an
// entry of a registry (one file a method) and is asked by a spec, JSON as
// {"id": "smoothgrad", "samples": 15, "base": {"id": "gradient"}}.
#pragma once

#include <ATen/ATen.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "api/parameters.h"
#include "attribution/evaluator.h"
#include "graph/net.h"

namespace assay {

// What is explained: rows, each with a class and a random stream.
struct Explained {
  at::Tensor x;                  // [N,C,H,W] or [N,F] on the net's device, in its dtype
  std::vector<int64_t> targets;  // N classes
  std::vector<uint64_t> keys;    // N keys (internal/rng): a row's draws depend on its key alone

  int64_t size() const { return x.size(0); }
  bool is_table() const { return x.dim() == 2; }
  // Rows which[i], copied.
  Explained rows(const std::vector<int64_t>& which) const;
};

// How methods run: the net with its batch shape, the preset, the features, and
// what they have to say beside the maps.
struct Context {
  Context(const Net& of, int64_t batch) : net(of), run(of, batch) {}

  const Net& net;
  Evaluator run;
  std::vector<double> mean, std;         // per channel, of the preset; may be empty
  const int32_t* feature_map = nullptr;  // [H*W] or [F], 0..features-1; NULL: each method's grid
  int64_t features = 0;
  // Completeness (Sundararajan et al. 2017, Proposition 1), for the methods that
  // have it: sum of a row's map minus the change of the output. Empty: none.
  std::vector<double> deltas;
  std::vector<std::string> warnings;
  bool inner = false;  // within another method: deltas would be of other rows

  void warn(const std::string& text);  // once each
};

// While a method asks another about rows of its own.
class InnerScope {
 public:
  explicit InnerScope(Context& context) : context_(context), before_(context.inner) { context.inner = true; }
  ~InnerScope() { context_.inner = before_; }
  InnerScope(const InnerScope&) = delete;
  InnerScope& operator=(const InnerScope&) = delete;

 private:
  Context& context_;
  bool before_;
};

// Features of images of this size: the context's feature map, or a grid of edge x
// edge patches (pixel (i,j) of H x W in patch (floor(i edge/H), floor(j edge/W))); of
// tables: its columns. Throws invalid for an edge that is no patch count.
struct Features {
  int64_t count;
  at::Tensor map;  // int64 [H,W] or [F], on the rows' device
};
Features features_of(const Context& context, const Explained& rows, int64_t edge);

// References for these rows, like rows.x, by an imputer of the removal registry
// with its default parameters ("zero", "blur").
at::Tensor reference_of(const Context& context, const Explained& rows, const std::string& imputer);

class Method;

struct MethodEntry {
  std::string id;
  std::string summary;  // one line
  std::string family;   // "gradient", "cam", "perturbation", "control"
  // What a net must offer: "" (nothing), "forward", "input gradient", "graph".
  std::string needs;
  std::string paper;
  nlohmann::json parameters;  // see Parameters
  // Maps [N,C,H,W], [N,1,H,W] or [N,F], signed, on the rows' device: row by row
  // the same whatever the other rows are. No channel reduction is hidden here.
  at::Tensor (*attribute)(const Method& method, Context& context, const Explained& rows);
  // "": takes no base; else the base where none is given ("gradient").
  std::string default_base = {};
  // Maps of images have one channel whatever the input has.
  bool one_channel = false;
};

// All methods, in the order of the catalogue.
const std::vector<MethodEntry>& method_registry();

// A method with its parameters, ready to be asked.
class Method {
 public:
  // Throws invalid or not-found naming what there is.
  explicit Method(const nlohmann::json& spec);

  const MethodEntry& entry() const { return *entry_; }
  const Parameters& parameters() const { return parameters_; }
  const Method& base() const { return *base_; }  // where entry().default_base is not ""

  // Throws unsupported, by op and layer, where the net cannot do it.
  at::Tensor attribute(Context& context, const Explained& rows) const;

 private:
  const MethodEntry* entry_;
  Parameters parameters_;
  std::unique_ptr<Method> base_;
};

// Steps through `total` items: f(begin, count), count <= size.
template <typename F>
void in_blocks(int64_t total, int64_t size, F&& f) {
  for (int64_t begin = 0; begin < total; begin += size) f(begin, std::min(size, total - begin));
}

}  // namespace assay
