package trace

import (
	"cmp"
	"context"
	"slices"
)

// beam is the search of Zhou and Shah, "The Solvability of Interpretability
// Evaluation Metrics" (Findings of EACL 2023): of all ways to delete one more
// feature, the `width` whose curve has been best so far, summed from the
// beginning, are kept. The default width is that of their package solvex; so is
// that le-mo goes from the most relevant feature on, as mo does (their metric
// "comp-suff": what is left of the input minus what is left of its complement).
//
// Ours: of several orders of one set the best is kept, the others never differ
// from it in what follows; and le goes from the least relevant feature on, so that
// width 1 is the greedy search. Ties go to the better beginning, then to the
// smaller index. A width that holds every set of every size finds the optimum.
func beam() Solver {
	return Solver{
		ID: "beam", Summary: "delete feature by feature, keeping the best beginnings (Zhou and Shah 2023)",
		Parameters: []Parameter{{Name: "width", Default: 50, Minimum: 1, Maximum: 1e6, Integer: true, Summary: "beginnings kept after every step"}},
		Objectives: []string{"le-mo", "le", "mo"}, Version: 1,
		run: func(ctx context.Context, s *search) error {
			order, err := s.grow(ctx, int(s.params["width"]), s.objective.Mo != 0)
			if err != nil {
				return err
			}
			return s.answer(ctx, order)
		},
		states: func(o Options, t int, halves float64) float64 { return o.Params["width"] * halves * greedyStates(t) },
	}
}

// greedyLeMo is greedy for an objective that the paper says it does not apply to.
func greedyLeMo() Solver {
	return Solver{
		ID: "greedy-le-mo", Summary: "greedy with both curves in view: argmax F(S+i) - F(complement of S+i), least relevant first (ours)",
		Objectives: []string{"le-mo"}, Version: 1,
		run: func(ctx context.Context, s *search) error {
			order, err := s.grow(ctx, 1, false)
			if err != nil {
				return err
			}
			return s.answer(ctx, order)
		},
		states: func(_ Options, t int, halves float64) float64 { return halves * greedyStates(t) },
	}
}

// beginning is a part of a trajectory.
type beginning struct {
	before  *beginning // without its last feature; nil: there is none
	feature int
	set     Set
	key     stateKey
	sum     int64 // the objective's part of its states
}

// growChunk is how many beginnings are scored at a time.
const growChunk = 2048

// grow builds a trajectory feature by feature, from the most relevant one on or
// from the least, and keeps the best `width` beginnings of every length.
func (s *search) grow(ctx context.Context, width int, mostFirst bool) ([]int, error) {
	kept := []*beginning{{set: NewSet(s.p.T)}}
	if err := s.weigh(ctx, kept, mostFirst); err != nil {
		return nil, err
	}
	for range s.p.T {
		var next []*beginning
		seen := map[stateKey]bool{}
		for _, b := range kept { // the best first
			for f := range s.p.T {
				key := b.key.xor(s.g.feature[f])
				if b.set.Has(f) || seen[key] {
					continue
				}
				seen[key] = true
				set := b.set.Clone()
				set.Add(f)
				next = append(next, &beginning{before: b, feature: f, set: set, key: key, sum: b.sum})
			}
		}
		for part := range slices.Chunk(next, growChunk) {
			if err := s.weigh(ctx, part, mostFirst); err != nil {
				return nil, err
			}
		}
		slices.SortStableFunc(next, func(a, b *beginning) int { return cmp.Compare(b.sum, a.sum) })
		kept = slices.Clone(next[:min(width, len(next))])
		for _, b := range kept {
			b.before.set = nil // of the beginnings before, only the features are wanted
		}
	}
	order := make([]int, 0, s.p.T)
	for b := kept[0]; b.before != nil; b = b.before {
		order = append(order, b.feature)
	}
	if !mostFirst {
		slices.Reverse(order)
	}
	return order, nil
}

// weigh adds to every beginning what the objective has of its last state: the
// set itself and its complement, of which mostFirst says which one LeRF deletes.
func (s *search) weigh(ctx context.Context, list []*beginning, mostFirst bool) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	own, other := s.objective.Le, s.objective.Mo
	if mostFirst {
		own, other = other, own
	}
	for _, half := range []struct {
		weight     int64
		complement bool
	}{{own, false}, {other, true}} {
		if half.weight == 0 {
			continue
		}
		keys := make([]stateKey, len(list))
		for i, b := range list {
			if keys[i] = b.key; half.complement {
				keys[i] = b.key.xor(s.g.whole)
			}
			s.g.ask(keys[i])
		}
		scores, err := s.g.look(ctx, keys, func(i int) Set {
			if half.complement {
				return list[i].set.Complement(s.p.T)
			}
			return list[i].set
		})
		if err != nil {
			return err
		}
		for i, v := range scores {
			fixed, err := fix(v, s.logit, s.p.T)
			if err != nil {
				return err
			}
			list[i].sum += half.weight * fixed
		}
	}
	return nil
}
