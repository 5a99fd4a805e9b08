package trace

import (
	"context"
	"slices"

	"github.com/assay-xai/assay/internal/rng"
)

// genetic is appendix E's genetic search, of which the paper says no more than
// its name. Ours is a steady-state one: a child of two parents, chosen by
// tournaments, takes the place of the worst trajectory if it is better. So a
// child's states need be scored only until it is clear that it is not.
// Crossover is Davis's OX ("Applying adaptive algorithms to epistatic domains",
// IJCAI 1985): a stretch of the first parent stays where it is, the rest comes in
// the second's order. A mutation swaps two features.
func genetic() Solver {
	return Solver{
		ID: "genetic", Summary: "steady-state genetic search: order crossover, swaps, the child replaces the worst (appendix E)",
		Parameters: []Parameter{
			{Name: "population", Default: 20, Minimum: 2, Maximum: 1e6, Integer: true, Summary: "trajectories alive"},
			{Name: "tournament", Default: 3, Minimum: 1, Maximum: 1e6, Integer: true, Summary: "how many are drawn, of which the best becomes a parent"},
			{Name: "mutation", Default: .5, Minimum: 0, Maximum: 1, Summary: "probability that two features of a child are swapped"},
			iterationsParameter(), restartsParameter(),
		},
		Schedules:  []Schedule{{ID: "paper", Summary: "random population, 5000 children", Start: "random"}},
		Objectives: []string{"le-mo", "le", "mo"}, Version: 1,
		run: func(ctx context.Context, s *search) error { return s.fromStarts(ctx, s.breed) },
		states: func(o Options, t int, halves float64) float64 {
			population := max(1, o.Params["restarts"]) * o.Params["population"] * halves * float64(t+1)
			return population + courses(o, t, halves, float64(t-1))
		},
	}
}

// breeder is a population. The start is one of it, the others are random.
type breeder struct {
	*search
	alive []*position
	// now is the child that came last, the position that is told of.
	now    *position
	random rng.Stream
}

func (s *search) breed(ctx context.Context, now *position, after told) (course, error) {
	b := &breeder{search: s, now: now, random: s.stream("trace/breed")}
	first := newPosition(s.p.T)
	first.copyFrom(now)
	b.alive = append(b.alive, first)
	others := s.stream("trace/population")
	for i := 1; i < int(s.params["population"]); i++ {
		p, err := s.play(ctx, others.Perm(uint64(s.restarts)<<32|uint64(i), s.p.T))
		if err != nil {
			return nil, err
		}
		s.offer(p, 0, s.p.T)
		b.alive = append(b.alive, p)
	}
	b.rank()
	s.result.StartForwards = s.g.forwards
	return s.newWalk(b, after), nil
}

// rank sorts the population from best to worst, the older first among equals.
func (b *breeder) rank() {
	slices.SortStableFunc(b.alive, func(p, q *position) int {
		switch {
		case p.value > q.value:
			return -1
		case p.value < q.value:
			return 1
		}
		return 0
	})
}

func (b *breeder) worst() *position { return b.alive[len(b.alive)-1] }

// Draws of an iteration's random numbers.
const (
	drawCuts     = 0 // and 1
	drawMutates  = 2
	drawMutation = 3 // and 4
	drawParents  = 5 // and on
)

// parent is the winner of a tournament.
func (b *breeder) parent(iteration uint64, which int) *position {
	best := len(b.alive)
	size := int(b.params["tournament"])
	for i := range size {
		best = min(best, b.random.IntN(iteration, uint64(drawParents+which*size+i), len(b.alive)))
	}
	return b.alive[best]
}

func (b *breeder) propose(t *trial, _ *trial) {
	k, n := uint64(t.iteration), b.p.T
	mother, father := b.parent(k, 0), b.parent(k, 1)
	i, j := b.random.IntN(k, drawCuts, n), b.random.IntN(k, drawCuts+1, n)
	crossover(mother.order, father.order, min(i, j), max(i, j), t.order)
	if b.random.Float64(k, drawMutates) < b.params["mutation"] {
		i, j := b.random.IntN(k, drawMutation, n), b.random.IntN(k, drawMutation+1, n-1)
		if j >= i {
			j++
		}
		t.order[i], t.order[j] = t.order[j], t.order[i]
	}
	t.from = mother
	// One that lives already is not wanted twice.
	t.never = slices.ContainsFunc(b.alive, func(p *position) bool { return slices.Equal(p.order, t.order) })
	if t.never {
		return
	}
	for t.hi = n - 1; t.order[t.hi] == mother.order[t.hi]; t.hi-- {
	}
	for t.order[t.lo] == mother.order[t.lo] {
		t.lo++
	}
}

// crossover writes the child that has mother's features at i..j and the others in
// father's order.
func crossover(mother, father []int, i, j int, child []int) {
	kept := NewSet(len(mother))
	for _, f := range mother[i : j+1] {
		kept.Add(f)
	}
	copy(child[i:j+1], mother[i:j+1])
	at := 0
	for _, f := range father {
		if kept.Has(f) {
			continue
		}
		if at == i {
			at = j + 1
		}
		child[at] = f
		at++
	}
}

func (b *breeder) accepts(t *trial, d int64) bool { return t.from.value+d > b.worst().value }

func (b *breeder) decided(t *trial, accepted bool, d int64) {
	if !accepted {
		return
	}
	b.now.copyFrom(t.from)
	b.now.take(t, d)
	b.worst().copyFrom(b.now)
	b.rank()
	t.lo, t.hi = -1, b.p.T // told of as new in all prefixes
}
