package trace

import "context"

// order searches nothing: it scores the trajectory that a start gives, at any
// number of features. So random deletion (Fig. 4), and any map, stand beside the
// searches.
func order() Solver {
	return Solver{
		ID: "order", Summary: "no search: what the start's own trajectory scores (random by default)",
		Start:      "random",
		Objectives: []string{"le-mo", "le", "mo"}, Version: 1,
		run: func(ctx context.Context, s *search) error {
			start, err := startByID(s.o.Start)
			if err != nil {
				return err
			}
			tau, err := start.order(ctx, s)
			if err != nil {
				return err
			}
			return s.answer(ctx, tau)
		},
		states: func(_ Options, t int, halves float64) float64 { return halves * float64(t+1) },
	}
}

// answer scores the trajectory that a solver without iterations found.
func (s *search) answer(ctx context.Context, tau []int) error {
	played, err := s.play(ctx, tau)
	if err != nil {
		return err
	}
	s.result.Trajectory, s.result.Value = tau, toFloat(played.value)
	s.result.Last = s.result.Value
	return nil
}
