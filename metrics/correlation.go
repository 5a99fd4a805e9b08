package metrics

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"
)

// Ranks returns the average ranks of values, 1 for the smallest; equal values
// share the mean of their ranks.
func Ranks(values []float64) []float64 {
	order := make([]int, len(values))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		switch {
		case values[a] < values[b]:
			return -1
		case values[a] > values[b]:
			return 1
		}
		return 0
	})
	ranks := make([]float64, len(values))
	for i := 0; i < len(order); {
		j := i
		for j < len(order) && values[order[j]] == values[order[i]] {
			j++
		}
		j = max(j, i+1) // NaN equals nothing
		for _, k := range order[i:j] {
			ranks[k] = float64(i+j+1) / 2
		}
		i = j
	}
	return ranks
}

// Spearman returns the rank correlation of x and y (equal lengths): Pearson's
// correlation of average ranks. NaN for fewer than two pairs, for a constant
// argument and where a value is NaN.
func Spearman(x, y []float64) float64 {
	if len(x) != len(y) || len(x) < 2 || slices.ContainsFunc(x, math.IsNaN) || slices.ContainsFunc(y, math.IsNaN) {
		return math.NaN()
	}
	rx, ry := Ranks(x), Ranks(y)
	if slices.Min(rx) == slices.Max(rx) || slices.Min(ry) == slices.Max(ry) {
		return math.NaN()
	}
	return min(1, max(-1, stat.Correlation(rx, ry, nil)))
}

// Kendall returns Kendall's tau-b of x and y (equal lengths), corrected for ties
// (Kendall 1945). NaN where Spearman is.
func Kendall(x, y []float64) float64 {
	if len(x) != len(y) || len(x) < 2 || slices.ContainsFunc(x, math.IsNaN) || slices.ContainsFunc(y, math.IsNaN) {
		return math.NaN()
	}
	var score, untiedX, untiedY float64
	for i := range x {
		for j := range i {
			a, b := sign(x[i]-x[j], x[i] == x[j]), sign(y[i]-y[j], y[i] == y[j])
			score += a * b
			untiedX += a * a
			untiedY += b * b
		}
	}
	return score / math.Sqrt(untiedX*untiedY)
}

// sign of a difference; equal infinities have no difference to look at.
func sign(d float64, equal bool) float64 {
	switch {
	case equal:
		return 0
	case d > 0:
		return 1
	}
	return -1
}
