package trace

import (
	"context"
	"slices"
)

// position is a trajectory with the fixed-point scores of its states.
type position struct {
	order []int
	// keys[m] is the key of the first m features, m = 0..t.
	keys []stateKey
	// le[m] = F(first m of order), mo[m] = F(all but the first m): the MoRF
	// point k = t-m. Those that the objective does not look at stay 0.
	le, mo []int64
	value  int64
}

// gain is the objective's part of the states of one prefix.
func (o Objective) gain(le, mo int64) int64 { return o.Le*le + o.Mo*mo }

func newPosition(t int) *position {
	return &position{order: make([]int, t), keys: make([]stateKey, t+1), le: make([]int64, t+1), mo: make([]int64, t+1)}
}

func (p *position) copyFrom(q *position) {
	copy(p.order, q.order)
	copy(p.keys, q.keys)
	copy(p.le, q.le)
	copy(p.mo, q.mo)
	p.value = q.value
}

// prefixKeys writes the keys of order's prefixes of lengths lo+1..hi behind that
// of length lo, keys[0].
func (g *game) prefixKeys(order []int, lo, hi int, keys []stateKey) {
	for m := lo; m < hi; m++ {
		keys[m-lo+1] = keys[m-lo].xor(g.feature[order[m]])
	}
}

// prefix returns the set of the first m features of order.
func prefix(order []int, m int) Set {
	s := NewSet(len(order))
	for _, f := range order[:m] {
		s.Add(f)
	}
	return s
}

// playChunk is how many prefixes are played at a time: sets of 50176 features
// take 6 KB each.
const playChunk = 512

// play scores order from scratch.
func (s *search) play(ctx context.Context, order []int) (*position, error) {
	t := s.p.T
	p := newPosition(t)
	copy(p.order, order)
	s.g.prefixKeys(order, 0, t, p.keys)
	for from := 0; from <= t; from += playChunk {
		to := min(from+playChunk, t+1)
		for _, half := range []struct {
			weight int64
			out    []int64
			whole  bool
		}{{s.objective.Le, p.le, false}, {s.objective.Mo, p.mo, true}} {
			if half.weight == 0 {
				continue
			}
			scores, err := s.g.ofPrefixes(ctx, order, p.keys, from, to, half.whole, true)
			if err != nil {
				return nil, err
			}
			for i, v := range scores {
				if half.out[from+i], err = fix(v, s.logit, t); err != nil {
					return nil, err
				}
			}
		}
	}
	for m := range p.le {
		p.value += s.objective.gain(p.le[m], p.mo[m])
	}
	return p, nil
}

// ofPrefixes scores order's prefixes of lengths from..to-1, or their complements.
func (g *game) ofPrefixes(ctx context.Context, order []int, keys []stateKey, from, to int, complement, ask bool) ([]Score, error) {
	list := slices.Clone(keys[from:to])
	for i := range list {
		if complement {
			list[i] = list[i].xor(g.whole)
		}
		if ask {
			g.ask(list[i])
		}
	}
	return g.look(ctx, list, func(i int) Set {
		set := prefix(order, from+i)
		if complement {
			set = set.Complement(g.t)
		}
		return set
	})
}
