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

// number is a golden value; null is NaN.
type number float64

func (n *number) UnmarshalJSON(text []byte) error {
	value := math.NaN()
	if string(text) != "null" {
		if err := json.Unmarshal(text, &value); err != nil {
			return err
		}
	}
	*n = number(value)
	return nil
}

func floats(values []number) []float64 {
	out := make([]float64, len(values))
	for i, v := range values {
		out[i] = float64(v)
	}
	return out
}

// near compares numbers of which both may be NaN.
func near(t *testing.T, want number, got, tolerance float64, what ...any) {
	t.Helper()
	require.Equal(t, math.IsNaN(float64(want)), math.IsNaN(got), what...)
	if !math.IsNaN(got) {
		require.InDelta(t, float64(want), got, tolerance, what...)
	}
}

type goldenSpread struct {
	Values                 []number
	Mean, Deviation, Error number
	N                      int
}

func (g goldenSpread) check(t *testing.T, got metrics.Spread, what ...any) {
	t.Helper()
	require.Equal(t, g.N, got.N, what...)
	scale := max(1, math.Abs(got.Mean))
	near(t, g.Mean, got.Mean, 1e-12*scale, what...)
	near(t, g.Deviation, got.Deviation, 1e-12*scale, what...)
	near(t, g.Error, got.Error, 1e-12*scale, what...)
}

type goldenSetting struct {
	Scores         [][]number
	HigherIsBetter bool
}

func (g goldenSetting) setting() metrics.Setting {
	s := metrics.Setting{HigherIsBetter: g.HigherIsBetter}
	for _, row := range g.Scores {
		s.Scores = append(s.Scores, floats(row))
	}
	return s
}

// roadGolden is testdata/road.json, by scripts/golden_road_statistics.py.
type roadGolden struct {
	Correlations []struct {
		X, Y, Ranks       []number
		Spearman, Kendall number
	}
	Spreads []goldenSpread
	Places  []struct {
		Scores, Places []number
		Higher         bool
	}
	Agreements []struct {
		A, B              goldenSetting
		Spearman, Kendall goldenSpread
		Undefined         int
	}
	Kept []struct {
		Values [][]number
		Higher bool
		Kept   []number
	}
}

func readRoad(t *testing.T) roadGolden {
	t.Helper()
	var g roadGolden
	text, err := os.ReadFile("testdata/road.json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &g))
	require.NotEmpty(t, g.Agreements)
	return g
}

// SciPy's NaN for constants and single values is ours.
func TestCorrelationsOfTiesAndFewAgainstSciPy(t *testing.T) {
	for k, c := range readRoad(t).Correlations {
		x, y := floats(c.X), floats(c.Y)
		near(t, c.Spearman, metrics.Spearman(x, y), 1e-12, k)
		near(t, c.Kendall, metrics.Kendall(x, y), 1e-12, k)
		require.Equal(t, floats(c.Ranks), metrics.Ranks(x), k)
	}
}

func TestSpreadsAgainstSciPy(t *testing.T) {
	for k, c := range readRoad(t).Spreads {
		c.check(t, metrics.SpreadOf(floats(c.Values)), k)
	}
}

func TestPlacesAgainstSciPy(t *testing.T) {
	for k, c := range readRoad(t).Places {
		require.Equal(t, floats(c.Places), metrics.Places(floats(c.Scores), c.Higher), k)
	}
}

func TestAgreementsAgainstSciPy(t *testing.T) {
	for k, c := range readRoad(t).Agreements {
		a, b := c.A.setting(), c.B.setting()
		got := metrics.Agree(a, b)
		c.Spearman.check(t, got.Spearman, "Spearman", k)
		c.Kendall.check(t, got.Kendall, "Kendall", k)
		require.Equal(t, c.Undefined, got.Undefined, k)
		all := metrics.Agreements([]metrics.Setting{a, b})
		c.Spearman.check(t, all[0][1].Spearman, k)
		require.Equal(t, all[0][1].Undefined, all[1][0].Undefined)
		c.Kendall.check(t, all[1][0].Kendall, k)
	}
}

func TestAgreementOfOtherShapes(t *testing.T) {
	two := metrics.Setting{Scores: [][]float64{{1, 2}, {2, 1}}}
	for name, other := range map[string]metrics.Setting{
		"repeats":     {Scores: [][]float64{{1, 2}}},
		"competitors": {Scores: [][]float64{{1, 2, 3}, {1, 2, 3}}},
		"nothing":     {},
	} {
		got := metrics.Agree(two, other)
		require.Equal(t, 2, got.Undefined, name)
		require.Zero(t, got.Spearman.N, name)
		require.True(t, math.IsNaN(got.Kendall.Mean), name)
	}
	require.Zero(t, metrics.Agree(metrics.Setting{}, metrics.Setting{}).Undefined)
	require.Empty(t, metrics.Agreements(nil))
	require.InDelta(t, 1, metrics.Agreements([]metrics.Setting{two})[0][0].Spearman.Mean, 1e-12)
}

// An order and its reverse: correlations of opposite sign, whichever end is best.
func TestAgreementTurnsWithTheDirection(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 8).Draw(t, "competitors")
		row := rapid.SliceOfN(rapid.Map(rapid.IntRange(0, 5), func(v int) float64 { return float64(v) }), n, n)
		a, b := metrics.Setting{Scores: [][]float64{row.Draw(t, "a")}}, metrics.Setting{Scores: [][]float64{row.Draw(t, "b")}}
		same := metrics.Agree(a, b)
		b.HigherIsBetter = true
		turned := metrics.Agree(a, b)
		require.Equal(t, same.Undefined, turned.Undefined)
		if same.Undefined == 0 {
			require.InDelta(t, -same.Spearman.Mean, turned.Spearman.Mean, 1e-12)
			require.InDelta(t, -same.Kendall.Mean, turned.Kendall.Mean, 1e-12)
		}
	})
}

func TestRoadCombined(t *testing.T) {
	require.InDelta(t, (.6-.3)/2, metrics.RoadCombined([]float64{.9, .6, .3}, []float64{.4, .3, .2}), 1e-15)
	require.InDelta(t, -.5, metrics.RoadCombined([]float64{0}, []float64{1}), 1e-15)
	for _, c := range [][2][]float64{{nil, nil}, {{1}, {1, 2}}, {{1, math.NaN()}, {1, 2}}} {
		require.True(t, math.IsNaN(metrics.RoadCombined(c[0], c[1])))
	}
}

func TestKeptRanksAgainstNumPy(t *testing.T) {
	for k, c := range readRoad(t).Kept {
		values := make([][]float64, len(c.Values))
		for i := range values {
			values[i] = floats(c.Values[i])
		}
		for i, s := range metrics.Standings(values, c.Higher, .95, 0) {
			require.InDelta(t, float64(c.Kept[i]), s.Kept, .045, "%d %d: 2000 samples against 40000: four standard errors", k, i)
		}
	}
}

// Samples that are drawn once give what the functions that draw for themselves do.
func TestBootstrapIsShared(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 12).Draw(t, "things")
		seed := rapid.Uint64().Draw(t, "seed")
		values := rapid.SliceOfN(rapid.Float64Range(-3, 3), n, n)
		a, b := values.Draw(t, "a"), values.Draw(t, "b")
		shared := metrics.NewBootstrap(n, seed)
		require.Equal(t, n, shared.Things())
		want, got := metrics.Summarise(a, .9, seed), shared.Summarise(a, .9)
		require.Equal(t, want.N, got.N)
		require.InDeltaSlice(t, []float64{want.Mean, want.Lo, want.Hi}, []float64{got.Mean, got.Lo, got.Hi}, 1e-12)
		b[0] = math.NaN()
		require.Equal(t, metrics.Standings([][]float64{a, b}, true, .9, seed), shared.Standings([][]float64{a, b}, true, .9))
		require.Zero(t, shared.Summarise(a[1:], .9).N, "not a value for each thing")
	})
	none := metrics.NewBootstrap(0, 0)
	require.True(t, math.IsNaN(none.Summarise(nil, .95).Mean))
	require.Equal(t, []metrics.Standing{{}}, none.Standings([][]float64{{1}}, true, .95))
}

// Sums of the same values in another order differ in their last digit and
// share a place, alone and
// where the means are resampled.
func TestPlacesOfRoundedMeans(t *testing.T) {
	values := []float64{.1, .2, .3}
	sum, back := 0., 0.
	for i := range values {
		sum, back = sum+values[i], back+values[len(values)-1-i]
	}
	require.NotEqual(t, sum, back, "else this says nothing")
	require.Equal(t, []float64{2.5, 1, 2.5, 4}, metrics.Places([]float64{sum / 7, .01, back / 7, .2}, false))
	require.Equal(t, []float64{2.5, 4, 2.5, 1}, metrics.Places([]float64{sum / 7, .01, back / 7, .2}, true))
	require.Equal(t, []float64{1.5, 1.5}, metrics.Places([]float64{.3142857142857143, .3142857142857142}, true))
	// What differs by more, however small, does not; infinity is no rounding of anything.
	require.Equal(t, []float64{1, 2, 4, 3}, metrics.Places([]float64{0, 1e-300, math.Inf(1), 1e300}, false))
	require.Equal(t, []float64{2, 1, 0}, metrics.Places([]float64{1, 1 + 1e-9, math.NaN()}, true))
	got := metrics.StandingsOf([]float64{sum, back}, [][]float64{{sum, back, 1}, {back, sum, 1}}, true, .95)
	for _, s := range got {
		require.Equal(t, []float64{1.5, 1.5, 1.5}, []float64{s.Rank, s.Lo, s.Hi})
	}
	require.Equal(t, got[0].Best, got[1].Best)
}
