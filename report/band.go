package report

import (
	"math"
	"slices"

	"github.com/assay-xai/assay/internal/rng"
)

// band is a mean curve with pointwise 95 % confidence bounds of the mean.
type band struct{ Mean, Lo, Hi []float64 }

func (b band) slice(from, to int) band {
	return band{b.Mean[from:to], b.Lo[from:to], b.Hi[from:to]}
}

const (
	bootstrapDraws = 1000
	// bootstrapMaximum is the number of rows from which on the normal
	// approximation is used: by then it and the bootstrap agree to what can be
	// seen, and the bootstrap would cost minutes.
	bootstrapMaximum = 1000
)

// meanBand averages rows (one an image, all of one length) point by point.
// Bounds are the 2.5 and 97.5 percentiles of the means of rows drawn with
// replacement (Efron 1979), whole rows, so that points of a curve stay
// together; with one row they are the mean.
func meanBand(rows [][]float64, stream rng.Stream) band {
	if len(rows) == 0 {
		return band{}
	}
	n, points := len(rows), len(rows[0])
	b := band{make([]float64, points), make([]float64, points), make([]float64, points)}
	for _, row := range rows {
		for j, v := range row {
			b.Mean[j] += v
		}
	}
	for j := range b.Mean {
		b.Mean[j] /= float64(n)
	}
	copy(b.Lo, b.Mean)
	copy(b.Hi, b.Mean)
	switch {
	case n == 1:
	case n > bootstrapMaximum:
		b.normal(rows)
	default:
		b.bootstrap(rows, stream)
	}
	return b
}

func (b band) normal(rows [][]float64) {
	const z = 1.959963984540054 // 97.5 % of the standard normal
	n := float64(len(rows))
	for j, mean := range b.Mean {
		ss := 0.0
		for _, row := range rows {
			ss += (row[j] - mean) * (row[j] - mean)
		}
		d := z * math.Sqrt(ss/(n-1)/n)
		b.Lo[j], b.Hi[j] = mean-d, mean+d
	}
}

func (b band) bootstrap(rows [][]float64, stream rng.Stream) {
	n := len(rows)
	means := make([][]float64, len(b.Mean)) // point, draw
	for j := range means {
		means[j] = make([]float64, bootstrapDraws)
	}
	for d := range bootstrapDraws {
		for i := range n {
			for j, v := range rows[stream.IntN(uint64(d), uint64(i), n)] {
				means[j][d] += v
			}
		}
	}
	for j, list := range means {
		slices.Sort(list)
		b.Lo[j] = list[bootstrapDraws*25/1000] / float64(n)
		b.Hi[j] = list[bootstrapDraws*975/1000-1] / float64(n)
	}
}
