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

// curves scores all states of a trajectory, on top of what was asked for.
func (g *game) curves(ctx context.Context, tau []int) (Curves, error) {
	t := g.t
	out := Curves{newCurve(t), newCurve(t)}
	keys := make([]stateKey, t+1)
	g.prefixKeys(tau, 0, t, keys)
	for from := 0; from <= t; from += playChunk {
		to := min(from+playChunk, t+1)
		le, err := g.ofPrefixes(ctx, tau, keys, from, to, false, false)
		if err != nil {
			return Curves{}, err
		}
		mo, err := g.ofPrefixes(ctx, tau, keys, from, to, true, false)
		if err != nil {
			return Curves{}, err
		}
		for i := range le {
			m := from + i
			out.Prob.Le[m], out.Logit.Le[m] = le[i].Prob, le[i].Logit
			out.Prob.Mo[t-m], out.Logit.Mo[t-m] = mo[i].Prob, mo[i].Logit
		}
	}
	return out, nil
}

func newCurve(t int) Curve { return Curve{Le: make([]float64, t+1), Mo: make([]float64, t+1)} }

// Evaluate plays the deletion test of a given trajectory: 2(t+1) states, less
// those that both curves share.
func Evaluate(ctx context.Context, p Problem, tau []int) (Curves, error) {
	if err := CheckTrajectory(tau, p.T); err != nil {
		return Curves{}, err
	}
	return newGame(p, false).curves(ctx, tau)
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
