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

// In the order of the table of ops (ops.cc).
enum class OpKind {
  kConv2d,
  kConvTranspose2d,
  kLinear,
  kMatmul,
  kBatchNorm,
  kLayerNorm,
  kGroupNorm,
  kRelu,
  kRelu6,
  kLeakyRelu,
  kElu,
  kGelu,
  kSilu,
  kSigmoid,
  kTanh,
  kHardswish,
  kHardsigmoid,
  kSoftmax,
  kDropout,
  kMaxPool,
  kAvgPool,
  kAdaptiveAvgPool,
  kAdaptiveMaxPool,
  kMean,
  kUpsample,
  kAdd,
  kSub,
  kMul,
  kDiv,
  kAffine,
  kChannelAffine,
  kConcat,
  kParameter,
  kFlatten,
  kReshape,
  kPermute,
  kSlice,
  kPad,
  kShortcutA,
};

// What an op is told besides its inputs and parameters; each kind reads the
// fields that its definition names (ops.h), the others keep these values. Axes
// count a row's dimensions from 0; the batch is not among them.
struct Attributes {
  int64_t channels = 0;                             // outputs of convolutions and linear layers
  bool bias = true;                                 // ... and whether they add one
  std::array<int64_t, 2> kernel = {1, 1};           // height, width
  std::array<int64_t, 2> stride = {1, 1};           // height, width
  std::array<int64_t, 4> padding = {0, 0, 0, 0};    // top, left, bottom, right; zeros
  std::array<int64_t, 2> dilation = {1, 1};         // height, width
  std::array<int64_t, 2> output_padding = {0, 0};   // transposed convolution: more rows, columns
  int64_t groups = 1;                               // convolutions, group norm
  bool ceil = false;                                // pooling: a last window may begin inside and end outside
  bool count_padding = true;                        // average pooling: zeros of the padding count
  double epsilon = 1e-5;                            // norms
  double momentum = 0.1;                            // batch norm, in training only
  int64_t dimensions = 1;                           // layer norm: how many last axes
  double slope = 0.01;                              // leaky ReLU; ELU: alpha
  bool approximate = false;                         // GELU: by tanh
  double probability = 0;                           // dropout, in training only
  std::array<int64_t, 2> output = {1, 1};           // adaptive pooling, upsampling: height, width
  bool bilinear = false;                            // upsampling: else nearest
  bool align_corners = false;                       // bilinear upsampling
  int64_t axis = 0;                                 // softmax, concat, slice
  std::vector<int64_t> axes;                        // mean; permute: where each axis of the output comes from
  bool keep = false;                                // mean: axes stay, with size 1
  int64_t begin = 0, end = 0, step = 1;             // slice: [begin, end) by step
  Shape shape;                                      // reshape, parameter: of one row
  double factor = 1, shift = 0;                     // affine: factor x + shift
  std::vector<double> factors, shifts;              // channel affine: one a channel
  bool transpose = false;                           // matmul: the second factor's last two axes
  std::array<int64_t, 2> channel_padding = {0, 0};  // shortcut A: zero channels before, after
};

// One op: reads values, writes one value.
struct Op {
  OpKind kind;
  std::string name;         // the module's name in the original, unique in the graph
  std::vector<int> inputs;  // value ids
  int output;               // value id
  Attributes attributes;
  // Indices into Graph::parameters, in the order that the kind defines (ops.h).
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
  Shape shape;          // of one row
  int producer;         // index of the op, -1: the input
  bool batched = true;  // false: one row for all, made of parameters alone
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
    int64_t kernel_width = 0;  // 0: as high
  };
  int conv2d(const std::string& name, int x, const Conv& conv);
  int batch_norm(const std::string& name, int x, double epsilon = 1e-5, double momentum = 0.1);
  int layer_norm(const std::string& name, int x, double epsilon = 1e-5);  // over the last axis
  int relu(const std::string& name, int x);
  int relu6(const std::string& name, int x);
  // Any op that is told nothing: activations, add, sub, mul, div, flatten.
  int simple(OpKind kind, const std::string& name, std::vector<int> inputs);
  int max_pool(const std::string& name, int x, int64_t kernel, int64_t stride, int64_t padding = 0,
               bool ceil = false);
  int avg_pool(const std::string& name, int x, int64_t kernel, int64_t stride, int64_t padding = 0);
  int adaptive_avg_pool(const std::string& name, int x, int64_t output = 1);
  int flatten(const std::string& name, int x);
  int linear(const std::string& name, int x, int64_t outputs, bool bias = true);
  int add(const std::string& name, int x, int y);
  int mul(const std::string& name, int x, int y);
  int concat(const std::string& name, const std::vector<int>& values, int64_t axis = 0);
  int reshape(const std::string& name, int x, const Shape& shape);
  int permute(const std::string& name, int x, const std::vector<int64_t>& axes);
  int slice(const std::string& name, int x, int64_t axis, int64_t begin, int64_t end);
  int softmax(const std::string& name, int x, int64_t axis);
  int matmul(const std::string& name, int x, int y, bool transpose = false);
  // A parameter as a value, the same for every row; stored has shape's elements.
  int parameter(const std::string& name, const Shape& shape, const std::vector<int64_t>& stored);
  // Every second pixel of both axes, then zero channels before and after
  // ("option A" of He et al. 2016, section 3.3).
  int shortcut_a(const std::string& name, int x, int64_t channels);
  int dropout(const std::string& name, int x, double probability);

  // Any op; its parameters are new and are called name + what the kind defines.
  int op(OpKind kind, const std::string& name, std::vector<int> inputs, const Attributes& attributes);
  // The same with parameters that stand in the graph: indices from declare.
  int op(OpKind kind, const std::string& name, std::vector<int> inputs, const Attributes& attributes,
         std::vector<int> parameters);
  int declare(ParameterInfo parameter);

  // Another name for a value.
  void place(const std::string& name, const std::string& kind, int value);
  const Shape& shape(int value) const;
  Graph finish(int output, const std::string& default_layer);

 private:
  std::vector<Shape> shapes(const std::vector<int>& inputs) const;

  Graph graph_;
};

}  // namespace assay
