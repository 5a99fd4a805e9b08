package dataset

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/assay-xai/assay/internal/mutate"
	"github.com/assay-xai/assay/internal/usage"
)

// readsAll opens data and reads every item.
func readsAll(opt Options) func(string) error {
	return func(path string) error {
		ctx := context.Background()
		set, err := Open(ctx, path, opt)
		if err != nil {
			return marked(err)
		}
		defer set.Close()
		for i := range set.Items() {
			if set.Kind == Images {
				_, err = set.Read(ctx, i)
			} else {
				_, _, err = set.Values(i)
			}
			if err != nil {
				return marked(err)
			}
		}
		return nil
	}
}

// marked demands that damage is the user's to mend.
func marked(err error) error {
	if !errors.Is(err, usage.Err) {
		panic(fmt.Sprintf("not marked as bad input: %v", err))
	}
	return err
}

// archiveSeeds are an archive of class folders, one of splits, and a flat one
// with labels.
func archiveSeeds(t testing.TB, make func(testing.TB, []member) []byte) map[string][]byte {
	flat := append(images("1.jpg", "2.png", "3.jpeg"), member{name: "labels.txt", content: "1.jpg 0\n2.png 1\n3.jpeg 1\n"})
	return map[string][]byte{
		"classes": make(t, append([]member{{name: "pets/"}, {name: "pets/empty/"}}, images("pets/cat/1.jpg", "pets/cat/2.jpg", "pets/dog/1.png")...)),
		"splits":  make(t, images("train/a/1.jpg", "train/b/1.jpg", "test/a/2.jpg", "test/b/2.jpg")),
		"flat":    make(t, flat),
	}
}

// npzBytes is what numpy.savez writes: members stored, or deflated.
func npzBytes(t testing.TB, method uint16, members map[string][]byte) []byte {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, name := range []string{"x.npy", "y.npy", "x_train.npy", "y_train.npy", "x_test.npy", "y_test.npy"} {
		if members[name] == nil {
			continue
		}
		f, err := w.CreateHeader(&zip.FileHeader{Name: name, Method: method})
		require.NoError(t, err)
		_, err = f.Write(members[name])
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	return b.Bytes()
}

func npzSeeds(t testing.TB) map[string][]byte {
	x, y := npyBytes("<f4", "(3, 2)", "\x00\x00\x80?\x00\x00\x00@\x00\x00@@\x00\x00\x80@\x00\x00\xa0@\x00\x00\xc0@"), npyBytes("|u1", "(3,)", "\x00\x01\x02")
	pixels, labels := npyBytes("|u1", "(2, 2, 2)", "12345678"), npyBytes(">i8", "(2, 1)", "\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x02")
	out := map[string][]byte{
		"stored":   npzBytes(t, zip.Store, map[string][]byte{"x.npy": x, "y.npy": y}),
		"deflated": npzBytes(t, zip.Deflate, map[string][]byte{"x.npy": pixels, "y.npy": labels}),
		"splits":   npzBytes(t, zip.Store, map[string][]byte{"x_train.npy": x, "y_train.npy": y, "x_test.npy": pixels, "y_test.npy": labels}),
	}
	for _, name := range []string{"xy.npz", "splits.npz"} {
		b, err := os.ReadFile(filepath.Join("testdata", name))
		require.NoError(t, err)
		out[name] = b
	}
	return out
}

// archiveFixed is mutate.DefaultFixed and what archive/tar needs to read an
// extension header, which may unpack to 1 MiB.
const archiveFixed = mutate.DefaultFixed + 4<<20

// sample is how many cases the lesser formats meet in every run of the tests;
// ASSAY_MUTATIONS=2000 gives them all.
const sample = 300

// Damaged data files, 2,000 of archives and .npz: internal/mutate.Every says what is demanded.
func TestMutatedData(t *testing.T) {
	table := map[string][]byte{
		"named": []byte("a,b,label\n1,2,cat\n3,4,dog\n5,6,cat\n"), "bare": []byte("1.5;2e3;0\n3;4;1\n"),
		"scikit-learn": []byte("2,2,no,yes\n1,2,0\n3,4,1\n"), "quoted": []byte("\"a\"\"\",\"b\",\"y\"\n\"1\",2,0\n3,4,1\n"),
	}
	opt := Options{MaxItemBytes: 1 << 20}
	for _, c := range []struct {
		ending string
		format mutate.Format
	}{
		{".npz", mutate.Format{Name: "npz", Seeds: npzSeeds(t), Mutators: []mutate.Mutator{mutate.ZipMember(".npy", mutate.Npy), mutate.ZipMember("", mutate.Raw), mutate.Zip}}},
		{".npy", mutate.Format{Name: "npy", Cases: sample, Seeds: map[string][]byte{
			"floats": npyBytes("<f4", "(1, 2)", "\x00\x00\x80?\x00\x00\x80?"), "integers": npyBytes(">i8", "(1, 1)", "12345678"), "bytes": npyBytes("|u1", "(2, 2, 2)", "12345678"),
		}, Mutators: []mutate.Mutator{mutate.Npy}}},
		{".tar", mutate.Format{Name: "tar", Seeds: archiveSeeds(t, tarBytes), Mutators: []mutate.Mutator{mutate.Tar}}},
		{".tgz", mutate.Format{Name: "tgz", Seeds: archiveSeeds(t, func(t testing.TB, m []member) []byte { return gzipBytes(t, tarBytes(t, m)) }),
			Mutators: []mutate.Mutator{mutate.Gzip(mutate.Tar), mutate.Gzip(mutate.Raw)}}},
		{".zip", mutate.Format{Name: "zip", Seeds: archiveSeeds(t, zipBytes), Mutators: []mutate.Mutator{mutate.Zip, mutate.ZipMember("", mutate.Raw)}}},
		{".csv", mutate.Format{Name: "csv", Cases: sample, Seeds: table}},
	} {
		t.Run(c.format.Name, func(t *testing.T) {
			mutate.Every(t, c.format, mutate.Reader{Ending: c.ending, Read: readsAll(opt), Fixed: archiveFixed})
		})
	}
}

// FuzzBatch: any bytes are a batch of CIFAR's Python version that can be read
// to its end, or the user's mistake in one line.
func FuzzBatch(f *testing.F) {
	for _, b := range seedFiles(f, unpacked(f, "cifar-10-python.tar.gz"), "data_batch_1", "batches.meta") {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		path := filepath.Join(t.TempDir(), "test_batch")
		require.NoError(t, os.WriteFile(path, content, 0o600))
		if err := readsAll(Options{})(path); err != nil {
			require.Empty(t, mutate.OneLine(err, "test_batch"), err.Error())
		}
	})
}

// FuzzIdx: any bytes are an idx file whose rows can be read, or the user's
// mistake in one line.
func FuzzIdx(f *testing.F) {
	for _, b := range seedFiles(f, "testdata/idx", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte") {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		path := filepath.Join(t.TempDir(), "t10k-images-idx3-ubyte")
		require.NoError(t, os.WriteFile(path, content, 0o600))
		if err := readsAll(Options{})(path); err != nil {
			require.Empty(t, mutate.OneLine(err, "t10k-images-idx3-ubyte"), err.Error())
		}
	})
}

// FuzzMat: any bytes are a file of SVHN's whose rows can be read, or the user's
// mistake in one line.
func FuzzMat(f *testing.F) {
	for _, b := range seedFiles(f, "testdata/svhn", "train_32x32.mat", "test_32x32.mat") {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		path := filepath.Join(t.TempDir(), "test_32x32.mat")
		require.NoError(t, os.WriteFile(path, content, 0o600))
		if err := readsAll(Options{})(path); err != nil {
			require.Empty(t, mutate.OneLine(err, "test_32x32.mat"), err.Error())
		}
	})
}
