package torchx

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

func imputerSpec() ImputerSpec {
	return ImputerSpec{TrainerSpec: TrainerSpec{Seed: 1, Optimizer: OptimizerSpec{ID: "adam"}, Scale: 255}, Imputer: "gain", Input: []int{1, 4, 4},
		Alpha: 10, HintRate: .1, MaximumRate: .5, Width: 2}
}

func TestGeneratorsComeOutOfTrainings(t *testing.T) {
	ctx := context.Background()
	d, err := Open("cpu", 1)
	require.NoError(t, err)
	defer func() { require.NoError(t, d.Close()) }()
	tr, err := d.NewImputerTrainer(ctx, imputerSpec(), PrecisionF32)
	require.NoError(t, err)
	defer func() { require.NoError(t, tr.Close()) }()

	// Before there is data there is no mean image, which generators want.
	state, err := tr.Parameters(ctx)
	require.NoError(t, err)
	_, err = d.NewGenerator(ctx, state, PrecisionF32)
	require.ErrorIs(t, err, ErrInvalid)
	require.ErrorContains(t, err, "mfv is missing")

	x, err := NewTensor(U8, []int64{2, 1, 4, 4}, make([]byte, 32))
	require.NoError(t, err)
	y, err := NewTensor(I32, []int64{2}, make([]byte, 8))
	require.NoError(t, err)
	require.NoError(t, tr.SetData(ctx, "train", x, y))
	state, err = tr.Parameters(ctx)
	require.NoError(t, err)
	g, err := d.NewGenerator(ctx, state, PrecisionF32)
	require.NoError(t, err)
	require.NoError(t, g.Close())
	require.NoError(t, g.Close(), "twice")
	require.ErrorIs(t, g.with("remove", nil), ErrClosed)
	require.NoError(t, (*Generator)(nil).Close(), "none")

	_, err = d.NewGenerator(ctx, nil, PrecisionF32)
	require.ErrorIs(t, err, ErrInvalid)
	_, err = d.NewGenerator(ctx, state, Precision(9))
	require.ErrorIs(t, err, ErrInvalid)
	other := imputerSpec()
	other.Imputer = "zero"
	_, err = d.NewImputerTrainer(ctx, other, PrecisionF32)
	require.ErrorIs(t, err, ErrNotFound)
	require.ErrorContains(t, err, "want one of gain")
}
