package orchestrate

import (
	"context"
	"slices"

	"github.com/assay-xai/assay/internal/record"
	"github.com/assay-xai/assay/internal/usage"
	"github.com/assay-xai/assay/scores"
	"github.com/assay-xai/assay/trace"
)

// baselineParameters are those of a search that a baseline may name.
var baselineParameters = []string{"solver", "schedule", "start", "neighbourhood", "iterations", "evaluations", "time"}

// checkBaseline reads a baseline and returns it as it is named.
func checkBaseline(r *Resolved, p Params) (string, error) {
	spec, err := ParseSpec(p.Text(baselineKey))
	if err != nil {
		return "", usage.Errorf("baseline %w", err)
	}
	if spec.Name != traceBaseline {
		return "", usage.Errorf("baseline %q: %s", spec.Name, DidYouMean(spec.Name, []string{traceBaseline}))
	}
	if len(spec.Args) > 0 {
		return "", usage.Errorf("baseline %s: want name=value for %s", spec.Name, spec.Args[0])
	}
	for _, k := range sortedKeys(spec.Params) {
		if !slices.Contains(baselineParameters, k) {
			return "", usage.Errorf("baseline %s: parameter %q: %s", spec.Name, k, DidYouMean(k, baselineParameters))
		}
	}
	_, err = baselineSearch(r, p)
	return spec.String(), err
}

// baselineSearch is the search of the order that a point's metric likes best, as the
// parameters of study trace.
func baselineSearch(r *Resolved, p Params) (Params, error) {
	score, parameters, err := r.scoreOf(p)
	if err != nil {
		return nil, err
	}
	if _, err := trace.ObjectiveByID(score.ID); err != nil {
		return nil, &inapplicable{usage.Errorf("baseline %s: no search maximises metric %s: want one of le, mo, le-mo", traceBaseline, score.ID)}
	}
	reference, err := r.Catalogue.spec(imputers, plain(parameters[referenceKey]))
	if err != nil {
		return nil, err
	}
	search := Params{"target": p["target"], "edge": parameters["edge"], "reference": reference.short, "objective": score.ID, "scoreOn": "prob", "solver": "sa"}
	if parameters["output"] == scores.Logit {
		search["scoreOn"] = "logit"
	}
	spec, err := ParseSpec(p.Text(baselineKey))
	if err != nil {
		return nil, err
	}
	for _, d := range traceParameters() {
		v, given := spec.Params[d.Name]
		if !given {
			continue
		}
		if search[d.Name], err = d.coerce(v); err != nil {
			return nil, usage.Errorf("baseline %s: %w", traceBaseline, err)
		}
	}
	return checkTrace(r, search)
}

// runBaseline searches, and records what was found as the score of its maps.
func runBaseline(ctx context.Context, s *Session, units []Unit, emit func(...record.Record) error) error {
	searches := make([]Unit, len(units))
	byID := make(map[string]Unit, len(units))
	for i, u := range units {
		search, err := baselineSearch(s.Resolved, u.Params)
		if err != nil {
			return err
		}
		if search, _, err = fitFeatures(s.Resolved, u.Net, u.Data, search); err != nil {
			return err
		}
		searches[i], byID[u.ID] = u, u
		searches[i].Params = search
	}
	return runTrace(ctx, s, searches, func(records ...record.Record) error {
		for i := range records {
			rec := &records[i]
			u := byID[rec.ID]
			rec.Params, rec.Method = u.Params, OptimumName
			if len(s.Plan.Data) > 1 {
				rec.Params = with(u.Params, "data", u.Data.Name)
			}
			if t := rec.Trace; t != nil {
				curves := t.Curves.Prob
				if t.ScoreOn == "logit" {
					curves = t.Curves.Logit
				}
				rec.Score = &record.Score{Value: &t.Value, Curves: []record.ScoreCurve{{Name: "le", Y: curves.Le}, {Name: "mo", Y: curves.Mo}}}
				rec.Trace = nil
			}
		}
		return emit(records...)
	})
}
