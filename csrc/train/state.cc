#include "train/state.h"

#include <c10/util/Exception.h>

#include <map>

#include "api/error.h"

namespace assay {

std::vector<at::Tensor> match(const std::string& about, const std::vector<Wanted>& wanted,
                              const std::vector<std::pair<std::string, at::Tensor>>& given) {
  constexpr size_t kShown = 5;
  std::vector<std::string> complaints;
  std::map<std::string, size_t> index;
  for (size_t i = 0; i < wanted.size(); ++i) index[wanted[i].name] = i;
  std::vector<at::Tensor> out(wanted.size());
  for (const auto& [name, tensor] : given) {
    const auto found = index.find(name);
    if (found == index.end()) {
      complaints.push_back(concat(name, " is not known here"));
      continue;
    }
    const Wanted& want = wanted[found->second];
    at::Tensor& slot = out[found->second];
    if (slot.defined()) complaints.push_back(concat(name, " comes twice"));
    slot = tensor;
    if (want.counter ? tensor.numel() != 1 : tensor.sizes() != at::IntArrayRef(want.shape)) {
      complaints.push_back(
          concat(name, " has shape ", tensor.sizes(), ", want ", at::IntArrayRef(want.shape)));
    } else if (!want.counter && !tensor.is_floating_point()) {
      complaints.push_back(
          concat(name, " is ", at::toString(tensor.scalar_type()), ", want a floating type"));
    }
  }
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (!out[i].defined() && !wanted[i].optional) complaints.push_back(concat(wanted[i].name, " is missing"));
  }
  if (complaints.empty()) return out;
  std::string text = about + ": ";
  for (size_t i = 0; i < complaints.size() && i < kShown; ++i) text += (i > 0 ? "; " : "") + complaints[i];
  if (complaints.size() > kShown) text += concat("; and ", complaints.size() - kShown, " more");
  throw invalid(text);
}

at::Tensor host_copy(const at::Tensor& value) {
  return value.detach().to(at::TensorOptions(at::kCPU).dtype(value.scalar_type()), /*non_blocking=*/false,
                           /*copy=*/true, at::MemoryFormat::Contiguous);
}

}  // namespace assay
