package trace

import "context"

// exact is the true optimum, ours: no paper has it. What the states of a prefix
// add to the objective, g(S) = F(S) for le, -F(complement of S) for mo, their sum
// for le-mo, depends on the set S of the prefix alone, not on its order; so the
// best that the prefixes beyond S can add is
//
//	W(S) = max over i not in S of g(S+i) + W(S+i),  W(all features) = 0,
//
// a dynamic programme over the 2^t sets (as Held and Karp's for the travelling
// salesman, 1962). The optimum is g(no feature) + W(no feature). Of several best
// trajectories it is the lexicographically smallest: the smaller index is the
// less relevant.
func exact() Solver {
	return Solver{
		ID: "exact", Summary: "the true optimum by dynamic programming over all 2^t states, at most 16 features (ours)",
		Objectives: []string{"le-mo", "le", "mo"}, MaxFeatures: tableFeatures, Version: 1,
		run: func(ctx context.Context, s *search) error {
			tb, err := s.table(ctx)
			if err != nil {
				return err
			}
			order, value := tb.optimum(s.objective)
			tb.remember(s.g, order)
			s.result.Trajectory, s.result.Value = order, toFloat(value)
			s.result.Last = s.result.Value
			return nil
		},
		states: func(_ Options, t int, _ float64) float64 { return float64(int64(1) << t) },
	}
}

// optimum returns the best trajectory and its value in fixed point.
func (tb *table) optimum(o Objective) ([]int, int64) {
	all := len(tb.scores) - 1
	beyond := make([]int64, len(tb.scores)) // W
	// next is what W(S) is the maximum of, for feature i.
	next := func(state, i int) int64 {
		state |= 1 << i
		return tb.gain(o, state) + beyond[state]
	}
	choose := func(state int) (feature int, value int64) {
		feature = -1
		for i := range tb.t {
			if state>>i&1 == 1 {
				continue
			}
			if v := next(state, i); feature < 0 || v > value {
				feature, value = i, v
			}
		}
		return feature, value
	}
	for state := all - 1; state >= 0; state-- { // supersets have larger numbers
		_, beyond[state] = choose(state)
	}
	order := make([]int, 0, tb.t)
	for state := 0; state != all; {
		i, _ := choose(state)
		order = append(order, i)
		state |= 1 << i
	}
	return order, tb.gain(o, 0) + beyond[0]
}
