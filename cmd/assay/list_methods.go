package main

import (
	"fmt"
	"strings"

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
