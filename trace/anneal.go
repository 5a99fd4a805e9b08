package trace

import (
	"context"
	"math"
	"math/bits"

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
			return s.restart(ctx, s.climb(s.params["t0"], s.params["eta"]))
		},
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
		run: func(ctx context.Context, s *search) error { return s.restart(ctx, s.climb(0, 1)) },
	}
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

// climb returns what begins a walk of a climber.
func (s *search) climb(t0, eta float64) func(now *position) (walker, error) {
	return func(now *position) (walker, error) {
		neighbourhood, err := neighbourhoodByID(s.o.Neighbourhood)
		if err != nil {
			return nil, err
		}
		return &climber{now: now, neighbourhood: neighbourhood, temperature: t0, eta: eta,
			swap: s.stream("trace/propose"), uniform: s.stream("trace/accept")}, nil
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

// stream returns the random numbers of a purpose, the search's own.
func (s *search) stream(purpose string) rng.Stream {
	return rng.New(s.o.Seed, purpose, s.p.ImageID)
}

// sparse says whether iteration i of n is in the history whatever happens: every
// hundredth part, or, where a budget of another kind ends the search, some 64
// for every doubling.
func sparse(i, n int) bool {
	if n <= 0 {
		return i%max(1, 1<<bits.Len(uint(i))>>7) == 0
	}
	return i == n || i%max(1, n/100) == 0
}

// restart walks from as many starts as the parameters ask for, and keeps the
// best trajectory of all.
func (s *search) restart(ctx context.Context, begin func(now *position) (walker, error)) error {
	start, err := startByID(s.o.Start)
	if err != nil {
		return err
	}
	var best *position
	offset := 0
	for r := range int(max(1, s.params["restarts"])) {
		if r > 0 && s.exhausted() {
			break
		}
		s.restarts = r
		order, err := start.order(ctx, s)
		if err != nil {
			return err
		}
		now, err := s.play(ctx, order)
		if err != nil {
			return err
		}
		if r == 0 {
			s.result.StartForwards = s.g.forwards
			best = newPosition(s.p.T)
			best.copyFrom(now)
			s.seen(now, 0, s.p.T)
			s.mark(0, false, now.value, best.value)
		} else {
			s.seen(now, 0, s.p.T)
			if now.value > best.value {
				best.copyFrom(now)
			}
		}
		w, err := begin(now)
		if err != nil {
			return err
		}
		own := now.value
		iterations := s.iterations()
		wk := s.newWalk(w, offset, iterations)
		err = wk.run(ctx, func(t *trial, accepted bool) {
			if accepted {
				s.result.Accepted++
				s.seen(now, t.lo+1, t.hi)
			}
			own = max(own, now.value)
			improved := now.value > best.value
			if improved {
				best.copyFrom(now)
			}
			if improved || sparse(t.iteration-offset, iterations) {
				s.mark(t.iteration, accepted, now.value, best.value)
			}
		})
		if err != nil {
			return err
		}
		offset += wk.done
		s.result.Iterations = offset
		s.result.Restarts = append(s.result.Restarts, toFloat(own))
		s.result.Last = toFloat(now.value)
	}
	s.result.Trajectory, s.result.Value = best.order, toFloat(best.value)
	return nil
}

// iterations of one walk; 0 where budgets of another kind end it.
func (s *search) iterations() int {
	if n := s.o.Budget.Iterations; n > 0 {
		return n
	}
	if s.o.Budget.Evaluations > 0 || s.o.Budget.Time > 0 {
		return 0
	}
	return int(s.params["iterations"])
}

// mark adds a point to the history.
func (s *search) mark(iteration int, accepted bool, current, best int64) {
	s.result.History = append(s.result.History, Point{iteration, accepted, s.g.evaluations, toFloat(current), toFloat(best)})
}

// seen keeps the best set of every size among those that the search stood on.
func (s *search) seen(p *position, from, to int) {
	if s.sizes == nil {
		s.sizes = make([]int64, s.p.T+1)
		for m := range s.sizes {
			s.sizes[m] = math.MinInt64
		}
	}
	for m := max(0, from); m <= to; m++ {
		s.sizes[m] = max(s.sizes[m], s.objective.gain(p.le[m], p.mo[m]))
	}
}
