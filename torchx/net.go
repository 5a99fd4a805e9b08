package torchx

// #include "torchx.h"
import "C"

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"sync"
	"unsafe"
)

// Precision is the arithmetic of a net.
type Precision int32

// The precisions. TF32 and BF16 trade accuracy for speed; F64 is for checks.
const (
	PrecisionF32  Precision = C.TX_PRECISION_F32
	PrecisionTF32 Precision = C.TX_PRECISION_TF32
	PrecisionBF16 Precision = C.TX_PRECISION_BF16
	PrecisionF64  Precision = C.TX_PRECISION_F64
)

// ParsePrecision returns the precision named "f32", "tf32", "bf16" or "f64".
func ParsePrecision(name string) (Precision, error) {
	switch name {
	case "", "f32":
		return PrecisionF32, nil
	case "tf32":
		return PrecisionTF32, nil
	case "bf16":
		return PrecisionBF16, nil
	case "f64":
		return PrecisionF64, nil
	}
	return 0, invalidf("net-prepare", "precision %q: want f32, tf32, bf16 or f64", name)
}

// handle is a C object with one free function: closed once, by Close or, as a
// net, by the garbage collector. The pointer is untyped because cgo's incomplete
// types cannot be type arguments.
type handle struct {
	mu   sync.RWMutex
	p    unsafe.Pointer
	free func(unsafe.Pointer)
}

func newHandle(p unsafe.Pointer, free func(unsafe.Pointer)) *handle {
	h := &handle{p: p, free: free}
	runtime.SetFinalizer(h, func(h *handle) { h.close() })
	return h
}

// with calls f with the object, which stays open until f returns.
func (h *handle) with(op, what string, f func(unsafe.Pointer) error) error {
	h.mu.RLock()
	defer h.mu.RUnlock()
	if h.p == nil {
		return closedError(op, what)
	}
	return f(h.p)
}

func (h *handle) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.p != nil {
		h.free(h.p)
		h.p = nil
	}
	runtime.SetFinalizer(h, nil)
}

// Net is a network on a device.
type Net struct {
	d *Device
	h *handle
}

// NetSpec names a net of the catalogue, or holds one. Zero Classes or Features:
// the net's own.
type NetSpec struct {
	Net      string `json:"net,omitempty"`
	Classes  int    `json:"classes,omitempty"`
	Features int    `json:"features,omitempty"`
	// Graph is a net file (docs/own-models.md), in place of all the others.
	Graph json.RawMessage `json:"graph,omitempty"`
}

// NewNet builds a net without parameters.
func (d *Device) NewNet(ctx context.Context, spec NetSpec) (*Net, error) {
	text, err := json.Marshal(spec)
	if err != nil {
		return nil, fmt.Errorf("net-new: %w", err)
	}
	n := &Net{d: d}
	err = d.do(ctx, "net-new", func() error {
		c, free := cString(string(text))
		defer free()
		var p *C.tx_net
		if err := failure(C.tx_net_new(c, &p)); err != nil {
			return err
		}
		n.h = newHandle(unsafe.Pointer(p), func(p unsafe.Pointer) { C.tx_net_free((*C.tx_net)(p)) })
		return nil
	})
	if err != nil {
		return nil, err
	}
	return n, nil
}

// Describe returns the JSON description of tx_net_describe.
func (n *Net) Describe() ([]byte, error) {
	var out []byte
	err := n.h.with("net-describe", "net", func(h unsafe.Pointer) error {
		p := (*C.tx_net)(h)
		var text *C.char
		if err := failure(C.tx_net_describe(p, &text)); err != nil {
			return err
		}
		out = take(text)
		return nil
	})
	return out, err
}

// Load copies all parameters into the net; see tx_net_load.
func (n *Net) Load(ctx context.Context, tensors map[string]*Tensor) error {
	return n.d.do(ctx, "net-load", func() error {
		return n.h.with("net-load", "net", func(h unsafe.Pointer) error {
			p := (*C.tx_net)(h)
			names := make([]*C.char, 0, len(tensors))
			handles := make([]C.tx_tensor, 0, len(tensors))
			for name, t := range tensors {
				c, free := cString(name)
				defer free()
				h, keep := t.pin()
				defer keep()
				names = append(names, c)
				handles = append(handles, h)
			}
			return failure(C.tx_net_load(p, C.int64_t(len(names)), (**C.char)(unsafe.SliceData(names)),
				unsafe.SliceData(handles)))
		})
	})
}

// Prepare moves the net to its device and makes it ready for inference.
func (n *Net) Prepare(ctx context.Context, precision Precision) error {
	return n.d.do(ctx, "net-prepare", func() error {
		return n.h.with("net-prepare", "net", func(h unsafe.Pointer) error {
			p := (*C.tx_net)(h)
			return failure(C.tx_net_prepare(p, n.d.c, C.int32_t(precision)))
		})
	})
}

// Forward returns the logits [N,classes] of x ([N,C,H,W] or [N,F]) on the CPU,
// running batch rows at a time (the last padded; 0: all at once).
func (n *Net) Forward(ctx context.Context, x *Tensor, batch int) (*Tensor, error) {
	var logits *Tensor
	err := n.d.do(ctx, "net-forward", func() error {
		return n.h.with("net-forward", "net", func(h unsafe.Pointer) error {
			p := (*C.tx_net)(h)
			in, keep := x.pin()
			defer keep()
			var out C.tx_tensor
			if err := failure(C.tx_net_forward(p, in, C.int64_t(batch), &out)); err != nil {
				return err
			}
			logits = adopt(out)
			return nil
		})
	})
	return logits, err
}

// Close frees the net. It waits for calls that run.
func (n *Net) Close() error {
	n.h.close()
	return nil
}
