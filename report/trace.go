package report

import (
	"context"
	"fmt"
	"html/template"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/assay-xai/assay/internal/record"
)

// tracePage shows deletion searches.
type tracePage struct {
	Panels  []panel
	Alike   bool // one panel only
	Groups  *groupTable
	Cards   []card
	Images  int // in all
	Table   *imageTable
	Alpha   string
	Patches bool // some results are of images

	facts []fact
}

// panel is a group's mean curves.
type panel struct {
	Title      string
	Figure     *curveFigure
	Images     int
	Value, CI  string
	Point      string
	Band       bool
	Objective  string
	Sum        string // "LeRF 40.1 − MoRF 8.4", by probability
	FeatureSet string
}

// maxPanels bounds the small multiples; all groups are in the table.
const maxPanels = 12

func (r *run) tracePage(ctx context.Context) (*tracePage, error) {
	t := &tracePage{Images: len(r.byImage), Alpha: formatTick(r.opt.Alpha)}
	stats := make([]statistics, len(r.groups))
	var groups []*group
	for i, g := range r.groups {
		if g.features == 0 {
			continue
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		stats[len(groups)] = r.groups[i].statistics()
		groups = append(groups, g)
	}
	stats = stats[:len(groups)]
	t.Alike = len(groups) == 1
	for i, g := range groups[:min(len(groups), maxPanels)] {
		t.Panels = append(t.Panels, newPanel(g, stats[i], t.Alike))
	}
	t.Groups = r.groupTable(groups, stats)
	t.facts = traceFacts(r, groups, stats)
	var err error
	if t.Cards, err = r.cards(ctx); err != nil {
		return nil, err
	}
	t.Patches = slices.ContainsFunc(groups, func(g *group) bool { return g.edge > 0 })
	t.Table = r.imageTable(t.Cards)
	return t, nil
}

func newPanel(g *group, s statistics, alone bool) panel {
	w, h := float64(smallWidth), float64(smallHeight)
	if alone {
		w, h = 620, 320
	}
	return panel{Title: g.label, Figure: meanFigure(s, g.features, w, h), Images: s.images, Value: value(s.value.Mean),
		CI: value(s.value.Lo) + " to " + value(s.value.Hi), Point: decimal(s.point.Mean, 3), Band: s.images > 1,
		Objective: objectiveName(g.objective, g.scoreOn),
		Sum:       "LeRF " + value(s.prob.Le) + ", MoRF " + value(s.prob.Mo), FeatureSet: featureSet(g)}
}

func featureSet(g *group) string {
	if g.edge > 0 {
		return fmt.Sprintf("%d × %d = %d patches", g.edge, g.edge, g.features)
	}
	return plural(g.features, "column", "columns")
}

// objectiveName says in words what is maximised.
func objectiveName(objective, scoreOn string) string {
	on := " by " + scoreWord(scoreOn)
	switch objective {
	case "le":
		return "sum of the LeRF curve" + on
	case "mo":
		return "minus the sum of the MoRF curve" + on
	case "le-mo":
		return "LeRF sum minus MoRF sum" + on
	}
	return objective + on
}

func traceFacts(r *run, groups []*group, stats []statistics) []fact {
	var out []fact
	images := len(r.byImage)
	things := "rows"
	if slices.ContainsFunc(groups, func(g *group) bool { return g.edge > 0 }) {
		things = "images"
	}
	out = append(out, fact{things, grouped(int64(images)), ""})
	if len(groups) == 1 {
		g, s := groups[0], stats[0]
		unit := "columns"
		if g.edge > 0 {
			unit = fmt.Sprintf("%d × %d", g.edge, g.edge)
		}
		name := "patches"
		if g.edge == 0 {
			name, unit = "columns", ""
		}
		out = append(out, fact{name, grouped(int64(g.features)), unit})
		note := fmt.Sprintf("at most %s", grouped(int64(g.features+1)))
		if g.scoreOn == "logit" {
			note = "by logit"
		} else if s.images > 1 {
			note = "95 %: " + value(s.value.Lo) + " to " + value(s.value.Hi)
		}
		name = "mean value"
		if s.images == 1 {
			name = "value"
		}
		out = append(out, fact{name, value(s.value.Mean), note})
	} else {
		out = append(out, fact{"settings", grouped(int64(len(groups))), "compared below"})
	}
	var forwards, evaluations int64
	secs := 0.0
	for _, s := range stats {
		forwards += s.rows
		evaluations += s.evaluations
		secs += s.seconds
	}
	saved := ""
	if evaluations > 0 && evaluations != forwards {
		saved = "for " + grouped(evaluations) + " evaluations"
	}
	out = append(out, fact{"forwards", grouped(forwards), saved})
	return append(out, fact{"time of searches", seconds(secs), ""})
}

// traceLede says what was measured, for somebody who has never seen it.
func (r *run) traceLede() []string {
	c := r.common
	what := "features"
	edges := 0
	for _, g := range r.groups {
		if g.edge > 0 {
			edges++
		}
	}
	things := plural(len(r.byImage), "row", "rows")
	switch {
	case edges == len(r.groups):
		what, things = "patches", plural(len(r.byImage), "image", "images")
		if e := c["edge"]; e != "" {
			what = e + " × " + e + " patches"
		}
	case edges == 0:
		what = "columns"
	}
	net, ask := "does "+c["net"], "the network was asked each time how sure it still is"
	if c["net"] == "" {
		net, ask = "do the networks", "each network was asked each time how sure it still is"
	}
	first := fmt.Sprintf("Which parts of an input %s rely on? For %s, the %s were deleted one after the other, and %s. ", net, things, what, ask)
	goal := "The search looked for the best order of deletion."
	switch c["objective"] {
	case "le":
		goal = "The search looked for the order that keeps the score up the longest while the least relevant go first."
	case "mo":
		goal = "The search looked for the order that makes the score fall the soonest when the most relevant go first."
	case "le-mo":
		goal = "The search looked for the order that keeps the score up when the least relevant go first, and makes it fall when the most relevant go first."
	}
	if c["method"] != "" || slices.Contains(r.varying, "method") {
		goal = "The orders are those of attribution methods, or of searches for the best order."
	}
	second := ""
	if ref := c["reference"]; ref != "" {
		second = "Deleted " + strings.TrimLeft(what, "0123456789× ") + " " + referenceWords(ref, edges > 0) + ". "
	}
	switch t := c["target"]; t {
	case "predicted":
		second += "Tracked is the class that the network predicts for the unchanged input."
	case "label":
		second += "Tracked is the class of the label."
	case "":
	default:
		second += "Tracked is class " + t + "."
	}
	out := []string{first + goal}
	if second != "" {
		out = append(out, strings.TrimSpace(second))
	}
	return out
}

func referenceWords(spec string, images bool) string {
	name, args := parseSpec(spec)
	switch name {
	case "zero":
		if !images {
			return "become zero in the network's own units"
		}
		return "become zero in the network's own units, which for photographs is the data set's mean colour"
	case "mean":
		return "become the input's mean value"
	case "channel-mean":
		return "become the image's mean colour"
	case "patch-mean":
		return "become their own mean"
	case "blur":
		return "are blurred"
	case "uniform":
		return "become noise"
	case "constant":
		return "become one grey level (" + formatTick(args.number("value", 0)) + ")"
	case "image":
		return "become those of another image"
	}
	return "are replaced by the reference " + spec
}

// card shows one image with all its results.
type card struct {
	Anchor      string
	Image       string
	Net         string // where all results are of one net
	View        *view
	NoView      string
	Results     []result
	Label       *classText
	Predictions []prediction
}

type classText struct {
	Index int
	Name  string
}

// String is the class's name, or its number.
func (c classText) String() string {
	if c.Name != "" {
		return c.Name
	}
	return "class " + strconv.Itoa(c.Index)
}

type prediction struct {
	Class          classText
	P              float64
	Tracked, Label bool
}

// result is one search on the card's image.
type result struct {
	ID          string
	Title       string
	View        *view
	Uses        bool // the view is defined by an earlier result
	Target      classText
	Label       *classText
	Predictions []prediction
	LabelBelow  bool // the label is not among the predictions

	W, H       int
	Edge       int
	Order      string
	Heat       template.URL
	HeatTitle  string
	Bars       []featureBar
	MoreBars   int
	Reference  template.URL // an image, or
	Flat       string       // a colour
	Sketch     bool
	RefSpec    string
	LeRF, MoRF []frame

	Curves           *curveFigure
	Value, Point     string
	Objective        string
	Prob, Logit      record.LeMo
	ProbBy, LogitBy  float64 // differences
	Evaluations      int64
	Forwards         int64
	Seconds          float64
	Seed             uint64
	Spark            *sparkline
	Accepted         int
	AcceptedFraction string
	Last             string
	Warnings         []string
}

// frame is a picture of a strip: some patches deleted.
type frame struct {
	ID       string
	Mask     template.URL
	Fraction string
	P        string
	Describe string
}

type featureBar struct {
	Name    string
	Psi     float64
	Percent string
	Rank    int
	Colour  template.CSS
}

const (
	maxBars = 40
	// maxResults bounds the results that are shown one by one.
	maxResults = 240
	// maxScrub is the number of patches up to which the page's script paints them.
	maxScrub = 1024
)

func (r *run) cards(ctx context.Context) ([]card, error) {
	keys := r.shown()
	records, err := r.records(ctx, keys)
	if err != nil {
		return nil, err
	}
	var out []card
	total := 0
	for i, k := range keys {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		c := card{Anchor: fmt.Sprintf("image-%d", i+1), Image: k.id}
		c.View, c.NoView = r.openView(k, fmt.Sprintf("v%d", i))
		for _, e := range r.byImage[k] {
			rec := records[e.id]
			if rec == nil || rec.Trace == nil || total >= maxResults {
				continue
			}
			res, err := r.result(rec, e, c.View, fmt.Sprintf("r%d", total))
			if err != nil {
				return nil, err
			}
			res.Uses = len(c.Results) > 0
			total++
			c.Results = append(c.Results, res)
		}
		if len(c.Results) > 0 {
			out = append(out, c)
		}
	}
	return out, nil
}

func (r *run) class(net string, index int) classText {
	return classText{index, r.className(net, index)}
}

func (r *run) result(rec *record.Record, e *entry, v *view, id string) (result, error) {
	t := rec.Trace
	res := result{ID: id, Title: e.group.label, View: v, Target: r.class(rec.Net, rec.Target),
		Curves: recordFigure(t), Value: value(t.Value), Point: decimal(t.Value/float64(t.Features+1), 3),
		Objective: objectiveName(t.Objective, t.ScoreOn), Prob: t.Sums.Prob, Logit: t.Sums.Logit,
		ProbBy: t.Sums.Prob.Le - t.Sums.Prob.Mo, LogitBy: t.Sums.Logit.Le - t.Sums.Logit.Mo,
		Evaluations: rec.Cost.Evaluations, Forwards: rec.Cost.Forwards, Seconds: rec.Cost.Seconds, Seed: rec.Seed,
		Spark: newSparkline(t.History), Accepted: t.Accepted, Warnings: rec.Warnings, Edge: t.EdgePatches}
	if seedsOf(e.group) > 1 {
		res.Title += fmt.Sprintf(" · seed %d", rec.Seed)
	}
	if n := len(t.History); n > 0 && t.History[n-1].Iteration > 0 && t.Accepted > 0 {
		res.AcceptedFraction = percent(float64(t.Accepted)/float64(t.History[n-1].Iteration), 0)
	}
	if t.Last != nil && *t.Last != t.Value {
		res.Last = value(*t.Last)
	}
	r.predictions(rec, &res)
	if t.EdgePatches == 0 {
		r.bars(rec, &res)
		return res, nil
	}
	return res, r.pictures(rec, &res)
}

func seedsOf(g *group) int {
	seeds := map[uint64]bool{}
	for _, e := range g.entries {
		seeds[e.seed] = true
	}
	return len(seeds)
}

func (r *run) predictions(rec *record.Record, res *result) {
	if rec.Class != nil {
		label := r.class(rec.Net, *rec.Class)
		res.Label, res.LabelBelow = &label, true
	}
	if rec.Prediction == nil {
		return
	}
	for i, c := range rec.Prediction.Classes {
		p := prediction{Class: r.class(rec.Net, c), P: rec.Prediction.Probabilities[i], Tracked: c == rec.Target,
			Label: rec.Class != nil && c == *rec.Class}
		res.LabelBelow = res.LabelBelow && !p.Label
		res.Predictions = append(res.Predictions, p)
	}
}

// bars show the order of the columns of a table, most relevant first.
func (r *run) bars(rec *record.Record, res *result) {
	psi := relevance(rec.Trajectory, r.opt.Alpha)
	t := len(rec.Trajectory)
	for i := t - 1; i >= max(0, t-maxBars); i-- {
		f := rec.Trajectory[i]
		name := ""
		if r.opt.FeatureName != nil {
			name = r.opt.FeatureName(rec.Net, f)
		}
		if name == "" {
			name = "column " + strconv.Itoa(f)
		}
		res.Bars = append(res.Bars, featureBar{Name: name, Psi: psi[f], Percent: coordinate(psi[f] * 100), Rank: i + 1,
			Colour: template.CSS(hex(heatColor(psi[f])))})
	}
	res.MoreBars = max(0, t-maxBars)
}

// stripFractions are the states that the strips of deletion show.
var stripFractions = []float64{.1, .25, .5, .75, .9}

func stripSteps(t int) []int {
	var out []int
	for _, f := range stripFractions {
		k := int(math.Round(f * float64(t)))
		if k > 0 && k < t && !slices.Contains(out, k) {
			out = append(out, k)
		}
	}
	return out
}
