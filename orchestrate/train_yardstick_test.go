package orchestrate_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/assay-xai/assay/dataset"
	"github.com/assay-xai/assay/orchestrate"
	"github.com/assay-xai/assay/weights"
)

// splitOf reads all rows of a split of a set.
func splitOf(t *testing.T, path, split string, limit int) (rows [][]float32) {
	set, err := dataset.Open(t.Context(), path, dataset.Options{Split: split, Limit: limit})
	require.NoError(t, err)
	defer set.Close()
	for i := range set.Len() {
		v, _, err := set.Values(i)
		require.NoError(t, err)
		rows = append(rows, v)
	}
	return rows
}

// What the mean image alone would have as validation error, pixel by pixel, and as the fake
// measures it, whose generator adds nothing to the mean image.
func TestErrorOfTheMeanImage(t *testing.T) {
	w := newGainWorld(t, "embedded:digits", func(s *orchestrate.TrainSettings) { s.Epochs, s.Rate, s.EvaluateEvery = 4, 1e-9, 2 })
	w.job.Validation, w.job.Data.Limit = "test", 400
	w.job.ImputerSettings = func(i *orchestrate.ImputerTraining) error { i.Width, i.MaximumRate = 2, .4; return nil }
	_, err := w.train("first")
	require.NoError(t, err)
	sd, err := weights.Open(w.path("first/last.safetensors"))
	require.NoError(t, err)
	clear(sd.Tensors["generator.net.0.weight_orig"].Data)
	require.NoError(t, weights.WriteSafetensors(w.path("zero.safetensors"), sd.Tensors, sd.Metadata))
	w.job.Weights = w.path("zero.safetensors")
	o, err := w.train("out")
	require.NoError(t, err)

	train, test := splitOf(t, "embedded:digits", "train", 400), splitOf(t, "embedded:digits", "test", 0)
	total := 0.
	for pixel := range 64 {
		mean := 0.
		for _, row := range train {
			mean += float64(row[pixel]) / 16 / 400
		}
		for _, row := range test {
			total += math.Pow(float64(row[pixel])/16-mean, 2)
		}
	}
	// Between 0 and .4 of the pixels are removed, .2 on average.
	want := .2 * total / float64(64*len(test))
	for i, e := range o.History {
		if i%2 == 0 {
			require.Nil(t, e.MeanImageError, "not validated")
			continue
		}
		require.InDelta(t, want, *e.MeanImageError, 1e-12)
		require.InEpsilon(t, want, *e.ValidationLoss, .05, "up to chance: which pixels were removed")
	}
	require.Equal(t, o.History[3].MeanImageError, w.history("out")[3].MeanImageError)
	require.Contains(t, w.read("out/results.jsonl"), `"meanImageError":`)

	// Values that are no bytes: of 64 pixels of 0 and one of .5, which is held back or not.
	floats := newGainWorld(t, w.floats("one.npy", .5), func(s *orchestrate.TrainSettings) { s.Epochs, s.BatchSize = 1, 4 })
	floats.job.Validation = "0.5"
	o, err = floats.train("")
	require.NoError(t, err)
	one := .25 / 16 / 4 // squared, over four images of four pixels, a quarter of which is removed
	got := *o.History[0].MeanImageError
	if got > .9*one {
		require.InDelta(t, one, got, 1e-12, "in the validation part: the mean image is 0")
	} else {
		require.InDelta(t, 4*.125*.125/16/4, got, 1e-12, "in the training part: its mean is .125 there")
	}
}

// Three quarters of the pixels are known on average where up to a half is removed.
func TestKnownShare(t *testing.T) {
	require.Equal(t, .75, orchestrate.ImputerTraining{MaximumRate: .5}.KnownShare())
	require.Equal(t, .5, orchestrate.ImputerTraining{MaximumRate: 1}.KnownShare())
}
