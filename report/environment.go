package report

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// environmentNames are the facts of env.json that most readers ask for, in
// order; others follow folded away.
var environmentNames = []string{"device", "gpu", "cuda.devices", "cpu", "cpus", "threads", "memoryTotal", "torch", "libtorch",
	"libtorch.version", "precision", "assay", "os"}

// environment lists what env.json says, nested names joined by dots and
// "runtime" left out: first what most readers ask for, then the rest.
func (r *run) environment() (first, rest []fact) {
	var walk func(prefix string, v any)
	walk = func(prefix string, v any) {
		m, ok := v.(map[string]any)
		if !ok {
			if text := environmentValue(prefix, v); text != "" {
				if slices.Contains(environmentNames, prefix) {
					first = append(first, fact{Name: prefix, Value: text})
				} else {
					rest = append(rest, fact{Name: prefix, Value: text})
				}
			}
			return
		}
		for _, k := range slices.Sorted(maps.Keys(m)) {
			name := k
			if prefix != "" && prefix != "runtime" {
				name = prefix + "." + k
			}
			walk(name, m[k])
		}
	}
	walk("", map[string]any(r.env))
	slices.SortStableFunc(first, func(a, b fact) int {
		return cmp.Compare(slices.Index(environmentNames, a.Name), slices.Index(environmentNames, b.Name))
	})
	return first, rest
}

// environmentValue is "" for what says nothing.
func environmentValue(name string, v any) string {
	if list, ok := v.([]any); ok {
		parts := make([]string, len(list))
		for i, x := range list {
			parts[i] = plain(x)
		}
		return strings.Join(parts, ", ")
	}
	if bytes, ok := v.(float64); ok && strings.HasPrefix(name, "memory") {
		return decimal(bytes/(1<<30), 1) + " GiB"
	}
	return plain(v)
}
