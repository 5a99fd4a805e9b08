package report

import (
	"fmt"
	"slices"
	"strings"
)

// objectiveName says in words what is maximised.
func objectiveName(objective, scoreOn string) string {
	on := " by " + scoreWord(scoreOn)
	switch objective {
	case "le":
		return "sum of the LeRF curve" + on
	case "mo":
		return "minus the sum of the MoRF curve" + on
	case "le-mo":
		return "LeRF sum minus MoRF sum" + on
	}
	return objective + on
}

func traceFacts(r *run, groups []*group, stats []statistics) []fact {
	var out []fact
	images := len(r.byImage)
	things := "rows"
	if slices.ContainsFunc(groups, func(g *group) bool { return g.edge > 0 }) {
		things = "images"
	}
	out = append(out, fact{things, grouped(int64(images)), ""})
	if len(groups) == 1 {
		g, s := groups[0], stats[0]
		unit := "columns"
		if g.edge > 0 {
			unit = fmt.Sprintf("%d × %d", g.edge, g.edge)
		}
		name := "patches"
		if g.edge == 0 {
			name, unit = "columns", ""
		}
		out = append(out, fact{name, grouped(int64(g.features)), unit})
		note := fmt.Sprintf("at most %s", grouped(int64(g.features+1)))
		if g.scoreOn == "logit" {
			note = "by logit"
		} else if s.images > 1 {
			note = "95 %: " + value(s.value.Lo) + " to " + value(s.value.Hi)
		}
		name = "mean value"
		if s.images == 1 {
			name = "value"
		}
		out = append(out, fact{name, value(s.value.Mean), note})
	} else {
		out = append(out, fact{"settings", grouped(int64(len(groups))), "compared below"})
	}
	var forwards, evaluations int64
	secs := 0.0
	for _, s := range stats {
		forwards += s.rows
		evaluations += s.evaluations
		secs += s.seconds
	}
	saved := ""
	if evaluations > 0 && evaluations != forwards {
		saved = "for " + grouped(evaluations) + " evaluations"
	}
	out = append(out, fact{"forwards", grouped(forwards), saved})
	return append(out, fact{"time of searches", seconds(secs), ""})
}

// traceLede says what was measured, for somebody who has never seen it.
func (r *run) traceLede() []string {
	c := r.common
	what := "features"
	edges := 0
	for _, g := range r.groups {
		if g.edge > 0 {
			edges++
		}
	}
	things := plural(len(r.byImage), "row", "rows")
	switch {
	case edges == len(r.groups):
		what, things = "patches", plural(len(r.byImage), "image", "images")
		if e := c["edge"]; e != "" {
			what = e + " × " + e + " patches"
		}
	case edges == 0:
		what = "columns"
	}
	net, ask := "does "+c["net"], "the network was asked each time how sure it still is"
	if c["net"] == "" {
		net, ask = "do the networks", "each network was asked each time how sure it still is"
	}
	first := fmt.Sprintf("Which parts of an input %s rely on? For %s, the %s were deleted one after the other, and %s. ", net, things, what, ask)
	goal := "The search looked for the best order of deletion."
	switch c["objective"] {
	case "le":
		goal = "The search looked for the order that keeps the score up the longest while the least relevant go first."
	case "mo":
		goal = "The search looked for the order that makes the score fall the soonest when the most relevant go first."
	case "le-mo":
		goal = "The search looked for the order that keeps the score up when the least relevant go first, and makes it fall when the most relevant go first."
	}
	if c["method"] != "" || slices.Contains(r.varying, "method") {
		goal = "The orders are those of attribution methods, or of searches for the best order."
	}
	if c["solver"] == "order" {
		goal = "Nothing was searched for: the order is that of the start"
		if c["start"] == "random" {
			goal = "Nothing was searched for: the order is one at random"
		}
		goal += "."
	}
	second := ""
	if ref := c["reference"]; ref != "" {
		second = "Deleted " + strings.TrimLeft(what, "0123456789× ") + " " + referenceWords(ref, edges > 0) + ". "
	}
	switch t := c["target"]; t {
	case "predicted":
		second += "Tracked is the class that the network predicts for the unchanged input."
	case "label":
		second += "Tracked is the class of the label."
	case "":
	default:
		second += "Tracked is class " + t + "."
	}
	out := []string{first + goal}
	if second != "" {
		out = append(out, strings.TrimSpace(second))
	}
	return out
}

func referenceWords(spec string, images bool) string {
	name, args := parseSpec(spec)
	switch name {
	case "zero":
		if !images {
			return "become zero in the network's own units"
		}
		return "become zero in the network's own units, which for photographs is the data set's mean colour"
	case "mean":
		return "become the input's mean value"
	case "channel-mean":
		return "become the image's mean colour"
	case "patch-mean":
		return "become their own mean"
	case "blur":
		return "are blurred"
	case "uniform":
		return "become noise"
	case "constant":
		return "become one grey level (" + formatTick(args.number("value", 0)) + ")"
	case "image":
		return "become those of another image"
	}
	return "are replaced by the reference " + spec
}

// outputWord begins a sentence with the output that a score is on.
func outputWord(scoreOn string) string {
	if scoreOn == logitOutput {
		return "Logit"
	}
	return "Probability"
}
