package orchestrate

import (
	"fmt"
	"slices"
	"strings"
)

// From which correlation on two rankings are called alike, and similar: words for
// readers, no test.
const (
	alikeFrom   = .9
	similarFrom = .5
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

// sentence speaks of settings that differ in one thing, grouped by how alike they rank.
func (t *rankTable) sentence(differs string, list []SettingAgreement, seeds int) string {
	words := []struct {
		is   func(v float64) bool
		text string
	}{
		{func(v float64) bool { return v >= alikeFrom }, "nearly the same"},
		{func(v float64) bool { return v >= similarFrom && v < alikeFrom }, "similar"},
		{func(v float64) bool { return v < similarFrom }, ""},
	}
	between := map[string]string{orderKey: "whether the most or the least relevant pixels are removed first", imputerKey: "what removed pixels become"}[differs]
	var parts []string
	for _, w := range words {
		var named []string
		same := w.text != ""
		for _, a := range list {
			if a.Spearman.Mean == nil || !w.is(*a.Spearman.Mean) {
				continue
			}
			same = same && *a.Spearman.Mean == 1
			named = append(named, a.phrase(differs))
		}
		if named == nil {
			continue
		}
		switch {
		case same:
			parts = append(parts, "is the same "+strings.Join(named, ", and "))
		case w.text != "":
			parts = append(parts, "is "+w.text+" "+strings.Join(named, ", and "))
		default:
			parts = append(parts, "depends on "+between+" "+strings.Join(named, ", and "))
		}
	}
	var undefined []string
	for _, a := range list {
		if a.Spearman.Mean == nil {
			undefined = append(undefined, a.pair(differs))
		}
	}
	if undefined != nil {
		parts = append(parts, "is undefined "+strings.Join(undefined, ", and ")+", where all methods are alike")
	}
	over := count(len(t.fractions(t.settings[0])), "fraction")
	if seeds > 1 {
		over += " and " + count(seeds, "seed")
	}
	return fmt.Sprintf("The order of the %d methods by %s %s (Spearman's correlation of ranks, mean and standard error over %s).", len(t.names), t.metric, strings.Join(parts, "; it "), over)
}

// pair names the two settings.
func (a SettingAgreement) pair(differs string) string {
	if differs == orderKey {
		return "between " + a.A.Order + " and " + a.B.Order + " with " + a.A.Imputer
	}
	return "between " + a.A.Imputer + " and " + a.B.Imputer + " in " + a.A.Order
}

func (a SettingAgreement) phrase(differs string) string {
	text := fmt.Sprintf("%s (%.2f", a.pair(differs), *a.Spearman.Mean)
	if a.Spearman.Error != nil {
		text += fmt.Sprintf(" ± %.2f", *a.Spearman.Error)
	}
	return text + ")"
}
