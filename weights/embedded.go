package weights

import (
	"embed"
	"fmt"
	"io/fs"
	"strings"

	"github.com/assay-xai/assay/internal/usage"
)

//go:embed embedded
var embeddedTree embed.FS

// embeddedPrefix marks weights that the program carries, as it marks data.
const embeddedPrefix = "embedded:"

// EmbeddedFile is a weights file that the program carries. weights/embedded
// has the command that made each.
type EmbeddedFile struct {
	// Path is what Open and --weights take: "embedded:mlp-digits".
	Path string
	Net  string
	// Columns is the number of inputs, for nets on columns; else 0.
	Columns int
	// Data is what it was trained on.
	Data    string
	Summary string
}

// Embedded lists the weights that the program carries.
func Embedded() []EmbeddedFile {
	return []EmbeddedFile{
		{"embedded:mlp-digits", "mlp", 64, "embedded:digits", "digits of 8x8 as 64 columns, 10 classes"},
		{"embedded:mlp-breast-cancer", "mlp", 30, "embedded:breast-cancer", "30 columns, standardised, 2 classes"},
		{"embedded:cnn3-digits", "cnn3", 0, "embedded:digits", "digits of 8x8, 10 classes"},
	}
}

// findEmbedded looks up by path.
func findEmbedded(path string) (EmbeddedFile, error) {
	var known []string
	for _, e := range Embedded() {
		if e.Path == path {
			return e, nil
		}
		known = append(known, e.Path)
	}
	return EmbeddedFile{}, usage.Errorf("weights: %s: want one of %s", path, strings.Join(known, ", "))
}

// embeddedFor returns what the program carries for a net that takes so many
// columns (0: not on columns, or not known).
func embeddedFor(net string, columns int) []EmbeddedFile {
	var out []EmbeddedFile
	for _, e := range Embedded() {
		if e.Net == net && (columns == 0 || e.Columns == columns) {
			out = append(out, e)
		}
	}
	return out
}

// readEmbedded is the content of an embedded file.
func readEmbedded(path string) ([]byte, error) {
	e, err := findEmbedded(path)
	if err != nil {
		return nil, err
	}
	name := "embedded/" + strings.TrimPrefix(e.Path, embeddedPrefix) + ".safetensors"
	b, err := fs.ReadFile(embeddedTree, name)
	if err != nil {
		return nil, fmt.Errorf("weights: %s: %w", path, err)
	}
	return b, nil
}
