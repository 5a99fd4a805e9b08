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

// OptimizerSpec is SGD ("sgd": Momentum, Nesterov) or Adam ("adam": Beta1, Beta2,
// Epsilon) with PyTorch's update rules; WeightDecay is added to the gradient.
// What is nil is as in torch.optim: 0.9, 0.999, 1e-8.
type OptimizerSpec struct {
	ID          string   `json:"id"`
	Momentum    float64  `json:"momentum"`
	Nesterov    bool     `json:"nesterov"`
	WeightDecay float64  `json:"weightDecay"`
	Beta1       *float64 `json:"beta1,omitempty"`
	Beta2       *float64 `json:"beta2,omitempty"`
	Epsilon     *float64 `json:"epsilon,omitempty"`
}

// AugmentSpec moves and mirrors training images; see tx_trainer_new.
type AugmentSpec struct {
	Pad  int  `json:"pad"`
	Flip bool `json:"flip"`
}

// TrainerSpec is the spec of tx_trainer_new.
type TrainerSpec struct {
	Seed           uint64        `json:"seed"`
	Optimizer      OptimizerSpec `json:"optimizer"`
	LabelSmoothing float64       `json:"labelSmoothing,omitempty"`
	Augment        AugmentSpec   `json:"augment"`
	// (raw/Scale - Mean) / Std; Scale 0: 1.
	Scale float64   `json:"scale,omitempty"`
	Mean  []float64 `json:"mean,omitempty"`
	Std   []float64 `json:"std,omitempty"`
}

// ImputerSpec is the spec of tx_trainer_new_imputer. Mean and Std stay empty.
type ImputerSpec struct {
	TrainerSpec
	Imputer     string  `json:"imputer"` // "gain"
	Input       []int   `json:"input"`   // [C,H,W]
	Alpha       float64 `json:"alpha"`
	HintRate    float64 `json:"hintRate"`
	MaximumRate float64 `json:"maximumRate"`
	Width       int     `json:"width"`
}

// Trainer trains one net, or an imputer, on a device.
type Trainer struct {
	d *Device
	h *handle
}

// NewTrainer trains a copy of n, which needs no parameters and may be closed
// afterwards. The copy's parameters are drawn from the seed; SetState replaces them.
func (d *Device) NewTrainer(ctx context.Context, n *Net, spec TrainerSpec, precision Precision) (*Trainer, error) {
	return d.newTrainer(ctx, spec, func(op string, text *C.char, p **C.tx_trainer) error {
		return n.h.with(op, "net", func(net unsafe.Pointer) error {
			return failure(C.tx_trainer_new((*C.tx_net)(net), text, d.c, C.int32_t(precision), p))
		})
	})
}

// NewImputerTrainer trains an imputer. Its parameters are drawn from the seed; SetState
// replaces them.
func (d *Device) NewImputerTrainer(ctx context.Context, spec ImputerSpec, precision Precision) (*Trainer, error) {
	return d.newTrainer(ctx, spec, func(_ string, text *C.char, p **C.tx_trainer) error {
		return failure(C.tx_trainer_new_imputer(text, d.c, C.int32_t(precision), p))
	})
}

// newTrainer hands a spec, as JSON, to what makes a C trainer.
func (d *Device) newTrainer(ctx context.Context, spec any, open func(op string, text *C.char, p **C.tx_trainer) error) (*Trainer, error) {
	const op = "trainer-new"
	text, err := json.Marshal(spec)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", op, err)
	}
	t := &Trainer{d: d}
	err = d.do(ctx, op, func() error {
		c, free := cString(string(text))
		defer free()
		var p *C.tx_trainer
		if err := open(op, c, &p); err != nil {
			return err
		}
		t.h = newHandle(unsafe.Pointer(p), func(p unsafe.Pointer) { C.tx_trainer_free((*C.tx_trainer)(p)) })
		return nil
	})
	if err != nil {
		return nil, err
	}
	return t, nil
}

// do runs f with the C trainer on the device's thread.
func (t *Trainer) do(ctx context.Context, op string, f func(p *C.tx_trainer) error) error {
	return t.d.do(ctx, op, func() error {
		return t.h.with(op, "trainer", func(p unsafe.Pointer) error { return f((*C.tx_trainer)(p)) })
	})
}

// SetData puts examples (8-bit or float32 [N,C,H,W] or [N,F], raw) and their
// labels (int32 or int64 [N]) on the device as a part; "train" is what Steps sees. On the
// CPU the memory is shared: it lives on when the tensors are closed.
func (t *Trainer) SetData(ctx context.Context, part string, examples, labels *Tensor) error {
	return t.do(ctx, "trainer-data", func(p *C.tx_trainer) error {
		name, free := cString(part)
		defer free()
		x, keepX := examples.pin()
		defer keepX()
		y, keepY := labels.pin()
		defer keepY()
		return failure(C.tx_trainer_data(p, name, x, y))
	})
}

// Steps takes a step a rate; see tx_trainer_steps. It returns the steps' mean
// losses and the number of right predictions among those of all examples seen.
func (t *Trainer) Steps(ctx context.Context, indices []int32, batch int, rates []float64, first int64) (losses []float64, correct, examples int, err error) {
	losses = make([]float64, len(rates))
	var right, all C.int64_t
	err = t.do(ctx, "trainer-steps", func(p *C.tx_trainer) error {
		return failure(C.tx_trainer_steps(p, (*C.int32_t)(unsafe.SliceData(indices)), C.int64_t(len(indices)), C.int64_t(batch),
			(*C.double)(unsafe.SliceData(rates)), C.int64_t(len(rates)), C.int64_t(first),
			(*C.double)(unsafe.SliceData(losses)), &right, &all))
	})
	if err != nil {
		return nil, 0, 0, err
	}
	return losses, int(right), int(all), nil
}

// Evaluate runs a part in inference mode, batch rows at a time, and returns the
// mean cross-entropy (of imputers: squared error) and the number of right predictions.
func (t *Trainer) Evaluate(ctx context.Context, part string, batch int) (loss float64, correct, examples int, err error) {
	var mean C.double
	var right, all C.int64_t
	err = t.do(ctx, "trainer-evaluate", func(p *C.tx_trainer) error {
		name, free := cString(part)
		defer free()
		return failure(C.tx_trainer_evaluate(p, name, C.int64_t(batch), &mean, &right, &all))
	})
	return float64(mean), int(right), int(all), err
}

// Parameters returns a copy of the state dict, with buffers, on the CPU.
func (t *Trainer) Parameters(ctx context.Context) (map[string]*Tensor, error) {
	return t.state(ctx, C.TX_STATE_PARAMETERS)
}

// OptimizerState returns a copy of the optimiser's tensors ("fc.weight/momentum").
func (t *Trainer) OptimizerState(ctx context.Context) (map[string]*Tensor, error) {
	return t.state(ctx, C.TX_STATE_OPTIMIZER)
}

func (t *Trainer) state(ctx context.Context, which C.int32_t) (map[string]*Tensor, error) {
	out := map[string]*Tensor{}
	err := t.do(ctx, "trainer-read", func(p *C.tx_trainer) error {
		var text *C.char
		if err := failure(C.tx_trainer_names(p, which, &text)); err != nil {
			return err
		}
		var names []string
		if err := json.Unmarshal(take(text), &names); err != nil {
			return fmt.Errorf("trainer-read: the library's list of names: %w", err)
		}
		handles := make([]C.tx_tensor, len(names))
		if err := failure(C.tx_trainer_read(p, which, C.int64_t(len(handles)), unsafe.SliceData(handles))); err != nil {
			return err
		}
		for i, name := range names {
			out[name] = adopt(handles[i])
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// SetState copies a state in: all parameters (num_batches_tracked may be
// missing), and all of the optimiser's tensors, or none for a new optimiser.
func (t *Trainer) SetState(ctx context.Context, parameters, optimizer map[string]*Tensor) error {
	return t.do(ctx, "trainer-write", func(p *C.tx_trainer) error {
		names, tensors, free := pinAll(parameters)
		defer free()
		optimizerNames, optimizerTensors, freeOptimizer := pinAll(optimizer)
		defer freeOptimizer()
		return failure(C.tx_trainer_write(p, C.int64_t(len(names)), unsafe.SliceData(names), unsafe.SliceData(tensors),
			C.int64_t(len(optimizerNames)), unsafe.SliceData(optimizerNames), unsafe.SliceData(optimizerTensors)))
	})
}

// pinAll makes C lists of names and handles; free ends their use.
func pinAll(tensors map[string]*Tensor) (names []*C.char, handles []C.tx_tensor, free func()) {
	var ends []func()
	for name, t := range tensors {
		c, freeName := cString(name)
		h, keep := t.pin()
		names, handles, ends = append(names, c), append(handles, h), append(ends, freeName, keep)
	}
	return names, handles, func() {
		for _, end := range ends {
			end()
		}
		runtime.KeepAlive(tensors)
	}
}

// Close frees the trainer with its data. It waits for calls that run.
func (t *Trainer) Close() error {
	t.h.close()
	return nil
}
