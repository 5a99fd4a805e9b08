// One entry each; see the file of the same name.
#pragma once

#include "attribution/method.h"

namespace assay {

// Gradients.
MethodEntry gradient_method();

// Perturbation.
MethodEntry occlusion_method();
MethodEntry feature_ablation_method();
MethodEntry rise_method();
MethodEntry kernel_shap_method();
MethodEntry lime_method();
MethodEntry shapley_sampling_method();

// Controls.
MethodEntry random_method();
MethodEntry pixel_random_method();
MethodEntry block_random_method();
MethodEntry centred_gaussian_method();
MethodEntry sobel_method();
MethodEntry blurred_method();

}  // namespace assay
