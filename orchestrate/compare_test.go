package orchestrate_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/assay-xai/assay/internal/record"
	"github.com/assay-xai/assay/internal/usage"
	"github.com/assay-xai/assay/orchestrate"
)

// unit is a made-up record of a search on four features unless it says else.
type unit struct {
	image  string
	params map[string]any
	seed   uint64
	net    string
	le, mo float64
	order  []int
	target int
	failed bool
	bound  bool
}

// folder writes made-up units as a run.
func folder(t *testing.T, units ...unit) string {
	dir := t.TempDir()
	w, err := record.Open(filepath.Join(dir, record.FileName), nil)
	require.NoError(t, err)
	for i, u := range units {
		r := record.Record{ID: fmt.Sprint("u", i), Study: "trace", Net: u.net, Image: u.image, Params: u.params, Seed: u.seed, Target: u.target}
		if r.Net == "" {
			r.Net = "n"
		}
		if u.failed {
			r = record.Failure(r, "broken")
		} else {
			if u.order == nil {
				u.order = []int{0, 1, 2, 3}
			}
			r.Trace = &record.Trace{Objective: "le-mo", ScoreOn: "prob", Solver: "sa", Value: u.le - u.mo, Features: len(u.order), Trajectory: u.order, Bound: u.bound}
			if u.bound {
				r.Trace.Trajectory = nil
			}
			r.Sums.Prob = record.LeMo{Le: u.le, Mo: u.mo}
		}
		require.NoError(t, w.Append(r))
	}
	require.NoError(t, w.Close())
	return dir
}

func compare(t *testing.T, a, b string, where ...string) *orchestrate.Comparison {
	c, err := orchestrate.Compare(context.Background(), a, b, orchestrate.CompareOptions{Where: where})
	require.NoError(t, err)
	return c
}

func score(t *testing.T, g orchestrate.GroupCompared, metric string) orchestrate.ScoreCompared {
	for _, s := range g.Scores {
		if s.Metric == metric {
			return s
		}
	}
	require.Fail(t, "no metric "+metric)
	return orchestrate.ScoreCompared{}
}

func TestCompareScoresAndOrders(t *testing.T) {
	sa, greedy := map[string]any{"solver": "sa", "edge": 2, "eta": .999}, map[string]any{"solver": "greedy", "edge": 2}
	a := folder(t,
		unit{image: "x", params: sa, le: 3, mo: 1, order: []int{0, 1, 2, 3}},
		unit{image: "y", params: sa, le: 2, mo: 1, order: []int{3, 2, 1, 0}},
		unit{image: "z", params: sa, le: 2, mo: 2},
		unit{image: "only", params: sa, le: 9},
		unit{image: "bad", params: sa, failed: true})
	b := folder(t,
		unit{image: "y", params: greedy, le: 2, mo: .5, order: []int{3, 2, 1, 0}},
		unit{image: "x", params: greedy, le: 2.5, mo: 1, order: []int{1, 0, 2, 3}},
		unit{image: "z", params: greedy, le: 3, mo: 2, order: []int{3, 2, 1, 0}})
	c := compare(t, a, b)
	require.Equal(t, []orchestrate.Difference{{Name: "solver", A: "sa", B: "greedy"}, {Name: "eta", A: "0.999", B: "none"}}, c.Differ)
	require.Equal(t, map[string]string{"net": "n", "edge": "2"}, c.Common)
	require.Equal(t, 3, c.Matched)
	require.Equal(t, 5, c.A.Units)
	require.Equal(t, 1, c.A.Failed)
	require.Equal(t, 1, c.A.Unmatched)
	require.Zero(t, c.B.Unmatched)
	require.Len(t, c.Groups, 1)
	g := c.Groups[0]
	le := score(t, g, "prob-le")
	require.InDelta(t, 7./3, le.A, 1e-12)
	require.InDelta(t, 7.5/3, le.B, 1e-12)
	require.InDelta(t, .5/3, le.Difference.Mean, 1e-12)
	require.InDelta(t, -.5, le.Difference.Lo, 1e-12, "of three images one alone is drawn in 1 of 27 samples")
	require.InDelta(t, 1, le.Difference.Hi, 1e-12)
	require.Equal(t, []int{1, 1, 1}, []int{le.BBetter, le.Equal, le.ABetter})
	mo := score(t, g, "prob-mo") // lower is better
	require.Equal(t, []int{1, 2, 0}, []int{mo.BBetter, mo.Equal, mo.ABetter})
	// scipy.stats: spearmanr([0,1,2,3],[1,0,2,3]) = .8, kendalltau = 2/3; equal
	// orders give 1, reversed ones -1.
	require.InDelta(t, (.8+1-1)/3, g.Orders.Spearman.Mean, 1e-12)
	require.InDelta(t, (2./3+1-1)/3, g.Orders.Kendall.Mean, 1e-12)
	require.InDelta(t, 2./3, g.Orders.Top.Mean, 1e-12)
	require.Equal(t, 1, g.Orders.Same)
	require.Equal(t, 3, g.Orders.N)

	back := compare(t, b, a)
	require.InDelta(t, -le.Difference.Mean, score(t, back.Groups[0], "prob-le").Difference.Mean, 1e-12)
	require.InDelta(t, -le.Difference.Lo, score(t, back.Groups[0], "prob-le").Difference.Hi, 1e-12)
	require.Equal(t, g.Orders, back.Groups[0].Orders)
}

// An image with several seeds counts once; nets make groups.
func TestCompareGroupsAndSeeds(t *testing.T) {
	var a, b []unit
	for _, net := range []string{"n10", "n9"} {
		for _, image := range []string{"x", "y"} {
			for seed := range uint64(2) {
				a = append(a, unit{net: net, image: image, seed: seed, params: map[string]any{"start": "random"}, le: 1})
				b = append(b, unit{net: net, image: image, seed: seed, params: map[string]any{"start": "greedy-le"}, le: 2 + float64(seed)})
			}
		}
	}
	c := compare(t, folder(t, a...), folder(t, b...))
	require.Len(t, c.Groups, 2)
	require.Equal(t, 8, c.Matched)
	for _, g := range c.Groups {
		require.Equal(t, 2, g.Images)
		require.Equal(t, orchestrate.Interval{Mean: 1.5, Lo: 1.5, Hi: 1.5}, score(t, g, "prob-le").Difference)
		require.Equal(t, 2, score(t, g, "prob-le").N)
		require.Equal(t, 4, g.Orders.N)
	}
	// The values of a run against themselves.
	same := compare(t, folder(t, a...), folder(t, a...))
	require.Empty(t, same.Differ)
	require.Equal(t, orchestrate.Interval{}, score(t, same.Groups[0], "value").Difference)
	require.Equal(t, orchestrate.Interval{Mean: 1, Lo: 1, Hi: 1}, same.Groups[0].Orders.Kendall)
}

// Between numbers of features only means over the points of a curve compare.
func TestCompareEdges(t *testing.T) {
	a := folder(t, unit{image: "x", params: map[string]any{"edge": 2}, le: 5})
	b := folder(t, unit{image: "x", params: map[string]any{"edge": 3}, le: 5, order: []int{0, 1, 2, 3, 4, 5, 6, 7, 8}})
	g := compare(t, a, b).Groups[0]
	s := score(t, g, "prob-le-mean")
	require.InDelta(t, 1, s.A, 1e-12)
	require.InDelta(t, .5, s.B, 1e-12)
	require.Nil(t, g.Orders)
	require.Contains(t, g.WhyNoOrders, "4 and of 9")
	names := map[string]bool{}
	for _, s := range g.Scores {
		require.False(t, names[s.Metric], "%s is there twice", s.Metric)
		names[s.Metric] = true
	}
	require.False(t, names["prob-le"])
	require.True(t, names["prob-le-mo-mean"])
}

// The objective's value means another thing under another objective.
func TestCompareObjectives(t *testing.T) {
	a := folder(t, unit{image: "x", params: map[string]any{"objective": "le"}, le: 5})
	b := folder(t, unit{image: "x", params: map[string]any{"objective": "mo"}, le: 5, target: 3})
	c := compare(t, a, b)
	for _, s := range c.Groups[0].Scores {
		require.NotEqual(t, "value", s.Metric)
	}
	require.Len(t, c.Notes, 1)
	require.Contains(t, c.Notes[0], "different classes in 1 of 1")
}

// A bound has scores and no trajectory.
func TestCompareBound(t *testing.T) {
	a := folder(t, unit{image: "x", params: map[string]any{"solver": "exact"}, le: 5})
	b := folder(t, unit{image: "x", params: map[string]any{"solver": "complete-search"}, le: 6, bound: true})
	g := compare(t, a, b).Groups[0]
	require.Equal(t, 1., score(t, g, "prob-le").Difference.Mean)
	require.Nil(t, g.Orders)
	require.Empty(t, g.WhyNoOrders)
}

func TestCompareWhere(t *testing.T) {
	both := folder(t,
		unit{image: "x", params: map[string]any{"solver": "sa"}, le: 3},
		unit{image: "x", params: map[string]any{"solver": "greedy"}, le: 1})
	c := compare(t, both, both, "A:solver=greedy", "B:solver=sa")
	require.Equal(t, 2., score(t, c.Groups[0], "prob-le").Difference.Mean)
	require.Equal(t, 1, compare(t, both, both, "solver=sa").Matched)
}

func TestCompareErrors(t *testing.T) {
	p := func(k string, v any) map[string]any { return map[string]any{k: v} }
	sa := folder(t, unit{image: "x", params: p("solver", "sa")}, unit{image: "y", params: p("solver", "sa")}, unit{image: "z", params: p("solver", "sa")})
	two := folder(t, unit{image: "x", params: p("solver", "tabu")}, unit{image: "x", params: p("solver", "greedy")})
	other := folder(t, unit{image: "q", params: p("solver", "sa")})
	seeds := folder(t, unit{image: "x", params: p("solver", "sa"), seed: 1}, unit{image: "x", params: p("solver", "sa"), seed: 2})
	crossed := folder(t, unit{image: "x", net: "n", params: p("edge", 2)}, unit{image: "x", net: "m", params: p("edge", 3)})
	uncrossed := folder(t, unit{image: "x", net: "m", params: p("edge", 2)}, unit{image: "x", net: "n", params: p("edge", 3)})
	failed := folder(t, unit{image: "x", failed: true})
	empty := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(empty, record.FileName), nil, 0o666))
	eval := t.TempDir()
	line, err := json.Marshal(record.Record{ID: "1", Study: "eval", Image: "x"})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(eval, record.FileName), append(line, '\n'), 0o666))

	for _, c := range []struct {
		a, b  string
		where []string
		want  string
	}{
		{sa, filepath.Join(sa, "nowhere"), nil, "no such folder"},
		{sa, t.TempDir(), nil, "it has no results.jsonl"},
		{sa, empty, nil, "no results yet"},
		{sa, failed, nil, "all 1 units failed"},
		{sa, eval, nil, "is a run of trace"},
		{sa, other, nil, "none of A's 3 images (x, y, ...) is in B (q)"},
		{sa, two, nil, "B has 2 units on x for one in A, with solver greedy, tabu: choose one, for example --where B:solver=greedy"},
		{seeds, sa, nil, "A has 2 units on x for one in B, with seed 1, 2: choose one, for example --where A:seed=1"},
		{crossed, uncrossed, nil, "no unit of A agrees with one of B in all of net (m, n | m, n), edge (2, 3 | 2, 3)"},
		{sa, sa, []string{"solver=tabu"}, "leaves nothing of " + sa + ": its solver is sa"},
		{sa, sa, []string{"sover=sa"}, `has no "sover": did you mean solver`},
		{sa, sa, []string{"solver"}, "want NAME=VALUE"},
	} {
		_, err := orchestrate.Compare(context.Background(), c.a, c.b, orchestrate.CompareOptions{Where: c.where})
		require.ErrorIs(t, err, usage.Err, c.want)
		require.ErrorContains(t, err, c.want)
	}
	// A record that is damaged is an error of its own.
	bad := folder(t, unit{image: "x", order: []int{0, 0, 1, 2}})
	_, err = orchestrate.Compare(context.Background(), bad, sa, orchestrate.CompareOptions{})
	require.ErrorContains(t, err, "trajectory position 1 is 0")
}

// What a run of the program leaves compares, and plans tell what records do not.
func TestCompareRuns(t *testing.T) {
	w := newWorld(t, 4)
	_, err := w.run(w.plan("trace", "{edge: 4, solver: sa, iterations: 20}"), "a")
	require.NoError(t, err)
	_, err = w.run(w.plan("trace", "{edge: 4, solver: greedy, objective: le}"), "b")
	require.NoError(t, err)
	require.NoError(t, weightsFor(w.path("tiny.safetensors"), 7))
	_, err = w.run(w.plan("trace", "{edge: 4, solver: sa, iterations: 20}"), "c")
	require.NoError(t, err)
	c := compare(t, w.path("a"), w.path("b"))
	require.Equal(t, 4, c.Images)
	var names []string
	for _, d := range c.Differ {
		names = append(names, d.Name)
	}
	require.Contains(t, names, "solver")
	require.Contains(t, names, "iterations")
	c = compare(t, w.path("a"), w.path("c"))
	require.Empty(t, c.Differ)
	require.Len(t, c.Plans, 1)
	require.Equal(t, "weights of tiny", c.Plans[0].Name)
	text, err := json.Marshal(c)
	require.NoError(t, err)
	var again orchestrate.Comparison
	require.NoError(t, json.Unmarshal(text, &again))
	require.Equal(t, *c, again)
	require.False(t, math.IsNaN(c.Groups[0].Orders.Spearman.Lo))
}
