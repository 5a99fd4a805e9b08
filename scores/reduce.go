package scores

import (
	"math"

	"github.com/assay-xai/assay/internal/usage"
)

// reduction makes one value of the channels of a pixel.
type reduction struct {
	id     string
	first  func(v float64) float64
	add    func(sum, v float64) float64
	finish func(sum float64, channels int) float64
}

func reductions() []reduction {
	same := func(sum float64, _ int) float64 { return sum }
	plus := func(sum, v float64) float64 { return sum + v }
	identity := func(v float64) float64 { return v }
	square := func(v float64) float64 { return v * v }
	return []reduction{
		{"sum", identity, plus, same},
		{"abs-mean", math.Abs, plus, func(sum float64, n int) float64 { return sum / float64(n) }},
		{"abs-max", math.Abs, math.Max, same},
		{"abs-sum", math.Abs, plus, same},
		{"square-sum", square, plus, same},
	}
}

// noReduction keeps the channels.
const noReduction = "none"

// Reductions returns the names that Reduce takes: "none" first.
func Reductions() []string {
	out := []string{noReduction}
	for _, r := range reductions() {
		out = append(out, r.id)
	}
	return out
}

// Reduce makes one channel of a map, in double: of every pixel the sum over its
// channels, the mean, largest or sum of their absolute values, or the sum of
// their squares. A map of one channel goes through the same formula (abs-mean of
// it is its absolute value). "none" returns all values as they are.
func Reduce(m Map, by string) ([]float64, error) {
	if err := m.check(); err != nil {
		return nil, err
	}
	if by == noReduction {
		out := make([]float64, len(m.Values))
		for i, v := range m.Values {
			out[i] = float64(v)
		}
		return out, nil
	}
	for _, r := range reductions() {
		if r.id != by {
			continue
		}
		n := m.elements()
		channels := len(m.Values) / n
		out := make([]float64, n)
		for i := range out {
			sum := r.first(float64(m.Values[i]))
			for c := 1; c < channels; c++ {
				sum = r.add(sum, r.first(float64(m.Values[c*n+i])))
			}
			out[i] = r.finish(sum, channels)
		}
		return out, nil
	}
	return nil, usage.Errorf("reduction %q: want one of %v", by, Reductions())
}

func finiteMap(values []float32) bool {
	for _, v := range values {
		if v-v != 0 {
			return false
		}
	}
	return true
}

func constant(values []float64) bool {
	for _, v := range values {
		if v != values[0] {
			return false
		}
	}
	return true
}
