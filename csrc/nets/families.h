// One function a family of nets: its entries in the registry.
#pragma once

#include <vector>

#include "nets/registry.h"

namespace assay {

std::vector<NetEntry> resnets();             // resnet.cc
std::vector<NetEntry> efficientnet_lites();  // efficientnet_lite.cc
std::vector<NetEntry> cifar_resnets();       // cifar_resnet.cc
std::vector<NetEntry> cnn3s();               // cnn3.cc
std::vector<NetEntry> dense_nets();          // dense.cc: mlp, logistic

}  // namespace assay
