package report

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/assay-xai/assay/internal/usage"
)

// figureSpec is a figure that a plan asks for (report: figures:). Facts are
// names of parameters, or net, data, solver, objective and the like.
type figureSpec struct {
	Kind  string `yaml:"kind"`
	Title string `yaml:"title"`
	// Where keeps the results whose facts have these values.
	Where map[string]any `yaml:"where"`
	// Lines is the fact that the lines of a chart differ in, Panels that of the
	// charts.
	Lines  string `yaml:"lines"`
	Panels string `yaml:"panels"`
	// Rows and Columns are the facts of a table of pictures.
	Rows    string `yaml:"rows"`
	Columns string `yaml:"columns"`
	// Curve is lerf, morf, both, or objective (the curves that are optimised); of
	// scores the name of one of their curves.
	Curve string `yaml:"curve"`
	// Difference has two values of Panels: one more chart shows the curve of the
	// first minus that of the second.
	Difference []string `yaml:"difference"`
	// Alphas are the exponents of heat maps.
	Alphas []float64 `yaml:"alphas"`
	// Order of strips is lerf, morf or both; Steps how many pictures they have.
	Order string `yaml:"order"`
	Steps int    `yaml:"steps"`
}

// figureBlock is a figure of the page.
type figureBlock struct {
	ID, Title, Caption string
	Charts             []*chart
	Pictures           []pictureTable
	Films              []film
	Table              *groupTable
}

// empty says that there is nothing to show, so far.
func (b figureBlock) empty() bool {
	return len(b.Charts)+len(b.Pictures)+len(b.Films) == 0 && b.Table == nil
}

// figureKind makes one kind of figure.
type figureKind struct {
	id   string
	make func(ctx context.Context, r *run, spec figureSpec, cards []card) (figureBlock, error)
}

func figureKinds() []figureKind {
	return []figureKind{
		{"progress", progressFigure},
		{"curves", curvesFigure},
		{"heatmaps", heatFigure},
		{stripsKind, filmFigure},
		{"gap", gapFigure},
		{"score-curves", scoreCurvesFigure},
	}
}

// FigureKinds lists the kinds of figures that plans can ask for.
func FigureKinds() []string {
	var ids []string
	for _, k := range figureKinds() {
		ids = append(ids, k.id)
	}
	return ids
}

// figures makes what the plan asks for. What cannot be made is noted.
func (r *run) figures(ctx context.Context, cards []card) ([]figureBlock, error) {
	var out []figureBlock
	for i, spec := range r.plan.Report.Figures {
		at := slices.IndexFunc(figureKinds(), func(k figureKind) bool { return k.id == spec.Kind })
		if at < 0 {
			r.note("figure %q: want one of %s", spec.Kind, strings.Join(FigureKinds(), ", "))
			continue
		}
		b, err := figureKinds()[at].make(ctx, r, spec, cards)
		if err != nil {
			if usageError(err) {
				r.note("figure %s: %v", spec.Kind, err)
				continue
			}
			return nil, err
		}
		if b.empty() {
			continue
		}
		b.ID = fmt.Sprintf("figure-%d", i+1)
		if spec.Title != "" {
			b.Title = spec.Title
		}
		out = append(out, b)
	}
	r.blocks = append(r.blocks, out...)
	return out, nil
}

func usageError(err error) bool { return errors.Is(err, usage.Err) }

// matches says whether a group's facts are those that the figure wants.
func (s figureSpec) matches(g *group) bool {
	f := g.facts()
	for k, v := range s.Where {
		if f[k] != plain(v) {
			return false
		}
	}
	return true
}

// keeps says so of a group of deletion searches.
func (s figureSpec) keeps(g *group) bool { return g.features > 0 && s.matches(g) }

// chosen lists the groups of a figure.
func (r *run) chosen(s figureSpec) []*group {
	var out []*group
	for _, g := range r.groups {
		if s.keeps(g) {
			out = append(out, g)
		}
	}
	return out
}

// factText is how a fact's value is called in figures.
func factText(fact, v string) string {
	switch {
	case v == "":
		return missing
	case slices.Contains(selfNamed, fact) || fact == "reference" || fact == "neighbourhood" || fact == "metric":
		return v
	case fact == "edge":
		return v + " × " + v
	case fact == "scoreOn":
		return "by " + scoreWord(v)
	}
	return factName(fact) + " " + v
}

// settingFacts are the facts beside lines and panels that groups differ in by
// themselves: some two groups differ in nothing else. What follows from another
// fact, as a temperature from the output that is looked at, makes no panel.
func settingFacts(groups []*group, spec figureSpec) []string {
	vary, seen, count := map[string]bool{}, map[string]bool{}, map[string]int{}
	for _, g := range groups {
		f := g.facts()
		for k := range f {
			count[k]++
			rest := maps.Clone(f)
			delete(rest, k)
			key := fmt.Sprint(k, rest) // maps print in the order of their keys
			vary[k] = vary[k] || seen[key]
			seen[key] = true
		}
	}
	var out []string
	for k := range vary {
		// What only some groups have is their solver's: it stands with the line.
		if vary[k] && count[k] == len(groups) && k != spec.Lines && k != spec.Panels {
			out = append(out, k)
		}
	}
	sortFacts(out)
	return out
}

// panelled is a chart's groups.
type panelled struct {
	title  string
	key    string // the value of Panels
	groups []*group
}

// panels divides groups by the figure's panels and by whatever else they
// differ in beside its lines.
func panels(groups []*group, spec figureSpec) []panelled {
	others := settingFacts(groups, spec)
	var out []panelled
	for _, g := range groups {
		f := g.facts()
		var parts []string
		if spec.Panels != "" {
			parts = append(parts, factText(spec.Panels, f[spec.Panels]))
		}
		for _, k := range others {
			parts = append(parts, factText(k, f[k]))
		}
		for _, k := range []string{"evaluations", "time"} { // searches with one budget are no match for those with the other
			if v := f[k]; v != "" && !slices.Contains(others, k) && slices.ContainsFunc(groups, func(o *group) bool { return o.facts()[k] == "" }) {
				parts = append(parts, factText(k, v))
			}
		}
		title := strings.Join(parts, " · ")
		i := slices.IndexFunc(out, func(p panelled) bool { return p.title == title })
		if i < 0 {
			out = append(out, panelled{title: title, key: f[spec.Panels]})
			i = len(out) - 1
		}
		out[i].groups = append(out[i].groups, g)
	}
	return out
}

// lineName names a group among those of a chart.
func lineName(g *group, among []*group, spec figureSpec) string {
	f := g.facts()
	name := ""
	if spec.Lines != "" {
		name = factText(spec.Lines, f[spec.Lines])
	}
	same := 0
	for _, o := range among {
		if o.facts()[spec.Lines] == f[spec.Lines] {
			same++
		}
	}
	if same > 1 { // several starts, for example
		for _, k := range []string{"solver", "start", "schedule", "iterations"} {
			v, ok := f[k]
			differs := slices.ContainsFunc(among, func(o *group) bool { return o.facts()[k] != v && o.facts()[spec.Lines] == f[spec.Lines] })
			if ok && k != spec.Lines && differs {
				name += ", " + factText(k, v)
			}
		}
	}
	return strings.TrimPrefix(name, ", ")
}
