package main

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/assay-xai/assay/metrics"
	"github.com/assay-xai/assay/orchestrate"
)

// printTransfer prints a matrix of nets for every setting of a transfer run: rows
// are the nets that trajectories were found on, columns those that scored them.
func printTransfer(env environment, r *orchestrate.Resolved, rows []orchestrate.SummaryRow) {
	var shown []orchestrate.SummaryRow // the objective, without the sources
	for _, row := range rows {
		if row.Metric != "value" || row.N == 0 {
			continue
		}
		shown = append(shown, row)
	}
	vary := independent(shown)
	var order []string
	matrices := map[string]metrics.Matrix{}
	place := map[string]int{}
	for i, n := range r.Nets {
		place[n.Name] = i
	}
	for _, row := range shown {
		var parts []string
		for _, k := range vary {
			if v, ok := row.Params[k]; ok && k != "source" {
				parts = append(parts, fmt.Sprintf("%s %v", k, v))
			}
		}
		key := strings.Join(parts, ", ")
		m, ok := matrices[key]
		if !ok {
			order = append(order, key)
			for range r.Nets {
				line := make([]float64, len(r.Nets))
				for t := range line {
					line[t] = math.NaN()
				}
				m = append(m, line)
			}
			matrices[key] = m
		}
		m[place[fmt.Sprint(row.Params["source"])]][place[row.Net]] = row.Mean
	}
	for _, key := range order {
		printMatrix(env, r, key, matrices[key])
	}
}

// independent lists the parameters that tell settings apart, without those that
// follow from others (a temperature from the output) and the source.
func independent(rows []orchestrate.SummaryRow) []string {
	all := varying(rows)
	slices.SortStableFunc(all, func(a, b string) int { return orchestrate.CompareFacts(a, b) })
	var out []string
	settings := 1
	for _, k := range all {
		seen := map[string]bool{}
		for _, row := range rows {
			text := ""
			for _, name := range append(slices.Clone(out), k) {
				text += fmt.Sprint(row.Params[name]) + "\x00"
			}
			seen[text] = true
		}
		if k != "source" && len(seen) > settings {
			out, settings = append(out, k), len(seen)
		}
	}
	return out
}

func printMatrix(env environment, r *orchestrate.Resolved, title string, m metrics.Matrix) {
	fmt.Fprintln(env.stdout, strings.TrimPrefix(title+": ", ": ")+"mean value on each net (columns) of the trajectories found on each (rows), and its share of the net's own")
	t := table{header: []string{"found on"}, right: map[int]bool{}}
	for i, n := range r.Nets {
		t.header = append(t.header, n.Name, "")
		t.right[2*i+1], t.right[2*i+2] = true, true
	}
	t.header = append(t.header, "distance as source", "as target")
	t.right[len(t.header)-1], t.right[len(t.header)-2] = true, true
	shares := m.Shares()
	asSource, asTarget := m.Distances()
	for s, n := range r.Nets {
		cells := []string{n.Name}
		for i := range r.Nets {
			cells = append(cells, measured(m[s][i], "%.3f"), measured(shares[s][i], "%.2f"))
		}
		t.add(append(cells, measured(asSource[s], "%.3f"), measured(asTarget[s], "%.3f"))...)
	}
	t.print(env.stdout)
	fmt.Fprintln(env.stdout)
}

// measured writes a number, "-" for none.
func measured(v float64, format string) string {
	if math.IsNaN(v) {
		return "-"
	}
	return fmt.Sprintf(format, v)
}
