package metrics_test

import (
	"encoding/json"
	"math"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/assay-xai/assay/metrics"
)

// statistics is testdata/statistics.json, by scripts/golden_statistics.py.
type statistics struct {
	Wilcoxon []struct {
		Name        string
		Differences []float64
		Statistic   float64
		P           float64
		N           int
		Exact       bool
	}
	Holm      []struct{ P, Adjusted []float64 }
	Standings []struct {
		Values              [][]*float64
		Higher              bool
		Ranks, Lo, Hi, Best []float64
	}
}

func readStatistics(t *testing.T) statistics {
	var g statistics
	text, err := os.ReadFile("testdata/statistics.json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &g))
	return g
}

func TestWilcoxonAgainstSciPy(t *testing.T) {
	for _, c := range readStatistics(t).Wilcoxon {
		got := metrics.Wilcoxon(c.Differences)
		require.Equal(t, c.Statistic, got.Statistic, c.Name)
		require.InEpsilon(t, c.P, got.P, 1e-10, c.Name)
		require.Equal(t, c.N, got.N, c.Name)
		require.Equal(t, c.Exact, got.Exact, c.Name)
	}
	require.Equal(t, metrics.SignedRank{P: 1, Exact: true}, metrics.Wilcoxon([]float64{0, 0, math.NaN()}))
}

// The exact probability is the share of the signs whose sum of ranks is as extreme.
func TestWilcoxonByAllSigns(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		whole := rapid.SliceOfN(rapid.IntRange(-4, 4), 1, 10).Draw(t, "differences")
		d := make([]float64, 0, len(whole))
		for _, v := range whole {
			d = append(d, float64(v))
		}
		got := metrics.Wilcoxon(d)
		var magnitudes []float64
		for _, v := range d {
			if v != 0 {
				magnitudes = append(magnitudes, math.Abs(v))
			}
		}
		n := len(magnitudes)
		extreme := 0
		for signs := range 1 << n {
			plus, minus := 0., 0.
			for i, m := range magnitudes {
				rank := 0.
				for _, o := range magnitudes {
					switch {
					case o < m:
						rank++
					case o == m:
						rank += .5
					}
				}
				if rank += .5; signs>>i&1 == 1 {
					plus += rank
				} else {
					minus += rank
				}
			}
			if min(plus, minus) <= got.Statistic {
				extreme++
			}
		}
		// Both tails, where the middle is in both.
		require.InDelta(t, min(1, float64(extreme)/math.Pow(2, float64(n))), got.P, tolerance(n, got))
		mirrored := make([]float64, len(d))
		for i := range d {
			mirrored[i] = -d[i]
		}
		require.Equal(t, got, metrics.Wilcoxon(mirrored))
	})
}

// tolerance lets the middle, which twice a tail counts twice, pass.
func tolerance(n int, got metrics.SignedRank) float64 {
	if got.P == 1 {
		return 1
	}
	return 1e-12
}

func TestHolmIsTheClosureOfBonferroni(t *testing.T) {
	for _, c := range readStatistics(t).Holm {
		require.InDeltaSlice(t, c.Adjusted, metrics.Holm(c.P), 1e-12)
	}
	got := metrics.Holm([]float64{.02, math.NaN(), .03})
	require.Equal(t, .04, got[0])
	require.True(t, math.IsNaN(got[1]), "no test")
	require.Equal(t, .04, got[2])
	require.Empty(t, metrics.Holm(nil))
}

func TestStandingsAgainstNumPy(t *testing.T) {
	for k, c := range readStatistics(t).Standings {
		values := make([][]float64, len(c.Values))
		for i, row := range c.Values {
			for _, v := range row {
				if v == nil {
					values[i] = append(values[i], math.NaN())
				} else {
					values[i] = append(values[i], *v)
				}
			}
		}
		got := metrics.Standings(values, c.Higher, .95, 0)
		for i, s := range got {
			require.Equal(t, c.Ranks[i], s.Rank, "%d %d", k, i)
			require.Equal(t, c.Lo[i], s.Lo, "%d %d", k, i)
			require.Equal(t, c.Hi[i], s.Hi, "%d %d", k, i)
			require.InDelta(t, c.Best[i], s.Best, .04, "2000 samples against 40000: four standard errors")
		}
	}
}

func TestStandingsOfFew(t *testing.T) {
	nan := math.NaN()
	got := metrics.Standings([][]float64{{1, 2}, {1, 2}, {nan, nan}, {5, 6}}, true, .95, 0)
	require.InDelta(t, 1, got[0].Kept, 1e-9)
	got[0].Kept, got[1].Kept = 0, got[1].Kept-got[0].Kept
	require.Equal(t, metrics.Standing{Rank: 2.5, Lo: 2.5, Hi: 2.5}, got[0], "the same values share places")
	require.Equal(t, got[0], got[1])
	require.Equal(t, metrics.Standing{}, got[2], "no values, no rank")
	require.InDelta(t, 1, got[3].Best, 1e-9)
	require.Equal(t, [3]float64{1, 1, 1}, [3]float64{got[3].Rank, got[3].Lo, got[3].Hi})
	require.Empty(t, metrics.Standings(nil, true, .95, 0))
	require.Equal(t, []metrics.Standing{{}}, metrics.Standings([][]float64{nil}, false, .95, 0))
}

func TestCompareCountsWins(t *testing.T) {
	nan := math.NaN()
	a, b := []float64{3, 1, 2, nan, 5}, []float64{1, 2, 2, 4, nan}
	require.Equal(t, .5, metrics.Compare(a, b, true).Fraction, "one win, one loss, one equal")
	require.Equal(t, 3, metrics.Compare(a, b, true).N)
	require.Equal(t, 2, metrics.Compare(a, b, true).Test.N)
	high := metrics.Compare([]float64{3, 4, 2}, []float64{1, 2, 2}, true)
	low := metrics.Compare([]float64{3, 4, 2}, []float64{1, 2, 2}, false)
	require.InDelta(t, 2.5/3, high.Fraction, 1e-15)
	require.InDelta(t, .5/3, low.Fraction, 1e-15)
	require.Equal(t, high.Test, low.Test)
	require.True(t, math.IsNaN(metrics.Compare([]float64{nan}, []float64{1}, true).Fraction))
}
