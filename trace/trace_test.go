package trace

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/assay-xai/assay/internal/rng"
	"github.com/assay-xai/assay/internal/usage"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// game functions for tests: deterministic scores of sets.
type scoreFunc func(s Set) Score

func (f scoreFunc) Scores(_ context.Context, sets []Set) ([]Score, error) {
	out := make([]Score, len(sets))
	for i, s := range sets {
		out[i] = f(s)
	}
	return out, nil
}

func hashed(seed uint64) scoreFunc {
	return func(s Set) Score {
		h := fnv.New64a()
		var b [8]byte
		binary.LittleEndian.PutUint64(b[:], seed)
		h.Write(b[:])
		for _, w := range s {
			binary.LittleEndian.PutUint64(b[:], w)
			h.Write(b[:])
		}
		u := float64(h.Sum64()>>11) * 0x1p-53
		switch seed % 4 {
		case 1: // ties
			u = math.Round(u*3) / 3
		case 2: // extreme values, also outside [0,1]
			u = []float64{0, 1, 1 + 1e-9, -1e-9, 1e-300, 1 - 1e-16}[int(u*6)]
		}
		return Score{Prob: u, Logit: 20*u - 10}
	}
}

// additive is a game whose optimum is known: feature f is worth worth[f], and F
// is the worth of what is left; the best order deletes by worth, ascending.
func additive(worth []float64) scoreFunc {
	total := 0.0
	for _, w := range worth {
		total += w
	}
	return func(s Set) Score {
		left := total
		for f, w := range worth {
			if s.Has(f) {
				left -= w
			}
		}
		return Score{Prob: left / total, Logit: left}
	}
}

// plain is the published loop: every iteration scores all 2(t+1) states of the
// candidate from scratch, one image at a time, remembers nothing and sums what
// it finds. Written for reading; it shares with the search only the addressed
// random numbers and the rounding to fixed point.
func plain(t *testing.T, p Problem, o Options, start []int, iterations int, t0, eta float64) (best, last float64, tau []int, accepted int, history []Point) {
	// Nominal evaluations: the different states of candidates that the objective
	// looks at, those left out that the present trajectory has at the same place.
	asked := map[string]bool{}
	states := func(order []int) (le, mo []Set) {
		for k := 0; k <= p.T; k++ {
			le, mo = append(le, NewSet(p.T)), append(mo, NewSet(p.T))
			for _, f := range order[:k] {
				le[k].Add(f)
			}
			for _, f := range order[p.T-k:] {
				mo[k].Add(f)
			}
		}
		return le, mo
	}
	value := func(order []int) int64 {
		sum := int64(0)
		les, mos := states(order)
		for k := 0; k <= p.T; k++ {
			le, mo := les[k], mos[k]
			if o.Objective != "mo" {
				asked[fmt.Sprint(le)] = true
			}
			if o.Objective != "le" {
				asked[fmt.Sprint(mo)] = true
			}
			scores, err := p.Scorer.Scores(context.Background(), []Set{le, mo})
			require.NoError(t, err)
			for i, s := range scores {
				v := min(max(s.Prob, 0), 1)
				if o.ScoreOn == "logit" {
					v = s.Logit
				}
				fixed := int64(math.RoundToEven(v * (1 << 40)))
				if i == 0 && o.Objective != "mo" {
					sum += fixed
				}
				if i == 1 && o.Objective != "le" {
					sum -= fixed
				}
			}
		}
		return sum
	}
	number := func(v int64) float64 { return float64(v) / (1 << 40) }
	current := slices.Clone(start)
	now := value(current)
	top := now
	tau = slices.Clone(current)
	history = append(history, Point{0, false, int64(len(asked)), number(now), number(top)})
	neighbourhood, err := neighbourhoodByID(o.Neighbourhood)
	require.NoError(t, err)
	swap, uniform := rng.New(o.Seed, "trace/propose", p.ImageID), rng.New(o.Seed, "trace/accept", p.ImageID)
	temperature := t0
	for k := 1; k <= iterations; k++ {
		next := slices.Clone(current)
		if o.Neighbourhood == "complete" { // written out once more
			i, j := swap.IntN(uint64(k), 0, p.T), swap.IntN(uint64(k), 1, p.T-1)
			if j >= i {
				j++
			}
			next[i], next[j] = next[j], next[i]
		} else {
			neighbourhood.propose(swap, uint64(k), current, next)
		}
		v := value(next)
		u := uniform.Float64(uint64(k), 0)
		take := v >= now || o.Solver == "sa" && number(v-now) >= temperature*math.Log(u)
		if take {
			current, now = next, v
			accepted++
		}
		better := now > top
		if better {
			top, tau = now, slices.Clone(current)
		}
		if better || k == iterations || k%max(1, iterations/100) == 0 {
			history = append(history, Point{k, take, int64(len(asked)), number(now), number(top)})
		}
		temperature *= eta
	}
	return number(top), number(now), tau, accepted, history
}

func TestFastSearchEqualsThePlainLoop(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		size := rapid.SampledFrom([]int{2, 3, 4, 9, 16, 49, 64, 65, 80}).Draw(r, "t")
		images := rapid.IntRange(1, 5).Draw(r, "images")
		iterations := rapid.IntRange(1, 60).Draw(r, "iterations")
		t0 := rapid.SampledFrom([]float64{1e-6, .05, .1, 2, 50}).Draw(r, "t0")
		o := Options{
			Solver:    rapid.SampledFrom([]string{"sa", "hill-climbing"}).Draw(r, "solver"),
			Objective: rapid.SampledFrom([]string{"le", "mo", "le-mo"}).Draw(r, "objective"),
			ScoreOn:   rapid.SampledFrom(ScoreOns()).Draw(r, "scoreOn"),
			Seed:      rapid.Uint64().Draw(r, "seed"),
			Start:     "map",
			Budget:    Budget{Iterations: iterations},
		}
		if o.Solver == "sa" {
			o.Params = map[string]float64{"t0": t0, "eta": .99}
		}
		var ids []string
		for _, n := range Neighbourhoods() {
			ids = append(ids, n.ID)
		}
		o.Neighbourhood = rapid.SampledFrom(ids).Draw(r, "neighbourhood")
		o.Without = Savings(rapid.IntRange(0, int(AllSavings)).Draw(r, "without"))
		batch := rapid.IntRange(1, 16).Draw(r, "batch")
		functions := make([]scoreFunc, images)
		rows := rowFunc(func(row Row) Score { return functions[row.Slot](row.Set) })
		m := NewMerger(rows, batch)
		ctx, cancel := context.WithCancel(context.Background())
		var runner, group sync.WaitGroup
		runner.Go(func() { _ = m.Run(ctx) })
		results := make([]Result, images)
		errs := make([]error, images)
		problems := make([]Problem, images)
		orders := make([][]int, images)
		dones := make([]func(), images)
		for i := range images {
			functions[i] = hashed(rapid.Uint64().Draw(r, "game"))
			var scorer Scorer
			scorer, dones[i] = m.Image(i, 0)
			problems[i] = Problem{T: size, ImageID: fmt.Sprint("image", i), Scorer: scorer}
			orders[i] = rng.New(o.Seed, "test", fmt.Sprint(i)).Perm(0, size)
		}
		for i := range images {
			group.Go(func() {
				defer dones[i]()
				mine := o
				mine.Given = orders[i]
				results[i], errs[i] = Run(ctx, problems[i], mine)
			})
		}
		group.Wait()
		cancel()
		runner.Wait()
		for i := range images {
			require.NoError(r, errs[i])
			p := problems[i]
			p.Scorer = functions[i]
			best, last, tau, accepted, history := plain(t, p, o, orders[i], iterations, t0, .99)
			require.Equal(r, best, results[i].Value)
			require.Equal(r, last, results[i].Last)
			require.Equal(r, tau, results[i].Trajectory)
			require.Equal(r, accepted, results[i].Accepted)
			require.Equal(r, history, results[i].History)
			mine := o
			mine.Given = orders[i]
			alone, err := Run(context.Background(), p, mine)
			require.NoError(r, err)
			require.Equal(r, decisions(alone), decisions(results[i]), "alone and merged")
			if o.Without&(OnlyChanged|Memo) == 0 && o.Without&Speculation != 0 {
				require.LessOrEqual(r, alone.Forwards, alone.Evaluations+int64(2*(size+1)))
			}
		}
	})
}

// decisions is a result without what it took.
func decisions(r Result) Result {
	r.Forwards, r.StartForwards, r.Discarded = 0, 0, 0 // Changed stays: it is the proposals'
	return r
}

type rowFunc func(Row) Score

func (f rowFunc) ScoreRows(_ context.Context, rows []Row) ([]Score, error) {
	out := make([]Score, len(rows))
	for i, r := range rows {
		out[i] = f(r)
	}
	return out, nil
}

func TestGreedyAgainstAPlainLoop(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		size := rapid.SampledFrom([]int{2, 5, 16, 66}).Draw(r, "t")
		f := hashed(rapid.Uint64().Draw(r, "game"))
		for _, objective := range []string{"le", "mo"} {
			got, err := Run(context.Background(), Problem{T: size, ImageID: "a", Scorer: f}, Options{Solver: "greedy", Objective: objective, ScoreOn: "prob"})
			require.NoError(r, err)
			var order []int
			for len(order) < size {
				best, bestScore := -1, math.Inf(1)
				for c := range size {
					if slices.Contains(order, c) {
						continue
					}
					s := NewSet(size)
					for _, o := range append(slices.Clone(order), c) {
						s.Add(o)
					}
					v := math.RoundToEven(min(max(f(s).Prob, 0), 1) * (1 << 40))
					if objective == "le" {
						v = -v
					}
					if v < bestScore {
						best, bestScore = c, v
					}
				}
				order = append(order, best)
			}
			if objective == "mo" {
				slices.Reverse(order)
			}
			require.Equal(r, order, got.Trajectory)
			// 1+t(t+1)/2 states, and the other curve's of the answer.
			require.LessOrEqual(r, got.Evaluations, int64(1+size*(size+1)/2))
		}
	})
}

// The additive game: any search's optimum is deleting by worth, ascending; all
// permutations of 6 features confirm it for each objective.
func TestAnnealingFindsTheOptimumOfAnAdditiveGame(t *testing.T) {
	worth := []float64{5, 1, 3, 8, 2, 13}
	want := []int{1, 4, 2, 0, 3, 5}
	p := Problem{T: len(worth), ImageID: "a", Scorer: additive(worth)}
	for _, objective := range Objectives() {
		best := math.Inf(-1)
		permutations(len(worth), func(tau []int) {
			c, err := Evaluate(context.Background(), p, tau)
			require.NoError(t, err)
			le, mo := c.Prob.Sums()
			best = max(best, float64(objective.Le)*le+float64(objective.Mo)*mo)
		})
		for _, schedule := range []string{"paper", "repository"} {
			got, err := Run(context.Background(), p, Options{Solver: "sa", Objective: objective.ID, ScoreOn: "prob", Schedule: schedule, Budget: Budget{Iterations: 600}})
			require.NoError(t, err)
			require.Equal(t, want, got.Trajectory, "%s %s", objective.ID, schedule)
			require.InDelta(t, best, got.Value, 1e-9)
		}
	}
}

func permutations(n int, visit func([]int)) {
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	var rec func(int)
	rec = func(k int) {
		if k == n {
			visit(order)
			return
		}
		for i := k; i < n; i++ {
			order[k], order[i] = order[i], order[k]
			rec(k + 1)
			order[k], order[i] = order[i], order[k]
		}
	}
	rec(0)
}

// Theorem 3.1: inserting is deleting the complement. Insertion curves are
// scored here from their own definition: start from nothing, put features back.
func TestInsertionIsDeletionOfTheComplement(t *testing.T) {
	const size = 9
	f := hashed(4)
	tau := rng.New(1, "test", "").Perm(0, size)
	c, err := Evaluate(context.Background(), Problem{T: size, ImageID: "a", Scorer: f}, tau)
	require.NoError(t, err)
	insertion := c.Prob.Insertion()
	for k := 0; k <= size; k++ {
		least, most := NewSet(size).Complement(size), NewSet(size).Complement(size)
		for _, feature := range tau[:k] {
			least.Flip(feature) // the k least relevant are put back first
		}
		for _, feature := range tau[size-k:] {
			most.Flip(feature)
		}
		require.Equal(t, f(least).Prob, insertion.Le[k])
		require.Equal(t, f(most).Prob, insertion.Mo[k])
	}
}

// A search that begins at the optimum of an additive game accepts nothing, so
// that every swap asks for its own |j-i| states (16.7 on average at t = 49, twice
// that for both curves), once: the memo knows a repeated swap.
func TestNominalCounts(t *testing.T) {
	const size, iterations = 49, 300
	worth := make([]float64, size)
	order := make([]int, size)
	for f := range worth {
		worth[f], order[f] = float64(f+1), f
	}
	o := Options{Solver: "sa", Objective: "le", ScoreOn: "prob", Start: "map", Given: order,
		Params: map[string]float64{"t0": 1e-12}, Budget: Budget{Iterations: iterations}}
	early, err := Run(context.Background(), Problem{T: size, ImageID: "a", Scorer: additive(worth)}, o)
	require.NoError(t, err)
	o.Without = EarlyRejection
	got, err := Run(context.Background(), Problem{T: size, ImageID: "a", Scorer: additive(worth)}, o)
	require.NoError(t, err)
	require.Zero(t, got.Accepted)
	require.Less(t, early.Forwards, got.Forwards)
	require.Equal(t, decisions(got), decisions(early))
	require.Equal(t, int64(size+1), got.StartForwards)
	want, seen := int64(0), map[[2]int]bool{}
	draw := rng.New(o.Seed, "trace/propose", "a")
	for k := uint64(1); k <= iterations; k++ {
		lo, hi := Neighbourhoods()[0].propose(draw, k, order, make([]int, size))
		if !seen[[2]int{lo, hi}] {
			want += int64(hi - lo)
		}
		seen[[2]int{lo, hi}] = true
	}
	require.Equal(t, want, got.Evaluations-got.StartForwards)
	// The answer's MoRF curve comes on top: t+1 states, less the two shared ends.
	require.Equal(t, got.Evaluations+size-1, got.Forwards)
}

// wanting is a scorer that would like so many states a call.
type wanting struct {
	scoreFunc
	want int
}

func (w wanting) Want() int { return w.want }

// A state that the net has no number for ends a search only if the decision
// depends on it, however many states are scored at a time.
func TestWhatIsNotANumberDoesNotDependOnSavings(t *testing.T) {
	outcomes := map[bool]int{}
	rapid.Check(t, func(r *rapid.T) {
		size := rapid.SampledFrom([]int{4, 9, 70}).Draw(r, "t")
		good, bad := hashed(4*rapid.Uint64Range(0, 1e6).Draw(r, "game")), hashed(4*rapid.Uint64Range(0, 1e6).Draw(r, "bad"))
		given := rng.New(1, "test", "").Perm(0, size)
		start := map[string]bool{}
		for m := range size + 1 {
			start[fmt.Sprint(prefix(given, m))], start[fmt.Sprint(prefix(given, m).Complement(size))] = true, true
		}
		game := scoreFunc(func(s Set) Score {
			if bad(s).Prob < .05 && !start[fmt.Sprint(s)] {
				return Score{Prob: math.NaN(), Logit: math.Inf(1)}
			}
			v := good(s).Prob
			return Score{Prob: .9 + .1*v, Logit: v}
		})
		o := Options{Solver: "sa", Objective: "le-mo", ScoreOn: "prob", Start: "map", Given: given,
			Seed: rapid.Uint64().Draw(r, "seed"), Params: map[string]float64{"t0": .02}, Budget: Budget{Iterations: 20}}
		outcome := func() (Result, string) {
			got, err := Run(context.Background(), Problem{T: size, ImageID: "a", Scorer: wanting{game, rapid.IntRange(1, 40).Draw(r, "want")}}, o)
			var nan *NotFiniteError
			if errors.As(err, &nan) { // which of several is named may differ
				return Result{}, "not finite"
			}
			require.NoError(r, err)
			got.Curves = Curves{} // scored all the same
			return decisions(got), ""
		}
		o.Without = AllSavings
		want, wantErr := outcome()
		outcomes[wantErr == ""]++
		for range 4 {
			o.Without = Savings(rapid.IntRange(0, int(AllSavings)).Draw(r, "without"))
			got, err := outcome()
			require.Equal(r, wantErr, err)
			require.Equal(r, want, got)
		}
	})
	require.NotZero(t, outcomes[true])
	require.NotZero(t, outcomes[false])
}

func TestEvaluationBudgetEnds(t *testing.T) {
	got, err := Run(context.Background(), Problem{T: 16, ImageID: "a", Scorer: hashed(8)},
		Options{Solver: "sa", Objective: "le", ScoreOn: "prob", Budget: Budget{Evaluations: 200}})
	require.NoError(t, err)
	require.GreaterOrEqual(t, got.Evaluations, int64(200))
	require.Less(t, got.Evaluations, int64(200+16))
}

func TestNaNEndsOneSearchOnly(t *testing.T) {
	good := hashed(4)
	rows := rowFunc(func(r Row) Score {
		if r.Slot == 0 && r.Set.Len() == 3 {
			return Score{Prob: math.NaN(), Logit: math.NaN()}
		}
		return good(r.Set)
	})
	m := NewMerger(rows, 4)
	ctx, cancel := context.WithCancel(context.Background())
	var runner, group sync.WaitGroup
	runner.Go(func() { _ = m.Run(ctx) })
	errs := make([]error, 2)
	for i := range 2 {
		scorer, done := m.Image(i, 0)
		group.Go(func() {
			defer done()
			_, errs[i] = Run(ctx, Problem{T: 9, ImageID: fmt.Sprint(i), Scorer: scorer}, Options{Solver: "sa", Objective: "le", ScoreOn: "prob", Budget: Budget{Iterations: 20}})
		})
	}
	group.Wait()
	cancel()
	runner.Wait()
	var nan *NotFiniteError
	require.ErrorAs(t, errs[0], &nan)
	require.Equal(t, 3, nan.Deleted)
	require.NoError(t, errs[1])
}

type failing struct{}

func (failing) ScoreRows(context.Context, []Row) ([]Score, error) {
	return nil, errors.New("the device broke")
}

func TestMergerErrorsAndCancellation(t *testing.T) {
	m := NewMerger(failing{}, 4)
	ctx, cancel := context.WithCancel(context.Background())
	var runner sync.WaitGroup
	runner.Go(func() { _ = m.Run(ctx) })
	scorer, done := m.Image(0, 0)
	_, err := scorer.Scores(ctx, []Set{NewSet(4)})
	require.ErrorContains(t, err, "the device broke")
	// A second live search that never asks keeps the first waiting until the end.
	_, idle := m.Image(1, 0)
	var waiter sync.WaitGroup
	waiter.Go(func() {
		_, err := scorer.Scores(context.Background(), []Set{NewSet(4)})
		require.ErrorIs(t, err, context.Canceled)
	})
	cancel()
	waiter.Wait()
	runner.Wait()
	_, err = scorer.Scores(context.Background(), []Set{NewSet(4)})
	require.ErrorIs(t, err, context.Canceled)
	done()
	idle()
}

func TestPatchMap(t *testing.T) {
	for _, c := range []struct{ edge, h, w int }{{7, 224, 224}, {7, 32, 32}, {14, 33, 47}, {2, 2, 9}} {
		got, err := PatchMap(c.edge, c.h, c.w)
		require.NoError(t, err)
		count := map[int32]int{}
		for _, f := range got {
			count[f]++
		}
		require.Len(t, count, c.edge*c.edge)
		// A corner patch, and the last one with what is left over.
		require.Equal(t, (c.h/c.edge)*(c.w/c.edge), count[0])
		last := (c.h - (c.edge-1)*(c.h/c.edge)) * (c.w - (c.edge-1)*(c.w/c.edge))
		require.Equal(t, last, count[int32(c.edge*c.edge-1)])
	}
	for _, c := range []struct{ edge, h, w int }{{9, 224, 224}, {56, 32, 32}, {0, 8, 8}} {
		_, err := PatchMap(c.edge, c.h, c.w)
		require.ErrorIs(t, err, usage.Err)
		require.ErrorContains(t, err, "want one of 2,4,7")
	}
}

func TestOrderTiesAndMeans(t *testing.T) {
	featureMap := []int32{0, 0, 1, 2, 2, 3}
	got, err := Order([]float64{1, 3, 2, 0, 0, 2}, featureMap, 4) // means 2, 2, 0, 2
	require.NoError(t, err)
	require.Equal(t, []int{2, 0, 1, 3}, got)
	_, err = Order([]float64{1}, featureMap, 4)
	require.ErrorIs(t, err, usage.Err)
	_, err = Order([]float64{1, 3, 2, math.NaN(), 0, 2}, featureMap, 4)
	require.ErrorContains(t, err, "position 3")
}

func TestHeat(t *testing.T) {
	require.Equal(t, []float64{.25, 1. / 16, 9. / 16, 1}, Heat([]int{1, 0, 2, 3}, 2))
}

func TestOptionErrors(t *testing.T) {
	good := Options{Solver: "sa", Objective: "le-mo", ScoreOn: "prob"}
	require.NoError(t, good.Check(49))
	for name, change := range map[string]func(*Options){
		"solver":        func(o *Options) { o.Solver = "magic" },
		"objective":     func(o *Options) { o.Objective = "both" },
		"score-on":      func(o *Options) { o.ScoreOn = "softmax" },
		"greedy le-mo":  func(o *Options) { o.Solver = "greedy" },
		"schedule":      func(o *Options) { o.Schedule = "mine" },
		"start":         func(o *Options) { o.Start = "middle" },
		"map":           func(o *Options) { o.Start, o.Given = "map", []int{0, 0} },
		"neighbourhood": func(o *Options) { o.Neighbourhood = "all" },
		"parameter":     func(o *Options) { o.Params = map[string]float64{"t1": 1} },
		"temperature":   func(o *Options) { o.Params = map[string]float64{"t0": 0} },
		"NaN":           func(o *Options) { o.Params = map[string]float64{"eta": math.NaN()} },
		"budget":        func(o *Options) { o.Budget.Iterations = -1 },
	} {
		o := good
		change(&o)
		require.ErrorIs(t, o.Check(49), usage.Err, name)
	}
}

func TestLogitsTooLargeForFixedPoint(t *testing.T) {
	huge := scoreFunc(func(Set) Score { return Score{Prob: .5, Logit: 1e9} })
	_, err := Run(context.Background(), Problem{T: 49, ImageID: "a", Scorer: huge}, Options{Solver: "sa", Objective: "le", ScoreOn: "logit", Budget: Budget{Iterations: 1}})
	require.ErrorContains(t, err, "want them below")
}
