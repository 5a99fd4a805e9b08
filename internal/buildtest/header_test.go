package buildtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Go rebuilds torchx for a changed header only if the header is in its folder:
// there it is a link.
func TestGoWatchesTheHeader(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "go", "list", "-f", "{{.HFiles}}", "./torchx")
	cmd.Dir = repository(t)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Equal(t, "[torchx.h]", strings.TrimSpace(string(out)))

	seen, err := os.ReadFile(filepath.Join(repository(t), "torchx", "torchx.h"))
	require.NoError(t, err)
	original, err := os.ReadFile(filepath.Join(repository(t), "csrc", "include", "torchx.h"))
	require.NoError(t, err)
	require.Equal(t, string(original), string(seen))
}

func TestOnlyTorchxUsesCgo(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "go", "list", "-f", "{{if .CgoFiles}}{{.ImportPath}}{{end}}", "./...")
	cmd.Dir = repository(t)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Equal(t, "github.com/assay-xai/assay/torchx", strings.TrimSpace(string(out)))
}
