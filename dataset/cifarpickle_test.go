package dataset

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Batches of every protocol that Python has written, keys in str and bytes,
// arrays in C and Fortran order (scripts/golden_dataset.py).
func TestCIFARPickles(t *testing.T) {
	shape := []int{3, 32, 32}
	folder := unpacked(t, "cifar-10-python.tar.gz")
	paths := repacked(t, folder)
	paths["published"] = "testdata/cifar-10-python.tar.gz"
	for kind, path := range paths {
		t.Run(kind, func(t *testing.T) {
			set := open(t, path, Options{})
			require.Equal(t, "test", set.Split)
			require.Equal(t, ClassNames("cifar10"), set.ClassNames)
			require.Equal(t, []int{1, 4, 7}, classes(set))
			requirePixels(t, set, shape, upTo(3))
			set = open(t, path, Options{Split: "train"})
			require.Empty(t, set.Warnings)
			require.Equal(t, []int{7, 0, 3, 6, 9, 2, 5, 8, 1, 4}, classes(set))
			requirePixels(t, set, shape, upTo(12)[2:])
		})
	}
	for _, name := range []string{"data_batch_1", "data_batch_4", "test_batch"} {
		set := open(t, filepath.Join(folder, name), Options{})
		require.Empty(t, set.Splits)
		require.True(t, set.HasLabels)
	}
	// The two ways in which the set is published hold the same.
	binary := open(t, "testdata/cifar-10-binary.tar.gz", Options{Split: "train"})
	pickled := open(t, folder, Options{Split: "train"})
	want, err := binary.ContentHash(context.Background())
	require.NoError(t, err)
	got, err := pickled.ContentHash(context.Background())
	require.NoError(t, err)
	require.Equal(t, want, got)

	set := open(t, "testdata/cifar-100-python.tar.gz", Options{Split: "train", Classes: 100})
	require.Equal(t, []int{5, 42, 79, 16}, classes(set))
	require.Equal(t, "fine42", set.ClassName(42))
	requirePixels(t, set, shape, upTo(4))
	set = open(t, "testdata/cifar-100-python.tar.gz", Options{Coarse: true})
	require.Equal(t, []int{1, 8}, classes(set))
	require.Equal(t, coarseNames(), set.ClassNames)
}

// Whatever a pickle names beside arrays is refused by its name and not run.
func TestPickledBatchesRunNothing(t *testing.T) {
	for name, content := range map[string]string{
		"os.system":                           "\x80\x02cos\nsystem\nU\x15touch batch-was-here!\x85R.",
		"builtins.eval":                       "\x80\x04\x8c\x08builtins\x8c\x04eval\x93\x8c\x01x\x85R.",
		"numpy.core.multiarray.scalar":        "\x80\x02cnumpy.core.multiarray\nscalar\n.",
		"copy_reg._reconstructor":             "\x80\x02ccopy_reg\n_reconstructor\n.",
		"__builtin__.object":                  "\x80\x02c__builtin__\nobject\n.",
		"collections.OrderedDict":             "\x80\x02ccollections\nOrderedDict\n)R.",
		"torch._utils._rebuild_tensor_v2":     "\x80\x02ctorch._utils\n_rebuild_tensor_v2\n.",
		"numpy.load":                          "\x80\x02cnumpy\nload\n.",
		"numpy.core.multiarray._reconstruct2": "\x80\x02(inumpy.core.multiarray\n_reconstruct2\n.",
	} {
		path := writeFile(t, filepath.Join(t.TempDir(), "test_batch"), []byte(content))
		_, err := Open(context.Background(), path, Options{})
		requireUsage(t, err, path, "asks to run "+name+": refused", "arrays of uint8")
	}
	require.NoFileExists(t, "batch-was-here!")
}

func TestBadPickledBatches(t *testing.T) {
	const dtype = "cnumpy\ndtype\nU\x02u1K\x00K\x01\x87R"
	array := func(rows, columns, dtype, order, data string) string {
		return "cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85U\x01b\x87R(K\x01" + rows + columns + "\x86" + dtype + order + data + "tb"
	}
	good := array("K\x01", "M\x00\x0c", dtype, "\x89", "T\x00\x0c\x00\x00"+strings.Repeat("\x07", 3072))
	dict := func(data, labels string) string {
		return "\x80\x02}(U\x04data" + data + "U\x06labels" + labels + "u."
	}
	require.NoError(t, func() error {
		path := writeFile(t, filepath.Join(t.TempDir(), "test_batch"), []byte(dict(good, "]K\x01a")))
		return open(t, path, Options{}).Close()
	}())
	for _, c := range []struct{ name, content, want string }{
		{"empty", "", "ends before its STOP"},
		{"list", "\x80\x02].", "holds a list: want a dict"},
		{"other", "\x80\x02}U\x01aK\x01s.", "data is None: want an array of uint8 of shape [N,3072]"},
		{"text", dict("U\x03abc", "]K\x01a"), `data is "abc"`},
		{"labels", dict(good, "K\x01"), "labels is 1: want a list"},
		{"few", dict(good, "]"), "labels has 0 entries for 1 images"},
		{"class", dict(good, "]K\x0aa"), "labels: row 000000: 10: want 0..9"},
		{"minus", dict(good, "]J\xff\xff\xff\xffa"), "-1: want 0..9"},
		{"name", dict(good, "]U\x01xa"), `"x": want 0..9`},
		{"narrow", dict(array("K\x01", "K\x02", dtype, "\x89", "U\x02ab"), "]K\x01a"), "data is of shape [1 2]"},
		{"short", dict(array("K\x02", "M\x00\x0c", dtype, "\x89", "U\x02ab"), "]K\x01a"), "an array of 2 bytes with a size of 3072"},
		{"more", dict(array("K\x01", "K\x01", dtype, "\x89", "U\x02ab"), "]K\x01a"), "[1 1] with 2 bytes: want 1"},
		{"huge", dict(array("J\xff\xff\xff\x7f", "J\xff\xff\xff\x7f", dtype, "\x89", "U\x02ab"), "]K\x01a"), "2147483647"},
		{"float", dict(array("K\x01", "K\x01", "cnumpy\ndtype\nU\x02f8K\x00K\x01\x87R", "\x89", "U\x08abcdefgh"), "]K\x01a"), "dtype f8: want uint8"},
		{"object", dict(array("K\x01", "K\x01", "cnumpy\ndtype\nU\x02O8K\x00K\x01\x87R", "\x89", "]"), "]K\x01a"), "dtype O8: want uint8"},
		{"five", "\x80\x02}U\x04datacnumpy.core.multiarray\n_reconstruct\n)R(K\x01tbs.", "want NumPy's five values"},
		{"opcodes", "\x80\x02" + strings.Repeat("N", 5000) + ".", "opcodes in 5003 bytes"},
		{"length", "\x80\x02T\xff\xff\xff\x7f.", "a string of 2147483647 bytes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := writeFile(t, filepath.Join(t.TempDir(), "test_batch"), []byte(c.content))
			_, err := Open(context.Background(), path, Options{})
			requireUsage(t, err, path, c.want)
		})
	}
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "test_batch"), []byte(dict(good, "]K\x01a")))
	for content, want := range map[string]string{
		"\x80\x02}.":                         "label_names is None: want a list",
		"\x80\x02}U\x0blabel_names]K\x01as.": "label_names holds 1: want names",
		"\x80\x02}U\x0blabel_names]s.":       "0 names of classes: want the 10",
	} {
		writeFile(t, filepath.Join(dir, "batches.meta"), []byte(content))
		_, err := Open(context.Background(), dir, Options{})
		requireUsage(t, err, filepath.Join(dir, "batches.meta"), want)
	}
	// A state dict is no batch, whatever its name says.
	b, err := os.ReadFile("../weights/testdata/legacy.pth")
	require.NoError(t, err)
	_, err = Open(context.Background(), writeFile(t, filepath.Join(dir, "weights"), b), Options{})
	requireUsage(t, err, "want a dict")
}
