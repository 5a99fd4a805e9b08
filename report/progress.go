package report

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/assay-xai/assay/internal/record"
)

// progressPoints is the number of places at which histories are averaged.
const progressPoints = 121

// course is how far a search of one image was at each of some places.
type course struct{ best, current []float64 }

// axis is what progress is drawn over.
type axis struct {
	name string
	of   func(record.HistoryPoint) float64
}

func progressAxes() []axis {
	return []axis{
		{"iterations", func(p record.HistoryPoint) float64 { return float64(p.Iteration) }},
		{"evaluations", func(p record.HistoryPoint) float64 { return float64(p.Evaluations) }},
	}
}

// histories are those of a group's searches.
type histories struct {
	points  map[imageKey][][]record.HistoryPoint // a list a seed
	order   []imageKey
	longest []float64 // by axis: where the longest search ends
}

// readHistories reads the histories of groups, by group.
func (r *run) readHistories(ctx context.Context, groups []*group) (map[*group]*histories, error) {
	byID := map[string]*entry{}
	for _, g := range groups {
		for _, e := range g.entries {
			byID[e.id] = e
		}
	}
	out := map[*group]*histories{}
	err := record.Scan(filepath.Join(r.out, record.FileName), func(rec record.Record) error {
		e := byID[rec.ID]
		if e == nil || rec.Trace == nil || len(rec.History) < 2 || problem(rec) != "" {
			return ctx.Err()
		}
		h := out[e.group]
		if h == nil {
			h = &histories{points: map[imageKey][][]record.HistoryPoint{}, longest: make([]float64, len(progressAxes()))}
			out[e.group] = h
		}
		if h.points[e.key()] == nil {
			h.order = append(h.order, e.key())
		}
		h.points[e.key()] = append(h.points[e.key()], rec.History)
		for i, a := range progressAxes() {
			h.longest[i] = max(h.longest[i], a.of(rec.History[len(rec.History)-1]))
		}
		return ctx.Err()
	})
	if err != nil {
		return nil, fmt.Errorf("report: %w", err)
	}
	return out, nil
}

// at reads a history at places along an axis: the last point not beyond each.
// A search that ended before keeps its last value.
func at(history []record.HistoryPoint, a axis, places []float64) course {
	c := course{make([]float64, len(places)), make([]float64, len(places))}
	i := 0
	for j, x := range places {
		for i+1 < len(history) && a.of(history[i+1]) <= x {
			i++
		}
		c.best[j], c.current[j] = history[i].Best, history[i].Current
	}
	return c
}

// series averages a group's searches along an axis: seeds first, then images.
func (h *histories) series(name string, n int) series {
	a := progressAxes()[n]
	places := make([]float64, progressPoints)
	for i := range places {
		places[i] = h.longest[n] * float64(i) / (progressPoints - 1)
	}
	keys := slices.Clone(h.order)
	slices.SortFunc(keys, func(x, y imageKey) int { return naturalCompare(x.data+" "+x.id, y.data+" "+y.id) })
	var best, current [][]float64
	for _, k := range keys {
		b, c := make([]float64, len(places)), make([]float64, len(places))
		for _, history := range h.points[k] {
			course := at(history, a, places)
			for i := range places {
				b[i] += course.best[i] / float64(len(h.points[k]))
				c[i] += course.current[i] / float64(len(h.points[k]))
			}
		}
		best, current = append(best, b), append(current, c)
	}
	s := series{name: name, xs: places, band: meanBand(best), single: len(best) < 2}
	faint := make([]float64, len(places))
	for i := range places {
		for _, c := range current {
			faint[i] += c[i] / float64(len(current))
		}
		s.faint = faint
	}
	return s
}

// progressFigure shows how searches get on, over iterations and evaluations.
func progressFigure(ctx context.Context, r *run, spec figureSpec, _ []card) (figureBlock, error) {
	b := figureBlock{Title: "Progress of the searches",
		Caption: "Best value so far, mean over images (with 95 % bounds where there are several); the thin line is the current value. Evaluations are states that a plain search would score."}
	groups := longest(r.chosen(spec), spec)
	found, err := r.readHistories(ctx, groups)
	if err != nil {
		return b, err
	}
	groups = slices.DeleteFunc(groups, func(g *group) bool { return found[g] == nil })
	for _, p := range panels(groups, spec) {
		for n, a := range progressAxes() {
			var lines []series
			for _, g := range p.groups {
				if found[g].longest[n] > 0 {
					lines = append(lines, found[g].series(lineName(g, p.groups, spec), n))
				}
			}
			if len(lines) == 0 {
				continue
			}
			b.Charts = append(b.Charts, newChart(p.title, lines, a.name, "value", false))
		}
	}
	return b, nil
}

// longest keeps of groups that differ in their number of iterations alone the
// one with the most: the others' searches are its beginning.
func longest(groups []*group, spec figureSpec) []*group {
	if spec.Lines == "iterations" || spec.Panels == "iterations" {
		return groups
	}
	most := map[string]int{}
	key := func(g *group) (string, int) {
		f := g.facts()
		n, _ := strconv.Atoi(f["iterations"])
		delete(f, "iterations")
		return fmt.Sprint(f), n
	}
	for _, g := range groups {
		k, n := key(g)
		most[k] = max(most[k], n)
	}
	return slices.DeleteFunc(slices.Clone(groups), func(g *group) bool {
		k, n := key(g)
		return n < most[k]
	})
}
