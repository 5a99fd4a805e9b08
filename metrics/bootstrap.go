package metrics

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"

	"github.com/assay-xai/assay/internal/rng"
)

// Bootstrap is Resamples samples, with replacement, of a number of things: drawn
// once for all statistics of the same things, which many images make dear.
type Bootstrap struct {
	things int
	counts [][]uint16 // [sample][thing]: how often it was drawn
}

// NewBootstrap draws the samples that Summarise and Standings draw of as many
// things from the same seed.
func NewBootstrap(things int, seed uint64) *Bootstrap {
	b := &Bootstrap{things: max(things, 0)}
	if b.things == 0 {
		return b
	}
	b.counts = make([][]uint16, Resamples)
	stream := rng.New(seed, "metrics/bootstrap", "")
	for s := range b.counts {
		b.counts[s] = make([]uint16, b.things)
		for i := range b.things {
			if c := &b.counts[s][stream.IntN(uint64(s), uint64(i), b.things)]; *c < math.MaxUint16 {
				*c++
			}
		}
	}
	return b
}

// Things is the number of things that are sampled.
func (b *Bootstrap) Things() int { return b.things }

// Means are the means of values in every sample, of those that are not NaN: NaN
// where none is left. Values beyond the things are left out; missing ones are NaN.
// They cost what Summarise and Standings cost, which SummaryOf and StandingsOf share.
func (b *Bootstrap) Means(values []float64) []float64 {
	filled, there := make([]float64, b.things), make([]float64, b.things)
	complete := len(values) >= b.things
	for i := range min(b.things, len(values)) {
		if math.IsNaN(values[i]) {
			complete = false
			continue
		}
		filled[i], there[i] = values[i], 1
	}
	out := make([]float64, len(b.counts))
	for s, counts := range b.counts {
		sum, n := 0.0, float64(b.things)
		for i, c := range counts {
			sum += float64(c) * filled[i]
		}
		if !complete {
			n = 0
			for i, c := range counts {
				n += float64(c) * there[i]
			}
		}
		out[s] = sum / n
	}
	return out
}

// Summarise is the function Summarise for values of the things, one each, but for
// rounding. NaN everywhere where the number of values is another.
func (b *Bootstrap) Summarise(values []float64, level float64) Summary {
	if len(values) != b.things || b.things == 0 {
		return Summary{math.NaN(), math.NaN(), math.NaN(), 0}
	}
	return SummaryOf(values, b.Means(values), level)
}

// SummaryOf is the summary of values whose means in samples are known.
func SummaryOf(values, sampled []float64, level float64) Summary {
	s := Summary{Mean: stat.Mean(values, nil), N: len(values)}
	s.Lo, s.Hi = interval(slices.Clone(sampled), level)
	return s
}

// Standings is the function Standings for values of the things.
func (b *Bootstrap) Standings(values [][]float64, higherIsBetter bool, level float64) []Standing {
	means, sampled := make([]float64, len(values)), make([][]float64, len(values))
	for c, v := range values {
		means[c], sampled[c] = meanOf(v[:min(len(v), b.things)]), b.Means(v)
	}
	return StandingsOf(means, sampled, higherIsBetter, level)
}

// StandingsOf are the standings of competitors whose means are known, and those in
// samples of the same things, [competitor][sample].
func StandingsOf(overall []float64, sampled [][]float64, higherIsBetter bool, level float64) []Standing {
	out := make([]Standing, len(overall))
	for c, place := range Places(overall, higherIsBetter) {
		out[c].Rank = place
	}
	if len(sampled) == 0 || len(sampled[0]) == 0 {
		return out
	}
	means := make([]float64, len(overall))
	ranks := make([][]float64, len(overall))
	for s := range sampled[0] {
		for c := range overall {
			means[c] = sampled[c][s]
		}
		drawn := Places(means, higherIsBetter)
		first := 0
		for _, place := range drawn {
			if place > 0 && leads(place, drawn) {
				first++
			}
		}
		for c, place := range drawn { // a sample may have none of a competitor's things
			if place == 0 {
				continue
			}
			ranks[c] = append(ranks[c], place)
			if leads(place, drawn) {
				out[c].Best += 1 / float64(first*Resamples)
			}
			if place == out[c].Rank {
				out[c].Kept += 1.0 / Resamples
			}
		}
	}
	tail := (1 - level) / 2
	for c := range out {
		if len(ranks[c]) == 0 {
			continue
		}
		slices.Sort(ranks[c])
		out[c].Lo = stat.Quantile(tail, stat.Empirical, ranks[c], nil)
		out[c].Hi = stat.Quantile(1-tail, stat.Empirical, ranks[c], nil)
	}
	return out
}
