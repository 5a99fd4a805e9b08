package orchestrate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// alike says in words what a correlation of rankings comes to: for readers, no test.
func alike(v float64) string {
	switch {
	case v >= agreeFrom:
		return "agree"
	case v >= mostlyFrom:
		return "mostly agree"
	case v >= hardlyFrom:
		return "hardly agree"
	case v > -hardlyFrom:
		return "do not agree"
	}
	return "disagree"
}

const (
	agreeFrom  = .8
	mostlyFrom = .5
	hardlyFrom = .2
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

// sentence speaks of settings that differ in one thing: of the least and the most alike
// of them. All are in ConsistencyCSVFile.
func (t *rankTable) sentence(differs string, list []SettingAgreement, seeds int) string {
	what := map[string][2]string{
		orderKey:   {"whichever pixels are removed first", "which pixels are removed first"},
		imputerKey: {"whatever removed pixels become", "what removed pixels become"},
	}[differs]
	subject := fmt.Sprintf("The ranking of the %d methods by %s ", len(t.names), t.metric)
	defined := slices.DeleteFunc(slices.Clone(list), func(a SettingAgreement) bool { return a.Spearman.Mean == nil })
	if len(defined) == 0 {
		return subject + "cannot be compared by " + what[1] + ": at every fraction one of two settings ranks all methods alike."
	}
	slices.SortStableFunc(defined, func(a, b SettingAgreement) int { return cmp.Compare(*a.Spearman.Mean, *b.Spearman.Mean) })
	least, most := defined[0], defined[len(defined)-1]
	lead := "depends on " + what[1]
	switch worst := *least.Spearman.Mean; {
	case worst >= 1:
		lead = "is the same " + what[0]
	case worst >= agreeFrom:
		lead = "is much the same " + what[0]
	case worst >= mostlyFrom:
		lead = "is similar " + what[0]
	}
	over := count(len(t.informative(t.settings[0])), "fraction")
	if seeds > 1 {
		over += " and " + count(seeds, "seed")
	}
	note := "Spearman's correlation of ranks, mean and standard error over " + over
	if len(list) == 1 {
		return fmt.Sprintf("%s%s: %s (%s).", subject, lead, least.words(differs), note)
	}
	if n := len(list) - len(defined); n > 0 {
		note += fmt.Sprintf("; %d of %s undefined", n, count(len(list), "pair"))
	}
	if len(defined) == 1 {
		return fmt.Sprintf("%s%s: %s (%s; see %s).", subject, lead, least.words(differs), note, ConsistencyCSVFile)
	}
	return fmt.Sprintf("%s%s: least alike %s, most alike %s (%s; all %s in %s).",
		subject, lead, least.words(differs), most.words(differs), note, count(len(list), "pair"), ConsistencyCSVFile)
}

// words name what two settings differ in, where, and how alike they are.
func (a SettingAgreement) words(differs string) string {
	where, x, y := "with "+a.A.Imputer, a.A.Order, a.B.Order
	if differs == imputerKey {
		where, x, y = "in "+a.A.Order, a.A.Imputer, a.B.Imputer
	}
	number := fmt.Sprintf("%+.2f", *a.Spearman.Mean)
	if a.Spearman.Error != nil {
		number += fmt.Sprintf(" ± %.2f", *a.Spearman.Error)
	}
	if a.Undefined > 0 { // one of the two ranks all alike
		number += fmt.Sprintf(", defined in %d of %d", a.Repeats, a.Repeats+a.Undefined)
	}
	return fmt.Sprintf("%s %s and %s %s (%s)", where, x, y, alike(*a.Spearman.Mean), number)
}
