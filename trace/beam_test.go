package trace

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// plainBeam is the search written for reading: lists of features instead of
// sets and keys, every beginning's sum from scratch.
func plainBeam(f scoreFunc, size, width int, objective, on string, mostFirst bool) []int {
	worth := func(features []int) int64 {
		sum := int64(0)
		for m := range len(features) + 1 {
			s := NewSet(size)
			for _, feature := range features[:m] {
				s.Add(feature)
			}
			le, mo := s, s.Complement(size)
			if mostFirst {
				le, mo = mo, le
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
	kept := [][]int{nil}
	for range size {
		var next [][]int
		sums, seen := map[string]int64{}, map[string]bool{}
		for _, b := range kept {
			for feature := range size {
				if slices.Contains(b, feature) {
					continue
				}
				longer := append(slices.Clone(b), feature)
				sorted := slices.Sorted(slices.Values(longer))
				if seen[fmt.Sprint(sorted)] {
					continue
				}
				seen[fmt.Sprint(sorted)] = true
				sums[fmt.Sprint(longer)] = worth(longer)
				next = append(next, longer)
			}
		}
		slices.SortStableFunc(next, func(a, b []int) int {
			switch d := sums[fmt.Sprint(b)] - sums[fmt.Sprint(a)]; {
			case d > 0:
				return 1
			case d < 0:
				return -1
			}
			return 0
		})
		kept = next[:min(width, len(next))]
	}
	out := kept[0]
	if mostFirst {
		slices.Reverse(out)
	}
	return out
}

func TestBeamAgainstAPlainLoop(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		size := rapid.SampledFrom([]int{2, 5, 9, 11}).Draw(r, "t")
		width := rapid.IntRange(1, 12).Draw(r, "width")
		f, o := drawn(r)
		o.Solver, o.Params = "beam", map[string]float64{"width": float64(width)}
		got := solve(r, f, size, o)
		require.Equal(r, plainBeam(f, size, width, o.Objective, o.ScoreOn, o.Objective != "le"), got.Trajectory)
		require.Equal(r, float64(worthOf(f, got.Trajectory, o.Objective, o.ScoreOn))/(1<<40), got.Value)
	})
}

func TestBeamOfWidthOneIsGreedy(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		size := rapid.SampledFrom([]int{2, 5, 16, 66}).Draw(r, "t")
		f, o := drawn(r)
		o.Objective = rapid.SampledFrom([]string{"le", "mo"}).Draw(r, "of greedy")
		o.Solver = "greedy"
		want := solve(r, f, size, o)
		o.Solver, o.Params = "beam", map[string]float64{"width": 1}
		got := solve(r, f, size, o)
		require.Equal(r, want.Trajectory, got.Trajectory)
		require.Equal(r, want.Value, got.Value)
		require.Equal(r, want.Curves, got.Curves)
		require.Equal(r, []int64{want.Evaluations, want.Forwards}, []int64{got.Evaluations, got.Forwards})
	})
}

func TestBeamThatHoldsAllSetsIsExact(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		size := rapid.IntRange(2, 8).Draw(r, "t")
		f, o := drawn(r)
		o.Solver = "exact"
		want := solve(r, f, size, o)
		o.Solver, o.Params = "beam", map[string]float64{"width": 70} // 8 over 4
		got := solve(r, f, size, o)
		require.Equal(r, want.Value, got.Value)
		require.LessOrEqual(r, got.Evaluations, int64(1)<<size)
	})
}

func TestGreedyLeMoAgainstAPlainLoop(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		size := rapid.SampledFrom([]int{2, 5, 16, 66}).Draw(r, "t")
		f, o := drawn(r)
		o.Solver, o.Objective = "greedy-le-mo", "le-mo"
		deleted := NewSet(size)
		var want []int
		for len(want) < size {
			best, top := -1, int64(0)
			for i := range size {
				if deleted.Has(i) {
					continue
				}
				s := deleted.Clone()
				s.Add(i)
				v := fixedScore(f, s, o.ScoreOn) - fixedScore(f, s.Complement(size), o.ScoreOn)
				if best < 0 || v > top {
					best, top = i, v
				}
			}
			deleted.Add(best)
			want = append(want, best)
		}
		got := solve(r, f, size, o)
		require.Equal(r, want, got.Trajectory)
		require.Equal(r, float64(worthOf(f, want, "le-mo", o.ScoreOn))/(1<<40), got.Value)
	})
	o := Options{Solver: "greedy-le-mo", Objective: "le", ScoreOn: "prob"}
	require.ErrorContains(t, o.Check(9), "cannot maximise le: want one of [le-mo]")
}
