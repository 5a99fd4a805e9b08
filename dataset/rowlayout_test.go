package dataset

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// requirePixels wants images of scripts/golden_dataset.py, n being numbers[i]
// for row i: (7 n + 11 c + 5 y + 3 x) modulo 256, by Values and by Pixels.
func requirePixels(t testing.TB, set *Set, shape []int, numbers []int) {
	t.Helper()
	require.Equal(t, Arrays, set.Kind)
	require.Len(t, numbers, set.Len())
	for i, item := range set.Items() {
		require.Equal(t, fmt.Sprintf("%06d", i), item.ID)
		values, got, err := set.Values(i)
		require.NoError(t, err)
		require.Equal(t, shape, got)
		pixels, got, ok, err := set.Pixels(i)
		require.NoError(t, err)
		require.True(t, ok)
		require.Equal(t, shape, got)
		at := 0
		for c := range shape[0] {
			for y := range shape[1] {
				for x := range shape[2] {
					want := byte(7*numbers[i] + 11*c + 5*y + 3*x)
					if pixels[at] != want || values[at] != float32(want) {
						t.Fatalf("row %d, channel %d, y %d, x %d: %d and %v, want %d", i, c, y, x, pixels[at], values[at], want)
					}
					at++
				}
			}
		}
		require.Len(t, pixels, at)
		require.Len(t, values, at)
	}
	_, err := set.Read(context.Background(), 0)
	require.ErrorContains(t, err, "arrays")
}

// upTo is 0..n-1.
func upTo(n int) []int {
	var list []int
	for i := range n {
		list = append(list, i)
	}
	return list
}

// unpacked is the folder that a test's tar.gz holds, on disk.
func unpacked(t testing.TB, name string) string {
	f, err := os.Open(filepath.Join("testdata", name))
	require.NoError(t, err)
	defer f.Close()
	zipped, err := gzip.NewReader(f)
	require.NoError(t, err)
	dir, top := t.TempDir(), ""
	for archive := tar.NewReader(zipped); ; {
		h, err := archive.Next()
		if err == io.EOF {
			return filepath.Join(dir, top)
		}
		require.NoError(t, err)
		b, err := io.ReadAll(archive)
		require.NoError(t, err)
		top, _, _ = strings.Cut(h.Name, "/")
		writeFile(t, filepath.Join(dir, filepath.FromSlash(h.Name)), b)
	}
}

// repacked is a folder as every kind of archive, and the folder itself.
func repacked(t testing.TB, folder string) map[string]string {
	list, err := os.ReadDir(folder)
	require.NoError(t, err)
	var members []member
	for _, item := range list {
		b, err := os.ReadFile(filepath.Join(folder, item.Name()))
		require.NoError(t, err)
		members = append(members, member{name: "top/" + item.Name(), content: string(b)})
	}
	dir := t.TempDir()
	plain := tarBytes(t, members)
	return map[string]string{
		"folder": folder,
		"tar":    writeFile(t, filepath.Join(dir, "a.tar"), plain),
		"tar.gz": writeFile(t, filepath.Join(dir, "b.tar.gz"), gzipBytes(t, plain)),
		"zip":    writeFile(t, filepath.Join(dir, "a.zip"), zipBytes(t, members)),
	}
}

func TestIdx(t *testing.T) {
	for kind, path := range repacked(t, filepath.Join("testdata", "idx")) {
		t.Run(kind, func(t *testing.T) {
			set := open(t, path, Options{})
			require.Equal(t, "test", set.Split)
			require.Equal(t, []string{"test", "train"}, set.Splits)
			require.True(t, set.HasLabels)
			require.Equal(t, []int{0, 1, 2}, classes(set))
			requirePixels(t, set, []int{1, 6, 4}, upTo(3))

			set = open(t, path, Options{Split: "train", Classes: 3})
			require.Equal(t, []int{0, 1, 2, 0, 1}, classes(set))
			requirePixels(t, set, []int{1, 6, 4}, upTo(5))
			_, err := Open(context.Background(), path, Options{Split: "val"})
			requireUsage(t, err, `"val"`, "test, train")
			_, err = Open(context.Background(), path, Options{Classes: 2})
			requireUsage(t, err, "t10k-labels-idx1-ubyte: row 000002", "class 2", "0..1")
		})
	}
	for _, name := range []string{"train-images-idx3-ubyte.gz", "t10k-images-idx3-ubyte"} {
		set := open(t, filepath.Join("testdata", "idx", name), Options{})
		require.Empty(t, set.Splits)
		require.True(t, set.HasLabels)
		requirePixels(t, set, []int{1, 6, 4}, upTo(set.Len()))
	}
	dir := t.TempDir()
	b, err := os.ReadFile("testdata/idx/t10k-images-idx3-ubyte")
	require.NoError(t, err)
	alone := open(t, writeFile(t, filepath.Join(dir, "digits"), b), Options{})
	require.False(t, alone.HasLabels)
	requirePixels(t, alone, []int{1, 6, 4}, upTo(3))
	text := writeFile(t, filepath.Join(dir, "labels"), []byte("000000 3\n000001 2\n000002 1\n"))
	require.Equal(t, []int{3, 2, 1}, classes(open(t, filepath.Join("testdata", "idx"), Options{Labels: text})))
}

// idxBytes is an idx file of unsigned bytes.
func idxBytes(sizes []uint32, content string) []byte {
	b := []byte{0, 0, 8, byte(len(sizes))}
	for _, n := range sizes {
		b = binary.BigEndian.AppendUint32(b, n)
	}
	return append(b, content...)
}

func TestBadIdx(t *testing.T) {
	for _, c := range []struct {
		name    string
		content []byte
		want    string
	}{
		{"empty-idx3-ubyte", nil, "cut off"},
		{"header-idx3-ubyte", idxBytes([]uint32{1, 2, 2}, "")[:9], "cut off"},
		{"cut-idx3-ubyte", idxBytes([]uint32{2, 2, 2}, "1234567"), "need 8 bytes after the header, there are 7"},
		{"long-idx3-ubyte", idxBytes([]uint32{2, 2, 2}, "123456789"), "there are 9"},
		{"huge-idx3-ubyte", idxBytes([]uint32{1<<32 - 1, 8192, 8192}, "1"), "[4294967295 8192 8192] need"},
		{"wide-idx3-ubyte", idxBytes([]uint32{1, 2, 1 << 31}, "1"), "sides 1..8192"},
		{"none-idx3-ubyte", idxBytes([]uint32{0, 2, 2}, ""), "1 or more rows"},
		{"flat-idx3-ubyte", idxBytes([]uint32{1, 2, 2}, "1234")[1:], "00080300: want 00000803"},
		{"train-labels-idx1-ubyte", idxBytes([]uint32{2}, "12"), "holds labels: want the file of images"},
		{"floats-idx3-ubyte", append([]byte{0, 0, 0x0d, 3}, make([]byte, 12)...), "00000d03: want 00000803"},
		{"text-idx3-ubyte.gz", []byte("hello"), "no gzip file"},
		{"cut-idx3-ubyte.gz", gzipBytes(t, idxBytes([]uint32{2, 2, 2}, "12345678"))[:24], "cut off"},
		{"short-idx3-ubyte.gz", gzipBytes(t, idxBytes([]uint32{2, 2, 2}, "1234567")), "there are 7"},
		{"long-idx3-ubyte.gz", gzipBytes(t, idxBytes([]uint32{2, 2, 2}, "123456789")), "more than the 8 bytes"},
		{"huge-idx3-ubyte.gz", gzipBytes(t, idxBytes([]uint32{1<<32 - 1, 8192, 8192}, "1")), "want at most"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := writeFile(t, filepath.Join(t.TempDir(), c.name), c.content)
			_, err := Open(context.Background(), path, Options{})
			requireUsage(t, err, path, c.want)
		})
	}
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "train-images-idx3-ubyte"), idxBytes([]uint32{2, 1, 1}, "12"))
	writeFile(t, filepath.Join(dir, "train-labels-idx1-ubyte"), idxBytes([]uint32{3}, "\x00\x01\x02"))
	_, err := Open(context.Background(), dir, Options{})
	requireUsage(t, err, "3 labels for the 2 images of train-images-idx3-ubyte")
	_, err = Open(context.Background(), filepath.Join(dir, "train-images-idx3-ubyte"), Options{Split: "train"})
	requireUsage(t, err, `split "train"`, "open its folder")
	// A bad sum at the end of a gzipped file.
	b := gzipBytes(t, idxBytes([]uint32{1, 1, 1}, "1"))
	b[len(b)-8] ^= 1
	path := writeFile(t, filepath.Join(dir, "x-idx3-ubyte.gz"), b)
	_, err = Open(context.Background(), path, Options{})
	requireUsage(t, err, "damaged", "checksum")
}

// Debian's dataset-fashion-mnist. The hashes are sha256sum's of what zcat and
// tail give, the labels xxd's.
func TestFashionMNIST(t *testing.T) {
	const folder = "/usr/share/datasets/fashion-mnist"
	if _, err := os.Stat(folder); err != nil {
		t.Skip("SKIP: " + folder + " is not there: apt-get install dataset-fashion-mnist")
	}
	for _, c := range []struct {
		opt       Options
		count, at int
		labels    []int
		pixels    string
	}{
		{Options{Classes: 10}, 10000, 0, []int{9, 2, 1, 1, 6, 1}, "ffc7351ed0f8bae542820866086177fa4e0b366b97bf9d998dffdb8dbe138787"},
		{Options{Split: "train"}, 60000, 59999, []int{5}, "489c477715bd5275b2646b28941db83e4ff26ece5302728fcb7632e1be5110ac"},
	} {
		set := open(t, folder, c.opt)
		require.Equal(t, c.count, set.Len())
		require.Equal(t, ClassNames("fashion-mnist"), set.ClassNames)
		require.Equal(t, c.labels, classes(set)[c.at:c.at+len(c.labels)])
		counts := make([]int, 10)
		for _, class := range classes(set) {
			counts[class]++
		}
		require.Equal(t, slices.Repeat([]int{c.count / 10}, 10), counts)
		pixels, shape, ok, err := set.Pixels(c.at)
		require.NoError(t, err)
		require.True(t, ok)
		require.Equal(t, []int{1, 28, 28}, shape)
		sum := sha256.Sum256(pixels)
		require.Equal(t, c.pixels, hex.EncodeToString(sum[:]))
	}
	require.Equal(t, 20, open(t, folder, Options{Limit: 20}).Len())
}

func coarseNames() []string {
	var names []string
	for i := range 20 {
		names = append(names, fmt.Sprintf("coarse%d", i))
	}
	return names
}

func TestCIFARBinary(t *testing.T) {
	shape := []int{3, 32, 32}
	folder := unpacked(t, "cifar-10-binary.tar.gz")
	paths := repacked(t, folder)
	paths["published"] = "testdata/cifar-10-binary.tar.gz"
	for kind, path := range paths {
		t.Run(kind, func(t *testing.T) {
			set := open(t, path, Options{})
			require.Equal(t, "test", set.Split)
			require.Equal(t, []string{"test", "train"}, set.Splits)
			require.Equal(t, ClassNames("cifar10"), set.ClassNames)
			require.Equal(t, []int{1, 4, 7}, classes(set))
			requirePixels(t, set, shape, upTo(3))
			set = open(t, path, Options{Split: "train", Classes: 10})
			require.Empty(t, set.Warnings)
			require.Equal(t, []int{7, 0, 3, 6, 9, 2, 5, 8, 1, 4}, classes(set))
			requirePixels(t, set, shape, upTo(12)[2:])
		})
	}
	set := open(t, filepath.Join(folder, "data_batch_3.bin"), Options{})
	require.Equal(t, []int{9, 2}, classes(set))
	requirePixels(t, set, shape, []int{6, 7})
	require.NoError(t, os.Remove(filepath.Join(folder, "data_batch_2.bin")))
	require.NoError(t, os.Remove(filepath.Join(folder, "batches.meta.txt")))
	set = open(t, folder, Options{Split: "train"})
	require.Len(t, set.Warnings, 1)
	require.Contains(t, set.Warnings[0], "not there")
	require.Equal(t, ClassNames("cifar10"), set.ClassNames)
	require.Equal(t, 8, set.Len())

	folder = unpacked(t, "cifar-100-binary.tar.gz")
	for _, path := range []string{folder, "testdata/cifar-100-binary.tar.gz"} {
		set := open(t, path, Options{Split: "train"})
		require.Equal(t, []int{5, 42, 79, 16}, classes(set))
		require.Len(t, set.ClassNames, 100)
		require.Equal(t, "fine42", set.ClassName(42))
		requirePixels(t, set, shape, upTo(4))
		set = open(t, path, Options{Coarse: true})
		require.Equal(t, []int{1, 8}, classes(set))
		require.Equal(t, coarseNames(), set.ClassNames)
	}
	b, err := os.ReadFile(filepath.Join(folder, "train.bin"))
	require.NoError(t, err)
	other := writeFile(t, filepath.Join(t.TempDir(), "other.bin"), b)
	require.Equal(t, []int{5, 42, 79, 16}, classes(open(t, other, Options{})))
}

func TestBadCIFARBinary(t *testing.T) {
	row := func(labels ...byte) []byte { return append(labels, make([]byte, 3072)...) }
	for _, c := range []struct {
		name    string
		content []byte
		want    string
	}{
		{"data_batch_1.bin", nil, "0 bytes: want whole rows of CIFAR-10, 3073 bytes each"},
		{"test_batch.bin", append(row(1), 1), "3074 bytes: want whole rows"},
		{"data_batch_2.bin", append(row(1), row(10)...), "row 000001: label 10: want 0..9"},
		{"train.bin", append(row(19, 99), row(20, 1)...), "row 000001: label 20: want 0..19"},
		{"test.bin", append(row(19, 99), row(1, 100)...), "row 000001: label 100: want 0..99"},
		{"some.bin", []byte("hello"), "5 bytes: want whole rows of CIFAR-10 (3073 bytes) or CIFAR-100 (3074)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := writeFile(t, filepath.Join(t.TempDir(), c.name), c.content)
			_, err := Open(context.Background(), path, Options{})
			requireUsage(t, err, path, c.want)
		})
	}
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "test_batch.bin"), row(1))
	writeFile(t, filepath.Join(dir, "batches.meta.txt"), []byte("cat dog"))
	_, err := Open(context.Background(), dir, Options{})
	requireUsage(t, err, "batches.meta.txt", "2 names of classes: want the 10 of CIFAR-10")
	b, err := os.ReadFile("testdata/cifar-10-binary.tar.gz")
	require.NoError(t, err)
	path := writeFile(t, filepath.Join(dir, "cut.tar.gz"), b[:len(b)-200])
	_, err = Open(context.Background(), path, Options{})
	requireUsage(t, err, path, "cut off")
}

// Pixels of sets that have bytes, and of others.
func TestPixelsOfOtherSets(t *testing.T) {
	set := open(t, "testdata/u1-nhw.npy", Options{})
	pixels, shape, ok, err := set.Pixels(1)
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, []int{1, 4, 4}, shape)
	require.True(t, bytes.HasPrefix(pixels, []byte{16, 17, 18}))
	for _, path := range []string{"testdata/f4-nchw.npy", "testdata/i8.npy", "embedded:photos", "embedded:digits"} {
		_, _, ok, err := open(t, path, Options{}).Pixels(0)
		require.NoError(t, err)
		require.False(t, ok, path)
	}
	_, _, _, err = set.Pixels(3)
	require.ErrorContains(t, err, "want 0..2")
}
