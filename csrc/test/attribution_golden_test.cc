// Maps against captum and pytorch-grad-cam (scripts/golden_attribution.py says how
// those were asked), in double precision on both sides; and float32 against it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "attribution/method.h"
#include "image/image.h"
#include "test/explained.h"
#include "test/fill.h"

namespace assay {
namespace {

using nlohmann::json;

std::string read(const std::string& name) {
  std::ifstream file(ASSAY_SOURCE_DIR "/testdata/" + name, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Of one net: who made the maps, with which parameters, of what.
struct Golden {
  json net;
};
void PrintTo(const Golden& golden, std::ostream* out) {
  *out << golden.net.at("net");
}  // not all its numbers

std::vector<Golden> goldens() {
  std::vector<Golden> all;
  const json parsed = json::parse(read("golden_attribution.json"));
  for (const json& net : parsed.at("nets")) all.push_back({net});
  return all;
}

// The middle square of a photograph, every (side/size)th pixel, normalised: f32 [3,size,size].
at::Tensor photograph(const std::string& name, const json& golden) {
  const std::string bytes = read("embedded/" + name);
  const Image image = decode(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size(), 3);
  const int64_t size = golden.at("size"), side = std::min(image.height, image.width);
  const int64_t top = (image.height - side) / 2, left = (image.width - side) / 2;
  at::Tensor x = at::empty({3, size, size}, at::kFloat);
  auto values = x.accessor<float, 3>();
  for (int64_t c = 0; c < 3; ++c) {
    const double mean = golden.at("mean").at(static_cast<size_t>(c)),
                 std = golden.at("std").at(static_cast<size_t>(c));
    for (int64_t i = 0; i < size; ++i) {
      const uint8_t* row = image.row(top + (2 * i + 1) * side / (2 * size));
      for (int64_t j = 0; j < size; ++j) {
        const double pixel = row[(left + (2 * j + 1) * side / (2 * size)) * 3 + c];
        values[c][i][j] = static_cast<float>((pixel / 255 - mean) / std);
      }
    }
  }
  return x;
}

std::unique_ptr<Net> net_of(const json& golden) {
  NetEntry entry = net_entry(golden.at("net"));
  const int64_t size = golden.at("size");
  auto net = std::make_unique<Net>(entry, entry.build({3, size, size}, entry.classes));
  net->load(fill_state(*net, golden.at("gain")));
  return net;
}

Explained rows_of(const json& golden, at::ScalarType type) {
  std::vector<at::Tensor> images;
  for (const json& name : golden.at("images")) images.push_back(photograph(name, golden));
  return {.x = at::stack(images).to(type),
          .targets = golden.at("targets").get<std::vector<int64_t>>(),
          .keys = golden.at("keys").get<std::vector<uint64_t>>()};
}

// The largest gap to a golden map's sampled numbers, its sum and its norm, each as a
// share of what it is measured by: the largest value, or its sum's and norm's rounding.
double gap(const at::Tensor& map, const json& golden) {
  const at::Tensor flat = map.to(at::kDouble).contiguous().view(-1);
  const int64_t count = flat.numel();
  const double* values = flat.const_data_ptr<double>();
  const double largest = golden.at("largest"), sum = golden.at("sum"), norm = golden.at("norm");
  const json& sampled = golden.at("values");
  double worst = 0;
  for (size_t k = 0; k < sampled.size(); ++k) {
    const int64_t at = count <= static_cast<int64_t>(sampled.size())
                           ? static_cast<int64_t>(k)
                           : static_cast<int64_t>(k) * 2654435761 % count;
    worst = std::max(worst, std::abs(values[at] - sampled[k].get<double>() * 1e-7 * largest) / largest);
  }
  // A gap of 1e-6 of the largest value everywhere moves the sum by count times that.
  worst = std::max(worst, std::abs(flat.sum().item<double>() - sum) / (static_cast<double>(count) * largest));
  worst = std::max(worst, std::abs(flat.norm().item<double>() - norm) / norm);
  return std::isnan(worst) ? 1 / 0. : worst;
}

class AttributionGolden : public testing::TestWithParam<Golden> {};

TEST_P(AttributionGolden, MapsAsElsewhere) {
  const Quiet quiet;
  const json& golden = GetParam().net;
  const auto net = net_of(golden);
  net->prepare(at::kCPU, Precision::kF64);
  const Explained rows = rows_of(golden, at::kDouble);
  Context context(*net, rows.size());
  const at::Tensor outputs = context.run.outputs(rows.x, rows.targets);
  for (size_t r = 0; r < golden.at("outputs").size(); ++r) {
    const double want = golden.at("outputs").at(r);
    ASSERT_NEAR(outputs[static_cast<int64_t>(r)].item<double>(), want, 1e-8 * std::abs(want)) << "row " << r;
  }
  std::vector<std::pair<json, at::Tensor>> maps;
  for (const json& want : golden.at("maps")) {
    const json& spec = want.at("method");
    SCOPED_TRACE(want.at("oracle").dump() + ' ' + spec.dump());
    const at::Tensor map = Method(spec).attribute(context, rows);
    ASSERT_EQ(map.scalar_type(), at::kDouble);
    ASSERT_EQ(map.sizes().slice(1).vec(), want.at("shape").get<std::vector<int64_t>>());
    for (int64_t r = 0; r < rows.size(); ++r) {
      EXPECT_LE(gap(map[r], want.at("rows").at(static_cast<size_t>(r))), 1e-6) << "row " << r;
    }
    maps.emplace_back(spec, map);
  }
  net->prepare(at::kCPU, Precision::kF32);
  Context in_f32(*net, rows.size());
  const Explained same = rows_of(golden, at::kFloat);
  for (const auto& [spec, map] : maps) {
    const at::Tensor got = Method(spec).attribute(in_f32, same).to(at::kDouble);
    for (int64_t r = 0; r < rows.size(); ++r) {
      const double cosine =
          (got[r] * map[r]).sum().item<double>() / (got[r].norm() * map[r].norm()).item<double>();
      EXPECT_GE(cosine, .9999) << "float32, " << spec.dump() << ", row " << r;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Nets, AttributionGolden, testing::ValuesIn(goldens()), [](const auto& info) {
  std::string name = info.param.net.at("net");
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

}  // namespace
}  // namespace assay
