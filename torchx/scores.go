package torchx

// #include "torchx.h"
import "C"

import (
	"context"
	"encoding/json"
	"fmt"
	"unsafe"
)

// Draw is a row of images with noise that (Key, Sample) fixes.
type Draw struct {
	Row         int
	Key, Sample uint64
}

// Noisy returns rows images[draws[i].Row] ([N,C,H,W] or [N,F], on the CPU) plus
// noise, uniform in [-radius,radius) and independent for every element. radius 0: copies.
func (d *Device) Noisy(ctx context.Context, images *Tensor, draws []Draw, radius float64) (*Tensor, error) {
	const op = "images-noisy"
	rows, keys, samples := make([]int32, len(draws)), make([]uint64, len(draws)), make([]uint64, len(draws))
	for i, draw := range draws {
		rows[i], keys[i], samples[i] = int32(draw.Row), draw.Key, draw.Sample
	}
	var out *Tensor
	err := d.do(ctx, op, func() error {
		in, keep := images.pin()
		defer keep()
		var p C.tx_tensor
		if err := failure(C.tx_images_noisy(in, C.int64_t(len(draws)), (*C.int32_t)(unsafe.SliceData(rows)), (*C.uint64_t)(unsafe.SliceData(keys)),
			(*C.uint64_t)(unsafe.SliceData(samples)), C.double(radius), &p)); err != nil {
			return err
		}
		out = adopt(p)
		return nil
	})
	return out, err
}

// Scaled scores rows images[rows[i]] times a mask each: masks holds len(rows) of
// H*W (or F) numbers, which hold for every channel. The output and softmax of class
// targets[i]; batch rows run at a time, the last padded.
func (n *Net) Scaled(ctx context.Context, images *Tensor, rows []int32, masks []float32, targets []int32, batch int) (logits, probabilities []float64, err error) {
	const op = "scaled-forward"
	_, shape, err := images.Describe()
	if err != nil {
		return nil, nil, err
	}
	pixels := int(shape[len(shape)-1])
	if len(shape) == 4 {
		pixels *= int(shape[2])
	}
	if len(targets) != len(rows) || len(masks) != len(rows)*pixels {
		return nil, nil, invalidf(op, "%d rows, %d targets, %d numbers of masks: want as many targets as rows, and %d numbers",
			len(rows), len(targets), len(masks), len(rows)*pixels)
	}
	logits, probabilities = make([]float64, len(rows)), make([]float64, len(rows))
	err = n.d.do(ctx, op, func() error {
		return n.h.with(op, "net", func(net unsafe.Pointer) error {
			in, keep := images.pin()
			defer keep()
			return failure(C.tx_scaled_forward((*C.tx_net)(net), in, C.int64_t(len(rows)), (*C.int32_t)(unsafe.SliceData(rows)),
				(*C.float)(unsafe.SliceData(masks)), (*C.int32_t)(unsafe.SliceData(targets)), C.int64_t(batch),
				(*C.double)(unsafe.SliceData(logits)), (*C.double)(unsafe.SliceData(probabilities))))
		})
	})
	if err != nil {
		return nil, nil, err
	}
	return logits, probabilities, nil
}

// ParametrisedLayer is an op of a net that has parameters.
type ParametrisedLayer struct {
	Name string `json:"name"`
	Op   string `json:"op"`
}

// Parametrised lists the ops that have parameters, in the graph's order; none for
// black boxes.
func (n *Net) Parametrised() ([]ParametrisedLayer, error) {
	var out []ParametrisedLayer
	err := n.h.with("net-parametrised", "net", func(h unsafe.Pointer) error {
		var text *C.char
		if err := failure(C.tx_net_parametrised((*C.tx_net)(h), &text)); err != nil {
			return err
		}
		if err := json.Unmarshal(take(text), &out); err != nil {
			return fmt.Errorf("net-parametrised: the library's list of layers: %w", err)
		}
		return nil
	})
	return out, err
}

// Randomised returns a copy of a prepared net, prepared alike, in which the named
// layers have new parameters; see tx_net_randomised.
func (n *Net) Randomised(ctx context.Context, layers []string, seed uint64) (*Net, error) {
	out := &Net{d: n.d}
	err := n.d.do(ctx, "net-randomised", func() error {
		return n.h.with("net-randomised", "net", func(h unsafe.Pointer) error {
			names := make([]*C.char, len(layers))
			for i, layer := range layers {
				c, free := cString(layer)
				defer free()
				names[i] = c
			}
			var p *C.tx_net
			if err := failure(C.tx_net_randomised((*C.tx_net)(h), C.int64_t(len(names)), (**C.char)(unsafe.SliceData(names)),
				C.uint64_t(seed), &p)); err != nil {
				return err
			}
			out.h = newHandle(unsafe.Pointer(p), func(p unsafe.Pointer) { C.tx_net_free((*C.tx_net)(p)) })
			return nil
		})
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}
