package orchestrate_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/assay-xai/assay/orchestrate"
)

// trained is a plan that trains the generator that it uses, on digits of 8x8.
func (w *world) trained(grid string) *orchestrate.Plan {
	p, err := orchestrate.ParsePlan("plan.yaml", []byte(subst("version: 1\nstudy: road\n"+
		"train: [{name: mine, imputer: gain, data: {path: 'embedded:digits', limit: 100}, settings: {epochs: 2, width: 4, augment: none}}]\n"+
		"generator: {weights: 'train:mine'}\n"+
		"nets: [{net: tiny, weights: DIR/tiny.safetensors, preset: digits}]\n"+
		"data: [{path: 'embedded:digits', limit: 6}]\ngrid: "+grid+"\nbatch: 4\nthreads: 1\ndevice: cpu\n", w.dir)))
	require.NoError(w.t, err)
	return p
}

// A plan trains its generator first, once, and names the file that came of it; shards
// train alike, and the merge takes the training over.
func TestPlansTrainTheirGenerator(t *testing.T) {
	w := newWorld(t, 0)
	const grid = "{order: random, imputer: [gain, channel-mean], fractions: [.5, 1]}"
	_, err := w.run(w.trained(grid), "whole")
	require.NoError(t, err)
	require.Contains(t, w.read("whole/plan.yaml"), "generator:\n  weights: "+w.path("whole/train/mine/best.safetensors")+"\n  hash: ")
	for _, plan := range []string{"", "whole/plan.yaml"} {
		p := w.trained(grid)
		if plan != "" {
			p, err = orchestrate.LoadPlan(w.path(plan))
			require.NoError(t, err)
		}
		before := w.backend.Calls()
		_, err := w.run(p, "whole")
		require.NoError(t, err)
		require.Equal(t, before, w.backend.Calls(), "neither trained nor measured again")
	}

	folders := w.shards(w.trained(grid), 2)
	_, err = w.merge("merged", folders...)
	require.NoError(t, err)
	require.Equal(t, w.records("whole"), w.records("merged"))
	require.Contains(t, w.read("merged/plan.yaml"), "weights: "+w.path("merged/train/mine/best.safetensors"))
	require.Equal(t, w.read("whole/train/mine/best.safetensors"), w.read("merged/train/mine/best.safetensors"))

	// The file by itself is the same generator.
	p := w.trained(grid)
	p.Train, p.Generator.Weights = nil, w.path("merged/train/mine/best.safetensors")
	_, err = w.run(p, "file")
	require.NoError(t, err)
	require.Equal(t, w.records("whole"), w.records("file"))
	w.closed()
}
