package trace

import (
	"context"
	"slices"

	"github.com/assay-xai/assay/internal/usage"
)

// Start is where a search begins.
type Start struct {
	ID, Summary string
	order       func(ctx context.Context, s *search) ([]int, error)
}

// Starts returns every start.
func Starts() []Start {
	return []Start{
		{"random", "a uniform permutation, drawn once a seed, image and restart", func(_ context.Context, s *search) ([]int, error) {
			return s.stream("trace/start").Perm(uint64(s.restarts), s.p.T), nil
		}},
		{"greedy-le", "the trajectory of the greedy search for the LeRF sum", func(ctx context.Context, s *search) ([]int, error) {
			return s.g.greedyOrder(ctx, "le")
		}},
		{"map", "a given trajectory", func(_ context.Context, s *search) ([]int, error) {
			return slices.Clone(s.o.Given), nil
		}},
	}
}

func startByID(id string) (Start, error) {
	var ids []string
	for _, s := range Starts() {
		if s.ID == id {
			return s, nil
		}
		ids = append(ids, s.ID)
	}
	return Start{}, usage.Errorf("trace: start %q: want one of %v", id, ids)
}
