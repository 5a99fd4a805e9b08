package buildtest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/assay-xai/assay/internal/device"
)

// docs/explain.md has every method of the catalogue but the controls.
func TestTheDocsNameEveryMethod(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "explain.md"))
	require.NoError(t, err)
	b, err := device.Open("cpu", 1)
	require.NoError(t, err)
	defer b.Close()
	catalogue, err := b.Catalogue(t.Context())
	require.NoError(t, err)
	require.NotEmpty(t, catalogue.Methods)
	for _, m := range catalogue.Methods {
		if m.Family != "control" {
			require.True(t, strings.Contains(string(text), "`"+m.ID+"`") || strings.Contains(string(text), "`"+m.ID+"(M)`"), m.ID)
		}
	}
}
