package report

import (
	"context"
	"slices"

	"github.com/assay-xai/assay/internal/usage"
)

// curveSide is one of the two curves of a trajectory.
type curveSide struct {
	name string
	of   func(e *entry) []float64
}

func curveSides() map[string]curveSide {
	return map[string]curveSide{
		"lerf": {"LeRF", func(e *entry) []float64 { return e.curve.Le }},
		"morf": {"MoRF", func(e *entry) []float64 { return e.curve.Mo }},
	}
}

// sidesOf lists the curves that a figure shows of a group.
func (s figureSpec) sidesOf(g *group) ([]curveSide, error) {
	sides := curveSides()
	both := []curveSide{sides["lerf"], sides["morf"]}
	switch s.Curve {
	case "lerf", "morf":
		return []curveSide{sides[s.Curve]}, nil
	case "", "both":
		return both, nil
	case "objective":
		switch g.objective {
		case "le":
			return both[:1], nil
		case "mo":
			return both[1:], nil
		}
		return both, nil
	}
	return nil, usage.Errorf("curve %q: want lerf, morf, both or objective", s.Curve)
}

// curvesFigure lays mean curves of several settings over each other.
func curvesFigure(_ context.Context, r *run, spec figureSpec, _ []card) (figureBlock, error) {
	b := figureBlock{Title: "Mean curves of the settings", Caption: "Probability of the tracked class over the part that is deleted: means over images"}
	list := panels(r.chosen(spec), spec)
	several := false
	for _, p := range list {
		var lines []series
		for _, g := range p.groups {
			sides, err := spec.sidesOf(g)
			if err != nil {
				return b, err
			}
			for _, side := range sides {
				s := meanSeries(g, side)
				s.name = lineName(g, p.groups, spec)
				if len(sides) > 1 {
					s.name += ", " + side.name
				}
				several = several || !s.single
				lines = append(lines, s)
			}
		}
		b.Charts = append(b.Charts, newChart(p.title, lines, "fraction deleted", "mean probability", true))
	}
	if len(spec.Difference) == 2 {
		c, err := differenceChart(list, spec)
		if err != nil {
			return b, err
		}
		if c != nil {
			b.Charts = append(b.Charts, c)
		}
	}
	if several {
		b.Caption += ", with 95 % bounds"
	}
	b.Caption += "."
	return b, nil
}

// byImage are the curves of a group's images, seeds averaged.
func byImage(g *group, side curveSide) map[imageKey][]float64 {
	out, count := map[imageKey][]float64{}, map[imageKey]float64{}
	for _, e := range g.entries {
		k := e.key()
		if out[k] == nil {
			out[k] = make([]float64, len(e.points))
		}
		for i, v := range side.of(e) {
			out[k][i] += v
		}
		count[k]++
	}
	for k, row := range out {
		for i := range row {
			row[i] /= count[k]
		}
	}
	return out
}

func meanSeries(g *group, side curveSide) series {
	rows := byImage(g, side)
	var list [][]float64
	for _, e := range g.entries { // in their order, so that bounds are the same each time
		if row := rows[e.key()]; row != nil {
			list = append(list, row)
			delete(rows, e.key())
		}
	}
	return series{xs: fractions(g.entries[0].points, g.features), band: meanBand(list), single: len(list) < 2}
}

// differenceChart shows by line how much higher the curves of one panel are
// than those of another, image by image.
func differenceChart(list []panelled, spec figureSpec) (*chart, error) {
	find := func(key string) *panelled {
		i := slices.IndexFunc(list, func(p panelled) bool { return p.key == key })
		if i < 0 {
			return nil
		}
		return &list[i]
	}
	a, b := find(spec.Difference[0]), find(spec.Difference[1])
	if a == nil || b == nil {
		return nil, nil // one of the two has no results yet
	}
	var lines []series
	for _, g := range a.groups {
		i := slices.IndexFunc(b.groups, func(o *group) bool { return o.facts()[spec.Lines] == g.facts()[spec.Lines] })
		if i < 0 {
			continue
		}
		sides, err := spec.sidesOf(g)
		if err != nil {
			return nil, err
		}
		first, second := byImage(g, sides[0]), byImage(b.groups[i], sides[0])
		var rows [][]float64
		for _, e := range g.entries {
			x, y := first[e.key()], second[e.key()]
			if x == nil || y == nil || len(x) != len(y) {
				continue
			}
			delete(first, e.key())
			row := make([]float64, len(x))
			for j := range row {
				row[j] = x[j] - y[j]
			}
			rows = append(rows, row)
		}
		if len(rows) > 0 {
			lines = append(lines, series{name: lineName(g, a.groups, spec), xs: fractions(g.entries[0].points, g.features), band: meanBand(rows), single: len(rows) < 2})
		}
	}
	if len(lines) == 0 {
		return nil, nil
	}
	title := spec.Difference[0] + " − " + spec.Difference[1]
	return newChart(title, lines, "fraction deleted", "difference of the probability", false), nil
}
