package fake_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/assay-xai/assay/dataset"
	"github.com/assay-xai/assay/internal/fake"
	"github.com/assay-xai/assay/orchestrate"
	"github.com/assay-xai/assay/scores"
	"github.com/assay-xai/assay/weights"
)

// Every score runs on the fake, gives the same for an image alone, and leaves
// nothing open.
func TestEveryScoreRunsOnTheFake(t *testing.T) {
	b := &fake.Backend{}
	path := filepath.Join(t.TempDir(), "w.safetensors")
	require.NoError(t, fake.Weights(path, 10))
	sd, err := weights.Open(path)
	require.NoError(t, err)
	info, err := b.Describe(t.Context(), "tiny", 0, 0)
	require.NoError(t, err)
	state, _, err := weights.Match(sd, info.Parameters)
	require.NoError(t, err)
	net, err := b.OpenNet(t.Context(), orchestrate.NetSpec{Net: "tiny"}, state)
	require.NoError(t, err)
	images, _, err := b.Images(t.Context(), [][]byte{[]byte("one"), []byte("BAD"), []byte("two")}, dataset.Preset{Channels: 3, Height: 8, Width: 8}, false)
	require.NoError(t, err)
	method := orchestrate.MethodSpec{ID: "random"}
	keys := map[int]uint64{0: 5, 2: 6}
	compute := func(s scores.Score, rows ...int) []scores.Result {
		spec := orchestrate.StageSpec{Rows: rows, Method: &method, Batch: 4}
		for _, r := range rows {
			spec.Keys = append(spec.Keys, keys[r])
		}
		stage, err := net.Stage(t.Context(), images, spec)
		require.NoError(t, err)
		targets := []int{3, 4}[:len(rows)]
		if rows[0] == 2 {
			targets = []int{4}
		}
		maps, err := stage.Explain(t.Context(), targets)
		require.NoError(t, err)
		g := scores.Group{Stage: stage, Seed: 1}
		for i, m := range maps {
			g.Images = append(g.Images, scores.Image{ID: string(rune('a' + rows[i])), Target: targets[i], Map: m,
				Region: &scores.Region{Boxes: []scores.Box{{X1: 4, Y1: 4}}}})
		}
		with := map[string]any{}
		for _, p := range s.Parameters {
			switch p.Name {
			case "edge":
				with["edge"] = 4
			case "step":
				with["step"] = 8
			}
		}
		out, err := s.Compute(t.Context(), g, with)
		require.NoError(t, err)
		require.NoError(t, stage.Close())
		return out
	}
	for _, s := range scores.Registry() {
		both := compute(s, 0, 2)
		require.Equal(t, both[1:], compute(s, 2), s.ID)
		if s.ID == "deletion" {
			require.NotEqual(t, both[0].Value, both[1].Value)
		}
		require.Empty(t, both[0].Undefined, s.ID)
	}
	require.NoError(t, images.Close())
	require.NoError(t, net.Close())
	require.Zero(t, b.OpenImages.Load()+b.OpenNets.Load()+b.OpenScenes.Load()+b.OpenStages.Load())
}
