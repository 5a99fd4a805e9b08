package dataset

import (
	"errors"
	"io/fs"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/assay-xai/assay/internal/usage"
)

func TestPresetsAreValidAndFound(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range Presets() {
		require.NoError(t, p.Validate(), p.ID)
		require.NotEmpty(t, p.Summary, p.ID)
		require.False(t, seen[p.ID], p.ID)
		seen[p.ID] = true
		found, err := PresetByID(p.ID)
		require.NoError(t, err)
		require.Equal(t, p, found)
	}
	for _, id := range []string{"imagenet", "imagenet-v2", "imagenet-squash", "tf-lite", "cifar10", "cifar10-std", "cifar10-half", "mnist", "fashion-mnist", "digits", "table"} {
		require.True(t, seen[id], id)
	}
	_, err := PresetByID("imagenet-squish")
	requireUsage(t, err, `"imagenet-squish"`, "did you mean imagenet-squash?", "tf-lite")
	_, err = PresetByID("zzzzzzzzzz")
	requireUsage(t, err, "want one of")
	require.NotContains(t, err.Error(), "did you mean")
	Presets()[0].Mean[0] = 7
	require.Equal(t, .485, Presets()[0].Mean[0], "the slices are the caller's")
	require.Equal(t, []float64{.485, .456, .406}, imagenetMean)
}

// Pixel values as the presets' own definitions give them.
func TestNormalise(t *testing.T) {
	for _, c := range []struct {
		preset string
		raw    []float32
		shape  []int
		want   []float64
	}{
		{"tf-lite", []float32{0, 127, 255}, []int{3, 1, 1}, []float64{-127. / 128, 0, 1}},
		{"cifar10-half", []float32{0, 255, 127.5, 0, 0, 255}, []int{3, 1, 2}, []float64{-1, 1, 0, -1, -1, 1}},
		// (1 - mean) / std of torchvision's documentation, worked out by hand.
		{"imagenet", []float32{255, 255, 255}, []int{3, 1, 1}, []float64{2.2489083, 2.4285714, 2.64}},
		{"mnist", []float32{0, 255}, []int{1, 1, 2}, []float64{-.42421296, 2.82148653}},
		{"digits", []float32{0, 8, 16}, []int{1, 1, 3}, []float64{0, .5, 1}},
		{"table", []float32{-3, 4}, []int{2}, []float64{-3, 4}},
	} {
		p, err := PresetByID(c.preset)
		require.NoError(t, err)
		require.NoError(t, p.Normalise(c.raw, c.shape))
		for i := range c.want {
			require.InDelta(t, c.want[i], c.raw[i], 1e-6, "%s[%d]", c.preset, i)
		}
	}
	p, err := PresetByID("imagenet")
	require.NoError(t, err)
	requireUsage(t, p.Normalise(make([]float32, 4), []int{1, 2, 2}), "imagenet", "[1 2 2]")
	require.Error(t, p.Normalise(make([]float32, 3), []int{3, 2, 2}))
	require.Error(t, p.Normalise(nil, nil))
}

func TestParsePreset(t *testing.T) {
	p, err := ParsePreset("p.yaml", []byte("resize: shorter\nheight: 64\ncropHeight: 56\ncropWidth: 56\ninterpolation: bicubic\nmean: [0.5]\nstd: [0.25]\n"))
	require.NoError(t, err)
	require.Equal(t, Preset{ID: "custom", Resize: "shorter", Height: 64, Width: 64, Interpolation: "bicubic",
		CropHeight: 56, CropWidth: 56, Channels: 3, Scale: 255, Mean: []float64{.5}, Std: []float64{.25}}, p)
	p, err = ParsePreset("p.yaml", []byte("channels: 1\n"))
	require.NoError(t, err)
	require.Equal(t, Preset{ID: "custom", Resize: "none", Interpolation: "bilinear", Channels: 1, Scale: 255, Mean: []float64{0}, Std: []float64{1}}, p)

	// Tables have columns, not channels: what a resolved plan says of them comes back.
	p, err = ParsePreset("p.yaml", []byte("id: table\nresize: none\nscale: 1.0\n"))
	require.NoError(t, err)
	require.Equal(t, Preset{ID: "table", Resize: "none", Scale: 1}, p)
	p, err = ParsePreset("p.yaml", []byte("id: table\nresize: none\nscale: 1.0\nmean: [1, 2]\nstd: [3, 4]\n"))
	require.NoError(t, err)
	require.Equal(t, Preset{ID: "table", Resize: "none", Scale: 1, Mean: []float64{1, 2}, Std: []float64{3, 4}}, p)

	for _, c := range []struct{ text, want string }{
		{"resize: stretch", `resize "stretch": want none, shorter or squash`},
		{"resize: squash", "height 0: want 1.."},
		{"resize: squash\nheight: 10\nwidth: 100000", "width 100000"},
		{"interpolation: nearest", `interpolation "nearest"`},
		{"channels: 4", "channels 4"},
		{"scale: -1", "scale -1"},
		{"mean: [1, 2]", "2 means and 3 stds"},
		{"mean: [1, 2]\nstd: [1, 2]", "2 means: want one a channel (3)"},
		{"std: [1, 0, 1]", "std 0"},
		{"mean: [.nan, 0, 0]", "mean NaN"},
		{"cropHeight: 10", "crop 10x0"},
		{"resize: squash\nheight: 10\nwidth: 10\ncropHeight: 11\ncropWidth: 10", "at most the resized 10x10"},
		{"resise: squash", "resise"},
		{"mean: [1", "p.yaml"},
	} {
		_, err := ParsePreset("p.yaml", []byte(c.text))
		requireUsage(t, err, c.want, "p.yaml")
	}
	_, err = ParsePreset("p.yaml", []byte("resize: none\nfoo: 1\n"))
	requireUsage(t, err, ":2:1: ") // line and column of the unknown key
}

func TestLoadPreset(t *testing.T) {
	path := writeFile(t, filepath.Join(t.TempDir(), "mine.yml"), []byte("id: mine\nresize: squash\nheight: 8\nwidth: 9\n"))
	p, err := LoadPreset(path)
	require.NoError(t, err)
	require.Equal(t, "mine", p.ID)
	require.Equal(t, 9, p.Width)
	p, err = LoadPreset("tf-lite")
	require.NoError(t, err)
	require.Equal(t, 224, p.CropHeight)
	_, err = LoadPreset("gone.yaml")
	require.True(t, errors.Is(err, fs.ErrNotExist) && errors.Is(err, usage.Err))
}

func TestNames(t *testing.T) {
	require.Len(t, wnids(), 1000)
	require.IsIncreasing(t, wnids())
	// WordNet: n01440764 tench, n02123159 tiger cat, n07920052 espresso, n15075141 toilet tissue.
	names := ClassNames("imagenet")
	require.Len(t, names, 1000)
	for id, name := range map[string]string{"n01440764": "tench", "n02123159": "tiger cat", "n07920052": "espresso", "n15075141": "toilet tissue"} {
		class, ok := wnidClass(id)
		require.True(t, ok)
		require.Equal(t, name, names[class])
	}
	require.Equal(t, []string{"airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"}, ClassNames("cifar10"))
	require.Len(t, ClassNames("fashion-mnist"), 10)
	require.Nil(t, ClassNames("other"))
	require.Equal(t, "tench", NamesFor("tf-lite", 1000)[0])
	require.Equal(t, "airplane", NamesFor("cifar10-half", 10)[0])
	require.Equal(t, "Trouser", NamesFor("fashion-mnist", 10)[1])
	require.Nil(t, NamesFor("imagenet", 10))
	require.Nil(t, NamesFor("table", 10))
}

func TestEditDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"kitten", "sitting", 3}, {"", "abc", 3}, {"flaw", "lawn", 2}, {"same", "same", 0}} {
		require.Equal(t, c.want, editDistance(c.a, c.b))
		require.Equal(t, c.want, editDistance(c.b, c.a))
	}
}

// Rows of a NumPy array with the channels last get the transposition that helps.
func TestNormaliseChannelsLast(t *testing.T) {
	p, err := PresetByID("cifar10")
	require.NoError(t, err)
	err = p.Normalise(make([]float32, 32*32*3), []int{32, 32, 3})
	require.ErrorIs(t, err, usage.Err)
	require.ErrorContains(t, err, "transpose(0, 3, 1, 2)")
}
