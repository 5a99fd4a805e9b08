package weights

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/assay-xai/assay/internal/usage"
)

func stateOf(tensors ...any) *StateDict { // name, shape, name, shape, ...
	sd := &StateDict{Tensors: map[string]Tensor{}}
	for i := 0; i < len(tensors); i += 2 {
		name, shape := tensors[i].(string), tensors[i+1].([]int64)
		dtype := "f32"
		if isBatchCounter(name) {
			dtype = "i64"
		}
		n, _ := byteCount(dtype, shape)
		sd.Names = append(sd.Names, name)
		sd.Tensors[name] = Tensor{DType: dtype, Shape: shape, Data: make([]byte, n)}
	}
	return sd
}

var (
	net = []Parameter{
		{Name: "conv1.weight", Shape: []int64{4, 3, 3, 3}},
		{Name: "bn1.weight", Shape: []int64{4}},
		{Name: "bn1.running_mean", Shape: []int64{4}, Buffer: true},
		{Name: "bn1.num_batches_tracked", Shape: []int64{}, Buffer: true, Optional: true},
		{Name: "fc.weight", Shape: []int64{10, 4}},
	}
	fits = []any{"conv1.weight", []int64{4, 3, 3, 3}, "bn1.weight", []int64{4}, "bn1.running_mean", []int64{4}, "fc.weight", []int64{10, 4}}
)

func with(more ...any) *StateDict { return stateOf(append(append([]any{}, fits...), more...)...) }

func TestMatch(t *testing.T) {
	dense := []Parameter{{Name: "features.denseblock1.denselayer12.norm1.weight", Shape: []int64{2}}, {Name: "features.denseblock1.denselayer12.conv2.weight", Shape: []int64{2}}}
	for _, c := range []struct {
		name     string
		sd       *StateDict
		want     []Parameter
		found    []string
		warnings int
	}{
		{"all there", with("bn1.num_batches_tracked", []int64{}), net, []string{"bn1.num_batches_tracked"}, 0},
		{"no counter", with(), net, nil, 0},
		{"no counter, wanted", with(), append(net[:3:3], Parameter{Name: "bn1.num_batches_tracked", Shape: []int64{}}, net[4]), nil, 0},
		{"a counter too many", with("bn1.num_batches_tracked", []int64{}), append(net[:3:3], net[4]), nil, 0},
		{
			"DenseNet's old spelling",
			stateOf("features.denseblock1.denselayer12.norm.1.weight", []int64{2}, "features.denseblock1.denselayer12.conv.2.weight", []int64{2}),
			dense, []string{dense[0].Name, dense[1].Name}, 0,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			found, warnings, err := Match(c.sd, c.want)
			require.NoError(t, err)
			require.Len(t, warnings, c.warnings)
			wanted := map[string]bool{}
			for _, p := range c.want {
				wanted[p.Name] = true
			}
			for name := range found {
				require.True(t, wanted[name], name)
			}
			for _, name := range c.found {
				require.Contains(t, found, name)
			}
		})
	}

	// Auxiliary heads that the net lists are loaded like anything else.
	withAux := append(net[:5:5], Parameter{Name: "aux1.fc1.weight", Shape: []int64{2}})
	found, warnings, err := Match(with("aux1.fc1.weight", []int64{2}), withAux)
	require.NoError(t, err)
	require.Empty(t, warnings)
	require.Contains(t, found, "aux1.fc1.weight")
}

func TestMatchRefuses(t *testing.T) {
	integer := with()
	integer.Tensors["bn1.weight"] = Tensor{DType: "i32", Shape: []int64{4}, Data: make([]byte, 16)}
	for _, c := range []struct {
		name string
		sd   *StateDict
		want []string
	}{
		{"another net", stateOf("a", []int64{1}, "b", []int64{1}, "c", []int64{1}, "d", []int64{1}), []string{
			"4 of the net's 5 missing (conv1.weight, bn1.weight, bn1.running_mean, ...)", "4 of the file's 4 not in the net (a, b, c, ...)", "want a state dict of this net"}},
		{"one missing", stateOf(fits[:6]...), []string{"1 of the net's 5 missing (fc.weight)"}},
		{"one more", with("layer9.weight", []int64{1}), []string{"1 of the file's 5 not in the net (layer9.weight)"}},
		{"another head", stateOf(append(append([]any{}, fits[:6]...), "fc.weight", []int64{100, 4})...), []string{
			"1 of another shape (fc.weight is [100 4], the net's [10 4])", "the number of classes"}},
		{"the same size in another shape", stateOf(append(append([]any{}, fits[:6]...), "fc.weight", []int64{4, 10})...), []string{"of another shape"}},
		{"integers", integer, []string{"1 not floating-point (bn1.weight is i32)"}},
		{"auxiliary heads of another net", with("aux1.fc1.weight", []int64{2}), []string{"1 of the file's 5 not in the net (aux1.fc1.weight)"}},
		{"old spelling beside the new one", with("x.denselayer1.norm.1.weight", []int64{4}), []string{"not in the net"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			found, _, err := Match(c.sd, net)
			require.Nil(t, found)
			require.ErrorIs(t, err, usage.Err)
			for _, w := range c.want {
				require.ErrorContains(t, err, w)
			}
			require.NotContains(t, err.Error(), "\n")
		})
	}
}

// The classes of these nets are known from their papers and file names.
func TestClasses(t *testing.T) {
	for _, c := range []struct {
		name  string
		sd    *StateDict
		want  int
		found bool
	}{
		{"resnet", stateOf("conv1.weight", []int64{64, 3, 7, 7}, "fc.weight", []int64{1000, 512}), 1000, true},
		{"vgg: the last of the classifier", stateOf("classifier.0.weight", []int64{4096, 25088}, "classifier.6.weight", []int64{1000, 4096}, "classifier.3.weight", []int64{4096, 4096}), 1000, true},
		{"squeezenet: a convolution", stateOf("features.0.weight", []int64{64, 3, 3, 3}, "classifier.1.weight", []int64{1000, 512, 1, 1}), 1000, true},
		{"efficientnet-lite0", stateOf("_conv_stem.weight", []int64{32, 3, 3, 3}, "_fc.weight", []int64{1000, 1280}), 1000, true},
		{"cifar resnet", stateOf("linear.weight", []int64{10, 64}, "linear.bias", []int64{10}), 10, true},
		{"vit", stateOf("heads.head.weight", []int64{1000, 768}), 1000, true},
		{"unknown names: the last linear weight", stateOf("0.weight", []int64{128, 30}, "6.weight", []int64{3, 128}, "6.bias", []int64{3}), 3, true},
		{"nothing linear", stateOf("conv1.weight", []int64{64, 3, 7, 7}), 0, false},
		{"a head of another kind", stateOf("fc.weight", []int64{64, 3, 7, 7}), 0, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			n, ok := Classes(c.sd)
			require.Equal(t, c.found, ok)
			require.Equal(t, c.want, n)
		})
	}
	n, ok := HeadClasses(stateOf("head2.weight", []int64{7, 2}, "fc.weight", []int64{5, 2}), []string{"absent", "head2.weight", "fc.weight"})
	require.True(t, ok)
	require.Equal(t, 7, n)
}

func TestResolve(t *testing.T) {
	cache := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", cache)
	dir, err := CacheDir()
	require.NoError(t, err)
	require.Equal(t, filepath.Join(cache, "assay", "weights"), dir)

	for _, c := range []struct{ net, arg, want string }{
		{"resnet50", "", "resnet50-0676ba61.pth): run `assay fetch resnet50`"},
		{"resnet50", "imagenet1k_v2", "resnet50-11ad3fa6.pth): run `assay fetch resnet50-11ad3fa6.pth`"},
		{"resnet50", "V2", "resnet50-11ad3fa6.pth): run `assay fetch resnet50-11ad3fa6.pth`"},
		{"resnet18", "IMAGENET1K_V2", "no file IMAGENET1K_V2: want a path, or for resnet18 a published version: IMAGENET1K_V1"},
		{"efficientnet-lite0", "", "efficientnet-lite0-57934424.pth): scripts/setup.sh"},
		{"mlp", "", "no weights of mlp are published: give a file with --weights"},
		{"mlp", "w.pth", "no file w.pth"},
	} {
		_, err := Resolve(c.net, c.arg)
		require.ErrorIs(t, err, usage.Err)
		require.ErrorContains(t, err, c.want)
	}

	touch(t, filepath.Join(dir, "resnet50-0676ba61.pth"))
	own := filepath.Join(cache, "own.pth")
	touch(t, own)
	for _, c := range []struct{ net, arg, want string }{
		{"resnet50", "", filepath.Join(dir, "resnet50-0676ba61.pth")},
		{"resnet50", "IMAGENET1K_V1", filepath.Join(dir, "resnet50-0676ba61.pth")},
		{"resnet50", "resnet50-0676ba61.pth", filepath.Join(dir, "resnet50-0676ba61.pth")},
		{"resnet50", own, own},
		{"mlp", own, own},
	} {
		got, err := Resolve(c.net, c.arg)
		require.NoError(t, err)
		require.Equal(t, c.want, got)
	}

	t.Setenv("XDG_CACHE_HOME", "relative")
	t.Setenv("HOME", cache)
	dir, err = CacheDir()
	require.NoError(t, err)
	require.Equal(t, filepath.Join(cache, ".cache", "assay", "weights"), dir)
}

func TestPublishedIsConsistent(t *testing.T) {
	files := map[string]bool{}
	for _, p := range Published() {
		require.False(t, files[p.File], p.File)
		files[p.File] = true
		require.NotEmpty(t, p.Net)
		require.NotEmpty(t, p.Preset)
		require.NotEmpty(t, p.Licence)
		require.NotEmpty(t, p.hash(), p.File)
		if p.SHA256 != "" {
			require.Len(t, p.SHA256, 64)
			require.Contains(t, p.File, "-"+p.SHA256[:8]+".")
		}
		require.True(t, p.BaseURL != "" || p.Note != "", p.File)
		require.True(t, p.BaseURL == "" || strings.HasPrefix(p.BaseURL, "https://"))
		found, ok := findPublished(p.Net, p.Version)
		require.True(t, ok)
		require.Equal(t, p, found)
	}
	// The default of a net is what the papers used.
	for _, net := range []string{"resnet18", "resnet34", "resnet50", "resnet101"} {
		require.Equal(t, "IMAGENET1K_V1", publishedFor(net)[0].Version)
	}
}
