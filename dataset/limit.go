package dataset

import (
	"sort"

	"github.com/assay-xai/assay/internal/usage"
)

// limitFiles keeps limit files (0: all) in the order they have.
func limitFiles(files []file, limit int) ([]file, error) {
	classes := make([]int, len(files))
	for i, f := range files {
		classes[i] = f.class
	}
	keep, err := limitItems(classes, limit)
	if err != nil {
		return nil, err
	}
	kept := make([]file, len(keep))
	for i, k := range keep {
		kept[i] = files[k]
	}
	return kept, nil
}

// limitItems chooses limit places of items with those classes: one of each
// class in turn, classes ascending, within a class in the given order. A class
// that runs out is passed over. The places come back ascending, so a choice
// for a smaller limit is a part of that for a larger one. Items without label
// (-1) make one class.
func limitItems(classes []int, limit int) ([]int, error) {
	if limit < 0 {
		return nil, usage.Errorf("dataset: limit %d: want a number of items, or 0 for all", limit)
	}
	byClass := map[int][]int{}
	for i, c := range classes {
		byClass[c] = append(byClass[c], i)
	}
	order := make([]int, 0, len(byClass))
	for c := range byClass {
		order = append(order, c)
	}
	sort.Ints(order)
	if limit == 0 || limit > len(classes) {
		limit = len(classes)
	}
	keep := make([]int, 0, limit)
	for round := 0; len(keep) < limit; round++ {
		for _, c := range order {
			if round < len(byClass[c]) && len(keep) < limit {
				keep = append(keep, byClass[c][round])
			}
		}
	}
	sort.Ints(keep)
	return keep, nil
}
