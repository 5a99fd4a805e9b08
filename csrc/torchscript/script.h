// Nets from TorchScript files: read into the network description where every
// operator has a counterpart there, else run as they are, as black boxes.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "graph/net.h"

namespace assay {

struct ScriptOptions {
  std::string name;  // the net's id
  Shape input;       // of one row: [C,H,W] or [F]
  std::string preset = "imagenet";
};

// bytes: a file that torch.jit.save wrote, from a module that takes [N,...input]
// and returns [N,classes]. The net comes loaded. Such files hold programs: a
// hostile one may run forever.
// Throws invalid for anything else.
std::unique_ptr<Net> net_of_script(const void* bytes, size_t size, const ScriptOptions& options);

}  // namespace assay
