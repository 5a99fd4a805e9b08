package dataset

import (
	"context"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// Files of SciPy, which torchvision read as it should (scripts/golden_dataset.py):
// compressed (train, extra) and not (test, which holds text and cells too).
func TestSVHN(t *testing.T) {
	shape := []int{3, 32, 32}
	for kind, path := range repacked(t, filepath.Join("testdata", "svhn")) {
		t.Run(kind, func(t *testing.T) {
			set := open(t, path, Options{Classes: 10})
			require.Equal(t, "test", set.Split)
			require.Equal(t, []string{"extra", "test", "train"}, set.Splits)
			require.Equal(t, []int{0, 2, 7}, classes(set))
			require.Equal(t, "7", set.ClassName(7))
			requirePixels(t, set, shape, upTo(3))
			set = open(t, path, Options{Split: "train"})
			require.Equal(t, []int{1, 0, 3, 9}, classes(set))
			requirePixels(t, set, shape, upTo(4))
			requirePixels(t, open(t, path, Options{Split: "extra"}), shape, upTo(1))
			_, err := Open(context.Background(), path, Options{Classes: 7})
			requireUsage(t, err, "test_32x32.mat: y: row 000002", "class 7", "0..6")
		})
	}
	set := open(t, "testdata/svhn/extra_32x32.mat", Options{})
	require.Equal(t, []int{5}, classes(set))
}

// matBytes is a file of little-endian elements.
func matBytes(elements ...[]byte) []byte {
	b := append([]byte("MATLAB 5.0 MAT-file"), make([]byte, 128)...)[:128]
	copy(b[124:], "\x00\x01IM")
	for _, e := range elements {
		b = append(b, e...)
	}
	return b
}

// matElement is a tag and padded content.
func matElement(kind, size uint32, content ...byte) []byte {
	b := binary.LittleEndian.AppendUint32(nil, kind)
	b = binary.LittleEndian.AppendUint32(b, size)
	b = append(b, content...)
	for len(b)%8 != 0 {
		b = append(b, 0)
	}
	return b
}

// matMatrixBytes is a matrix of class uint8 with numbers of a type.
func matMatrixBytes(name string, kind, size uint32, numbers []byte, dims ...uint32) []byte {
	var d []byte
	for _, n := range dims {
		d = binary.LittleEndian.AppendUint32(d, n)
	}
	body := matElement(6, 8, 9, 0, 0, 0, 0, 0, 0, 0)
	body = append(body, matElement(5, uint32(len(d)), d...)...)
	body = append(body, matElement(1, uint32(len(name)), []byte(name)...)...)
	body = append(body, matElement(kind, size, numbers...)...)
	return matElement(14, uint32(len(body)), body...)
}

func TestBadSVHN(t *testing.T) {
	image := make([]byte, 12)
	x := matMatrixBytes("X", 2, 12, image, 2, 2, 3, 1)
	y := matMatrixBytes("y", 2, 1, []byte{1}, 1, 1)
	train, err := os.ReadFile("testdata/svhn/train_32x32.mat")
	require.NoError(t, err)
	good := writeFile(t, filepath.Join(t.TempDir(), "good.mat"), matBytes(x, y))
	require.Equal(t, []int{1}, classes(open(t, good, Options{})))
	hdf5 := append([]byte("MATLAB 7.3 MAT-file, Platform: GLNXA64"), make([]byte, 600)...)
	copy(hdf5[124:], "\x00\x02IM")
	copy(hdf5[512:], "\x89HDF\r\n\x1a\n")
	damaged := append([]byte{}, train...)
	damaged[160] ^= 0x55
	for _, c := range []struct {
		name    string
		content []byte
		want    string
	}{
		{"empty", nil, "no MATLAB file of version 5: it is shorter than a header"},
		{"text", make([]byte, 200), "no MATLAB file of version 5"},
		{"hdf5", hdf5, "version 7.3 (HDF5): want version 5, as save(..., '-v7')"},
		{"none", matBytes(), "matrices (none): want X (images) and y (digits)"},
		{"other", matBytes(matMatrixBytes("Z", 2, 1, []byte{1}, 1, 1), y), `matrices "Z", "y": want X`},
		{"no labels", matBytes(x), "want X (images) and y (digits)"},
		{"cut", train[:len(train)-100], "cut off"},
		{"damaged", damaged, "damaged"},
		{"long", matBytes(matElement(14, 1<<31)), "an element of 2147483648 bytes at byte 136, 0 are there"},
		{"many", matBytes(matMatrixBytes("X", 2, 12, image, 2, 2, 3, 1<<31-1), y), "X has dimensions [2 2 3 2147483647] and 12 bytes"},
		{"negative", matBytes(matMatrixBytes("X", 2, 12, image, 2, 2, 3, 1<<32-1), y), "dimensions [2 2 3 -1]"},
		{"floats", matBytes(matMatrixBytes("X", 9, 96, make([]byte, 96), 2, 2, 3, 1), y), "type f8: want uint8 [H,W,3,N]"},
		{"flat", matBytes(matMatrixBytes("X", 2, 12, image, 12, 1), y), "dimensions [12 1]"},
		{"class", matBytes(x, matMatrixBytes("y", 2, 1, []byte{11}, 1, 1)), "y: row 000000: 11: want 1..10"},
		{"labels", matBytes(x, matMatrixBytes("y", 2, 2, []byte{1, 2}, 2, 1)), "y has 2 digits for the 1 images of X"},
		{"half", matBytes(x, matMatrixBytes("y", 7, 4, []byte{0, 0, 0, 0x3f}, 1, 1)), "0.5: want an integer"},
		{"numbers", matBytes(matMatrixBytes("X", 8, 12, image, 2, 2, 3, 1)), "numbers of type 8"},
		{"more", matBytes(matMatrixBytes("X", 2, 1<<30, image, 2, 2, 3, 1)), `"X" has 1073741824 bytes of numbers in an element of`},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := writeFile(t, filepath.Join(t.TempDir(), "train_32x32.mat"), c.content)
			_, err := Open(context.Background(), path, Options{})
			requireUsage(t, err, path, c.want)
		})
	}
}
