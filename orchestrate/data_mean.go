package orchestrate

import (
	"context"
	"fmt"
	"sync"
)

// dataMeans are the means of each data as each net sees it, once somebody wants them.
// Devices share them.
type dataMeans struct {
	mu sync.Mutex
	of map[string][]float64
}

// needsMean says that an imputer's results depend on the mean of all of the data: with
// everything removed those of imputers that go by what is left do too, but for generators,
// which know a mean image.
func (c Catalogue) needsMean(imputer string, everything bool) bool {
	s, err := c.spec(imputers, imputer)
	return err == nil && (s.entry.Needs == NeedsData || everything && s.entry.Needs == NeedsMask && !s.entry.Generator)
}

// dataMean is the mean of every channel (column) over all of the plan's data, as the net
// sees it. Sums are in float64 and in the data's order; what cannot be decoded, and what
// is no number, takes no part.
func (s *Session) dataMean(ctx context.Context, n *ResolvedNet, d *ResolvedData) ([]float64, error) {
	key := fmt.Sprint(n.Index, " ", d.Index, " ", d.Classes)
	s.means.mu.Lock()
	defer s.means.mu.Unlock()
	if m := s.means.of[key]; m != nil {
		return m, nil
	}
	var sum []float64
	count := 0.0
	size := s.wholeBatches(explainImages)
	for from := 0; from < d.Set.Len(); from += size {
		var items []int
		for i := from; i < min(from+size, d.Set.Len()); i++ {
			items = append(items, i)
		}
		if err := s.addUp(ctx, n, d, items, &sum, &count); err != nil {
			return nil, fmt.Errorf("the mean of %s: %w", d.Name, err)
		}
	}
	for c := range sum {
		sum[c] /= max(count, 1)
	}
	s.means.of[key] = sum
	return sum, nil
}

// addUp adds the images of items to sums over channels; count is the number of pixels.
func (s *Session) addUp(ctx context.Context, n *ResolvedNet, d *ResolvedData, items []int, sum *[]float64, count *float64) error {
	images, failed, err := s.Load(ctx, n, d, items)
	if err != nil {
		return err
	}
	defer images.Close()
	each := 1
	if shape := images.Shape(); len(shape) == 3 {
		each = shape[1] * shape[2]
	}
	for i := range items {
		if failed[i] != nil {
			continue
		}
		values, err := images.Values(i)
		if err != nil {
			return err
		}
		if nonFinite(values) {
			continue
		}
		if *sum == nil {
			*sum = make([]float64, len(values)/each)
		}
		for k, v := range values {
			(*sum)[k/each] += float64(v)
		}
		*count += float64(each)
	}
	return nil
}
