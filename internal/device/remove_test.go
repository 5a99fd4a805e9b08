package device_test

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/assay-xai/assay/dataset"
	"github.com/assay-xai/assay/internal/rng"
	"github.com/assay-xai/assay/internal/usage"
	"github.com/assay-xai/assay/orchestrate"
)

// removing is a removal of every kind of row of images by maps, with a preset of one channel.
func removing(g quantusNet, imputer string, params map[string]any) orchestrate.RemovalSpec {
	spec := orchestrate.RemovalSpec{Maps: g.Maps, Ties: orchestrate.TiesRandom, Imputer: orchestrate.Reference{ID: imputer, Params: params},
		Preset: dataset.Preset{Mean: []float64{.4}, Std: []float64{.5}}, DatasetMean: []float64{.25}, Batch: 4}
	for i := range g.Images {
		id := string(rune('a' + i))
		spec.TieKeys = append(spec.TieKeys, rng.Key(0, "ties", id))
		spec.NoiseKeys = append(spec.NoiseKeys, rng.Key(0, "impute", id))
		spec.Targets = append(spec.Targets, []int{g.Targets[i], 0})
		for _, removed := range []int{0, 1, g.Height * g.Width / 2, g.Height*g.Width - 1, g.Height * g.Width} {
			spec.Rows = append(spec.Rows, orchestrate.RemovalRow{Image: i, Removed: removed}, orchestrate.RemovalRow{Image: i, Removed: removed, Least: true})
		}
	}
	spec.Inputs = true
	return spec
}

func TestRemoveTakesTheLargestAndAsksTheNet(t *testing.T) {
	g, net, images := openQuantusNet(t)
	for _, imputer := range []string{"zero", "channel-mean", "dataset-mean", "noisy-linear"} {
		spec := removing(g, imputer, nil)
		got, err := net.Remove(t.Context(), images, spec)
		require.NoError(t, err)
		require.EqualValues(t, len(spec.Rows), got.Forwards)
		for r, row := range spec.Rows {
			image, m := g.Images[row.Image], g.Maps[row.Image]
			// The pixels by value, from the end that the row takes.
			order := make([]int, len(m))
			for i := range order {
				order[i] = i
			}
			slices.SortFunc(order, func(a, b int) int { return int(math.Copysign(1, float64(m[b]-m[a]))) })
			if row.Least {
				slices.Reverse(order)
			}
			gone := map[int]bool{}
			for _, i := range order[:row.Removed] {
				gone[i] = true
			}
			mean := 0.0
			for _, v := range image {
				mean += float64(v) / float64(len(image))
			}
			for i, v := range got.Inputs[r] {
				switch {
				case !gone[i]:
					require.Equal(t, image[i], v, "%s row %d pixel %d", imputer, r, i)
				case imputer == "zero":
					require.Zero(t, v)
				case imputer == "channel-mean":
					require.InDelta(t, mean, v, 1e-5)
				case imputer == "dataset-mean":
					require.InDelta(t, .25, v, 1e-6)
				default:
					require.NotEqual(t, image[i], v)
				}
			}
			// One pixel that is known says what all others are.
			require.Equal(t, imputer == "noisy-linear" && row.Removed > 0 && row.Removed < len(m)-1, got.Iterations[r] > 0, "%s row %d", imputer, r)
		}
	}
}

func TestRemoveSaysWhatTheNetSaysOfItsInputs(t *testing.T) {
	g, net, images := openQuantusNet(t)
	spec := removing(g, "noisy-linear", map[string]any{"noise": .05})
	got, err := net.Remove(t.Context(), images, spec)
	require.NoError(t, err)
	b := backend(t)
	var values []float32
	for _, x := range got.Inputs {
		values = append(values, x...)
	}
	again, err := b.Arrays(t.Context(), values, []int{1, g.Height, g.Width})
	require.NoError(t, err)
	defer again.Close()
	want, err := net.Predict(t.Context(), again, net.Info().Classes, 4)
	require.NoError(t, err)
	for r, row := range spec.Rows {
		require.Equal(t, want[r].Classes[0], got.Classes[r])
		for k, class := range spec.Targets[row.Image] {
			at := slices.Index(want[r].Classes, class)
			require.InDelta(t, want[r].Probabilities[at], got.Probabilities[r][k], 1e-9)
		}
	}
}

// A row is the same wherever it stands, whatever stands beside it.
func TestRemoveOfARowIsItsOwn(t *testing.T) {
	g, net, images := openQuantusNet(t)
	spec := removing(g, "noisy-linear", nil)
	all, err := net.Remove(t.Context(), images, spec)
	require.NoError(t, err)
	other := spec
	other.Rows = slices.Clone(spec.Rows)
	slices.Reverse(other.Rows)
	other.Rows = other.Rows[3:]
	some, err := net.Remove(t.Context(), images, other)
	require.NoError(t, err)
	for r := range other.Rows {
		at := len(spec.Rows) - 1 - 3 - r
		require.Equal(t, all.Probabilities[at], some.Probabilities[r])
		require.Equal(t, all.Inputs[at], some.Inputs[r])
		require.Equal(t, all.Iterations[at], some.Iterations[r])
		require.Equal(t, all.Variations[at], some.Variations[r])
	}
}

func TestRemoveRefusesWhatDoesNotFit(t *testing.T) {
	g, net, images := openQuantusNet(t)
	for name, c := range map[string]struct {
		change func(*orchestrate.RemovalSpec)
		says   string
	}{
		"imputer":  {func(s *orchestrate.RemovalSpec) { s.Imputer.ID = "paint" }, "no imputer paint"},
		"count":    {func(s *orchestrate.RemovalSpec) { s.Rows[1].Removed = g.Height*g.Width + 1 }, "row[1].removed"},
		"image":    {func(s *orchestrate.RemovalSpec) { s.Rows[0].Image = len(g.Images) }, "row[0].image"},
		"ties":     {func(s *orchestrate.RemovalSpec) { s.Ties = "often" }, "random, index or noise"},
		"maps":     {func(s *orchestrate.RemovalSpec) { s.Maps = s.Maps[1:] }, "maps"},
		"class":    {func(s *orchestrate.RemovalSpec) { s.Targets[0][0] = 99 }, "targets[0] is 99"},
		"all gone": {func(s *orchestrate.RemovalSpec) { s.DatasetMean = nil }, "the mean of the data"},
	} {
		spec := removing(g, "noisy-linear", nil)
		c.change(&spec)
		_, err := net.Remove(t.Context(), images, spec)
		require.ErrorIs(t, err, usage.Err, name)
		require.ErrorContains(t, err, c.says, name)
	}
}
