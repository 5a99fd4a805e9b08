package orchestrate

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/assay-xai/assay/dataset"
	"github.com/assay-xai/assay/internal/usage"
)

// Generators draw values of 0..1: what they learn from has to lie there, once the preset has
// divided it.

// valueRange holds the least and the greatest of raw values.
type valueRange struct{ lowest, highest float64 }

const (
	// rangeSlack is how far values may leave 0..1, which is what float32 rounds by.
	rangeSlack = 1e-6
	// sparseRange is the part of 0..1 below which values that end there were most likely
	// divided by too much.
	sparseRange = .2
)

// imageRange is that of image files, whatever is in them.
func imageRange() valueRange { return valueRange{0, math.MaxUint8} }

// rowRange reads a set of arrays through, which have to be images: their shape is [C,H,W].
func rowRange(ctx context.Context, set *dataset.Set) (seen valueRange, shape []int, err error) {
	seen = valueRange{math.Inf(1), math.Inf(-1)}
	for i := range set.Len() {
		if i%4096 == 0 && ctx.Err() != nil {
			return seen, nil, ctx.Err()
		}
		values, s, err := set.Values(i)
		if err != nil {
			return seen, nil, err
		}
		if i == 0 {
			if err := wantImages(set, s); err != nil {
				return seen, nil, err
			}
			shape = slices.Clone(s)
		}
		for _, v := range values {
			seen.lowest, seen.highest = min(seen.lowest, float64(v)), max(seen.highest, float64(v))
		}
	}
	if seen.lowest < -rangeSlack*seen.highest {
		return seen, nil, usage.Errorf("%s has values from %v to %v: imputers draw values of 0..1: want data without negative values, no preset shifts them", set.Path, seen.lowest, seen.highest)
	}
	return seen, shape, nil
}

// within says whether the values are in 0..1 once divided by scale.
func (v valueRange) within(scale float64) bool { return v.highest <= scale*(1+rangeSlack) }

// divisor is what the values should be divided by: one of the scales that images have, where
// they fill it, else the greatest value.
func (v valueRange) divisor() float64 {
	for _, scale := range []float64{1, math.MaxUint8} {
		if v.within(scale) && v.highest >= sparseRange*scale {
			return scale
		}
	}
	return v.highest
}

// check refuses values that leave 0..1, and warns of arrays that fill little of it.
func (v valueRange) check(set *dataset.Set, p dataset.Preset, progress func(Event)) error {
	what := fmt.Sprintf("%s: values are from %v to %v, after division by the scale %v of preset %s to %.3g", set.Path, v.lowest, v.highest, p.Scale, p.ID, v.highest/p.Scale)
	switch {
	case set.Kind == dataset.Images && p.Scale != math.MaxUint8:
		return usage.Errorf("preset %s: scale %v: image files, as in %s, are divided by 255 wherever nets see them: want that scale", p.ID, p.Scale, set.Path)
	case !v.within(p.Scale):
		return usage.Errorf("%s: imputers draw values of 0..1: want a preset of scale %v", what, v.divisor())
	case v.highest > 0 && v.highest < sparseRange*p.Scale:
		progress(Event{Kind: Warning, Message: fmt.Sprintf("%s: they fill little of 0..1, which imputers draw: scale %v would suit them better", what, v.divisor())})
	}
	return nil
}

// carriesChannels says whether presets know that number of channels.
func carriesChannels(shape []int) bool { return shape[0] == 1 || shape[0] == 3 }

// fitsRows says whether images of a preset are of the shape that arrays have: those are not
// resized. shape is nil for image files, which are.
func fitsRows(p dataset.Preset, set *dataset.Set, shape []int) error {
	if shape == nil {
		return nil
	}
	height, width, shorter := p.CropHeight, p.CropWidth, p.Resize == dataset.ResizeShorter && p.CropHeight == 0
	switch {
	case height > 0:
	case shorter && min(shape[1], shape[2]) == p.Height:
		height, width = shape[1], shape[2]
	case p.Resize != dataset.ResizeNone:
		height, width = p.Height, p.Width
	default:
		height, width = shape[1], shape[2]
	}
	channels := shape[0]
	if p.Channels > 0 && carriesChannels(shape) {
		channels = p.Channels
	}
	if slices.Equal(shape, []int{channels, height, width}) {
		return nil
	}
	return usage.Errorf("preset %s is for images of %dx%dx%d (channels, height, width), %s holds arrays of %dx%dx%d, which stay as they are: want a preset for those, or none",
		p.ID, channels, height, width, set.Path, shape[0], shape[1], shape[2])
}

// undecodable says what to do about an image file.
func undecodable(set *dataset.Set, item int, why error) error {
	return usage.Errorf("%s of %s: %w: mend it or take it out; training leaves no image out by itself", set.Items()[item].ID, set.Path, why)
}
