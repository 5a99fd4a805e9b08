package metrics

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSharesAndDistances(t *testing.T) {
	nan := math.NaN()
	m := Matrix{{10, 2, 4}, {5, 4, 6}, {nan, 1, 8}}
	shares := m.Shares()
	require.Equal(t, []float64{1, .5, .5}, shares[0])
	require.Equal(t, []float64{.5, 1, .75}, shares[1])
	require.True(t, math.IsNaN(shares[2][0]))
	require.Equal(t, .25, shares[2][1])
	source, target := m.Distances()
	require.InDeltaSlice(t, []float64{.5, 1 - (.5+.75)/2, .75}, source, 1e-12)
	require.InDeltaSlice(t, []float64{.5, 1 - (.5+.25)/2, 1 - (.5+.75)/2}, target, 1e-12)
	// A score that is not above 0 is nothing to be a share of.
	require.True(t, math.IsNaN(Matrix{{0, 1}, {1, 1}}.Shares()[1][0]))
	source, target = Matrix{{3}}.Distances()
	require.True(t, math.IsNaN(source[0]) && math.IsNaN(target[0]))
}

func TestSummariseDistances(t *testing.T) {
	images := []Matrix{{{2, 1}, {1, 4}}, {{4, 2}, {1, 4}}, {{6, 3}, {1, 4}}}
	require.Equal(t, Matrix{{4, 2}, {1, 4}}, MeanMatrix(images))
	source, target := SummariseDistances(images, .95, 1)
	require.Equal(t, Summary{Mean: .5, Lo: .25, Hi: .75, N: 3}, source[0], "the extremes are of three equal images: 1 sample in 27 each")
	require.Equal(t, source[0], target[1])
	require.InDelta(t, .75, source[1].Mean, 1e-12)
	require.InDelta(t, .5, source[1].Lo, 1e-12)
	source, _ = SummariseDistances(nil, .95, 1)
	require.Empty(t, source)
	require.Nil(t, MeanMatrix(nil))
	require.True(t, math.IsNaN(MeanMatrix([]Matrix{{{math.NaN()}}})[0][0]))
}
