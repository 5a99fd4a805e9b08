package scores

import (
	"cmp"
	"slices"

	"github.com/assay-xai/assay/internal/rng"
)

// Descending orders pixels by their values, largest first; equal ones by a
// permutation that is drawn once a seed and image id, so that no score profits
// from where ties happen to lie. The values must not be NaN.
func Descending(values []float64, seed uint64, imageID string) []int {
	order := make([]int, len(values))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Or(cmp.Compare(values[b], values[a]), a-b) })
	var place []int // drawn when the first tie is met
	for from := 0; from < len(order); {
		to := from + 1
		for to < len(order) && values[order[to]] == values[order[from]] {
			to++
		}
		if to-from > 1 {
			if place == nil {
				place = rng.New(seed, "ties", imageID).Perm(0, len(values))
			}
			slices.SortFunc(order[from:to], func(a, b int) int { return place[a] - place[b] })
		}
		from = to
	}
	return order
}
