// The precompiled header: what nearly every file of csrc needs of libtorch.
// Never torch/torch.h (it doubles the time), never torch/script.h.
#pragma once

#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/csrc/autograd/autograd.h>
