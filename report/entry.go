package report

import (
	"fmt"

	"github.com/assay-xai/assay/internal/record"
)

// maxCurvePoints bounds what is kept of a curve for mean curves: finer steps
// cannot be seen.
const maxCurvePoints = 257

// imageKey names an image of a run: ids are unique within a data entry only.
type imageKey struct{ data, id string }

// entry is a record without what only single images need.
type entry struct {
	id         string
	group      *group
	study, net string
	image      string
	seed       uint64
	class      *int
	target     int
	prediction *record.Prediction
	trace      bool
	value      float64
	sums       record.Sums
	features   int
	edge       int
	points     []int        // deleted features at each point of curve
	curve      record.Curve // by probability
	scored     record.Curve // by the output that the objective looks at
	cost       record.Cost
	epoch      *record.TrainingEpoch
	stats      *record.Map
	score      *entryScore
}

func (e *entry) key() imageKey { return imageKey{e.group.params["data"], e.image} }

type failure struct{ Net, Image, Error string }

type warning struct {
	Text   string
	Count  int
	Images []string // the first few
}

// problem says why a record cannot be shown as a result, "" where it can.
func problem(rec record.Record) string {
	if rec.Error != "" {
		return rec.Error
	}
	if !rec.Finite() {
		return "the record has numbers that are not finite"
	}
	if t := rec.Trace; t != nil {
		return traceProblem(t)
	}
	if p := rec.Prediction; p != nil && (len(p.Classes) == 0 || len(p.Classes) != len(p.Probabilities)) {
		return fmt.Sprintf("the record's prediction has %d classes and %d probabilities", len(p.Classes), len(p.Probabilities))
	}
	return ""
}

func traceProblem(t *record.Trace) string {
	n := t.Features
	want := n
	if t.Bound { // of sets, not of an order
		want = 0
	}
	if n < 1 || len(t.Trajectory) != want {
		return fmt.Sprintf("the record's trajectory has %d features, want %d", len(t.Trajectory), want)
	}
	if e := t.EdgePatches; e != 0 && e*e != n {
		return fmt.Sprintf("the record has %d features, want %d for %d x %d patches", n, e*e, e, e)
	}
	seen := make([]bool, n)
	for _, f := range t.Trajectory {
		if f < 0 || f >= n || seen[f] {
			return fmt.Sprintf("the record's trajectory has feature %d twice or outside 0..%d", f, n-1)
		}
		seen[f] = true
	}
	c := t.Curves
	for _, curve := range [][]float64{c.Prob.Le, c.Prob.Mo, c.Logit.Le, c.Logit.Mo} {
		if len(curve) != n+1 {
			return fmt.Sprintf("a curve of the record has %d points, want %d", len(curve), n+1)
		}
	}
	return ""
}

func newEntry(rec record.Record) *entry {
	e := &entry{id: rec.ID, study: rec.Study, net: rec.Net, image: rec.Image, seed: rec.Seed, class: rec.Class,
		target: rec.Target, prediction: rec.Prediction, cost: rec.Cost, epoch: rec.TrainingEpoch, stats: rec.Map}
	g := &group{study: rec.Study, net: rec.Net, method: rec.Method, params: params(rec.Params)}
	if rec.Score != nil {
		e.score = newEntryScore(rec.Score)
	}
	if t := rec.Trace; t != nil {
		e.trace, e.value, e.sums, e.features, e.edge = true, t.Value, t.Sums, t.Features, t.EdgePatches
		e.points = thin(t.Features)
		e.curve = record.Curve{Le: pick(t.Curves.Prob.Le, e.points), Mo: pick(t.Curves.Prob.Mo, e.points)}
		e.scored = e.curve
		if c, on := scoredCurve(t); on != probOutput {
			e.scored = record.Curve{Le: pick(c.Le, e.points), Mo: pick(c.Mo, e.points)}
		}
		g.objective, g.scoreOn, g.solver, g.features, g.edge = t.Objective, t.ScoreOn, t.Solver, t.Features, t.EdgePatches
	}
	e.group = g
	return e
}

// The outputs that objectives look at.
const (
	probOutput  = "prob"
	logitOutput = "logit"
)

// scoredCurve is the curve that the value of a search is of.
func scoredCurve(t *record.Trace) (c record.Curve, on string) {
	if t.ScoreOn == logitOutput {
		return t.Curves.Logit, logitOutput
	}
	return t.Curves.Prob, probOutput
}

// newEntryScore keeps the curves of a score, thinned.
func newEntryScore(s *record.Score) *entryScore {
	out := &entryScore{}
	for _, c := range s.Curves {
		if len(c.Y) == 0 {
			continue
		}
		at := thin(len(c.Y) - 1)
		kept := scoreCurve{name: c.Name, y: pick(c.Y, at), layers: len(c.Labels) > 0}
		switch {
		case kept.layers:
			for _, k := range at {
				kept.x = append(kept.x, float64(k+1))
			}
		case len(c.X) == len(c.Y):
			kept.x = pick(c.X, at)
		}
		out.curves = append(out.curves, kept)
	}
	return out
}

// thin lists the points 0..t of a curve that are kept, ends included.
func thin(t int) []int {
	n := min(t+1, maxCurvePoints)
	out := make([]int, n)
	for j := range out {
		if n > 1 {
			out[j] = j * t / (n - 1)
		}
	}
	return out
}

func pick(values []float64, at []int) []float64 {
	out := make([]float64, len(at))
	for i, k := range at {
		out[i] = values[k]
	}
	return out
}
