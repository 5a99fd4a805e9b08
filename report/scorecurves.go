package report

import (
	"context"
	"slices"
	"strings"
)

// scoreCurvesFigure lays mean curves of a score over each other, one line a method
// and one chart a metric and curve.
func scoreCurvesFigure(_ context.Context, r *run, spec figureSpec, _ []card) (figureBlock, error) {
	b := figureBlock{Title: "Mean curves of the scores", Caption: "What the scores are the areas or means of: means over images"}
	if spec.Lines == "" {
		spec.Lines = "method"
	}
	if spec.Panels == "" {
		spec.Panels = "metric"
	}
	var groups []*group
	for _, g := range r.groups {
		if spec.matches(g) && slices.ContainsFunc(g.entries, func(e *entry) bool { return e.score != nil && len(e.score.curves) > 0 }) {
			groups = append(groups, g)
		}
	}
	slices.SortStableFunc(groups, r.comparePlanned)
	several := false
	for _, p := range panels(groups, spec) {
		for _, name := range curveNames(p.groups, spec.Curve) {
			var lines []series
			layers, unit := false, true
			for _, g := range p.groups {
				s, isLayers, ok := meanScoreCurve(g, name)
				if !ok {
					continue
				}
				s.name = scoreLine(g, p.groups, spec)
				several, layers = several || !s.single, isLayers
				lines = append(lines, s)
				unit = unit && slices.Min(s.band.Lo) >= 0 && slices.Max(s.band.Hi) <= 1
			}
			x, y := "fraction", "mean output"
			switch {
			case layers:
				x, y = "layers, from the output down", "mean similarity"
			case name == "le" || name == "mo":
				x = "fraction deleted"
			}
			if len(lines) > 0 {
				b.Charts = append(b.Charts, newChart(strings.TrimPrefix(p.title+" · "+curveTitle(name), " · "), lines, x, y, unit))
			}
		}
	}
	if several {
		b.Caption += ", with 95 % bounds"
	}
	b.Caption += "."
	return b, nil
}

// scoreLine names a group, with what becomes of channels where only that tells it
// from another.
func scoreLine(g *group, among []*group, spec figureSpec) string {
	name, reduce := lineName(g, among, spec), g.params["reduce"]
	alike := func(o *group) bool { return o != g && o.facts()[spec.Lines] == g.facts()[spec.Lines] }
	if reduce != "" && slices.ContainsFunc(among, alike) {
		name += " " + reduce
	}
	return name
}

// curveTitle is how a curve of a score is called.
func curveTitle(name string) string {
	if title, ok := map[string]string{"le": "LeRF", "mo": "MoRF"}[name]; ok {
		return title
	}
	return name
}

// curveNames lists the curves of groups, all or the one that is wanted: lerf and morf
// are le and mo.
func curveNames(groups []*group, want string) []string {
	wanted := map[string]string{"lerf": "le", "morf": "mo"}
	if name, ok := wanted[want]; ok {
		want = name
	}
	var out []string
	for _, g := range groups {
		for _, e := range g.entries {
			if e.score == nil {
				continue
			}
			for _, c := range e.score.curves {
				if (want == "" || want == "both" || want == c.name) && !slices.Contains(out, c.name) {
					out = append(out, c.name)
				}
			}
		}
	}
	return out
}

// meanScoreCurve is the mean over images of a curve that all of them have at the same
// places, seeds averaged first.
func meanScoreCurve(g *group, name string) (s series, layers, ok bool) {
	var keys []imageKey
	sums, counts := map[imageKey][]float64{}, map[imageKey]float64{}
	for _, e := range g.entries {
		if e.score == nil {
			continue
		}
		i := slices.IndexFunc(e.score.curves, func(c scoreCurve) bool { return c.name == name })
		if i < 0 {
			continue
		}
		c := e.score.curves[i]
		if s.xs == nil {
			s.xs, layers = c.xs(), c.layers
		}
		if !slices.Equal(c.xs(), s.xs) { // of an input of another size
			continue
		}
		k := e.key()
		if sums[k] == nil {
			keys, sums[k] = append(keys, k), make([]float64, len(c.y))
		}
		for j, v := range c.y {
			sums[k][j] += v
		}
		counts[k]++
	}
	if len(keys) == 0 {
		return s, false, false
	}
	rows := make([][]float64, len(keys))
	for i, k := range keys {
		rows[i] = sums[k]
		for j := range rows[i] {
			rows[i][j] /= counts[k]
		}
	}
	s.band, s.single = meanBand(rows), len(rows) < 2
	return s, layers, true
}
