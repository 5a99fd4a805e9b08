// What is lost under a window that slides over the image (Zeiler and Fergus 2014,
// section 4.2); a table is an image one pixel high.
#include "api/error.h"
#include "attribution/masks.h"
#include "attribution/methods.h"
#include "attribution/samples.h"

namespace assay {
namespace {

WindowAxis axis_of(const Parameters& parameters, int64_t size, int64_t by_default) {
  WindowAxis axis{size, parameters.integer("window"), parameters.integer("stride")};
  if (axis.window == 0) axis.window = by_default;
  if (axis.stride == 0) axis.stride = axis.window;
  if (axis.window > size) {
    throw invalid("method occlusion: window ", axis.window, ": want at most ", size,
                  ", the size of the image");
  }
  if (axis.stride > axis.window) {
    throw invalid("method occlusion: stride ", axis.stride, ": want at most the window, ", axis.window,
                  ": pixels between windows would never be covered");
  }
  return axis;
}

// A row's map: at each pixel the mean over the windows that cover it of the
// output's change. outputs: the row itself, then each window.
std::vector<double> mean_change(const Windows& windows, const std::vector<double>& outputs) {
  const int64_t width = windows.x.size;
  std::vector<double> map(static_cast<size_t>(windows.y.size * width), 0);
  for (int64_t w = 0; w < windows.count(); ++w) {
    const double change = outputs[0] - outputs[static_cast<size_t>(1 + w)];
    const auto [top, bottom, left, right] = windows.window(w);
    for (int64_t i = top; i < bottom; ++i) {
      for (int64_t j = left; j < right; ++j) map[static_cast<size_t>(i * width + j)] += change;
    }
  }
  const std::vector<double> rows = windows.y.cover(), columns = windows.x.cover();
  for (size_t i = 0; i < rows.size(); ++i) {
    for (size_t j = 0; j < columns.size(); ++j) map[i * columns.size() + j] /= rows[i] * columns[j];
  }
  return map;
}

at::Tensor occlusion(const Method& method, Context& context, const Explained& rows) {
  const Parameters& parameters = method.parameters();
  const at::Tensor pixels = pixels_last(rows.x);
  const int64_t height = pixels.size(1), width = pixels.size(2);
  Windows windows{};
  if (rows.is_table()) {
    windows = {WindowAxis{1, 1, 1}, axis_of(parameters, width, 1)};
  } else {
    windows = {axis_of(parameters, height, (height + 6) / 7), axis_of(parameters, width, (width + 6) / 7)};
  }
  const at::Tensor baseline = pixels_last(reference_of(context, rows, parameters.text("baseline")));
  const std::vector<int64_t> samples(static_cast<size_t>(rows.size()), 1 + windows.count());
  std::vector<std::vector<double>> values =
      run_samples(context, rows, samples, output_of(parameters.text("output")), [&](const Block& block) {
        return channels_first(occluded(block, windows, pixels, baseline), rows.is_table());
      });
  for (std::vector<double>& row : values) row = mean_change(windows, row);
  return maps_of(rows, values);
}

}  // namespace

MethodEntry occlusion_method() {
  return {
      .id = "occlusion",
      .summary = "mean change of the output under the windows that cover a pixel",
      .family = "perturbation",
      .needs = "forward",
      .paper = "Zeiler and Fergus 2014, section 4.2",
      .parameters = {{{"name", "window"},
                      {"type", "int"},
                      {"default", 0},
                      {"minimum", 0},
                      {"summary",
                       "edge of the window in pixels (columns); 0: a seventh of the image's "
                       "height and width, rounded up; of a table one column"}},
                     {{"name", "stride"},
                      {"type", "int"},
                      {"default", 0},
                      {"minimum", 0},
                      {"summary", "pixels from one window to the next, at most the window; 0: the window"}},
                     baseline_parameter(/*by_segment=*/false),
                     output_parameter()},
      .attribute = occlusion,
      .one_channel = true};
}

}  // namespace assay
