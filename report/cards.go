package report

import (
	"context"
	"fmt"
	"html/template"
	"math"
	"slices"
	"strconv"

	"github.com/assay-xai/assay/internal/record"
	"github.com/assay-xai/assay/trace"
)

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
	// What it was made from.
	entry  *entry
	record *record.Record

	ID          string
	Title       string
	View        *view
	Uses        bool // the view is defined by an earlier result
	Target      classText
	Label       *classText
	Predictions []prediction
	LabelBelow  bool // the label is not among the predictions
	Bound       bool // of the best sets: there is no order to show

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
	res := result{entry: e, record: rec, ID: id, Title: e.group.label, View: v, Target: r.class(rec.Net, rec.Target),
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
	if t.Last != nil && value(*t.Last) != value(t.Value) {
		res.Last = value(*t.Last)
	}
	r.predictions(rec, &res)
	if t.Bound {
		res.Bound = true
		return res, nil
	}
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
	psi := trace.Heat(rec.Trajectory, r.opt.Alpha)
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
