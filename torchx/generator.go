package torchx

// #include "torchx.h"
import "C"

import (
	"context"
	"unsafe"
)

// Generator is what the imputer "gain" is made of: a trained generator, ready to be run on a
// device.
type Generator struct{ h *handle }

// NewGenerator takes the generator and the mean image out of the state of a training of
// NewImputerTrainer; other tensors are let be. precision is that of the nets that it
// imputes for.
func (d *Device) NewGenerator(ctx context.Context, state map[string]*Tensor, precision Precision) (*Generator, error) {
	const op = "generator-new"
	g := &Generator{}
	err := d.do(ctx, op, func() error {
		names, tensors, free := pinAll(state)
		defer free()
		var p *C.tx_generator
		if err := failure(C.tx_generator_new(C.int64_t(len(names)), unsafe.SliceData(names), unsafe.SliceData(tensors),
			d.c, C.int32_t(precision), &p)); err != nil {
			return err
		}
		g.h = newHandle(unsafe.Pointer(p), func(p unsafe.Pointer) { C.tx_generator_free((*C.tx_generator)(p)) })
		return nil
	})
	if err != nil {
		return nil, err
	}
	return g, nil
}

// with calls f with the C generator, nil for none, which stays open until f returns.
func (g *Generator) with(op string, f func(p *C.tx_generator) error) error {
	if g == nil {
		return f(nil)
	}
	return g.h.with(op, "generator", func(p unsafe.Pointer) error { return f((*C.tx_generator)(p)) })
}

// Close frees the generator when what was made with it is closed, too.
func (g *Generator) Close() error {
	if g != nil {
		g.h.close()
	}
	return nil
}
