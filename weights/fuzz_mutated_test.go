package weights

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/assay-xai/assay/internal/mutate"
)

func seeds(t testing.TB, names ...string) map[string][]byte {
	out := map[string][]byte{}
	for _, name := range names {
		b, err := os.ReadFile("testdata/" + name)
		require.NoError(t, err)
		out[name] = b
	}
	return out
}

func opens(path string) error {
	_, err := Open(path)
	return err
}

// Pickles that are all of one thing, a megabyte of it: what an opcode costs is
// known before it runs.
func TestPicklesOfOneThing(t *testing.T) {
	for name, one := range map[string]string{
		"lists": "]", "dicts": "}", "marks": "(1", "lists of marks": "(l", "nothing": "N", "copies": "N2", "memo": "N\x94", "long memo": "Nr\x00\x01\x02\x03",
		"tuples": "N\x85", "text": "X\x01\x00\x00\x00a", "numbers": "J\x00\x01\x02\x03", "names": "ctorch\nSize\n", "calls": "ccollections\nOrderedDict\n)R",
		"fractions": "G\x00\x00\x00\x00\x00\x00\x00\x00", "big numbers": "\x8a\x09\xff\xff\xff\xff\xff\xff\xff\xff\x00", "lines": "I1000\n", "sets": "\x8f",
	} {
		t.Run(name, func(t *testing.T) {
			for _, size := range []int{1 << 10, 20 << 10, 1 << 20} {
				body := "\x80\x02" + strings.Repeat(one, size/len(one)) + "N."
				path := filepath.Join(t.TempDir(), "x.pth")
				require.NoError(t, os.WriteFile(path, []byte(body), 0o600))
				require.Empty(t, mutate.Reader{Read: opens}.Call(path))
			}
		})
	}
}

// Damaged weights files, 2,000 a layout: internal/mutate.Every says what is demanded.
func TestMutatedWeights(t *testing.T) {
	for _, f := range []mutate.Format{
		{Name: "pth-zip", Seeds: seeds(t, "zip.pth", "small.pth", "bigendian.pth", "zip-protocol4.pth", "checkpoint.pth"),
			Mutators: []mutate.Mutator{mutate.Zip, mutate.ZipMember("data.pkl", mutate.Pickle), mutate.ZipMember("data.pkl", mutate.Raw), mutate.ZipMember("", mutate.Raw)}},
		{Name: "pth-legacy", Seeds: seeds(t, "legacy.pth", "legacy-protocol4.pth", "checkpoint-legacy.pth", "python2.pth", "small-legacy.pth"),
			Mutators: []mutate.Mutator{mutate.Pickle}},
		{Name: "safetensors", Seeds: seeds(t, "all.safetensors", "plain.safetensors"), Mutators: []mutate.Mutator{mutate.Safetensors}},
	} {
		t.Run(f.Name, func(t *testing.T) {
			mutate.Every(t, f, mutate.Reader{Ending: ".weights", Read: opens})
		})
	}
}
