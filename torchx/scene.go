package torchx

// #include "torchx.h"
import "C"

import (
	"context"
	"unsafe"
)

// Scene holds images and their references on a device, for Net.Masked.
type Scene struct {
	d     *Device
	h     *handle
	words int
}

// NewScene makes room for `slots` images of shape [C,H,W] or [F]; featureMap
// says for each of H*W pixels (or F columns) which of the features it is part of.
func (d *Device) NewScene(ctx context.Context, slots int, shape []int, features int, featureMap []int32) (*Scene, error) {
	const op = "scene-new"
	c, h, w := 0, 1, 0
	switch len(shape) {
	case 1:
		w = shape[0]
	case 3:
		c, h, w = shape[0], shape[1], shape[2]
	default:
		return nil, invalidf(op, "shape %v: want [C,H,W] or [F]", shape)
	}
	if len(featureMap) != h*w {
		return nil, invalidf(op, "feature map of %d entries: want %d", len(featureMap), h*w)
	}
	s := &Scene{d: d, words: (features + 63) / 64}
	err := d.do(ctx, op, func() error {
		var p *C.tx_scene
		if err := failure(C.tx_scene_new(d.c, C.int32_t(slots), C.int32_t(c), C.int32_t(h), C.int32_t(w), C.int32_t(features),
			(*C.int32_t)(unsafe.SliceData(featureMap)), &p)); err != nil {
			return err
		}
		s.h = newHandle(unsafe.Pointer(p), func(p unsafe.Pointer) { C.tx_scene_free((*C.tx_scene)(p)) })
		return nil
	})
	if err != nil {
		return nil, err
	}
	return s, nil
}

// Put copies an image and its reference into a slot.
func (s *Scene) Put(ctx context.Context, slot int, image, reference *Tensor) error {
	return s.d.do(ctx, "scene-put", func() error {
		return s.h.with("scene-put", "scene", func(h unsafe.Pointer) error {
			p := (*C.tx_scene)(h)
			i, keepImage := image.pin()
			defer keepImage()
			r, keepReference := reference.pin()
			defer keepReference()
			return failure(C.tx_scene_put(p, C.int32_t(slot), i, r))
		})
	})
}

// PutImputed copies an image ([C,H,W] or [F]) into a slot with an imputer of its own in
// place of a reference: for those that depend on what else is deleted. Of spec it takes
// JSON, Generator, Mean, Std, Keys (one) and DatasetMean.
func (s *Scene) PutImputed(ctx context.Context, slot int, image *Tensor, spec ReferenceSpec) error {
	const op = "scene-put-imputed"
	_, shape, err := image.Describe()
	if err != nil {
		return err
	}
	if len(shape) == 3 && (len(spec.Mean) != int(shape[0]) || len(spec.Std) != int(shape[0])) {
		return invalidf(op, "mean and std of %d and %d entries for %d channels", len(spec.Mean), len(spec.Std), shape[0])
	}
	if len(spec.Keys) != 1 {
		return invalidf(op, "%d keys for one image", len(spec.Keys))
	}
	if spec.DatasetMean != nil && len(spec.DatasetMean) != int(shape[0]) {
		return invalidf(op, "a dataset mean of %d entries: want %d", len(spec.DatasetMean), shape[0])
	}
	return s.d.do(ctx, op, func() error {
		return s.h.with(op, "scene", func(h unsafe.Pointer) error {
			text, free := cString(string(spec.JSON))
			defer free()
			i, keep := image.pin()
			defer keep()
			return spec.Generator.with(op, func(g *C.tx_generator) error {
				return failure(C.tx_scene_put_imputed((*C.tx_scene)(h), C.int32_t(slot), i, text, g, (*C.float)(unsafe.SliceData(spec.Mean)),
					(*C.float)(unsafe.SliceData(spec.Std)), C.uint64_t(spec.Keys[0]), (*C.double)(unsafe.SliceData(spec.DatasetMean))))
			})
		})
	})
}

// Close frees the scene.
func (s *Scene) Close() error {
	s.h.close()
	return nil
}

// Masked scores len(slots) states of a scene's images: of image slots[r] with
// the features deleted whose bits are set in words sets[r*W:(r+1)*W], W =
// (features+63)/64, the output and softmax of class targets[r]. batch rows run
// at a time, the last padded.
func (n *Net) Masked(ctx context.Context, s *Scene, slots []int32, sets []uint64, targets []int32, batch int) (logits, probabilities []float64, err error) {
	const op = "masked-forward"
	rows := len(slots)
	if len(targets) != rows || len(sets) != rows*s.words {
		return nil, nil, invalidf(op, "%d slots, %d targets, %d words of sets: want as many targets as slots and %d words",
			rows, len(targets), len(sets), rows*s.words)
	}
	logits, probabilities = make([]float64, rows), make([]float64, rows)
	err = n.d.do(ctx, op, func() error {
		return n.h.with(op, "net", func(net unsafe.Pointer) error {
			return s.h.with(op, "scene", func(scene unsafe.Pointer) error {
				return failure(C.tx_masked_forward((*C.tx_net)(net), (*C.tx_scene)(scene), C.int64_t(rows), (*C.int32_t)(unsafe.SliceData(slots)),
					(*C.uint64_t)(unsafe.SliceData(sets)), (*C.int32_t)(unsafe.SliceData(targets)), C.int64_t(batch),
					(*C.double)(unsafe.SliceData(logits)), (*C.double)(unsafe.SliceData(probabilities))))
			})
		})
	})
	if err != nil {
		return nil, nil, err
	}
	return logits, probabilities, nil
}

// ReferenceSpec is what tx_reference wants beside the images.
type ReferenceSpec struct {
	JSON       []byte    // {"id": ..., parameters}
	Mean, Std  []float32 // of the preset, an entry a channel; nil for tables
	Keys       []uint64  // one an image; nil if nothing is drawn
	Features   int
	FeatureMap []int32
	Other      *Tensor    // for "image"
	Generator  *Generator // of PutImputed, for "gain"
	// DatasetMean is for "dataset-mean", an entry a channel or column, normalised; nil: not known.
	DatasetMean []float64
}

// Reference computes the references of images ([N,C,H,W] or [N,F]).
func (d *Device) Reference(ctx context.Context, images *Tensor, spec ReferenceSpec) (*Tensor, error) {
	const op = "reference"
	_, shape, err := images.Describe()
	if err != nil {
		return nil, err
	}
	if spec.Keys != nil && len(spec.Keys) != int(shape[0]) {
		return nil, invalidf(op, "%d keys for %d images", len(spec.Keys), shape[0])
	}
	pixels := int(shape[len(shape)-1])
	if len(shape) == 4 {
		pixels *= int(shape[2])
		for _, values := range [][]float32{spec.Mean, spec.Std} {
			if values != nil && len(values) != int(shape[1]) {
				return nil, invalidf(op, "mean and std of %d entries for %d channels", len(values), shape[1])
			}
		}
	}
	if spec.FeatureMap != nil && len(spec.FeatureMap) != pixels {
		return nil, invalidf(op, "feature map of %d entries: want %d", len(spec.FeatureMap), pixels)
	}
	if spec.DatasetMean != nil && len(spec.DatasetMean) != int(shape[1]) {
		return nil, invalidf(op, "a dataset mean of %d entries: want %d", len(spec.DatasetMean), shape[1])
	}
	var out *Tensor
	err = d.do(ctx, op, func() error {
		text, free := cString(string(spec.JSON))
		defer free()
		in, keep := images.pin()
		defer keep()
		other, keepOther := spec.Other.pin()
		defer keepOther()
		var p C.tx_tensor
		if err := failure(C.tx_reference(text, in, (*C.float)(unsafe.SliceData(spec.Mean)), (*C.float)(unsafe.SliceData(spec.Std)),
			(*C.uint64_t)(unsafe.SliceData(spec.Keys)), C.int32_t(spec.Features), (*C.int32_t)(unsafe.SliceData(spec.FeatureMap)),
			other, (*C.double)(unsafe.SliceData(spec.DatasetMean)), &p)); err != nil {
			return err
		}
		out = adopt(p)
		return nil
	})
	return out, err
}
