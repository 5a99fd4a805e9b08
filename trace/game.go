package trace

import (
	"context"
	"encoding/binary"
	"fmt"
)

// game is the deletion game of one image for one search: it scores states,
// remembers them, and counts.
type game struct {
	t         int
	objective Objective
	logit     bool
	scorer    Scorer
	memo      map[string]Score
	small     map[uint64]Score // for t <= 64
	limit     int              // entries of the memo; then it is emptied

	evaluations int64 // nominal: states asked for that the memo did not have
	forwards    int64 // states really scored
}

// memoLimit bounds the memory of one search's memo: about 64 MB at t <= 64.
const memoLimit = 1 << 20

func newGame(p Problem, objective Objective, logit bool) *game {
	g := &game{t: p.T, objective: objective, logit: logit, scorer: p.Scorer, limit: max(1024, memoLimit/Words(p.T))}
	g.forget()
	return g
}

func (g *game) forget() {
	if g.t <= 64 {
		g.small = map[uint64]Score{}
	} else {
		g.memo = map[string]Score{}
	}
}

func key(s Set) string {
	b := make([]byte, 0, 8*len(s))
	for _, w := range s {
		b = binary.LittleEndian.AppendUint64(b, w)
	}
	return string(b)
}

func (g *game) known(s Set) (Score, bool) {
	if g.small != nil {
		v, ok := g.small[s[0]]
		return v, ok
	}
	v, ok := g.memo[key(s)]
	return v, ok
}

func (g *game) remember(s Set, v Score) {
	if g.small != nil {
		g.small[s[0]] = v
	} else {
		g.memo[key(s)] = v
	}
}

// scores returns the score of every set, asking the net once for each that is
// not known.
func (g *game) scores(ctx context.Context, sets []Set) ([]Score, error) {
	if len(g.small)+len(g.memo) > g.limit {
		g.forget()
	}
	out := make([]Score, len(sets))
	var missing []Set
	var where []int
	placeholder := map[string]bool{}
	for i, s := range sets {
		if v, ok := g.known(s); ok {
			out[i] = v
			continue
		}
		where = append(where, i)
		if k := key(s); !placeholder[k] {
			placeholder[k] = true
			missing = append(missing, s)
		}
	}
	if len(missing) == 0 {
		return out, nil
	}
	g.evaluations += int64(len(missing))
	scored, err := g.scorer.Scores(ctx, missing)
	if err != nil {
		return nil, err
	}
	g.forwards += int64(len(missing))
	if len(scored) != len(missing) {
		return nil, fmt.Errorf("trace: %d scores for %d states", len(scored), len(missing))
	}
	for i, v := range scored {
		if !finite(v) {
			return nil, &NotFiniteError{Score: v, Deleted: missing[i].Len(), T: g.t}
		}
		g.remember(missing[i], v)
	}
	for _, i := range where {
		out[i], _ = g.known(sets[i])
	}
	return out, nil
}
