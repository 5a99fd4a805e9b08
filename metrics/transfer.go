package metrics

import (
	"math"

	"github.com/assay-xai/assay/internal/rng"
)

// Matrix holds a score for every pair of nets, [source][target]: what the target
// gives for a trajectory that was found on the source. NaN: not measured.
type Matrix [][]float64

// Shares divides every score by what the target's own trajectory scores there,
// [t][t]: 1 on the diagonal, less elsewhere where searches on the target find the
// better trajectories. NaN where the own score is not above 0 or not measured.
func (m Matrix) Shares() Matrix {
	out := make(Matrix, len(m))
	for s := range m {
		out[s] = make([]float64, len(m[s]))
		for t := range m[s] {
			out[s][t] = math.NaN()
			if t < len(m) && m[t][t] > 0 {
				out[s][t] = m[s][t] / m[t][t]
			}
		}
	}
	return out
}

// Distances says how far every net is from the others: 1 less the mean of its
// shares, as the source of trajectories on the others, and as the target of
// theirs; the diagonal and what is not measured are left out. NaN: nothing is left.
func (m Matrix) Distances() (asSource, asTarget []float64) {
	shares := m.Shares()
	for n := range shares {
		var from, to []float64
		for other := range shares {
			if other == n {
				continue
			}
			if v := shares[n][other]; !math.IsNaN(v) {
				from = append(from, v)
			}
			if v := shares[other][n]; !math.IsNaN(v) {
				to = append(to, v)
			}
		}
		asSource, asTarget = append(asSource, 1-MeanOfCurve(from)), append(asTarget, 1-MeanOfCurve(to))
	}
	return asSource, asTarget
}

// MeanMatrix averages matrices of equal shape, one an image, cell by cell, leaving
// out NaN.
func MeanMatrix(images []Matrix) Matrix {
	all := make([]int, len(images))
	for i := range all {
		all[i] = i
	}
	return meanMatrix(images, all)
}

func meanMatrix(images []Matrix, pick []int) Matrix {
	if len(images) == 0 {
		return nil
	}
	out := make(Matrix, len(images[0]))
	for s := range out {
		out[s] = make([]float64, len(images[0][s]))
		for t := range out[s] {
			sum, n := 0., 0
			for _, i := range pick {
				if v := images[i][s][t]; !math.IsNaN(v) {
					sum += v
					n++
				}
			}
			out[s][t] = sum / float64(n)
		}
	}
	return out
}

// SummariseDistances returns the Distances of the mean matrix with percentile
// bootstrap intervals at a level; images are resampled, each with its whole matrix.
func SummariseDistances(images []Matrix, level float64, seed uint64) (asSource, asTarget []Summary) {
	if len(images) == 0 {
		return nil, nil
	}
	source, target := MeanMatrix(images).Distances()
	nets := len(source)
	samples := make([][]float64, 2*nets)
	stream := rng.New(seed, "metrics/bootstrap", "")
	pick := make([]int, len(images))
	for b := range uint64(Resamples) {
		for i := range pick {
			pick[i] = stream.IntN(b, uint64(i), len(images))
		}
		s, t := meanMatrix(images, pick).Distances()
		for n := range nets {
			samples[n] = append(samples[n], s[n])
			samples[nets+n] = append(samples[nets+n], t[n])
		}
	}
	for n := range nets {
		a, b := Summary{Mean: source[n], N: len(images)}, Summary{Mean: target[n], N: len(images)}
		a.Lo, a.Hi = interval(samples[n], level)
		b.Lo, b.Hi = interval(samples[nets+n], level)
		asSource, asTarget = append(asSource, a), append(asTarget, b)
	}
	return asSource, asTarget
}
