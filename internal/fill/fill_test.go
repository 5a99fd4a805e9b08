package fill_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/assay-xai/assay/internal/fill"
)

// Expected values: numpy 2.4.6, through fill and parameter of scripts/golden_nets.py.
func TestAsInPython(t *testing.T) {
	cases := []struct {
		name  string
		shape []int64
		want  []float32
	}{
		{"conv1.weight", []int64{2, 1, 1, 2}, []float32{0.110410698, 0.600521207, -1.16859829, 0.578564167}},
		{"bn1.weight", []int64{3}, []float32{0.930101991, 1.1622045, 1.03459394}},
		{"bn1.running_var", []int64{2}, []float32{1.07115376, 1.14337671}},
		{"bn1.running_mean", []int64{2}, []float32{0.0468899943, 0.0201237369}},
		{"fc.bias", []int64{3}, []float32{-0.00446973881, -0.00385363633, -0.0439873822}},
		{"fc.weight", []int64{2, 3}, []float32{-0.0307083726, 0.74453938, 0.487049997, 0.40101245, -0.592583776, 0.611088812}},
		{"bn1.num_batches_tracked", []int64{}, []float32{0}},
	}
	for _, c := range cases {
		require.Equal(t, c.want, fill.Tensor(c.name, c.shape, false), c.name)
	}
	require.Equal(t, []float32{-1.39319813, 0.527791977, -1.02667558, -0.781346619, 1.0083915, 0.894833684}, fill.Input([]int64{2, 3}))
}
