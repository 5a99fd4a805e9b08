package aaenv

import (
	"go/parser"
	"go/token"
	"os"
	"sort"
	"testing"

	"github.com/stretchr/testify/require"
)

// The two conditions under which Go initialises this package before gotorch.
func TestRunsBeforeGotorch(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "aaenv.go", nil, parser.ImportsOnly)
	require.NoError(t, err)
	require.Len(t, file.Imports, 1, "another import could be initialised after gotorch")
	require.Equal(t, `"os"`, file.Imports[0].Path.Value)

	mod, err := os.ReadFile("../../go.mod")
	require.NoError(t, err)
	require.Contains(t, string(mod), "module github.com/assay-xai/assay\n")
	require.True(t, sort.StringsAreSorted([]string{
		"github.com/assay-xai/assay/internal/aaenv", "github.com/wangkuiyi/gotorch",
	}))
}

func TestDisarmAndRestore(t *testing.T) {
	tests := []struct {
		name     string
		omp, mkl string
		ours     bool
		during   string
	}{
		{"nothing set: a placeholder, taken back", "", "", true, "1"},
		{"the user's OMP_NUM_THREADS stays", "3", "", false, "3"},
		{"the user's OMP_NUM_THREADS stays even if it looks like ours", "1", "", false, "1"},
		{"the user's MKL_NUM_THREADS is enough", "", "2", false, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Setenv(name, test.omp)
			t.Setenv(other, test.mkl)

			disarmed = disarm()
			require.Equal(t, test.ours, disarmed)
			require.Equal(t, test.during, os.Getenv(name))

			Restore()
			require.Equal(t, test.omp, os.Getenv(name))
			require.Equal(t, test.mkl, os.Getenv(other))
		})
	}
}
