package report

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/assay-xai/assay/internal/record"
)

// scoreRun is a run of two metrics and three methods on two images.
func scoreRun(t *testing.T) *fakeRun {
	f := newFakeRun(t)
	f.file("plan.yaml", "version: 1\nstudy: score\nnets: [{net: tiny, name: tiny}]\ndata: [{path: p, name: p}]\n")
	n := 0
	for _, method := range []string{"gradient", "random", "plain"} {
		for i := range 2 {
			for _, metric := range []string{"deletion", "sparseness"} {
				v := .1 * float64(i+1)
				rec := record.Record{ID: fmt.Sprint(n), Study: "score", Net: "tiny", Image: fmt.Sprint("x", i), Target: 1, Method: method,
					Params: map[string]any{"metric": metric, "method": method, "target": "predicted"}, Score: &record.Score{Value: &v}}
				if metric == "deletion" {
					rec.Score.Curves = []record.ScoreCurve{{Name: "output", X: []float64{0, .5, 1}, Y: []float64{.9, .5 - .2*float64(i), .1}}}
				} else if method == "plain" {
					rec.Score = &record.Score{Undefined: "zero map"}
				}
				f.add(rec)
				n++
			}
		}
	}
	share, optimum := .8, .5
	contests := []contest{
		{Net: "tiny", Target: "predicted", Metric: "deletion", Competitors: []competitor{
			{Name: "gradient", Mean: .2, Lo: .1, Hi: .3, N: 2, Rank: 2, RankLo: 1, RankHi: 3, Best: .25},
			{Name: "random", Mean: .1, Lo: .05, Hi: .15, N: 2, Rank: 1, RankLo: 1, RankHi: 1, Best: .75, Share: &share},
			{Name: "plain", Mean: .4, Lo: .4, Hi: .4, N: 2, Rank: 3, RankLo: 2, RankHi: 3},
		}, Wins: []win{{A: "gradient", B: "random", Fraction: .25, N: 2, P: .5, PHolm: 1}, {A: "gradient", B: "plain", Fraction: 1, N: 2, P: .001, PHolm: .003}, {A: "random", B: "plain", Fraction: .5, N: 2, P: 1, PHolm: 1}},
			Optimum: &optimum, Verdict: "gradient is significantly better than plain (Wilcoxon, Holm: 1 of 3 pairs)"},
		{Net: "tiny", Target: "predicted", Metric: "sparseness", HigherIsBetter: true, Competitors: []competitor{
			{Name: "gradient", Mean: .2, N: 2, Rank: 1.5, RankLo: 1, RankHi: 2}, {Name: "random", Mean: .2, N: 2, Rank: 1.5, RankLo: 1, RankHi: 2}, {Name: "plain", Undefined: 2},
		}, Verdict: "nothing to compare"},
	}
	text, err := json.Marshal(contests)
	require.NoError(t, err)
	f.file("contests.json", string(text))
	return f
}

func TestScorePage(t *testing.T) {
	f := scoreRun(t)
	text := f.write(Options{})
	require.NotContains(t, text, "NaN")
	page := parse(t, text)
	table := page.one(t, "table.scores")
	var cells []string
	for _, td := range table.all("td") {
		cells = append(cells, td.text)
	}
	// Methods by their mean rank: random (1 + 1.5)/2, gradient (2 + 1.5)/2, plain 3.
	require.Contains(t, cells[0], "random")
	require.Contains(t, cells[1], "0.1000")
	require.Contains(t, cells[1], "0.0500 … 0.1500")
	require.Contains(t, cells[1], "80.0")
	require.Equal(t, "1.25", cells[3])
	require.Contains(t, cells[4], "gradient")
	require.Contains(t, cells[5], "rank 2 (1–3)")
	require.Equal(t, "1.75", cells[7])
	require.Contains(t, cells[10], "2 undefined")
	require.Contains(t, cells[12], "trace optimum")
	require.Contains(t, cells[13], "0.5000")
	require.Len(t, table.all("td.best"), 3, "random by deletion, two by sparseness")
	require.Contains(t, page.one(t, "ul.verdicts").text, "gradient is significantly better than plain")

	wins := page.all("table.wins")
	require.Len(t, wins, 1)
	cells = nil
	for _, td := range wins[0].all("td") {
		cells = append(cells, td.text)
	}
	// Rows and columns by rank: random, gradient, plain.
	pc := thinSpace + "%"
	require.Equal(t, []string{"", "75" + pc, "50" + pc, "25" + pc, "", "100" + pc + "*", "50" + pc, "0" + pc + "*", ""}, cells)
	require.Len(t, page.all("svg.intervals"), 4)
	require.Len(t, page.all("figure.chart"), 1)
	require.Contains(t, text, "lower is better")
}

// A run that is under way has records and no contests yet.
func TestScorePageUnderWay(t *testing.T) {
	f := scoreRun(t)
	f.file("contests.json", "[")
	text := f.write(Options{})
	require.Contains(t, text, "contests.json cannot be read")
}

// The searched optimum has a line among the methods' curves, be they many.
func TestScoreCurvesOfOptimum(t *testing.T) {
	f := newFakeRun(t)
	f.file("plan.yaml", "version: 1\nstudy: score\nnets: [{net: tiny, name: tiny}]\ndata: [{path: p, name: p}]\n")
	v, optimum := .5, 2.
	c := contest{Net: "tiny", Target: "predicted", Metric: "le-mo", HigherIsBetter: true, Optimum: &optimum}
	for i := range chartLines + 2 {
		name := fmt.Sprint("method", i)
		if i == chartLines+1 {
			name = "trace optimum"
		} else {
			c.Competitors = append(c.Competitors, competitor{Name: name, Mean: v, N: 1, Rank: float64(i + 1)})
		}
		f.add(record.Record{ID: name, Study: "score", Net: "tiny", Image: "x", Target: 1, Method: name, Params: map[string]any{"metric": "le-mo", "target": "predicted"},
			Score: &record.Score{Value: &v, Curves: []record.ScoreCurve{{Name: "le", Y: []float64{1, .9, .1}}, {Name: "mo", Y: []float64{1, .3, .1}}}}})
	}
	text, err := json.Marshal([]contest{c})
	require.NoError(t, err)
	f.file("contests.json", string(text))
	page := parse(t, f.write(Options{}))
	charts := page.all("figure.chart")
	require.Len(t, charts, 2)
	for _, chart := range charts {
		require.Contains(t, chart.text, "trace optimum")
		require.Len(t, chart.all("polyline"), chartLines)
		require.NotContains(t, chart.text, fmt.Sprint("method", chartLines-1))
	}
}
