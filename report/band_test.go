package report

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/assay-xai/assay/internal/rng"
)

func TestMeanBandOfOneRowAndOfEqualRows(t *testing.T) {
	row := []float64{1, .5, .25}
	b := meanBand([][]float64{row}, rng.Stream{})
	require.Equal(t, band{row, row, row}, b)
	b = meanBand([][]float64{row, row, row}, rng.Stream{})
	require.InDeltaSlice(t, row, b.Lo, 1e-15)
	require.InDeltaSlice(t, row, b.Hi, 1e-15)
	require.Equal(t, band{}, meanBand(nil, rng.Stream{}))
}

// With two rows 0 and 1, the mean of two draws is 0, 1/2 or 1 with
// probabilities 1/4, 1/2, 1/4: both percentiles are at the ends.
func TestMeanBandOfTwoRows(t *testing.T) {
	b := meanBand([][]float64{{0, 3}, {1, 3}}, rng.New(1, "t", ""))
	require.Equal(t, band{[]float64{.5, 3}, []float64{0, 3}, []float64{1, 3}}, b)
}

// The bootstrap of a mean tends to the normal interval with the standard
// deviation that divides by n (Efron and Tibshirani 1993, section 5.3): for
// 0..199 that is sqrt((200^2-1)/12).
func TestMeanBandTendsToTheNormalInterval(t *testing.T) {
	rows := make([][]float64, 200)
	for i := range rows {
		rows[i] = []float64{float64(i)}
	}
	half := 1.96 * math.Sqrt((200*200-1)/12.0) / math.Sqrt(200)
	// A percentile of 1000 draws has a standard error of about .04 half; the
	// mean over 16 streams a quarter of that.
	lo, hi := 0.0, 0.0
	for seed := range uint64(16) {
		b := meanBand(rows, rng.New(seed, "t", ""))
		require.Equal(t, 99.5, b.Mean[0])
		lo, hi = lo+b.Lo[0]/16, hi+b.Hi[0]/16
	}
	require.InDelta(t, 99.5-half, lo, .04*half)
	require.InDelta(t, 99.5+half, hi, .04*half)

	// Above bootstrapMaximum rows the interval is the normal one itself.
	rows = make([][]float64, 2000)
	for i := range rows {
		rows[i] = []float64{float64(i % 2)}
	}
	half = 1.959963984540054 * math.Sqrt(.25*2000/1999) / math.Sqrt(2000)
	b := meanBand(rows, rng.Stream{})
	require.InDelta(t, .5-half, b.Lo[0], 1e-12)
	require.InDelta(t, .5+half, b.Hi[0], 1e-12)
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
