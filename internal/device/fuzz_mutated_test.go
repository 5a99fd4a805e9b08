package device_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/assay-xai/assay/dataset"
	"github.com/assay-xai/assay/internal/device"
	"github.com/assay-xai/assay/internal/mutate"
	"github.com/assay-xai/assay/internal/usage"
	"github.com/assay-xai/assay/orchestrate"
)

// netSeeds are net files (csrc/graph/json.h): a small convolutional net with
// a branch, and an MLP.
func netSeeds() map[string][]byte {
	return map[string][]byte{
		"mlp": []byte(`{"format":"assay-net","version":1,"name":"tiny","input":[2],"preset":"table",
 "parameters":[{"name":"fc.weight","shape":[3,2]}],
 "ops":[{"op":"relu","name":"relu","inputs":["input"]},
        {"op":"linear","name":"fc","inputs":["relu"],"channels":3,"bias":false,"parameters":["fc.weight"]}],
 "output":"fc"}`),
		"conv": []byte(`{"format":"assay-net","version":1,"name":"branch","input":[3,16,16],"classNames":["cat","dog"],
 "preset":{"resize":"squash","height":16,"width":16},"weights":"branch.safetensors",
 "parameters":[{"name":"c.weight","shape":[4,3,3,3]},{"name":"c.bias","shape":[4]},{"name":"fc.weight","shape":[2,4]},{"name":"fc.bias","shape":[2]}],
 "ops":[{"op":"conv2d","name":"c","inputs":["input"],"channels":4,"kernel":[3,3],"padding":[1,1,1,1],"parameters":["c.weight","c.bias"]},
        {"op":"relu","name":"a","inputs":["c"]},
        {"op":"add","name":"sum","inputs":["a","c"]},
        {"op":"adaptive_avg_pool","name":"pool","inputs":["sum"],"output":[1,1]},
        {"op":"flatten","name":"flat","inputs":["pool"]},
        {"op":"linear","name":"fc","inputs":["flat"],"channels":2,"parameters":["fc.weight","fc.bias"]}],
 "places":[{"name":"stem","kind":"stage","value":"a"}],"output":"fc","defaultLayer":"stem"}`),
	}
}

// Damaged net files. What C++ allocates is not counted here: its
// parser bounds text, ops, parameters and sizes (csrc/graph/json.h).
func TestMutatedNetFiles(t *testing.T) {
	b, err := device.Open("cpu", 1)
	require.NoError(t, err)
	defer b.Close()
	read := func(path string) error {
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		_, err = b.DescribeFile(context.Background(), orchestrate.NetFile{Name: filepath.Base(path), Content: content})
		if err != nil {
			require.ErrorIs(t, err, usage.Err, "not marked as bad input")
		}
		return err
	}
	mutate.Every(t, mutate.Format{Name: "net", Cases: 1000, Seeds: netSeeds(), Mutators: []mutate.Mutator{mutate.JSON}}, mutate.Reader{Ending: ".json", Read: read})
}

// Damaged images through the boundary: what csrc/test/fuzz_test.cc does
// thoroughly, with the message as it comes out in Go.
func TestMutatedImages(t *testing.T) {
	b, err := device.Open("cpu", 1)
	require.NoError(t, err)
	defer b.Close()
	seeds := map[string][]byte{}
	for _, name := range []string{"rgb-tiny.jpg", "rgb.png", "palette.png", "grey-progressive.jpg"} {
		if seeds[name], err = os.ReadFile(filepath.Join("..", "..", "testdata", "images", name)); err != nil {
			t.Fatal(err)
		}
	}
	preset := dataset.Preset{ID: "small", Resize: "squash", Height: 8, Width: 8, Channels: 3, Mean: []float64{0, 0, 0}, Std: []float64{1, 1, 1}, Interpolation: "bilinear", Scale: 255}
	read := func(path string) error {
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		images, failed, err := b.Images(context.Background(), [][]byte{content}, preset, true)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if err := images.Close(); err != nil {
			return err
		}
		if failed[0] != nil {
			return fmt.Errorf("%s: %w", path, failed[0])
		}
		return nil
	}
	mutate.Every(t, mutate.Format{Name: "image", Cases: 300, Seeds: seeds}, mutate.Reader{Ending: ".img", Read: read})
}

// FuzzNetFile: any bytes are a net file or the user's mistake in one line.
func FuzzNetFile(f *testing.F) {
	for _, b := range netSeeds() {
		f.Add(b)
	}
	b, err := device.Open("cpu", 1)
	require.NoError(f, err)
	f.Cleanup(func() { b.Close() })
	f.Fuzz(func(t *testing.T, content []byte) {
		_, err := b.DescribeFile(context.Background(), orchestrate.NetFile{Name: "net.json", Content: content})
		if err != nil {
			require.ErrorIs(t, err, usage.Err)
			require.Empty(t, mutate.OneLine(err, "net.json"), err.Error())
		}
	})
}
