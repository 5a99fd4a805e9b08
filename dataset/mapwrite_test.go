package dataset

import (
	"bytes"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/assay-xai/assay/internal/usage"
)

// Values by NumPy: abs(x).mean(0) and so on of x [3,2,2].
func TestReductions(t *testing.T) {
	values := []float32{6, 2, 0, -5, -4, -9, -8, -9, -6, 5, 2, 7}
	for id, want := range map[string][]float32{
		"abs-mean": {16. / 3, 16. / 3, 10. / 3, 7}, "abs-max": {6, 9, 8, 9}, "abs-sum": {16, 16, 10, 21},
		"sum": {-4, -2, -6, -7}, "square-sum": {88, 110, 68, 155}, "none": values, "": values,
	} {
		r, err := MapReductionByID(id)
		require.NoError(t, err)
		got, shape := r.Reduce(values, []int{3, 2, 2})
		require.Equal(t, want, got, id)
		if len(got) == 4 {
			require.Equal(t, []int{1, 2, 2}, shape)
		}
		if !r.Signed {
			require.NotContains(t, id, "none")
			column, shape := r.Reduce([]float32{-3, 2}, []int{2})
			require.Equal(t, []int{2}, shape, "a row of a table has no channels")
			require.GreaterOrEqual(t, column[0], float32(3))
		}
	}
	sum, err := MapReductionByID("sum")
	require.NoError(t, err)
	got, shape := sum.Reduce([]float32{1, float32(math.NaN()), 2, 3}, []int{2, 1, 2})
	require.Equal(t, []int{1, 1, 2}, shape)
	require.Equal(t, float32(3), got[0])
	require.True(t, math.IsNaN(float64(got[1])), "no number stays none")
	plane, shape := sum.Reduce([]float32{-1, 2}, []int{1, 2})
	require.Equal(t, []int{1, 1, 2}, shape)
	require.Equal(t, []float32{-1, 2}, plane)
	_, err = MapReductionByID("mean")
	require.ErrorIs(t, err, usage.Err)
	require.ErrorContains(t, err, "want one of none, abs-mean")
}

// Heads as numpy.save (NumPy 2) writes them.
func TestFloat32Header(t *testing.T) {
	for _, c := range []struct {
		shape []int
		list  string
	}{{[]int{3, 4}, "(3, 4)"}, {[]int{7}, "(7,)"}, {[]int{2, 3, 4, 5}, "(2, 3, 4, 5)"}} {
		head := Float32Header(c.shape)
		require.Len(t, head, 128)
		require.Equal(t, "\x93NUMPY\x01\x00v\x00{'descr': '<f4', 'fortran_order': False, 'shape': "+c.list+", }", strings.TrimRight(string(head), " \n"))
		require.Equal(t, byte('\n'), head[127])
	}
}

func TestMapsThatAreWrittenAreRead(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, add func(w *MapWriter) error) {
		var b bytes.Buffer
		w := NewMapWriter(&b)
		require.NoError(t, add(w))
		require.NoError(t, w.Close())
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), b.Bytes(), 0o666))
	}
	first := []float32{1, -2, float32(math.NaN()), float32(math.Inf(1)), 5, 6}
	write("0000.npz", func(w *MapWriter) error { return w.Add("a/ü 1.png", first, []int{1, 2, 3}) })
	write("0001.npz", func(w *MapWriter) error { return w.Add("b.png", []float32{3, 4}, []int{2, 1, 1}) })
	all, err := OpenMaps(t.Context(), dir)
	require.NoError(t, err)
	defer all.Close()
	quick, err := BrowseMaps(dir)
	require.NoError(t, err)
	defer quick.Close()
	require.Empty(t, quick.Hash)
	require.Len(t, all.Hash, 64)
	require.Equal(t, []string{"a/ü 1.png", "b.png"}, quick.IDs())
	for _, m := range []*Maps{all, quick} {
		values, shape, err := m.Raw("a/ü 1.png")
		require.NoError(t, err)
		require.Equal(t, []int{1, 2, 3}, shape)
		require.Equal(t, FloatBytes(first), FloatBytes(values), "to the bit")
		_, _, err = m.Read("a/ü 1.png")
		require.ErrorContains(t, err, "not a number")
		_, _, err = m.Raw("c")
		require.ErrorIs(t, err, usage.Err)
	}
	// A copy is the same archive.
	write("copy", func(w *MapWriter) error { return w.Copy(quick, "b.png") })
	a, err := os.ReadFile(filepath.Join(dir, "0001.npz"))
	require.NoError(t, err)
	b, err := os.ReadFile(filepath.Join(dir, "copy"))
	require.NoError(t, err)
	require.Equal(t, a, b)

	w := NewMapWriter(&bytes.Buffer{})
	require.ErrorContains(t, w.Add("x", first, []int{2, 2}), "6 values for shape [2 2]")
	require.ErrorIs(t, w.Copy(quick, "nobody"), usage.Err)
}

func TestMapFolders(t *testing.T) {
	root := t.TempDir()
	put := func(name, text string) {
		path := filepath.Join(root, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o777))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o666))
	}
	put("maps/net/gradient/index.json", `{"method": "gradient", "seed": 3, "shape": [1, 8, 8]}`)
	put("maps/cam/index.json", `{"method": "cam(layer=x)"}`)
	put("maps/.parts/cam/index.json", `{"method": "hidden"}`)
	put("images/index.json", `{"a.png": "0000.png"}`)
	found, err := FindMaps(root)
	require.NoError(t, err)
	require.Len(t, found, 2)
	require.Equal(t, "cam(layer=x)", found[0].Method)
	require.Equal(t, MapFolder{filepath.Join(root, "maps/net/gradient"), MapIndex{Method: "gradient", Seed: 3, Shape: []int{1, 8, 8}}}, found[1])
	_, err = ReadMapIndex(root)
	require.ErrorIs(t, err, fs.ErrNotExist)
	_, err = OpenMaps(t.Context(), filepath.Join(root, "maps"))
	require.ErrorIs(t, err, usage.Err)
	require.ErrorContains(t, err, "2 folders below it have: want one of them, for example "+filepath.Join(root, "maps/cam"))
	put("maps/cam/index.json", `[`)
	_, err = FindMaps(root)
	require.ErrorIs(t, err, usage.Err)
}
