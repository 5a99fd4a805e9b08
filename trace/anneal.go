package trace

import (
	"context"
	"math"

	"github.com/assay-xai/assay/internal/rng"
)

// annealing is Algorithm 1 (appendix D). As printed there, auc is identically 0
// and its sum leaves out k=0, a constant; decisions are those of the objective.
func annealing() Solver {
	return Solver{
		ID: "sa", Summary: "simulated annealing over neighbouring trajectories (Algorithm 1)",
		Parameters: []Parameter{
			{Name: "t0", Default: .1, Minimum: 1e-12, Maximum: 1e12, Summary: "first temperature, in units of the objective"},
			{Name: "eta", Default: .999, Minimum: 1e-6, Maximum: 1, Summary: "factor of the temperature after every iteration"},
			iterationsParameter(), restartsParameter(),
		},
		Schedules: []Schedule{
			{ID: "paper", Summary: "random start, T0 .1 (prob) or 2 (logit), eta .999, 5000 iterations", Start: "random",
				Prob: map[string]float64{"t0": .1, "eta": .999, "iterations": 5000}, Logit: map[string]float64{"t0": 2, "eta": .999, "iterations": 5000}},
			{ID: "repository", Summary: "greedy start, T0 .05, eta .998, 2000 iterations", Start: "greedy-le",
				Prob: map[string]float64{"t0": .05, "eta": .998, "iterations": 2000}, Logit: map[string]float64{"t0": .05, "eta": .998, "iterations": 2000}},
		},
		Objectives: []string{"le-mo", "le", "mo"}, Neighbourhoods: true, Version: 2,
		run: func(ctx context.Context, s *search) error {
			return s.fromStarts(ctx, s.climb(s.params["t0"], s.params["eta"]))
		},
		states: climbedStates,
	}
}

// hillClimbing is appendix E's: annealing at temperature 0. A neighbour as good
// is taken too, so that plateaus (probabilities that are 1 to the last bit) are
// crossed.
func hillClimbing() Solver {
	return Solver{
		ID: "hill-climbing", Summary: "take every neighbour that is not worse (appendix E)",
		Parameters: []Parameter{iterationsParameter(), restartsParameter()},
		Schedules:  []Schedule{{ID: "paper", Summary: "random start, 5000 iterations", Start: "random"}},
		Objectives: []string{"le-mo", "le", "mo"}, Neighbourhoods: true, Version: 1,
		run:    func(ctx context.Context, s *search) error { return s.fromStarts(ctx, s.climb(0, 1)) },
		states: climbedStates,
	}
}

func climbedStates(o Options, t int, halves float64) float64 {
	return courses(o, t, halves, span(o, t))
}

func iterationsParameter() Parameter {
	return Parameter{Name: "iterations", Default: 5000, Minimum: 1, Maximum: 1e9, Integer: true, Summary: "iterations where the budget gives none"}
}

func restartsParameter() Parameter {
	return Parameter{Name: "restarts", Default: 1, Minimum: 1, Maximum: 1e6, Integer: true,
		Summary: "searches from different random numbers, of which the best counts; iterations are of each, budgets of evaluations and time of all"}
}

// accepts is the one comparator of annealing: a change of d (fixed point) at
// temperature T is accepted iff d >= T ln u, that is always for d >= 0 and with
// probability exp(d/T) else; u is uniform in [0,1) and ln 0 = -Inf. At T = 0 only
// d >= 0 is.
func accepts(d int64, temperature, u float64) bool {
	return d >= 0 || temperature > 0 && toFloat(d) >= temperature*math.Log(u)
}

// climber walks from neighbour to neighbour at a falling temperature.
type climber struct {
	now              *position
	neighbourhood    Neighbourhood
	temperature, eta float64
	swap, uniform    rng.Stream
}

// climb returns what begins a climber's course.
func (s *search) climb(t0, eta float64) beginner {
	return func(_ context.Context, now *position, after told) (course, error) {
		neighbourhood, err := neighbourhoodByID(s.o.Neighbourhood)
		if err != nil {
			return nil, err
		}
		c := &climber{now: now, neighbourhood: neighbourhood, temperature: t0, eta: eta,
			swap: s.stream("trace/propose"), uniform: s.stream("trace/accept")}
		return s.newWalk(c, after), nil
	}
}

func (c *climber) propose(t *trial, before *trial) {
	t.temperature = c.temperature
	if before != nil {
		t.temperature = before.temperature * c.eta
	}
	t.from = c.now
	t.lo, t.hi = c.neighbourhood.propose(c.swap, uint64(t.iteration), c.now.order, t.order)
	t.uniform = c.uniform.Float64(uint64(t.iteration), 0)
}

func (c *climber) accepts(t *trial, d int64) bool { return accepts(d, t.temperature, t.uniform) }

func (c *climber) decided(t *trial, accepted bool, d int64) {
	if accepted {
		c.now.take(t, d)
	}
	c.temperature = t.temperature * c.eta
}

// take makes an accepted trial the position that it was compared with.
func (p *position) take(t *trial, d int64) {
	copy(p.order, t.order)
	copy(p.keys[t.lo+1:], t.keys)
	copy(p.le[t.lo+1:], t.le)
	copy(p.mo[t.lo+1:], t.mo)
	p.value += d
}
