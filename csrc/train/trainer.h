// Training: data and what is trained, on a device; steps by autograd over a graph's own ops.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "graph/net.h"
#include "train/data.h"
#include "train/optimizer.h"
#include "train/trained_graph.h"

namespace assay {

struct TrainerOptions {
  uint64_t seed = 0;  // of everything random: parameters, augmentation, dropout
  OptimizerOptions optimizer;
  double label_smoothing = 0;  // of classifiers, [0,1): PyTorch's CrossEntropyLoss, in steps
  Augment augment;             // of part "train" in steps
  Normalisation normalisation;
};

// What all trainings do alike. Not to be used by two threads at once.
class Trainer {
 public:
  virtual ~Trainer() = default;
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  // Part "train" is what steps see; any part can be evaluated. See make_part.
  virtual void set_data(const std::string& part, const at::Tensor& examples, const at::Tensor& labels);

  struct Steps {
    std::vector<double> losses;  // one mean a step
    int64_t correct = 0, examples = 0;
  };
  // One step a rate: step i takes indices [i batch, (i+1) batch) of part
  // "train", the last one what is left, and counts as step first + i. What was
  // not finite is in the losses. After an error some of the steps may have been
  // made, the last one in part.
  Steps steps(c10::ArrayRef<int32_t> indices, int64_t batch, c10::ArrayRef<double> rates, int64_t first);

  struct Evaluation {
    double loss = 0;  // mean over examples
    int64_t correct = 0, examples = 0;
  };
  // In inference mode.
  Evaluation evaluate(const std::string& part, int64_t batch);

  // See TrainedGraph: f64 at that precision, else f32.
  virtual NamedTensors parameters() const = 0;
  virtual NamedTensors optimizer_state() const = 0;
  // Takes copies. Names and shapes as above; num_batches_tracked and what is
  // not used may be missing. An empty optimiser state is that of a
  // new optimiser. Throws invalid and leaves all as it was.
  virtual void set_state(const NamedTensors& parameters, const NamedTensors& optimizer) = 0;

 protected:
  // input, classes: of the examples. Throws invalid or unsupported.
  Trainer(Shape input, int64_t classes, const TrainerOptions& options, at::Device device,
          Precision precision);

  // Takes a step on places [begin, begin+n) of a call's examples; puts the mean loss into
  // loss (f64, no axes) and adds to correct (i64, no axes), both on the device.
  virtual void step(const Loader& loader, int64_t begin, int64_t n, double rate, int64_t number,
                    at::Tensor& loss, at::Tensor& correct) = 0;
  // Adds what evaluation finds of those places; losses are summed.
  virtual void judge(const Loader& loader, int64_t begin, int64_t n, at::Tensor& loss,
                     at::Tensor& correct) = 0;
  // How many predictions are made of an example.
  virtual int64_t predictions() const { return 1; }

  const TrainerOptions& options() const { return options_; }
  at::Device device() const { return device_; }
  Precision precision() const { return precision_; }
  const Shape& input() const { return input_; }
  // Throws not-found where it was not given.
  const Part& part(const std::string& name) const;

 private:
  Loader loader(const Part& part, const Augment& augment) const;

  Shape input_;
  int64_t classes_;
  TrainerOptions options_;
  at::Device device_;
  Precision precision_;
  std::map<std::string, Part> parts_;
};

}  // namespace assay
