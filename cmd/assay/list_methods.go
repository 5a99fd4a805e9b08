package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/assay-xai/assay/internal/usage"
	"github.com/assay-xai/assay/orchestrate"
)

// printMethods shows methods family by family, in the catalogue's order, with what
// a net must offer and the parameters with their defaults.
func printMethods(env environment, lines []listed) {
	t := table{header: []string{"family", "method", "what it is", "needs", "parameters", "source"}}
	for _, l := range lines {
		needs := l.Needs
		switch {
		case needs == "" && l.Base != "":
			needs = "as " + l.Base // or what is given in its place
		case needs == "":
			needs = "nothing"
		}
		t.add(l.Family, l.ID, l.Summary, needs, defaults(l), l.Paper)
	}
	t.print(env.stdout)
}

// oneOf is the line of a list that has an id.
func oneOf(what, id string, lines []listed) ([]listed, error) {
	i := slices.IndexFunc(lines, func(l listed) bool { return l.ID == id })
	if i < 0 {
		var ids []string
		for _, l := range lines {
			ids = append(ids, l.ID)
		}
		return nil, usage.Errorf("list %s: %q: %s", what, id, orchestrate.DidYouMean(id, ids))
	}
	return lines[i : i+1], nil
}

// printEntry shows a method or an imputer with what its parameters mean.
func printEntry(env environment, l listed) {
	fmt.Fprintf(env.stdout, "%s: %s\n", l.ID, l.Summary)
	if l.Paper != "" {
		fmt.Fprintf(env.stdout, "source: %s\n", l.Paper)
	}
	if l.Base != "" {
		fmt.Fprintf(env.stdout, "made of: another method, which stands first in parentheses; by default %s\n", l.Base)
	}
	if l.Generator {
		fmt.Fprintf(env.stdout, "trained first: assay train --imputer %s --data DATA --out %[1]s, then --generator %[1]s/%s (docs/training.md, docs/road.md)\n", l.ID, orchestrate.BestFile)
	}
	parameters, _ := l.Parameters.([]orchestrate.EntryParameter)
	if len(parameters) == 0 {
		fmt.Fprintln(env.stdout, "parameters: none")
		return
	}
	fmt.Fprintf(env.stdout, "parameters, given as %s(name=value):\n", l.ID)
	t := table{header: []string{"name", "type", "default", "values", "what it is"}}
	for _, p := range parameters {
		t.add(p.Name, p.Type, fmt.Sprint(orDash(p.Default)), valuesOfParameter(p), p.Summary)
	}
	t.print(env.stdout)
}

// valuesOfParameter says what a parameter may be.
func valuesOfParameter(p orchestrate.EntryParameter) string {
	switch {
	case len(p.Choices) > 0:
		return strings.Join(p.Choices, ", ")
	case p.Minimum != nil && p.Maximum != nil:
		return fmt.Sprintf("%v to %v", *p.Minimum, *p.Maximum)
	case p.Minimum != nil:
		return fmt.Sprintf("from %v", *p.Minimum)
	case p.Maximum != nil:
		return fmt.Sprintf("to %v", *p.Maximum)
	}
	return "-"
}

// defaults writes a method's base and parameters as they would be given.
func defaults(l listed) string {
	var parts []string
	if l.Base != "" {
		parts = append(parts, l.Base)
	}
	parameters, _ := l.Parameters.([]orchestrate.EntryParameter)
	for _, p := range parameters {
		value := p.Default
		if value == nil || value == "" {
			value = "..." // the net's or the method's own
		}
		parts = append(parts, fmt.Sprintf("%s=%v", p.Name, value))
	}
	if len(parts) == 0 {
		return "-"
	}
	return strings.Join(parts, ", ")
}
