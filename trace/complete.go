package trace

import "context"

// The schedules of complete search.
const (
	boundsSeparate = "separate"
	boundsJoint    = "joint"
)

// completeSearch bounds the objective from above (section 4, "SA/Greedy vs. GO
// vs. CS"): at every size the best set of all, whether or not the sets are nested
// as those of a trajectory are.
//
//   - le: max F(S) over the sets S of k deleted features, for each k.
//   - mo: min F(S) likewise.
//   - le-mo, separate: both, each by itself; the paper's.
//   - le-mo, joint: max of F(S) - F(complement of S) over the sets S of k features;
//     ours, tighter, for the two states of a prefix are complements of each other.
//
// Result has no trajectory. Its curves are those of the best sets: LeRF at k the
// set of k features that was chosen for it, MoRF likewise; for le the MoRF curve
// is that of the complements of LeRF's sets, for mo the other way round.
func completeSearch() Solver {
	return Solver{
		ID: "complete-search", Summary: "an upper bound, no trajectory: the best set of every size, at most 16 features (schedule joint: tighter, ours)",
		Bounds: true,
		Schedules: []Schedule{
			{ID: boundsSeparate, Summary: "le-mo: the best LeRF set and the best MoRF set of every size, each by itself (the paper's)"},
			{ID: boundsJoint, Summary: "le-mo: the best pair of a set and its complement (ours, tighter)"},
		},
		Objectives: []string{"le-mo", "le", "mo"}, MaxFeatures: tableFeatures, Version: 1,
		run: func(ctx context.Context, s *search) error {
			tb, err := s.table(ctx)
			if err != nil {
				return err
			}
			le, mo := tb.best(s.objective), tb.best(s.objective)
			if s.o.Schedule == boundsSeparate && s.objective.Le != 0 && s.objective.Mo != 0 {
				le, mo = tb.best(Objective{Le: s.objective.Le}), tb.best(Objective{Mo: s.objective.Mo})
			}
			sum := int64(0)
			s.result.Bounds = make([]float64, len(le))
			for m := range le {
				gain := s.objective.gain(tb.fixed[le[m]], tb.fixed[tb.complement(mo[m])])
				s.result.Bounds[m] = toFloat(gain)
				sum += gain
			}
			s.result.Value = toFloat(sum)
			s.result.Last = s.result.Value
			s.result.Curves = tb.curves(le, mo)
			return nil
		},
		states: func(_ Options, t int, _ float64) float64 { return float64(int64(1) << t) },
	}
}
