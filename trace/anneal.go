package trace

import (
	"context"
	"math"
	"slices"
	"time"

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
			{Name: "iterations", Default: 5000, Minimum: 1, Maximum: 1e9, Integer: true, Summary: "iterations where the budget gives none"},
		},
		Schedules: []Schedule{
			{ID: "paper", Summary: "random start, T0 .1 (prob) or 2 (logit), eta .999, 5000 iterations", Start: "random",
				Prob: map[string]float64{"t0": .1, "eta": .999, "iterations": 5000}, Logit: map[string]float64{"t0": 2, "eta": .999, "iterations": 5000}},
			{ID: "repository", Summary: "greedy start, T0 .05, eta .998, 2000 iterations", Start: "greedy-le",
				Prob: map[string]float64{"t0": .05, "eta": .998, "iterations": 2000}, Logit: map[string]float64{"t0": .05, "eta": .998, "iterations": 2000}},
		},
		Objectives: []string{"le-mo", "le", "mo"}, Version: 1,
		run: anneal,
	}
}

// position is a trajectory with the fixed-point scores of its states.
type position struct {
	g         *game
	objective Objective
	logit     bool
	order     []int
	// le[m] = F(first m of order), mo[m] = F(all but the first m): the MoRF
	// point k = t-m. Those that the objective does not look at stay 0.
	le, mo []int64
	value  int64
}

// gain is the objective's part of the states of prefix length m.
func (p *position) gain(le, mo int64) int64 { return p.objective.Le*le + p.objective.Mo*mo }

// prefixScores returns le and mo of the prefixes lo..hi of order.
func (p *position) prefixScores(ctx context.Context, order []int, lo, hi int) (le, mo []int64, err error) {
	n := hi - lo + 1
	sets := prefixes(order, lo, hi)
	complements := make([]Set, n)
	for i, s := range sets {
		complements[i] = s.Complement(p.g.t)
	}
	le, mo = make([]int64, n), make([]int64, n)
	var wanted []Set
	if p.objective.Le != 0 {
		wanted = append(wanted, sets...)
	}
	if p.objective.Mo != 0 {
		wanted = append(wanted, complements...)
	}
	scores, err := p.g.scores(ctx, wanted)
	if err != nil {
		return nil, nil, err
	}
	for _, out := range []struct {
		weight int64
		to     []int64
	}{{p.objective.Le, le}, {p.objective.Mo, mo}} {
		if out.weight == 0 {
			continue
		}
		for i := range out.to {
			if out.to[i], err = fix(scores[i], p.logit, p.g.t); err != nil {
				return nil, nil, err
			}
		}
		scores = scores[n:]
	}
	return le, mo, nil
}

// reset plays order from scratch.
func (p *position) reset(ctx context.Context, order []int) error {
	le, mo, err := p.prefixScores(ctx, order, 0, len(order))
	if err != nil {
		return err
	}
	p.order, p.le, p.mo, p.value = slices.Clone(order), le, mo, 0
	for m := range le {
		p.value += p.gain(le[m], mo[m])
	}
	return nil
}

// accepts is the one comparator of annealing: a change of d (fixed point) at
// temperature T is accepted iff d >= T ln u, that is always for d >= 0 and with
// probability exp(d/T) else; u is uniform in [0,1) and ln 0 = -Inf.
func accepts(d int64, temperature, u float64) bool {
	return d >= 0 || toFloat(d) >= temperature*math.Log(u)
}

// sparse says whether iteration i of n is in the history whatever happens.
func sparse(i, n int) bool { return n <= 0 || i == n || i%max(1, n/100) == 0 }

func anneal(ctx context.Context, s *search) error {
	start, err := startByID(s.o.Start)
	if err != nil {
		return err
	}
	neighbourhood, err := neighbourhoodByID(s.o.Neighbourhood)
	if err != nil {
		return err
	}
	order, err := start.order(ctx, s)
	if err != nil {
		return err
	}
	now := position{g: s.g, objective: s.objective, logit: s.logit}
	if err := now.reset(ctx, order); err != nil {
		return err
	}
	s.result.StartForwards = s.g.forwards
	best, bestValue := slices.Clone(now.order), now.value
	s.result.History = append(s.result.History, Point{0, false, toFloat(now.value), toFloat(bestValue)})

	iterations := s.o.Budget.Iterations
	unlimited := iterations == 0
	if unlimited && s.o.Budget.Evaluations == 0 && s.o.Budget.Time == 0 {
		iterations, unlimited = int(s.params["iterations"]), false
	}
	temperature, eta := s.params["t0"], s.params["eta"]
	swap, uniform := rng.New(s.o.Seed, "trace/propose", s.p.ImageID), rng.New(s.o.Seed, "trace/accept", s.p.ImageID)
	candidate := make([]int, s.p.T)
	for k := 1; unlimited || k <= iterations; k++ {
		if s.o.Budget.Evaluations > 0 && s.g.evaluations >= s.o.Budget.Evaluations ||
			s.o.Budget.Time > 0 && time.Since(s.started) >= s.o.Budget.Time {
			break
		}
		lo, hi := neighbourhood.propose(swap, uint64(k), now.order, candidate)
		u := uniform.Float64(uint64(k), 0)
		le, mo, err := now.prefixScores(ctx, candidate, lo+1, hi)
		if err != nil {
			return err
		}
		d := int64(0)
		for i := range le {
			d += now.gain(le[i]-now.le[lo+1+i], mo[i]-now.mo[lo+1+i])
		}
		accepted := accepts(d, temperature, u)
		if accepted {
			copy(now.order, candidate)
			copy(now.le[lo+1:], le)
			copy(now.mo[lo+1:], mo)
			now.value += d
			s.result.Accepted++
		}
		s.result.Iterations = k
		improved := now.value > bestValue
		if improved {
			copy(best, now.order)
			bestValue = now.value
		}
		if improved || sparse(k, iterations) {
			s.result.History = append(s.result.History, Point{k, accepted, toFloat(now.value), toFloat(bestValue)})
		}
		temperature *= eta
	}
	s.result.Trajectory, s.result.Value, s.result.Last = best, toFloat(bestValue), toFloat(now.value)
	return nil
}
