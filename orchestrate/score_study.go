package orchestrate

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/assay-xai/assay/dataset"
	"github.com/assay-xai/assay/internal/record"
	"github.com/assay-xai/assay/internal/usage"
	"github.com/assay-xai/assay/scores"
	"github.com/assay-xai/assay/trace"
)

// scoreStudy judges maps of attribution: one unit is what one metric says of one map.
// Maps come from methods of the catalogue, from files, or, for the metrics that a
// search can maximise, from that search: its row is what the best order reaches.
func scoreStudy() Study {
	return Study{
		ID:         "score",
		Summary:    "how good maps of attribution are, by any metrics",
		Code:       scoreCode(),
		Seeded:     true,
		Parameters: scoreParameters(),
		Check:      checkScore,
		Fit:        fitScore,
		Rows:       scoreRows,
		Run:        runScore,
		Row:        scoreRow,
		Metrics: []Metric{{ID: metricKey, Summary: "the value of a metric of assay list metrics", Under: []string{metricKey}, Value: func(rec record.Record) (float64, bool) {
			if rec.Score == nil || rec.Score.Value == nil {
				return 0, false
			}
			return *rec.Score.Value, true
		}}},
	}
}

// Parameters of the study beside those of explain.
const (
	metricKey       = "metric"
	attributionsKey = "attributions"
	baselineKey     = "baseline"
	boxesKey        = "boxes"
	nanKey          = "nan"
	// nanFail and nanSkip say what becomes of maps with values that are no numbers.
	nanFail, nanSkip = "fail", "skip"
	// traceBaseline is the search that stands beside methods, OptimumName its row.
	traceBaseline = "trace"
	// OptimumName is what the row of the searched optimum is called.
	OptimumName = "trace optimum"
)

func scoreParameters() []Parameter {
	return []Parameter{
		targetParameter(targetPredicted),
		{Name: methodKey, Type: "spec", Catalogue: methods,
			Summary: "attribution methods of assay list methods, with their parameters; none, and no attributions: gradient"},
		{Name: attributionsKey, Type: fileType, Hidden: true,
			Summary: "maps by image id in place of a method's: an .npz, or a folder of them"},
		{Name: baselineKey, Type: "spec", Hidden: true,
			Summary: "trace: the searched optimum of le, mo and le-mo; its budget and schedule in parentheses: trace(evaluations=20000)"},
		{Name: metricKey, Type: "spec", Default: "deletion", Catalogue: scoreMetrics, Hidden: true,
			Summary: "metrics of assay list metrics, with their parameters: pixel-flipping(step=56)"},
		{Name: boxesKey, Type: fileType, Hidden: true,
			Summary: "lines IMAGE X0 Y0 X1 Y1 of what is to be found, in pixels of what the net sees; none: the data's own masks, where it has them"},
		{Name: reduceKey, Type: "string",
			Choices: ids(dataset.MapReductions(), func(r dataset.MapReduction) string { return r.ID }),
			Summary: "what becomes of a map's channels; none given: the metric's own"},
		{Name: nanKey, Type: "string", Default: nanFail, Choices: []string{nanFail, nanSkip}, Hidden: true,
			Summary: "maps with values that are no numbers: fail, or skip, which counts them as undefined"},
	}
}

// checkScore finds out whose maps a point is about and leaves out what means nothing.
func checkScore(r *Resolved, p Params) (Params, error) {
	out := Params{"target": p["target"], metricKey: p[metricKey]}
	var whose []string
	for _, k := range []string{methodKey, attributionsKey, baselineKey} {
		if v, ok := p[k]; ok {
			whose = append(whose, k)
			out[k] = v
		}
	}
	switch {
	case len(whose) > 1:
		return nil, usage.Errorf("score: %s: want one of them in a grid (grids: has several)", strings.Join(whose, " and "))
	case len(whose) == 0:
		_, name, err := r.Catalogue.Method("gradient")
		if err != nil {
			return nil, usage.Errorf("score: no method, and no attributions: %w", err)
		}
		out[methodKey] = name
	}
	score, parameters, err := r.scoreOf(out)
	if err != nil {
		return nil, err
	}
	if p.Text(baselineKey) != "" {
		if out[baselineKey], err = checkBaseline(r, out); err != nil {
			return nil, err
		}
		return out, nil
	}
	if score.Needs(scores.InputRegion) && p.Text(boxesKey) != "" {
		out[boxesKey] = p[boxesKey]
	}
	if p.Text(nanKey) == nanSkip {
		out[nanKey] = nanSkip
	}
	reduce := p.Text(reduceKey)
	i := slices.IndexFunc(score.Parameters, func(d scores.Parameter) bool { return d.Name == reduceKey })
	if reduce == "" || i < 0 {
		return out, nil
	}
	if parameters[reduceKey] != score.Parameters[i].Default { // the metric says it itself
		return out, nil
	}
	if !slices.Contains(score.Parameters[i].Choices, reduce) {
		return nil, &inapplicable{usage.Errorf("metric %s: reduce %s: want one of %s", score.ID, reduce, strings.Join(score.Parameters[i].Choices, ", "))}
	}
	out[reduceKey] = reduce
	return out, nil
}

// fitScore looks for what a net or data cannot have before anything runs.
func fitScore(r *Resolved, n *ResolvedNet, d *ResolvedData, p Params) (Params, error) {
	if p.Text(baselineKey) != "" {
		search, err := baselineSearch(r, p)
		if err == nil {
			_, err = fitTrace(r, n, d, search)
		}
		return p, err
	}
	score, parameters, err := r.scoreOf(p)
	if err != nil {
		return nil, err
	}
	if p.Text(methodKey) != "" {
		if _, err := fitExplain(r, n, d, p); err != nil {
			return nil, err
		}
	}
	switch {
	case score.Needs(scores.InputRegion) && p.Text(boxesKey) == "" && !d.Set.HasForeground():
		return nil, usage.Errorf("metric %s needs boxes or masks of what is to be found, and data %s has none: want --boxes FILE", score.ID, d.Name)
	case score.Needs(scores.InputGraph) && n.Info.BlackBox:
		return nil, &inapplicable{usage.Errorf("metric %s needs the layers of the net, and net %s is a black box (%s)", score.ID, n.Name, n.Info.Reason)}
	case score.Needs(scores.InputMaps) && p.Text(methodKey) == "":
		return nil, usage.Errorf("metric %s asks the method for more maps, and those of attributions come from files: want --methods, or another metric", score.ID)
	}
	shape, err := r.shapeOf(n, d)
	if err != nil {
		return nil, err
	}
	if edge, ok := parameters["edge"].(int); ok && len(shape) == 3 {
		if err := trace.CheckEdge(edge, shape[1], shape[2]); err != nil {
			return nil, usage.Errorf("metric %s: %w", score.ID, err)
		}
	}
	if err := r.announce(n, d, p, shape); err != nil {
		return nil, err
	}
	if err := r.checkBoxes(n, d, p, shape); err != nil {
		return nil, err
	}
	return p, r.checkAttributions(n, d, p, shape)
}

// shapeOf is the shape of what a net sees of data, [C,H,W] or [F].
func (r *Resolved) shapeOf(n *ResolvedNet, d *ResolvedData) ([]int, error) {
	shape := r.inputShape(n)
	if d.Set.Kind != dataset.Images && d.Set.Len() > 0 && len(shape) != 1 {
		_, own, err := d.Set.Values(0)
		return own, err
	}
	return shape, nil
}

// costOf is about how many rows a unit of a point runs beside its own map.
func (r *Resolved) costOf(n *ResolvedNet, p Params, shape []int) (float64, error) {
	score, parameters, err := r.scoreOf(p)
	if err != nil {
		return 0, err
	}
	subject := scores.Subject{Shape: shape}
	for _, l := range n.Info.Layers {
		for _, parameter := range n.Info.Parameters {
			if strings.HasPrefix(parameter.Name, l.Name+".") {
				subject.Layers = append(subject.Layers, scores.Layer{Name: l.Name, Op: l.Op})
				break
			}
		}
	}
	cost, err := score.Estimate(subject, parameters)
	if err != nil || cost.Maps == 0 {
		return cost.Forwards, err
	}
	method, _, err := r.Catalogue.Method(p.Text(methodKey))
	if err != nil {
		return 0, err
	}
	each := r.Catalogue.rowsOf(&method)
	if each == manyRows { // nobody knows, but not that many
		each = usualRows
	}
	return cost.Forwards + cost.Maps*float64(each), nil
}

// usualRows is about what a map takes of a method that asks for forwards alone.
const usualRows = 1000

// announcedRows is from how many rows on a metric of a method is announced: at a
// hundred rows a second they take half an hour.
const announcedRows = 2e5

// announce says what a metric of a method costs before it begins.
func (r *Resolved) announce(n *ResolvedNet, d *ResolvedData, p Params, shape []int) error {
	each, err := r.costOf(n, p, shape)
	if err != nil {
		return err
	}
	if total := each * float64(d.Set.Len()); total >= announcedRows {
		whose := p.Text(methodKey)
		if whose == "" {
			whose = r.givenName(p.Text(attributionsKey))
		}
		r.warnOnce(fmt.Sprintf("metric %s of %s on %s runs about %.2g rows an image, %.2g in all: %.2g minutes at 100 rows a second, %.2g at 2000",
			p.Text(metricKey), whose, n.Name, each, total, total/100/60, total/2000/60))
	}
	return nil
}

// scoreRows is the most rows that a forward can have use of.
func scoreRows(r *Resolved) int {
	images := 1
	for _, d := range r.Data {
		images = max(images, d.Set.Len())
	}
	const aMetric = 64
	return min(max(images*aMetric, explainRows(r)), manyRows)
}

// scoreRow is what a row of the summary is of.
func scoreRow(r *Resolved, point Params) (metric string, params Params) {
	params = maps.Clone(point)
	for _, k := range []string{metricKey, attributionsKey, baselineKey, boxesKey, nanKey} {
		delete(params, k)
	}
	params[methodKey] = r.rowName(point)
	return point.Text(metricKey), params
}

// rowName is what stands for whose maps a point is about.
func (r *Resolved) rowName(point Params) string {
	switch {
	case point.Text(baselineKey) != "":
		return OptimumName
	case point.Text(attributionsKey) != "":
		return r.givenName(point.Text(attributionsKey))
	}
	return point.Text(methodKey)
}
