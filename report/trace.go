package report

import (
	"context"
	"fmt"
	"slices"
)

// tracePage shows deletion searches.
type tracePage struct {
	Panels  []panel
	Alike   bool // one panel only
	Groups  *groupTable
	Cards   []card
	Images  int // in all
	Table   *imageTable
	Figures []figureBlock
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
	Output     string // that curves and value are of
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
	if t.Figures, err = r.figures(ctx, t.Cards); err != nil {
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
	return panel{Title: g.label, Figure: meanFigure(s, g.scoreOn, g.features, w, h), Images: s.images, Value: value(s.value.Mean),
		CI: value(s.value.Lo) + " to " + value(s.value.Hi), Point: decimal(s.point.Mean, 3), Band: s.images > 1,
		Objective: objectiveName(g.objective, g.scoreOn), Output: outputWord(g.scoreOn),
		Sum: "LeRF " + value(s.prob.Le) + ", MoRF " + value(s.prob.Mo), FeatureSet: featureSet(g)}
}

func featureSet(g *group) string {
	if g.edge > 0 {
		return fmt.Sprintf("%d × %d = %d patches", g.edge, g.edge, g.features)
	}
	return plural(g.features, "column", "columns")
}
