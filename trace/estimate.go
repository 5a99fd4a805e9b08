package trace

import (
	"time"

	"github.com/assay-xai/assay/internal/rng"
)

// estimateDraws is how many proposals an estimate looks at.
const estimateDraws = 64

// Estimate returns about how many states a search with t features asks the net
// for at most, early rejection left out: what somebody wants to know before a
// search with many features. 0: the solver does not say, or a budget of time ends
// it. A budget of evaluations bounds it.
func (o Options) Estimate(t int) (float64, error) {
	o, solver, err := o.resolve(t)
	if err != nil || solver.states == nil {
		return 0, err
	}
	objective, err := ObjectiveByID(o.Objective)
	if err != nil {
		return 0, err
	}
	halves := float64(objective.Le - objective.Mo)
	states := solver.states(o, t, halves)
	if o.Start == "greedy-le" {
		states += greedyStates(t)
	}
	if e := float64(o.Budget.Evaluations); e > 0 {
		states = min(states, e)
	}
	if o.Budget.Time > 0 {
		return 0, nil
	}
	return states + 2*float64(t), nil // the answer's curves
}

// progress returns what tells the problem how far the search is: by the states
// that it asked for of those that it will, by its iterations, or by its time.
func (s *search) progress() (func(), error) {
	states, err := s.o.Estimate(s.p.T)
	if err != nil {
		return nil, err
	}
	return func() {
		part := 0.0
		if states > 0 {
			part = float64(s.g.evaluations) / states
		}
		if budget := s.o.Budget.Time; budget > 0 {
			part = max(part, float64(time.Since(s.started)+s.p.Before)/float64(budget))
		}
		if s.walked <= 1 {
			part = max(part, s.walked)
		}
		s.p.Progress(min(1, part))
	}, nil
}

func greedyStates(t int) float64 { return 1 + float64(t)*float64(t+1)/2 }

// courses is the estimate of a search from starts: every start is played, and
// every iteration asks for so many prefixes.
func courses(o Options, t int, halves, prefixes float64) float64 {
	iterations := o.Params["iterations"]
	if o.Budget.Iterations > 0 {
		iterations = float64(o.Budget.Iterations)
	}
	return max(1, o.Params["restarts"]) * halves * (float64(t+1) + iterations*prefixes)
}

// span is the mean number of prefixes that a proposal changes.
func span(o Options, t int) float64 {
	n, err := neighbourhoodByID(o.Neighbourhood)
	if err != nil {
		return 0
	}
	order, out := make([]int, t), make([]int, t)
	for i := range order {
		order[i] = i
	}
	sum := 0
	draw := rng.New(0, "trace/estimate", "")
	for i := range uint64(estimateDraws) {
		lo, hi := n.propose(draw, i, order, out)
		sum += hi - lo
	}
	return float64(sum) / estimateDraws
}
