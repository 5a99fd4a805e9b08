package report

import (
	"slices"
	"strings"
)

// givenLede says of which paths given maps are that are called NAME#HASH, because
// others have the same name.
func (r *run) givenLede() []string {
	named := func(label string) bool {
		is := func(name string) bool { return name == label || strings.HasPrefix(name, label+" ") }
		if r.summary == nil {
			return slices.ContainsFunc(r.groups, func(g *group) bool { return g.params["attributions"] == label })
		}
		return slices.ContainsFunc(r.summary, func(row []string) bool { return slices.ContainsFunc(row, is) })
	}
	var lines []string
	for _, label := range sortedNames(r.plan.Files) {
		if named(label) {
			lines = append(lines, label+" is "+r.plan.Files[label])
		}
	}
	if len(lines) == 0 {
		return nil
	}
	return []string{"Maps that were given: " + strings.Join(lines, "; ") + "."}
}

func sortedNames(files map[string]string) []string {
	var out []string
	for name := range files {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}
