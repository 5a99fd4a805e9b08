package device_test

import (
	"context"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/assay-xai/assay/orchestrate"
)

// Every example comes with two labels, equally often: ln 2 is the least loss, and
// half of the predictions are right.
func TestTrainerReachesTheLeastLoss(t *testing.T) {
	b := backend(t).(orchestrate.TrainingBackend)
	ctx := context.Background()
	tr, err := b.OpenTrainer(ctx, orchestrate.TrainerSpec{Net: "cnn3", Seed: 1, Optimizer: orchestrate.Optimizer{ID: "sgd", Momentum: .9}}, nil)
	require.NoError(t, err)
	defer tr.Close()
	data := orchestrate.TrainingData{Shape: []int{1, 8, 8}}
	for i := range 40 {
		for p := range 64 {
			data.Values = append(data.Values, float32((i*7+p*i)%5)/5)
		}
		data.Labels = append(data.Labels, int32(i%10))
	}
	require.NoError(t, tr.SetData(ctx, "train", data))
	var indices []int32
	var rates []float64
	for i := range 300 {
		rates = append(rates, .02)
		for k := range 8 {
			indices = append(indices, int32((i*8+k)%40))
		}
	}
	got, err := tr.Steps(ctx, indices, 8, rates, 0)
	require.NoError(t, err)
	require.Len(t, got.Losses, 300)
	require.InDelta(t, math.Log(10), got.Losses[0], .3, "nearly uniform at first")
	require.Equal(t, 2400, got.Examples)
	e, err := tr.Evaluate(ctx, "train", 16)
	require.NoError(t, err)
	require.Equal(t, 40, e.Examples)
	require.Equal(t, 20, e.Correct)
	require.InDelta(t, math.Ln2+.01, e.Loss, .01)
}
