package device_test

import (
	"context"
	"encoding/binary"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/assay-xai/assay/dataset"
	"github.com/assay-xai/assay/internal/device"
	"github.com/assay-xai/assay/internal/fill"
	"github.com/assay-xai/assay/internal/rng"
	"github.com/assay-xai/assay/internal/usage"
	"github.com/assay-xai/assay/orchestrate"
	"github.com/assay-xai/assay/weights"
)

func trainingBackend(t *testing.T) orchestrate.TrainingBackend {
	t.Helper()
	b, err := device.Open("cpu", 1)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.Close()) })
	return b.(orchestrate.TrainingBackend)
}

func openTrainer(t *testing.T, b orchestrate.TrainingBackend, spec orchestrate.TrainerSpec, state map[string]weights.Tensor) orchestrate.Trainer {
	t.Helper()
	tr, err := b.OpenTrainer(context.Background(), spec, state)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, tr.Close()) })
	return tr
}

var sgd = orchestrate.Optimizer{ID: "sgd", Momentum: .9, Nesterov: true, WeightDecay: 1e-3}

// plan is the indices and rates of some steps on n examples in turn.
func plan(steps, batch, n int, rate float64) (indices []int32, rates []float64) {
	for i := range steps * batch {
		indices = append(indices, int32(i%n))
	}
	for range steps {
		rates = append(rates, rate)
	}
	return indices, rates
}

// Every example comes with two labels, equally often: ln 2 is the least loss, and
// half of the predictions are right.
func TestTrainerReachesTheLeastLoss(t *testing.T) {
	ctx := context.Background()
	for _, o := range []orchestrate.Optimizer{{ID: "sgd", Momentum: .9}, {ID: "adam"}} {
		tr := openTrainer(t, trainingBackend(t), orchestrate.TrainerSpec{Net: "mlp", Seed: 1, Optimizer: o}, nil)
		data := orchestrate.TrainingData{Shape: []int{1, 8, 8}}
		for i := range 40 {
			for p := range 64 {
				data.Values = append(data.Values, float32((i*7+p*i)%5)/5)
			}
			data.Labels = append(data.Labels, int32(i%10))
		}
		require.NoError(t, tr.SetData(ctx, "train", data))
		indices, rates := plan(400, 8, 40, map[string]float64{"sgd": .05, "adam": .002}[o.ID])
		got, err := tr.Steps(ctx, indices, 8, rates, 0)
		require.NoError(t, err)
		require.Len(t, got.Losses, 400)
		require.InDelta(t, math.Log(10), got.Losses[0], .3, "nearly uniform at first")
		require.Equal(t, 3200, got.Examples)
		e, err := tr.Evaluate(ctx, "train", 16)
		require.NoError(t, err)
		require.Equal(t, 40, e.Examples)
		require.Equal(t, 20, e.Correct)
		require.InDelta(t, math.Ln2+.01, e.Loss, .011, o.ID)
	}
}

// The first parameters are the numbers of internal/rng, with PyTorch's bounds.
func TestInitialParametersAreKeyedBySeedAndName(t *testing.T) {
	ctx := context.Background()
	tr := openTrainer(t, trainingBackend(t), orchestrate.TrainerSpec{Net: "cnn3", Seed: 9, Optimizer: sgd, Precision: "f64"}, nil)
	state, err := tr.Parameters(ctx)
	require.NoError(t, err)
	for name, fanIn := range map[string]float64{"conv1.weight": 9, "conv1.bias": 9, "conv2.weight": 288, "fc.weight": 256, "fc.bias": 256} {
		s := rng.New(9, "train/initial", name)
		require.Equal(t, "f64", state[name].DType)
		for i := range len(state[name].Data) / 8 {
			want := (2*s.Float64(uint64(i), 0) - 1) / math.Sqrt(fanIn)
			got := math.Float64frombits(binary.LittleEndian.Uint64(state[name].Data[8*i:]))
			require.InDelta(t, want, got, 1e-15, "%s[%d]", name, i)
		}
	}
}

func pixels(n int, shape ...int) orchestrate.TrainingData {
	data := orchestrate.TrainingData{Shape: shape}
	each := 1
	for _, d := range shape {
		each *= d
	}
	s := rng.New(0, "pixels", "")
	for i := range n * each {
		data.Pixels = append(data.Pixels, byte(s.IntN(uint64(i), 0, 256)))
	}
	for i := range n {
		data.Labels = append(data.Labels, int32(i%10))
	}
	return data
}

// A checkpoint is parameters and optimiser state: from it, training goes on as
// if nothing had happened, bit for bit, and so does training anew.
func TestTrainingRepeatsAndResumesBitForBit(t *testing.T) {
	ctx := context.Background()
	b := trainingBackend(t)
	spec := orchestrate.TrainerSpec{Net: "cifar-resnet20", Seed: 5, Optimizer: sgd, LabelSmoothing: .1,
		Augment: orchestrate.Augment{Pad: 4, Flip: true},
		Preset:  dataset.Preset{Scale: 255, Mean: []float64{.5, .4, .3}, Std: []float64{.2, .3, .2}}}
	data := pixels(20, 3, 32, 32)
	const batch = 6
	indices, rates := plan(4, batch, 20, .05)
	run := func(stop int) (orchestrate.Trainer, []float64) {
		tr := openTrainer(t, b, spec, nil)
		require.NoError(t, tr.SetData(ctx, "train", data))
		first, err := tr.Steps(ctx, indices[:stop*batch], batch, rates[:stop], 0)
		require.NoError(t, err)
		if stop == len(rates) {
			return tr, first.Losses
		}
		parameters, err := tr.Parameters(ctx)
		require.NoError(t, err)
		state, err := tr.OptimizerState(ctx)
		require.NoError(t, err)
		again := openTrainer(t, b, spec, parameters)
		require.NoError(t, again.SetState(ctx, parameters, state))
		require.NoError(t, again.SetData(ctx, "train", data))
		rest, err := again.Steps(ctx, indices[stop*batch:], batch, rates[stop:], int64(stop))
		require.NoError(t, err)
		return again, append(first.Losses, rest.Losses...)
	}
	want, losses := run(4)
	wantParameters, err := want.Parameters(ctx)
	require.NoError(t, err)
	require.Equal(t, weights.Tensor{DType: "i64", Shape: []int64{}, Data: []byte{4, 0, 0, 0, 0, 0, 0, 0}},
		wantParameters["layer1.0.bn1.num_batches_tracked"])
	wantState, err := want.OptimizerState(ctx)
	require.NoError(t, err)
	require.Contains(t, wantState, "linear.weight/momentum")
	for _, stop := range []int{4, 2} {
		got, gotLosses := run(stop)
		require.Equal(t, losses, gotLosses)
		parameters, err := got.Parameters(ctx)
		require.NoError(t, err)
		require.Equal(t, wantParameters, parameters)
		state, err := got.OptimizerState(ctx)
		require.NoError(t, err)
		require.Equal(t, wantState, state)
	}
	// What was trained is a state dict that inference takes, and sees alike.
	n, err := b.OpenNet(ctx, orchestrate.NetSpec{Net: spec.Net}, withoutCounters(wantParameters))
	require.NoError(t, err)
	defer n.Close()
	values := make([]float32, len(data.Pixels))
	for i, v := range data.Pixels {
		values[i] = float32(v)
	}
	each := len(values) / 20
	for i := range 20 {
		require.NoError(t, spec.Preset.Normalise(values[i*each:(i+1)*each], data.Shape))
	}
	x, err := b.Arrays(ctx, values, data.Shape)
	require.NoError(t, err)
	defer x.Close()
	predictions, err := n.Predict(ctx, x, 10, 20)
	require.NoError(t, err)
	loss, correct := 0.0, 0
	for i, p := range predictions {
		for k, class := range p.Classes {
			if class == int(data.Labels[i]) {
				loss -= math.Log(p.Probabilities[k]) / 20
			}
		}
		if p.Classes[0] == int(data.Labels[i]) {
			correct++
		}
	}
	e, err := want.Evaluate(ctx, "train", 7)
	require.NoError(t, err)
	require.InDelta(t, loss, e.Loss, 1e-4)
	require.Equal(t, correct, e.Correct)
}

func withoutCounters(state map[string]weights.Tensor) map[string]weights.Tensor {
	out := map[string]weights.Tensor{}
	for name, t := range state {
		if t.DType != "i64" {
			out[name] = t
		}
	}
	return out
}

func TestTrainerSaysWhatIsWrong(t *testing.T) {
	ctx := context.Background()
	b := trainingBackend(t)
	for _, c := range []struct {
		spec orchestrate.TrainerSpec
		says string
	}{
		{orchestrate.TrainerSpec{Net: "cnn4", Optimizer: sgd}, "cnn4"},
		{orchestrate.TrainerSpec{Net: "cnn3", Optimizer: orchestrate.Optimizer{ID: "lion"}}, `"lion": want one of sgd, adam`},
		{orchestrate.TrainerSpec{Net: "cnn3", Optimizer: orchestrate.Optimizer{ID: "sgd", Nesterov: true}}, "Nesterov"},
		{orchestrate.TrainerSpec{Net: "cnn3", Optimizer: orchestrate.Optimizer{ID: "adam", Beta1: 1}}, "beta1 1"},
		{orchestrate.TrainerSpec{Net: "cnn3", Optimizer: sgd, Precision: "f16"}, `"f16"`},
		{orchestrate.TrainerSpec{Net: "cnn3", Optimizer: sgd, LabelSmoothing: -1}, "labelSmoothing -1"},
		{orchestrate.TrainerSpec{Net: "cnn3", Optimizer: sgd, Augment: orchestrate.Augment{Pad: -1}}, "pad"},
	} {
		_, err := b.OpenTrainer(ctx, c.spec, nil)
		require.ErrorIs(t, err, usage.Err, c.says)
		require.ErrorContains(t, err, c.says)
	}
	_, err := b.OpenTrainer(ctx, orchestrate.TrainerSpec{Net: "logistic", Optimizer: sgd}, map[string]weights.Tensor{
		"fc.weight": fill.Weights("fc.weight", []int64{10, 63}, false)})
	require.ErrorIs(t, err, usage.Err)
	require.ErrorContains(t, err, "fc.weight has shape [10, 63], want [10, 64]; fc.bias is missing")

	tr := openTrainer(t, b, orchestrate.TrainerSpec{Net: "cnn3", Optimizer: sgd}, nil)
	good := pixels(5, 1, 8, 8)
	for _, c := range []struct {
		change func(d *orchestrate.TrainingData)
		says   string
	}{
		{func(d *orchestrate.TrainingData) { d.Shape = []int{8, 8} }, "want [N,1,8,8]"},
		{func(d *orchestrate.TrainingData) { d.Shape = []int{1, 8, 0} }, "[1 8 0]"},
		{func(d *orchestrate.TrainingData) { d.Labels = d.Labels[1:] }, "want 64 each"},
		{func(d *orchestrate.TrainingData) { d.Labels = []int32{0, 1, 2, 3, 10} }, "label 4 is 10: want 0..9"},
		{func(d *orchestrate.TrainingData) { d.Values = make([]float32, 1) }, "want one of the two"},
		{func(d *orchestrate.TrainingData) { d.Pixels = nil }, "want one of the two"},
	} {
		bad := good
		c.change(&bad)
		err := tr.SetData(ctx, "train", bad)
		require.ErrorIs(t, err, usage.Err, c.says)
		require.ErrorContains(t, err, c.says)
	}
	require.NoError(t, tr.SetData(ctx, "train", good))
	for _, c := range []struct {
		indices []int32
		batch   int
		rates   []float64
		says    string
	}{
		{[]int32{0, 5}, 2, []float64{.1}, "index 1 is 5: want 0..4"},
		{[]int32{0}, 0, []float64{.1}, "batch 0"},
		{[]int32{0, 1, 2}, 2, []float64{.1}, "are not 1 steps"},
		{[]int32{0}, 1, []float64{math.Inf(1)}, "rate 0 is inf"},
	} {
		_, err := tr.Steps(ctx, c.indices, c.batch, c.rates, 0)
		require.ErrorIs(t, err, usage.Err, c.says)
		require.ErrorContains(t, err, c.says)
	}
	_, err = tr.Evaluate(ctx, "validation", 4)
	require.ErrorContains(t, err, "validation")

	diverged, err := tr.Steps(ctx, []int32{0, 1, 2, 3, 4, 0}, 2, []float64{1e30, 1e30, 1e30}, 0)
	require.NoError(t, err)
	require.True(t, math.IsNaN(diverged.Losses[2]) || math.IsInf(diverged.Losses[2], 0))

	require.NoError(t, tr.Close())
	require.NoError(t, tr.Close())
	_, err = tr.Evaluate(ctx, "train", 4)
	require.Error(t, err)
}
