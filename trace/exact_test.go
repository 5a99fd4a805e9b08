package trace

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/assay-xai/assay/internal/rng"
	"github.com/assay-xai/assay/internal/usage"
)

// fixedScore is a set's score as every search sums it: written out once more.
func fixedScore(f scoreFunc, s Set, on string) int64 {
	v := f(s).Logit
	if on == "prob" {
		v = min(max(f(s).Prob, 0), 1)
	}
	return int64(math.RoundToEven(v * (1 << 40)))
}

// worthOf is the objective of a trajectory in fixed point, from its definition.
func worthOf(f scoreFunc, tau []int, objective, on string) int64 {
	sum := int64(0)
	for k := range len(tau) + 1 {
		le, mo := NewSet(len(tau)), NewSet(len(tau))
		for _, feature := range tau[:k] {
			le.Add(feature)
		}
		for _, feature := range tau[len(tau)-k:] {
			mo.Add(feature)
		}
		if objective != "mo" {
			sum += fixedScore(f, le, on)
		}
		if objective != "le" {
			sum -= fixedScore(f, mo, on)
		}
	}
	return sum
}

func solve(t require.TestingT, f Scorer, size int, o Options) Result {
	got, err := Run(context.Background(), Problem{T: size, ImageID: "a", Scorer: f}, o)
	require.NoError(t, err)
	return got
}

// drawn chooses a game and what is asked of it.
func drawn(r *rapid.T) (scoreFunc, Options) {
	f := hashed(rapid.Uint64().Draw(r, "game"))
	return f, Options{
		Objective: rapid.SampledFrom([]string{"le", "mo", "le-mo"}).Draw(r, "objective"),
		ScoreOn:   rapid.SampledFrom(ScoreOns()).Draw(r, "scoreOn"),
		Seed:      rapid.Uint64().Draw(r, "seed"),
	}
}

// All permutations of 6 features: exact finds the best value, and of the best
// trajectories (games of kind 1 and 2 have many) the lexicographically smallest.
func TestExactAgainstAllPermutations(t *testing.T) {
	tied := false
	rapid.Check(t, func(r *rapid.T) {
		const size = 6
		f, o := drawn(r)
		scores := make([]int64, 1<<size)
		for n := range scores {
			scores[n] = fixedScore(f, Set{uint64(n)}, o.ScoreOn)
		}
		best, equals := int64(math.MinInt64), 0
		var want []int
		permutations(size, func(tau []int) {
			le, mo, first := int64(0), int64(0), 0
			for k := range size + 1 {
				le, mo = le+scores[first], mo+scores[1<<size-1-first]
				if k < size {
					first |= 1 << tau[k]
				}
			}
			v := map[string]int64{"le": le, "mo": -mo, "le-mo": le - mo}[o.Objective]
			switch {
			case v > best:
				best, want, equals = v, slices.Clone(tau), 1
			case v == best:
				equals++
				if slices.Compare(tau, want) < 0 {
					want = slices.Clone(tau)
				}
			}
		})
		tied = tied || equals > 1
		o.Solver = "exact"
		got := solve(r, f, size, o)
		require.Equal(r, float64(best)/(1<<40), got.Value)
		require.Equal(r, want, got.Trajectory)
		require.Equal(r, got.Value, got.Last)
		require.Nil(r, got.Bounds)
		require.Equal(r, []int64{1 << size, 1 << size}, []int64{got.Evaluations, got.Forwards}, "every state once, the curves included")
		// To the bit what any solver says of the trajectory, curves included.
		o.Solver, o.Start, o.Given = "order", "map", got.Trajectory
		played := solve(r, f, size, o)
		require.Equal(r, played.Value, got.Value)
		require.Equal(r, played.Curves, got.Curves)
	})
	require.True(t, tied, "some game has several best trajectories")
}

// Complete search from its definition: per size the best of all sets.
func TestCompleteSearchFromItsDefinition(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		size := rapid.IntRange(2, 7).Draw(r, "t")
		f, o := drawn(r)
		o.Solver, o.Schedule = "complete-search", rapid.SampledFrom([]string{"separate", "joint"}).Draw(r, "schedule")
		want := make([]int64, size+1)
		for m := range want {
			top := func(value func(s Set) int64) int64 {
				best := int64(math.MinInt64)
				for n := range uint64(1) << size {
					if s := (Set{n}); s.Len() == m {
						best = max(best, value(s))
					}
				}
				return best
			}
			le := func(s Set) int64 { return fixedScore(f, s, o.ScoreOn) }
			mo := func(s Set) int64 { return -fixedScore(f, s.Complement(size), o.ScoreOn) }
			switch {
			case o.Objective == "le":
				want[m] = top(le)
			case o.Objective == "mo":
				want[m] = top(mo)
			case o.Schedule == "separate":
				want[m] = top(le) + top(mo)
			default:
				want[m] = top(func(s Set) int64 { return le(s) + mo(s) })
			}
		}
		got := solve(r, f, size, o)
		require.Nil(r, got.Trajectory)
		require.Len(r, got.Bounds, size+1)
		sum := int64(0)
		for m, v := range want {
			require.Equal(r, float64(v)/(1<<40), got.Bounds[m])
			sum += v
		}
		require.Equal(r, float64(sum)/(1<<40), got.Value)
		require.Equal(r, int64(1)<<size, got.Forwards)
		// The curves are those of the chosen sets.
		curve := got.Curves.Logit
		if o.ScoreOn == "prob" {
			curve = got.Curves.Prob
		}
		le, mo := 0.0, 0.0
		for k := range curve.Le {
			if o.ScoreOn == "prob" {
				le, mo = le+min(max(curve.Le[k], 0), 1), mo+min(max(curve.Mo[k], 0), 1)
			} else {
				le, mo = le+curve.Le[k], mo+curve.Mo[k]
			}
		}
		require.InDelta(r, got.Value, map[string]float64{"le": le, "mo": -mo, "le-mo": le - mo}[o.Objective], 1e-9)
		if o.Objective != "le-mo" || o.Schedule == "joint" { // pairs of a set and its complement
			for k := range curve.Le {
				paired := false
				for n := range uint64(1) << size {
					s := Set{n}
					paired = paired || s.Len() == k && f(s).Logit == got.Curves.Logit.Le[k] && f(s.Complement(size)).Logit == got.Curves.Logit.Mo[size-k]
				}
				require.True(r, paired)
			}
		}
	})
}

// From one game: every heuristic <= exact <= joint <= separate, in value.
func TestHeuristicsExactAndBounds(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		size := rapid.IntRange(2, 9).Draw(r, "t")
		f, o := drawn(r)
		value := func(solver, schedule string) float64 {
			o.Solver, o.Schedule = solver, schedule
			return solve(r, f, size, o).Value
		}
		optimum := value("exact", "")
		joint, separate := value("complete-search", "joint"), value("complete-search", "")
		require.LessOrEqual(r, optimum, joint)
		require.LessOrEqual(r, joint, separate)
		if o.Objective != "le-mo" {
			require.Equal(r, joint, separate)
		}
		for _, s := range Solvers() {
			if s.MaxFeatures > 0 || !slices.Contains(s.Objectives, o.Objective) {
				continue
			}
			o.Budget = Budget{}
			if slices.ContainsFunc(s.Parameters, func(p Parameter) bool { return p.Name == "iterations" }) {
				o.Budget.Iterations = 40
			}
			require.LessOrEqual(r, value(s.ID, ""), optimum, s.ID)
		}
	})
}

func TestSixteenFeaturesAtMost(t *testing.T) {
	for _, solver := range []string{"exact", "complete-search"} {
		o := Options{Solver: solver, Objective: "le-mo", ScoreOn: "prob"}
		require.NoError(t, o.Check(16))
		err := o.Check(17)
		require.ErrorIs(t, err, usage.Err)
		require.ErrorContains(t, err, "t = 17 features: want at most 16 (of images: edge 2 or 4)")
		_, err = Run(context.Background(), Problem{T: 49, ImageID: "a", Scorer: hashed(4)}, o)
		require.ErrorIs(t, err, usage.Err)
	}
	// 16 themselves: the additive game's optimum is known.
	worth, want := make([]float64, 16), make([]int, 16)
	for f := range worth {
		worth[f] = float64(1 + (f*7)%16) // 7 and 16 have no common factor: all different
		want[(f*7)%16] = f
	}
	for _, objective := range []string{"le", "mo", "le-mo"} {
		o := Options{Solver: "exact", Objective: objective, ScoreOn: "prob"}
		got := solve(t, additive(worth), 16, o)
		require.Equal(t, want, got.Trajectory)
		require.Equal(t, int64(1<<16), got.Forwards)
		// Its best sets are nested: all bounds are attained.
		for _, schedule := range []string{"separate", "joint"} {
			o.Solver, o.Schedule = "complete-search", schedule
			require.Equal(t, got.Value, solve(t, additive(worth), 16, o).Value)
		}
	}
}

// One state of the lattice that is not a number is enough.
func TestTablesThatAreNotFinite(t *testing.T) {
	for _, bad := range []Score{{Prob: math.NaN(), Logit: 1}, {Prob: .5, Logit: math.Inf(1)}} {
		f := scoreFunc(func(s Set) Score {
			if s[0] == 0b1011001 {
				return bad
			}
			return hashed(4)(s)
		})
		for _, solver := range []string{"exact", "complete-search"} {
			_, err := Run(context.Background(), Problem{T: 8, ImageID: "a", Scorer: f}, Options{Solver: solver, Objective: "le", ScoreOn: "prob"})
			var nan *NotFiniteError
			require.ErrorAs(t, err, &nan)
			require.Equal(t, 4, nan.Deleted)
			require.Equal(t, 8, nan.T)
		}
	}
	// Beam meets it where it looks at it: every set of a size at full width.
	_, err := Run(context.Background(), Problem{T: 8, ImageID: "a", Scorer: scoreFunc(func(s Set) Score {
		if s.Len() == 3 {
			return Score{Prob: math.NaN()}
		}
		return hashed(4)(s)
	})}, Options{Solver: "beam", Objective: "mo", ScoreOn: "prob"})
	var nan *NotFiniteError
	require.ErrorAs(t, err, &nan)
	require.Equal(t, 3, nan.Deleted)
}

// cancelling ends its context with the n-th call.
type cancelling struct {
	scoreFunc
	calls  *int
	states *int
	last   int
	cancel context.CancelCauseFunc
}

func (c cancelling) Scores(ctx context.Context, sets []Set) ([]Score, error) {
	if *c.calls++; *c.calls == c.last {
		c.cancel(errors.New("enough"))
	}
	*c.states += len(sets)
	return c.scoreFunc.Scores(ctx, sets)
}

func TestTablesAndBeamsStop(t *testing.T) {
	for _, o := range []Options{
		{Solver: "exact", Objective: "le-mo", ScoreOn: "prob"},
		{Solver: "complete-search", Objective: "le", ScoreOn: "logit"},
		{Solver: "beam", Objective: "mo", ScoreOn: "prob", Params: map[string]float64{"width": 1000}},
	} {
		ctx, cancel := context.WithCancelCause(context.Background())
		calls, states := 0, 0
		_, err := Run(ctx, Problem{T: 16, ImageID: "a", Scorer: cancelling{hashed(4), &calls, &states, 3, cancel}}, o)
		require.ErrorContains(t, err, "enough", o.Solver)
		require.Equal(t, 3, calls, o.Solver)
		require.LessOrEqual(t, states, 3*tableChunk)
		cancel(nil)
	}
}

// Searches of tables share a device with others, as everything does.
func TestExactThroughAMerger(t *testing.T) {
	functions := []scoreFunc{hashed(4), hashed(5), hashed(6)}
	m := NewMerger(rowFunc(func(row Row) Score { return functions[row.Slot](row.Set) }), 100)
	ctx, cancel := context.WithCancel(context.Background())
	runner := make(chan error)
	go func() { runner <- m.Run(ctx) }()
	type outcome struct {
		slot int
		got  Result
		err  error
	}
	outcomes := make(chan outcome)
	o := Options{Solver: "exact", Objective: "le-mo", ScoreOn: "prob"}
	for slot := range functions {
		scorer, done := m.Image(slot, 0)
		go func() {
			defer done()
			got, err := Run(ctx, Problem{T: 12, ImageID: fmt.Sprint(slot), Scorer: scorer}, o)
			outcomes <- outcome{slot, got, err}
		}()
	}
	for range functions {
		out := <-outcomes
		require.NoError(t, out.err)
		want := solve(t, functions[out.slot], 12, o)
		want.Relaxed, out.got.Relaxed = 0, 0 // NaN: a table stands on nothing
		require.Equal(t, want, out.got)
	}
	cancel()
	require.NoError(t, <-runner)
}

func TestOrderPlaysItsStart(t *testing.T) {
	f := hashed(4)
	for _, size := range []int{2, 16, 70} {
		for _, objective := range []string{"le", "mo", "le-mo"} {
			o := Options{Solver: "order", Objective: objective, ScoreOn: "prob", Seed: 3}
			random := solve(t, f, size, o)
			// The random order that annealing starts from.
			require.Equal(t, rng.New(3, "trace/start", "a").Perm(0, size), random.Trajectory)
			require.Equal(t, float64(worthOf(f, random.Trajectory, objective, "prob"))/(1<<40), random.Value)
			curves, err := Evaluate(context.Background(), Problem{T: size, ImageID: "a", Scorer: f}, random.Trajectory)
			require.NoError(t, err)
			require.Equal(t, curves, random.Curves)
			require.Equal(t, int64(2*size), random.Forwards)
			require.Empty(t, random.History)
			o.Start = "greedy-le"
			require.Equal(t, solve(t, f, size, Options{Solver: "greedy", Objective: "le", ScoreOn: "prob"}).Trajectory, solve(t, f, size, o).Trajectory)
			o.Start, o.Given = "map", rng.New(9, "test", "").Perm(0, size)
			require.Equal(t, o.Given, solve(t, f, size, o).Trajectory)
		}
	}
}
