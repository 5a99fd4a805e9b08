// One entry each; see the file of the same name.
#pragma once

#include "attribution/method.h"

namespace assay {

// Gradients.
MethodEntry gradient_method();

}  // namespace assay
