package orchestrate

import (
	"maps"
	"slices"

	"github.com/assay-xai/assay/internal/usage"
	"github.com/assay-xai/assay/scores"
)

// ScoreEntries lists the metrics of maps in the form of the catalogue.
func ScoreEntries() []Entry {
	var out []Entry
	for _, s := range scores.Registry() {
		e := Entry{ID: s.ID, Summary: s.Summary, Paper: s.Paper}
		for _, p := range s.Parameters {
			e.Parameters = append(e.Parameters, EntryParameter(p))
		}
		out = append(out, e)
	}
	return out
}

// referenceKey is the parameter of metrics that names an imputer.
const referenceKey = "reference"

// metricSpec finds and completes a metric of maps. References are written in the
// catalogue's way, so that one metric has one name.
func (c Catalogue) metricSpec(parsed Spec) (spec, error) {
	e, err := findEntry(string(scoreMetrics), parsed.Name, ScoreEntries())
	if err != nil {
		return spec{}, err
	}
	parsed.Params = maps.Clone(parsed.Params)
	e.Parameters = slices.Clone(e.Parameters)
	fullReference := ""
	for i, p := range e.Parameters {
		if p.Name != referenceKey {
			continue
		}
		usual, err := c.spec(imputers, p.Default.(string))
		if err != nil {
			return spec{}, usage.Errorf("metric %s: %w", e.ID, err)
		}
		e.Parameters[i].Default, fullReference = usual.short, usual.full
		text, given := parsed.Params[referenceKey]
		if !given {
			continue
		}
		own, err := c.spec(imputers, plain(text))
		if err != nil {
			return spec{}, usage.Errorf("metric %s: %w", e.ID, err)
		}
		if own.entry.ID == otherImageReference {
			return spec{}, usage.Errorf("metric %s: reference %s: metrics take no other image as reference", e.ID, own.short)
		}
		if own.entry.Needs != "" {
			return spec{}, usage.Errorf("metric %s: reference %s: metrics take references that are an image's own, for example zero or blur", e.ID, own.short)
		}
		parsed.Params[referenceKey], fullReference = own.short, own.full
	}
	full, err := e.complete(string(scoreMetrics), parsed)
	if err != nil {
		return spec{}, err
	}
	out := spec{short: e.shorten(full).String(), entry: e}
	if fullReference != "" {
		full.Params[referenceKey] = fullReference
	}
	out.full, out.params = full.String(), full.Params
	return out, nil
}

// scoreOf is the metric of a point with its parameters.
func (r *Resolved) scoreOf(p Params) (scores.Score, map[string]any, error) {
	s, err := r.Catalogue.spec(scoreMetrics, p.Text(metricKey))
	if err != nil {
		return scores.Score{}, nil, err
	}
	score, err := scores.ByID(s.entry.ID)
	if err != nil {
		return scores.Score{}, nil, err
	}
	parameters := maps.Clone(s.params)
	if parameters == nil {
		parameters = map[string]any{}
	}
	if reduce, ok := p[reduceKey]; ok {
		parameters[reduceKey] = reduce
	}
	return score, parameters, nil
}

// scoreCode changes with the version of any metric.
func scoreCode() string {
	code := "score/1"
	for _, s := range scores.Registry() {
		code += " " + s.ID + "/" + plain(s.Version)
	}
	return code + " " + traceCode()
}
