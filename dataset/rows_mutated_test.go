package dataset

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/assay-xai/assay/internal/mutate"
	"github.com/assay-xai/assay/internal/usage"
)

func seedFiles(t testing.TB, folder string, names ...string) map[string][]byte {
	out := map[string][]byte{}
	for _, name := range names {
		b, err := os.ReadFile(filepath.Join(folder, name))
		require.NoError(t, err)
		out[name] = b
	}
	return out
}

// insideMat damages what an element of a MATLAB file has compressed.
func insideMat(r *rand.Rand, b []byte) []byte {
	if len(b) < 136 || binary.LittleEndian.Uint32(b[128:]) != matCompressed {
		return mutate.Raw(r, b)
	}
	size := int(min(uint32(len(b)-136), binary.LittleEndian.Uint32(b[132:])))
	z, err := zlib.NewReader(bytes.NewReader(b[136 : 136+size]))
	if err != nil {
		return b
	}
	content, err := io.ReadAll(z)
	if err != nil {
		return b
	}
	content = append(mutate.Raw(r, content[:min(len(content), 100)]), content[min(len(content), 100):]...)
	var packed bytes.Buffer
	w := zlib.NewWriter(&packed)
	w.Write(content)
	w.Close()
	out := append([]byte{}, b[:132]...)
	out = binary.LittleEndian.AppendUint32(out, uint32(packed.Len()))
	return append(append(out, packed.Bytes()...), b[136+size:]...)
}

// Damaged files of rows: internal/mutate.Every says what is demanded.
func TestMutatedRows(t *testing.T) {
	row10, row100 := append([]byte{3}, make([]byte, 3072)...), append([]byte{3, 4}, make([]byte, 3072)...)
	zipped := seedFiles(t, "testdata/idx", "train-images-idx3-ubyte.gz")
	pickles := seedFiles(t, unpacked(t, "cifar-10-python.tar.gz"), "data_batch_1", "data_batch_2", "data_batch_3", "data_batch_4", "data_batch_5")
	for _, c := range []struct {
		ending string
		format mutate.Format
	}{
		{"-idx3-ubyte", mutate.Format{Name: "idx", Cases: sample, Seeds: seedFiles(t, "testdata/idx", "t10k-images-idx3-ubyte")}},
		{"-idx3-ubyte.gz", mutate.Format{Name: "idx.gz", Cases: sample, Seeds: zipped, Mutators: []mutate.Mutator{mutate.Gzip(mutate.Raw)}}},
		{".bin", mutate.Format{Name: "cifar-binary", Cases: sample, Seeds: map[string][]byte{"10": row10, "100": row100}}},
		{"-test_batch", mutate.Format{Name: "cifar-pickle", Cases: sample, Seeds: pickles, Mutators: []mutate.Mutator{mutate.Pickle}}},
		{".mat", mutate.Format{Name: "mat", Cases: sample, Seeds: seedFiles(t, "testdata/svhn", "train_32x32.mat", "test_32x32.mat"), Mutators: []mutate.Mutator{insideMat}}},
		{".tar.gz", mutate.Format{Name: "cifar-archives", Cases: sample, Seeds: seedFiles(t, "testdata", "cifar-10-binary.tar.gz", "cifar-100-python.tar.gz"),
			Mutators: []mutate.Mutator{mutate.Gzip(mutate.Tar), mutate.Gzip(mutate.Raw)}}},
	} {
		t.Run(c.format.Name, func(t *testing.T) {
			mutate.Every(t, c.format, mutate.Reader{Ending: c.ending, Read: readsAll(Options{}), Fixed: archiveFixed})
		})
	}
	t.Run("devkit", func(t *testing.T) {
		format := mutate.Format{Name: "devkit", Cases: sample, Seeds: seedFiles(t, "testdata/devkit", "meta.mat", "plain.mat"), Mutators: []mutate.Mutator{insideMat}}
		mutate.Every(t, format, mutate.Reader{Ending: ".mat", Read: func(path string) error {
			b, err := os.ReadFile(path)
			require.NoError(t, err)
			_, err = devkitClasses(path, b)
			if err != nil {
				return marked(usage.Line(err, path))
			}
			return nil
		}})
	})
}
