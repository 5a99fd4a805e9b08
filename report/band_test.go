package report

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMeanBandOfOneRow(t *testing.T) {
	row := []float64{1, .5, .25}
	b := meanBand([][]float64{row})
	require.Equal(t, row, b.Mean)
	require.Equal(t, row, b.Lo)
	require.Equal(t, row, b.Hi)
	require.Empty(t, meanBand(nil).Mean)
}

// The bootstrap of a mean tends to the normal interval (Efron and Tibshirani
// 1993, section 13.3): at bootstrapMaximum rows and one more they meet.
func TestMeanBandMeetsTheNormalInterval(t *testing.T) {
	var rows [][]float64
	for i := range bootstrapMaximum {
		rows = append(rows, []float64{float64(i % 2)})
	}
	few := meanBand(rows)
	many := meanBand(append(rows, []float64{.5}))
	half := 1.96 * .5 / math.Sqrt(bootstrapMaximum)
	require.InDelta(t, .5, many.Mean[0], 1e-12)
	require.InDelta(t, .5-half, many.Lo[0], 1e-4)
	require.InDelta(t, .5+half, many.Hi[0], 1e-4)
	require.InDelta(t, .5-half, few.Lo[0], .1*half)
	require.InDelta(t, .5+half, few.Hi[0], .1*half)
}

// Published examples of Wilson's interval: 15 of 148 gives .0624 to .1605
// (Newcombe 1998, table I, method 3: 0.0624, 0.1605), 0 of 20 gives 0 to .1611,
// 81 of 263 gives .2553 to .3662.
func TestWilson(t *testing.T) {
	for _, c := range []struct {
		right, n int
		lo, hi   float64
	}{{81, 263, .2553, .3662}, {15, 148, .0624, .1605}, {0, 20, 0, .1611}, {1, 29, .0061, .1718}} {
		got := wilson(c.right, c.n)
		require.InDelta(t, c.lo, got.Lo, 5e-5)
		require.InDelta(t, c.hi, got.Hi, 5e-5)
	}
	require.Equal(t, interval{}, wilson(0, 0))
}
