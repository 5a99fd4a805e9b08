package metrics

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"

	"github.com/assay-xai/assay/internal/rng"
)

// Standing is the place of a competitor by its mean; 1 is best, equal means share the
// mean of their places.
type Standing struct {
	// Rank is 0 where the competitor has no values: then nothing else is set.
	Rank float64
	// Lo and Hi bound the rank at the level that was asked for: quantiles of its
	// ranks in bootstrap samples of the things.
	Lo, Hi float64
	// Best is the fraction of bootstrap samples in which it is first; samples in
	// which several are first count in equal parts.
	Best float64
}

// Standings ranks competitors by their means over the same things: values[c][i] is
// competitor c's value of thing i, NaN where it has none, which its mean leaves out.
// The things are resampled together for all competitors (Efron and Tibshirani 1993,
// section 13.3; Goldstein and Spiegelhalter 1996 on intervals of ranks).
func Standings(values [][]float64, higherIsBetter bool, level float64, seed uint64) []Standing {
	out := make([]Standing, len(values))
	things := 0
	for _, v := range values {
		things = max(things, len(v))
	}
	means := make([]float64, len(values))
	for c, v := range values {
		means[c] = meanOf(v, nil)
	}
	for c, place := range places(means, higherIsBetter) {
		out[c].Rank = place
	}
	if things == 0 {
		return out
	}
	stream := rng.New(seed, "metrics/bootstrap", "")
	picks := make([]int, things)
	samples := make([][]float64, len(values))
	for b := range Resamples {
		for i := range picks {
			picks[i] = stream.IntN(uint64(b), uint64(i), things)
		}
		for c, v := range values {
			means[c] = meanOf(v, picks)
		}
		drawn := places(means, higherIsBetter)
		first := 0
		for c, place := range drawn {
			if place > 0 {
				samples[c] = append(samples[c], place)
			}
			if place > 0 && leads(place, drawn) {
				first++
			}
		}
		for c, place := range drawn {
			if place > 0 && leads(place, drawn) {
				out[c].Best += 1 / float64(first*Resamples)
			}
		}
	}
	tail := (1 - level) / 2
	for c := range out {
		if len(samples[c]) == 0 {
			continue
		}
		slices.Sort(samples[c])
		out[c].Lo = stat.Quantile(tail, stat.Empirical, samples[c], nil)
		out[c].Hi = stat.Quantile(1-tail, stat.Empirical, samples[c], nil)
	}
	return out
}

// leads says that no place is before this one.
func leads(place float64, all []float64) bool {
	return !slices.ContainsFunc(all, func(other float64) bool { return other > 0 && other < place })
}

// meanOf is the mean of the values that are there, of all or of the picked things.
func meanOf(v []float64, picks []int) float64 {
	sum, n := 0.0, 0
	add := func(x float64) {
		if !math.IsNaN(x) {
			sum += x
			n++
		}
	}
	if picks == nil {
		for _, x := range v {
			add(x)
		}
	}
	for _, i := range picks {
		if i < len(v) {
			add(v[i])
		}
	}
	return sum / float64(n)
}

// places are the ranks of means, 0 of NaN.
func places(means []float64, higherIsBetter bool) []float64 {
	out := make([]float64, len(means))
	for c, m := range means {
		if math.IsNaN(m) {
			continue
		}
		before, same := 0, 0
		for _, other := range means {
			switch {
			case other == m:
				same++
			case other > m == higherIsBetter && !math.IsNaN(other):
				before++
			}
		}
		out[c] = float64(before) + float64(same+1)/2
	}
	return out
}
