package trace

import (
	"context"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/assay-xai/assay/internal/rng"
)

// valueOf sums a trajectory's objective from scratch.
func valueOf(f scoreFunc, o Options, order []int) int64 {
	objective, _ := ObjectiveByID(o.Objective)
	sum := int64(0)
	for m := range len(order) + 1 {
		set := NewSet(len(order))
		for _, x := range order[:m] {
			set.Add(x)
		}
		for i, s := range []Set{set, set.Complement(len(order))} {
			v := min(max(f(s).Prob, 0), 1)
			if o.ScoreOn == "logit" {
				v = f(s).Logit
			}
			sum += []int64{objective.Le, objective.Mo}[i] * int64(math.RoundToEven(v*(1<<40)))
		}
	}
	return sum
}

func number(v int64) float64 { return float64(v) / (1 << 40) }

// steps is what a plain search came to, a line an iteration.
type steps struct {
	current, best []int64
	order         []int // the best
	accepted      int
}

// plainTabu scores every neighbour whole.
func plainTabu(f scoreFunc, o Options, start []int, iterations, tenure int) steps {
	now := slices.Clone(start)
	value := valueOf(f, o, now)
	out := steps{order: slices.Clone(now)}
	top := value
	until := map[[2]int]int{}
	for k := 1; k <= iterations; k++ {
		best, bestValue := -1, int64(0)
		anyway, anywayValue := -1, int64(0)
		for i := range len(now) - 1 {
			next := slices.Clone(now)
			next[i], next[i+1] = next[i+1], next[i]
			v := valueOf(f, o, next)
			if anyway < 0 || v > anywayValue {
				anyway, anywayValue = i, v
			}
			key := [2]int{min(now[i], now[i+1]), max(now[i], now[i+1])}
			if forbidden := until[key] >= k; forbidden && v <= top {
				continue
			}
			if best < 0 || v > bestValue {
				best, bestValue = i, v
			}
		}
		if best < 0 {
			best, bestValue = anyway, anywayValue
		}
		until[[2]int{min(now[best], now[best+1]), max(now[best], now[best+1])}] = k + tenure
		now[best], now[best+1] = now[best+1], now[best]
		value = bestValue
		if value > top {
			top = value
			out.order = slices.Clone(now)
		}
		out.accepted++
		out.current, out.best = append(out.current, value), append(out.best, top)
	}
	return out
}

// plainGenetic scores every child whole.
func plainGenetic(f scoreFunc, o Options, start []int, iterations int, population, tournament int, mutation float64) steps {
	type member struct {
		order []int
		value int64
	}
	alive := []member{{slices.Clone(start), valueOf(f, o, start)}}
	others, draw := rng.New(o.Seed, "trace/population", "a"), rng.New(o.Seed, "trace/breed", "a")
	for i := 1; i < population; i++ {
		p := others.Perm(uint64(i), len(start))
		alive = append(alive, member{p, valueOf(f, o, p)})
	}
	var out steps
	var top int64
	keep := func(m member) {
		if out.order == nil || m.value > top {
			out.order, top = slices.Clone(m.order), m.value
		}
	}
	for _, m := range alive {
		keep(m)
	}
	last := alive[0].value
	for k := uint64(1); k <= uint64(iterations); k++ {
		slices.SortStableFunc(alive, func(a, b member) int { return -compare(a.value, b.value) })
		pick := func(which int) member {
			best := population
			for i := range tournament {
				best = min(best, draw.IntN(k, uint64(5+which*tournament+i), population))
			}
			return alive[best]
		}
		mother, father := pick(0), pick(1)
		i, j := draw.IntN(k, 0, len(start)), draw.IntN(k, 1, len(start))
		i, j = min(i, j), max(i, j)
		var rest []int
		for _, x := range father.order {
			if !slices.Contains(mother.order[i:j+1], x) {
				rest = append(rest, x)
			}
		}
		child := slices.Concat(rest[:i], mother.order[i:j+1], rest[i:])
		if draw.Float64(k, 2) < mutation {
			a, b := draw.IntN(k, 3, len(start)), draw.IntN(k, 4, len(start)-1)
			if b >= a {
				b++
			}
			child[a], child[b] = child[b], child[a]
		}
		v := valueOf(f, o, child)
		twin := slices.ContainsFunc(alive, func(m member) bool { return slices.Equal(m.order, child) })
		if worst := &alive[population-1]; !twin && v > worst.value {
			*worst = member{child, v}
			keep(*worst)
			last = v
			out.accepted++
		}
		out.current, out.best = append(out.current, last), append(out.best, top)
	}
	return out
}

func compare(a, b int64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

func TestTabuAndGeneticEqualTheirPlainLoops(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		size := rapid.SampledFrom([]int{2, 3, 5, 9, 20, 66}).Draw(r, "t")
		f := hashed(rapid.Uint64().Draw(r, "game"))
		iterations := rapid.IntRange(1, 25).Draw(r, "iterations")
		o := Options{
			Solver:    rapid.SampledFrom([]string{"tabu", "genetic"}).Draw(r, "solver"),
			Objective: rapid.SampledFrom([]string{"le", "mo", "le-mo"}).Draw(r, "objective"),
			ScoreOn:   rapid.SampledFrom(ScoreOns()).Draw(r, "scoreOn"),
			Seed:      rapid.Uint64().Draw(r, "seed"),
			Start:     "map",
			Budget:    Budget{Iterations: iterations},
		}
		o.Given = rng.New(o.Seed, "test", "").Perm(0, size)
		var want steps
		if o.Solver == "tabu" {
			tenure := rapid.IntRange(0, 12).Draw(r, "tenure")
			o.Params = map[string]float64{"tenure": float64(tenure)}
			want = plainTabu(f, o, o.Given, iterations, tenure)
		} else {
			population, tournament := rapid.IntRange(2, 6).Draw(r, "population"), rapid.IntRange(1, 4).Draw(r, "tournament")
			o.Params = map[string]float64{"population": float64(population), "tournament": float64(tournament), "mutation": .5}
			want = plainGenetic(f, o, o.Given, iterations, population, tournament, .5)
		}
		var first Result
		for i := range 3 {
			o.Without = Savings(rapid.IntRange(0, int(AllSavings)).Draw(r, "without"))
			got, err := Run(context.Background(), Problem{T: size, ImageID: "a", Scorer: wanting{f, rapid.IntRange(1, 60).Draw(r, "want")}}, o)
			require.NoError(r, err)
			require.Equal(r, want.order, got.Trajectory)
			require.Equal(r, want.accepted, got.Accepted)
			require.Equal(r, number(want.best[iterations-1]), got.Value)
			require.Equal(r, number(want.current[iterations-1]), got.Last)
			for _, p := range got.History[1:] {
				require.Equal(r, number(want.current[p.Iteration-1]), p.Current)
				require.Equal(r, number(want.best[p.Iteration-1]), p.Best)
			}
			require.GreaterOrEqual(r, got.Relaxed, got.Value)
			if i == 0 {
				first = got
			}
			require.Equal(r, decisions(first), decisions(got))
		}
	})
}

// Every restart is the search that its random numbers make; the best counts.
func TestRestarts(t *testing.T) {
	f := hashed(4)
	o := Options{Solver: "sa", Objective: "le-mo", ScoreOn: "prob", Seed: 3, Params: map[string]float64{"restarts": 4}, Budget: Budget{Iterations: 50}}
	p := Problem{T: 16, ImageID: "a", Scorer: f}
	got, err := Run(context.Background(), p, o)
	require.NoError(t, err)
	require.Len(t, got.Restarts, 4)
	require.Equal(t, 200, got.Iterations)
	require.Equal(t, slices.Max(got.Restarts), got.Value)
	require.Greater(t, slices.Max(got.Restarts), slices.Min(got.Restarts))
	require.Equal(t, number(valueOf(f, o, got.Trajectory)), got.Value)
	o.Params = nil
	one, err := Run(context.Background(), p, o)
	require.NoError(t, err)
	require.Equal(t, got.Restarts[0], one.Value)
	o.Params = map[string]float64{"restarts": 1000}
	o.Budget = Budget{Evaluations: 3000}
	got, err = Run(context.Background(), p, o)
	require.NoError(t, err)
	require.Len(t, got.Restarts, 1, "a budget of evaluations is of all restarts together, and the first takes it")
}

// What an estimate says is near to what a search asks for: nominal evaluations
// are fewer where states come again.
func TestEstimates(t *testing.T) {
	for _, o := range []Options{
		{Solver: "sa", Start: "random"}, {Solver: "sa", Start: "greedy-le"}, {Solver: "hill-climbing"}, {Solver: "tabu"}, {Solver: "genetic"},
		{Solver: "greedy", Objective: "le"}, {Solver: "sa", Objective: "mo", Params: map[string]float64{"restarts": 3}},
		{Solver: "sa", Neighbourhood: "bubble-sort"},
	} {
		if o.Objective == "" {
			o.Objective = "le-mo"
		}
		o.ScoreOn = "prob"
		if o.Solver != "greedy" {
			o.Budget.Iterations = 400
		}
		estimate, err := o.Estimate(49)
		require.NoError(t, err)
		last := 0.0
		got, err := Run(context.Background(), Problem{T: 49, ImageID: "a", Scorer: hashed(4), Progress: func(part float64) {
			require.GreaterOrEqual(t, part, last)
			require.LessOrEqual(t, part, 1.0)
			last = part
		}}, o)
		require.NoError(t, err)
		require.Greater(t, last, .8)
		asked := float64(got.Evaluations) + 98
		require.Less(t, asked, 1.2*estimate, "%+v", o)
		// Small steps come back to where they were, and children have much of their
		// parents.
		if o.Solver != "tabu" && o.Solver != "genetic" && o.Neighbourhood == "" {
			require.Less(t, estimate, 1.4*asked, "%+v", o)
		}
	}
	o := Options{Solver: "sa", Objective: "le-mo", ScoreOn: "prob", Budget: Budget{Iterations: 1}}
	estimate, err := o.Estimate(224 * 224)
	require.NoError(t, err)
	// 33,450 states an iteration and 2(t+1) for the start and for the answer.
	require.InEpsilon(t, 33450+4*50176, estimate, .1)
}

// A budget of evaluations that a search can never use up, because it goes round
// in circles among few states, ends it all the same.
func TestSearchesInCirclesEnd(t *testing.T) {
	for _, solver := range []string{"sa", "hill-climbing", "tabu", "genetic"} {
		o := Options{Solver: solver, Objective: "le-mo", ScoreOn: "prob", Budget: Budget{Evaluations: 1e9}, Params: map[string]float64{"restarts": 2}}
		got, err := Run(context.Background(), Problem{T: 4, ImageID: "a", Scorer: hashed(4)}, o)
		require.NoError(t, err)
		require.Len(t, got.Restarts, 2)
		require.LessOrEqual(t, got.Evaluations, int64(16))
		require.Contains(t, got.Warnings[0], "no new state")
	}
}
