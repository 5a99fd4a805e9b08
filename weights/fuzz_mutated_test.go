package weights

import (
	"os"
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
