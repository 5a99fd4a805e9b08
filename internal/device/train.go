package device

import (
	"context"
	"errors"
	"fmt"
	"unsafe"

	"github.com/assay-xai/assay/internal/usage"
	"github.com/assay-xai/assay/orchestrate"
	"github.com/assay-xai/assay/torchx"
	"github.com/assay-xai/assay/weights"
)

var _ orchestrate.TrainingBackend = (*Backend)(nil)

// OpenTrainer builds a net and its optimiser. An optimiser whose Beta1, Beta2 and
// Epsilon are all 0 takes PyTorch's (0.9, 0.999, 1e-8).
func (b *Backend) OpenTrainer(ctx context.Context, spec orchestrate.TrainerSpec, state map[string]weights.Tensor) (orchestrate.Trainer, error) {
	precision, err := torchx.ParsePrecision(spec.Precision)
	if err != nil {
		return nil, mark(err)
	}
	if err := b.makeBF16Safe(ctx, precision); err != nil {
		return nil, err
	}
	open := b.openNetTrainer
	if spec.Imputer != nil {
		open = b.openImputerTrainer
	}
	out, err := open(ctx, spec, precision)
	if err != nil {
		return nil, err
	}
	if state == nil {
		return out, nil
	}
	if err := out.SetState(ctx, state, nil); err != nil {
		return nil, errors.Join(err, out.Close())
	}
	return out, nil
}

func (b *Backend) openNetTrainer(ctx context.Context, spec orchestrate.TrainerSpec, precision torchx.Precision) (*trainer, error) {
	n, err := b.build(ctx, orchestrate.NetSpec{Net: spec.Net, Classes: spec.Classes, Features: spec.Features})
	if err != nil {
		return nil, mark(err)
	}
	defer n.Close()
	out := &trainer{}
	if out.info, err = describe(n); err != nil {
		return nil, err
	}
	if out.t, err = b.d.NewTrainer(ctx, n, trainerSpec(spec), precision); err != nil {
		return nil, fmt.Errorf("training %s: %w", spec.Net, mark(err))
	}
	return out, nil
}

func (b *Backend) openImputerTrainer(ctx context.Context, spec orchestrate.TrainerSpec, precision torchx.Precision) (*trainer, error) {
	i := spec.Imputer
	all := trainerSpec(spec)
	all.Mean, all.Std = nil, nil
	t, err := b.d.NewImputerTrainer(ctx, torchx.ImputerSpec{TrainerSpec: all, Imputer: i.ID, Input: i.Shape, Alpha: i.Alpha,
		HintRate: i.HintRate, MaximumRate: i.MaximumRate, Width: i.Width}, precision)
	if err != nil {
		return nil, fmt.Errorf("training imputer %s: %w", i.ID, mark(err))
	}
	return &trainer{t: t, info: orchestrate.NetInfo{Net: i.ID, Input: i.Shape}}, nil
}

func trainerSpec(spec orchestrate.TrainerSpec) torchx.TrainerSpec {
	o := spec.Optimizer
	optimizer := torchx.OptimizerSpec{ID: o.ID, Momentum: o.Momentum, Nesterov: o.Nesterov, WeightDecay: o.WeightDecay}
	if o.Beta1 != 0 || o.Beta2 != 0 || o.Epsilon != 0 {
		optimizer.Beta1, optimizer.Beta2, optimizer.Epsilon = &o.Beta1, &o.Beta2, &o.Epsilon
	}
	return torchx.TrainerSpec{
		Seed: spec.Seed, Optimizer: optimizer, LabelSmoothing: spec.LabelSmoothing,
		Augment: torchx.AugmentSpec{Pad: spec.Augment.Pad, Flip: spec.Augment.Flip},
		Scale:   spec.Preset.Scale, Mean: spec.Preset.Mean, Std: spec.Preset.Std,
	}
}

type trainer struct {
	t    *torchx.Trainer
	info orchestrate.NetInfo
}

// Info describes the net.
func (t *trainer) Info() orchestrate.NetInfo { return t.info }

// Close frees the trainer and its data.
func (t *trainer) Close() error { return t.t.Close() }

// said adds what was being done to an error.
func (t *trainer) said(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s %s: %w", what, t.info.Net, mark(err))
}

// SetData moves the examples of a part to the device.
func (t *trainer) SetData(ctx context.Context, part string, data orchestrate.TrainingData) error {
	each := 1
	for _, d := range data.Shape {
		if d < 1 {
			return usage.Errorf("%s data of shape %v: want sizes of 1 or more", part, data.Shape)
		}
		each *= d
	}
	if (len(data.Pixels) == 0) == (len(data.Values) == 0) {
		return usage.Errorf("%s data has %d pixels and %d values: want one of the two", part, len(data.Pixels), len(data.Values))
	}
	if all := len(data.Pixels) + len(data.Values); all != each*len(data.Labels) {
		return usage.Errorf("%s data: %d values for %d labels: want %d each, shape %v", part, all, len(data.Labels), each, data.Shape)
	}
	shape := []int64{int64(len(data.Labels))}
	for _, d := range data.Shape {
		shape = append(shape, int64(d))
	}
	var examples *torchx.Tensor
	var err error
	if len(data.Pixels) > 0 {
		examples, err = torchx.NewTensor(torchx.U8, shape, data.Pixels)
	} else {
		examples, err = torchx.NewFloats(shape, data.Values)
	}
	if err != nil {
		return t.said("data for", err)
	}
	defer examples.Close()
	labels, err := torchx.NewTensor(torchx.I32, shape[:1],
		unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(data.Labels))), 4*len(data.Labels)))
	if err != nil {
		return t.said("labels for", err)
	}
	defer labels.Close()
	return t.said("data for", t.t.SetData(ctx, part, examples, labels))
}

// Steps takes len(rates) steps.
func (t *trainer) Steps(ctx context.Context, indices []int32, batch int, rates []float64, first int64) (orchestrate.StepsResult, error) {
	losses, correct, examples, err := t.t.Steps(ctx, indices, batch, rates, first)
	if err != nil {
		return orchestrate.StepsResult{}, t.said("training", err)
	}
	return orchestrate.StepsResult{Losses: losses, Correct: correct, Examples: examples}, nil
}

// Evaluate runs a part in inference mode.
func (t *trainer) Evaluate(ctx context.Context, part string, batch int) (orchestrate.Evaluation, error) {
	loss, correct, examples, err := t.t.Evaluate(ctx, part, batch)
	if err != nil {
		return orchestrate.Evaluation{}, t.said("evaluating", err)
	}
	return orchestrate.Evaluation{Loss: loss, Correct: correct, Examples: examples}, nil
}

// Parameters returns a copy of the state dict.
func (t *trainer) Parameters(ctx context.Context) (map[string]weights.Tensor, error) {
	return t.copied(t.t.Parameters(ctx))
}

// OptimizerState returns a copy of the optimiser's tensors.
func (t *trainer) OptimizerState(ctx context.Context) (map[string]weights.Tensor, error) {
	return t.copied(t.t.OptimizerState(ctx))
}

func (t *trainer) copied(tensors map[string]*torchx.Tensor, err error) (map[string]weights.Tensor, error) {
	defer closeAll(tensors)
	out := make(map[string]weights.Tensor, len(tensors))
	for name, tensor := range tensors {
		dtype, shape, data, e := tensor.Raw()
		err = errors.Join(err, e)
		out[name] = weights.Tensor{DType: dtype.String(), Shape: shape, Data: data}
	}
	if err != nil {
		return nil, t.said("reading the state of", err)
	}
	return out, nil
}

// SetState puts parameters and optimiser state back; without optimiser state
// the optimiser starts afresh.
func (t *trainer) SetState(ctx context.Context, parameters, optimizer map[string]weights.Tensor) error {
	p, err := tensorsOf(parameters)
	defer closeAll(p)
	if err != nil {
		return t.said("weights for", err)
	}
	o, err := tensorsOf(optimizer)
	defer closeAll(o)
	if err != nil {
		return t.said("optimiser state for", err)
	}
	return t.said("setting the state of", t.t.SetState(ctx, p, o))
}

// tensorsOf makes all tensors, or some and an error.
func tensorsOf(state map[string]weights.Tensor) (map[string]*torchx.Tensor, error) {
	out := make(map[string]*torchx.Tensor, len(state))
	for name, t := range state {
		dtype, err := torchx.ParseDType(t.DType)
		if err != nil {
			return out, fmt.Errorf("%s: %w", name, err)
		}
		if out[name], err = torchx.NewTensor(dtype, t.Shape, t.Data); err != nil {
			return out, fmt.Errorf("%s: %w", name, err)
		}
	}
	return out, nil
}

func closeAll(tensors map[string]*torchx.Tensor) {
	for _, t := range tensors {
		t.Close()
	}
}
