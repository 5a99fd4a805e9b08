// Training at the boundary.
#include <ATen/core/grad_mode.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "api/api.h"
#include "api/net.h"
#include "train/gain_trainer.h"
#include "train/net_trainer.h"
#include "train/state.h"

using namespace assay;
using nlohmann::json;

struct tx_trainer {
  std::unique_ptr<Trainer> trainer;
};

namespace {

// Reads the fields of one JSON object; what was not asked for is an error.
class Fields {
 public:
  Fields(const json& object, std::string where) : object_(object), where_(std::move(where)) {
    if (!object.is_object()) throw invalid(where_, ": ", object.dump(), ": want an object");
  }
  void read(const char* name, double& value) {
    if (const json* field = find(name)) {
      if (!field->is_number()) complain(name, *field, "a number");
      value = *field;
    }
  }
  void read(const char* name, bool& value) {
    if (const json* field = find(name)) {
      if (!field->is_boolean()) complain(name, *field, "true or false");
      value = *field;
    }
  }
  void read(const char* name, std::string& value) {
    if (const json* field = find(name)) {
      if (!field->is_string()) complain(name, *field, "a string");
      value = *field;
    }
  }
  void read(const char* name, uint64_t& value) {
    if (const json* field = find(name)) {
      if (!field->is_number_unsigned()) complain(name, *field, "an integer >= 0");
      value = *field;
    }
  }
  void read(const char* name, int64_t& value) {
    uint64_t wide = static_cast<uint64_t>(value);
    read(name, wide);
    if (wide > INT32_MAX) throw invalid(where_, ".", name, ": ", wide, ": too large");
    value = static_cast<int64_t>(wide);
  }
  void read(const char* name, std::vector<double>& values) {
    const json* field = find(name);
    if (field == nullptr) return;
    values.clear();
    if (!field->is_array()) complain(name, *field, "a list of numbers");
    for (const json& value : *field) {
      if (!value.is_number()) complain(name, *field, "a list of numbers");
      values.push_back(value);
    }
  }
  // A part that is an object itself; nullptr: it is not there.
  const json* find(const char* name) {
    known_.insert(name);
    const auto found = object_.find(name);
    return found == object_.end() || found->is_null() ? nullptr : &*found;
  }
  void finish() const {
    for (const auto& [name, value] : object_.items()) {
      if (known_.contains(name)) continue;
      std::string all;
      for (const std::string& known : known_) all += (all.empty() ? "" : ", ") + known;
      throw invalid(where_, ": \"", name, "\": want ", all);
    }
  }

 private:
  [[noreturn]] void complain(const char* name, const json& value, const char* want) const {
    throw invalid(where_, ".", name, ": ", value.dump(), ": want ", want);
  }
  const json& object_;
  std::string where_;
  std::set<std::string> known_;
};

// The options that all trainings have.
TrainerOptions options_of(Fields& fields) {
  TrainerOptions out;
  fields.read("seed", out.seed);
  fields.read("scale", out.normalisation.scale);
  fields.read("mean", out.normalisation.mean);
  fields.read("std", out.normalisation.std);
  if (const json* augment = fields.find("augment")) {
    Fields f(*augment, "augment");
    f.read("pad", out.augment.pad);
    f.read("flip", out.augment.flip);
    f.finish();
  }
  if (const json* optimizer = fields.find("optimizer")) {
    Fields f(*optimizer, "optimizer");
    f.read("id", out.optimizer.id);
    f.read("momentum", out.optimizer.momentum);
    f.read("nesterov", out.optimizer.nesterov);
    f.read("weightDecay", out.optimizer.weight_decay);
    f.read("beta1", out.optimizer.beta1);
    f.read("beta2", out.optimizer.beta2);
    f.read("epsilon", out.optimizer.epsilon);
    f.finish();
  }
  return out;
}

std::unique_ptr<Trainer> gain_trainer(Fields& fields, at::Device device, Precision precision) {
  const TrainerOptions options = options_of(fields);
  GainOptions gain;
  std::vector<double> input;
  fields.read("input", input);
  fields.read("alpha", gain.alpha);
  fields.read("hintRate", gain.hint_rate);
  fields.read("maximumRate", gain.maximum_rate);
  fields.read("width", gain.width);
  fields.finish();
  for (const double size : input) {
    if (!(size >= 1 && size <= 65536) || size != static_cast<double>(static_cast<int64_t>(size))) {
      throw invalid("spec.input: ", size, ": want whole numbers from 1");
    }
    gain.input.push_back(static_cast<int64_t>(size));
  }
  return std::make_unique<GainTrainer>(gain, options, device, precision);
}

struct ImputerTraining {
  const char* id;
  std::unique_ptr<Trainer> (*make)(Fields& fields, at::Device device, Precision precision);
};

// The imputers that can be trained.
constexpr ImputerTraining kImputers[] = {{"gain", gain_trainer}};

// A trainer on the heap, for its handle.
tx_trainer* handle_of(std::unique_ptr<Trainer> trainer) {
  auto made = std::make_unique<tx_trainer>();
  made->trainer = std::move(trainer);
  return made.release();
}

NamedTensors state_of(const Trainer& trainer, int32_t state) {
  if (state == TX_STATE_PARAMETERS) return trainer.parameters();
  if (state == TX_STATE_OPTIMIZER) return trainer.optimizer_state();
  throw invalid("state ", state, ": want TX_STATE_PARAMETERS or TX_STATE_OPTIMIZER");
}

Trainer& trainer_of(tx_trainer* handle) { return *required(handle, "trainer")->trainer; }
const Trainer& trainer_of(const tx_trainer* handle) { return *required(handle, "trainer")->trainer; }

}  // namespace

extern "C" {

tx_status* tx_trainer_new(const tx_net* net, const char* spec, tx_device device, int32_t precision,
                          tx_trainer** trainer) {
  return guard("trainer-new", [&] {
    required(trainer, "trainer");
    const Net& from = *required(net, "net")->net;
    const json parsed = json::parse(required(spec, "spec"), nullptr, /*allow_exceptions=*/false);
    Fields fields(parsed, "spec");
    TrainerOptions options = options_of(fields);
    fields.read("labelSmoothing", options.label_smoothing);
    fields.finish();
    *trainer =
        handle_of(std::make_unique<NetTrainer>(from, options, device_of(device), precision_of(precision)));
  });
}

tx_status* tx_trainer_new_imputer(const char* spec, tx_device device, int32_t precision,
                                  tx_trainer** trainer) {
  return guard("trainer-new", [&] {
    required(trainer, "trainer");
    const json parsed = json::parse(required(spec, "spec"), nullptr, /*allow_exceptions=*/false);
    Fields fields(parsed, "spec");
    std::string id, known;
    fields.read("imputer", id);
    for (const ImputerTraining& imputer : kImputers) {
      if (id == imputer.id) {
        *trainer = handle_of(imputer.make(fields, device_of(device), precision_of(precision)));
        return;
      }
      known += concat(known.empty() ? "" : ", ", imputer.id);
    }
    throw not_found("no imputer \"", id, "\" can be trained: want one of ", known);
  });
}

tx_status* tx_trainer_data(tx_trainer* trainer, const char* part, tx_tensor examples, tx_tensor labels) {
  return guard("trainer-data", [&] {
    trainer_of(trainer).set_data(required(part, "part"), tensor_of(examples, "examples"),
                                 tensor_of(labels, "labels"));
  });
}

tx_status* tx_trainer_steps(tx_trainer* trainer, const int32_t* indices, int64_t count, int64_t batch,
                            const double* rates, int64_t steps, int64_t first, double* losses,
                            int64_t* correct, int64_t* examples) {
  return guard("trainer-steps", [&] {
    if (count < 0 || steps < 0) throw invalid(count, " indices, ", steps, " steps: want 0 or more");
    if (count > 0) required(indices, "indices");
    if (steps > 0) {
      required(rates, "rates");
      required(losses, "losses");
    }
    required(correct, "correct");
    required(examples, "examples");
    const Trainer::Steps done =
        trainer_of(trainer).steps(c10::ArrayRef<int32_t>(indices, static_cast<size_t>(count)), batch,
                                  c10::ArrayRef<double>(rates, static_cast<size_t>(steps)), first);
    std::copy(done.losses.begin(), done.losses.end(), losses);
    *correct = done.correct;
    *examples = done.examples;
  });
}

tx_status* tx_trainer_evaluate(tx_trainer* trainer, const char* part, int64_t batch, double* loss,
                               int64_t* correct, int64_t* examples) {
  return guard("trainer-evaluate", [&] {
    required(loss, "loss");
    required(correct, "correct");
    required(examples, "examples");
    const Trainer::Evaluation got = trainer_of(trainer).evaluate(required(part, "part"), batch);
    *loss = got.loss;
    *correct = got.correct;
    *examples = got.examples;
  });
}

tx_status* tx_trainer_names(const tx_trainer* trainer, int32_t state, char** text) {
  return guard("trainer-names", [&] {
    required(text, "json");
    json names = json::array();
    for (const auto& entry : state_of(trainer_of(trainer), state)) names.push_back(entry.first);
    *text = duplicate(names.dump());
  });
}

tx_status* tx_trainer_read(const tx_trainer* trainer, int32_t state, int64_t count, tx_tensor* tensors) {
  return guard("trainer-read", [&] {
    NamedTensors all = state_of(trainer_of(trainer), state);
    if (count != static_cast<int64_t>(all.size())) {
      throw invalid("count ", count, ": there are ", all.size(), " tensors");
    }
    if (count > 0) required(tensors, "tensors");
    std::vector<std::unique_ptr<at::Tensor>> handles;
    for (auto& entry : all) handles.push_back(std::make_unique<at::Tensor>(host_copy(entry.second)));
    for (size_t i = 0; i < handles.size(); ++i) tensors[i] = handles[i].release();
  });
}

tx_status* tx_trainer_write(tx_trainer* trainer, int64_t count, const char* const* names,
                            const tx_tensor* tensors, int64_t optimizer_count,
                            const char* const* optimizer_names, const tx_tensor* optimizer_tensors) {
  return guard("trainer-write", [&] {
    trainer_of(trainer).set_state(tensors_of(count, names, tensors),
                                  tensors_of(optimizer_count, optimizer_names, optimizer_tensors));
  });
}

void tx_trainer_free(tx_trainer* trainer) { delete trainer; }

}  // extern "C"
