package metrics

import (
	"math"

	"gonum.org/v1/gonum/stat"
)

// Spread says how far repeated measurements lie apart.
type Spread struct {
	Mean float64
	// Deviation is the sample standard deviation, with n-1 below; Error the standard
	// error of the mean, Deviation / sqrt(n). NaN for fewer than two values.
	Deviation, Error float64
	N                int // values that are not NaN
}

// SpreadOf returns the spread of the values that are not NaN; without any, NaN
// everywhere.
func SpreadOf(values []float64) Spread {
	var there []float64
	for _, v := range values {
		if !math.IsNaN(v) {
			there = append(there, v)
		}
	}
	s := Spread{Mean: math.NaN(), Deviation: math.NaN(), Error: math.NaN(), N: len(there)}
	if s.N > 0 {
		s.Mean = stat.Mean(there, nil)
	}
	if s.N > 1 {
		s.Deviation = stat.StdDev(there, nil)
		s.Error = s.Deviation / math.Sqrt(float64(s.N))
	}
	return s
}
