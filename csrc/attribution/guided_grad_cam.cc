// Guided backpropagation, channel by channel, times Grad-CAM at the image's size.
#include "attribution/cam.h"
#include "attribution/methods.h"

namespace assay {

MethodEntry guided_grad_cam_method() {
  MethodEntry entry = cam_entry(
      "guided-grad-cam", "guided backpropagation times Grad-CAM", "Selvaraju et al. 2017, section 3.2",
      [](const Method& method, Context& context, const Explained& rows) {
        const Method guided(nlohmann::json{{"id", "guided-backprop"}});
        const Method cam(nlohmann::json{{"id", "grad-cam"},
                                        {"layer", method.parameters().text("layer")},
                                        {"align-corners", method.parameters().flag("align-corners")}});
        return guided.attribute(context, rows) * cam.attribute(context, rows);
      });
  entry.parameters.erase(entry.parameters.size() - 1);  // upsample
  entry.one_channel = false;
  return entry;
}

}  // namespace assay
