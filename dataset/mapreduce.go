package dataset

import (
	"math"
	"slices"
	"strings"

	"github.com/assay-xai/assay/internal/usage"
)

// MapReduction makes one value of the channels of a map at a place.
type MapReduction struct {
	ID      string
	Summary string
	// Signed is true of reductions whose values can be negative.
	Signed bool
	// channel is what a channel's value counts, join puts the next to those before;
	// divide says that the sum is divided by the number of channels.
	channel func(v float64) float64
	join    func(sum, v float64) float64
	divide  bool
}

// NoReduction leaves the channels of a map apart.
const NoReduction = "none"

// MapReductions lists the reductions of channels. On one channel, and on rows of
// tables, which have none, sum changes nothing and the abs- ones take the value's
// magnitude.
func MapReductions() []MapReduction {
	plus := func(sum, v float64) float64 { return sum + v }
	same := func(v float64) float64 { return v }
	square := func(v float64) float64 { return v * v }
	return []MapReduction{
		{ID: NoReduction, Summary: "the channels as they are", Signed: true},
		{ID: "abs-mean", Summary: "mean over channels of the magnitude", channel: math.Abs, join: plus, divide: true},
		{ID: "abs-max", Summary: "largest magnitude of the channels", channel: math.Abs, join: math.Max},
		{ID: "abs-sum", Summary: "sum over channels of the magnitude", channel: math.Abs, join: plus},
		{ID: "sum", Summary: "sum over channels", Signed: true, channel: same, join: plus},
		{ID: "square-sum", Summary: "sum over channels of the square (the ROAR papers' squared variants)", channel: square, join: plus},
	}
}

// MapReductionByID finds a reduction; "" is none.
func MapReductionByID(id string) (MapReduction, error) {
	if id == "" {
		id = NoReduction
	}
	list := MapReductions()
	if i := slices.IndexFunc(list, func(r MapReduction) bool { return r.ID == id }); i >= 0 {
		return list[i], nil
	}
	names := make([]string, len(list))
	for i, r := range list {
		names[i] = r.ID
	}
	return MapReduction{}, usage.Errorf("reduce %s: want one of %s", usage.Quote(id), strings.Join(names, ", "))
}

// Reduce makes [1,H,W] of a map [C,H,W] or [H,W], and [F] of [F]; "none" returns its
// arguments. Sums are in float64; what is no number at a place stays none.
func (r MapReduction) Reduce(values []float32, shape []int) ([]float32, []int) {
	if r.channel == nil {
		return values, shape
	}
	channels, to := 1, slices.Clone(shape)
	switch len(shape) {
	case 2:
		to = []int{1, shape[0], shape[1]}
	case 3:
		channels, to = shape[0], []int{1, shape[1], shape[2]}
	}
	out := make([]float32, len(values)/channels)
	for i := range out {
		sum := r.channel(float64(values[i]))
		for c := 1; c < channels; c++ {
			sum = r.join(sum, r.channel(float64(values[c*len(out)+i])))
		}
		if r.divide {
			sum /= float64(channels)
		}
		out[i] = float32(sum)
	}
	return out, to
}
