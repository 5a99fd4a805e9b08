package trace

import (
	"context"
	"fmt"
	"math/bits"
)

// tableFeatures is the number of features up to which all 2^t states of a game
// are scored: 65536.
const tableFeatures = 16

// tableChunk is how many of them are asked for at a time: enough to fill the
// device's batches, few enough to stop soon.
const tableChunk = 2048

// table holds the score of every state of a game, 24 bytes each. The state of
// number S has those features deleted whose bits are set in S.
type table struct {
	t      int
	scores []Score
	fixed  []int64 // on the output that the objective looks at
}

// table scores every state, one time each. They are not remembered one by one:
// the table is what remembers them.
func (s *search) table(ctx context.Context) (*table, error) {
	t := s.p.T
	tb := &table{t: t, scores: make([]Score, 0, 1<<t), fixed: make([]int64, 1<<t)}
	for from := 0; from < 1<<t; from += tableChunk {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		n := min(tableChunk, 1<<t-from)
		words, sets := make([]uint64, n), make([]Set, n)
		for i := range sets {
			words[i] = uint64(from + i)
			sets[i] = words[i : i+1 : i+1]
		}
		scored, err := s.g.unremembered(ctx, sets)
		if err != nil {
			return nil, err
		}
		s.g.evaluations += int64(n)
		for i, v := range scored {
			if !finite(v) {
				return nil, &NotFiniteError{Score: v, Deleted: sets[i].Len(), T: t}
			}
			if tb.fixed[from+i], err = fix(v, s.logit, t); err != nil {
				return nil, err
			}
		}
		tb.scores = append(tb.scores, scored...)
	}
	return tb, nil
}

// unremembered asks the net for different sets and leaves the memo alone.
func (g *game) unremembered(ctx context.Context, sets []Set) ([]Score, error) {
	scored, err := g.scorer.Scores(ctx, sets)
	if err != nil {
		return nil, err
	}
	if len(scored) != len(sets) {
		return nil, fmt.Errorf("trace: %d scores for %d states", len(scored), len(sets))
	}
	g.forwards += int64(len(sets))
	return scored, nil
}

func (tb *table) complement(state int) int { return len(tb.scores) - 1 ^ state }

// gain is the objective's part of the two states of a prefix: state itself, a
// point of the LeRF curve, and its complement, one of the MoRF curve.
func (tb *table) gain(o Objective, state int) int64 {
	return o.gain(tb.fixed[state], tb.fixed[tb.complement(state)])
}

// best returns, for every size m = 0..t, the state of m deleted features whose
// gain is largest; of equals that of the smallest number.
func (tb *table) best(o Objective) []int {
	out := make([]int, tb.t+1)
	for m := range out {
		out[m] = -1
	}
	for state := range tb.scores {
		m := bits.OnesCount(uint(state))
		if out[m] < 0 || tb.gain(o, state) > tb.gain(o, out[m]) {
			out[m] = state
		}
	}
	return out
}

// curves puts the scores of states together: le[m] the state that LeRF has of m
// deleted features, mo[m] that whose complement MoRF has of t-m.
func (tb *table) curves(le, mo []int) Curves {
	out := Curves{newCurve(tb.t), newCurve(tb.t)}
	for m := range le {
		a, b := tb.scores[le[m]], tb.scores[tb.complement(mo[m])]
		out.Prob.Le[m], out.Logit.Le[m] = a.Prob, a.Logit
		out.Prob.Mo[tb.t-m], out.Logit.Mo[tb.t-m] = b.Prob, b.Logit
	}
	return out
}

// remember puts the states of a trajectory into the game's memo, so that its
// curves cost no forward.
func (tb *table) remember(g *game, order []int) {
	state := 0
	for m := range len(order) + 1 {
		for _, n := range [2]int{state, tb.complement(state)} {
			g.memo[stateKey{uint64(n), 0}] = tb.scores[n]
		}
		if m < len(order) {
			state |= 1 << order[m]
		}
	}
}
