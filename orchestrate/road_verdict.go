package orchestrate

import (
	"fmt"
	"slices"
	"strings"
)

// alike says in words what a correlation of rankings comes to: for readers, no test.
func alike(v float64) string {
	switch {
	case v >= 1:
		return "agree"
	case v >= almostFrom:
		return "almost agree"
	case v >= largelyFrom:
		return "largely agree"
	case v > -largelyFrom:
		return "hardly agree"
	}
	return "contradict each other"
}

const (
	almostFrom  = .9
	largelyFrom = .5
)

// verdicts say in words whether the ranking of methods depends on the order and on the
// imputer: a sentence for each net, data, target and way to break ties, and of both.
func verdicts(tables []*rankTable, agreements []SettingAgreement, seeds int) []string {
	var out []string
	for _, t := range mainTables(tables) {
		if len(t.names) < 2 {
			out = append(out, "There is one method, "+t.names[0]+": nothing to rank.")
			continue
		}
		var nets []string
		for _, s := range t.settings {
			if !slices.Contains(nets, s.Net) {
				nets = append(nets, s.Net)
			}
		}
		for _, net := range nets {
			where := t.where(net, len(nets) > 1, len(mainTables(tables)) > 1)
			for _, differs := range []string{orderKey, imputerKey} {
				var list []SettingAgreement
				for _, a := range agreements {
					if a.Differs == differs && a.Pairing == PairByRemoved && a.A.Net == net && (frame{a.Data, a.Target, a.Ties, a.Metric}) == t.frame {
						list = append(list, a)
					}
				}
				if len(list) > 0 {
					out = append(out, where+t.sentence(differs, list, seeds))
				}
			}
		}
	}
	return out
}

// where names what a sentence is of, where there is more than one.
func (t *rankTable) where(net string, nets, frames bool) string {
	var parts []string
	if nets {
		parts = append(parts, net)
	}
	if frames {
		if t.data != "" {
			parts = append(parts, t.data)
		}
		parts = append(parts, "target "+t.target, "ties "+t.ties)
	}
	if parts == nil {
		return ""
	}
	return strings.Join(parts, ", ") + ": "
}

// sentence speaks of settings that differ in one thing.
func (t *rankTable) sentence(differs string, list []SettingAgreement, seeds int) string {
	what := map[string][3]string{
		orderKey:   {"whichever pixels are removed first", "which pixels are removed first", "with "},
		imputerKey: {"whatever removed pixels become", "what removed pixels become", "in "},
	}[differs]
	worst := 1.
	var parts []string
	for _, a := range list {
		where, x, y := what[2]+a.A.Imputer, a.A.Order, a.B.Order
		if differs == imputerKey {
			where, x, y = what[2]+a.A.Order, a.A.Imputer, a.B.Imputer
		}
		if a.Spearman.Mean == nil {
			parts = append(parts, fmt.Sprintf("%s, %s or %s ranks all methods alike", where, x, y))
			continue
		}
		mean := *a.Spearman.Mean
		worst = min(worst, mean)
		number := fmt.Sprintf("%.2f", mean)
		if a.Spearman.Error != nil {
			number += fmt.Sprintf(" ± %.2f", *a.Spearman.Error)
		}
		if a.Undefined > 0 { // one of the two ranks all alike
			number += fmt.Sprintf(", defined in %d of %d", a.Repeats, a.Repeats+a.Undefined)
		}
		parts = append(parts, fmt.Sprintf("%s, %s and %s %s (%s)", where, x, y, alike(mean), number))
	}
	lead := "is the same " + what[0]
	switch {
	case worst < largelyFrom:
		lead = "depends on " + what[1]
	case worst < almostFrom:
		lead = "is similar " + what[0]
	case worst < 1:
		lead = "is nearly the same " + what[0]
	}
	over := count(len(t.fractions(t.settings[0])), "fraction")
	if seeds > 1 {
		over += " and " + count(seeds, "seed")
	}
	return fmt.Sprintf("The ranking of the %d methods by %s %s: %s (Spearman's correlation of ranks, mean and standard error over %s).",
		len(t.names), t.metric, lead, strings.Join(parts, "; "), over)
}
