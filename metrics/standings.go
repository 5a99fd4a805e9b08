package metrics

import (
	"cmp"
	"math"
	"slices"
)

// Standing is the place of a competitor by its mean; 1 is best, equal means ([Same])
// share the mean of their places.
type Standing struct {
	// Rank is 0 where the competitor has no values: then nothing else is set.
	Rank float64
	// Lo and Hi bound the rank at the level that was asked for: quantiles of its
	// ranks in bootstrap samples of the things.
	Lo, Hi float64
	// Best is the fraction of bootstrap samples in which it is first; samples in
	// which several are first count in equal parts.
	Best float64
	// Kept is the fraction of bootstrap samples in which its rank is Rank.
	Kept float64
}

// Standings ranks competitors by their means over the same things: values[c][i] is
// competitor c's value of thing i, NaN where it has none, which its mean leaves out.
// The things are resampled together for all competitors (Efron and Tibshirani 1993,
// section 13.3; Goldstein and Spiegelhalter 1996 on intervals of ranks).
func Standings(values [][]float64, higherIsBetter bool, level float64, seed uint64) []Standing {
	things := 0
	for _, v := range values {
		things = max(things, len(v))
	}
	return NewBootstrap(things, seed).Standings(values, higherIsBetter, level)
}

// leads says that no place is before this one.
func leads(place float64, all []float64) bool {
	return !slices.ContainsFunc(all, func(other float64) bool { return other > 0 && other < place })
}

// meanOf is the mean of the values that are there.
func meanOf(v []float64) float64 {
	sum, n := 0.0, 0
	for _, x := range v {
		if !math.IsNaN(x) {
			sum += x
			n++
		}
	}
	return sum / float64(n)
}

// Places are the ranks of scores, 1 for the best; equal scores share the mean of
// their ranks (Rong et al. 2022, section 6.1: the lowest accuracy is best where the
// most relevant pixels go first, the highest where the least relevant do). 0 where
// the score is NaN. Scores are equal as in Same: they are means, and the same values
// summed in another order differ in their last digits.
func Places(scores []float64, higherIsBetter bool) []float64 {
	out := make([]float64, len(scores))
	order := make([]int, 0, len(scores))
	for c, m := range scores {
		if !math.IsNaN(m) {
			order = append(order, c)
		}
	}
	slices.SortFunc(order, func(a, b int) int {
		if higherIsBetter {
			a, b = b, a
		}
		return cmp.Compare(scores[a], scores[b])
	})
	for i := 0; i < len(order); {
		j := i + 1
		for j < len(order) && Same(scores[order[j-1]], scores[order[j]]) {
			j++
		}
		for _, c := range order[i:j] {
			out[c] = float64(i+j+1) / 2
		}
		i = j
	}
	return out
}

// roundingOfMeans is by how much, relative to the larger, means of the same values may
// differ: a sum of n doubles is off by at most about n times 1.1e-16, less as a rule.
const roundingOfMeans = 1e-12

// Same says that two means are equal but for rounding: a relative 1e-12. NaN is
// the same as nothing, infinity as itself alone.
func Same(a, b float64) bool {
	if a == b {
		return true
	}
	larger := max(math.Abs(a), math.Abs(b))
	return !math.IsInf(larger, 0) && math.Abs(a-b) <= roundingOfMeans*larger
}
