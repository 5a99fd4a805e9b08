#include "attribution/segments.h"

#include <ATen/Parallel.h>

#include <utility>

#include "api/error.h"
#include "attribution/slic.h"
#include "removal/imputer.h"

namespace assay {
namespace {

// reference_of, with the features of each row for an imputer that wants them.
at::Tensor baseline_of(const Context& context, const Explained& rows, const Segments& segments,
                       const std::string& imputer) {
  ImputerInput input;
  input.mean = context.mean;
  input.std = context.std;
  std::vector<at::Tensor> parts;
  const int64_t step = segments.shared() ? rows.size() : 1;
  for (int64_t r = 0; r < rows.size(); r += step) {
    input.images = rows.x.narrow(0, r, step);
    input.keys = rows.keys.data() + r;
    input.features = segments.counts[static_cast<size_t>(segments.shared() ? 0 : r)];
    input.feature_map = segments.map(r).data();
    parts.push_back(make_reference({{"id", imputer}}, input));
  }
  return parts.size() == 1 ? parts[0] : at::cat(parts);
}

Segments superpixels(const Context& context, const Explained& rows, const Parameters& parameters) {
  const at::Tensor colours = slic_colours(rows.x, context.mean, context.std);
  std::vector<Superpixels> made(static_cast<size_t>(rows.size()));
  at::parallel_for(0, rows.size(), 1, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      made[static_cast<size_t>(r)] =
          slic(colours[r], parameters.integer("superpixels"), parameters.number("compactness"));
    }
  });
  Segments out;
  for (Superpixels& one : made) {
    out.maps.push_back(std::move(one.map));
    out.counts.push_back(one.count);
  }
  return out;
}

}  // namespace

Segments segments_of(Context& context, const Explained& rows, const Parameters& parameters) {
  if (parameters.text("segments") == "slic") {
    if (rows.is_table())
      throw unsupported("segments slic: a table has no superpixels, its features are columns");
    if (context.feature_map == nullptr) return superpixels(context, rows, parameters);
    context.warn("segments slic: not used, features were given");
  }
  const Features features = features_of(context, rows, parameters.integer("edge"));
  const at::Tensor map = features.map.to(at::kCPU, at::kInt).contiguous();
  const int32_t* values = map.const_data_ptr<int32_t>();
  return {.maps = {std::vector<int32_t>(values, values + map.numel())},
          .counts = {static_cast<int32_t>(features.count)}};
}

nlohmann::json segment_parameters(const nlohmann::json& more) {
  nlohmann::json all = {
      {{"name", "edge"},
       {"type", "int"},
       {"default", 7},
       {"minimum", 1},
       {"summary",
        "features: patches along an edge of the image, where no feature map is "
        "given; a table's are its columns"}},
      {{"name", "segments"},
       {"type", "string"},
       {"default", "grid"},
       {"choices", {"grid", "slic"}},
       {"summary", "features of images: patches, or superpixels by SLIC (Achanta et al. 2012)"}},
      {{"name", "superpixels"},
       {"type", "int"},
       {"default", 50},
       {"minimum", 1},
       {"summary", "slic: about how many an image"}},
      {{"name", "compactness"},
       {"type", "float"},
       {"default", 10.0},
       {"minimum", 1e-3},
       {"summary", "slic: weight of distance against colour (CIELAB); the authors: 1 to 40"}},
      baseline_parameter(/*by_segment=*/true),
      output_parameter()};
  for (const nlohmann::json& one : more) all.push_back(one);
  return all;
}

Coalitions::Coalitions(Context& context, const Explained& rows, const Parameters& parameters)
    : context_(context),
      rows_(rows),
      output_(output_of(parameters.text("output"))),
      segments_(segments_of(context, rows, parameters)),
      baseline_(baseline_of(context, rows, segments_, parameters.text("baseline"))) {
  const int32_t channels = rows.is_table() ? 0 : static_cast<int32_t>(rows.x.size(1));
  const int32_t height = rows.is_table() ? 1 : static_cast<int32_t>(rows.x.size(2));
  const int32_t width = static_cast<int32_t>(rows.x.size(-1));
  const int32_t slots = segments_.shared() ? static_cast<int32_t>(rows.size()) : 1;
  scenes_.reserve(segments_.maps.size());
  for (size_t m = 0; m < segments_.maps.size(); ++m) {
    scenes_.emplace_back(rows.x.device(), slots, channels, height, width, segments_.counts[m],
                         segments_.maps[m].data());
    for (int32_t s = 0; s < slots; ++s) {
      const int64_t row = segments_.shared() ? s : static_cast<int64_t>(m);
      scenes_[m].put(s, rows.x[row], baseline_[row]);
    }
  }
}

at::Tensor Coalitions::inputs(const Block& block, const Absent& absent) const {
  std::vector<at::Tensor> parts;
  // Runs of samples of one scene: all of the block where one map serves all rows.
  for (int64_t begin = 0, end; begin < block.count(); begin = end) {
    const int64_t row = block.row[static_cast<size_t>(begin)];
    end = begin;
    while (end < block.count() && (segments_.shared() || block.row[static_cast<size_t>(end)] == row)) ++end;
    const Scene& scene = scenes_[segments_.shared() ? 0 : static_cast<size_t>(row)];
    std::vector<uint64_t> words(static_cast<size_t>((end - begin) * scene.words()), 0);
    std::vector<int32_t> slots;
    for (int64_t k = begin; k < end; ++k) {
      const int64_t of = block.row[static_cast<size_t>(k)];
      slots.push_back(segments_.shared() ? static_cast<int32_t>(of) : 0);
      absent(of, block.sample[static_cast<size_t>(k)], words.data() + (k - begin) * scene.words());
    }
    parts.push_back(scene.expand(end - begin, end - begin, slots.data(), words.data()));
  }
  return parts.size() == 1 ? parts[0] : at::cat(parts);
}

std::vector<std::vector<double>> Coalitions::outputs(const std::vector<int64_t>& samples,
                                                     const Absent& absent) {
  return run_samples(context_, rows_, samples, output_,
                     [&](const Block& block) { return inputs(block, absent); });
}

at::Tensor Coalitions::maps(const std::vector<std::vector<double>>& values) const {
  std::vector<std::vector<double>> pixels;
  for (int64_t r = 0; r < rows_.size(); ++r) {
    std::vector<double>& row = pixels.emplace_back();
    for (int32_t f : segments_.map(r)) row.push_back(values[static_cast<size_t>(r)][static_cast<size_t>(f)]);
  }
  return maps_of(rows_, pixels);
}

}  // namespace assay
