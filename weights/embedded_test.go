package weights

import (
	"io/fs"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/assay-xai/assay/internal/usage"
)

func TestEmbeddedWeights(t *testing.T) {
	readme, err := os.ReadFile("embedded/README.md")
	require.NoError(t, err)
	files, err := fs.Glob(embeddedTree, "embedded/*.safetensors")
	require.NoError(t, err)
	require.Len(t, files, len(Embedded()))
	for _, e := range Embedded() {
		sd, err := Open(e.Path)
		require.NoError(t, err)
		require.Equal(t, e.Net, sd.Metadata["net"])
		require.NotEmpty(t, sd.Metadata["preset"])
		columns := ""
		if e.Columns > 0 {
			columns = strconv.Itoa(e.Columns)
		}
		require.Equal(t, columns, sd.Metadata["features"])
		require.Contains(t, string(readme), "`"+strings.TrimPrefix(e.Path, "embedded:")+".safetensors` | "+e.Net+" | "+e.Data)
	}
	_, err = Open("embedded:mlp-digit")
	require.ErrorIs(t, err, usage.Err)
	require.ErrorContains(t, err, "embedded:mlp-digits")
}

func TestResolveEmbedded(t *testing.T) {
	for _, c := range []struct {
		net, arg string
		columns  int
		want     string
		wrong    string
	}{
		{"mlp", "", 64, "embedded:mlp-digits", ""},
		{"mlp", "", 30, "embedded:mlp-breast-cancer", ""},
		{"cnn3", "", 0, "embedded:cnn3-digits", ""},
		{"mlp", "embedded:mlp-digits", 64, "embedded:mlp-digits", ""},
		{"mlp", "", 13, "", "no weights of mlp on 13 columns are published: give a file with --weights, or one of embedded:mlp-digits ("},
		{"mlp", "", 0, "", "embedded:mlp-breast-cancer ("},
		{"cnn3", "embedded:mlp-digits", 0, "", "are for net mlp, not cnn3"},
		{"mlp", "embedded:none", 0, "", "want one of embedded:mlp-digits"},
		{"logistic", "", 64, "", "no weights of logistic are published: give a file with --weights"},
	} {
		got, err := ResolveFor(c.net, c.arg, c.columns)
		if c.wrong == "" {
			require.NoError(t, err)
			require.Equal(t, c.want, got)
			continue
		}
		require.ErrorIs(t, err, usage.Err)
		require.ErrorContains(t, err, c.wrong)
	}
}
