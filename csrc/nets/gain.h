// The two nets of GAN imputation.
#pragma once

#include <cstdint>

#include "graph/graph.h"

namespace assay {

// The residual encoder and decoder that Kachuee et al. 2020 ("Generative Imputation and Stochastic
// Prediction") use as generator and, with another input and end, as discriminator: 7x7
// convolution, 3x3 of stride 2 to twice the channels, four residual blocks of two 3x3
// convolutions, transposed 3x3 of stride 2, 7x7 convolution, `last`; batch norm and ReLU after all
// convolutions but the last. Rows stay as large as they are. Parameters are
// called as in the published files ("net.0.weight"; without their spectral norm).
// input: [C,H,W]; width: channels of the first convolution. The output is that image as
// graphs have it, [outputs*H*W]. Throws invalid for sizes below 1.
Graph gain_graph(const Shape& input, int64_t outputs, int64_t width, OpKind last);

}  // namespace assay
