package report

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// Solvers whose values others are measured against.
const (
	exactSolver = "exact"
	boundSolver = "complete-search"
)

// problemFacts are the facts that make two searches searches for the same.
var problemFacts = []string{"net", "data", "target", "edge", "reference", "objective", "scoreOn"}

func (g *group) problem() string {
	f := g.facts()
	var parts []string
	for _, k := range problemFacts {
		parts = append(parts, f[k])
	}
	return strings.Join(parts, "\x00")
}

// solverName is a solver with what it was told, as far as groups differ in it.
func (r *run) solverName(g *group) string {
	f := g.facts()
	parts := []string{g.solver}
	for _, k := range r.varying {
		if v, ok := f[k]; ok && v != "" && k != "solver" && !slices.Contains(problemFacts, k) && !followsSolver(r.groups, g, k) {
			parts = append(parts, factText(k, v))
		}
	}
	return strings.Join(parts, ", ")
}

// followsSolver is true of a fact that all groups of the solver share.
func followsSolver(groups []*group, g *group, fact string) bool {
	v := g.facts()[fact]
	for _, o := range groups {
		if o.solver == g.solver && o.facts()[fact] != v {
			return false
		}
	}
	return true
}

// values are by image, seeds averaged.
func (g *group) values() map[imageKey]float64 {
	sum, count := map[imageKey]float64{}, map[imageKey]float64{}
	for _, e := range g.entries {
		sum[e.key()] += e.value
		count[e.key()]++
	}
	for k := range sum {
		sum[k] /= count[k]
	}
	return sum
}

// gapFigure is a table of what searches leave to the optimum and to the bound,
// where those were found.
func gapFigure(_ context.Context, r *run, spec figureSpec, _ []card) (figureBlock, error) {
	b := figureBlock{Title: "What the searches leave to the optimum",
		Caption: "Mean over images of the optimum's value (exact), and of the bound's (complete search), minus the search's own. No order exceeds the optimum; no optimum exceeds the bound."}
	groups := r.chosen(spec)
	others := slices.DeleteFunc(slices.Clone(r.varying), func(k string) bool { return !slices.Contains(problemFacts, k) })
	t := &groupTable{}
	for _, k := range others {
		t.Header = append(t.Header, column{Name: factName(k)})
	}
	t.Header = append(t.Header, column{Name: "search"}, column{"images", "images with a result", true}, column{"value", "mean of the objective", true},
		column{"left to the optimum", "mean of exact minus the search", true}, column{"95 % bounds", "of that mean", true},
		column{"optimum reached", "images on which the search's value is the optimum's, to six digits", true},
		column{"left to the bound", "mean of complete search minus the search", true})
	compared := false
	for _, g := range groups {
		row := groupRow{}
		f := g.facts()
		for _, k := range others {
			row.Cells = append(row.Cells, cell{Text: f[k], Sort: f[k]})
		}
		s := g.statistics()
		name := r.solverName(g)
		row.Cells = append(row.Cells, cell{Text: name, Sort: name}, numberCell(grouped(int64(s.images)), float64(s.images)), numberCell(value(s.value.Mean), s.value.Mean))
		to := func(solver string) []float64 {
			return left(g, find(groups, g, solver))
		}
		gap, bound := to(exactSolver), to(boundSolver)
		blank := cell{Text: missing, Number: true}
		if len(gap) == 0 || g.solver == boundSolver {
			row.Cells = append(row.Cells, blank, blank, blank)
		} else {
			compared = true
			m := meanBand(column1(gap))
			reached := 0
			for _, v := range gap {
				if v < 1e-6 {
					reached++
				}
			}
			bounds := blank
			if len(gap) > 1 {
				bounds.Text = decimal(m.Lo[0], 4) + " … " + decimal(m.Hi[0], 4)
			}
			row.Cells = append(row.Cells, numberCell(decimal(m.Mean[0], 4), m.Mean[0]), bounds,
				numberCell(fmt.Sprintf("%d of %d", reached, len(gap)), float64(reached)))
		}
		if len(bound) == 0 {
			row.Cells = append(row.Cells, blank)
		} else {
			compared = true
			m := meanBand(column1(bound))
			row.Cells = append(row.Cells, numberCell(decimal(m.Mean[0], 4), m.Mean[0]))
		}
		t.Rows = append(t.Rows, row)
	}
	if compared {
		b.Table = t
	}
	return b, nil
}

// find is the group of a solver that searched for the same as g.
func find(groups []*group, g *group, solver string) *group {
	i := slices.IndexFunc(groups, func(o *group) bool { return o.solver == solver && o.problem() == g.problem() })
	if i < 0 {
		return nil
	}
	return groups[i]
}

// left are the differences of other's values and g's, on the images of both.
func left(g, other *group) []float64 {
	if other == nil {
		return nil
	}
	mine, theirs := g.values(), other.values()
	var out []float64
	for _, e := range g.entries {
		v, ok := mine[e.key()]
		w, both := theirs[e.key()]
		if ok && both {
			out = append(out, w-v)
			delete(mine, e.key())
		}
	}
	return out
}

func column1(values []float64) [][]float64 {
	out := make([][]float64, len(values))
	for i, v := range values {
		out[i] = []float64{v}
	}
	return out
}
