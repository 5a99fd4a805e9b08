package report

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// roadConsistency is consistency.json.
type roadConsistency struct {
	Agreements []roadAgreement
	Verdicts   []string
}

type roadSetting struct{ Net, Imputer, Order string }

type roadAgreement struct {
	Data, Target, Ties, Metric, Differs, Pairing string
	A, B                                         roadSetting
	Spearman, Kendall                            struct{ Mean, Deviation, Error *float64 }
	Methods, Repeats, Undefined                  int
}

// roadHeat is a matrix of rank correlations between settings.
type roadHeat struct {
	Title   string
	Names   []string
	Cells   [][]winCell
	Methods int
	Seeds   bool // the diagonal is between seeds
}

func (s roadSetting) name(nets bool) string {
	text := s.Imputer + ", " + s.Order
	if nets {
		text = s.Net + ", " + text
	}
	return text
}

func roadHeats(c roadConsistency) []roadHeat {
	type frame struct{ data, target, ties, metric string }
	var frames []frame
	for _, a := range c.Agreements {
		if f := (frame{a.Data, a.Target, a.Ties, a.Metric}); !slices.Contains(frames, f) {
			frames = append(frames, f)
		}
	}
	var out []roadHeat
	for _, f := range frames {
		var list []roadAgreement
		var settings []roadSetting
		nets := map[string]bool{}
		for _, a := range c.Agreements {
			if (frame{a.Data, a.Target, a.Ties, a.Metric}) != f {
				continue
			}
			list = append(list, a)
			for _, s := range []roadSetting{a.A, a.B} {
				nets[s.Net] = true
				if !slices.Contains(settings, s) {
					settings = append(settings, s)
				}
			}
		}
		title := []string{"by " + f.metric}
		for i, part := range []string{f.data, "target " + f.target, "ties " + f.ties} {
			differs := slices.ContainsFunc(frames, func(o frame) bool {
				return []bool{o.data != f.data, o.target != f.target, o.ties != f.ties}[i]
			})
			if differs {
				title = append(title, part)
			}
		}
		h := roadHeat{Title: strings.Join(title, " · "), Methods: list[0].Methods}
		h.Cells = make([][]winCell, len(settings))
		for i, s := range settings {
			h.Names = append(h.Names, s.name(len(nets) > 1))
			h.Cells[i] = make([]winCell, len(settings))
		}
		for _, a := range list {
			i, j := slices.Index(settings, a.A), slices.Index(settings, a.B)
			h.Seeds = h.Seeds || i == j
			cell := newHeatCell(a, list)
			if a.Pairing == "removed" {
				h.Cells[i][j], h.Cells[j][i] = cell, cell
			}
		}
		out = append(out, h)
	}
	return out
}

// newHeatCell is Spearman's correlation, with all else in its title.
func newHeatCell(a roadAgreement, all []roadAgreement) winCell {
	if a.Spearman.Mean == nil {
		return winCell{Text: missing, Title: "one of the settings ranks all methods alike"}
	}
	painted := heatCell(*a.Spearman.Mean, (*a.Spearman.Mean+1)/2, func(v float64) string { return decimal(v, 2) }, false)
	words := func(name string, mean, deviation, e *float64) string {
		text := name + " " + decimal(*mean, 3)
		if e != nil && deviation != nil {
			text += fmt.Sprintf(" (standard error %s, deviation %s)", decimal(*e, 3), decimal(*deviation, 3))
		}
		return text
	}
	title := words("Spearman", a.Spearman.Mean, a.Spearman.Deviation, a.Spearman.Error)
	if a.Kendall.Mean != nil {
		title += "; " + words("Kendall", a.Kendall.Mean, a.Kendall.Deviation, a.Kendall.Error)
	}
	title += fmt.Sprintf("; %d repeats", a.Repeats)
	if a.Undefined > 0 {
		title += fmt.Sprintf(", %d more undefined", a.Undefined)
	}
	for _, o := range all {
		if o.Pairing == "index" && o.A == a.A && o.B == a.B && o.Spearman.Mean != nil {
			title += "; with fractions paired as p and 1-p, Spearman " + decimal(*o.Spearman.Mean, 3)
		}
	}
	text := painted.Text
	if e := a.Spearman.Error; e != nil && !math.IsNaN(*e) {
		text += " ± " + decimal(*e, 2)
	}
	return winCell{Text: text, Title: title, Style: painted.Style}
}
