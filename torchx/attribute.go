package torchx

// #include "torchx.h"
import "C"

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"unsafe"
)

// AttributeSpec is what tx_attribute wants beside the images.
type AttributeSpec struct {
	Method  []byte   // JSON: {"id": ..., parameters, "base": {...}}
	Targets []int32  // a class an image
	Keys    []uint64 // a random key an image
	// Batch is the number of rows that run at a time (the last ones padded).
	Batch      int
	Mean, Std  []float32 // of the preset, an entry a channel; nil for tables
	Features   int       // 0: the method's own
	FeatureMap []int32   // H*W or F entries; nil: the method's own
}

// AttributeReport is what a method says beside its maps.
type AttributeReport struct {
	// Forwards and Backwards count rows that ran, padding not.
	Forwards  int64 `json:"forwards"`
	Backwards int64 `json:"backwards"`
	// Deltas are the completeness gaps, one an image; empty where the method has none.
	Deltas   []float64 `json:"deltas"`
	Warnings []string  `json:"warnings"`
}

// Attribute explains images ([N,C,H,W] or [N,F]): signed maps [N,C,H,W],
// [N,1,H,W] or [N,F] on the CPU.
func (n *Net) Attribute(ctx context.Context, images *Tensor, spec AttributeSpec) (*Tensor, AttributeReport, error) {
	const op = "attribute"
	var report AttributeReport
	_, shape, err := images.Describe()
	if err != nil {
		return nil, report, err
	}
	rows := int(shape[0])
	if len(spec.Targets) != rows || len(spec.Keys) != rows {
		return nil, report, invalidf(op, "%d targets and %d keys for %d images", len(spec.Targets), len(spec.Keys), rows)
	}
	pixels := int(shape[len(shape)-1])
	if len(shape) == 4 {
		pixels *= int(shape[2])
		for _, values := range [][]float32{spec.Mean, spec.Std} {
			if values != nil && len(values) != int(shape[1]) {
				return nil, report, invalidf(op, "mean and std of %d entries for %d channels", len(values), shape[1])
			}
		}
	}
	if spec.FeatureMap != nil && len(spec.FeatureMap) != pixels {
		return nil, report, invalidf(op, "feature map of %d entries: want %d", len(spec.FeatureMap), pixels)
	}
	var maps *Tensor
	var said []byte
	err = n.d.do(ctx, op, func() error {
		return n.h.with(op, "net", func(h unsafe.Pointer) error {
			text, free := cString(string(spec.Method))
			defer free()
			in, keep := images.pin()
			defer keep()
			var pinner runtime.Pinner // what with points to
			defer pinner.Unpin()
			with := C.tx_attribute_options{batch: C.int64_t(spec.Batch), features: C.int32_t(spec.Features)}
			if spec.Mean != nil && spec.Std != nil {
				pinner.Pin(unsafe.SliceData(spec.Mean))
				pinner.Pin(unsafe.SliceData(spec.Std))
				with.mean, with.std = (*C.float)(unsafe.SliceData(spec.Mean)), (*C.float)(unsafe.SliceData(spec.Std))
			}
			if spec.FeatureMap != nil {
				pinner.Pin(unsafe.SliceData(spec.FeatureMap))
				with.feature_map = (*C.int32_t)(unsafe.SliceData(spec.FeatureMap))
			}
			var p C.tx_tensor
			var c *C.char
			if err := failure(C.tx_attribute((*C.tx_net)(h), text, in, (*C.int32_t)(unsafe.SliceData(spec.Targets)),
				(*C.uint64_t)(unsafe.SliceData(spec.Keys)), &with, &p, &c)); err != nil {
				return err
			}
			maps = adopt(p)
			said = take(c)
			return nil
		})
	})
	if err != nil {
		return nil, report, err
	}
	if err := json.Unmarshal(said, &report); err != nil {
		maps.Close()
		return nil, report, fmt.Errorf("%s: the library's report: %w", op, err)
	}
	return maps, report, nil
}
