package trace

import (
	"context"
	"math"
)

// Curve holds the points of a deletion test, k = 0..t features deleted: LeRF
// deletes the first k of the trajectory, MoRF the last k. Both ends are shared.
type Curve struct{ Le, Mo []float64 }

// Curves holds the curves on both outputs.
type Curves struct{ Prob, Logit Curve }

// Sums returns the plain sums of a curve over its t+1 points.
func (c Curve) Sums() (le, mo float64) {
	for i := range c.Le {
		le += c.Le[i]
		mo += c.Mo[i]
	}
	return le, mo
}

// Insertion returns the insertion curves of the same trajectory, k = 0..t
// features inserted into the reference: insertion is deletion of the
// complement, so that insertion-MoRF(k) = deletion-LeRF(t-k) and
// insertion-LeRF(k) = deletion-MoRF(t-k) (Theorem 3.1).
func (c Curve) Insertion() Curve {
	t := len(c.Le) - 1
	out := Curve{Le: make([]float64, t+1), Mo: make([]float64, t+1)}
	for k := range out.Le {
		out.Mo[k], out.Le[k] = c.Le[t-k], c.Mo[t-k]
	}
	return out
}

// prefixes returns the sets of the first m features of tau, m = lo..hi.
func prefixes(tau []int, lo, hi int) []Set {
	s := NewSet(len(tau))
	for _, f := range tau[:lo] {
		s.Add(f)
	}
	out := []Set{s.Clone()}
	for m := lo; m < hi; m++ {
		s.Add(tau[m])
		out = append(out, s.Clone())
	}
	return out
}

func (g *game) curves(ctx context.Context, tau []int) (Curves, error) {
	t := g.t
	sets := prefixes(tau, 0, t)
	for m := t; m >= 0; m-- {
		sets = append(sets, sets[m].Complement(t))
	}
	scores, err := g.scores(ctx, sets)
	if err != nil {
		return Curves{}, err
	}
	var out Curves
	for k := 0; k <= t; k++ {
		le, mo := scores[k], scores[t+1+k]
		out.Prob.Le = append(out.Prob.Le, le.Prob)
		out.Prob.Mo = append(out.Prob.Mo, mo.Prob)
		out.Logit.Le = append(out.Logit.Le, le.Logit)
		out.Logit.Mo = append(out.Logit.Mo, mo.Logit)
	}
	return out, nil
}

// Evaluate plays the deletion test of a given trajectory: 2(t+1) states, less
// those that both curves share.
func Evaluate(ctx context.Context, p Problem, tau []int) (Curves, error) {
	if err := CheckTrajectory(tau, p.T); err != nil {
		return Curves{}, err
	}
	return newGame(p, Objective{}, false).curves(ctx, tau)
}

// Heat returns the heat map of a trajectory: psi = (rank/t)^alpha for every
// feature, rank 1..t from least to most relevant (appendix C).
func Heat(tau []int, alpha float64) []float64 {
	out := make([]float64, len(tau))
	for i, f := range tau {
		out[f] = math.Pow(float64(i+1)/float64(len(tau)), alpha)
	}
	return out
}
