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

// bytes: a file of torch.jit.save, of a module whose forward takes [N,...input]
// and returns [N,classes]. The module runs here, on two rows: such files hold
// programs, of which a hostile one may run forever. The net comes loaded. What
// it is read into gave the module's own logits for those two rows, to 1e-4 of the
// largest; else, and where an operator has no counterpart, the net is a black box.
// Throws invalid for anything else, saying what it is and what would be right.
std::unique_ptr<Net> net_of_script(const void* bytes, size_t size, const ScriptOptions& options);

}  // namespace assay
