package orchestrate

import (
	"slices"
	"strings"
)

// Nearest lists the names that name was probably meant to be, best first, at
// most three: a typing error or two away, or beginning with it.
func Nearest(name string, names []string) []string {
	type near struct {
		name     string
		distance int
	}
	var found []near
	lower := strings.ToLower(name)
	for _, n := range names {
		candidate := strings.ToLower(n)
		d := editDistance(lower, candidate)
		switch {
		case d <= max(1, len(lower)/3):
			found = append(found, near{n, d})
		case len(lower) >= 2 && strings.HasPrefix(candidate, lower):
			found = append(found, near{n, 100 + d})
		}
	}
	slices.SortStableFunc(found, func(a, b near) int { return a.distance - b.distance })
	var out []string
	for _, f := range found[:min(3, len(found))] {
		out = append(out, f.name)
	}
	return out
}

// DidYouMean says what would be right instead of an unknown name: the nearest
// names first, then all of them unless there are many.
func DidYouMean(name string, names []string) string {
	near := Nearest(name, names)
	switch {
	case len(near) > 0 && len(names) > 12:
		return "did you mean " + strings.Join(near, " or ") + "?"
	case len(near) > 0:
		return "did you mean " + strings.Join(near, " or ") + "? want one of " + strings.Join(names, ", ")
	case len(names) == 0:
		return "there is none"
	}
	return "want one of " + strings.Join(names, ", ")
}

// editDistance counts insertions, deletions, substitutions and swaps of
// neighbours that make b of a (optimal string alignment).
func editDistance(a, b string) int {
	before, row := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		next := make([]int, len(b)+1)
		next[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			next[j+1] = min(row[j]+cost, row[j+1]+1, next[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				next[j+1] = min(next[j+1], before[j-1]+1)
			}
		}
		before, row = row, next
	}
	return row[len(b)]
}
