package torchx

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

// What is wrong with a call is said, and a closed handle is no crash.
func TestScoreCallsRefuse(t *testing.T) {
	ctx := context.Background()
	d, err := Open("cpu", 1)
	require.NoError(t, err)
	defer d.Close()
	n, err := d.NewNet(ctx, NetSpec{Net: "logistic", Features: 3, Classes: 2})
	require.NoError(t, err)
	layers, err := n.Parametrised()
	require.NoError(t, err)
	require.Len(t, layers, 1)
	require.Equal(t, "linear", layers[0].Op)

	x, err := NewFloats([]int64{2, 3}, []float32{1, 2, 3, 4, 5, 6})
	require.NoError(t, err)
	rows, err := d.Noisy(ctx, x, []Draw{{Row: 1}, {Row: 0}, {Row: 1}}, 0)
	require.NoError(t, err)
	got, err := rows.Floats()
	require.NoError(t, err)
	require.Equal(t, []float32{4, 5, 6, 1, 2, 3, 4, 5, 6}, got)
	require.NoError(t, rows.Close())
	_, err = d.Noisy(ctx, x, []Draw{{Row: 2}}, 0)
	require.ErrorIs(t, err, ErrInvalid)
	require.ErrorContains(t, err, "row[0] is 2: want 0..1")
	_, err = d.Noisy(ctx, x, nil, 0)
	require.ErrorIs(t, err, ErrInvalid)
	_, err = d.Noisy(ctx, nil, []Draw{{}}, 0)
	require.Error(t, err)

	mask := []float32{1, 1, 1}
	_, _, err = n.Scaled(ctx, x, []int32{0}, mask, []int32{0}, 1) // not prepared
	require.ErrorIs(t, err, ErrInvalid)
	_, _, err = n.Scaled(ctx, x, []int32{0}, mask[:2], []int32{0}, 1)
	require.ErrorIs(t, err, ErrInvalid)
	_, err = n.Randomised(ctx, []string{"fc"}, 0)
	require.ErrorIs(t, err, ErrInvalid)

	weight, err := NewFloats([]int64{2, 3}, []float32{1, 0, 0, 0, 1, 0})
	require.NoError(t, err)
	bias, err := NewFloats([]int64{2}, []float32{0, 0})
	require.NoError(t, err)
	name := layers[0].Name
	require.NoError(t, n.Load(ctx, map[string]*Tensor{name + ".weight": weight, name + ".bias": bias}))
	require.NoError(t, n.Prepare(ctx, PrecisionF32))
	logits, _, err := n.Scaled(ctx, x, []int32{1, 0, 1}, []float32{.5, 1, 1, 1, 1, 1, 0, 2, 0}, []int32{0, 1, 1}, 2)
	require.NoError(t, err)
	require.Equal(t, []float64{2, 2, 10}, logits)
	_, _, err = n.Scaled(ctx, x, []int32{2}, mask, []int32{0}, 1)
	require.ErrorContains(t, err, "row[0] is 2: want 0..1")
	_, _, err = n.Scaled(ctx, x, []int32{0}, mask, []int32{2}, 1)
	require.ErrorContains(t, err, "target[0] is 2: the net has classes 0..1")
	_, _, err = n.Scaled(ctx, x, []int32{0}, mask, []int32{0}, 0)
	require.ErrorIs(t, err, ErrInvalid)
	_, err = n.Randomised(ctx, []string{"nothing"}, 0)
	require.ErrorIs(t, err, ErrNotFound)
	other, err := n.Randomised(ctx, []string{name}, 1)
	require.NoError(t, err)
	require.NoError(t, n.Close()) // the copy has its own
	_, _, err = other.Scaled(ctx, x, []int32{0}, mask, []int32{0}, 1)
	require.NoError(t, err)
	require.NoError(t, other.Close())
	_, err = other.Randomised(ctx, nil, 0)
	require.ErrorIs(t, err, ErrClosed)
	_, err = other.Parametrised()
	require.ErrorIs(t, err, ErrClosed)
	_, _, err = other.Scaled(ctx, x, []int32{0}, mask, []int32{0}, 1)
	require.ErrorIs(t, err, ErrClosed)
	for _, tensor := range []*Tensor{x, weight, bias} {
		require.NoError(t, tensor.Close())
	}
	_, err = d.Noisy(ctx, x, []Draw{{}}, 0)
	require.Error(t, err)
}
