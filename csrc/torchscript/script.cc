// Loading, checking and running TorchScript modules.
#include "torchscript/script.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/grad_mode.h>
#include <caffe2/serialize/inline_container.h>
#include <caffe2/serialize/read_adapter_interface.h>
#include <torch/csrc/jit/runtime/graph_executor.h>
#include <torch/script.h>

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

#include "api/error.h"
#include "graph/black_box.h"
#include "torchscript/walk.h"

namespace assay {
namespace {

using script::Named;

class Bytes final : public caffe2::serialize::ReadAdapterInterface {
 public:
  Bytes(const void* bytes, size_t size) : bytes_(static_cast<const char*>(bytes)), size_(size) {}
  size_t size() const override { return size_; }
  size_t read(uint64_t at, void* to, size_t n, const char*) const override {
    if (at >= size_) return 0;
    const size_t count = std::min<size_t>(n, size_ - at);
    std::memcpy(to, bytes_ + at, count);
    return count;
  }

 private:
  const char* bytes_;
  size_t size_;
};

// One printable line of what libtorch says: its last "...Error: " part, shortened.
std::string said(const std::exception& error) {
  const auto* own = dynamic_cast<const c10::Error*>(&error);
  std::string text = own != nullptr ? own->what_without_backtrace() : error.what();
  const size_t last = text.rfind("Error: ");
  if (last != std::string::npos) text.erase(0, last + 7);
  text.erase(std::min(text.find('\n'), text.size()));
  for (char& c : text) {
    if (c < ' ' || c > '~') c = '?';
  }
  if (text.size() > 200) text = text.substr(0, 200) + "...";
  return text;
}

// A file of fewer bytes, checked, takes no more memory than there is.
constexpr size_t kSmall = size_t{1} << 28;

constexpr const char* kWant = "want a file that torch.jit.save wrote";

// Throws invalid for what is no TorchScript file, saying what it is, and for one
// that unpacks to more than an honest one does.
void check_archive(const void* bytes, size_t size, const std::string& name) {
  const std::string_view text(static_cast<const char*>(bytes), size);
  if (text.starts_with("\x80\x02") || text.starts_with("\x80\x03") || text.starts_with("\x80\x04")) {
    throw invalid(name, ": it is a pickle (a state dict of an old torch.save): weights, not a program; ",
                  kWant, ", or give it as weights of a net");
  }
  if (!text.starts_with("PK\x03\x04")) throw invalid(name, ": it is no TorchScript file: ", kWant);
  std::vector<std::string> records;
  size_t unpacked = 0;
  try {
    caffe2::serialize::PyTorchStreamReader reader(std::make_shared<Bytes>(bytes, size));
    records = reader.getAllRecords();
    for (const std::string& record : records)
      unpacked += std::min(reader.getRecordSize(record), size_t{1} << 40);
  } catch (const c10::Error&) {  // its text is about the library's insides
    throw invalid(name, ": a damaged file (its archive cannot be read): ", kWant);
  }
  const auto has = [&](const char* record) {
    return std::find(records.begin(), records.end(), record) != records.end();
  };
  const auto ends = [&](std::string_view end) {
    return std::any_of(records.begin(), records.end(),
                       [&](const std::string& r) { return r.ends_with(end); });
  };
  if (ends("serialized_exported_program.json") || ends("models/model.json") || has("archive_format")) {
    throw invalid(name, ": it is of torch.export.save: scripts/export_torch.py makes a net file of it");
  }
  if (!has("constants.pkl")) {
    throw invalid(name, ": it is of torch.save (a state dict?): weights, not a program; ", kWant,
                  ", or give it as weights of a net");
  }
  if (unpacked > 10 * size + (size_t{4} << 20)) {
    throw invalid(name, ": ", size, " bytes that unpack to ", unpacked, ": ", kWant);
  }
}

torch::jit::Module load(const void* bytes, size_t size, const std::string& name) {
  try {
    check_archive(bytes, size, name);
    torch::jit::Module module = torch::jit::load(std::make_shared<Bytes>(bytes, size), at::Device(at::kCPU));
    module.eval();
    if (!module.find_method("forward")) throw invalid(name, ": its module has no forward: ", kWant);
    return module;
  } catch (const std::bad_alloc&) {
    if (size > kSmall) throw;
    throw invalid(name, ": a damaged file (it asks for more memory than there is): ", kWant);
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {  // the parser throws more than c10::Error
    throw invalid(name, ": a damaged file, or one of a newer PyTorch (", said(error), "): ", kWant);
  }
}

class ScriptBox final : public BlackBox {
 public:
  explicit ScriptBox(torch::jit::Module module) : original_(std::move(module)), running_(original_) {}

  // In the order of parameters_of.
  void load(const std::vector<at::Tensor>& state) override {
    const at::NoGradGuard no_grad;
    size_t i = 0;
    const auto take = [&](at::Tensor own) {
      if (i < state.size() && state[i].defined()) own.copy_(state[i]);
      ++i;
    };
    for (const auto& parameter : original_.named_parameters()) take(parameter.value);
    for (const auto& buffer : original_.named_buffers()) take(buffer.value);
    running_ = original_;
  }

  void to(at::Device device, at::ScalarType dtype) override {
    running_ = original_.deepcopy();
    running_.to(device, dtype);
  }

  at::Tensor forward(const at::Tensor& x) override {
    // As written, op by op: an optimiser would change the program, and with it
    // the bits, after some runs.
    const torch::jit::GraphOptimizerEnabledGuard as_written(false);
    const c10::IValue out = running_.forward({x});
    if (!out.isTensor()) throw invalid("the module returns ", out.tagKind(), ": want one tensor [N,classes]");
    at::Tensor logits = out.toTensor();
    // squeeze() and its like lose a batch of one.
    if (x.size(0) == 1 && logits.dim() == 1) logits = logits.unsqueeze(0);
    if (logits.dim() != 2 || logits.size(0) != x.size(0) || !logits.is_floating_point()) {
      throw invalid("the module makes ", at::toString(logits.scalar_type()), " ", logits.sizes(), " of ",
                    x.sizes(), ": want floats [", x.size(0), ",classes]");
    }
    return logits;
  }

 private:
  torch::jit::Module original_, running_;
};

// Two rows like normalised images, always the same.
at::Tensor probe(const Shape& input) {
  Shape shape = input;
  shape.insert(shape.begin(), 2);
  return at::randn(shape, at::detail::createCPUGenerator(20261121), at::TensorOptions(at::kFloat));
}

// What the module makes of the probe; says what is wrong where it cannot.
at::Tensor answer(BlackBox& box, const std::string& name, const Shape& input) {
  try {
    const at::Tensor logits = box.forward(probe(input));
    if (!at::allclose(logits, box.forward(probe(input)), 1e-4, 1e-6, /*equal_nan=*/true)) {
      throw invalid("the same input gives other logits each time (dropout?): trace it after model.eval()");
    }
    if (logits.size(1) < 1) throw invalid("the module makes no logits");
    return logits.clone();
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const Error& error) {
    throw Error(error.code(), concat(name, ": ", error.what()));
  } catch (const std::exception& error) {  // the interpreter throws more than c10::Error
    throw invalid(name, ": it cannot be run on [2,", c10::Join(",", input), "]: ", said(error),
                  " (is \"input\" the shape of one row?)");
  }
}

// Input, output and parameters, without a way from one to the other.
Graph outside(const Shape& input, int64_t classes, const torch::jit::Module& module) {
  Graph graph;
  graph.values.push_back({input, -1});
  graph.values.push_back({{classes}, -1});
  graph.output = 1;
  const auto note = [&](const std::string& name, const at::Tensor& tensor, bool buffer) {
    graph.parameters.push_back(
        {name, tensor.sizes().vec(), buffer, /*optional=*/!tensor.is_floating_point()});
  };
  for (const auto& parameter : module.named_parameters()) note(parameter.name, parameter.value, false);
  for (const auto& buffer : module.named_buffers()) note(buffer.name, buffer.value, true);
  return graph;
}

std::unique_ptr<Net> imported(const NetEntry& entry, const torch::jit::Module& module,
                              const at::Tensor& want) {
  script::Target::Finished made = script::import_module(module, entry.input);
  auto net = std::make_unique<Net>(entry, std::move(made.graph));
  net->load(made.state);
  net->prepare(at::kCPU, Precision::kF32);
  const at::Tensor got = net->forward_plain(probe(entry.input)).logits;
  if (got.sizes() != want.sizes()) throw script::none("read as a network it makes ", got.sizes());
  const double off = (got - want).abs().max().item<double>(), largest = want.abs().max().item<double>();
  if (!(off <= 1e-4 * largest)) {
    throw script::none("read as a network its logits would be off by ", off, " where the largest is ",
                       largest);
  }
  net->unprepare();
  return net;
}

}  // namespace

std::unique_ptr<Net> net_of_script(const void* bytes, size_t size, const ScriptOptions& options) {
  if (options.input.size() != 1 && options.input.size() != 3) {
    throw unsupported(options.name, ": input ", at::IntArrayRef(options.input), ": want [C,H,W] or [F]");
  }
  torch::jit::Module module = load(bytes, size, options.name);
  const at::NoGradGuard no_grad;
  for (const auto& parameter : module.named_parameters()) {
    if (parameter.value.scalar_type() == at::kFloat) continue;
    if (parameter.value.is_floating_point()) module.to(at::kFloat);
    break;
  }
  ScriptBox box(module);
  const at::Tensor want = answer(box, options.name, options.input).to(at::kFloat);
  NetEntry entry;
  entry.id = options.name;
  entry.summary = "from a TorchScript file";
  entry.preset = options.preset;
  entry.input = options.input;
  entry.classes = want.size(1);
  std::string reason;
  try {
    return imported(entry, module, want);
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& error) {
    reason = dynamic_cast<const c10::Error*>(&error) != nullptr ? said(error) : error.what();
  }
  Graph graph = outside(entry.input, entry.classes, module);
  return std::make_unique<Net>(std::move(entry), std::move(graph),
                               std::make_unique<ScriptBox>(std::move(module)), reason);
}

}  // namespace assay
