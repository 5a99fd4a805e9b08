package dataset

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/assay-xai/assay/internal/usage"
)

func TestMapsAgainstNumPy(t *testing.T) {
	dir := filepath.Join("testdata", "maps")
	text, err := os.ReadFile(filepath.Join(dir, "expected.json"))
	require.NoError(t, err)
	var golden struct {
		Maps map[string]struct {
			Shape  []int
			Values []float64
		}
	}
	require.NoError(t, json.Unmarshal(text, &golden))
	m, err := OpenMaps(t.Context(), dir)
	require.NoError(t, err)
	defer m.Close()
	require.Len(t, m.IDs(), len(golden.Maps))
	require.Len(t, m.Hash, 64)
	for id, want := range golden.Maps {
		require.True(t, m.Has(id))
		values, shape, err := m.Read(id)
		require.NoError(t, err, id)
		require.Equal(t, want.Shape, shape, id)
		require.InDeltaSlice(t, want.Values, values, 1e-12, id)
	}
	one, err := OpenMaps(t.Context(), filepath.Join(dir, "0000.npz"))
	require.NoError(t, err)
	defer one.Close()
	require.Len(t, one.IDs(), 3)
	require.NotEqual(t, m.Hash, one.Hash)
	require.False(t, one.Has("000007"))
	_, _, err = one.Read("000007")
	require.ErrorIs(t, err, usage.Err)
	require.ErrorContains(t, err, "has none for 000007; it has a/0000.jpg, a/0001.jpg, ... (3)")
}

// npyFloats is an .npy of float64.
func npyFloats(shape string, values ...float64) []byte {
	header := "{'descr': '<f8', 'fortran_order': False, 'shape': " + shape + ", }"
	for (10+len(header)+1)%64 != 0 {
		header += " "
	}
	header += "\n"
	out := append([]byte("\x93NUMPY\x01\x00"), byte(len(header)), byte(len(header)>>8))
	out = append(out, header...)
	for _, v := range values {
		bits := math.Float64bits(v)
		for i := range 8 {
			out = append(out, byte(bits>>(8*i)))
		}
	}
	return out
}

// mapBytes is an archive of the members, in name order.
func mapBytes(t *testing.T, method uint16, members map[string][]byte) []byte {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, name := range slices.Sorted(maps.Keys(members)) {
		f, err := w.CreateHeader(&zip.FileHeader{Name: name, Method: method})
		require.NoError(t, err)
		_, err = f.Write(members[name])
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	return b.Bytes()
}

func TestMapsErrors(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, content []byte) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o777))
		require.NoError(t, os.WriteFile(path, content, 0o666))
		return path
	}
	ones := npyFloats("(2, 2)", 1, 2, 3, 4)
	for want, path := range map[string]string{
		"no such file":       filepath.Join(dir, "nowhere.npz"),
		"has no .npz files":  t.TempDir(),
		"is no .npz file":    write("text.npz", []byte("text")),
		"holds no arrays":    write("empty.npz", mapBytes(t, zip.Store, nil)),
		"is no array":        write("other.npz", mapBytes(t, zip.Store, map[string][]byte{"readme.txt": []byte("x")})),
		`image "x" is there`: filepath.Dir(write("twice/0.npz", mapBytes(t, zip.Store, map[string][]byte{"x.npy": ones}))),
	} {
		if filepath.Base(path) == "twice" {
			write("twice/1.npz", mapBytes(t, zip.Deflate, map[string][]byte{"x.npy": ones}))
		}
		_, err := OpenMaps(t.Context(), path)
		require.ErrorIs(t, err, usage.Err, want)
		require.ErrorContains(t, err, want)
	}
	bad := write("bad.npz", mapBytes(t, zip.Store, map[string][]byte{
		"nan.npy": npyFloats("(1, 2, 2)", 1, 2, math.NaN(), 4), "inf.npy": npyFloats("(2,)", math.Inf(1), 0),
		"four.npy": npyFloats("(1, 1, 1, 1)", 1), "none.npy": npyFloats("(0, 2)"), "scalar.npy": npyFloats("()", 1), "cut.npy": ones[:len(ones)-4],
	}))
	m, err := OpenMaps(t.Context(), bad)
	require.NoError(t, err)
	defer m.Close()
	for id, want := range map[string]string{
		"nan": "the value at [0 1 0] is not a number", "inf": "the value at [0] is not a number", "four": "want [H,W]", "none": "want [H,W]", "scalar": "want [H,W]", "cut": "cut off",
	} {
		_, _, err := m.Read(id)
		require.ErrorIs(t, err, usage.Err, id)
		require.ErrorContains(t, err, want, id)
	}
	require.True(t, slices.IsSorted(m.IDs()))
}
