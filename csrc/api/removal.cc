// Removal at the boundary: rank, remove, impute, look.
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <nlohmann/json.hpp>
#include <vector>

#include "api/api.h"
#include "api/generator.h"
#include "api/net.h"
#include "attribution/evaluator.h"
#include "graph/json.h"
#include "graph/kernels.h"
#include "removal/imputer.h"
#include "removal/ranking.h"

namespace assay {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// For every row: whether it holds a NaN or an infinity, which nets may hide.
std::vector<bool> not_finite(const at::Tensor& rows) {
  if (rows.is_cpu() && rows.scalar_type() == at::kFloat) return rows_not_finite(rows.contiguous());
  const at::Tensor marks = at::isnan(finite_mark(rows)).to(at::kCPU).contiguous();
  const bool* const begin = marks.const_data_ptr<bool>();
  return std::vector<bool>(begin, begin + marks.numel());
}

struct Sizes {
  int64_t images, features, height, width;
};

// Checks rows against the images and the classes of the net.
std::vector<RemovalRow> checked_rows(const tx_removal& what, const Sizes& size) {
  std::vector<RemovalRow> rows(static_cast<size_t>(what.rows));
  for (size_t r = 0; r < rows.size(); ++r) {
    const tx_removal_row& row = what.row[r];
    if (row.image < 0 || row.image >= size.images) {
      throw invalid("row[", r, "].image is ", row.image, ": want 0..", size.images - 1);
    }
    if (row.removed < 0 || row.removed > size.features) {
      throw invalid("row[", r, "].removed is ", row.removed, ": want 0..", size.features);
    }
    rows[r] = {row.image, row.removed, row.least != 0};
  }
  return rows;
}

}  // namespace
}  // namespace assay

using namespace assay;

extern "C" {

tx_status* tx_generator_new(int64_t count, const char* const* names, const tx_tensor* tensors,
                            tx_device device, int32_t precision, tx_generator** generator) {
  return guard("generator-new", [&] {
    required(generator, "generator");
    *generator = new tx_generator{std::make_shared<Generator>(tensors_of(count, names, tensors),
                                                              device_of(device), precision_of(precision))};
  });
}

void tx_generator_free(tx_generator* generator) { delete generator; }

tx_status* tx_remove(tx_net* handle, tx_tensor images, const tx_removal* removal,
                     const tx_removal_result* result, tx_tensor* inputs) {
  return guard("remove", [&] {
    const Net& net = *required(handle, "net")->net;
    const tx_removal& what = *required(removal, "removal");
    const tx_removal_result& to = *required(result, "result");
    if (what.rows < 1) throw invalid("rows is ", what.rows, ": want at least 1");
    if (what.targets_each < 0) throw invalid("targets_each is ", what.targets_each, ": want at least 0");
    required(what.row, "row");
    required(to.classes, "classes");
    if (what.targets_each > 0) {
      required(what.targets, "targets");
      required(to.probabilities, "probabilities");
    }
    if (!net.prepared()) throw invalid("net ", net.id(), ": run before prepare");
    at::NoGradGuard no_grad;
    const at::Tensor& given = tensor_of(images, "images");
    if (!given.is_floating_point() || given.dim() < 2 || given.sizes().slice(1) != net.input_shape() ||
        given.size(0) < 1) {
      throw invalid("images ", given.sizes(), ": want floats [N,", c10::Join(",", net.input_shape()),
                    "], N >= 1");
    }
    const at::Tensor x =
        given.to(net.device(), net.precision() == Precision::kF64 ? at::kDouble : at::kFloat).contiguous();
    Sizes size{x.size(0), x.size(-1), 1, x.size(-1)};
    if (x.dim() == 4) size = {x.size(0), x.size(2) * x.size(3), x.size(2), x.size(3)};
    const std::vector<RemovalRow> rows = checked_rows(what, size);
    for (int64_t i = 0; i < size.images * what.targets_each; ++i) {
      if (what.targets[i] < 0 || what.targets[i] >= net.classes()) {
        throw invalid("targets[", i, "] is ", what.targets[i], ": the net has classes 0..",
                      net.classes() - 1);
      }
    }
    const Ties ties = ties_of(required(what.ties, "ties"));
    if (ties != Ties::kIndex) required(what.tie_keys, "tie_keys");

    Clock::time_point start = Clock::now();
    double imputing = 0, running = 0;
    std::vector<std::vector<int32_t>> rankings(static_cast<size_t>(size.images));
    at::parallel_for(0, size.images, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        rankings[static_cast<size_t>(i)] =
            ranked(what.maps == nullptr ? nullptr : what.maps + i * size.features, size.features, ties,
                   ties == Ties::kIndex ? 0 : what.tie_keys[i]);
      }
    });
    ImputerInput input;
    input.images = x;
    const size_t channels = x.dim() == 4 ? static_cast<size_t>(x.size(1)) : 0;
    if (what.mean != nullptr) input.mean.assign(what.mean, what.mean + channels);
    if (what.std != nullptr) input.std.assign(what.std, what.std + channels);
    if (what.dataset_mean != nullptr)
      input.dataset_mean.assign(what.dataset_mean, what.dataset_mean + x.size(1));
    input.keys = what.noise_keys;
    if (what.generator != nullptr) input.generator = what.generator->generator;
    // For patch-mean: every pixel is a patch of its own.
    std::vector<int32_t> own(static_cast<size_t>(size.features));
    for (size_t i = 0; i < own.size(); ++i) own[i] = static_cast<int32_t>(i);
    input.features = static_cast<int32_t>(size.features);
    input.feature_map = own.data();
    const auto imputer = make_imputer(parse_json(required(what.imputer, "imputer"), "imputer"), input);
    imputing += seconds_since(start);

    Evaluator run(net, what.batch);
    std::vector<at::Tensor> seen;
    for (int64_t begin = 0; begin < what.rows; begin += what.batch) {
      const int64_t count = std::min(what.batch, what.rows - begin);
      start = Clock::now();
      const std::vector<RemovalRow> some(rows.begin() + begin, rows.begin() + begin + count);
      std::vector<int64_t> which;
      for (const RemovalRow& row : some) which.push_back(row.image);
      at::Tensor removed = removed_by(rankings, some, size.features);
      if (to.variations != nullptr) {
        for (int64_t r = 0; r < count; ++r) {
          to.variations[begin + r] = x.dim() == 4
                                         ? mask_variation(removed.const_data_ptr<bool>() + r * size.features,
                                                          size.height, size.width)
                                         : 0;
        }
      }
      if (x.dim() == 4) removed = removed.view({count, size.height, size.width});
      if (to.iterations != nullptr) std::fill_n(to.iterations + begin, count, 0);
      const at::Tensor rest = imputer->fill(which, removed.to(x.device()),
                                            to.iterations == nullptr ? nullptr : to.iterations + begin);
      imputing += seconds_since(start);
      start = Clock::now();
      const at::Tensor logits = run.logits(rest);
      at::Tensor probabilities = at::softmax(logits.to(at::kDouble), 1).to(at::kCPU).contiguous();
      const std::vector<bool> broken = not_finite(rest);
      for (int64_t r = 0; r < count; ++r) {
        if (broken[static_cast<size_t>(r)]) probabilities[r].fill_(std::numeric_limits<double>::quiet_NaN());
      }
      const at::Tensor best = at::argmax(at::nan_to_num(probabilities, 0), 1).contiguous();
      for (int64_t r = 0; r < count; ++r) {
        to.classes[begin + r] = static_cast<int32_t>(best.const_data_ptr<int64_t>()[r]);
        for (int64_t k = 0; k < what.targets_each; ++k) {
          const int64_t target = what.targets[which[static_cast<size_t>(r)] * what.targets_each + k];
          to.probabilities[(begin + r) * what.targets_each + k] =
              probabilities.const_data_ptr<double>()[r * net.classes() + target];
        }
      }
      running += seconds_since(start);
      if (inputs != nullptr) seen.push_back(rest.to(at::kCPU));
    }
    if (to.seconds != nullptr) {
      to.seconds[0] = imputing;
      to.seconds[1] = running;
    }
    if (inputs != nullptr) *inputs = handle_of(at::cat(seen).contiguous());
  });
}

}  // extern "C"
