package device_test

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/assay-xai/assay/internal/rng"
	"github.com/assay-xai/assay/internal/usage"
	"github.com/assay-xai/assay/orchestrate"
	"github.com/assay-xai/assay/scores"
	"github.com/assay-xai/assay/trace"
	"github.com/assay-xai/assay/weights"
)

// quantusNet is the net, images and maps of scores/testdata/golden.json.
type quantusNet struct {
	Net struct {
		ConvWeight, ConvBias, FcWeight, FcBias []float32
		Channels, Classes                      int
	}
	Height, Width int
	Images, Maps  [][]float32
	Targets       []int
	PixelFlipping struct {
		Step   int
		Curves [][]float64
		Areas  []float64
	}
	Infidelity struct {
		Patch  int
		Values []float64
	}
}

func openQuantusNet(t *testing.T) (quantusNet, orchestrate.Net, orchestrate.Images) {
	t.Helper()
	text, err := os.ReadFile("../../scores/testdata/golden.json")
	require.NoError(t, err)
	var g quantusNet
	require.NoError(t, json.Unmarshal(text, &g))
	file := fmt.Sprintf(`{"format": "assay-net", "version": 1, "name": "small", "input": [1, %[1]d, %[2]d], "parameters": [
  {"name": "conv.weight", "shape": [%[3]d, 1, 3, 3]}, {"name": "conv.bias", "shape": [%[3]d]},
  {"name": "fc.weight", "shape": [%[4]d, %[5]d]}, {"name": "fc.bias", "shape": [%[4]d]}],
"ops": [
  {"op": "conv2d", "name": "conv", "inputs": ["input"], "channels": %[3]d, "kernel": [3, 3], "padding": [1, 1, 1, 1], "parameters": ["conv.weight", "conv.bias"]},
  {"op": "relu", "name": "relu", "inputs": ["conv"]},
  {"op": "flatten", "name": "flatten", "inputs": ["relu"]},
  {"op": "linear", "name": "fc", "inputs": ["flatten"], "channels": %[4]d, "parameters": ["fc.weight", "fc.bias"]}],
"output": "fc"}`, g.Height, g.Width, g.Net.Channels, g.Net.Classes, g.Net.Channels*g.Height*g.Width)
	tensor := func(values []float32, shape ...int64) weights.Tensor {
		var data []byte
		for _, v := range values {
			data = binary.LittleEndian.AppendUint32(data, math.Float32bits(v))
		}
		return weights.Tensor{DType: "f32", Shape: shape, Data: data}
	}
	k, c := int64(g.Net.Channels), int64(g.Net.Classes)
	b := backend(t)
	net, err := b.OpenNet(t.Context(), orchestrate.NetSpec{File: &orchestrate.NetFile{Name: "small.json", Content: []byte(file)}, Precision: "f32"},
		map[string]weights.Tensor{
			"conv.weight": tensor(g.Net.ConvWeight, k, 1, 3, 3), "conv.bias": tensor(g.Net.ConvBias, k),
			"fc.weight": tensor(g.Net.FcWeight, c, k*int64(g.Height*g.Width)), "fc.bias": tensor(g.Net.FcBias, c)})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, net.Close()) })
	var values []float32
	for _, x := range g.Images {
		values = append(values, x...)
	}
	images, err := b.Arrays(t.Context(), values, []int{1, g.Height, g.Width})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, images.Close()) })
	return g, net, images
}

func (g *quantusNet) group(stage scores.Stage) scores.Group {
	out := scores.Group{Stage: stage, Seed: 3}
	for i, m := range g.Maps {
		out.Images = append(out.Images, scores.Image{ID: string(rune('a' + i)), Target: g.Targets[i], Map: scores.Map{Shape: stage.Shape(), Values: m}})
	}
	return out
}

func compute(t *testing.T, id string, g scores.Group, parameters map[string]any) []scores.Result {
	t.Helper()
	s, err := scores.ByID(id)
	require.NoError(t, err)
	out, err := s.Compute(t.Context(), g, parameters)
	require.NoError(t, err)
	return out
}

func openStage(t *testing.T, net orchestrate.Net, images orchestrate.Images, spec orchestrate.StageSpec) scores.Stage {
	t.Helper()
	stage, err := net.Stage(t.Context(), images, spec)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, stage.Close()) })
	return stage
}

// What runs on a device gives what Quantus gives of the same net in PyTorch.
func TestScoresOnADeviceEqualQuantus(t *testing.T) {
	g, net, images := openQuantusNet(t)
	group := g.group(openStage(t, net, images, orchestrate.StageSpec{Batch: 4}))
	for i, r := range compute(t, "pixel-flipping", group, map[string]any{"step": g.PixelFlipping.Step, "compat": "quantus"}) {
		require.InDelta(t, g.PixelFlipping.Areas[i], r.Value, 1e-5)
		require.InDeltaSlice(t, g.PixelFlipping.Curves[i], r.Curves[0].Y, 1e-6)
	}
	for i, r := range compute(t, "infidelity", group, map[string]any{"patch": g.Infidelity.Patch, "compat": "quantus"}) {
		require.InEpsilon(t, g.Infidelity.Values[i], r.Value, 1e-5)
	}
}

// Every score of the registry on a device: rows in another order, with others
// between them, at another batch give the same (to rounding: the shape changes).
func TestScoresDoNotDependOnTheStage(t *testing.T) {
	g, net, images := openQuantusNet(t)
	method := &orchestrate.MethodSpec{ID: "gradient"}
	keys := []uint64{rng.Key(3, "attribution", "a"), rng.Key(3, "attribution", "b")}
	together := g.group(openStage(t, net, images, orchestrate.StageSpec{Method: method, Keys: keys, Batch: 3}))
	parameters := map[string]map[string]any{
		"le": {"edge": 4}, "mo": {"edge": 4}, "le-mo": {"edge": 4}, "insertion": {"reference": "uniform"},
	}
	for i := range together.Images {
		together.Images[i].Region = &scores.Region{Boxes: []scores.Box{{X0: 1, Y0: 2, X1: 5, Y1: 4}}}
	}
	for _, s := range scores.Registry() {
		t.Run(s.ID, func(t *testing.T) {
			want := compute(t, s.ID, together, parameters[s.ID])
			for i := range want {
				alone := scores.Group{Seed: 3, Images: together.Images[i : i+1],
					Stage: openStage(t, net, images, orchestrate.StageSpec{Rows: []int{i}, Method: method, Keys: keys[i : i+1], Batch: 8})}
				got := compute(t, s.ID, alone, parameters[s.ID])[0]
				require.Equal(t, want[i].Undefined, got.Undefined)
				require.InDelta(t, want[i].Value, got.Value, 2e-5)
				require.Empty(t, got.Undefined)
			}
		})
	}
}

// The stage's own answers, by plain arithmetic on what other calls return.
func TestStageAnswers(t *testing.T) {
	g, net, images := openQuantusNet(t)
	ctx := t.Context()
	n := g.Height * g.Width
	stage := openStage(t, net, images, orchestrate.StageSpec{Batch: 2})

	mask := make([]float32, n)
	stream := rng.New(1, "test", "")
	var scaled []float32
	for i := range mask {
		mask[i] = float32(stream.Float64(uint64(i), 0))
		scaled = append(scaled, mask[i]*g.Images[1][i])
	}
	got, err := stage.Scaled(ctx, []scores.Scaled{{Row: 1, Target: 2, Mask: mask}})
	require.NoError(t, err)
	require.InDelta(t, probabilityOf(t, net, scaled, g, 2), got[0].Prob, 1e-6)

	noisy, err := stage.Noisy(ctx, []scores.Draw{{Row: 1, Key: 9, Sample: 4}}, .5)
	require.NoError(t, err)
	scene, err := noisy.Scene(ctx, scores.SceneSpec{Features: 1, FeatureMap: make([]int32, n), Reference: "zero", Keys: []uint64{0}})
	require.NoError(t, err)
	difference, err := scene.Difference(ctx, 0) // from zero: the image itself
	require.NoError(t, err)
	for i, v := range difference {
		require.InDelta(t, float64(g.Images[1][i])+.5*(2*rng.Stream{Key: 9}.Float64(uint64(i), 4)-1), v, 1e-6)
	}
	require.NoError(t, scene.Close())
	require.NoError(t, noisy.Close())

	require.Equal(t, []scores.Layer{{Name: "conv", Op: "conv2d"}, {Name: "fc", Op: "linear"}}, stage.Layers())
	other, err := stage.Randomise(ctx, []string{"fc"}, 1)
	require.NoError(t, err)
	state := make([]trace.Score, 0, 2)
	for _, s := range []scores.Stage{stage, other} {
		scene, err := s.Scene(ctx, scores.SceneSpec{Features: 1, FeatureMap: make([]int32, n), Reference: "zero", Keys: make([]uint64, 2)})
		require.NoError(t, err)
		out, err := scene.ScoreRows(ctx, []trace.Row{{Slot: 1, Target: 0, Set: trace.NewSet(1)}})
		require.NoError(t, err)
		state = append(state, out[0])
		require.NoError(t, scene.Close())
	}
	require.NotEqual(t, state[0], state[1])
	require.NoError(t, other.Close())

	_, err = stage.Explain(ctx, []int{0, 0})
	require.ErrorIs(t, err, usage.Err)
	_, err = stage.Randomise(ctx, []string{"relu"}, 1)
	require.ErrorIs(t, err, usage.Err)
	_, err = stage.Scene(ctx, scores.SceneSpec{Features: 1, FeatureMap: make([]int32, n), Reference: "nothing", Keys: make([]uint64, 2)})
	require.ErrorIs(t, err, usage.Err)
}

func probabilityOf(t *testing.T, net orchestrate.Net, x []float32, g quantusNet, class int) float64 {
	t.Helper()
	in, err := backend(t).Arrays(context.Background(), x, []int{1, g.Height, g.Width})
	require.NoError(t, err)
	defer in.Close()
	p, err := net.Predict(context.Background(), in, g.Net.Classes, 1)
	require.NoError(t, err)
	for i, c := range p[0].Classes {
		if c == class {
			return p[0].Probabilities[i]
		}
	}
	return math.NaN()
}
