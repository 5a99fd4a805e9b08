package orchestrate

import (
	"slices"

	"github.com/assay-xai/assay/scores"
	"github.com/assay-xai/assay/trace"
)

// shared says that one call answers several metrics of some image.
func (c *scored) shared() bool {
	return slices.ContainsFunc(c.at, func(at []int) bool { return len(at) > 1 })
}

// playKey is what units have in common that one call of a metric answers: the metric
// with its parameters, where those of one game are alike.
func (j *judge) playKey(u *Unit) (string, error) {
	score, parameters, err := j.s.scoreOf(u.Params)
	if err != nil {
		return "", err
	}
	id := score.ID
	if _, err := trace.ObjectiveByID(id); err == nil {
		id = bothCurves
	}
	return id + " " + string(canonical(parameters)), nil
}

// bothCurves is the metric that has what the metrics of both curves' sums are made of.
const bothCurves = "le-mo"

// share makes of the result of bothCurves that of a metric of the same game, to the
// bit what the metric itself says.
func share(r scores.Result, metric, output string) scores.Result {
	if metric == bothCurves || r.Undefined != "" {
		return r
	}
	objective, err := trace.ObjectiveByID(metric)
	if err != nil {
		return r
	}
	r.Value = objective.ValueOf(trace.Curve{Le: r.Curves[0].Y, Mo: r.Curves[1].Y}, output == scores.Logit)
	r.Also = map[string]float64{"le": r.Also["le"], "mo": r.Also["mo"], "mean": r.Value / float64(len(r.Curves[0].Y))}
	return r
}
