package orchestrate_test

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/assay-xai/assay/internal/fake"
	"github.com/assay-xai/assay/internal/usage"
	"github.com/assay-xai/assay/orchestrate"
	"github.com/assay-xai/assay/weights"
)

// gainJob trains the fake's gain.
func gainJob(data string, settings func(*orchestrate.TrainSettings)) orchestrate.TrainJob {
	job := trainingJob(data, settings)
	job.Net, job.Imputer = "", "gain"
	job.ImputerSettings = func(i *orchestrate.ImputerTraining) error { i.Width = 2; return nil }
	return job
}

func newGainWorld(t *testing.T, data string, settings func(*orchestrate.TrainSettings)) *trainWorld {
	w := &trainWorld{world: &world{t: t, dir: t.TempDir(), backend: &fake.Backend{}}, job: gainJob(data, settings)}
	w.job.Open = w.backend.Opener()
	return w
}

// ROAD, appendix B, and its public code: Adam 5e-4 (.5, .999), 100 epochs of batches of 64,
// alpha 100, hint rate .01; the rate falls to a fifth on a plateau.
func TestDefaultsOfGain(t *testing.T) {
	all := orchestrate.TrainableImputers()
	require.Len(t, all, 1)
	require.Equal(t, orchestrate.ImputerTraining{ID: "gain", Alpha: 100, HintRate: .01, MaximumRate: .5, Width: 64}, all[0].Defaults)
	s, err := all[0].Training("")
	require.NoError(t, err)
	require.NoError(t, s.Validate())
	require.Equal(t, orchestrate.TrainSettings{Optimizer: "adam", Rate: 5e-4, Betas: []float64{.5, .999}, Epsilon: 1e-8, Epochs: 100, BatchSize: 64,
		Schedule: "plateau", Gamma: .2, Patience: 25, Augment: "flip", BestBy: "loss", EvaluateEvery: 1, SaveEvery: 1}, s)

	// What belongs to a schedule follows the schedule and the epochs that are asked for.
	for name, c := range map[string]struct {
		job      orchestrate.TrainJob
		gamma    float64
		patience int
	}{
		"gain":          {gainJob("embedded:digits", func(s *orchestrate.TrainSettings) { s.Epochs = 1 }), .2, 1},
		"gain, longer":  {gainJob("embedded:digits", func(s *orchestrate.TrainSettings) { s.Epochs, s.EarlyStopping = 8, 1; s.Rate = 1e-12 }), .2, 2},
		"gain, set":     {gainJob("embedded:digits", func(s *orchestrate.TrainSettings) { s.Epochs, s.Gamma, s.Patience = 2, .3, 0 }), .3, 0},
		"gain, cosine":  {gainJob("embedded:digits", func(s *orchestrate.TrainSettings) { s.Epochs, s.Schedule = 1, "cosine" }), 0, 0},
		"net":           {trainingJob("embedded:digits", func(s *orchestrate.TrainSettings) { s.Epochs, s.Schedule = 1, "plateau" }), .1, 10},
		"net, stepwise": {trainingJob("embedded:digits", func(s *orchestrate.TrainSettings) { s.Epochs, s.Schedule, s.StepEvery = 1, "step", 1 }), .1, 0},
	} {
		w := newGainWorld(t, "", nil)
		c.job.Data.Limit, c.job.Open, w.job = 80, w.job.Open, c.job
		c.job.Open = (w.backend).Opener()
		w.job = c.job
		o, err := w.train("")
		require.NoError(t, err, name)
		require.Equal(t, c.gamma, o.Plan.Training.Gamma, name)
		require.Equal(t, c.patience, o.Plan.Training.Patience, name)
	}
}

func TestImputerTraining(t *testing.T) {
	w := newGainWorld(t, "embedded:digits", func(s *orchestrate.TrainSettings) { s.Epochs, s.Rate, s.EvaluateEvery = 7, .01, 2 })
	w.job.Validation, w.job.Data.Limit = "test", 400
	o, err := w.train("out")
	require.NoError(t, err)
	require.Equal(t, []int{1, 8, 8}, o.Plan.Imputer.Shape)
	require.Equal(t, "digits", o.Plan.Preset.ID)
	require.Len(t, o.History, 7)
	first, best := o.History[1], o.History[o.BestEpoch-1]
	require.Less(t, *best.ValidationLoss, *first.ValidationLoss)
	for i, e := range o.History {
		require.Equal(t, "gain", e.Imputer)
		require.Equal(t, i%2 == 1 || i == 6, e.ValidationLoss != nil, "epoch %d", e.Epoch)
		if e.ValidationLoss != nil {
			require.GreaterOrEqual(t, *e.ValidationLoss, *best.ValidationLoss, "the best is the one with the least error")
		}
	}
	// Three quarters of the pixels are there, on average over U(0,.5): so many are right
	// once a discriminator that is a constant takes all for real.
	require.InDelta(t, .75, *o.History[6].ValidationAccuracy, .03)
	for i, r := range w.history("out") {
		require.Equal(t, o.History[i].TrainingEpoch, *r.TrainingEpoch)
		require.Equal(t, "gain", r.Net)
	}
	for file, want := range map[string]struct {
		state map[string]weights.Tensor
		epoch orchestrate.EpochResult
	}{orchestrate.BestFile: {o.Best, best}, orchestrate.LastFile: {o.Last, o.History[6]}} {
		sd, err := weights.Open(w.path("out/" + file))
		require.NoError(t, err)
		require.Equal(t, want.state, sd.Tensors)
		require.Contains(t, sd.Tensors, "generator.net.0.weight_orig")
		require.Contains(t, sd.Tensors, "discriminator.net.0.weight_orig")
		require.Equal(t, []int64{1, 8, 8}, sd.Tensors["mfv"].Shape)
		var preset struct {
			ID    string
			Scale float64
		}
		require.NoError(t, json.Unmarshal([]byte(sd.Metadata["preset"]), &preset))
		require.Equal(t, 16., preset.Scale)
		delete(sd.Metadata, "preset")
		require.Equal(t, map[string]string{"format": "pt", "imputer": "gain", "shape": "[1,8,8]", "alpha": "100", "hintRate": "0.01", "maximumRate": "0.5", "width": "2",
			"seed": "0", "data": o.Plan.Data.Hash, "epoch": fmt.Sprint(want.epoch.Epoch), "validationError": fmt.Sprint(*want.epoch.ValidationLoss)}, sd.Metadata)
	}
	text := w.read("out/train.yaml")
	require.Contains(t, text, "imputer:\n  id: gain\n  shape:\n  - 1\n  - 8\n  - 8\n  alpha: 100.0\n  hintRate: 0.01\n  maximumRate: 0.5\n  width: 2\n")
	require.NotContains(t, text, "net:")
	require.NotContains(t, text, "classes")
	require.NoFileExists(t, w.path("out/classes.json"))

	other := *w
	other.job.ImputerSettings = func(i *orchestrate.ImputerTraining) error { i.Width, i.HintRate = 2, .1; return nil }
	_, err = other.train("out")
	require.ErrorIs(t, err, usage.Err)
	require.ErrorContains(t, err, "imputer.hintRate is 0.01 there and 0.1 here")
	other.job = trainingJob("embedded:digits", nil)
	other.job.Open = w.job.Open
	_, err = other.train("out")
	require.ErrorIs(t, err, usage.Err)
	require.ErrorContains(t, err, "net is softmax here and not set there")
}

// everythingGain bounces on a plateau, so that the rate falls more than once.
func everythingGain(s *orchestrate.TrainSettings) {
	s.Epochs, s.BatchSize, s.Rate, s.Patience, s.Gamma, s.Seed, s.Augment = 8, 60, .5, 0, .5, 7, "crop(1),flip"
}

func TestInterruptedImputerTrainingGoesOn(t *testing.T) {
	for _, saveEvery := range []int{1, 3} {
		w := newGainWorld(t, "embedded:digits", func(s *orchestrate.TrainSettings) { everythingGain(s); s.SaveEvery = saveEvery })
		w.job.Data.Limit = 300
		whole, err := w.train("whole")
		require.NoError(t, err)
		require.LessOrEqual(t, whole.History[7].Rate, .125, "the rate fell at least twice")
		boom := errors.New("the device is gone")
		tries := 0
		for {
			steps := 0
			w.backend.FailStep = func(int64) error {
				if steps++; steps == 5*saveEvery+3 { // an epoch has 5
					return boom
				}
				return nil
			}
			o, err := w.train("parts")
			if tries++; err == nil {
				require.Equal(t, whole.Last, o.Last)
				require.Equal(t, whole.Best, o.Best)
				break
			}
			require.ErrorIs(t, err, boom)
			require.Less(t, tries, 12)
		}
		require.Greater(t, tries, 1)
		w.sameFiles("whole", "parts")
	}
}

func TestKilledImputerTrainingGoesOn(t *testing.T) {
	w := newGainWorld(t, "embedded:digits", everythingGain)
	w.job.Data.Limit = 300
	_, err := w.train("whole")
	require.NoError(t, err)
	killChildren(t, trainChildVariable, gainChild+w.dir, 12, func(killed int) func() bool {
		before := stamp(w.path("killed"))
		return func() bool { return stamp(w.path("killed")) != before && killed < 4 }
	})
	_, err = w.train("killed")
	require.NoError(t, err)
	w.sameFiles("whole", "killed")
}

func TestEndsOfImputerTrainings(t *testing.T) {
	w := newGainWorld(t, "embedded:digits", func(s *orchestrate.TrainSettings) { s.Epochs, s.Rate, s.EarlyStopping = 100, .3, 2 })
	w.job.Data.Limit = 100
	o, err := w.train("stopped")
	require.NoError(t, err)
	require.True(t, o.Stopped)
	require.Equal(t, len(o.History), o.BestEpoch+2)

	w = newGainWorld(t, "embedded:digits", func(s *orchestrate.TrainSettings) { s.Rate = 1e300 })
	w.job.Optimizer = "sgd"
	_, err = w.train("out")
	var d *orchestrate.Diverged
	require.ErrorAs(t, err, &d)
}

// Images without labels, some of them held back; with labels the classes do not matter.
func TestImputersNeedNoLabels(t *testing.T) {
	w := newGainWorld(t, "", func(s *orchestrate.TrainSettings) { s.Epochs, s.BatchSize = 2, 4 })
	require.NoError(t, os.WriteFile(w.path("own.yaml"), []byte("id: small\nresize: squash\nheight: 4\nwidth: 5\n"), 0o666))
	for i := range 20 {
		w.image(fmt.Sprintf("%02d.jpg", i), fmt.Sprint("image ", i))
	}
	w.job.Data.Path, w.job.Preset, w.job.Validation = w.path("data"), w.path("own.yaml"), "0.25"
	o, err := w.train("out")
	require.NoError(t, err)
	require.Equal(t, 5, o.Plan.Validation.Items)
	require.Equal(t, []int{3, 4, 5}, o.Plan.Imputer.Shape)
	require.NotNil(t, o.History[1].ValidationLoss)

	w.job.Net, w.job.Imputer = "softmax-image", ""
	_, err = w.train("net")
	require.ErrorContains(t, err, "has no labels")

	one := newGainWorld(t, "", func(s *orchestrate.TrainSettings) { s.Epochs, s.BatchSize = 1, 4 })
	for _, split := range []string{"train", "val"} {
		for i := range 6 {
			one.image(fmt.Sprintf("%s/all/%02d.jpg", split, i), fmt.Sprint("image ", i))
		}
	}
	one.job.Data.Path, one.job.Preset = one.path("data"), w.path("own.yaml")
	o, err = one.train("out")
	require.NoError(t, err, "one class")
	require.Equal(t, "val", o.Plan.Validation.Split)
}

func (w *trainWorld) png(name string, height, width int) {
	m := image.NewNRGBA(image.Rect(0, 0, width, height))
	m.Set(0, 0, color.NRGBA{uint8(len(name)), 1, 2, 255})
	path := w.path(name)
	require.NoError(w.t, os.MkdirAll(filepath.Dir(path), 0o777))
	f, err := os.Create(path)
	require.NoError(w.t, err)
	require.NoError(w.t, png.Encode(f, m))
	require.NoError(w.t, f.Close())
}

// floats writes eight images of 1x2x2 whose pixels are 0 but for one.
func (w *trainWorld) floats(name string, one float32) string {
	header := "{'descr': '<f4', 'fortran_order': False, 'shape': (8, 1, 2, 2), }"
	header += strings.Repeat(" ", 117-len(header)) + "\n"
	text := append([]byte("\x93NUMPY\x01\x00"), byte(len(header)), 0)
	text = append(text, header...)
	for i := range 32 {
		v := float32(0)
		if i == 9 {
			v = one
		}
		text = binary.LittleEndian.AppendUint32(text, math.Float32bits(v))
	}
	require.NoError(w.t, os.WriteFile(w.path(name), text, 0o666))
	return w.path(name)
}

// Without a preset, images stay what they are.
func TestImputersTakeTheDataAsItIs(t *testing.T) {
	w := newGainWorld(t, "", func(s *orchestrate.TrainSettings) { s.Epochs, s.BatchSize = 1, 2 })
	for i := range 4 {
		w.png(fmt.Sprintf("even/%d.png", i), 6, 5)
	}
	w.job.Data.Path, w.job.Validation = w.path("even"), "0.5"
	o, err := w.train("even-out")
	require.NoError(t, err)
	require.Equal(t, []int{3, 6, 5}, o.Plan.Imputer.Shape)
	require.Equal(t, 255., o.Plan.Preset.Scale)
	w.png("even/9.png", 7, 5)
	_, err = w.train("odd-out")
	require.ErrorIs(t, err, usage.Err)
	require.ErrorContains(t, err, "images of different sizes, such as 6x5 and 7x5")

	table := func(values string) string { return strings.Repeat(values+"\n", 8) }
	require.NoError(t, os.WriteFile(w.path("t.csv"), []byte("a,b,class\n"+table("1,2,0")), 0o666))
	for data, want := range map[string]string{
		"embedded:iris":            "imputers are trained on images",
		w.path("t.csv"):            "imputers are trained on images",
		"synthetic:gaussians":      "imputers are trained on images",
		w.floats("in.npy", .5):     "",
		w.floats("bytes.npy", 200): "",
		w.floats("out.npy", 300):   "values from 0 to 300: say with --preset by what they are to be divided",
		w.floats("below.npy", -1):  "values from -1 to 0",
		"embedded:digits":          "",
		"synthetic:shapes?size=16": "",
	} {
		next := newGainWorld(t, data, func(s *orchestrate.TrainSettings) { s.Epochs, s.BatchSize = 1, 4 })
		next.job.Data.Limit = 40
		if next.job.Validation = "0.5"; want == "" {
			_, err := next.train("")
			require.NoError(t, err, data)
			continue
		}
		_, err := next.train("")
		require.ErrorIs(t, err, usage.Err, data)
		require.ErrorContains(t, err, want, data)
	}
}

func TestImputersGoOnFromWeights(t *testing.T) {
	w := newGainWorld(t, "embedded:digits", func(s *orchestrate.TrainSettings) { s.Epochs, s.Rate = 3, .01 })
	w.job.Data.Limit = 300
	o, err := w.train("out")
	require.NoError(t, err)
	w.job.Weights = w.path("out/last.safetensors")
	further, err := w.train("further")
	require.NoError(t, err)
	require.Less(t, further.History[0].Loss, o.History[0].Loss)
	require.NotEmpty(t, further.Plan.WeightsHash)
	require.Equal(t, o.Plan.Preset, further.Plan.Preset)

	sd, err := weights.Open(w.path("out/last.safetensors"))
	require.NoError(t, err)
	more := map[string]weights.Tensor{"extra": sd.Tensors["mfv"]}
	for name, tensor := range sd.Tensors {
		if !strings.HasPrefix(name, "discriminator.") {
			more[name] = tensor
		}
	}
	require.NoError(t, weights.WriteSafetensors(w.path("part.safetensors"), more, nil))
	w.job.Weights = w.path("part.safetensors")
	_, err = w.train("part")
	require.ErrorIs(t, err, usage.Err)
	require.ErrorContains(t, err, "part.safetensors does not fit imputer gain of width 2 for images of shape [1 8 8]: discriminator.net.0.weight_orig is missing; extra has no place")
	require.NoError(t, weights.WriteSafetensors(w.path("bare.safetensors"), sd.Tensors, nil))
	for file, of := range map[string]string{"out/last.safetensors": "its metadata", "bare.safetensors": "its generator.net.0.weight_orig"} {
		w.job.Weights = w.path(file)
		w.job.ImputerSettings = func(i *orchestrate.ImputerTraining) error { i.Width = 5; return nil }
		_, err = w.train("wide")
		require.ErrorIs(t, err, usage.Err)
		require.ErrorContains(t, err, "width 5: "+w.path(file)+" is of width 2 ("+of+"): leave the width out")
		w.job.ImputerSettings = nil
		o, err := w.train("")
		require.NoError(t, err)
		require.Equal(t, 2, o.Plan.Imputer.Width, "the file's, not the default")
	}
	require.NoDirExists(t, w.path("wide"))

	net := newTrainWorld(t, "embedded:digits", few)
	net.job.Weights = w.path("out/last.safetensors")
	_, err = net.train("out")
	require.ErrorIs(t, err, usage.Err)
	require.ErrorContains(t, err, "holds a trained imputer gain: want weights of net softmax")
	net.job.Weights = ""
	_, err = net.train("out")
	require.NoError(t, err)
	w.job.Weights = net.path("out/last.safetensors")
	_, err = w.train("net")
	require.ErrorIs(t, err, usage.Err)
	require.ErrorContains(t, err, "holds weights of net softmax: want a file of assay train --imputer gain")
	require.Zero(t, w.backend.OpenTrainers.Load())
}

func TestBadImputerTrainings(t *testing.T) {
	type change func(*orchestrate.TrainJob, *orchestrate.TrainSettings, *orchestrate.ImputerTraining)
	for name, c := range map[string]struct {
		change change
		want   string
	}{
		"imputer": {func(j *orchestrate.TrainJob, _ *orchestrate.TrainSettings, _ *orchestrate.ImputerTraining) {
			j.Imputer = "gian"
		}, `imputer "gian": not one that is trained: did you mean gain?`},
		"net": {func(j *orchestrate.TrainJob, _ *orchestrate.TrainSettings, _ *orchestrate.ImputerTraining) {
			j.Net = "softmax"
		}, "net softmax and imputer gain"},
		"classes": {func(j *orchestrate.TrainJob, _ *orchestrate.TrainSettings, _ *orchestrate.ImputerTraining) {
			j.Classes = 3
		}, "know of no classes"},
		"alpha": {func(_ *orchestrate.TrainJob, _ *orchestrate.TrainSettings, i *orchestrate.ImputerTraining) {
			i.Alpha = 0
		}, "alpha 0: want more than 0"},
		"alpha NaN": {func(_ *orchestrate.TrainJob, _ *orchestrate.TrainSettings, i *orchestrate.ImputerTraining) {
			i.Alpha = math.NaN()
		}, "alpha NaN"},
		"hint": {func(_ *orchestrate.TrainJob, _ *orchestrate.TrainSettings, i *orchestrate.ImputerTraining) {
			i.HintRate = 1.5
		}, "hint-rate 1.5"},
		"no hint": {func(_ *orchestrate.TrainJob, _ *orchestrate.TrainSettings, i *orchestrate.ImputerTraining) {
			i.HintRate = 0
		}, "hint-rate 0: want a probability"},
		"rate": {func(_ *orchestrate.TrainJob, _ *orchestrate.TrainSettings, i *orchestrate.ImputerTraining) {
			i.MaximumRate = 0
		}, "maximum-rate 0"},
		"width": {func(_ *orchestrate.TrainJob, _ *orchestrate.TrainSettings, i *orchestrate.ImputerTraining) {
			i.Width = 0
		}, "width 0: want a number of channels from 1"},
		"best": {func(_ *orchestrate.TrainJob, s *orchestrate.TrainSettings, _ *orchestrate.ImputerTraining) {
			s.BestBy = "accuracy"
		}, "best-by accuracy: imputers are judged by their error alone"},
		"smoothing": {func(_ *orchestrate.TrainJob, s *orchestrate.TrainSettings, _ *orchestrate.ImputerTraining) {
			s.LabelSmoothing = .1
		}, "label-smoothing 0.1"},
		"patience": {func(_ *orchestrate.TrainJob, s *orchestrate.TrainSettings, _ *orchestrate.ImputerTraining) {
			s.Patience = -1
		}, "patience -1: want a number of epochs from 0"},
		"gamma": {func(_ *orchestrate.TrainJob, s *orchestrate.TrainSettings, _ *orchestrate.ImputerTraining) {
			s.Gamma = 0
		}, "gamma 0: want more than 0"},
		"milestones": {func(_ *orchestrate.TrainJob, s *orchestrate.TrainSettings, _ *orchestrate.ImputerTraining) {
			s.Milestones = []int{3}
		}, "milestones and step-every belong to schedule step"},
		"patience of another": {func(_ *orchestrate.TrainJob, s *orchestrate.TrainSettings, _ *orchestrate.ImputerTraining) {
			s.Schedule, s.Patience = "cosine", 3
		}, "patience belongs to schedule plateau, not to cosine"},
		"patience of steps": {func(_ *orchestrate.TrainJob, s *orchestrate.TrainSettings, _ *orchestrate.ImputerTraining) {
			s.Schedule, s.StepEvery, s.Patience = "step", 3, 3
		}, "patience belongs to schedule plateau, not to step"},
		"no validation": {func(j *orchestrate.TrainJob, s *orchestrate.TrainSettings, _ *orchestrate.ImputerTraining) {
			j.Validation, s.Schedule = "none", "plateau"
		}, "schedule plateau: wants a validation part"},
		"no validation to stop by": {func(j *orchestrate.TrainJob, s *orchestrate.TrainSettings, _ *orchestrate.ImputerTraining) {
			j.Validation, s.EarlyStopping = "none", 3
		}, "early-stopping: wants a validation part"},
		"no validation to be patient about": {func(j *orchestrate.TrainJob, s *orchestrate.TrainSettings, _ *orchestrate.ImputerTraining) {
			j.Validation, s.Patience = "none", 3
		}, "patience belongs to schedule plateau, not to constant"},
		"batch": {func(_ *orchestrate.TrainJob, s *orchestrate.TrainSettings, _ *orchestrate.ImputerTraining) {
			s.BatchSize = 5000
		}, "batch-size 5000 is more than the 1293 training examples"},
		"weights": {func(j *orchestrate.TrainJob, _ *orchestrate.TrainSettings, _ *orchestrate.ImputerTraining) {
			j.Weights = "none.safetensors"
		}, "none.safetensors"},
		"embedded weights": {func(j *orchestrate.TrainJob, _ *orchestrate.TrainSettings, _ *orchestrate.ImputerTraining) {
			j.Weights = "embedded:cnn3-digits"
		}, "are for net cnn3, not gain"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newGainWorld(t, "embedded:digits", nil)
			var settings orchestrate.TrainSettings
			var own orchestrate.ImputerTraining
			c.change(&w.job, &settings, &own)
			job := w.job
			w.job.Settings = func(s *orchestrate.TrainSettings) error { c.change(&job, s, &own); return nil }
			w.job.ImputerSettings = func(i *orchestrate.ImputerTraining) error { c.change(&job, &settings, i); return nil }
			_, err := w.train("out")
			require.ErrorIs(t, err, usage.Err)
			require.ErrorContains(t, err, c.want)
			require.NotContains(t, err.Error(), "\n")
			require.NoDirExists(t, w.path("out"))
		})
	}
}

// Trainings of nets are what they were before imputers were trained: files and ids of a
// version that knew of none.
func TestTrainingsOfNetsStayWhatTheyWere(t *testing.T) {
	for data, want := range map[string][]string{
		"embedded:iris":   {"3759960836fea4bd0a4aa9bf", "eef3eab0f04ef9aca8dda19a"},
		"embedded:digits": {"5e6403309d3d4bed6460b848", "adb83f905bee2eeb55c4ad21"},
	} {
		w := newTrainWorld(t, data, func(s *orchestrate.TrainSettings) {
			if s.Epochs = 2; data == "embedded:digits" {
				s.Schedule, s.StepEvery, s.Gamma, s.Augment = "step", 1, .5, "flip"
			}
		})
		if data == "embedded:digits" {
			w.job.Net, w.job.Data.Limit = "softmax-image", 200
		}
		_, err := w.train("out")
		require.NoError(t, err)
		var ids []string
		for _, r := range w.history("out") {
			ids = append(ids, r.ID)
		}
		require.Equal(t, want, ids)
		require.Regexp(t, `(?s)^version: 1\nnet: softmax.*?\nclasses: \d+\n(features: 4\n)?preset:\n`, w.read("out/train.yaml"))
		for _, absent := range []string{"imputer", "patience"} {
			require.NotContains(t, w.read("out/train.yaml"), absent)
			require.NotContains(t, w.read("out/results.jsonl"), absent)
		}
	}
}

const gainPlan = `version: 1
study: road
train:
- {name: fill, imputer: gain, data: {path: embedded:digits, limit: 100}, settings: {epochs: 2, width: 3, hintRate: 0.1}}
generator: {weights: train:fill}
nets:
- {net: softmax-image, weights: train:one}
data:
- {path: embedded:digits, split: test, limit: 10}
grid: {order: random, imputer: gain, fractions: 0.5}
batch: 8
threads: 1
`

// A plan trains its imputer first and takes the file that comes of it.
func TestPlansTrainImputers(t *testing.T) {
	w := newWorld(t, 0)
	text := strings.Replace(gainPlan, "generator:", "- {name: one, net: softmax-image, data: {path: embedded:digits, limit: 100}, settings: {epochs: 1, batchSize: 50}}\ngenerator:", 1)
	measured := strings.Replace(gainPlan, "{net: softmax-image, weights: train:one}", "{net: tiny, weights: "+w.path("tiny.safetensors")+", preset: digits}", 1)
	var said []string
	_, err := orchestrate.Run(t.Context(), orchestrate.Job{Plan: w.parse(measured), Out: w.path("out"), Open: w.backend.Opener(),
		Progress: func(e orchestrate.Event) { said = append(said, e.Message) }})
	require.NoError(t, err)
	require.Contains(t, w.read("out/plan.yaml"), w.path("out/train/fill/best.safetensors"))
	require.Regexp(t, `trained fill: generator's loss .* \(75 % are known\); best of 2 epochs: epoch [12]`, strings.Join(said, "\n"))
	trained := w.read("out/train/fill/train.yaml")
	for _, line := range []string{"epochs: 2", "width: 3", "hintRate: 0.1", "alpha: 100", "patience: 1"} {
		require.Contains(t, trained, line)
	}
	before := w.backend.Calls()
	_, err = w.run(w.parse(measured), "out")
	require.NoError(t, err)
	require.Equal(t, before, w.backend.Calls(), "neither trained nor measured again")
	for _, c := range [][3]string{
		{"weights: train:fill", "weights: train:fil", "generator train:fil: did you mean fill"},
		{"weights: train:fill", "weights: train:one", "that is a training of net softmax-image: want one of an imputer"},
		{"weights: train:one", "weights: train:fill", "that is a training of imputer gain: want one of a net"},
		{"imputer: gain", "imputer: gian", "did you mean gain"},
		{"imputer: gain", "imputer: gain, net: softmax", "want one of them"},
		{"imputer: gain", "imputer: gain, classes: 3", "know of no classes"},
		{"imputer: gain, data", "data", "without its net (net: ...) or imputer"},
		{"width: 3", "width: 0", "width 0"},
		{"width: 3", "widht: 3", "settings: widht: did you mean width?"},
		{"width: 3", "batch-size: 3", "settings: batch-size: did you mean batchSize?"},
		{"width: 3", "hint-rate: 3", "settings: hint-rate: did you mean hintRate?"},
		{"width: 3", "noise: 3", "settings: noise: want one of epochs, batchSize, optimizer, rate, "},
		{"width: 3", "width: wide", "settings: width: a text: want a whole number"},
		{"epochs: 2", "epochs: [2]", "settings: epochs: a list: want a whole number"},
		{"epochs: 1,", "epochs: 1, alpha: 3,", "settings: alpha: belongs to imputers, not to nets"},
		{"epochs: 2", "epochs: 2, bestBy: accuracy", "judged by their error"},
	} {
		require.Contains(t, text, c[0])
		_, err := w.run(w.parse(strings.Replace(text, c[0], c[1], 1)), "bad")
		require.ErrorIs(t, err, usage.Err, c[1])
		require.ErrorContains(t, err, c[2])
	}
	w.closed()
}
