package trace

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/stat/distuv"
	"pgregory.net/rapid"

	"github.com/assay-xai/assay/internal/rng"
)

func neighbourhood(t require.TestingT, id string) Neighbourhood {
	n, err := neighbourhoodByID(id)
	require.NoError(t, err)
	return n
}

func features(tau []int) Set {
	s := NewSet(1 << 10)
	for _, f := range tau {
		s.Add(f)
	}
	return s
}

// What a proposal says of itself is what it did: another permutation, other
// prefixes for lengths lo+1..hi and the same for all others.
func TestProposalsChangeWhatTheySay(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		n := rapid.SampledFrom(Neighbourhoods()).Draw(r, "neighbourhood")
		size := rapid.SampledFrom([]int{2, 3, 4, 5, 16, 49, 64, 100}).Draw(r, "t")
		tau := rng.New(rapid.Uint64().Draw(r, "order"), "test", "").Perm(0, size)
		before := slices.Clone(tau)
		draw := rng.New(rapid.Uint64().Draw(r, "seed"), "test", "")
		for iteration := range uint64(20) {
			out := make([]int, size)
			lo, hi := n.propose(draw, iteration, tau, out)
			require.Equal(r, before, tau, "the trajectory itself stays")
			require.NoError(r, CheckTrajectory(out, size))
			for m := range size + 1 {
				same := slices.Equal(features(tau[:m]), features(out[:m]))
				require.Equal(r, m <= lo || m > hi, same, "%s: prefix of length %d with the range [%d,%d]", n.ID, m, lo, hi)
			}
			require.Less(r, lo, hi, "some prefix differs")
			again := make([]int, size)
			n.propose(draw, iteration, tau, again)
			require.Equal(r, out, again, "a function of the iteration")
		}
	})
}

// every lists all neighbours of the trajectory 0..t-1 from the definitions of
// appendix B.4, by what is done to it.
func every(id string, t int) map[string]float64 {
	out := map[string]float64{}
	identity := make([]int, t)
	for i := range identity {
		identity[i] = i
	}
	add := func(tau []int) {
		if !slices.Equal(tau, identity) {
			out[fmt.Sprint(tau)] = 1
		}
	}
	transpose := func(i, j int) {
		tau := slices.Clone(identity)
		tau[i], tau[j] = tau[j], tau[i]
		add(tau)
	}
	// insert takes n features from position i and puts them in before the j-th of
	// those that are left.
	insert := func(i, n, j int) {
		block := slices.Clone(identity[i : i+n])
		rest := slices.Delete(slices.Clone(identity), i, i+n)
		add(slices.Insert(rest, j, block...))
	}
	for i := range t {
		for j := range t {
			switch id {
			case "complete":
				transpose(i, j)
			case "bubble-sort":
				if j == i+1 {
					transpose(i, j)
				}
			case "star":
				transpose(0, j)
			case "vertex-insertion":
				insert(i, 1, j)
			case "block-reverse":
				if i < j {
					tau := slices.Clone(identity)
					for k := i; k <= j; k++ {
						tau[k] = identity[i+j-k]
					}
					add(tau)
				}
			case "block-insertion":
				for n := 1; i+n <= t; n++ {
					if j <= t-n {
						insert(i, n, j)
					}
				}
			}
		}
	}
	for k := range out {
		out[k] = 1 / float64(len(out))
	}
	if id == "mix" {
		for part, share := range map[string]float64{"block-reverse": .89, "vertex-insertion": .10, "block-insertion": .01} {
			for tau, p := range every(part, t) {
				out[tau] += share * p
			}
		}
	}
	return out
}

// Proposals are distributed as enumeration says: chi-square at the 1e-6 level (the
// seed is fixed: it passes or fails for good).
func TestProposalsAreUniform(t *testing.T) {
	counts := map[string]func(t int) int{
		"complete": func(t int) int { return t * (t - 1) / 2 }, "bubble-sort": func(t int) int { return t - 1 },
		"star": func(t int) int { return t - 1 }, "vertex-insertion": func(t int) int { return (t - 1) * (t - 1) },
		"block-reverse": func(t int) int { return t * (t - 1) / 2 }, "block-insertion": func(t int) int { return (t + 1) * t * (t - 1) / 6 },
	}
	const draws = 40000
	for _, n := range Neighbourhoods() {
		for _, size := range []int{2, 3, 5, 6} {
			want := every(n.ID, size)
			if count, ok := counts[n.ID]; ok {
				require.Len(t, want, count(size), "%s: the summary's number of neighbours", n.ID)
			} else {
				require.Equal(t, "mix", n.ID)
			}
			tau := make([]int, size)
			for i := range tau {
				tau[i] = i
			}
			seen := map[string]int{}
			draw, out := rng.New(7, "test", n.ID), make([]int, size)
			for k := range uint64(draws) {
				n.propose(draw, k, tau, out)
				seen[fmt.Sprint(out)]++
			}
			statistic := 0.0
			for tau, p := range want {
				d := float64(seen[tau]) - draws*p
				statistic += d * d / (draws * p)
				delete(seen, tau)
			}
			require.Empty(t, seen, "%s proposes what is no neighbour", n.ID)
			if len(want) > 1 {
				limit := distuv.ChiSquared{K: float64(len(want) - 1)}.Quantile(1 - 1e-6)
				require.Less(t, statistic, limit, "%s of %d features", n.ID, size)
			}
		}
	}
}

func TestNeighbourhoodsByID(t *testing.T) {
	require.Equal(t, "complete", neighbourhood(t, "").ID)
	_, err := neighbourhoodByID("bubblesort")
	require.ErrorContains(t, err, "bubble-sort")
}
