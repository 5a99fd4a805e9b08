// Superpixels: regions of like colour and compact shape, by SLIC (Achanta, Shaji,
// Smith, Lucchi, Fua and Süsstrunk 2012, algorithm 1).
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <vector>

namespace assay {

// What SLIC compares, [N,H,W,C] doubles on the CPU. images [N,C,H,W], normalised;
// mean, std: of the preset, an entry a channel. Three channels become CIELAB (of
// sRGB, white D65), others the values times 100, the range of CIELAB's L. Without
// mean and std the values of an image are stretched to [0,1] first.
at::Tensor slic_colours(const at::Tensor& images, const std::vector<double>& mean,
                        const std::vector<double>& std);

struct Superpixels {
  std::vector<int32_t> map;  // [H*W], 0..count-1, in the order of first appearance
  int32_t count;
};

// About `asked` connected superpixels of one image of colours [H,W,C]; asked >= 1.
// compactness: m of equation 3, the weight of space against colour.
Superpixels slic(const at::Tensor& colours, int64_t asked, double compactness);

}  // namespace assay
