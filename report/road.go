package report

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// roadPage shows what a net says as pixels are removed.
type roadPage struct {
	Verdicts []string
	Panels   []roadPanel
	Heats    []roadHeat
	Films    []roadFilm
	Runtime  *roadRuntime
	// StripsFirst puts the films before everything else.
	StripsFirst bool

	facts []fact
}

// roadPanel is of one net, data, target and way to break ties.
type roadPanel struct {
	Title, Anchor string
	Imputers      []roadImputer
}

// roadImputer is what one imputer shows.
type roadImputer struct {
	ID, Anchor string
	// Generator says what a trained imputer was made of; "" of others.
	Generator string
	// Single says that there is one method, which nothing is compared with.
	Single bool
	// Orders heads the columns of Overview: morf and lerf, where they are.
	Orders   []string
	Overview []roadOverview
	// Combined and Variation say whether the overview has these columns.
	Combined, Variation bool
	Metric              string // of the tables: accuracy or probability
	Fractions           []string
	Lines               []roadLine
	Published           bool
	Charts              []*chart
	More                int // methods that are not drawn
	Ranks               []roadRanks
	Images              int
}

// roadOverview is a method with what is over all fractions.
type roadOverview struct {
	Method   string
	Means    []scoreCell // by order
	Combined scoreCell
	Map      string // variation of the map
	Masks    []string
}

// roadLine is a method (none: chance) in one order by fraction.
type roadLine struct {
	Order, Method string
	Cells         []roadCell
}

type roadCell struct{ Text, Title, Published string }

// roadRanks is a plot of ranks.
type roadRanks struct {
	Title string
	Plot  *intervals
}

// roadRow is a row of summary.json.
type roadRow struct {
	Net          string
	Params       map[string]any
	Metric       string
	Mean, Lo, Hi *float64
	N            int
	Reference    *float64
	Deviation    *float64
	Error        *float64
}

func (r roadRow) text(key string) string { return plain(r.Params[key]) }

func (r roadRow) fraction() float64 {
	f, _ := r.Params["fraction"].(float64)
	return f
}

// place is what a panel is of.
type roadPlace struct{ net, data, target, ties, fractions string }

func (r roadRow) place() roadPlace {
	return roadPlace{r.Net, r.text("data"), r.text("target"), r.text("ties"), r.text("fractions")}
}

// in says that a row is of a place and imputer; random orders break no ties.
func (r roadRow) in(p roadPlace, imputer string) bool {
	at := r.place()
	if r.text("order") == orderRandom {
		at.ties = p.ties
	}
	return at == p && r.text("imputer") == imputer
}

// Orders of removal, as records have them.
const (
	orderMoRF, orderLeRF, orderRandom = "morf", "lerf", "random"
)

// readJSON reads a file of the summary; false where there is none, or it cannot be read.
func (r *run) readJSON(name string, into any) bool {
	text, err := os.ReadFile(r.summaryPath(name))
	if errors.Is(err, fs.ErrNotExist) {
		return false
	}
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		r.note("%s cannot be read: %v", name, err)
		return false
	}
	return true
}

func (r *run) roadPage(ctx context.Context) (*roadPage, error) {
	p := &roadPage{Runtime: r.roadRuntime()}
	var rows []roadRow
	if !r.readJSON("summary.json", &rows) {
		r.note("There is no summary yet: curves and ranks come with it.")
	}
	rows = slices.DeleteFunc(rows, func(row roadRow) bool { return row.N == 0 || row.Mean == nil || row.Lo == nil || row.Hi == nil })
	var consistency roadConsistency
	r.readJSON("consistency.json", &consistency)
	p.StripsFirst = r.stripsFirst()
	contests := r.readContests()
	name := roadNames(rows)
	if len(roadMethods(rows, name)) > 1 {
		p.Verdicts, p.Heats = consistency.Verdicts, roadHeats(consistency)
	}
	var places []roadPlace
	for _, row := range rows {
		if at := row.place(); row.text("imputer") != "" && row.text("order") != orderRandom && row.text("order") != "" && !slices.Contains(places, at) {
			places = append(places, at)
		}
	}
	if len(places) == 0 { // random orders alone
		for _, row := range rows {
			if at := row.place(); !slices.Contains(places, at) {
				places = append(places, at)
			}
		}
	}
	for i, at := range places {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		panel := roadPanel{Title: at.title(places), Anchor: fmt.Sprintf("place-%d", i+1)}
		for j, imputer := range imputersOf(rows, at) {
			block := newRoadImputer(imputer, at, rows, contests, name)
			block.Generator = r.generatorOf(imputer)
			block.Anchor = fmt.Sprintf("imputer-%d-%d", i+1, j+1)
			panel.Imputers = append(panel.Imputers, block)
			r.blocks = append(r.blocks, figureBlock{ID: block.Anchor, Charts: block.Charts})
		}
		p.Panels = append(p.Panels, panel)
	}
	var err error
	if p.Films, err = r.roadFilms(); err != nil {
		return nil, err
	}
	p.facts = r.roadFacts(rows, name)
	return p, nil
}

// stripsFirst says whether the plan asks for strips, which road has anyway: where it does
// they are what the plan is about.
func (r *run) stripsFirst() bool {
	figures := r.plan.Report.Figures
	r.plan.Report.Figures = slices.DeleteFunc(slices.Clone(figures), func(f figureSpec) bool { return f.Kind == stripsKind })
	return len(r.plan.Report.Figures) < len(figures)
}

// stripsKind is the kind of figure that shows pictures with ever more removed.
const stripsKind = "strips"

// generatorOf says what an imputer was made of that was trained; "" of others.
func (r *run) generatorOf(imputer string) string {
	g := r.plan.Generator
	if id, _, _ := strings.Cut(imputer, "("); id != "gain" || g.Hash == "" {
		return ""
	}
	text := fmt.Sprintf("generator %s, %.12s", filepath.Base(g.Weights), g.Hash)
	if g.About != "" {
		text += ": " + g.About
	}
	return text
}

// title names a place by what differs from others.
func (p roadPlace) title(all []roadPlace) string {
	var parts []string
	for _, get := range []func(roadPlace) string{
		func(p roadPlace) string { return p.net }, func(p roadPlace) string { return p.data },
		func(p roadPlace) string { return "target " + p.target }, func(p roadPlace) string { return "ties " + p.ties },
		func(p roadPlace) string { return "fractions " + p.fractions }} {
		if slices.ContainsFunc(all, func(o roadPlace) bool { return get(o) != get(p) }) && get(p) != "" {
			parts = append(parts, get(p))
		}
	}
	return strings.Join(parts, " · ")
}

func imputersOf(rows []roadRow, at roadPlace) []string {
	var out []string
	for _, row := range rows {
		if id := row.text("imputer"); row.place() == at && id != "" && !slices.Contains(out, id) {
			out = append(out, id)
		}
	}
	return out
}

// roadNames names the competitor of a row as contests do: whose maps, with what became
// of their channels where that differs.
func roadNames(rows []roadRow) func(roadRow) string {
	reductions := map[string]bool{}
	for _, row := range rows {
		if v := row.text("reduce"); v != "" {
			reductions[v] = true
		}
	}
	return func(row roadRow) string {
		if v := row.text("reduce"); len(reductions) > 1 && v != "" {
			return row.text("method") + " " + v
		}
		return row.text("method")
	}
}

// newRoadImputer makes the tables and figures of one imputer.
func newRoadImputer(imputer string, at roadPlace, all []roadRow, contests []contest, name func(roadRow) string) roadImputer {
	out := roadImputer{ID: imputer, Metric: "accuracy"}
	var rows []roadRow
	for _, row := range all {
		if row.in(at, imputer) {
			rows = append(rows, row)
			out.Images = max(out.Images, row.N)
		}
	}
	if !slices.ContainsFunc(rows, func(row roadRow) bool { return row.Metric == out.Metric }) {
		out.Metric = "probability"
	}
	var own []contest
	for _, c := range contests {
		if c.Net == at.net && c.Data == at.data && c.Target == at.target && plain(c.Setting["imputer"]) == imputer && plain(c.Setting["ties"]) == at.ties {
			own = append(own, c)
		}
	}
	methods := roadMethods(rows, name)
	out.Single = len(methods) == 1
	out.overview(rows, own, methods, name)
	out.lines(rows, methods, name)
	out.Charts, out.More = roadCharts(rows, methods, name)
	for _, c := range own {
		if out.Single || c.Setting["fraction"] != nil || c.Metric == "mean-probability" && out.Metric == "accuracy" {
			continue
		}
		if plot := rankPlot(c, ranked(c)); plot != nil {
			title := "By " + roadMetricWords(c.Metric)
			if order := plain(c.Setting["order"]); order != "" {
				title += ", " + orderWords(order)
			}
			out.Ranks = append(out.Ranks, roadRanks{title, plot})
		}
	}
	return out
}

func roadMetricWords(id string) string {
	words := map[string]string{"mean-accuracy": "accuracy, mean over fractions", "mean-probability": "probability, mean over fractions", "road-combined": "ROADCombined"}
	if w, ok := words[id]; ok {
		return w
	}
	return id
}

func orderWords(order string) string {
	return map[string]string{orderMoRF: "most relevant first", orderLeRF: "least relevant first", orderRandom: "by chance"}[order]
}

// roadMethods lists the methods in the order of the rows.
func roadMethods(rows []roadRow, name func(roadRow) string) []string {
	var out []string
	for _, row := range rows {
		if n := name(row); n != "" && !slices.Contains(out, n) {
			out = append(out, n)
		}
	}
	return out
}

// overview has a row a method: means over fractions by order, both together, and how
// rough its maps and masks are.
func (o *roadImputer) overview(rows []roadRow, contests []contest, methods []string, name func(roadRow) string) {
	mean := "mean-" + o.Metric
	find := func(metric, order string) *contest {
		i := slices.IndexFunc(contests, func(c contest) bool {
			return c.Metric == metric && c.Setting["fraction"] == nil && plain(c.Setting["order"]) == order
		})
		if i < 0 {
			return nil
		}
		return &contests[i]
	}
	for _, order := range []string{orderMoRF, orderLeRF} {
		if find(mean, order) != nil {
			o.Orders = append(o.Orders, order)
		}
	}
	for _, m := range methods {
		line := roadOverview{Method: m, Combined: scoreCell{Text: missing}, Map: missing}
		for _, order := range o.Orders {
			line.Means = append(line.Means, o.cell(*find(mean, order), m))
			sum, n := 0.0, 0.0
			for _, row := range rows {
				if row.Metric == "mask-variation" && name(row) == m && row.text("order") == order {
					sum, n = sum+*row.Mean, n+1
				}
			}
			mask := missing
			if n > 0 {
				mask = decimal(sum/n, 3)
			}
			line.Masks = append(line.Masks, mask)
		}
		if c := find("road-combined", ""); c != nil && len(o.Orders) > 1 {
			o.Combined = true
			line.Combined = o.cell(*c, m)
		}
		for _, row := range rows {
			if row.Metric == "map-variation" && name(row) == m {
				o.Variation = true
				line.Map = decimal(*row.Mean, 3)
			}
		}
		o.Overview = append(o.Overview, line)
	}
}

// cell is a method's; where there is one method it has no rank.
func (o *roadImputer) cell(c contest, method string) scoreCell {
	cell := newScoreCell(c, method)
	if o.Single {
		cell.Rank, cell.Best, cell.Style = "", false, ""
	}
	return cell
}

// lines are the numbers of the curves.
func (o *roadImputer) lines(rows []roadRow, methods []string, name func(roadRow) string) {
	var fractions []float64
	for _, row := range rows {
		if f := row.fraction(); row.Metric == o.Metric && !slices.Contains(fractions, f) {
			fractions = append(fractions, f)
		}
	}
	slices.Sort(fractions)
	for _, f := range fractions {
		o.Fractions = append(o.Fractions, fractionText(f))
	}
	for _, order := range []string{orderMoRF, orderLeRF, orderRandom} {
		names := methods
		if order == orderRandom {
			names = []string{""}
		}
		for _, m := range names {
			line := roadLine{Order: order, Method: m}
			there := false
			for _, f := range fractions {
				cell := roadCell{Text: missing}
				for _, row := range rows {
					if row.Metric == o.Metric && row.text("order") == order && name(row) == m && row.fraction() == f {
						there = true
						cell = newRoadCell(row)
						o.Published = o.Published || cell.Published != ""
					}
				}
				line.Cells = append(line.Cells, cell)
			}
			if there {
				o.Lines = append(o.Lines, line)
			}
		}
	}
}

func newRoadCell(row roadRow) roadCell {
	c := roadCell{Text: decimal(*row.Mean, 3), Title: plural(row.N, "image", "images")}
	if row.N > 1 {
		c.Title = fmt.Sprintf("95 %% bounds %s … %s, %s", decimal(*row.Lo, 3), decimal(*row.Hi, 3), c.Title)
	}
	if row.Error != nil {
		c.Title += fmt.Sprintf("; standard error over seeds %s, deviation %s", decimal(*row.Error, 4), decimal(*row.Deviation, 4))
	}
	if row.Reference != nil {
		c.Published = decimal(*row.Reference, 3)
	}
	return c
}

func fractionText(f float64) string { return number4(100*f) + " %" }

// roadCharts draws accuracy and probability over fractions, a chart an order; chance is
// the last line of each.
func roadCharts(rows []roadRow, methods []string, name func(roadRow) string) (charts []*chart, more int) {
	drawn := methods
	if len(drawn) > curveLines-1 {
		drawn, more = drawn[:curveLines-1], len(drawn)-curveLines+1
	}
	for _, metric := range []string{"accuracy", "probability"} {
		for _, order := range []string{orderMoRF, orderLeRF} {
			var lines []series
			for _, m := range drawn {
				if s, ok := roadSeries(rows, metric, order, m, name); ok {
					lines = append(lines, s)
				}
			}
			chance, ok := roadSeries(rows, metric, orderRandom, "", name)
			if ok {
				chance.name = "chance"
				if len(lines) > 0 || order == orderMoRF {
					lines = append(lines, chance)
				}
			}
			if len(lines) == 0 {
				continue
			}
			// The same axes throughout: panels of orders and imputers are to be compared.
			words := map[string][2]string{"accuracy": {"Accuracy", "accuracy"}, "probability": {"Probability of the target", "probability"}}[metric]
			charts = append(charts, newChart(words[0]+", "+orderWords(order), lines, "fraction of pixels removed", words[1], true))
		}
	}
	return charts, more
}

// roadSeries is a line; what was published at all its places is drawn thinly beside it.
func roadSeries(rows []roadRow, metric, order, method string, name func(roadRow) string) (series, bool) {
	s := series{name: method, single: true}
	var list []roadRow
	for _, row := range rows {
		if row.Metric == metric && row.text("order") == order && name(row) == method {
			list = append(list, row)
		}
	}
	slices.SortFunc(list, func(a, b roadRow) int {
		if a.fraction() < b.fraction() {
			return -1
		}
		return 1
	})
	published := len(list) > 0
	for _, row := range list {
		s.xs = append(s.xs, row.fraction())
		s.band.Mean, s.band.Lo, s.band.Hi = append(s.band.Mean, *row.Mean), append(s.band.Lo, *row.Lo), append(s.band.Hi, *row.Hi)
		s.single = s.single && row.N < 2
		published = published && row.Reference != nil
	}
	if published {
		for _, row := range list {
			s.faint = append(s.faint, *row.Reference)
		}
	}
	return s, len(list) > 0
}

// roadFacts are the numbers at the head of the page.
func (r *run) roadFacts(rows []roadRow, name func(roadRow) string) []fact {
	imputers, fractions := map[string]bool{}, map[float64]bool{}
	for _, row := range rows {
		imputers[row.text("imputer")] = true
		if row.Params["fraction"] != nil {
			fractions[row.fraction()] = true
		}
	}
	return []fact{{"images", grouped(int64(len(r.byImage))), ""}, {"methods", grouped(int64(len(roadMethods(rows, name)))), ""},
		{"imputers", grouped(int64(len(imputers))), ""}, {"fractions", grouped(int64(len(fractions))), ""}}
}

func (r *run) roadLede() []string {
	return []string{"Do explanations find the pixels that matter? Those that a map ranks first are removed, and the net is asked again: a good map makes it fail soon (most relevant first), or leaves it right for long (least relevant first). " +
		"What is removed becomes what an imputer makes of it, so that the holes themselves say as little as they can.",
		"Curves are means over images. Nothing is retrained."}
}
