package trace

import (
	"context"
	"slices"
)

// greedy is Algorithm 2 (appendix D): from the empty set, delete the feature
// that the objective likes best, all candidates of a step in one batch; ties go
// to the smallest index. 1+t(t+1)/2 states.
//
//   - le: argmax F(S+i), least relevant first.
//   - mo: argmin F(S+i), most relevant first; reversed, so that trajectories
//     always begin with the least relevant.
//   - le-mo: the paper says that greedy does not apply; it is refused. Our
//     extension is an entry of its own, greedy-le-mo.
func greedy() Solver {
	return Solver{
		ID: "greedy", Summary: "delete the best feature of every step (Algorithm 2); le and mo",
		Objectives: []string{"le", "mo"}, Version: 1,
		states: func(_ Options, t int, _ float64) float64 { return greedyStates(t) },
		run: func(ctx context.Context, s *search) error {
			order, err := s.g.greedyOrder(ctx, s.objective.ID)
			if err != nil {
				return err
			}
			played, err := s.play(ctx, order)
			if err != nil {
				return err
			}
			s.offer(played, 0, s.p.T)
			s.result.Trajectory = order
			s.result.Value = toFloat(played.value)
			s.result.Last = s.result.Value
			return nil
		},
	}
}

func (g *game) greedyOrder(ctx context.Context, objective string) ([]int, error) {
	sign := int64(1)
	if objective == "mo" {
		sign = -1
	}
	// The empty set is a state of the game: one of the 1+t(t+1)/2.
	set := NewSet(g.t)
	if _, err := g.scores(ctx, []Set{set}); err != nil {
		return nil, err
	}
	order := make([]int, 0, g.t)
	for len(order) < g.t {
		var candidates []int
		var sets []Set
		for f := range g.t {
			if !set.Has(f) {
				next := set.Clone()
				next.Add(f)
				candidates, sets = append(candidates, f), append(sets, next)
			}
		}
		scores, err := g.scores(ctx, sets)
		if err != nil {
			return nil, err
		}
		best, bestValue := -1, int64(0)
		for i, f := range candidates {
			v, err := fix(scores[i], g.logit, g.t)
			if err != nil {
				return nil, err
			}
			if v *= sign; best < 0 || v > bestValue {
				best, bestValue = f, v
			}
		}
		set.Add(best)
		order = append(order, best)
	}
	if objective == "mo" {
		slices.Reverse(order)
	}
	return order, nil
}
