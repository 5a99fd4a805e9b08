package device_test

import (
	"context"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/assay-xai/assay/dataset"
	"github.com/assay-xai/assay/internal/device"
	"github.com/assay-xai/assay/orchestrate"
	"github.com/assay-xai/assay/weights"
)

// top1 is the accuracy that the study eval finds, as `assay eval` runs it.
func top1(t *testing.T, net, file, data string) float64 {
	t.Helper()
	outcome, err := orchestrate.Run(t.Context(), orchestrate.Job{Open: device.Open, Plan: &orchestrate.Plan{
		Version: 1, Study: "eval", Device: "cpu", Threads: 1, Batch: 16,
		Nets: []orchestrate.NetPlan{{Net: net, Weights: file}}, Data: []orchestrate.DataPlan{{Path: data, Split: "test"}}}})
	require.NoError(t, err)
	require.Equal(t, "top1", outcome.Summary[0].Metric)
	return outcome.Summary[0].Mean
}

// The accuracies that weights/embedded/README.md tells, without --weights.
func TestCarriedWeights(t *testing.T) {
	for _, c := range []struct {
		net, data, file string
		accuracy        float64
	}{
		{"mlp", "embedded:digits", "embedded:mlp-digits", 352. / 359},
		{"mlp", "embedded:breast-cancer", "embedded:mlp-breast-cancer", 110. / 113},
		{"cnn3", "embedded:digits", "embedded:cnn3-digits", 355. / 359},
	} {
		got := top1(t, c.net, "", c.data)
		require.InDelta(t, c.accuracy, got, .003, c.file) // one example: sums are not the same everywhere
		require.Greater(t, got, .97)
		require.Equal(t, got, top1(t, c.net, c.file, c.data))
	}
	require.Len(t, weights.Embedded(), 3)
}

func trainJob(net, data string, change func(*orchestrate.TrainSettings)) orchestrate.TrainJob {
	return orchestrate.TrainJob{Net: net, Data: orchestrate.DataPlan{Path: data}, Validation: "test", Device: "cpu", Threads: 1,
		Open: device.Open, Settings: func(s *orchestrate.TrainSettings) error { change(s); return nil }}
}

// A stratified 80/20 split of the digits is learnt to 97 %, and eval on the
// saved weights says what training said: columns, images and tables.
func TestTrainingAndEvalAgree(t *testing.T) {
	for _, c := range []struct {
		net, data string
		epochs    int
		above     float64
	}{{"mlp", "embedded:digits", 25, .97}, {"cnn3", "embedded:digits", 5, .9}, {"mlp", "embedded:breast-cancer", 8, .95}, {"logistic", "embedded:wine", 40, .9}} {
		t.Run(c.net+" "+c.data, func(t *testing.T) {
			job := trainJob(c.net, c.data, func(s *orchestrate.TrainSettings) { s.Epochs, s.BatchSize, s.Rate = c.epochs, 32, 3*s.Rate })
			job.Out = t.TempDir()
			o, err := orchestrate.RunTraining(t.Context(), job)
			require.NoError(t, err)
			for file, e := range map[string]orchestrate.EpochResult{orchestrate.BestFile: o.History[o.BestEpoch-1], orchestrate.LastFile: o.History[len(o.History)-1]} {
				require.Equal(t, *e.ValidationAccuracy, top1(t, c.net, filepath.Join(job.Out, file), c.data))
			}
			require.GreaterOrEqual(t, *o.History[o.BestEpoch-1].ValidationAccuracy, c.above)
		})
	}
}

// Interrupted in any epoch, training ends with the same bits: both optimisers,
// warm-up and cosine, augmentation and smoothing.
func TestInterruptedTrainingGoesOn(t *testing.T) {
	for _, c := range []struct{ net, optimizer, augment string }{
		{"mlp", "adam", ""}, {"cnn3", "sgd", "crop(1),flip"},
	} {
		job := trainJob(c.net, "embedded:digits", func(s *orchestrate.TrainSettings) {
			s.Epochs, s.BatchSize, s.Schedule, s.Warmup, s.Augment, s.LabelSmoothing, s.Seed = 4, 50, "cosine", 1, c.augment, .1, 3
		})
		job.Optimizer, job.Data.Limit = c.optimizer, 330
		job.Out = t.TempDir()
		whole, err := orchestrate.RunTraining(t.Context(), job)
		require.NoError(t, err)
		first := job.Out
		job.Out = t.TempDir()
		runs := 0
		for {
			ctx, cancel := context.WithCancel(t.Context())
			job.Progress = func(e orchestrate.Event) {
				// The second epoch of every run is broken off.
				if e.Stage == "training" && e.Done >= e.Before+7+2 && e.Done < e.Total {
					cancel()
				}
			}
			o, err := orchestrate.RunTraining(ctx, job)
			cancel()
			if runs++; err == nil {
				require.Equal(t, whole.Last, o.Last)
				break
			}
			require.True(t, errors.Is(err, context.Canceled), "%v", err)
			require.Less(t, runs, 10)
		}
		require.Greater(t, runs, 1)
		for _, name := range []string{orchestrate.BestFile, orchestrate.LastFile} {
			a, err := os.ReadFile(filepath.Join(first, name))
			require.NoError(t, err)
			b, err := os.ReadFile(filepath.Join(job.Out, name))
			require.NoError(t, err)
			require.Equal(t, a, b)
		}
	}
}

// A net for other classes keeps everything but the head.
func TestTrainingFromAnotherHead(t *testing.T) {
	job := trainJob("mlp", "embedded:digits", func(s *orchestrate.TrainSettings) { s.Epochs, s.Rate = 1, 1e-30 })
	job.Weights, job.Classes = "embedded:mlp-digits", 12
	o, err := orchestrate.RunTraining(t.Context(), job)
	require.NoError(t, err)
	sd, err := weights.Open("embedded:mlp-digits")
	require.NoError(t, err)
	require.Equal(t, sd.Tensors["fc3.weight"].Data, o.Last["fc3.weight"].Data)
	require.Equal(t, []int64{12, 128}, o.Last["fc4.weight"].Shape)
}

// Decoded images reach the trainer as they are in the file, channels first.
func TestImagesAreReadForTraining(t *testing.T) {
	dir := t.TempDir()
	pixel := func(file, x, y, c int) byte { return byte(file*31 + x*5 + y*7 + c*83) }
	for file := range 3 {
		m := image.NewNRGBA(image.Rect(0, 0, 32, 32))
		for y := range 32 {
			for x := range 32 {
				m.Set(x, y, color.NRGBA{pixel(file, x, y, 0), pixel(file, x, y, 1), pixel(file, x, y, 2), 255})
			}
		}
		path := filepath.Join(dir, fmt.Sprint("class", file%2), fmt.Sprint(file, ".png"))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o777))
		f, err := os.Create(path)
		require.NoError(t, err)
		require.NoError(t, png.Encode(f, m))
		require.NoError(t, f.Close())
	}
	set, err := dataset.Open(t.Context(), dir, dataset.Options{})
	require.NoError(t, err)
	defer set.Close()
	data, err := orchestrate.ReadTrainingData(t.Context(), backend(t), set, []int{2, 0}, preset(t, "cifar10"), []int{3, 32, 32}, func(orchestrate.Event) {})
	require.NoError(t, err)
	require.Equal(t, []int{3, 32, 32}, data.Shape)
	require.Equal(t, []int32{1, 0}, data.Labels)
	require.Nil(t, data.Values)
	var want []byte
	for _, file := range []int{1, 0} { // class1/1.png is the last id
		for c := range 3 {
			for y := range 32 {
				for x := range 32 {
					want = append(want, pixel(file, x, y, c))
				}
			}
		}
	}
	require.Equal(t, want, data.Pixels)
}
