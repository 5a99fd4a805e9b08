// Package testdata carries the small data that the program brings along:
// photographs, tables and lists of class names. embedded/SOURCES.md says where
// each comes from and under which terms.
package testdata

import (
	"embed"
	"io/fs"
)

//go:embed embedded
var tree embed.FS

// Embedded is the folder embedded/.
func Embedded() fs.FS {
	sub, err := fs.Sub(tree, "embedded")
	if err != nil { // only for a malformed constant above
		return tree
	}
	return sub
}
