package orchestrate_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/assay-xai/assay/internal/record"
)

// judged writes records of maps as a run.
func judged(t *testing.T, records ...record.Record) string {
	dir := t.TempDir()
	w, err := record.Open(filepath.Join(dir, record.FileName), nil)
	require.NoError(t, err)
	for i, r := range records {
		r.ID, r.Net = string(rune('a'+i)), "n"
		require.NoError(t, w.Append(r))
	}
	require.NoError(t, w.Close())
	return dir
}

func scoreOf(image, method, metric string, value float64) record.Record {
	return record.Record{Study: "score", Image: image, Method: method, Score: &record.Score{Value: &value},
		Params: map[string]any{"method": method, "metric": metric}}
}

// Which of two scores is better is the metric's: insertion grows, deletion falls.
func TestCompareScoresByTheirDirection(t *testing.T) {
	dir := judged(t,
		scoreOf("x", "old", "insertion", .5), scoreOf("y", "old", "insertion", .5), scoreOf("z", "old", "insertion", .5),
		scoreOf("x", "new", "insertion", .9), scoreOf("y", "new", "insertion", .8), scoreOf("z", "new", "insertion", .4),
		scoreOf("x", "old", "deletion(step=4)", .5), scoreOf("y", "old", "deletion(step=4)", .5), scoreOf("z", "old", "deletion(step=4)", .5),
		scoreOf("x", "new", "deletion(step=4)", .9), scoreOf("y", "new", "deletion(step=4)", .5), scoreOf("z", "new", "deletion(step=4)", .8))
	c := compare(t, dir, dir, "A:method=old", "B:method=new")
	require.Len(t, c.Groups, 2)
	for i, want := range []struct {
		metric string
		higher bool
		counts []int
	}{{"deletion(step=4)", false, []int{0, 1, 2}}, {"insertion", true, []int{2, 0, 1}}} {
		require.Empty(t, c.Groups[i].Facts, "the score says which metric it is")
		require.Len(t, c.Groups[i].Scores, 1)
		s := c.Groups[i].Scores[0]
		require.Equal(t, want.metric, s.Metric)
		require.Equal(t, want.higher, s.HigherIsBetter)
		require.False(t, s.Undirected)
		require.Equal(t, want.counts, []int{s.BBetter, s.Equal, s.ABetter}, s.Metric)
	}
	// One metric has its name, too.
	c = compare(t, dir, dir, "A:method=old", "B:method=new", "metric=insertion")
	require.Equal(t, "insertion", c.Groups[0].Scores[0].Metric)
	require.Equal(t, "insertion", c.Common["metric"])
}

func roadOf(image, method, order string, probability, variation float64) record.Record {
	return record.Record{Study: "road", Image: image, Method: method, Params: map[string]any{"method": method, "order": order, "fractions": "0.5"},
		Road: &record.Road{Correct: []bool{probability > .5}, Probabilities: []float64{probability}, MapVariation: &variation}}
}

// Without the most relevant pixels a low probability is good, without the least
// relevant a high one; the variation of a map is neither.
func TestCompareRemovalByItsOrder(t *testing.T) {
	dir := judged(t,
		roadOf("x", "old", "morf", .6, .1), roadOf("y", "old", "morf", .2, .1),
		roadOf("x", "new", "morf", .3, .3), roadOf("y", "new", "morf", .1, .3),
		roadOf("x", "old", "lerf", .6, .1), roadOf("y", "old", "lerf", .2, .1),
		roadOf("x", "new", "lerf", .3, .3), roadOf("y", "new", "lerf", .1, .1),
		roadOf("x", "old", "random", .6, .1), roadOf("x", "new", "random", .3, .1))
	c := compare(t, dir, dir, "A:method=old", "B:method=new")
	require.Len(t, c.Groups, 3)
	for _, g := range c.Groups {
		p, a, v := score(t, g, "mean-probability"), score(t, g, "mean-accuracy"), score(t, g, "map-variation")
		switch g.Facts["order"] {
		case "morf":
			require.Equal(t, []int{2, 0, 0}, []int{p.BBetter, p.Equal, p.ABetter})
			require.Equal(t, []int{1, 1, 0}, []int{a.BBetter, a.Equal, a.ABetter})
			require.Equal(t, []int{0, 0, 0}, []int{v.BBetter, v.Equal, v.ABetter})
		case "lerf":
			require.True(t, p.HigherIsBetter)
			require.Equal(t, []int{0, 0, 2}, []int{p.BBetter, p.Equal, p.ABetter})
			require.Equal(t, []int{0, 1, 1}, []int{a.BBetter, a.Equal, a.ABetter})
			require.Equal(t, []int{0, 1, 0}, []int{v.BBetter, v.Equal, v.ABetter})
		default:
			require.True(t, p.Undirected, "no method ranked these pixels")
		}
		require.True(t, v.Undirected)
		require.InDelta(t, -.3, p.Difference.Lo, 1e-12)
	}
	// Across orders nothing is better: the same number is good in one and bad in the other.
	c = compare(t, dir, dir, "A:order=morf", "B:order=lerf")
	s := score(t, c.Groups[0], "mean-probability")
	require.True(t, s.Undirected)
	require.Equal(t, []int{0, 2, 0}, []int{s.BBetter, s.Equal, s.ABetter})
}
