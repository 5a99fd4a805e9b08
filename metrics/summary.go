package metrics

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"

	"github.com/assay-xai/assay/internal/rng"
)

// Resamples is the number of bootstrap samples behind every interval.
const Resamples = 2000

// Summary is a mean with a percentile bootstrap interval over n values.
type Summary struct {
	Mean, Lo, Hi float64
	N            int
}

// Summarise returns the mean of values and its percentile bootstrap interval at
// a level, for example .95 (Efron and Tibshirani 1993, section 13.3). One value
// has the interval of that value; none has NaN everywhere.
func Summarise(values []float64, level float64, seed uint64) Summary {
	n := len(values)
	if n == 0 {
		return Summary{math.NaN(), math.NaN(), math.NaN(), 0}
	}
	s := Summary{Mean: stat.Mean(values, nil), N: n}
	means := make([]float64, Resamples)
	stream := rng.New(seed, "metrics/bootstrap", "")
	for b := range means {
		means[b] = resampledMean(values, stream, uint64(b))
	}
	s.Lo, s.Hi = interval(means, level)
	return s
}

// Paired is the comparison of two measurements of the same things.
type Paired struct {
	// Difference summarises b - a; the things are resampled, each with both of
	// its values.
	Difference Summary
	// Above, Equal and Below count the things where b is greater than, the same
	// as and less than a.
	Above, Equal, Below int
}

// Pair compares a with b, values of the same things in the same order (of equal
// lengths, or else NaN everywhere), with the paired percentile bootstrap at a
// level.
func Pair(a, b []float64, level float64, seed uint64) Paired {
	if len(a) != len(b) {
		return Paired{Difference: Summarise(nil, level, seed)}
	}
	var p Paired
	differences := make([]float64, len(a))
	for i := range a {
		differences[i] = b[i] - a[i]
		switch {
		case b[i] > a[i]:
			p.Above++
		case b[i] < a[i]:
			p.Below++
		case b[i] == a[i]:
			p.Equal++
		}
	}
	p.Difference = Summarise(differences, level, seed)
	return p
}

func resampledMean(values []float64, stream rng.Stream, sample uint64) float64 {
	sum := 0.0
	for i := range values {
		sum += values[stream.IntN(sample, uint64(i), len(values))]
	}
	return sum / float64(len(values))
}

// interval returns the central part of samples that holds level of them; they
// are sorted in place. NaN anywhere gives NaN.
func interval(samples []float64, level float64) (lo, hi float64) {
	if slices.ContainsFunc(samples, math.IsNaN) {
		return math.NaN(), math.NaN()
	}
	slices.Sort(samples)
	tail := (1 - level) / 2
	return stat.Quantile(tail, stat.LinInterp, samples, nil), stat.Quantile(1-tail, stat.LinInterp, samples, nil)
}

// Band is a mean curve with a pointwise interval.
type Band struct{ Mean, Lo, Hi []float64 }

// MeanBand returns the pointwise mean of curves (all of one length) with
// percentile bootstrap intervals at a level. Whole curves are resampled, the
// same for every point. No curves give an empty band; curves of several lengths
// are cut to the shortest.
func MeanBand(curves [][]float64, level float64, seed uint64) Band {
	if len(curves) == 0 {
		return Band{}
	}
	points := len(curves[0])
	for _, c := range curves {
		points = min(points, len(c))
	}
	band := Band{make([]float64, points), make([]float64, points), make([]float64, points)}
	column := make([]float64, len(curves))
	means := make([]float64, Resamples)
	stream := rng.New(seed, "metrics/bootstrap", "")
	picks := make([][]int32, Resamples)
	for b := range picks {
		picks[b] = make([]int32, len(curves))
		for i := range picks[b] {
			picks[b][i] = int32(stream.IntN(uint64(b), uint64(i), len(curves)))
		}
	}
	for p := range points {
		for i, c := range curves {
			column[i] = c[p]
		}
		band.Mean[p] = stat.Mean(column, nil)
		for b, pick := range picks {
			sum := 0.0
			for _, i := range pick {
				sum += column[i]
			}
			means[b] = sum / float64(len(curves))
		}
		band.Lo[p], band.Hi[p] = interval(means, level)
	}
	return band
}

// Sum returns the plain sum over the points of a curve, as deletion scores are
// published (31.69 is a sum over 50 points).
func Sum(curve []float64) float64 {
	sum := 0.0
	for _, v := range curve {
		sum += v
	}
	return sum
}

// MeanOfCurve returns Sum divided by the number of points (t+1), so that curves
// of several lengths compare; NaN for an empty curve.
func MeanOfCurve(curve []float64) float64 { return Sum(curve) / float64(len(curve)) }
