package torchx

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/assay-xai/assay/internal/fill"
)

func scriptFile(t *testing.T, name string) []byte {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("..", "testdata", "torchscript", name))
	require.NoError(t, err)
	return content
}

// The logits are PyTorch's, in double precision (scripts/golden_torchscript.py).
func TestNetFromTorchScript(t *testing.T) {
	ctx := context.Background()
	d := cpu(t)
	var golden struct {
		Files []struct {
			File     string
			Input    []int
			BlackBox string
			Names    []string
			Logits   []float64
		}
	}
	require.NoError(t, json.Unmarshal(scriptFile(t, "golden.json"), &golden))
	seen := map[bool]int{}
	for _, g := range golden.Files {
		if g.File != "resnet-traced.pt" && g.BlackBox == "" {
			continue
		}
		seen[g.BlackBox != ""]++
		n, err := d.NetFromTorchScript(ctx, scriptFile(t, g.File), ScriptSpec{Name: g.File, Input: g.Input})
		require.NoError(t, err)
		defer n.Close()
		said, err := n.Describe()
		require.NoError(t, err)
		var description struct {
			Net        string
			BlackBox   bool
			Reason     string
			Parameters []struct{ Name string }
			Layers     []struct{ Name string }
		}
		require.NoError(t, json.Unmarshal(said, &description))
		require.Equal(t, g.File, description.Net)
		require.Equal(t, g.BlackBox != "", description.BlackBox)
		require.Contains(t, description.Reason, g.BlackBox)
		require.Equal(t, description.BlackBox, len(description.Layers) == 0)
		var names []string
		for _, p := range description.Parameters {
			names = append(names, p.Name)
		}
		require.ElementsMatch(t, g.Names, names)

		require.NoError(t, n.Prepare(ctx, PrecisionF32))
		shape := []int64{2}
		for _, size := range g.Input {
			shape = append(shape, int64(size))
		}
		x, err := NewFloats(shape, fill.Input(shape))
		require.NoError(t, err)
		defer x.Close()
		y, err := n.Forward(ctx, x, 0)
		require.NoError(t, err)
		defer y.Close()
		got, err := y.Floats()
		require.NoError(t, err)
		require.Len(t, got, len(g.Logits))
		for i := range got {
			require.InDelta(t, g.Logits[i], got[i], 1e-5)
		}
	}
	require.Equal(t, map[bool]int{false: 1, true: 2}, seen)
}

func TestTorchScriptErrors(t *testing.T) {
	d := cpu(t)
	for _, c := range []struct {
		content []byte
		says    string
	}{
		{nil, "own.pt is empty"},
		{[]byte("PK"), "own.pt: it is no TorchScript file"},
		{scriptFile(t, "state.pth"), "own.pt: it is of torch.save (a state dict?): weights, not a program"},
		{scriptFile(t, "exported.pt2"), "scripts/export_torch.py makes a net file of it"},
		{scriptFile(t, "map.pt"), "want floats [2,classes]"},
	} {
		_, err := d.NetFromTorchScript(context.Background(), c.content, ScriptSpec{Name: "own.pt", Input: []int{3, 12, 12}})
		require.ErrorIs(t, err, ErrInvalid)
		require.Contains(t, err.Error(), c.says)
	}
}
