// TorchScript files against what PyTorch itself made of them
// (scripts/golden_torchscript.py).
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <iterator>
#include <limits>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "api/error.h"
#include "graph/net.h"
#include "test/fill.h"
#include "test/mutate.h"
#include "torchscript/script.h"
#include "torchx.h"

namespace assay {
namespace {

std::string read(const std::string& name) {
  std::ifstream file(ASSAY_SOURCE_DIR "/testdata/torchscript/" + name, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

struct Case {
  nlohmann::json golden;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.golden.at("file"); }  // not all its numbers

std::vector<Case> cases() {
  std::vector<Case> all;
  const auto parsed = nlohmann::json::parse(read("golden.json"));
  for (const auto& golden : parsed.at("files")) all.push_back({golden});
  return all;
}

std::unique_ptr<Net> net_of(const std::string& file, const Shape& input) {
  const std::string bytes = read(file);
  return net_of_script(bytes.data(), bytes.size(), {.name = file, .input = input});
}

at::Tensor numbers(const nlohmann::json& values) {
  return at::tensor(values.get<std::vector<double>>(), at::kDouble);
}

double largest(const at::Tensor& x) { return x.abs().max().item<double>(); }

std::pair<int32_t, std::string> error_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    return {error.code(), error.what()};
  }
  return {0, "no error"};
}

class ScriptTest : public testing::TestWithParam<Case> {
 protected:
  const nlohmann::json& golden = GetParam().golden;
  std::shared_ptr<Net> net = shared(golden);

  // Read once for all tests.
  static std::shared_ptr<Net> shared(const nlohmann::json& golden) {
    static std::map<std::string, std::shared_ptr<Net>> nets;
    std::shared_ptr<Net>& net = nets[golden.at("file")];
    if (net == nullptr) net = net_of(golden.at("file"), golden.at("input"));
    return net;
  }
};

TEST_P(ScriptTest, LogitsAndGradientsAsPyTorch) {
  const at::Tensor want = numbers(golden.at("logits")).view({2, -1}),
                   gradient = numbers(golden.at("gradient"));
  const double sum = golden.at("gradientSum");
  ASSERT_TRUE(net->loaded());
  EXPECT_EQ(net->classes(), want.size(1));
  // PyTorch computed in double, with parameters that are f32.
  for (const auto& [precision, tolerance] : {std::pair{Precision::kF32, 1e-5}, {Precision::kF64, 1e-7}}) {
    net->prepare(at::kCPU, precision);
    at::Tensor x = fill_input(*net, 2);
    const at::Tensor fast = net->forward(x);
    EXPECT_EQ(fast.scalar_type(), precision == Precision::kF64 ? at::kDouble : at::kFloat);
    EXPECT_LE(largest(fast - want), tolerance * largest(want));
    x = x.to(fast.scalar_type()).requires_grad_(true);
    const at::Tensor logits = net->forward_plain(x).logits;
    EXPECT_LE(largest(logits.detach() - want), tolerance * largest(want));
    const at::Tensor got =
        torch::autograd::grad({logits.select(1, 1).sum()}, {x})[0].to(at::kDouble).flatten();
    EXPECT_LE(largest(got.slice(0, 0, std::nullopt, 13) - gradient), 10 * tolerance * largest(gradient));
    EXPECT_NEAR(got.abs().sum().item<double>(), sum, 10 * tolerance * sum);
  }
}

TEST_P(ScriptTest, SaysWhatItIs) {
  const std::string reason = golden.at("blackBox");
  EXPECT_EQ(net->is_black_box(), !reason.empty()) << net->reason();
  EXPECT_NE(net->reason().find(reason), std::string::npos) << net->reason();
  EXPECT_EQ(net->parameter_count(), golden.at("parameterCount").get<int64_t>());
  std::set<std::string> names, layers;
  for (const ParameterInfo& parameter : net->parameters()) names.insert(parameter.name);
  EXPECT_EQ(names, golden.at("names").get<std::set<std::string>>());
  for (const LayerInfo& layer : net->layers()) layers.insert(layer.name);
  EXPECT_EQ(layers.size(), net->layers().size()) << "names come twice";
  if (net->is_black_box()) {
    EXPECT_TRUE(layers.empty());
    return;
  }
  for (const auto& module : golden.at("modules").get<std::vector<std::string>>()) {
    EXPECT_TRUE(layers.contains(module)) << module;
  }
}

// One row, three rows, other neighbours: the rows' axis goes where the program moves it.
TEST_P(ScriptTest, AnyNumberOfRows) {
  if (net->is_black_box()) return;  // its own affair
  net->prepare(at::kCPU, Precision::kF32);
  const at::Tensor x = fill_input(*net, 2), want = net->forward(x);
  EXPECT_LE(largest(net->forward(x.slice(0, 1, 2)) - want.slice(0, 1, 2)), 1e-5 * largest(want));
  const at::Tensor three = at::cat({x.slice(0, 1, 2), x});
  EXPECT_LE(largest(net->forward(three).slice(0, 1, 3) - want), 1e-5 * largest(want));
}

TEST_P(ScriptTest, TakesOtherWeights) {
  net->prepare(at::kCPU, Precision::kF32);
  const at::Tensor x = fill_input(*net, 2), before = net->forward(x);
  std::vector<std::pair<std::string, at::Tensor>> state;
  for (const ParameterInfo& p : net->parameters()) {
    at::Tensor value = fill_parameter(p.name, p.shape);
    if (!p.buffer && p.shape.size() == 2) value = value * 0.5;
    state.emplace_back(p.name, value);
  }
  net->load(state);
  net->prepare(at::kCPU, Precision::kF32);
  EXPECT_GT(largest(net->forward(x) - before), 1e-3 * largest(before));
  for (auto& [name, value] : state) value = fill_parameter(name, value.sizes());
  net->load(state);
  net->prepare(at::kCPU, Precision::kF32);
  EXPECT_LE(largest(net->forward(x) - before), 1e-5 * largest(before));
  state.pop_back();
  state.emplace_back("nobody.weight", at::zeros({1}));
  const auto [code, message] = error_of([&] { net->load(state); });
  EXPECT_EQ(code, TX_INVALID);
  EXPECT_NE(message.find("nobody.weight is not a parameter"), std::string::npos) << message;
}

TEST_P(ScriptTest, ANotFiniteRowIsMarked) {
  net->prepare(at::kCPU, Precision::kF32);
  at::Tensor x = fill_input(*net, 2);
  x[0].flatten()[0] = std::numeric_limits<float>::quiet_NaN();
  if (golden.at("file") == "halving-scripted.pt") return;  // its loop looks at all rows
  const at::Tensor logits = net->forward(x);
  EXPECT_TRUE(logits[0].isnan().all().item<bool>());
  EXPECT_TRUE(logits[1].isfinite().all().item<bool>());
}

INSTANTIATE_TEST_SUITE_P(Files, ScriptTest, testing::ValuesIn(cases()), [](const auto& info) {
  std::string name = info.param.golden.at("file");
  name = name.substr(0, name.rfind('.'));
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

// ---- layers

TEST(Script, LayersAreCalledAsModules) {
  for (const char* file : {"resnet-traced.pt", "resnet-scripted.pt"}) {
    const auto net = net_of(file, {3, 12, 12});
    EXPECT_EQ(net->default_layer(), "layer2") << file;
    net->prepare(at::kCPU, Precision::kF32);
    const auto tapped =
        net->forward_plain(fill_input(*net, 2), {"layer2", "layer2.1.relu_2", "layer2.0", "layer2.1.add"});
    EXPECT_TRUE(at::equal(tapped.taps[0], tapped.taps[1]));
    EXPECT_EQ(tapped.taps[2].sizes(), (std::vector<int64_t>{2, 6, 3, 3}));
    EXPECT_TRUE(at::equal(at::relu(tapped.taps[3]), tapped.taps[0]));
  }
}

TEST(Script, ABlackBoxHasNoLayers) {
  const auto net = net_of("sums-traced.pt", {6});
  net->prepare(at::kCPU, Precision::kF32);
  const auto [code, message] = error_of([&] { net->forward_plain(fill_input(*net, 1), {"fc"}); });
  EXPECT_EQ(code, TX_UNSUPPORTED);
  EXPECT_NE(message.find("layer \"fc\": it runs as a black box"), std::string::npos) << message;
  EXPECT_NE(message.find("aten::cumsum has no counterpart"), std::string::npos) << message;
}

// ---- what is none

TEST(Script, SaysWhatIsWrong) {
  const std::string whole = read("resnet-traced.pt");
  struct Bad {
    std::string bytes;
    Shape input;
    int32_t code;
    const char* says;
  };
  const std::vector<Bad> all = {
      {"", {6}, TX_INVALID, "it is no TorchScript file: want a file that torch.jit.save wrote"},
      {"PK\3\4 and nothing else", {6}, TX_INVALID, "a damaged file"},
      {whole.substr(1), {6}, TX_INVALID, "it is no TorchScript file"},
      {whole.substr(0, whole.size() / 2), {6}, TX_INVALID, "a damaged file"},
      {read("state.pth"), {6}, TX_INVALID, "it is of torch.save"},
      {read("legacy.pth"), {6}, TX_INVALID, "it is a pickle"},
      {read("exported.pt2"), {6}, TX_INVALID, "it is of torch.export.save: scripts/export_torch.py"},
      {whole, {4, 12, 12}, TX_INVALID, "it cannot be run on [2,4,12,12]"},
      {whole, {12, 12}, TX_UNSUPPORTED, "want [C,H,W] or [F]"},
      {read("map.pt"), {3, 12, 12}, TX_INVALID, "want floats [2,classes]"},
      {read("masked.pt"), {6}, TX_INVALID, "trace it after model.eval()"},
  };
  for (const Bad& bad : all) {
    const auto [code, message] = error_of(
        [&] { net_of_script(bad.bytes.data(), bad.bytes.size(), {.name = "own.pt", .input = bad.input}); });
    EXPECT_EQ(code, bad.code) << message;
    EXPECT_EQ(message.find("own.pt: "), 0u) << message;
    EXPECT_NE(message.find(bad.says), std::string::npos) << message;
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
    EXPECT_LE(message.size(), 400u) << message;
  }
}

// Damaged files are refused, or are files still; they end nothing.
TEST(Script, DamagedFiles) {
  for (const char* file : {"mlp-traced.pt", "sums-traced.pt"}) {
    const std::string whole = read(file);
    mutate::Generator g(7);
    for (int i = 0; i < 100; ++i) {
      std::string bytes = whole;
      mutate::raw(g, bytes);
      const auto [code, message] =
          error_of([&] { net_of_script(bytes.data(), bytes.size(), {.name = "own.pt", .input = {6}}); });
      EXPECT_TRUE(code == 0 || code == TX_INVALID) << message;
    }
  }
}

}  // namespace
}  // namespace assay
