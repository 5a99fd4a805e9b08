// One entry each; see the file of the same name.
#pragma once

#include "attribution/method.h"

namespace assay {

// Gradients.
MethodEntry gradient_method();
MethodEntry input_x_gradient_method();
MethodEntry integrated_gradients_method();
MethodEntry smoothgrad_method();
MethodEntry smoothgrad_sq_method();
MethodEntry vargrad_method();
MethodEntry gradient_shap_method();
MethodEntry guided_backprop_method();
MethodEntry deconvolution_method();

// Class activation maps.
MethodEntry grad_cam_method();
MethodEntry grad_cam_plus_plus_method();
MethodEntry hires_cam_method();
MethodEntry layer_cam_method();
MethodEntry xgrad_cam_method();
MethodEntry eigen_cam_method();
MethodEntry score_cam_method();
MethodEntry ablation_cam_method();
MethodEntry guided_grad_cam_method();

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
