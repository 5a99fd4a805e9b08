// Package recipes carries plans that reproduce tables and figures of papers,
// with the published numbers, so that an installed program finds them by name.
// README.md says what they need and how long they take.
package recipes

import (
	"embed"
	"path"
	"strings"
)

//go:embed *.yaml
var files embed.FS

const suffix = ".yaml"

// Names lists the recipes in name order, without .yaml.
func Names() []string {
	entries, err := files.ReadDir(".")
	if err != nil { // the folder is part of the program
		return nil
	}
	var out []string
	for _, e := range entries {
		out = append(out, strings.TrimSuffix(e.Name(), suffix))
	}
	return out
}

// Text is the plan of a recipe by its name; ok is false where there is none.
func Text(name string) (text []byte, ok bool) {
	text, err := files.ReadFile(path.Base(name) + suffix)
	return text, err == nil && path.Base(name) == name
}
