package torchx

// #include "torchx.h"
import "C"

import (
	"context"
	"runtime"
	"unsafe"
)

// RemovalRow is an image without Removed of its features: the most relevant, or with
// Least the least relevant.
type RemovalRow struct {
	Image, Removed int
	Least          bool
}

// RemovalSpec is what tx_remove wants beside the images.
type RemovalSpec struct {
	Imputer   []byte     // JSON: {"id": ..., parameters}
	Generator *Generator // for "gain"; else nil
	// Maps rank features: [N,H*W] or [N,F], the largest first; nil: all are equal.
	Maps []float32
	// Ties is "random", "index" or "noise".
	Ties               string
	TieKeys, NoiseKeys []uint64  // a random key an image
	Mean, Std          []float32 // of the preset, an entry a channel; nil for tables
	DatasetMean        []float64 // an entry a channel or column, normalised; nil: not known
	Targets            []int32   // [N,TargetsEach]
	TargetsEach        int
	Rows               []RemovalRow
	Batch              int  // rows that run at a time (the last ones padded)
	Inputs             bool // asks for what the net saw
}

// Removal is what a net says of the rows, in their order.
type Removal struct {
	Classes       []int32
	Probabilities []float64 // [rows,TargetsEach]
	Variations    []float64
	Iterations    []int32
	// ImputeSeconds has ranking in it too.
	ImputeSeconds, ForwardSeconds float64
	// Inputs is what the net saw, on the CPU; nil unless asked for. The caller closes it.
	Inputs *Tensor
}

// check compares what a spec has with images of a shape.
func (s RemovalSpec) check(op string, shape []int64) error {
	images, channels, features := int(shape[0]), int(shape[1]), int(shape[len(shape)-1])
	if len(shape) == 4 {
		features *= int(shape[2])
	}
	for _, c := range []struct {
		what       string
		have, want int
		optional   bool
	}{
		{"numbers of maps", len(s.Maps), images * features, true},
		{"tie keys", len(s.TieKeys), images, true},
		{"noise keys", len(s.NoiseKeys), images, true},
		{"means", len(s.Mean), channels, true},
		{"stds", len(s.Std), channels, true},
		{"means of the data", len(s.DatasetMean), channels, true},
		{"targets", len(s.Targets), images * s.TargetsEach, false},
	} {
		if c.have != c.want && (c.have > 0 || !c.optional) {
			return invalidf(op, "%d %s for images %v: want %d", c.have, c.what, shape, c.want)
		}
	}
	if len(s.Rows) == 0 {
		return invalidf(op, "no rows: want at least one")
	}
	return nil
}

// Remove deletes features of images ([N,C,H,W] or [N,F]) by rank, imputes them and runs
// what is left.
func (n *Net) Remove(ctx context.Context, images *Tensor, spec RemovalSpec) (Removal, error) {
	const op = "remove"
	_, shape, err := images.Describe()
	if err != nil {
		return Removal{}, err
	}
	if err := spec.check(op, shape); err != nil {
		return Removal{}, err
	}
	rows := make([]C.tx_removal_row, len(spec.Rows))
	for i, r := range spec.Rows {
		rows[i] = C.tx_removal_row{image: C.int32_t(r.Image), removed: C.int32_t(r.Removed)}
		if r.Least {
			rows[i].least = 1
		}
	}
	out := Removal{Classes: make([]int32, len(rows)), Probabilities: make([]float64, len(rows)*spec.TargetsEach),
		Variations: make([]float64, len(rows)), Iterations: make([]int32, len(rows))}
	seconds := make([]float64, 2)
	err = n.d.do(ctx, op, func() error {
		return n.h.with(op, "net", func(h unsafe.Pointer) error {
			return spec.Generator.with(op, func(generator *C.tx_generator) error {
				imputer, freeImputer := cString(string(spec.Imputer))
				defer freeImputer()
				ties, freeTies := cString(spec.Ties)
				defer freeTies()
				in, keep := images.pin()
				defer keep()
				var pinner runtime.Pinner // what the structs point to
				defer pinner.Unpin()
				what := C.tx_removal{imputer: imputer, generator: generator, ties: ties,
					maps:     (*C.float)(pinned(&pinner, spec.Maps)),
					tie_keys: (*C.uint64_t)(pinned(&pinner, spec.TieKeys)), noise_keys: (*C.uint64_t)(pinned(&pinner, spec.NoiseKeys)),
					mean: (*C.float)(pinned(&pinner, spec.Mean)), std: (*C.float)(pinned(&pinner, spec.Std)),
					dataset_mean: (*C.double)(pinned(&pinner, spec.DatasetMean)),
					targets_each: C.int64_t(spec.TargetsEach), targets: (*C.int32_t)(pinned(&pinner, spec.Targets)),
					rows: C.int64_t(len(rows)), row: (*C.tx_removal_row)(pinned(&pinner, rows)), batch: C.int64_t(spec.Batch)}
				to := C.tx_removal_result{classes: (*C.int32_t)(pinned(&pinner, out.Classes)),
					probabilities: (*C.double)(pinned(&pinner, out.Probabilities)), variations: (*C.double)(pinned(&pinner, out.Variations)),
					iterations: (*C.int32_t)(pinned(&pinner, out.Iterations)), seconds: (*C.double)(pinned(&pinner, seconds))}
				var seen C.tx_tensor
				var wanted *C.tx_tensor
				if spec.Inputs {
					wanted = &seen
				}
				if err := failure(C.tx_remove((*C.tx_net)(h), in, &what, &to, wanted)); err != nil {
					return err
				}
				if spec.Inputs {
					out.Inputs = adopt(seen)
				}
				return nil
			})
		})
	})
	if err != nil {
		return Removal{}, err
	}
	out.ImputeSeconds, out.ForwardSeconds = seconds[0], seconds[1]
	return out, nil
}

// pinned is where a slice's values are, nil for an empty one.
func pinned[T any](p *runtime.Pinner, values []T) unsafe.Pointer {
	if len(values) == 0 {
		return nil
	}
	at := unsafe.Pointer(unsafe.SliceData(values))
	p.Pin(at)
	return at
}
