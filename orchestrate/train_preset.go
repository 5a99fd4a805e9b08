package orchestrate

import (
	"bytes"
	"context"
	"fmt"
	"image"
	_ "image/jpeg" // sizes of images
	_ "image/png"
	"math"
	"slices"

	"github.com/assay-xai/assay/dataset"
	"github.com/assay-xai/assay/internal/usage"
	"github.com/assay-xai/assay/weights"
)

// How images become what an imputer learns from. Generators draw values of 0..1: there the
// data has to lie, once the preset has divided it.

// imputerPreset chooses the preset: the one that is given, the weights', else the data's own.
// It has to fit the data, whatever it comes from.
func (r *training) imputerPreset(ctx context.Context, sd *weights.StateDict) error {
	p, seen := r.plan, imageRange()
	var shape []int
	var err error
	if r.set.Kind != dataset.Images {
		if seen, shape, err = rowRange(ctx, r.set); err != nil {
			return err
		}
	}
	own, ok := dataset.Preset{}, false
	if sd != nil {
		own, ok = metadataPreset(sd)
	}
	switch {
	case r.job.Preset != "":
		p.Preset, err = dataset.LoadPreset(r.job.Preset)
	case ok:
		p.Preset = own
	case r.set.Kind == dataset.Images:
		p.Preset, err = r.imagePreset(ctx)
	default:
		p.Preset, err = rowPreset(r.set, shape, seen)
	}
	if err != nil {
		return err
	}
	p.Preset.Summary = ""
	if err := fitsRows(p.Preset, r.set, shape); err != nil {
		return err
	}
	return seen.check(r.set, p.Preset, r.job.Progress)
}

// ownPreset leaves the data as it is, divided so that it is in 0..1.
func ownPreset() dataset.Preset {
	return dataset.Preset{ID: "own", Resize: dataset.ResizeSquash, Interpolation: dataset.Bilinear, Scale: math.MaxUint8, Mean: []float64{0}, Std: []float64{1}}
}

// sizesSeen is of how many image files the size is looked at.
const sizesSeen = 64

// imagePreset keeps the size that image files have.
func (r *training) imagePreset(ctx context.Context) (dataset.Preset, error) {
	p := ownPreset()
	p.Channels = 3
	for i := range min(r.set.Len(), sizesSeen) {
		height, width, err := r.imageSize(ctx, i)
		if err != nil {
			return p, err
		}
		if i == 0 {
			p.Height, p.Width = height, width
		} else if height != p.Height || width != p.Width {
			return p, usage.Errorf("%s has images of different sizes, such as %dx%d and %dx%d: say what they are to be with --preset, that of the nets that they are imputed for",
				r.set.Path, p.Height, p.Width, height, width)
		}
	}
	return p, p.Validate()
}

// imageSize reads it from the file's head, or decodes what has another head than Go knows.
func (r *training) imageSize(ctx context.Context, item int) (height, width int, err error) {
	file, err := r.set.Read(ctx, item)
	if err != nil {
		return 0, 0, err
	}
	if c, _, err := image.DecodeConfig(bytes.NewReader(file)); err == nil {
		return c.Height, c.Width, nil
	}
	whole := ownPreset()
	whole.Resize, whole.Channels = dataset.ResizeNone, 3
	shape, err := r.decodedShape(ctx, item, file, whole)
	if err != nil {
		return 0, 0, err
	}
	return shape[1], shape[2], nil
}

// decodedShape is that of an image file as it will be read, [C,H,W].
func (r *training) decodedShape(ctx context.Context, item int, file []byte, p dataset.Preset) ([]int, error) {
	images, failed, err := r.b.Images(ctx, [][]byte{file}, p, true)
	if err != nil {
		return nil, fmt.Errorf("decoding images of %s: %w", r.set.Path, err)
	}
	defer images.Close()
	if failed[0] != nil {
		return nil, undecodable(r.set, item, failed[0])
	}
	return slices.Clone(images.Shape()), nil
}

// rowPreset knows the three scales that arrays of images have: 1, 16 (the digits of 8x8)
// and 255.
func rowPreset(set *dataset.Set, shape []int, seen valueRange) (dataset.Preset, error) {
	p := ownPreset()
	digits, err := dataset.PresetByID("digits")
	if err != nil {
		return p, err
	}
	switch {
	case seen.within(1):
		p.Scale = 1
	case seen.within(digits.Scale) && slices.Equal(shape, []int{1, digits.Height, digits.Width}):
		return digits, nil
	case seen.highest > math.MaxUint8:
		return p, usage.Errorf("%s has values from %v to %v: say with --preset by what they are to be divided to be in 0..1", set.Path, seen.lowest, seen.highest)
	}
	if carriesChannels(shape) {
		p.Channels = shape[0]
	}
	p.Height, p.Width = shape[1], shape[2]
	return p, p.Validate()
}

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
