// One function a family of nets: its entries in the registry.
#pragma once

#include <vector>

#include "nets/registry.h"

namespace assay {

std::vector<NetEntry> resnets();             // resnet.cc
std::vector<NetEntry> vggs();                // vgg.cc
std::vector<NetEntry> alexnets();            // alexnet.cc
std::vector<NetEntry> googlenets();          // googlenet.cc
std::vector<NetEntry> inceptions();          // inception.cc
std::vector<NetEntry> mobilenets();          // mobilenet.cc: v2, v3
std::vector<NetEntry> densenets();           // densenet.cc
std::vector<NetEntry> squeezenets();         // squeezenet.cc
std::vector<NetEntry> efficientnets();       // efficientnet.cc
std::vector<NetEntry> efficientnet_lites();  // efficientnet_lite.cc
std::vector<NetEntry> convnexts();           // convnext.cc
std::vector<NetEntry> vits();                // vit.cc
std::vector<NetEntry> cifar_resnets();       // cifar_resnet.cc
std::vector<NetEntry> cnn3s();               // cnn3.cc
std::vector<NetEntry> dense_nets();          // dense.cc: mlp, logistic

// What the families share.

// An entry of a net on ImageNet whose weights are torchvision's.
NetEntry torchvision_entry(const std::string& id, const std::string& summary, const std::string& paper,
                           std::function<Graph(const Shape& input, int64_t classes)> build);

// As torchvision's Conv2dNormActivation: convolution NAME.0 with "same" padding
// for odd kernels, batch norm NAME.1, activation NAME.2.
struct ConvBlock {
  int64_t channels;
  int64_t kernel = 3;
  int64_t stride = 1;
  int64_t groups = 1;
  double epsilon = 1e-5;
  double momentum = 0.1;
};
int conv_norm(GraphBuilder& b, const std::string& name, int x, const ConvBlock& block);
int conv_norm(GraphBuilder& b, const std::string& name, int x, const ConvBlock& block, OpKind activation);

// Inception's BasicConv2d: NAME.conv, NAME.bn (epsilon 1e-3), NAME.relu.
int basic_conv(GraphBuilder& b, const std::string& name, int x, const GraphBuilder::Conv& conv);

// Squeeze and excitation (Hu et al., CVPR 2018, eq. 2-4) with torchvision's
// names: NAME.avgpool, .fc1, .activation, .fc2, .scale_activation, .scale.
int squeeze_excitation(GraphBuilder& b, const std::string& name, int x, int64_t squeezed, OpKind activation,
                       OpKind gate);

// GoogLeNet and Inception-v3 as published want values in [-1,1]: this takes
// inputs that are normalised with ImageNet's mean and std there
// (torchvision's transform_input).
int transform_input(GraphBuilder& b, int x);

}  // namespace assay
