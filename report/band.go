package report

import (
	"math"

	"github.com/assay-xai/assay/metrics"
)

const (
	confidence = .95
	// bootstrapMaximum is the number of rows from which on the normal
	// approximation is used: by then it and the bootstrap agree to what can be
	// seen, and the bootstrap would cost minutes.
	bootstrapMaximum = 1000
)

// meanBand averages rows (one an image, all of one length) point by point, with
// 95 % bounds of the mean from a bootstrap over rows or, for many rows, from
// the normal approximation. With one row the bounds are the mean.
func meanBand(rows [][]float64) metrics.Band {
	if len(rows) <= bootstrapMaximum {
		return metrics.MeanBand(rows, confidence, 0)
	}
	n, points := float64(len(rows)), len(rows[0])
	b := metrics.Band{Mean: make([]float64, points), Lo: make([]float64, points), Hi: make([]float64, points)}
	const z = 1.959963984540054 // 97.5 % of the standard normal
	for j := range points {
		sum, squares := 0.0, 0.0
		for _, row := range rows {
			sum += row[j]
		}
		mean := sum / n
		for _, row := range rows {
			squares += (row[j] - mean) * (row[j] - mean)
		}
		d := z * math.Sqrt(squares/(n-1)/n)
		b.Mean[j], b.Lo[j], b.Hi[j] = mean, mean-d, mean+d
	}
	return b
}

func part(b metrics.Band, from, to int) metrics.Band {
	return metrics.Band{Mean: b.Mean[from:to], Lo: b.Lo[from:to], Hi: b.Hi[from:to]}
}
