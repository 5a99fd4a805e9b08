// Loading, checking and running TorchScript modules.
#include "torchscript/script.h"

#include <ATen/core/grad_mode.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/passes/freeze_module.h>
#include <torch/script.h>

#include <istream>
#include <streambuf>
#include <utility>
#include <vector>

#include "api/error.h"
#include "graph/black_box.h"
#include "torchscript/import.h"

namespace assay {
namespace {

using Named = std::vector<std::pair<std::string, at::Tensor>>;

// A stream over memory that is not its own.
class Bytes : public std::streambuf {
 public:
  Bytes(const void* bytes, size_t size) {
    char* begin = const_cast<char*>(static_cast<const char*>(bytes));  // streambuf wants it so; it only reads
    setg(begin, begin, begin + size);
  }

 protected:
  pos_type seekoff(off_type offset, std::ios_base::seekdir from, std::ios_base::openmode) override {
    char* base = from == std::ios_base::beg ? eback() : from == std::ios_base::cur ? gptr() : egptr();
    if (offset < eback() - base || offset > egptr() - base) return pos_type(off_type(-1));
    setg(eback(), base + offset, egptr());
    return pos_type(gptr() - eback());
  }
  pos_type seekpos(pos_type position, std::ios_base::openmode which) override {
    return seekoff(off_type(position), std::ios_base::beg, which);
  }
};

torch::jit::Module load(const void* bytes, size_t size, const std::string& name) {
  Bytes buffer(bytes, size);
  std::istream stream(&buffer);
  try {
    torch::jit::Module module = torch::jit::load(stream, at::Device(at::kCPU));
    module.eval();
    return module;
  } catch (const c10::Error&) {
    throw invalid(name,
                  ": not a TorchScript file: want one that torch.jit.save wrote (a state dict goes with "
                  "--weights; scripts/export_torch.py takes models and what torch.export saved)");
  }
}

Named named_tensors(const torch::jit::Module& module) {
  Named all;
  for (const auto& parameter : module.named_parameters()) all.emplace_back(parameter.name, parameter.value);
  for (const auto& buffer : module.named_buffers()) all.emplace_back(buffer.name, buffer.value);
  return all;
}

class ScriptBox final : public BlackBox {
 public:
  explicit ScriptBox(torch::jit::Module module) : original_(std::move(module)), running_(original_) {}

  void to(at::Device device, at::ScalarType dtype) override {
    running_ = original_.deepcopy();
    running_.to(device, dtype);
  }
  at::Tensor forward(const at::Tensor& x) override {
    const c10::IValue out = running_.forward({x});
    if (!out.isTensor()) throw invalid("the module returns no tensor: want [N,classes]");
    return out.toTensor();
  }

 private:
  torch::jit::Module original_, running_;
};

// Two rows of numbers that look like normalised images, always the same.
at::Tensor probe(const Shape& input) {
  std::vector<int64_t> shape = input;
  shape.insert(shape.begin(), 2);
  const int64_t count = c10::multiply_integers(shape);
  return at::sin(at::arange(count, at::kDouble).mul_(0.7311) +
                 at::sin(at::arange(count, at::kDouble).mul_(0.00917)).mul_(3))
      .mul_(1.4)
      .to(at::kFloat)
      .view(shape);
}

// What the module makes of the probe; says what is wrong where it cannot.
at::Tensor asked(ScriptBox& box, const std::string& name, const Shape& input) {
  at::Tensor logits;
  try {
    logits = box.forward(probe(input));
  } catch (const Error&) {
    throw;
  } catch (const c10::Error& error) {
    throw invalid(name, ": it cannot be run on [2,", c10::Join(",", input),
                  "]: ", error.what_without_backtrace());
  } catch (const std::exception& error) {  // the interpreter's own: the script's lines, then the error
    const std::string text = error.what();
    throw invalid(name, ": it cannot be run on [2,", c10::Join(",", input), "]: ",
                  text.substr(text.rfind("Error: ") == std::string::npos ? 0 : text.rfind("Error: ") + 7));
  }
  if (logits.dim() != 2 || logits.size(0) != 2 || !logits.is_floating_point()) {
    throw invalid(name, ": it makes ", logits.sizes(), " of [2,", c10::Join(",", input),
                  "]: want [2,classes]");
  }
  return logits;
}

Graph outside(const Shape& input, int64_t classes, const Named& named) {
  Graph graph;
  graph.values.push_back({input, -1});
  graph.values.push_back({{classes}, -1});
  graph.output = 1;
  for (const auto& [name, tensor] : named) {
    graph.parameters.push_back({name, tensor.sizes().vec(), !tensor.requires_grad(), false});
  }
  return graph;
}

}  // namespace

std::unique_ptr<Net> net_of_script(const void* bytes, size_t size, const ScriptOptions& options) {
  if (options.input.size() != 1 && options.input.size() != 3) {
    throw invalid(options.name, ": input ", at::IntArrayRef(options.input), ": want [C,H,W] or [F]");
  }
  const at::NoGradGuard no_grad;
  torch::jit::Module module = load(bytes, size, options.name);
  const Named named = named_tensors(module);
  ScriptBox box(module);
  const at::Tensor want = asked(box, options.name, options.input);
  NetEntry entry;
  entry.id = options.name;
  entry.preset = options.preset;
  entry.input = options.input;
  entry.classes = want.size(1);
  std::string reason;
  try {
    Imported imported =
        import_script(torch::jit::freeze_module(module), named_tensors(module), options.input);
    auto net = std::make_unique<Net>(entry, std::move(imported.graph));
    net->load(imported.state);
    net->prepare(at::kCPU, Precision::kF32);
    const at::Tensor got = net->forward_plain(probe(options.input)).logits;
    const double off = (got - want).abs().max().item<double>();
    if (!(off <= 1e-4 * want.abs().max().item<double>())) {
      throw NoCounterpart(concat("read as a network its logits are off by ", off));
    }
    net->unprepare();
    return net;
  } catch (const NoCounterpart& error) {
    reason = error.what();
  } catch (const Error& error) {
    reason = error.what();
  } catch (const c10::Error& error) {
    reason = error.what_without_backtrace();
  }
  return std::make_unique<Net>(entry, outside(options.input, entry.classes, named),
                               std::make_unique<ScriptBox>(std::move(module)), reason);
}

}  // namespace assay
