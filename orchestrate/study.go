package orchestrate

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/assay-xai/assay/internal/record"
	"github.com/assay-xai/assay/internal/usage"
)

// Study is one kind of evaluation. It declares its parameters, says which
// units a plan has and runs them; plans, resuming, records and summaries are
// the runner's.
type Study struct {
	ID      string
	Summary string
	// Code changes whenever the study's results change for the same inputs: it
	// is part of every unit's id.
	Code       string
	Parameters []Parameter
	// Seeded studies have a unit for each seed.
	Seeded bool
	// Check completes and checks one point of the grid: parameters that mean
	// nothing there are taken out, so that units that would do the same become
	// one. It may be nil.
	Check func(r *Resolved, params Params) (Params, error)
	// Fit completes and checks a point of the grid for a net and data, as Check
	// does for the point alone; it may be nil. A point that means nothing there is
	// left out there.
	Fit func(r *Resolved, net *ResolvedNet, data *ResolvedData, params Params) (Params, error)
	// Later lists units that read the records of units, which are those without a
	// Source; it may be nil. They have a Source each, and an id that [Resolved.identify]
	// gives them.
	Later func(ctx context.Context, r *Resolved, units []Unit) ([]Unit, error)
	// Run runs units, which come in plan order, and emits their records as soon
	// as they are known, in any order, from one goroutine or several. A unit
	// that fails by itself becomes a record with Error; an error ends the run.
	Run func(ctx context.Context, s *Session, units []Unit, emit func(...record.Record) error) error
	// Rows is the most rows that a forward of a plan's units can have use of: batch
	// auto takes no more. It may be nil.
	Rows func(r *Resolved) int
	// Files opens what a run of units keeps in out beside records, once the records
	// that are there have been read; it may be nil.
	Files func(ctx context.Context, r *Resolved, out string, units []Unit) (RunFiles, error)
	// Merge puts what shards keep so together in out, which has the records of all
	// units and nothing else of the study: the files have to be those of one run. It
	// is there where Files is.
	Merge func(ctx context.Context, r *Resolved, out string, units []Unit, parts []MergePart) error
	// Metrics are the numbers of a record that summaries show.
	Metrics []Metric
	// Along names what metrics with a Curve are along: rows of the summary have it
	// beside the parameters.
	Along string
	// Pooled are numbers that several records of an image give together.
	Pooled []Pooled
	// Together are metrics of all methods of a setting, see consistency.
	Together []Metric
	// Contest says whether methods are compared by a metric where the other parameters
	// are these, and which values are good; nil: the grid names the metrics (Row), or
	// nothing is compared.
	Contest func(metric string, params Params) (higherIsBetter, ok bool)
	// WholeData says that what becomes of an image at a point depends on all of the
	// data; it may be nil.
	WholeData func(r *Resolved, point Params) bool
	// Row says for studies whose grid names the metric what a row of the summary at
	// a point is of, beside the net: the metric and the other facts. It may be nil.
	Row func(r *Resolved, point Params) (metric string, params Params)
}

// RunFiles are what a run keeps beside records.
type RunFiles interface {
	// Finish completes them when all units have records, whether they were done by
	// this process or before. It does nothing that is done already.
	Finish(ctx context.Context) error
}

// Metric is a number of a record.
type Metric struct {
	ID      string
	Summary string
	// HigherIsBetter says how to read differences. Of studies whose metrics are of maps
	// it depends on more: see [Study.direction].
	HigherIsBetter bool
	// Undirected metrics describe: no value is better than another.
	Undirected bool
	// Sum is true of sums over the points of a curve: between runs with several
	// numbers of features only their means compare.
	Sum bool
	// Under are parameters that say what the metric is: where they differ it is
	// not compared.
	Under []string
	// Value finds the number; false where the record has none.
	Value func(record.Record) (float64, bool)
	// Curve finds several in place of Value, NaN or nothing where there are none; At
	// lists what they are at, for a point of the grid: a row of the summary each.
	Curve func(record.Record) []float64
	At    func(Params) []float64
	// Inner metrics have no rows: pooled ones are made of them.
	Inner bool
	// OfUnit does so in place of Value where the record alone does not say.
	OfUnit func(r *Resolved, u *Unit, rec record.Record) (float64, bool, error)
	// Cost metrics differ from run to run: summaries have them only where the
	// plan names them, in a published row or a claim.
	Cost bool
}

// Shown are the metrics that summaries have rows of.
func (s Study) Shown() []Metric {
	list := slices.DeleteFunc(slices.Clone(s.Metrics), func(m Metric) bool { return m.Inner })
	for _, p := range s.Pooled {
		list = append(list, p.Metric)
	}
	return append(list, s.Together...)
}

// Pooled is a number of several records of an image and a seed, which differ in one
// parameter alone. Rows of the summary have no value of it.
type Pooled struct {
	Metric
	// Over is the parameter, Of the metric of each record that is looked at.
	Over, Of string
	// Combine gets the metric's values (of a curve all) by the parameter's.
	Combine func(of map[string][]float64) (float64, bool)
}

// Parameter is a parameter of a study's grid.
type Parameter struct {
	Name    string
	Summary string
	// Type is "int", "float", "bool", "string", "spec" (name with arguments),
	// "fractions" or "file", whose content is part of units' ids in place of its path.
	Type string
	// Default is a value, or several ([]any); nil: not given.
	Default any
	Minimum *float64
	Maximum *float64
	Choices []string
	// Column heads the parameter in summary.csv; "": its name.
	Column string
	// Catalogue says where the names of specs come from.
	Catalogue catalogueOf
	// Hidden parameters have no column in summary.csv: other columns say it.
	Hidden bool
}

// catalogueOf names a part of the catalogue.
type catalogueOf string

const (
	imputers catalogueOf = "reference"
	methods  catalogueOf = "method"
	// scoreMetrics are those of package scores.
	scoreMetrics catalogueOf = "metric"
)

// inapplicable is the error of a point of the grid that means nothing, such as
// a solver together with an objective that it cannot maximise. In a grid with
// other points it is left out.
type inapplicable struct{ error }

func (e *inapplicable) Unwrap() error { return e.error }

// Params are the parameters of a unit: int, float64, bool or string.
type Params map[string]any

// Int, Float and Text return a parameter, zero where there is none.
func (p Params) Int(name string) int { n, _ := p[name].(int); return n }

// Float returns a number.
func (p Params) Float(name string) float64 { n, _ := toFloat(p[name]); return n }

// Text returns a string.
func (p Params) Text(name string) string { s, _ := p[name].(string); return s }

// Unit is the smallest piece of work that is recorded.
type Unit struct {
	// ID is the hash of everything that determines the result.
	ID string
	// Order is the place in the plan.
	Order int
	Net   *ResolvedNet
	Data  *ResolvedData
	// Item is the place of the image in the data; -1: the data as a whole.
	Item   int
	Params Params
	Seed   uint64
	// Source is the unit whose record this one reads: it runs before. nil: none.
	Source *Unit
}

// Studies lists the studies.
func Studies() []Study {
	return []Study{evalStudy(), traceStudy(), transferStudy(), explainStudy(), scoreStudy(), roadStudy()}
}

// FindStudy finds a study by id; the error offers the nearest.
func FindStudy(id string) (Study, error) {
	var names []string
	for _, s := range Studies() {
		if s.ID == id {
			return s, nil
		}
		names = append(names, s.ID)
	}
	return Study{}, usage.Errorf("study %q: %s", id, DidYouMean(id, names))
}

// maxPoints bounds the points of a grid: a dozen short lists make millions.
const maxPoints = 1 << 16

// points expands a plan's grid: the product of the values of every parameter,
// the last parameter fastest. Points that Check makes equal come once.
func (s Study) points(r *Resolved) ([]Params, error) {
	p := r.Plan
	if err := s.checkNames(p); err != nil {
		return nil, err
	}
	var list []Params
	for _, g := range p.parts() {
		part, err := s.product(p, g)
		if err != nil {
			return nil, err
		}
		if list = append(list, part...); len(list) > maxPoints {
			return nil, p.errorf("$.grids", "the grids have more than %d points: want fewer values", maxPoints)
		}
	}
	seen := map[string]bool{}
	var out []Params
	var left leftOut
	for _, point := range list {
		for _, d := range s.Parameters {
			text, ok := point[d.Name].(string)
			if ok && d.Type == fileType {
				point[d.Name] = r.labels[text]
			}
			if !ok || d.Catalogue == "" {
				continue
			}
			spec, err := r.Catalogue.spec(d.Catalogue, text)
			if err != nil {
				return nil, p.errorf("$.grid."+d.Name, "%w", err)
			}
			point[d.Name] = spec.short
		}
		if s.Check != nil {
			checked, err := s.Check(r, point)
			var skip *inapplicable
			if errors.As(err, &skip) {
				left.add(err)
				continue
			}
			if err != nil {
				return nil, p.errorf("$.grid", "%w", err)
			}
			point = checked
		}
		if key := string(canonical(point)); !seen[key] {
			seen[key] = true
			out = append(out, point)
		}
	}
	if len(out) == 0 {
		return nil, p.errorf("$.grid", "%w", left.first)
	}
	if left.first != nil {
		r.Warnings = append(r.Warnings, left.String())
	}
	return out, nil
}

// leftOut says why points of a grid mean nothing.
type leftOut struct {
	first error
	texts []string // each once
}

func (l *leftOut) add(err error) {
	if l.first == nil {
		l.first = err
	}
	l.addText(err.Error())
}

func (l *leftOut) addText(text string) {
	if !slices.Contains(l.texts, text) {
		l.texts = append(l.texts, text)
	}
}

func (l *leftOut) String() string {
	const some = 4
	text := "left out of the grid: " + strings.Join(l.texts[:min(some, len(l.texts))], "; ")
	if more := len(l.texts) - some; more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	return text
}

// gridPart is one of a plan's grids and its place.
type gridPart struct {
	at     string
	values map[string]any
}

// parts are the grids whose points are put together.
func (p *Plan) parts() []gridPart {
	if len(p.Grids) == 0 {
		return []gridPart{{"$.grid", p.Grid}}
	}
	var out []gridPart
	for i, g := range p.Grids {
		values := map[string]any{}
		maps.Copy(values, p.Grid)
		maps.Copy(values, g)
		out = append(out, gridPart{fmt.Sprintf("$.grids[%d]", i), values})
	}
	return out
}

// product lists the points of one grid.
func (s Study) product(p *Plan, g gridPart) ([]Params, error) {
	list := []Params{{}}
	for _, d := range s.Parameters {
		values, err := s.values(p, g, d)
		if err != nil {
			return nil, err
		}
		if len(values) > maxPoints/len(list) {
			return nil, p.errorf(g.at+"."+d.Name, "the grid has more than %d points: want fewer values", maxPoints)
		}
		var next []Params
		for _, point := range list {
			for _, v := range values {
				if v == nil {
					next = append(next, point)
					continue
				}
				n := maps.Clone(point)
				n[d.Name] = v
				next = append(next, n)
			}
		}
		list = next
	}
	return list, nil
}

func (s Study) checkNames(p *Plan) error {
	names := make([]string, len(s.Parameters))
	for i, d := range s.Parameters {
		names[i] = d.Name
	}
	for _, g := range append([]gridPart{{"$.grid", p.Grid}}, p.parts()...) {
		for _, k := range sortedKeys(g.values) {
			if !slices.Contains(names, k) {
				return p.errorf(g.at+"."+k, "study %s has no parameter %q: %s", s.ID, k, DidYouMean(k, names))
			}
		}
	}
	return nil
}

// values returns the values that a grid gives a parameter; nil in the list
// stands for "not given, no default".
func (s Study) values(p *Plan, g gridPart, d Parameter) ([]any, error) {
	given, ok := g.values[d.Name]
	at := g.at + "." + d.Name
	if !ok || given == nil {
		if several, ok := d.Default.([]any); ok {
			return several, nil
		}
		return []any{d.Default}, nil
	}
	list, isList := given.([]any)
	switch several := d.lists(given); {
	case several != nil:
		list = several
	case !isList:
		list = []any{given}
	}
	if len(list) == 0 {
		return nil, p.errorf(at, "%s: an empty list", d.Name)
	}
	out := make([]any, len(list))
	for i, v := range list {
		c, err := d.coerce(v)
		if err != nil {
			return nil, p.errorf(at, "%w", err)
		}
		out[i] = c
	}
	return out, nil
}

func (d Parameter) coerce(v any) (any, error) {
	if d.Type == fractionsType {
		list, err := fractions(d.Name, v)
		return fractionsText(list), err
	}
	e := EntryParameter{Name: d.Name, Type: d.Type, Minimum: d.Minimum, Maximum: d.Maximum, Choices: d.Choices}
	v, err := e.coerce(v)
	if err != nil || d.Type != "spec" {
		return v, err
	}
	spec, err := ParseSpec(v.(string))
	if err != nil {
		return nil, err
	}
	return spec.String(), nil
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

func bound(v float64) *float64 { return &v }
