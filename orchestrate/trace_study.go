package orchestrate

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/assay-xai/assay/dataset"
	"github.com/assay-xai/assay/internal/record"
	"github.com/assay-xai/assay/internal/usage"
	"github.com/assay-xai/assay/trace"
)

// traceStudy searches for the order of deletion that the deletion metric likes
// best (package trace).
func traceStudy() Study {
	return Study{
		ID:         "trace",
		Summary:    "the order of deleting patches or columns that maximises the deletion metric (TRACE)",
		Code:       traceCode(),
		Seeded:     true,
		Parameters: traceParameters(),
		Check:      checkTrace,
		Fit:        fitTrace,
		Run:        runTrace,
		Metrics:    traceMetrics(),
		// A game ends with everything deleted.
		WholeData: func(r *Resolved, p Params) bool { return r.Catalogue.needsMean(p.Text(referenceKey), true) },
	}
}

// traceCode changes with the version of any solver.
func traceCode() string {
	code := "trace/1"
	for _, s := range trace.Solvers() {
		code += fmt.Sprintf(" %s/%d", s.ID, s.Version)
	}
	return code
}

func traceParameters() []Parameter {
	edges := make([]string, 0, len(trace.Edges()))
	for _, e := range trace.Edges() {
		edges = append(edges, fmt.Sprint(e))
	}
	list := []Parameter{
		targetParameter(targetPredicted),
		{Name: "edge", Type: "int", Default: 7, Summary: "patches along a side: one of " + strings.Join(edges, ", ") + "; tables take none"},
		{Name: "reference", Type: "spec", Default: "zero", Catalogue: imputers, Column: "imputer", Summary: "what deleted features become"},
		{Name: "objective", Type: "string", Default: "le-mo", Choices: ids(trace.Objectives(), func(o trace.Objective) string { return o.ID }), Summary: "what is maximised"},
		{Name: "scoreOn", Type: "string", Default: "prob", Choices: trace.ScoreOns(), Summary: "the output that the objective looks at"},
		{Name: "solver", Type: "string", Default: "sa", Choices: ids(trace.Solvers(), func(s trace.Solver) string { return s.ID }), Summary: "how to search"},
		{Name: "schedule", Type: "string", Summary: "a named preset of the solver's parameters: " + scheduleNames()},
		{Name: "start", Type: "string", Choices: ids(trace.Starts(), func(s trace.Start) string { return s.ID }), Summary: "where the search begins; none: the schedule's own"},
		{Name: "neighbourhood", Type: "string", Choices: ids(trace.Neighbourhoods(), func(n trace.Neighbourhood) string { return n.ID }), Summary: "how a trajectory is changed"},
		{Name: "iterations", Type: "int", Minimum: bound(1), Summary: "iterations; none: the schedule's, unless another budget is given"},
		{Name: "evaluations", Type: "int", Minimum: bound(1), Summary: "budget of states that the plain loop would score"},
		{Name: "time", Type: "float", Minimum: bound(0), Summary: "budget of seconds an image (makes results depend on the machine)"},
		{Name: mapKey, Type: fileType, Summary: "start map: orders or maps by image id, an .npz, a folder of them, or the folder of a trace run; implies that start"},
	}
	owners := map[string]string{}
	for _, s := range trace.Solvers() {
		for _, p := range s.Parameters {
			if i := slices.IndexFunc(list, func(have Parameter) bool { return have.Name == p.Name }); i >= 0 {
				if own, ok := owners[p.Name]; ok { // the solvers that have it, before its summary
					owners[p.Name] = own + ", " + s.ID
					list[i].Summary = owners[p.Name] + strings.TrimPrefix(list[i].Summary, own)
				}
				continue
			}
			owners[p.Name] = s.ID
			fallback := "the schedule's"
			if len(s.Schedules) == 0 {
				fallback = fmt.Sprint(p.Default)
			}
			kind := "float"
			if p.Integer {
				kind = "int"
			}
			list = append(list, Parameter{Name: p.Name, Type: kind, Minimum: bound(p.Minimum), Maximum: bound(p.Maximum),
				Summary: s.ID + ": " + p.Summary + "; none: " + fallback})
		}
	}
	return list
}

// scheduleNames lists every solver's schedules.
func scheduleNames() string {
	var out []string
	for _, s := range trace.Solvers() {
		if len(s.Schedules) > 0 {
			out = append(out, s.ID+" "+strings.Join(ids(s.Schedules, func(s trace.Schedule) string { return s.ID }), " or "))
		}
	}
	return strings.Join(out, ", ")
}

func ids[T any](list []T, id func(T) string) []string {
	out := make([]string, len(list))
	for i, v := range list {
		out[i] = id(v)
	}
	return out
}

// checkTrace writes out what the solver's schedule stands for and takes out
// what the solver does not look at.
func checkTrace(r *Resolved, p Params) (Params, error) {
	solver, err := trace.SolverByID(p.Text("solver"))
	if err != nil {
		return nil, err
	}
	if !slices.Contains(solver.Objectives, p.Text("objective")) {
		return nil, &inapplicable{usage.Errorf("solver %s cannot maximise %s: want --objective %s",
			solver.ID, p.Text("objective"), strings.Join(solver.Objectives, " or "))}
	}
	out := Params{}
	for _, k := range []string{"target", "edge", "reference", "objective", "scoreOn", "solver"} {
		out[k] = p[k]
	}
	if err := fillSearch(solver, p, out); err != nil {
		return nil, err
	}
	// Any number of features does: the options do not depend on it.
	if err := anyOrder(traceOptions(Unit{Params: out}), 4).Check(4); err != nil {
		return nil, err
	}
	return out, nil
}

// fillSearch writes a solver's own parameters: those that p has and the
// defaults of the others.
func fillSearch(solver trace.Solver, p, out Params) error {
	schedule := trace.Schedule{Start: solver.Start}
	if len(solver.Schedules) > 0 {
		var err error
		if schedule, err = scheduleOf(solver, p.Text("schedule")); err != nil {
			return err
		}
		out["schedule"] = schedule.ID
	}
	if schedule.Start != "" {
		out["start"] = orElse(p.Text("start"), schedule.Start)
		if p.Text("start") == "" && p.Text(mapKey) != "" {
			out["start"] = startMap
		}
		if out["start"] == startMap {
			if p.Text(mapKey) == "" {
				return usage.Errorf("start map: which orders? give --map FILE: an .npz of maps by image id, or the folder of a trace run")
			}
			out[mapKey] = p[mapKey]
		}
	}
	if solver.Neighbourhoods {
		out["neighbourhood"] = orElse(p.Text("neighbourhood"), trace.Neighbourhoods()[0].ID)
	}
	values := schedule.Prob
	if p.Text("scoreOn") == "logit" {
		values = schedule.Logit
	}
	budget := false
	if slices.ContainsFunc(solver.Parameters, func(d trace.Parameter) bool { return d.Name == "iterations" }) {
		for _, k := range []string{"iterations", "evaluations", "time"} {
			if v, ok := p[k]; ok {
				out[k], budget = v, true
			}
		}
	}
	for _, d := range solver.Parameters {
		if d.Name == "iterations" {
			if !budget {
				out[d.Name] = int(valueOr(values, d))
			}
			continue
		}
		v, ok := p[d.Name]
		switch {
		case ok:
			out[d.Name] = v
		case d.Integer:
			out[d.Name] = int(valueOr(values, d))
		default:
			out[d.Name] = valueOr(values, d)
		}
	}
	return nil
}

// scheduleOf finds a schedule of a solver, "" the first. One that only other
// solvers have means nothing here.
func scheduleOf(solver trace.Solver, want string) (trace.Schedule, error) {
	if want == "" {
		return solver.Schedules[0], nil
	}
	named := func(s trace.Schedule) bool { return s.ID == want }
	if i := slices.IndexFunc(solver.Schedules, named); i >= 0 {
		return solver.Schedules[i], nil
	}
	err := usage.Errorf("schedule %q of solver %s: %s", want, solver.ID,
		DidYouMean(want, ids(solver.Schedules, func(s trace.Schedule) string { return s.ID })))
	if slices.ContainsFunc(trace.Solvers(), func(s trace.Solver) bool { return slices.ContainsFunc(s.Schedules, named) }) {
		err = &inapplicable{err}
	}
	return trace.Schedule{}, err
}

func valueOr(values map[string]float64, d trace.Parameter) float64 {
	if v, ok := values[d.Name]; ok {
		return v
	}
	return d.Default
}

// traceOptions turns a unit's parameters into the search's.
func traceOptions(u Unit) trace.Options {
	p := u.Params
	o := trace.Options{
		Solver: p.Text("solver"), Objective: p.Text("objective"), ScoreOn: p.Text("scoreOn"), Seed: u.Seed,
		Start: p.Text("start"), Neighbourhood: p.Text("neighbourhood"), Schedule: p.Text("schedule"),
		Budget: trace.Budget{
			Iterations: p.Int("iterations"), Evaluations: int64(p.Int("evaluations")),
			Time: time.Duration(p.Float("time") * float64(time.Second)),
		},
	}
	solver, err := trace.SolverByID(o.Solver)
	if err != nil {
		return o // Check says so
	}
	for _, d := range solver.Parameters {
		if v, ok := p[d.Name]; ok && d.Name != "iterations" {
			if o.Params == nil {
				o.Params = map[string]float64{}
			}
			o.Params[d.Name], _ = toFloat(v)
		}
	}
	return o
}

// fitTrace checks the edge against the images' size, where that is known
// beforehand, and the number of features against the solver's; columns of tables
// have no patches.
func fitTrace(r *Resolved, n *ResolvedNet, d *ResolvedData, p Params) (Params, error) {
	out, shape, err := fitFeatures(r, n, d, p)
	if err != nil {
		return nil, err
	}
	return out, r.checkGiven(n, d, out, shape)
}

// fitFeatures is fitTrace but for the given orders; shape is that of inputs.
func fitFeatures(r *Resolved, n *ResolvedNet, d *ResolvedData, p Params) (out Params, shape []int, err error) {
	solver, err := trace.SolverByID(p.Text("solver"))
	if err != nil {
		return nil, nil, err
	}
	shape = r.inputShape(n)
	if d.Set.Kind != dataset.Images && d.Set.Len() > 0 && len(shape) != 1 {
		if _, shape, err = d.Set.Values(0); err != nil {
			return nil, nil, err
		}
	}
	if reference, err := r.Catalogue.spec(imputers, p.Text(referenceKey)); err != nil {
		return nil, nil, err
	} else if err := r.checkRemover(referenceKey, reference, n, d, shape); err != nil {
		return nil, nil, err
	}
	if len(shape) != 1 {
		edge := p.Int("edge")
		if err := trace.CheckEdge(edge, shape[len(shape)-2], shape[len(shape)-1]); err != nil {
			return nil, nil, err
		}
		if err := solver.CheckFeatures(edge * edge); err != nil {
			return nil, nil, &inapplicable{fmt.Errorf("edge %d: %w", edge, err)}
		}
		return p, shape, checkCost(r, p, edge*edge, d.Set.Len())
	}
	if err := solver.CheckFeatures(shape[0]); err != nil {
		return nil, nil, &inapplicable{fmt.Errorf("the %d columns of %s: %w", shape[0], d.Name, err)}
	}
	out = Params{}
	for k, v := range p {
		if k != "edge" {
			out[k] = v
		}
	}
	return out, shape, nil
}

// Searches that ask for more states an image are announced, or refused: at a
// thousand states a second they take a quarter of an hour, or twelve days.
const (
	announcedStates = 1e6
	refusedStates   = 1e9
)

// checkCost says what a search with many features costs before it begins.
func checkCost(r *Resolved, p Params, features, images int) error {
	states, err := anyOrder(traceOptions(Unit{Params: p}), features).Estimate(features)
	if err != nil || states < announcedStates {
		return err
	}
	cost := fmt.Sprintf("solver %s with %d features asks for about %.2g states an image", p.Text("solver"), features, states)
	if states > refusedStates {
		return usage.Errorf("%s: want a smaller --edge, fewer --iterations, a budget of --evaluations or --time, or --solver order", cost)
	}
	r.warnOnce(fmt.Sprintf("%s: %s for %d at 1000 states a second", cost,
		time.Duration(states*float64(images)/1000*float64(time.Second)).Round(time.Minute), images))
	return nil
}

func traceMetrics() []Metric {
	value := func(get func(*record.Trace) float64) func(record.Record) (float64, bool) {
		return func(r record.Record) (float64, bool) {
			if r.Trace == nil {
				return 0, false
			}
			return get(r.Trace), true
		}
	}
	list := []Metric{{ID: "value", Summary: "the objective, which the search maximises", HigherIsBetter: true, Sum: true, Under: []string{"objective", "scoreOn"},
		Value: value(func(t *record.Trace) float64 { return t.Value })}}
	list = append(list,
		Metric{ID: "relaxed", Summary: "an estimate of what the best order could reach, and no bound: the best set that the search stood on at every size, nested or not",
			HigherIsBetter: true, Sum: true, Under: []string{"objective", "scoreOn"},
			Value: func(r record.Record) (float64, bool) {
				if r.Trace == nil || r.Relaxed == nil || len(r.History) == 0 {
					return 0, false
				}
				return *r.Relaxed, true
			}},
		Metric{ID: "restarts-spread", Summary: "what the best restart is above the worst", Undirected: true, Sum: true, Under: []string{"objective", "scoreOn"},
			Value: func(r record.Record) (float64, bool) {
				if r.Trace == nil || len(r.Restarts) < 2 {
					return 0, false
				}
				return slices.Max(r.Restarts) - slices.Min(r.Restarts), true
			}})
	for _, on := range []struct {
		id   string
		sums func(*record.Trace) record.LeMo
	}{
		{"prob", func(t *record.Trace) record.LeMo { return t.Sums.Prob }},
		{"logit", func(t *record.Trace) record.LeMo { return t.Sums.Logit }},
	} {
		list = append(list,
			Metric{ID: on.id + "-le", Summary: "sum of the LeRF curve by " + on.id, HigherIsBetter: true, Sum: true,
				Value: value(func(t *record.Trace) float64 { return on.sums(t).Le })},
			Metric{ID: on.id + "-mo", Summary: "sum of the MoRF curve by " + on.id, HigherIsBetter: false, Sum: true,
				Value: value(func(t *record.Trace) float64 { return on.sums(t).Mo })},
			Metric{ID: on.id + "-le-mo", Summary: "LeRF sum minus MoRF sum by " + on.id, HigherIsBetter: true, Sum: true,
				Value: value(func(t *record.Trace) float64 { return on.sums(t).Le - on.sums(t).Mo })},
			Metric{ID: on.id + "-le-mo-mean", Summary: "the same divided by the number of points, so that edges compare", HigherIsBetter: true,
				Value: value(func(t *record.Trace) float64 { return (on.sums(t).Le - on.sums(t).Mo) / float64(t.Features+1) })},
			Metric{ID: on.id + "-le-mean", Summary: "mean of the LeRF curve by " + on.id + ", so that edges compare", HigherIsBetter: true,
				Value: value(func(t *record.Trace) float64 { return on.sums(t).Le / float64(t.Features+1) })},
			Metric{ID: on.id + "-mo-mean", Summary: "mean of the MoRF curve by " + on.id + ", so that edges compare", HigherIsBetter: false,
				Value: value(func(t *record.Trace) float64 { return on.sums(t).Mo / float64(t.Features+1) })})
	}
	return slices.Concat(list, foregroundMetrics(), costMetrics())
}
