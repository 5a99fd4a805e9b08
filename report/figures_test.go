package report

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/assay-xai/assay/internal/record"
)

// figurePlan is a plan that asks for figures.
func figurePlan(figures string) string {
	return fmt.Sprintf(fakePlan, "Figures") + "report:\n  images: 3\n  alpha: 2\n  metrics: [value]\n  figures:\n" + figures
}

// simple is a search with given curves, the same by probability and logit.
func simple(solver string, value float64, le, mo []float64, history ...record.HistoryPoint) *record.Trace {
	r := &record.Trace{Objective: "le-mo", ScoreOn: "prob", Solver: solver, Value: value, Features: 4, EdgePatches: 2, Trajectory: []int{3, 1, 0, 2}, History: history}
	r.Curves.Prob = record.Curve{Le: le, Mo: mo}
	r.Curves.Logit = r.Curves.Prob
	return r
}

func figureRecord(id, image string, t *record.Trace, params map[string]any) record.Record {
	r := fakeRecord(id, image, 1, 1, t)
	r.Params = map[string]any{"edge": t.EdgePatches, "objective": t.Objective, "reference": "zero", "scoreOn": "prob", "solver": t.Solver, "target": "label"}
	for k, v := range params {
		r.Params[k] = v
	}
	return r
}

// lines reads the lines of a chart in the coordinates of its axes.
func (n *node) lines(t *testing.T, class string) (out [][][2]float64) {
	svg := n.one(t, "svg.lines")
	for _, g := range svg.all("g") {
		for _, p := range g.all("polyline." + class) {
			var line [][2]float64
			for _, pair := range strings.Fields(p.attr["points"]) {
				a, b, _ := strings.Cut(pair, ",")
				x, err := strconv.ParseFloat(a, 64)
				require.NoError(t, err)
				y, err := strconv.ParseFloat(b, 64)
				require.NoError(t, err)
				at := func(v float64, from, to, lo, hi string) float64 {
					return svg.number(t, lo) + (v-svg.number(t, from))/(svg.number(t, to)-svg.number(t, from))*(svg.number(t, hi)-svg.number(t, lo))
				}
				line = append(line, [2]float64{at(x, "data-left", "data-right", "data-xmin", "data-xmax"), at(y, "data-bottom", "data-top", "data-ymin", "data-ymax")})
			}
			out = append(out, line)
		}
	}
	return out
}

// Progress is that of the mean over images, of seeds before; a search of fewer
// iterations that differs in nothing else is left out.
func TestProgressFigure(t *testing.T) {
	f := newFakeRun(t)
	f.file("plan.yaml", figurePlan("  - {kind: progress, lines: start}\n"))
	curve := []float64{1, 1, 1, 1, 0}
	point := func(i int, evaluations int64, current, best float64) record.HistoryPoint {
		return record.HistoryPoint{Iteration: i, Evaluations: evaluations, Current: current, Best: best}
	}
	for _, start := range []string{"random", "greedy-le"} {
		for i, image := range []string{"a", "b"} {
			for seed := range uint64(2) {
				up := float64(i) + 2*float64(seed)
				r := figureRecord(fmt.Sprint(start, image, seed), image, simple("sa", 3, curve, curve,
					point(0, 10, up, up), point(60, 40, up-1, up+1), point(120, 130, up+2, up+2)), map[string]any{"start": start, "iterations": 120})
				r.Seed = seed
				f.add(r)
			}
		}
	}
	f.add(figureRecord("short", "a", simple("sa", 3, curve, curve, point(0, 10, 0, 0), point(5, 20, 100, 100)), map[string]any{"start": "random", "iterations": 5}))
	page := parse(t, f.write(Options{}))
	charts := page.one(t, "#figure-1").all("figure.chart")
	require.Len(t, charts, 2, "by iterations and by evaluations")
	require.Contains(t, charts[0].text, "iterations")
	require.Contains(t, charts[1].text, "evaluations")
	best, current := charts[0].lines(t, "line"), charts[0].lines(t, "faint")
	require.Len(t, best, 2)
	for i := range best {
		for _, p := range [][3]float64{{0, 1.5, 1.5}, {59, 1.5, 1.5}, {60, 2.5, .5}, {119, 2.5, .5}, {120, 3.5, 3.5}} { // up is 1.5 on average
			k := int(p[0])
			require.InDelta(t, p[0], best[i][k][0], .05)
			require.InDelta(t, p[1], best[i][k][1], .02)
			require.InDelta(t, p[2], current[i][k][1], .02)
		}
	}
	last := charts[1].lines(t, "line")[0]
	require.InDelta(t, 130, last[len(last)-1][0], .05)
	require.InDelta(t, 3.5, last[len(last)-1][1], .02)
	require.Contains(t, charts[0].text, "start greedy-le")
}

// Curves lie over each other by line and side by side by panel; the difference
// is that of the same images.
func TestCurvesFigure(t *testing.T) {
	f := newFakeRun(t)
	f.file("plan.yaml", figurePlan("  - {kind: curves, lines: start, panels: reference, curve: lerf, difference: [blur, zero]}\n  - {kind: curves, lines: start, panels: reference, curve: morf, where: {reference: zero}}\n"))
	for i, image := range []string{"a", "b", "c"} {
		for _, start := range []string{"random", "map"} {
			for k, reference := range []string{"zero", "blur"} {
				if image == "c" && k == 0 {
					continue // only one of the two
				}
				d := float64(i) * .1
				le := []float64{.9, .5 + d + .2*float64(k), .4, .3, .2}
				f.add(figureRecord(fmt.Sprint(image, start, reference), image, simple("order", 1, le, []float64{.9, .8, .6, .4, .2}), map[string]any{"start": start, "reference": reference}))
			}
		}
	}
	page := parse(t, f.write(Options{Plots: true}))
	for _, name := range []string{"figure-1-1.svg", "figure-1-3.png", "figure-2-1.csv"} {
		info, err := os.Stat(filepath.Join(f.out, PlotsDir, name))
		require.NoError(t, err)
		require.NotZero(t, info.Size())
	}
	text, err := os.ReadFile(filepath.Join(f.out, PlotsDir, "figure-1-2.csv"))
	require.NoError(t, err)
	require.Contains(t, string(text), "start random,0.25,0.55,0.5,0.6\n")
	charts := page.one(t, "#figure-1").all("figure.chart")
	require.Len(t, charts, 3)
	require.Contains(t, charts[0].text, "blur")
	require.Contains(t, charts[1].text, "zero")
	require.Contains(t, charts[2].text, "blur − zero")
	near := func(chart int, want ...float64) {
		lines := charts[chart].lines(t, "line")
		require.Len(t, lines, 2)
		for _, line := range lines {
			for k, v := range want {
				require.InDelta(t, float64(k)/4, line[k][0], .005)
				require.InDelta(t, v, line[k][1], .005)
			}
		}
	}
	near(0, .9, .8, .4, .3, .2)  // .7, .8, .9
	near(1, .9, .55, .4, .3, .2) // .5, .6
	near(2, 0, .2, 0, 0, 0)      // of a and b, not c
	second := page.one(t, "#figure-2").all("figure.chart")
	require.Len(t, second, 1)
	require.InDelta(t, .6, second[0].lines(t, "line")[0][2][1], .005)
}

// Facts that follow from others make no panels, budgets of another kind do.
func TestPanels(t *testing.T) {
	of := func(facts ...string) *group {
		g := &group{params: map[string]string{}}
		for i := 0; i < len(facts); i += 2 {
			g.params[facts[i]] = facts[i+1]
		}
		return g
	}
	titles := func(spec figureSpec, groups ...*group) (out []string) {
		for _, p := range panels(groups, spec) {
			out = append(out, fmt.Sprintf("%s: %d", p.title, len(p.groups)))
		}
		return out
	}
	require.Equal(t, []string{"by probability: 1", "by logit: 1"}, titles(figureSpec{Panels: "scoreOn"}, of("scoreOn", "prob", "t0", ".1"), of("scoreOn", "logit", "t0", "2")))
	require.Equal(t, []string{": 3"}, titles(figureSpec{Lines: "solver"}, of("solver", "sa", "objective", "le-mo"), of("solver", "greedy", "objective", "le"), of("solver", "order", "objective", "le-mo")))
	require.Equal(t, []string{"le: 2", "mo: 1"}, titles(figureSpec{Lines: "solver"}, of("solver", "sa", "objective", "le"), of("solver", "exact", "objective", "le"), of("solver", "sa", "objective", "mo")))
	starts := []*group{of("solver", "sa", "start", "random"), of("solver", "sa", "start", "greedy-le"), of("solver", "exact")}
	require.Equal(t, []string{": 3"}, titles(figureSpec{Lines: "solver"}, starts...))
	require.Equal(t, "sa, start greedy-le", lineName(starts[1], starts, figureSpec{Lines: "solver"}))
	require.Equal(t, "exact", lineName(starts[2], starts, figureSpec{Lines: "solver"}))
	require.Equal(t, []string{"evaluations 100: 2", "time 5: 1"}, titles(figureSpec{Lines: "solver"}, of("solver", "sa", "evaluations", "100"), of("solver", "tabu", "evaluations", "100"), of("solver", "sa", "time", "5")))
}

func TestGapFigure(t *testing.T) {
	f := newFakeRun(t)
	f.file("plan.yaml", figurePlan("  - {kind: gap}\n"))
	curve := []float64{1, 1, 1, 1, 0}
	for i, image := range []string{"a", "b"} {
		d := float64(i)
		bound := simple("complete-search", 4+d, curve, curve)
		bound.Bound, bound.Trajectory = true, nil
		f.add(figureRecord("sa"+image, image, simple("sa", 3-d, curve, curve), map[string]any{"start": "random"}),
			figureRecord("ex"+image, image, simple("exact", 3, curve, curve), nil),
			figureRecord("cs"+image, image, bound, nil))
	}
	page := parse(t, f.write(Options{}))
	rows := page.one(t, "table.gap").all("tr")
	require.Len(t, rows, 4)
	cells := map[string][]string{}
	for _, row := range rows[1:] {
		var texts []string
		for _, c := range row.children {
			texts = append(texts, c.text)
		}
		cells[texts[0]] = texts
	}
	// Gaps of sa: 0 and 1 to the optimum, 1 and 3 to the bound.
	require.Equal(t, "0.5000", cells["sa"][3])
	require.Equal(t, "1 of 2", cells["sa"][5])
	require.Equal(t, "2.0000", cells["sa"][6])
	require.Equal(t, "0.0000", cells["exact"][3])
	require.Equal(t, "1.5000", cells["exact"][6])
	require.Equal(t, missing, cells["complete-search"][3])
}

func TestHeatTablesAndFilms(t *testing.T) {
	f := newFakeRun(t)
	f.file("plan.yaml", figurePlan("  - {kind: heatmaps, rows: objective, columns: edge}\n  - {kind: heatmaps, rows: objective, alphas: [1, 3], where: {edge: 4}}\n  - {kind: strips, order: both, steps: 5, where: {objective: le, edge: 4}}\n  - {kind: strips, order: both, steps: 5}\n  - {kind: hetmaps}\n  - {kind: strips, steps: 100}\n"))
	for i, name := range []string{"chelsea.png", "coffee.png"} {
		if i == 0 {
			f.picture(name, photograph(t, name, 64))
		}
		for _, edge := range []int{2, 4} {
			for _, objective := range []string{"le", "mo"} {
				for seed := range uint64(2) {
					trace := fakeTrace(name, edge, .5, .5, .2, .7, 0)
					trace.Objective = objective
					r := figureRecord(fmt.Sprint(name, edge, objective, seed), name, trace, nil)
					r.Seed = seed
					f.add(r)
				}
			}
		}
	}
	text := f.write(Options{})
	page := parse(t, text)
	tables := page.one(t, "#figure-1").all("table.pictures-table")
	require.Len(t, tables, 2, "one an image")
	require.Len(t, tables[0].all("tr"), 3)
	require.Len(t, tables[0].all("image"), 4, "two objectives at two sizes, the first seed alone")
	require.Len(t, tables[0].all("use"), 5, "over the photograph, and it alone")
	require.Len(t, tables[1].all("use"), 0, "no picture was kept")
	require.Contains(t, tables[0].text, "2 × 2")
	alphas := page.one(t, "#figure-2").all("table.pictures-table")
	require.Contains(t, alphas[0].text, "α = 3")
	require.Len(t, alphas[0].all("image"), 4)

	films := page.one(t, "#figure-3").all("div.film")
	require.Len(t, films, 2, "two seeds of the image that has a picture")
	strips := films[0].all("div.strip")
	require.Len(t, strips, 2)
	require.Contains(t, strips[0].all("svg")[1].attr["aria-label"], "The 4 least relevant")
	require.Contains(t, strips[1].all("svg")[1].attr["aria-label"], "The 4 most relevant")
	frames := strips[0].all("figure")
	require.Len(t, frames, 5)
	want := fakeTrace("chelsea.png", 4, .5, .5, .2, .7, 0)
	for i, k := range []int{0, 4, 8, 11, 15} { // 0..15 in four steps of 3.75
		require.Contains(t, frames[i].text, "p "+decimal(want.Curves.Prob.Le[k], 2))
	}
	require.Contains(t, text, "figure &#34;hetmaps&#34;: want one of progress, curves, heatmaps, strips, gap")
	require.Contains(t, text, "steps 100: want 1 to 64")

	// What is used has to be there, once.
	ids := map[string]int{}
	for _, n := range page.all("") {
		if id := n.attr["id"]; id != "" {
			ids[id]++
			require.Equal(t, 1, ids[id], id)
		}
	}
	for _, u := range page.all("use") {
		require.Equal(t, 1, ids[strings.TrimPrefix(u.attr["href"], "#")], u.attr["href"])
	}
}

func TestFilmSteps(t *testing.T) {
	require.Equal(t, []int{0, 16, 32, 48}, filmSteps(49, 4))
	require.Equal(t, []int{0}, filmSteps(49, 1))
	require.Equal(t, []int{0, 1, 2, 3}, filmSteps(4, 10), "no state twice")
}

// What was not measured is listed by reason; tables have the metrics that the
// plan names; claims stand with their readings.
func TestMissingRowsAndClaims(t *testing.T) {
	f := newFakeRun(t)
	f.file("plan.yaml", figurePlan("  []\n"))
	f.add(figureRecord("a", "a", simple("sa", 3, []float64{1, 1, 1, 1, 0}, []float64{1, 1, 1, 1, 0}), nil))
	f.file("summary.csv", "net,imputer,metric,mean,lo,hi,n,reference,referenceSpread,reading,reason\n"+
		"one,zero,value,24,20,29,3,24.2,,agrees,\none,zero,prob-le,40,39,41,3,,,,\n"+
		"two,zero,value,,,,0,31.69,,not measured,run `assay fetch two`\ntwo,blur,value,,,,0,33,,not measured,run `assay fetch two`\n,,,,,,0,,,not measured,no data\n")
	f.file("claims.json", `[{"claim":"<i>one</i> is better","metric":"value","net":"one","difference":1.5,"lo":-0.5,"hi":2,"n":3,"reading":"undecided"},{"claim":"look","n":0,"reading":"see the figures"}]`)
	text := f.write(Options{})
	require.NotContains(t, text, "<i>one</i>")
	page := parse(t, text)
	summary := page.one(t, "#summary")
	require.Len(t, summary.all("tr"), 2)
	require.NotContains(t, summary.text, "prob-le")
	missing := page.one(t, "#missing").all("details")
	require.Len(t, missing, 2)
	require.Contains(t, missing[0].text, "2 rows: run `assay fetch two`")
	require.Contains(t, missing[0].text, "31.6900")
	require.Contains(t, missing[0].text, "imputer blur")
	require.Contains(t, missing[1].text, "no data")
	claims := page.one(t, "table.claims").all("tr")
	require.Len(t, claims, 3)
	require.Contains(t, claims[1].text, "undecided")
	require.Contains(t, claims[1].text, "−0.5000 … 2.0000")
	require.Contains(t, claims[2].text, "see the figures")

	f = newFakeRun(t)
	f.file("plan.yaml", figurePlan("  []\n"))
	f.add(figureRecord("a", "a", simple("sa", 3, []float64{1, 1, 1, 1, 0}, []float64{1, 1, 1, 1, 0}), nil))
	f.file("claims.json", "{")
	require.Contains(t, f.write(Options{}), "claims.json cannot be read")
}

func TestChartsOfOddNumbers(t *testing.T) {
	for _, values := range [][]float64{{1, 1}, {0, 0}, {-1e-9, 1e-9}, {1e12, 2e12}} {
		s := series{name: "x", xs: []float64{0, 0}, single: true}
		s.band.Mean, s.band.Lo, s.band.Hi = values, values, values
		c := newChart("", []series{s}, "x", "y", false)
		for _, v := range []float64{c.XMin, c.XMax, c.YMin, c.YMax} {
			require.False(t, math.IsNaN(v) || math.IsInf(v, 0))
		}
		require.NotContains(t, c.Lines[0].Points, "NaN")
		require.NotContains(t, c.Lines[0].Points, "Inf")
	}
}
