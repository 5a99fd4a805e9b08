package dataset

import (
	"fmt"
	"math"

	"github.com/assay-xai/assay/internal/usage"
)

// maxSide bounds heights and widths of presets: larger inputs are mistakes.
const maxSide = 8192

// Validate says what of a preset makes no sense.
func (p Preset) Validate() error {
	bad := func(format string, args ...any) error {
		return usage.Errorf("dataset: preset %s: %w", p.ID, fmt.Errorf(format, args...))
	}
	switch p.Resize {
	case ResizeNone:
	case ResizeShorter, ResizeSquash:
		if p.Height < 1 || p.Height > maxSide {
			return bad("height %d: want 1..%d", p.Height, maxSide)
		}
		if p.Width < 1 || p.Width > maxSide {
			return bad("width %d: want 1..%d", p.Width, maxSide)
		}
	default:
		return bad("resize %q: want none, shorter or squash", p.Resize)
	}
	switch p.Interpolation {
	case "", Bilinear, Bicubic:
	default:
		return bad("interpolation %q: want bilinear or bicubic", p.Interpolation)
	}
	if p.CropHeight < 0 || p.CropWidth < 0 || p.CropHeight > maxSide || p.CropWidth > maxSide || (p.CropHeight == 0) != (p.CropWidth == 0) {
		return bad("crop %dx%d: want both 1..%d, or neither", p.CropHeight, p.CropWidth, maxSide)
	}
	if p.Resize != ResizeNone && (p.CropHeight > p.Height || p.CropWidth > p.Width) {
		return bad("crop %dx%d: want at most the resized %dx%d", p.CropHeight, p.CropWidth, p.Height, p.Width)
	}
	if p.Channels != 0 && p.Channels != 1 && p.Channels != 3 {
		return bad("channels %d: want 1 (grey) or 3 (RGB)", p.Channels)
	}
	if !(p.Scale > 0) || math.IsInf(p.Scale, 0) {
		return bad("scale %v: want more than 0", p.Scale)
	}
	if len(p.Mean) != len(p.Std) {
		return bad("%d means and %d stds: want as many", len(p.Mean), len(p.Std))
	}
	if p.Channels > 0 && len(p.Mean) != 1 && len(p.Mean) != p.Channels {
		return bad("%d means: want one a channel (%d), or one for all", len(p.Mean), p.Channels)
	}
	for i := range p.Mean {
		if math.IsNaN(p.Mean[i]) || math.IsInf(p.Mean[i], 0) {
			return bad("mean %v: want a number", p.Mean[i])
		}
		if !(p.Std[i] > 0) || math.IsInf(p.Std[i], 0) {
			return bad("std %v: want more than 0", p.Std[i])
		}
	}
	return nil
}

// Normalise turns raw values of shape [C,H,W] or [F] into the input of a net,
// in place: (v/Scale - Mean) / Std, with a mean and std per channel or column,
// or one for all. A Scale of 0 counts as 1, no Mean as 0 and no Std as 1.
func (p Preset) Normalise(values []float32, shape []int) error {
	if len(shape) == 0 {
		return fmt.Errorf("dataset: preset %s: a value without shape", p.ID)
	}
	groups, size := shape[0], 1
	for _, n := range shape[1:] {
		size *= n
	}
	if groups*size != len(values) {
		return fmt.Errorf("dataset: preset %s: %d values for shape %v", p.ID, len(values), shape)
	}
	for _, list := range [][]float64{p.Mean, p.Std} {
		if len(list) > 1 && len(list) != groups {
			if len(shape) == 3 && shape[2] == len(list) {
				return usage.Errorf("dataset: preset %s: data of shape %v are [H,W,C]: want [C,H,W] (NumPy: x.transpose(0, 3, 1, 2))", p.ID, shape)
			}
			return usage.Errorf("dataset: preset %s: %d means or stds for data of shape %v: want %d, or one for all", p.ID, len(list), shape, groups)
		}
	}
	scale := p.Scale
	if scale == 0 {
		scale = 1
	}
	at := func(list []float64, g int, none float64) float64 {
		switch len(list) {
		case 0:
			return none
		case 1:
			return list[0]
		}
		return list[g]
	}
	for g := range groups {
		mean, std := at(p.Mean, g, 0), at(p.Std, g, 1)
		for i := g * size; i < (g+1)*size; i++ {
			values[i] = float32((float64(values[i])/scale - mean) / std)
		}
	}
	return nil
}

// ForSet completes a preset with what only the data knows: a preset of a table
// without means gets the columns' own. Others come back as they are.
func (p Preset) ForSet(s *Set) Preset {
	if s.Schema == nil || len(p.Mean) > 0 {
		return p
	}
	p.Mean, p.Std = nil, nil
	for _, c := range s.Schema.Columns {
		std := c.Std
		if std == 0 {
			std = 1 // a constant column becomes 0
		}
		p.Mean, p.Std = append(p.Mean, c.Mean), append(p.Std, std)
	}
	return p
}
