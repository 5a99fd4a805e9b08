package metrics

import (
	"cmp"
	"encoding/json"
	"math"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/assay-xai/assay/internal/rng"
)

func TestCorrelationsAgainstSciPy(t *testing.T) {
	text, err := os.ReadFile("testdata/correlation.json")
	require.NoError(t, err)
	var golden struct {
		Cases []struct {
			X, Y, Ranks       []float64
			Spearman, Kendall float64
		}
	}
	require.NoError(t, json.Unmarshal(text, &golden))
	require.NotEmpty(t, golden.Cases)
	for _, c := range golden.Cases {
		require.Equal(t, c.Ranks, Ranks(c.X))
		require.InDelta(t, c.Spearman, Spearman(c.X, c.Y), 1e-12)
		require.InDelta(t, c.Kendall, Kendall(c.X, c.Y), 1e-12)
	}
}

func TestUndefinedCorrelations(t *testing.T) {
	for name, c := range map[string][2][]float64{
		"empty":    {nil, nil},
		"one":      {{1}, {2}},
		"constant": {{1, 1, 1}, {1, 2, 3}},
		"NaN":      {{1, math.NaN(), 3}, {1, 2, 3}},
		"lengths":  {{1, 2}, {1, 2, 3}},
	} {
		require.True(t, math.IsNaN(Spearman(c[0], c[1])), name)
		require.True(t, math.IsNaN(Kendall(c[0], c[1])), name)
	}
}

// The bootstrap interval of a mean of many normal values is close to the
// analytic one, mean +- 1.96 s/sqrt(n), and covers the truth as often as it says.
func TestBootstrapIntervalCovers(t *testing.T) {
	const n, trials = 40, 200
	covered := 0
	for trial := range uint64(trials) {
		s := rng.New(trial, "test", "")
		values := make([]float64, n)
		mean, square := 0.0, 0.0
		for i := range values {
			u, v := 1-s.Float64(uint64(i), 0), s.Float64(uint64(i), 1)
			values[i] = 3 + math.Sqrt(-2*math.Log(u))*math.Cos(2*math.Pi*v)
			mean += values[i] / n
		}
		for _, v := range values {
			square += (v - mean) * (v - mean) / n
		}
		got := Summarise(values, .95, trial)
		require.InDelta(t, mean, got.Mean, 1e-12)
		half := 1.96 * math.Sqrt(square/n)
		require.InDelta(t, mean-half, got.Lo, .25*half)
		require.InDelta(t, mean+half, got.Hi, .25*half)
		if got.Lo <= 3 && 3 <= got.Hi {
			covered++
		}
	}
	require.InDelta(t, .94, float64(covered)/trials, .05)
}

func TestSummariseEdges(t *testing.T) {
	got := Summarise(nil, .95, 0)
	require.True(t, math.IsNaN(got.Mean) && math.IsNaN(got.Lo) && got.N == 0)
	require.Equal(t, Summary{2, 2, 2, 1}, Summarise([]float64{2}, .95, 0))
}

// A band is the Summary of every point: the same samples are drawn.
func TestMeanBandIsPointwise(t *testing.T) {
	curves := [][]float64{{1, 5, 2}, {2, 7, 2}, {4, 1, 2}}
	band := MeanBand(curves, .9, 7)
	for p := range 3 {
		s := Summarise([]float64{curves[0][p], curves[1][p], curves[2][p]}, .9, 7)
		require.InDelta(t, s.Mean, band.Mean[p], 1e-12)
		require.InDelta(t, s.Lo, band.Lo[p], 1e-12)
		require.InDelta(t, s.Hi, band.Hi[p], 1e-12)
	}
	require.Empty(t, MeanBand(nil, .9, 7).Mean)
}

func TestCurveSums(t *testing.T) {
	require.Equal(t, 6.0, Sum([]float64{1, 2, 3}))
	require.Equal(t, 2.0, MeanOfCurve([]float64{1, 2, 3}))
	require.True(t, math.IsNaN(MeanOfCurve(nil)))
}

// kendallByPairs is the definition, pair by pair.
func kendallByPairs(x, y []float64) float64 {
	var score, untiedX, untiedY float64
	for i := range x {
		for j := range i {
			a, b := float64(cmp.Compare(x[i], x[j])), float64(cmp.Compare(y[i], y[j]))
			score, untiedX, untiedY = score+a*b, untiedX+a*a, untiedY+b*b
		}
	}
	return score / math.Sqrt(untiedX*untiedY)
}

func TestKendallIsItsDefinition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 60).Draw(t, "n")
		values := rapid.SampledFrom([]float64{-2, 0, 1, 2, 3, 5, 8, 1e9, math.Inf(1), math.Inf(-1)})
		x := rapid.SliceOfN(values, n, n).Draw(t, "x")
		y := rapid.SliceOfN(values, n, n).Draw(t, "y")
		keptX, keptY := slices.Clone(x), slices.Clone(y)
		want, got := kendallByPairs(x, y), Kendall(x, y)
		if math.IsNaN(want) != math.IsNaN(got) || math.Abs(want-got) > 1e-12 {
			t.Fatalf("Kendall(%v, %v) = %v, want %v", x, y, got, want)
		}
		if !slices.Equal(x, keptX) || !slices.Equal(y, keptY) {
			t.Fatal("Kendall changed its arguments")
		}
	})
}

// The interval of paired differences is narrow where the difference is the same
// for all, however much the things differ.
func TestPair(t *testing.T) {
	got := Pair([]float64{1, 100, -7, 3}, []float64{2, 101, -6, 3}, .95, 1)
	require.Equal(t, .75, got.Difference.Mean)
	require.Equal(t, 4, got.Difference.N)
	require.GreaterOrEqual(t, got.Difference.Lo, 0.)
	require.LessOrEqual(t, got.Difference.Hi, 1.)
	require.Equal(t, []int{3, 1, 0}, []int{got.Above, got.Equal, got.Below})
	down := Pair([]float64{5, 6}, []float64{4, 5}, .95, 1)
	require.Equal(t, Paired{Difference: Summary{-1, -1, -1, 2}, Below: 2}, down)
	require.True(t, math.IsNaN(Pair([]float64{1}, nil, .95, 0).Difference.Mean))
	require.Zero(t, Pair(nil, nil, .95, 0).Difference.N)
}
