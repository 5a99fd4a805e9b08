// TorchScript files against what PyTorch itself made of them
// (scripts/golden_torchscript.py).
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "api/error.h"
#include "graph/net.h"
#include "test/fill.h"
#include "torchscript/script.h"

namespace assay {
namespace {

const std::string kFolder = ASSAY_SOURCE_DIR "/testdata/torchscript/";

std::string read(const std::string& name) {
  std::ifstream file(kFolder + name, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

struct Case {
  nlohmann::json golden;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.golden.at("name"); }  // not all its numbers

std::vector<Case> cases() {
  std::vector<Case> all;
  const auto parsed = nlohmann::json::parse(read("golden.json"));
  for (const auto& golden : parsed.at("cases")) all.push_back({golden});
  return all;
}

at::Tensor numbers(const nlohmann::json& values) {
  return at::tensor(values.get<std::vector<double>>(), at::kDouble);
}

double largest(const at::Tensor& x) { return x.abs().max().item<double>(); }

class ScriptTest : public testing::TestWithParam<Case> {};

TEST_P(ScriptTest, LogitsAndGradientsAsPyTorch) {
  const nlohmann::json& golden = GetParam().golden;
  const std::string bytes = read(golden.at("name").get<std::string>() + ".pt");
  const auto net = net_of_script(bytes.data(), bytes.size(), {golden.at("name"), golden.at("input")});
  EXPECT_EQ(net->is_black_box(), golden.at("blackBox").get<bool>()) << net->reason();
  EXPECT_EQ(net->is_black_box(), net->layers().empty());
  std::set<std::string> names;
  for (const ParameterInfo& parameter : net->parameters()) names.insert(parameter.name);
  for (const auto& name : golden.at("parameters").get<std::vector<std::string>>()) {
    if (!name.ends_with("num_batches_tracked")) {
      EXPECT_TRUE(names.contains(name)) << name;
    }
  }
  std::vector<at::Tensor> rows;
  for (const auto& row : golden.at("logits")) rows.push_back(numbers(row));
  const at::Tensor want = at::stack(rows);
  for (const auto& [precision, tolerance] :
       {std::pair{Precision::kF32, 1e-5}, std::pair{Precision::kF64, 1e-6}}) {
    net->prepare(at::kCPU, precision);
    at::Tensor x = fill_input(*net, 2);
    const auto close = [&](const at::Tensor& logits) {
      EXPECT_LE(largest(logits.to(at::kDouble) - want), tolerance * largest(want));
    };
    close(net->forward(x));
    x = x.to(precision == Precision::kF64 ? at::kDouble : at::kFloat).requires_grad_(true);
    const at::Tensor logits = net->forward_plain(x).logits;
    close(logits.detach());
    const at::Tensor gradient =
        torch::autograd::grad({logits.select(1, 1).sum()}, {x})[0].to(at::kDouble).flatten();
    const at::Tensor sampled = gradient.slice(0, 0, std::nullopt, 37),
                     expected = numbers(golden.at("gradient"));
    EXPECT_LE(largest(sampled - expected), 1e-4 * largest(expected));
    EXPECT_NEAR(gradient.abs().sum().item<double>(), golden.at("gradientSum").get<double>(),
                1e-4 * golden.at("gradientSum").get<double>());
  }
}

INSTANTIATE_TEST_SUITE_P(Files, ScriptTest, testing::ValuesIn(cases()), [](const auto& info) {
  std::string name = info.param.golden.at("name");
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

std::string refusal(const std::string& bytes, const Shape& input = {3, 16, 16}) {
  try {
    net_of_script(bytes.data(), bytes.size(), {"own.pt", input});
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(Script, SaysWhatIsWrong) {
  const std::string whole = read("residual-traced.pt");
  for (const std::string& bytes : {std::string("PK\3\4 and nothing else"), std::string(1, 'x'),
                                   whole.substr(0, whole.size() / 2), whole.substr(1)}) {
    EXPECT_EQ(refusal(bytes).find("own.pt: not a TorchScript file"), 0u) << refusal(bytes);
  }
  EXPECT_NE(refusal(whole, {4, 16, 16}).find("own.pt: it cannot be run on [2,4,16,16]"), std::string::npos);
  EXPECT_NE(refusal(whole, {16, 16}).find("want [C,H,W] or [F]"), std::string::npos);
}

TEST(Script, ABlackBoxSaysSo) {
  const std::string bytes = read("branches-scripted.pt");
  const auto net = net_of_script(bytes.data(), bytes.size(), {"own.pt", {3, 16, 16}});
  net->prepare(at::kCPU, Precision::kF32);
  EXPECT_NE(net->reason(), "");
  try {
    net->forward_plain(fill_input(*net, 1), {"conv"});
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("it runs as a black box"), std::string::npos);
  }
  EXPECT_THROW(net->load({}), Error);
}

}  // namespace
}  // namespace assay
