package orchestrate

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// GivenLegend says of which paths given maps are whose names alone do not: those with
// a hash, because other maps are called the same. A line each, by name.
func (r *Resolved) GivenLegend() []string {
	var out []string
	for _, label := range sortedKeys(r.files) {
		g, ok := r.files[label].(*givenMaps)
		compared := slices.ContainsFunc(r.Points, func(p Params) bool { return p.Text(attributionsKey) == label })
		if ok && compared && r.givenName(label) == label {
			out = append(out, label+": "+nearPath(g.Path))
		}
	}
	return out
}

// nearPath is a path as it is seen from here, whole where it lies elsewhere.
func nearPath(path string) string {
	here, err := os.Getwd()
	if err != nil {
		return path
	}
	if near, err := filepath.Rel(here, path); err == nil && filepath.IsLocal(near) {
		return near
	}
	return path
}

// chunkOf says that a file is one of those that an explain run writes into a folder
// of maps, whose index is then its own as well.
func chunkOf(path string) bool {
	name, isMaps := strings.CutSuffix(filepath.Base(path), ".npz")
	return isMaps && len(name) >= 4 && strings.Trim(name, "0123456789") == ""
}
