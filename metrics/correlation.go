package metrics

import (
	"cmp"
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
// (Kendall, "The treatment of ties in ranking problems", 1945), in n log n steps
// (Knight, "A computer method for calculating Kendall's tau with ungrouped
// data", 1966). NaN where Spearman is.
func Kendall(x, y []float64) float64 {
	if len(x) != len(y) || len(x) < 2 || slices.ContainsFunc(x, math.IsNaN) || slices.ContainsFunc(y, math.IsNaN) {
		return math.NaN()
	}
	n := len(x)
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Or(cmp.Compare(x[a], x[b]), cmp.Compare(y[a], y[b])) })
	sorted := make([]float64, n)
	for i, k := range order {
		sorted[i] = y[k]
	}
	tiedX := tiedPairs(n, func(i, j int) bool { return x[order[i]] == x[order[j]] })
	tiedBoth := tiedPairs(n, func(i, j int) bool { return x[order[i]] == x[order[j]] && sorted[i] == sorted[j] })
	discordant := inversions(sorted, make([]float64, n)) // sorts them
	tiedY := tiedPairs(n, func(i, j int) bool { return sorted[i] == sorted[j] })
	pairs := int64(n) * int64(n-1) / 2
	score := pairs - tiedX - tiedY + tiedBoth - 2*discordant
	return float64(score) / math.Sqrt(float64(pairs-tiedX)*float64(pairs-tiedY))
}

// tiedPairs counts the pairs of equal values among n sorted ones.
func tiedPairs(n int, equal func(i, j int) bool) int64 {
	var pairs int64
	for i := 0; i < n; {
		j := i + 1
		for j < n && equal(i, j) {
			j++
		}
		pairs += int64(j-i) * int64(j-i-1) / 2
		i = j
	}
	return pairs
}

// inversions sorts values and counts the pairs that were in the wrong order;
// scratch is as long as values.
func inversions(values, scratch []float64) int64 {
	n := len(values)
	if n < 2 {
		return 0
	}
	half := n / 2
	count := inversions(values[:half], scratch[:half]) + inversions(values[half:], scratch[half:])
	copy(scratch, values)
	i, j := 0, half
	for k := range values {
		if j == n || i < half && scratch[i] <= scratch[j] {
			values[k] = scratch[i]
			i++
			continue
		}
		values[k] = scratch[j]
		count += int64(half - i)
		j++
	}
	return count
}
