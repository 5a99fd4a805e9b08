package dataset

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The files of testdata are NumPy's (scripts/golden_dataset.py): element i of
// a float array is i/4, of an integer array i modulo 256.
func TestArraysOfNumPy(t *testing.T) {
	for _, c := range []struct {
		file  string
		rows  int
		shape []int
		step  float32
	}{
		{"f4-nchw.npy", 3, []int{2, 2, 2}, .25},
		{"f8-nf.npy", 4, []int{5}, .25},
		{"f8-big-endian.npy", 4, []int{5}, .25},
		{"u1-nhw.npy", 3, []int{1, 4, 4}, 1},
		{"i8.npy", 4, []int{2}, 1},
		{"f4-nf.npy.gz", 2, []int{3}, .25},
		{"xy.npz", 6, []int{3}, .25},
		{"splits.npz", 2, []int{2}, .25},
	} {
		t.Run(c.file, func(t *testing.T) {
			set := open(t, filepath.Join("testdata", c.file), Options{})
			require.Equal(t, Arrays, set.Kind)
			require.Equal(t, c.rows, set.Len())
			next := float32(0)
			for i, item := range set.Items() {
				require.Equal(t, fmt.Sprintf("%06d", i), item.ID)
				values, shape, err := set.Values(i)
				require.NoError(t, err)
				require.Equal(t, c.shape, shape)
				for _, v := range values {
					require.Equal(t, next, v)
					next += c.step
				}
			}
			_, err := set.Read(context.Background(), 0)
			require.ErrorContains(t, err, "arrays")
			_, err = set.ContentHash(context.Background())
			require.NoError(t, err)
		})
	}
}

func TestArrayLabelsAndSplits(t *testing.T) {
	xy := filepath.Join("testdata", "xy.npz")
	set := open(t, xy, Options{Limit: 4})
	require.Equal(t, []int{0, 1, 2, 0}, classes(set))
	require.True(t, set.HasLabels)
	_, err := Open(context.Background(), xy, Options{Classes: 2})
	requireUsage(t, err, "xy.npz: y.npy: row 000002", "class 2", "0..1")
	_, err = Open(context.Background(), xy, Options{Split: "test"})
	requireUsage(t, err, "no splits")

	splits := filepath.Join("testdata", "splits.npz")
	set = open(t, splits, Options{})
	require.Equal(t, "test", set.Split)
	require.Equal(t, []string{"test", "train"}, set.Splits)
	require.Equal(t, []int{1, 0}, classes(set))
	set = open(t, splits, Options{Split: "train"})
	require.Equal(t, []int{0, 1, 0}, classes(set))
	_, err = Open(context.Background(), splits, Options{Split: "val"})
	requireUsage(t, err, "test, train")

	dir := t.TempDir()
	copyTo := func(from, to string) string {
		b, err := os.ReadFile(filepath.Join("testdata", from))
		require.NoError(t, err)
		return writeFile(t, filepath.Join(dir, to), b)
	}
	x := copyTo("f8-nf.npy", "X_test.npy")
	set = open(t, x, Options{})
	require.False(t, set.HasLabels)
	require.Equal(t, -1, set.Items()[0].Class)
	text := writeFile(t, filepath.Join(dir, "labels"), []byte("000000 3\n000001 2\n000002 1\n000003 0\n"))
	require.Equal(t, []int{3, 2, 1, 0}, classes(open(t, x, Options{Labels: text})))
	_, err = Open(context.Background(), x, Options{Labels: filepath.Join("testdata", "flat.npy")})
	requireUsage(t, err, "7 labels for 4 rows")
	copyTo("f8-nf.npy", "y_test.npy")
	_, err = Open(context.Background(), x, Options{})
	requireUsage(t, err, "y_test.npy", "[4 5]")
	require.NoError(t, os.Remove(filepath.Join(dir, "y_test.npy")))
	labels := npyBytes("<i8", "(4,)", "\x01\x00\x00\x00\x00\x00\x00\x00"+strings.Repeat("\x00", 24))
	writeFile(t, filepath.Join(dir, "y_test.npy"), labels)
	writeFile(t, filepath.Join(dir, "y_train.npy"), []byte("another split's"))
	require.Equal(t, []int{1, 0, 0, 0}, classes(open(t, x, Options{})))
}

// npyBytes is an .npy of version 1.0 as NumPy's documentation of the format
// (numpy.lib.format) describes it.
func npyBytes(descr, shape, data string) []byte {
	header := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': %s, }", descr, shape)
	header += strings.Repeat(" ", 63-(10+len(header))%64) + "\n"
	return []byte("\x93NUMPY\x01\x00" + string([]byte{byte(len(header)), byte(len(header) >> 8)}) + header + data)
}

func TestBadArrays(t *testing.T) {
	dir := t.TempDir()
	whole, err := os.ReadFile(filepath.Join("testdata", "f8-nf.npy"))
	require.NoError(t, err)
	npz, err := os.ReadFile(filepath.Join("testdata", "splits.npz"))
	require.NoError(t, err)
	for _, c := range []struct {
		name    string
		content []byte
		want    string
	}{
		{"empty.npy", nil, "no .npy file"},
		{"text.npy", []byte("hello, this is a text"), "no .npy file"},
		{"cut.npy", whole[:len(whole)-1], "shape [4 5] needs more"},
		{"header.npy", whole[:40], "cut off"},
		{"huge.npy", npyBytes("<f4", "(4000000000, 4000000000, 4000000000)", ""), "needs more than the 0 bytes"},
		{"zero-huge.npy", npyBytes("<f4", "(0, 4000000000, 4000000000)", ""), "want [N,F]"},
		{"minus.npy", npyBytes("<f4", "(-1, 2)", "12345678"), "[-1 2]"},
		{"object.npy", npyBytes("|O", "(1, 2)", "12345678"), `"|O"`},
		{"dict.npy", []byte("\x93NUMPY\x01\x00\x10\x00{'descr': '<f4'}\n"), "no .npy file"},
		{"cut.npz", npz[:len(npz)-30], "no .npz file"},
		{"cut.npy.gz", []byte("\x1f\x8b\x08"), "gzip"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := writeFile(t, filepath.Join(dir, c.name), c.content)
			_, err := Open(context.Background(), path, Options{})
			requireUsage(t, err, path, c.want)
		})
	}
	for file, want := range map[string]string{
		"f2.npy":      `"<f2"`,
		"scalar.npy":  "shape []",
		"flat.npy":    "shape [7]",
		"fortran.npy": "Fortran",
		"other.npz":   "weights",
	} {
		_, err := Open(context.Background(), filepath.Join("testdata", file), Options{})
		requireUsage(t, err, file, want)
	}
	path := writeFile(t, filepath.Join(dir, "nan.npy"), npyBytes("<f4", "(1, 2)", "\x00\x00\x00\x00\x00\x00\xc0\x7f"))
	_, _, err = open(t, path, Options{}).Values(0)
	requireUsage(t, err, "000000", "value 1 is NaN")
}
