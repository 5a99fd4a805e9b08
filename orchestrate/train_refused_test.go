package orchestrate_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/assay-xai/assay/internal/usage"
	"github.com/assay-xai/assay/orchestrate"
)

// A file that is no image is not a matter of sizes.
func TestImputersNameBrokenImages(t *testing.T) {
	w := newGainWorld(t, "", func(s *orchestrate.TrainSettings) { s.Epochs, s.BatchSize = 1, 2 })
	for i := range 4 {
		w.png(fmt.Sprintf("even/%d.png", i), 6, 5)
	}
	w.job.Data.Path, w.job.Validation = w.path("even"), "0.5"
	require.NoError(t, os.WriteFile(w.path("even/5.png"), []byte("BAD"), 0o666))
	_, err := w.train("out")
	require.ErrorIs(t, err, usage.Err)
	require.ErrorContains(t, err, "5.png of "+w.path("even"))
	require.ErrorContains(t, err, "mend it or take it out; training leaves no image out by itself")
	require.NotContains(t, err.Error(), "--preset")
	require.NoDirExists(t, w.path("out"))
}

// The digits have 1x8x8 values of 0..16.
func TestPresetsOfImputersFitTheData(t *testing.T) {
	for preset, want := range map[string]string{
		"imagenet":                              "preset imagenet is for images of 3x224x224 (channels, height, width), embedded:digits holds arrays of 1x8x8",
		"mnist":                                 "preset mnist is for images of 1x28x28",
		"table":                                 "values are from 0 to 16, after division by the scale 1 of preset table to 16: imputers draw values of 0..1: want a preset of scale 16",
		"resize: none\nchannels: 1\nscale: 4\n": "the scale 4 of preset custom to 4: imputers draw values of 0..1: want a preset of scale 16",
		"resize: none\nchannels: 1\nscale: 15.9999\n":                                "scale 15.9999 of preset custom to 1: imputers draw",
		"resize: none\nscale: 16\n":                                                  "preset custom is for images of 3x8x8",
		"resize: shorter\nheight: 9\nwidth: 8\nchannels: 1\nscale: 16\n":             "is for images of 1x9x8",
		"resize: shorter\nheight: 8\nwidth: 8\nchannels: 1\nscale: 16\n":             "",
		"resize: none\nchannels: 1\nscale: 16\ncropHeight: 6\ncropWidth: 6\n":        "is for images of 1x6x6",
		"resize: none\nchannels: 1\nscale: 79\n":                                     "",
		"resize: none\nchannels: 1\nscale: 15.999999\n":                              "",
		"resize: none\nchannels: 1\nscale: 81\n":                                     "warning: values are from 0 to 16, after division by the scale 81 of preset custom to 0.198: they fill little of 0..1, which imputers draw: scale 16 would suit them better",
		"resize: none\nchannels: 1\nscale: 255\nmean: [0.5]\nstd: [0.2]\nid: mine\n": "warning: values are from 0 to 16, after division by the scale 255 of preset mine to 0.0627",
	} {
		w := newGainWorld(t, "embedded:digits", func(s *orchestrate.TrainSettings) { s.Epochs = 1 })
		w.job.Data.Limit, w.job.Preset = 100, preset
		if strings.Contains(preset, "\n") {
			w.job.Preset = w.path("p.yaml")
			require.NoError(t, os.WriteFile(w.job.Preset, []byte(preset), 0o666))
		}
		var warnings []string
		w.job.Progress = func(e orchestrate.Event) {
			if e.Kind == orchestrate.Warning {
				warnings = append(warnings, e.Message)
			}
		}
		_, err := w.train("out")
		warned, warns := strings.CutPrefix(want, "warning: ")
		if want != "" && !warns {
			require.ErrorIs(t, err, usage.Err, preset)
			require.ErrorContains(t, err, want, preset)
			require.NoDirExists(t, w.path("out"))
			continue
		}
		require.NoError(t, err, preset)
		if !warns {
			require.Empty(t, warnings, preset)
			continue
		}
		require.Len(t, warnings, 1, preset)
		require.Contains(t, warnings[0], warned)
	}

	// Files are of 8 bits, and what a file of weights says has to fit, too.
	w := newGainWorld(t, "", func(s *orchestrate.TrainSettings) { s.Epochs, s.BatchSize = 1, 2 })
	for i := range 4 {
		w.png(fmt.Sprintf("even/%d.png", i), 6, 5)
	}
	w.job.Data.Path, w.job.Validation, w.job.Preset = w.path("even"), "0.5", w.path("p.yaml")
	for _, scale := range []string{"16", "256"} {
		require.NoError(t, os.WriteFile(w.job.Preset, []byte("resize: squash\nheight: 4\nwidth: 4\nscale: "+scale+"\n"), 0o666))
		_, err := w.train("out")
		require.ErrorIs(t, err, usage.Err)
		require.ErrorContains(t, err, "preset custom: scale "+scale+": image files, as in "+w.path("even")+", are divided by 255")
	}

	ones := newGainWorld(t, w.floats("ones.npy", 1), func(s *orchestrate.TrainSettings) { s.Epochs, s.BatchSize = 1, 2 })
	ones.job.Validation = "0.5"
	_, err := ones.train("ones")
	require.NoError(t, err)
	ones.job.Data.Path, ones.job.Weights = w.floats("bytes.npy", 200), ones.path("ones/last.safetensors")
	_, err = ones.train("out")
	require.ErrorIs(t, err, usage.Err)
	require.ErrorContains(t, err, "values are from 0 to 200, after division by the scale 1 of preset own to 200: imputers draw values of 0..1: want a preset of scale 255")
	ones.job.Data.Path, ones.job.Weights = w.floats("odd.npy", -1e-3), ""
	_, err = ones.train("out")
	require.ErrorIs(t, err, usage.Err)
	require.ErrorContains(t, err, "values from -0.0010000000474974513 to 0: imputers draw values of 0..1: want data without negative values")
	ones.job.Data.Path = w.floats("rounded.npy", 1+1e-7)
	o, err := ones.train("rounded")
	require.NoError(t, err)
	require.Equal(t, 1., o.Plan.Preset.Scale)
}

// Where nothing validates, a schedule that goes by it is no default.
func TestImputersWithoutValidation(t *testing.T) {
	for asked, noted := range map[string]bool{"": true, "constant": false, "cosine": false} {
		w := newGainWorld(t, "embedded:digits", func(s *orchestrate.TrainSettings) {
			if s.Epochs = 2; asked != "" {
				s.Schedule = asked
			}
		})
		w.job.Data.Limit, w.job.Validation = 100, "none"
		var said []string
		w.job.Progress = func(e orchestrate.Event) {
			if e.Kind == orchestrate.Note {
				said = append(said, e.Message)
			}
		}
		o, err := w.train("out")
		require.NoError(t, err, asked)
		want := asked
		if noted {
			want = "constant"
			require.Equal(t, "no validation part: the rate stays as it is (schedule constant, not plateau)", said[0])
		}
		require.Equal(t, want, o.Plan.Training.Schedule)
		require.Zero(t, o.Plan.Training.Gamma)
		require.Zero(t, o.Plan.Training.Patience)
		require.Equal(t, noted, strings.Contains(strings.Join(said, " "), "no validation part"), asked)
		require.Nil(t, o.History[1].ValidationLoss)
	}
	w := newWorld(t, 0)
	text := strings.Replace(gainPlan, "settings: {", "validation: none, settings: {", 1)
	_, err := w.run(w.parse(strings.Replace(text, "epochs: 2", "epochs: 2, patience: 3", 1)), "bad")
	require.ErrorIs(t, err, usage.Err)
	require.ErrorContains(t, err, "patience belongs to schedule plateau, not to constant")
}

// What is refused leaves the folder as it was, so that the same one takes what is mended.
func TestRefusedTrainingsLeaveNoFolder(t *testing.T) {
	for name, c := range map[string]struct {
		change func(w *trainWorld, s *orchestrate.TrainSettings)
		want   string
	}{
		"batch": {func(_ *trainWorld, s *orchestrate.TrainSettings) { s.BatchSize = 64 }, "batch-size 64 is more than the 50 training examples"},
		"augment": {func(w *trainWorld, s *orchestrate.TrainSettings) {
			w.job.Net, w.job.Imputer, s.Schedule, s.BestBy, s.Augment = "softmax", "", "constant", "accuracy", "flip"
		}, "wants images, net softmax takes columns"},
		"broken": {func(w *trainWorld, s *orchestrate.TrainSettings) {
			for i := range 70 {
				w.png(fmt.Sprintf("even/%02d.png", i), 6, 5)
			}
			require.NoError(t, os.WriteFile(w.path("even/99.png"), []byte("BAD"), 0o666))
			w.job.Data = orchestrate.DataPlan{Path: w.path("even")}
		}, "mend it or take it out"},
		"classes": {func(w *trainWorld, s *orchestrate.TrainSettings) {
			w.job.Net, w.job.Imputer, s.Schedule, s.BestBy, w.job.Classes = "softmax", "", "constant", "accuracy", 3
			require.NoError(t, os.WriteFile(w.path("one.csv"), []byte("a,b,class\n"+strings.Repeat("1,2,0\n", 40)), 0o666))
			w.job.Data = orchestrate.DataPlan{Path: w.path("one.csv")}
		}, "training examples have class 0"},
	} {
		w := newGainWorld(t, "embedded:digits", nil)
		w.job.Data.Limit = 60
		settings := orchestrate.TrainSettings{}
		c.change(w, &settings)
		w.job.Settings = func(s *orchestrate.TrainSettings) error { s.BatchSize = 16; c.change(w, s); return nil }
		_, err := w.train("new/out")
		require.ErrorIs(t, err, usage.Err, name)
		require.ErrorContains(t, err, c.want, name)
		require.NoDirExists(t, w.path("new"), name)
		require.NoError(t, os.MkdirAll(w.path("new/out"), 0o777))
		_, err = w.train("new/out")
		require.ErrorIs(t, err, usage.Err, name)
		left, err := os.ReadDir(w.path("new/out"))
		require.NoError(t, err, "a folder that was there stays")
		require.Empty(t, left, name)
	}
	w := newGainWorld(t, "embedded:digits", nil)
	require.NoError(t, os.WriteFile(w.path("file"), nil, 0o666))
	_, err := w.train("file/out")
	require.Error(t, err)
	require.ErrorContains(t, err, "out: ")
}
