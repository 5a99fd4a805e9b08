package trace

import (
	"fmt"
	"slices"

	"github.com/assay-xai/assay/internal/usage"
)

// Edges returns the numbers of patches a side that a deletion game may have.
func Edges() []int { return []int{2, 4, 7, 8, 14, 16, 28, 32, 56, 112, 224} }

// CheckEdge returns an error of usage unless an image of h x w pixels can be cut
// into edge x edge patches.
func CheckEdge(edge, h, w int) error {
	if !slices.Contains(Edges(), edge) {
		return usage.Errorf("trace: edge %d: want one of %s", edge, join(Edges()))
	}
	if edge > min(h, w) {
		var fit []int
		for _, e := range Edges() {
			if e <= min(h, w) {
				fit = append(fit, e)
			}
		}
		return usage.Errorf("trace: edge %d is larger than the image of %dx%d pixels: want one of %s", edge, h, w, join(fit))
	}
	return nil
}

func join(values []int) string {
	out := ""
	for i, v := range values {
		if i > 0 {
			out += ","
		}
		out += fmt.Sprint(v)
	}
	return out
}

// PatchMap cuts an image of h x w pixels into edge*edge patches and returns, for
// every pixel in row-major order, the index of its patch, row-major too. Where
// edge does not divide a side, the last row and column of patches take what is left.
func PatchMap(edge, h, w int) ([]int32, error) {
	if err := CheckEdge(edge, h, w); err != nil {
		return nil, err
	}
	out := make([]int32, h*w)
	for y := range h {
		row := min(y/(h/edge), edge-1)
		for x := range w {
			out[y*w+x] = int32(row*edge + min(x/(w/edge), edge-1))
		}
	}
	return out, nil
}

// ColumnMap is the feature map of a table of t columns: every column a feature.
func ColumnMap(t int) []int32 {
	out := make([]int32, t)
	for i := range out {
		out[i] = int32(i)
	}
	return out
}

// Order turns an attribution into a trajectory: the map ([len(featureMap)]
// values, channels already reduced) is averaged over each of t features, and
// features are sorted from least to most relevant; among equals the smaller
// index is the less relevant (appendix B.1).
func Order(attribution []float64, featureMap []int32, t int) ([]int, error) {
	if len(attribution) != len(featureMap) {
		return nil, usage.Errorf("trace: a map of %d values for an input of %d", len(attribution), len(featureMap))
	}
	sums, counts := make([]float64, t), make([]float64, t)
	for i, f := range featureMap {
		if attribution[i] != attribution[i] {
			return nil, usage.Errorf("trace: the map is NaN at position %d", i)
		}
		sums[f] += attribution[i]
		counts[f]++
	}
	order := make([]int, t)
	for f := range order {
		order[f] = f
		if counts[f] > 0 {
			sums[f] /= counts[f]
		}
	}
	slices.SortStableFunc(order, func(a, b int) int {
		switch {
		case sums[a] < sums[b]:
			return -1
		case sums[a] > sums[b]:
			return 1
		}
		return 0
	})
	return order, nil
}

// CheckTrajectory returns an error of usage unless tau is a permutation of 0..t-1.
func CheckTrajectory(tau []int, t int) error {
	if len(tau) != t {
		return usage.Errorf("trace: a trajectory of %d features: want %d", len(tau), t)
	}
	seen := make([]bool, t)
	for i, f := range tau {
		if f < 0 || f >= t || seen[f] {
			return usage.Errorf("trace: trajectory position %d is %d: want every feature of 0..%d once", i, f, t-1)
		}
		seen[f] = true
	}
	return nil
}
