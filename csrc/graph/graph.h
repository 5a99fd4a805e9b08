// A network as data: a list of ops in the order they run, the values between
// them, and the parameters they read. Nothing here computes; ops.h says what
// each kind of op means, net.h runs graphs.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace assay {

// Shape of one row (without the batch): [C,H,W] or [F].
using Shape = std::vector<int64_t>;

enum class OpKind {
  kConv2d,
  kBatchNorm,
  kRelu,
  kRelu6,
  kMaxPool,
  kAvgPool,
  kAdaptiveAvgPool,
  kFlatten,
  kLinear,
  kAdd,
  kShortcutA,
  kDropout,
};

// What an op is told besides its inputs and parameters; each kind reads its own
// fields (ops.h).
struct Attributes {
  std::array<int64_t, 2> kernel = {1, 1};           // height, width
  std::array<int64_t, 2> stride = {1, 1};           // height, width
  std::array<int64_t, 4> padding = {0, 0, 0, 0};    // top, left, bottom, right; zeros
  std::array<int64_t, 2> dilation = {1, 1};         // height, width
  int64_t groups = 1;                               // conv2d
  double epsilon = 1e-5;                            // batch norm
  double probability = 0;                           // dropout, in training only
  std::array<int64_t, 2> output = {1, 1};           // adaptive pooling: height, width
  std::array<int64_t, 2> channel_padding = {0, 0};  // shortcut A: zero channels before, after
};

// One op: reads values, writes one value.
struct Op {
  OpKind kind;
  std::string name;         // the module's name in the original, unique in the graph
  std::vector<int> inputs;  // value ids
  int output;               // value id
  Attributes attributes;
  // Indices into Graph::parameters, in the order that the kind defines:
  // conv2d and linear: weight[, bias]; batch norm: weight, bias, running_mean,
  // running_var[, num_batches_tracked].
  std::vector<int> parameters;
};

struct ParameterInfo {
  std::string name;  // as in the published state dict
  std::vector<int64_t> shape;
  bool buffer = false;    // not trained: running statistics
  bool optional = false;  // may be missing from a state dict, and is not used in inference
};

// A value: the input (id 0) or what an op writes.
struct Value {
  Shape shape;   // of one row
  int producer;  // index of the op, -1: the input
};

// A name for a value besides the names of ops: a block, a stage.
struct Place {
  std::string name;
  std::string kind;  // "block", "stage", "features"
  int value;
};

struct Graph {
  std::vector<Op> ops;  // in an order in which every input comes before its use
  std::vector<Value> values;
  std::vector<ParameterInfo> parameters;
  std::vector<Place> places;
  int output = 0;             // the logits' value id
  std::string default_layer;  // what class activation maps look at; "": none
};

// Builds a graph op by op. Every call returns the id of the new value; names
// are checked to be new, shapes to fit (a mistake is a defect of a builder or of
// an imported file, and throws invalid).
class GraphBuilder {
 public:
  explicit GraphBuilder(const Shape& input);

  struct Conv {
    int64_t channels;  // of the output
    int64_t kernel = 1;
    int64_t stride = 1;
    std::array<int64_t, 4> padding = {0, 0, 0, 0};  // top, left, bottom, right
    int64_t groups = 1;
    bool bias = false;
  };
  int conv2d(const std::string& name, int x, const Conv& conv);
  int batch_norm(const std::string& name, int x, double epsilon = 1e-5);
  int relu(const std::string& name, int x);
  int relu6(const std::string& name, int x);
  int max_pool(const std::string& name, int x, int64_t kernel, int64_t stride, int64_t padding = 0);
  int avg_pool(const std::string& name, int x, int64_t kernel, int64_t stride);
  int adaptive_avg_pool(const std::string& name, int x);
  int flatten(const std::string& name, int x);
  int linear(const std::string& name, int x, int64_t outputs);
  int add(const std::string& name, int x, int y);
  // Every second pixel of both axes, then zero channels before and after
  // ("option A" of He et al. 2016, section 3.3).
  int shortcut_a(const std::string& name, int x, int64_t channels);
  int dropout(const std::string& name, int x, double probability);

  // Another name for a value.
  void place(const std::string& name, const std::string& kind, int value);
  const Shape& shape(int value) const;
  Graph finish(int output, const std::string& default_layer);

 private:
  int append(OpKind kind, const std::string& name, std::vector<int> inputs, const Attributes& attributes,
             std::vector<ParameterInfo> parameters = {});

  Graph graph_;
};

}  // namespace assay
