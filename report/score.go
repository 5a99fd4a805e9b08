package report

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"math"
	"os"
	"slices"
	"strings"
)

// contest is one of contests.json: who is better than whom by a metric.
type contest struct {
	Net, Data, Target, Metric string
	Setting                   map[string]any // of study road
	HigherIsBetter            bool
	Competitors               []competitor
	Wins                      []win
	Optimum                   *float64
	Verdict                   string
}

type competitor struct {
	Name                       string
	Mean, Lo, Hi               float64
	N, Undefined               int
	Rank, RankLo, RankHi, Best float64
	Share                      *float64
}

type win struct {
	A, B               string
	Fraction, P, PHolm float64
	N                  int
}

// significance is below which an adjusted probability is called significant.
const significance = .05

// scorePage compares methods by metrics.
type scorePage struct {
	Panels []scorePanel

	facts []fact
}

// scorePanel is of one net, data and target.
type scorePanel struct {
	Title   string
	Metrics []scoreMetric
	// Rows are methods, by their mean rank over metrics.
	Rows      []scoreRow
	Undefined int
	Images    int
	Optimum   bool
}

type scoreRow struct {
	Method string
	Cells  []scoreCell
	// Rank is the mean over metrics.
	Rank cell
}

// scoreCell is a method's mean by a metric.
type scoreCell struct {
	Text, Bounds, Rank, Share, Undefined, Sort string
	Style                                      template.CSS
	Best                                       bool
}

// scoreMetric is a metric of a panel.
type scoreMetric struct {
	ID, Anchor, Arrow, Direction string
	Verdict                      string
	Optimum                      string
	Bars, Ranks                  *intervals
	Names                        []string
	Wins                         [][]winCell
	Curves                       []*chart
	MoreLines                    int
}

type winCell struct {
	Text, Title string
	Style       template.CSS
	Significant bool
}

// optimumName is the method of the records of a searched optimum.
const optimumName = "trace optimum"

// curveLines is how many methods a chart of curves shows.
const curveLines = chartLines

func (r *run) readContests() []contest {
	text, err := os.ReadFile(r.summaryPath("contests.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var out []contest
	if err == nil {
		err = json.Unmarshal(text, &out)
	}
	if err != nil {
		r.note("contests.json cannot be read: %v", err)
		return nil
	}
	return out
}

func (r *run) scorePage(ctx context.Context) (*scorePage, error) {
	p := &scorePage{}
	contests := r.readContests()
	var order []string
	panels := map[string][]contest{}
	methods := map[string]bool{}
	for _, c := range contests {
		key := c.Net + "\x00" + c.Data + "\x00" + c.Target
		if panels[key] == nil {
			order = append(order, key)
		}
		panels[key] = append(panels[key], c)
		for _, one := range c.Competitors {
			methods[one.Name] = true
		}
	}
	targets := map[string]bool{}
	for _, c := range contests {
		targets[c.Target] = true
	}
	curves := r.scoreCurves()
	for i, key := range order {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		list := panels[key]
		var title []string
		if len(order) > 1 {
			title = append(title, list[0].Net)
			if list[0].Data != "" {
				title = append(title, list[0].Data)
			}
			if len(targets) > 1 {
				title = append(title, "target "+list[0].Target)
			}
		}
		panel := newScorePanel(strings.Join(title, " · "), list)
		for j := range panel.Metrics {
			m := &panel.Metrics[j]
			m.Anchor = fmt.Sprintf("metric-%d-%d", i+1, j+1)
			m.Curves, m.MoreLines = curveCharts(list[j], curves)
		}
		p.Panels = append(p.Panels, panel)
	}
	metrics := 0
	for _, panel := range p.Panels {
		metrics = max(metrics, len(panel.Metrics))
	}
	p.facts = []fact{{"images", grouped(int64(len(r.byImage))), ""}, {"methods", grouped(int64(len(methods))), ""},
		{"metrics", grouped(int64(metrics)), ""}, {"scores", grouped(int64(len(r.entries))), ""}}
	return p, nil
}

func newScorePanel(title string, list []contest) scorePanel {
	panel := scorePanel{Title: title}
	var names []string
	ranks, count := map[string]float64{}, map[string]float64{}
	for _, c := range list {
		panel.Metrics = append(panel.Metrics, newScoreMetric(c))
		panel.Optimum = panel.Optimum || c.Optimum != nil
		for _, one := range c.Competitors {
			if !slices.Contains(names, one.Name) {
				names = append(names, one.Name)
			}
			if one.Rank > 0 {
				ranks[one.Name] += one.Rank
				count[one.Name]++
			}
			panel.Undefined += one.Undefined
			panel.Images = max(panel.Images, one.N+one.Undefined)
		}
	}
	mean := func(name string) float64 {
		if count[name] == 0 {
			return math.Inf(1)
		}
		return ranks[name] / count[name]
	}
	slices.SortStableFunc(names, func(a, b string) int {
		switch x, y := mean(a), mean(b); {
		case x < y:
			return -1
		case x > y:
			return 1
		}
		return 0
	})
	for _, name := range names {
		row := scoreRow{Method: name, Rank: cell{Text: missing, Number: true}}
		if count[name] > 0 {
			row.Rank = numberCell(decimal(mean(name), 2), mean(name))
		}
		for _, c := range list {
			row.Cells = append(row.Cells, newScoreCell(c, name))
		}
		panel.Rows = append(panel.Rows, row)
	}
	return panel
}

// newScoreCell is painted by the rank among the metric's methods: the best darkest.
func newScoreCell(c contest, name string) scoreCell {
	last := 0.0
	for _, one := range c.Competitors {
		last = max(last, one.Rank)
	}
	i := slices.IndexFunc(c.Competitors, func(one competitor) bool { return one.Name == name })
	if i < 0 {
		return scoreCell{Text: missing}
	}
	one := c.Competitors[i]
	out := scoreCell{Text: missing}
	if one.Undefined > 0 {
		out.Undefined = fmt.Sprintf("%d undefined", one.Undefined)
	}
	if one.Rank == 0 {
		return out
	}
	out.Text, out.Sort = score(one.Mean), exact(one.Mean)
	if one.N > 1 {
		out.Bounds = score(one.Lo) + " … " + score(one.Hi)
	}
	out.Rank = rankText(one)
	out.Best = !slices.ContainsFunc(c.Competitors, func(o competitor) bool { return o.Rank > 0 && o.Rank < one.Rank })
	if one.Share != nil {
		out.Share = percent(*one.Share, 1) + " of the optimum"
	}
	if last > 1 {
		const strongest = .3
		out.Style = template.CSS(fmt.Sprintf("--tint:%.3f", strongest*(last-one.Rank)/(last-1)))
	}
	return out
}

// score writes a value of a metric, whose ranges differ widely.
func score(v float64) string {
	if a := math.Abs(v); a != 0 && a < .01 || a >= 1e6 {
		return strings.Replace(number4(v), "-", minus, 1)
	}
	if math.Abs(v) < 1 {
		return decimal(v, 4)
	}
	return value(v)
}

func rankText(one competitor) string {
	text := number4(one.Rank)
	if one.RankLo != one.RankHi {
		text += " (" + number4(one.RankLo) + "–" + number4(one.RankHi) + ")"
	}
	return text
}

func newScoreMetric(c contest) scoreMetric {
	m := scoreMetric{ID: c.Metric, Arrow: "↓", Direction: "lower is better", Verdict: c.Verdict}
	if c.HigherIsBetter {
		m.Arrow, m.Direction = "↑", "higher is better"
	}
	if c.Optimum != nil {
		m.Optimum = score(*c.Optimum)
	}
	ranked := ranked(c)
	m.Bars, m.Ranks = valueBars(c, ranked), rankPlot(c, ranked)
	for _, one := range ranked {
		m.Names = append(m.Names, one.Name)
	}
	if len(c.Wins) > 0 {
		m.Wins = winCells(c, m.Names)
	}
	return m
}

// ranked are the competitors that have a rank, best first.
func ranked(c contest) []competitor {
	out := slices.DeleteFunc(slices.Clone(c.Competitors), func(one competitor) bool { return one.Rank == 0 })
	slices.SortStableFunc(out, func(a, b competitor) int {
		switch {
		case a.Rank < b.Rank:
			return -1
		case a.Rank > b.Rank:
			return 1
		}
		return 0
	})
	return out
}

// winCells is the matrix of how often the row's method is better than the column's.
func winCells(c contest, names []string) [][]winCell {
	out := make([][]winCell, len(names))
	for i := range out {
		out[i] = make([]winCell, len(names))
	}
	for _, w := range c.Wins {
		a, b := slices.Index(names, w.A), slices.Index(names, w.B)
		if a < 0 || b < 0 {
			continue
		}
		out[a][b], out[b][a] = newWinCell(w, w.A, w.B, w.Fraction), newWinCell(w, w.B, w.A, 1-w.Fraction)
	}
	return out
}

func newWinCell(w win, a, b string, fraction float64) winCell {
	painted := heatCell(fraction, fraction, func(v float64) string { return percent(v, 0) }, false)
	title := fmt.Sprintf("%s is better than %s on %s of %s; p = %s, Holm %s", a, b, percent(fraction, 1), plural(w.N, "image", "images"), number4(w.P), number4(w.PHolm))
	return winCell{Text: painted.Text, Title: title, Style: painted.Style, Significant: w.PHolm < significance}
}

// curveKey is whose curves of which metric.
type curveKey struct{ net, data, target, metric, name, curve string }

// scoreCurves collects the curves of images, thinned, by method and metric.
func (r *run) scoreCurves() map[curveKey][]scoreCurve {
	out := map[curveKey][]scoreCurve{}
	for _, e := range r.entries {
		if e.score == nil {
			continue
		}
		g := e.group
		name := g.method
		if reduce := g.params["reduce"]; reduce != "" {
			name += " " + reduce
		}
		for _, c := range e.score.curves {
			if c.layers {
				continue
			}
			k := curveKey{e.net, g.params["data"], g.params["target"], g.params["metric"], name, c.name}
			out[k] = append(out[k], c)
		}
	}
	return out
}

// curveCharts shows mean curves of the best methods; more are not shown.
func curveCharts(c contest, all map[curveKey][]scoreCurve) (charts []*chart, more int) {
	list := ranked(c)
	var names []string
	for k := range all {
		if k.metric == c.Metric && k.net == c.Net && k.data == c.Data && k.target == c.Target && !slices.Contains(names, k.curve) {
			names = append(names, k.curve)
		}
	}
	slices.Sort(names)
	for _, curve := range names {
		var lines []series
		points := 0
		atMost := curveLines
		if all[curveKey{c.Net, c.Data, c.Target, c.Metric, optimumName, curve}] != nil {
			atMost-- // methods, so that the optimum has a line of its own
		}
		for _, one := range append(slices.Clone(list), competitor{Name: optimumName}) {
			rows := all[curveKey{c.Net, c.Data, c.Target, c.Metric, one.Name, curve}]
			var ys [][]float64
			for _, row := range rows {
				if points == 0 {
					points = len(row.y)
				}
				if len(row.y) == points {
					ys = append(ys, row.y)
				}
			}
			if len(ys) == 0 || points < 2 {
				continue
			}
			if len(lines) >= atMost && one.Name != optimumName {
				more = max(more, len(list)-atMost)
				continue
			}
			lines = append(lines, series{name: one.Name, xs: rows[0].xs(), band: meanBand(ys), single: len(ys) < 2})
		}
		if len(lines) == 0 {
			continue
		}
		title := map[string]string{"le": "least relevant first", "mo": "most relevant first"}[curve]
		charts = append(charts, newChart(title, lines, "fraction changed", "mean "+curveWord(curve), false))
	}
	return charts, more
}

func curveWord(name string) string {
	if name == "le" || name == "mo" {
		return "output"
	}
	return name
}

// entryScore is what an entry keeps of a score.
type entryScore struct{ curves []scoreCurve }

type scoreCurve struct {
	name string
	x, y []float64
	// layers have numbers from 1, in their order, and no places.
	layers bool
}

// xs are the places of the points, 0 to 1 where the record has none.
func (c scoreCurve) xs() []float64 {
	if len(c.x) == len(c.y) {
		return c.x
	}
	out := make([]float64, len(c.y))
	for i := range out {
		out[i] = float64(i) / float64(max(1, len(c.y)-1))
	}
	return out
}

func (r *run) scoreLede() []string {
	return []string{"Which maps of attribution can be trusted? Every metric asks in its own way: what becomes of the output when what a map marks is taken away, how much the map changes when the net does, how few places it marks. " +
		"None of them is the truth; they agree or they do not.",
		"Means are over images; undefined scores are in none. A method is called significantly better than another where Wilcoxon's signed-rank test over the images says so after Holm's correction for all pairs of the metric."}
}
