package torchx

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTrainerLifetime(t *testing.T) {
	ctx := context.Background()
	d, err := Open("cpu", 1)
	require.NoError(t, err)
	defer d.Close()
	n, err := d.NewNet(ctx, NetSpec{Net: "logistic", Features: 3, Classes: 2})
	require.NoError(t, err)
	spec := TrainerSpec{Optimizer: OptimizerSpec{ID: "sgd", Momentum: .5}}
	tr, err := d.NewTrainer(ctx, n, spec, PrecisionF32)
	require.NoError(t, err)
	require.NoError(t, n.Close()) // the trainer has its own
	_, err = d.NewTrainer(ctx, n, spec, PrecisionF32)
	require.ErrorIs(t, err, ErrClosed)

	x, err := NewFloats([]int64{2, 3}, []float32{1, 0, 0, 0, 1, 0})
	require.NoError(t, err)
	y, err := NewTensor(I32, []int64{2}, []byte{0, 0, 0, 0, 1, 0, 0, 0})
	require.NoError(t, err)
	require.NoError(t, tr.SetData(ctx, "train", x, y))
	require.NoError(t, x.Close()) // its memory lives on
	require.ErrorIs(t, tr.SetData(ctx, "train", x, y), ErrInvalid)
	require.NoError(t, y.Close())
	losses, correct, examples, err := tr.Steps(ctx, []int32{0, 1}, 2, []float64{.1}, 0)
	require.NoError(t, err)
	require.Len(t, losses, 1)
	require.LessOrEqual(t, correct, 2)
	require.Equal(t, 2, examples)

	// Reading is copying: a step does not change what was read.
	state, err := tr.Parameters(ctx)
	require.NoError(t, err)
	require.Len(t, state, 2)
	before, err := state["fc.weight"].Floats()
	require.NoError(t, err)
	_, _, _, err = tr.Steps(ctx, []int32{0, 1}, 2, []float64{.1}, 1)
	require.NoError(t, err)
	after, err := state["fc.weight"].Floats()
	require.NoError(t, err)
	require.Equal(t, before, after)
	require.NoError(t, tr.SetState(ctx, state, nil))
	again, err := tr.Parameters(ctx)
	require.NoError(t, err)
	after, err = again["fc.weight"].Floats()
	require.NoError(t, err)
	require.Equal(t, before, after)
	dtype, shape, data, err := again["fc.bias"].Raw()
	require.NoError(t, err)
	require.Equal(t, "f32", dtype.String())
	require.Equal(t, []int64{2}, shape)
	require.Len(t, data, 8)
	momentum, err := tr.OptimizerState(ctx)
	require.NoError(t, err)
	zeros, err := momentum["fc.weight/momentum"].Floats()
	require.NoError(t, err)
	require.Equal(t, make([]float32, 6), zeros, "a new optimiser")
	for _, tensors := range []map[string]*Tensor{state, again, momentum} {
		for _, tensor := range tensors {
			require.NoError(t, tensor.Close())
		}
	}
	require.ErrorIs(t, tr.SetState(ctx, state, nil), ErrInvalid)

	require.NoError(t, tr.Close())
	require.NoError(t, tr.Close())
	_, err = tr.Parameters(ctx)
	require.ErrorIs(t, err, ErrClosed)
	_, _, _, err = tr.Evaluate(ctx, "train", 1)
	require.ErrorIs(t, err, ErrClosed)
}
