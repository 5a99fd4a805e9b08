package orchestrate_test

import (
	"math"
	"os"
	"slices"
	"sort"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/assay-xai/assay/internal/record"
	"github.com/assay-xai/assay/internal/rng"
)

const roadGrid = `{method: [weights, random, plain], imputer: [zero, channel-mean, noisy-linear], order: [morf, lerf, random]}`

// roads are a run's records by method (or "", random order), order, imputer and image.
func (w *world) roads(out string) map[string]record.Record {
	found := map[string]record.Record{}
	for _, r := range w.records(out) {
		if r.Road == nil {
			continue
		}
		key := strings.Join([]string{r.Method, r.Road.Order, r.Road.Imputer, r.Image, strconv.FormatUint(r.Seed, 10)}, " ")
		if len(found[key].ID) > 0 {
			panic("twice: " + key)
		}
		found[key] = r
	}
	return found
}

func TestRoad(t *testing.T) {
	w := newWorld(t, 5)
	p := w.plan("road", roadGrid)
	p.Seeds = []uint64{3, 8}
	outcome, err := w.run(p, "out")
	require.NoError(t, err)
	w.closed()
	require.Equal(t, (3*3*2+3)*5*2, outcome.Units, "random orders have no method")
	require.Len(t, w.roads("out"), outcome.Units)
	for key, r := range w.roads("out") {
		c := r.Road
		require.Equal(t, []float64{.1, .2, .3, .4, .5, .7, .9}, c.Fractions)
		require.Equal(t, []int{6, 13, 19, 26, 32, 45, 58}, c.Removed, "of 64: 6.4, 12.8, 19.2 ...")
		require.Equal(t, *r.Class, r.Target, "the label is tracked")
		for i := range c.Fractions {
			require.Equal(t, c.Predicted[i] == *r.Class, c.Correct[i])
			require.LessOrEqual(t, c.Probabilities[i], 1.)
		}
		if c.Imputer == "noisy-linear" {
			require.Equal(t, c.Removed, c.Iterations, "which the fake's solver says")
		} else {
			require.Nil(t, c.Iterations)
		}
		require.Equal(t, c.Order == "random", c.MapVariation == nil, key)
	}
}

// The answers again by their definitions, from the fake's weights and images.
func TestRoadByHand(t *testing.T) {
	w := newWorld(t, 4)
	p := w.plan("road", `{method: weights, imputer: channel-mean, order: [morf, lerf, random], ties: index, fractions: [0, .25, .5, 1]}`)
	_, err := w.run(p, "out")
	require.NoError(t, err)
	weights := tinyWeights(t, w)
	for key, r := range w.roads("out") {
		x := tinyImage(t, w, r.Image)
		// The map: the class's weights by place, summed over three channels.
		values := make([]float64, 64)
		for i := range values {
			for c := range 3 {
				values[i] += float64(float32(weights[r.Target*16+(c*64+i)%16]))
			}
			values[i] = float64(float32(values[i]))
		}
		order := make([]int, 64)
		for i := range order {
			order[i] = i
		}
		if r.Road.Order == "random" {
			order = rng.Stream{Key: rng.Key(0, "ties", r.Image)}.Perm(0, 64)
		} else {
			sort.SliceStable(order, func(a, b int) bool { return values[order[a]] > values[order[b]] })
		}
		for k, n := range []int{0, 16, 32, 64} {
			require.Equal(t, n, r.Road.Removed[k])
			gone := order[:n]
			if r.Road.Order == "lerf" {
				gone = order[64-n:]
			}
			y := slices.Clone(x)
			for c := range 3 {
				mean := 0.
				for _, v := range x[c*64 : c*64+64] {
					mean += v / 64
				}
				for _, i := range gone {
					y[c*64+i] = float64(float32(mean))
				}
			}
			probabilities := tinyAnswer(weights, y)
			best := 0
			for c := range probabilities {
				if probabilities[c] > probabilities[best] {
					best = c
				}
			}
			require.InDelta(t, probabilities[r.Target], r.Road.Probabilities[k], 1e-9, key)
			require.InDelta(t, probabilities[r.Prediction.Classes[0]], r.Road.PredictedProbabilities[k], 1e-9, key)
			require.Equal(t, best, r.Road.Predicted[k], key)
			if n == 0 {
				require.InDelta(t, r.Prediction.Probabilities[0], r.Road.PredictedProbabilities[k], 1e-12, "the unchanged image")
			}
			mask := make([]float64, 64)
			for _, i := range gone {
				mask[i] = 1
			}
			require.InDelta(t, neighbourhood(mask), r.Road.MaskVariation[k], 1e-12)
		}
		if r.Road.Order != "random" {
			low, high := slices.Min(values), slices.Max(values)
			for i := range values {
				values[i] = (values[i] - low) / (high - low)
			}
			require.InDelta(t, neighbourhood(values), *r.Road.MapVariation, 1e-6)
		}
	}
}

// neighbourhood is the variation of 8 x 8 values, pair by pair.
func neighbourhood(v []float64) float64 {
	down, right := 0., 0.
	for i := range v {
		if i+8 < 64 {
			down += math.Abs(v[i+8] - v[i])
		}
		if i%8 < 7 {
			right += math.Abs(v[i+1] - v[i])
		}
	}
	return down/56 + right/56
}

func tinyAnswer(weights, x []float64) []float64 {
	out := make([]float64, 10)
	sum := 0.
	for c := range out {
		z := 0.
		for i, v := range x {
			z += v * weights[c*16+i%16] * (1 + float64(i%7))
		}
		out[c] = math.Exp(4 * math.Sin(z/4))
		sum += out[c]
	}
	for c := range out {
		out[c] /= sum
	}
	return out
}

// tinyWeights are what fake.Weights draws.
func tinyWeights(*testing.T, *world) []float64 {
	stream := rng.New(10, "fake/weights", "")
	out := make([]float64, 160)
	for i := range out {
		out[i] = float64(float32(stream.Float64(uint64(i), 0) - .5))
	}
	return out
}

// tinyImage is what the fake makes of a file.
func tinyImage(t *testing.T, w *world, id string) []float64 {
	file, err := os.ReadFile(w.path("data/" + id))
	require.NoError(t, err)
	images, failed, err := w.backend.Images(background, [][]byte{file}, *w.plan("road", "{}").Nets[0].Preset.Preset, false)
	require.NoError(t, err)
	require.NoError(t, failed[0])
	defer images.Close()
	values, err := images.Values(0)
	require.NoError(t, err)
	out := make([]float64, len(values))
	for i, v := range values {
		out[i] = float64(v)
	}
	return out
}
