package device_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/assay-xai/assay/dataset"
	"github.com/assay-xai/assay/internal/rng"
	"github.com/assay-xai/assay/internal/usage"
	"github.com/assay-xai/assay/orchestrate"
	"github.com/assay-xai/assay/trace"
)

func gainSpec(shape ...int) orchestrate.TrainerSpec {
	return orchestrate.TrainerSpec{Precision: "f32", Seed: 7, Optimizer: orchestrate.Optimizer{ID: "adam", Beta1: .5, Beta2: .999, Epsilon: 1e-8},
		Augment: orchestrate.Augment{Flip: true}, Preset: dataset.Preset{Scale: 255, Mean: []float64{.3}, Std: []float64{.7}},
		Imputer: &orchestrate.ImputerTraining{ID: "gain", Shape: shape, Alpha: 100, HintRate: .01, MaximumRate: .5, Width: 4}}
}

// trainedGenerator is what some steps on images of noise come to.
func trainedGenerator(t *testing.T, shape ...int) *orchestrate.Generator {
	t.Helper()
	tr := openTrainer(t, trainingBackend(t), gainSpec(shape...), nil)
	require.Equal(t, "gain", tr.Info().Net)
	require.Equal(t, shape, tr.Info().Input)
	const n = 10
	data := orchestrate.TrainingData{Shape: shape, Labels: make([]int32, n)}
	stream := rng.New(3, "test", "pixels")
	size := shape[0] * shape[1] * shape[2]
	for i := range n * size {
		data.Pixels = append(data.Pixels, byte(stream.IntN(uint64(i), 0, 256)))
	}
	require.NoError(t, tr.SetData(t.Context(), "train", data))
	indices, rates := plan(3, 5, n, 5e-4)
	got, err := tr.Steps(t.Context(), indices, 5, rates, 0)
	require.NoError(t, err)
	require.Len(t, got.Losses, 3)
	require.Equal(t, 15*size, got.Examples)
	e, err := tr.Evaluate(t.Context(), "train", 4)
	require.NoError(t, err)
	require.Equal(t, n*size, e.Examples)
	// A quarter of the pixels, of noise uniform on 0..1: the mean image would have 1/48.
	require.Greater(t, e.Loss, .01)
	require.Less(t, e.Loss, .1)
	state, err := tr.Parameters(t.Context())
	require.NoError(t, err)
	require.Contains(t, state, "generator.net.0.weight_orig")
	require.Contains(t, state, "discriminator.net.13.bias")
	return &orchestrate.Generator{Hash: "of a test", State: state}
}

func TestRemoveImputesByAGenerator(t *testing.T) {
	g, net, images := openQuantusNet(t)
	spec := removing(g, "gain", nil)
	spec.DatasetMean = nil // not even where everything is removed
	_, err := net.Remove(t.Context(), images, spec)
	require.ErrorIs(t, err, usage.Err)
	require.ErrorContains(t, err, "no generator was given")

	spec.Generator = trainedGenerator(t, 1, g.Height, g.Width)
	got, err := net.Remove(t.Context(), images, spec)
	require.NoError(t, err)
	for r, row := range spec.Rows {
		kept := 0
		for i, v := range got.Inputs[r] {
			if g.Images[row.Image][i] == v {
				kept++
			}
		}
		require.Equal(t, len(g.Maps[row.Image])-row.Removed, kept, "row %d", r)
	}
	again, err := net.Remove(t.Context(), images, spec)
	require.NoError(t, err)
	require.Equal(t, got.Inputs, again.Inputs)

	other := spec
	other.Generator = trainedGenerator(t, 1, g.Height+1, g.Width)
	other.Generator.Hash = "of another shape"
	_, err = net.Remove(t.Context(), images, other)
	require.ErrorIs(t, err, usage.Err)
	require.ErrorContains(t, err, "the generator is for images [1, ")
}

// A state of a scene is what is removed by rank, seen by the same net.
func TestScenesImputeByAGenerator(t *testing.T) {
	g, net, images := openQuantusNet(t)
	spec := removing(g, "gain", nil)
	spec.Generator = trainedGenerator(t, 1, g.Height, g.Width)
	pixels := g.Height * g.Width
	rank := make([]float32, pixels) // the first pixels are the most relevant
	for i := range rank {
		rank[i] = float32(pixels - i)
	}
	for i := range spec.Maps {
		spec.Maps[i] = rank
	}
	spec.Rows = []orchestrate.RemovalRow{{Image: 0, Removed: pixels / 3}}
	want, err := net.Remove(t.Context(), images, spec)
	require.NoError(t, err)

	scene, err := net.Scene(t.Context(), orchestrate.SceneSpec{Slots: 1, Shape: []int{1, g.Height, g.Width}, Features: pixels,
		FeatureMap: trace.ColumnMap(pixels), Reference: spec.Imputer, Generator: spec.Generator, Preset: spec.Preset, Batch: spec.Batch})
	require.NoError(t, err)
	defer func() { require.NoError(t, scene.Close()) }()
	require.NoError(t, scene.Put(t.Context(), 0, images, 0, spec.NoiseKeys[0]))
	set := make([]uint64, trace.Words(pixels))
	for i := range pixels / 3 {
		set[i/64] |= 1 << (i % 64)
	}
	got, err := scene.ScoreRows(t.Context(), []trace.Row{{Slot: 0, Target: g.Targets[0], Set: set}})
	require.NoError(t, err)
	require.InDelta(t, want.Probabilities[0][0], got[0].Prob, 1e-6)
}

func TestImputerTrainersSayWhatIsWrong(t *testing.T) {
	b := trainingBackend(t)
	for _, c := range []struct {
		change func(s *orchestrate.TrainerSpec)
		says   string
	}{
		{func(s *orchestrate.TrainerSpec) { s.Imputer.ID = "gan" }, "want one of gain"},
		{func(s *orchestrate.TrainerSpec) { s.Imputer.Alpha = -1 }, "alpha -1"},
		{func(s *orchestrate.TrainerSpec) { s.Imputer.Shape = []int{8, 8} }, "want images [C,H,W]"},
		{func(s *orchestrate.TrainerSpec) { s.Imputer.Shape = []int{0, 8, 8} }, "want whole numbers from 1"},
		{func(s *orchestrate.TrainerSpec) { s.LabelSmoothing = .1 }, "labelSmoothing"},
	} {
		spec := gainSpec(1, 8, 8)
		c.change(&spec)
		_, err := b.OpenTrainer(t.Context(), spec, nil)
		require.ErrorIs(t, err, usage.Err, c.says)
		require.ErrorContains(t, err, c.says)
	}
}
