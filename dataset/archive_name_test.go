package dataset

import (
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/assay-xai/assay/internal/usage"
)

// Gzipped data under a name that says nothing is taken for an archive; the
// error names the endings that other kinds are known by.
func TestGzipThatIsNoArchive(t *testing.T) {
	path := filepath.Join(t.TempDir(), "images.gz")
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, err := z.Write(append([]byte{0, 0, 8, 3, 0, 0, 0, 1, 0, 0, 0, 8, 0, 0, 0, 8}, make([]byte, 1024)...))
	require.NoError(t, err)
	require.NoError(t, z.Close())
	require.NoError(t, os.WriteFile(path, b.Bytes(), 0o666))
	_, err = Open(t.Context(), path, Options{})
	require.ErrorIs(t, err, usage.Err)
	require.ErrorContains(t, err, "idx3-ubyte.gz")
}
