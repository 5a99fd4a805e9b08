package orchestrate_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/assay-xai/assay/internal/fake"
	"github.com/assay-xai/assay/internal/record"
	"github.com/assay-xai/assay/internal/usage"
	"github.com/assay-xai/assay/orchestrate"
	"github.com/assay-xai/assay/weights"
)

// trainWorld trains softmax regression on the fake.
type trainWorld struct {
	*world
	job orchestrate.TrainJob
}

func newTrainWorld(t *testing.T, data string, settings func(*orchestrate.TrainSettings)) *trainWorld {
	w := &trainWorld{world: &world{t: t, dir: t.TempDir(), backend: &fake.Backend{}}}
	w.job = trainingJob(data, settings)
	w.job.Open = w.backend.Opener()
	return w
}

func trainingJob(data string, settings func(*orchestrate.TrainSettings)) orchestrate.TrainJob {
	return orchestrate.TrainJob{Net: "softmax", Data: orchestrate.DataPlan{Path: data}, Device: "cpu", Threads: 1,
		Settings: func(s *orchestrate.TrainSettings) error {
			if settings != nil {
				settings(s)
			}
			return nil
		}}
}

func (w *trainWorld) train(out string) (orchestrate.TrainOutcome, error) {
	job := w.job
	if out != "" {
		job.Out = w.path(out)
	}
	o, err := orchestrate.RunTraining(w.t.Context(), job)
	require.Zero(w.t, w.backend.OpenTrainers.Load(), "trainers left open")
	w.closed()
	return o, err
}

// history is results.jsonl without what may differ.
func (w *trainWorld) history(out string) (list []record.Record) {
	require.NoError(w.t, record.Scan(w.path(out+"/"+record.FileName), func(r record.Record) error {
		r.Cost = record.Cost{}
		list = append(list, r)
		return nil
	}))
	return list
}

// few is a short training on digits.
func few(s *orchestrate.TrainSettings) { s.Epochs, s.BatchSize, s.Rate = 4, 64, .01 }

func TestTrainingLearnsDigits(t *testing.T) {
	w := newTrainWorld(t, "embedded:digits", func(s *orchestrate.TrainSettings) { s.Epochs = 15; s.Rate = .01 })
	w.job.Validation = "test"
	o, err := w.train("out")
	require.NoError(t, err)
	require.Len(t, o.History, 15)
	// scikit-learn's LogisticRegression reaches .96 to .97 on such a split.
	best := o.History[o.BestEpoch-1]
	require.Greater(t, *best.ValidationAccuracy, .95)
	require.Less(t, o.History[14].Loss, o.History[0].Loss/2)
	for _, e := range o.History {
		require.LessOrEqual(t, *e.ValidationAccuracy, *best.ValidationAccuracy)
		require.Equal(t, .01, e.Rate)
	}
	list := w.history("out")
	require.Len(t, list, 15)
	for i, r := range list {
		require.Equal(t, i+1, r.Epoch)
		require.Equal(t, o.History[i].TrainingEpoch, *r.TrainingEpoch)
		require.Equal(t, "train", r.Study)
	}
	// The files are what the loop has, and say what they are.
	for file, want := range map[string]map[string]weights.Tensor{orchestrate.BestFile: o.Best, orchestrate.LastFile: o.Last} {
		sd, err := weights.Open(w.path("out/" + file))
		require.NoError(t, err)
		require.Equal(t, want, sd.Tensors)
		require.Equal(t, "softmax", sd.Metadata["net"])
		require.Equal(t, "10", sd.Metadata["classes"])
		require.Equal(t, "0", sd.Metadata["seed"])
		require.Equal(t, o.Plan.Data.Hash, sd.Metadata["data"])
	}
}

// What eval says of the saved weights is what training said, tables and their
// standardisation included.
func TestEvalAgreesWithTraining(t *testing.T) {
	for _, c := range []struct {
		net, data string
		above     float64
	}{{"softmax", "embedded:digits", .9}, {"softmax-image", "embedded:digits", .9}, {"softmax", "embedded:breast-cancer", .95}, {"softmax", "embedded:wine", .9}} {
		t.Run(c.net+" "+c.data, func(t *testing.T) {
			w := newTrainWorld(t, c.data, func(s *orchestrate.TrainSettings) { s.Epochs = 5; s.Rate = .02 })
			w.job.Net, w.job.Validation, w.job.Optimizer = c.net, "test", "adam"
			o, err := w.train("out")
			require.NoError(t, err)
			accuracy := o.History[o.BestEpoch-1].ValidationAccuracy
			require.Greater(t, *accuracy, c.above)
			plan := &orchestrate.Plan{Version: 1, Study: "eval", Device: "cpu", Batch: 8,
				Nets: []orchestrate.NetPlan{{Net: c.net, Weights: w.path("out/best.safetensors")}},
				Data: []orchestrate.DataPlan{{Path: c.data, Split: "test"}}}
			outcome, err := w.run(plan, "eval")
			require.NoError(t, err)
			require.Equal(t, "top1", outcome.Summary[0].Metric)
			require.InDelta(t, *accuracy, outcome.Summary[0].Mean, 1e-12)
		})
	}
}

// sameFiles compares what two trainings of the same settings have left.
func (w *trainWorld) sameFiles(a, b string) {
	for _, name := range []string{orchestrate.BestFile, orchestrate.LastFile, orchestrate.TrainFile} {
		require.Equal(w.t, w.read(a+"/"+name), w.read(b+"/"+name), name)
	}
	require.Equal(w.t, w.history(a), w.history(b))
}

func everything(s *orchestrate.TrainSettings) {
	s.Epochs, s.BatchSize, s.Rate, s.Momentum, s.Nesterov, s.WeightDecay = 6, 100, .3, .9, true, 1e-3
	s.LabelSmoothing, s.Schedule, s.Warmup, s.Augment, s.Seed = .1, "cosine", 2, "crop(1),flip", 7
}

func TestInterruptedTrainingGoesOnToTheSameBits(t *testing.T) {
	for _, optimizer := range []string{"sgd", "adam"} {
		for _, saveEvery := range []int{1, 3} {
			w := newTrainWorld(t, "embedded:digits", func(s *orchestrate.TrainSettings) {
				everything(s)
				if s.SaveEvery = saveEvery; optimizer == "adam" {
					s.Momentum, s.Nesterov, s.Rate = 0, false, .01
				}
			})
			w.job.Net, w.job.Optimizer, w.job.Data.Limit = "softmax-image", optimizer, 500
			whole, err := w.train("whole")
			require.NoError(t, err)
			require.Len(t, whole.History, 6)
			// An epoch has 5 steps; each run fails in the third of an epoch.
			boom := errors.New("the device is gone")
			var tries int
			for {
				steps := 0
				w.backend.FailStep = func(int64) error {
					if steps++; steps == 5*saveEvery+3 {
						return boom
					}
					return nil
				}
				o, err := w.train("parts")
				if tries++; err == nil {
					require.Equal(t, whole.Last, o.Last)
					require.Equal(t, whole.Best, o.Best)
					require.Positive(t, o.Before)
					break
				}
				require.ErrorIs(t, err, boom)
				require.Less(t, tries, 10)
			}
			require.Greater(t, tries, 1)
			w.backend.FailStep = nil
			w.sameFiles("whole", "parts")
			// Once more does nothing.
			w.backend.FailStep = func(int64) error { return boom }
			o, err := w.train("parts")
			require.NoError(t, err)
			require.Equal(t, 6, o.Before)
			w.sameFiles("whole", "parts")
			w.backend.FailStep = nil
		}
	}
}

// Whatever of the files is older than the checkpoint, or newer, is put right.
func TestFilesFollowTheCheckpoint(t *testing.T) {
	w := newTrainWorld(t, "embedded:iris", func(s *orchestrate.TrainSettings) { s.Epochs = 4 })
	_, err := w.train("whole")
	require.NoError(t, err)
	for damage, do := range map[string]func(out, text string) error{
		"none": func(string, string) error { return nil },
		"tear": func(out, text string) error {
			return os.WriteFile(out+"/results.jsonl", []byte(text+`{"id":"x","stu`), 0o666)
		},
		"shorten": func(out, text string) error {
			return os.WriteFile(out+"/results.jsonl", []byte(text[:strings.LastIndex(text[:len(text)-1], "\n")+1]), 0o666)
		},
		"lengthen": func(out, text string) error {
			return os.WriteFile(out+"/results.jsonl", []byte(text+`{"id":"x","study":"train","epoch":9}`+"\n"), 0o666)
		},
		"no weights":    func(out, _ string) error { return os.Remove(out + "/best.safetensors") },
		"old weights":   func(out, _ string) error { return os.WriteFile(out+"/last.safetensors", []byte("old"), 0o666) },
		"temporary":     func(out, _ string) error { return os.WriteFile(out+"/.best.safetensors123", []byte("half"), 0o666) },
		"no checkpoint": func(out, _ string) error { return os.Remove(out + "/checkpoint.safetensors") },
	} {
		for fail := 2; fail <= 4; fail++ {
			out := fmt.Sprintf("%s-%d", damage, fail)
			w.backend.FailStep = func(step int64) error {
				if step == int64(4*(fail-1)+2) { // an epoch has 4
					return errors.New("gone")
				}
				return nil
			}
			_, err := w.train(out)
			require.ErrorContains(t, err, "gone")
			w.backend.FailStep = nil
			require.NoError(t, do(w.path(out), w.read(out+"/results.jsonl")))
			_, err = w.train(out)
			require.NoError(t, err, out)
			w.sameFiles("whole", out)
			require.NoFileExists(t, w.path(out+"/.best.safetensors123"))
		}
	}
	require.NoError(t, os.WriteFile(w.path("whole/checkpoint.safetensors"), []byte("damaged"), 0o666))
	_, err = w.train("whole")
	require.ErrorContains(t, err, "checkpoint")
}

// trainChildVariable makes the test binary train into the folder it names.
const trainChildVariable = "ASSAY_TEST_TRAIN_CHILD"

// gainChild before the folder makes it train an imputer.
const gainChild = "gain:"

func trainChild(dir string) {
	job := trainingJob("embedded:digits", everything)
	job.Net, job.Data.Limit = "softmax-image", 500
	dir, gain := strings.CutPrefix(dir, gainChild)
	if gain {
		job = gainJob("embedded:digits", everythingGain)
		job.Data.Limit = 300
	}
	job.Out = filepath.Join(dir, "killed")
	job.Open = (&fake.Backend{}).Opener()
	if _, err := orchestrate.RunTraining(context.Background(), job); err != nil {
		os.Stderr.WriteString(err.Error())
		os.Exit(1)
	}
}

func TestKilledTrainingGoesOn(t *testing.T) {
	w := newTrainWorld(t, "embedded:digits", everything)
	w.job.Net, w.job.Data.Limit = "softmax-image", 500
	_, err := w.train("whole")
	require.NoError(t, err)
	killChildren(t, trainChildVariable, w.dir, 12, func(killed int) func() bool {
		before := stamp(w.path("killed"))
		// Something in the folder changed: it may be half way between two files.
		return func() bool { return stamp(w.path("killed")) != before && killed < 6 }
	})
	_, err = w.train("killed")
	require.NoError(t, err)
	w.sameFiles("whole", "killed")
}

// stamp changes with any file of a folder.
func stamp(dir string) string {
	var b strings.Builder
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if info, err := e.Info(); err == nil {
			b.WriteString(e.Name() + info.ModTime().String())
		}
	}
	return b.String()
}

func TestStoppedTrainingKeepsWhatIsDone(t *testing.T) {
	w := newTrainWorld(t, "embedded:digits", few)
	_, err := w.train("whole")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	w.backend.FailStep = func(step int64) error {
		if step == 2*21+5 { // an epoch has 21
			cancel()
		}
		return nil
	}
	job := w.job
	job.Out = w.path("parts")
	_, err = orchestrate.RunTraining(ctx, job)
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorContains(t, err, "epoch 3 of 4")
	require.Len(t, w.history("parts"), 2)
	w.backend.FailStep = nil
	w.job.MustExist = true
	_, err = w.train("parts")
	require.NoError(t, err)
	w.sameFiles("whole", "parts")
}

func TestEarlyStopping(t *testing.T) {
	w := newTrainWorld(t, "embedded:digits", func(s *orchestrate.TrainSettings) {
		s.Epochs, s.Rate, s.EarlyStopping, s.EvaluateEvery = 200, .5, 3, 2
	})
	w.job.Data.Limit = 200
	o, err := w.train("out")
	require.NoError(t, err)
	require.True(t, o.Stopped)
	n := len(o.History)
	require.Less(t, n, 200)
	require.GreaterOrEqual(t, n-o.BestEpoch, 3)
	require.Less(t, n-o.BestEpoch, 3+2)
	// The best is the first of those with the best accuracy, by loss where equal.
	for i, e := range o.History {
		require.Equal(t, (i+1)%2 == 0, e.ValidationLoss != nil, "epoch %d", i+1)
		if e.ValidationLoss == nil {
			continue
		}
		best := o.History[o.BestEpoch-1]
		require.LessOrEqual(t, *e.ValidationAccuracy, *best.ValidationAccuracy)
		if *e.ValidationAccuracy == *best.ValidationAccuracy {
			require.GreaterOrEqual(t, *e.ValidationLoss, *best.ValidationLoss)
		}
	}
	again, err := w.train("out")
	require.NoError(t, err)
	require.True(t, again.Stopped)
	require.Len(t, again.History, n)
}

func TestWithoutValidationTheLastIsTheBest(t *testing.T) {
	w := newTrainWorld(t, "embedded:iris", func(s *orchestrate.TrainSettings) { s.Epochs = 3 })
	w.job.Validation = "none"
	o, err := w.train("out")
	require.NoError(t, err)
	require.Equal(t, 3, o.BestEpoch)
	require.Equal(t, o.Last, o.Best)
	require.Nil(t, o.History[2].ValidationAccuracy)
	require.Equal(t, w.read("out/last.safetensors"), w.read("out/best.safetensors"))
	kept, err := w.train("")
	require.NoError(t, err)
	require.Equal(t, o.Last, kept.Last, "with and without a folder")
}

func TestSeedsAndStartingWeights(t *testing.T) {
	train := func(seed uint64, start string) orchestrate.TrainOutcome {
		w := newTrainWorld(t, "embedded:iris", func(s *orchestrate.TrainSettings) { s.Epochs, s.Seed = 2, seed })
		w.job.Weights = start
		o, err := w.train("out")
		require.NoError(t, err)
		if start == "" {
			require.NoError(t, weights.WriteSafetensors(w.path("w.safetensors"), o.Last, map[string]string{}))
			next := *w
			next.job.Weights = w.path("w.safetensors")
			further, err := next.train("further")
			require.NoError(t, err)
			require.Less(t, further.History[0].Loss, o.History[0].Loss)
			require.NotEmpty(t, further.Plan.WeightsHash)
		}
		return o
	}
	a, b, c := train(3, ""), train(3, ""), train(4, "")
	require.Equal(t, a.Last, b.Last)
	require.NotEqual(t, a.Last, c.Last)
}

// A head for other classes is drawn anew, the rest is kept.
func TestHeadForOtherClasses(t *testing.T) {
	w := newTrainWorld(t, "embedded:iris", func(s *orchestrate.TrainSettings) { s.Epochs, s.Rate = 1, 1e-30 })
	w.job.Optimizer = "sgd"
	fresh, err := w.train("fresh")
	require.NoError(t, err)
	// The fake's net is all head: weights for five classes are replaced as a whole.
	ones := slices.Repeat([]byte{0, 0, 0x80, 0x3f}, 20)
	require.NoError(t, weights.WriteSafetensors(w.path("five.safetensors"), map[string]weights.Tensor{
		"fc.weight": {DType: "f32", Shape: []int64{5, 4}, Data: ones}, "fc.bias": {DType: "f32", Shape: []int64{5}, Data: ones[:20]}}, nil))
	w.job.Weights, w.job.Classes = w.path("five.safetensors"), 3
	o, err := w.train("out")
	require.NoError(t, err)
	require.Equal(t, fresh.Last, o.Last)
	// Without a number of classes the weights' is taken.
	w.job.Classes = 0
	o, err = w.train("five")
	require.NoError(t, err)
	require.Equal(t, 5, o.Plan.Classes)
	require.Equal(t, ones, o.Last["fc.weight"].Data)
}

func TestDivergence(t *testing.T) {
	w := newTrainWorld(t, "embedded:digits", func(s *orchestrate.TrainSettings) { few(s); s.Rate = 1e30 })
	w.job.Optimizer = "sgd"
	_, err := w.train("out")
	var d *orchestrate.Diverged
	require.ErrorAs(t, err, &d)
	require.NotErrorIs(t, err, usage.Err)
	require.Equal(t, 1, d.Epoch)
	require.ErrorContains(t, err, "diverged in epoch 1, step ")
	require.ErrorContains(t, err, "smaller --rate")
	require.NotContains(t, err.Error(), "\n")
	require.Empty(t, w.history("out"))
}

func TestBadTrainings(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*orchestrate.TrainJob, *orchestrate.TrainSettings)
		want   string
	}{
		"rate":             {func(_ *orchestrate.TrainJob, s *orchestrate.TrainSettings) { s.Rate = 0 }, "rate 0: want more than 0"},
		"rate NaN":         {func(_ *orchestrate.TrainJob, s *orchestrate.TrainSettings) { s.Rate = math.NaN() }, "rate NaN"},
		"epochs":           {func(_ *orchestrate.TrainJob, s *orchestrate.TrainSettings) { s.Epochs = 0 }, "epochs 0: want at least 1"},
		"batch":            {func(_ *orchestrate.TrainJob, s *orchestrate.TrainSettings) { s.BatchSize = 5000 }, "more than the"},
		"optimizer":        {func(j *orchestrate.TrainJob, _ *orchestrate.TrainSettings) { j.Optimizer = "sdg" }, `optimizer "sdg": did you mean sgd?`},
		"schedule":         {func(_ *orchestrate.TrainJob, s *orchestrate.TrainSettings) { s.Schedule = "cosin" }, `schedule "cosin": did you mean cosine?`},
		"milestones":       {func(_ *orchestrate.TrainJob, s *orchestrate.TrainSettings) { s.Milestones = []int{3} }, "belong to schedule step"},
		"step":             {func(_ *orchestrate.TrainJob, s *orchestrate.TrainSettings) { s.Schedule = "step" }, "milestones (epochs) or step-every"},
		"warm-up":          {func(_ *orchestrate.TrainJob, s *orchestrate.TrainSettings) { s.Warmup = s.Epochs }, "warmup"},
		"momentum of adam": {func(_ *orchestrate.TrainJob, s *orchestrate.TrainSettings) { s.Momentum = .9 }, "momentum: optimizer adam has none"},
		"augment":          {func(_ *orchestrate.TrainJob, s *orchestrate.TrainSettings) { s.Augment = "flop" }, `augment "flop": did you mean flip?`},
		"crop":             {func(_ *orchestrate.TrainJob, s *orchestrate.TrainSettings) { s.Augment = "crop" }, "want crop(N)"},
		"augment columns":  {func(_ *orchestrate.TrainJob, s *orchestrate.TrainSettings) { s.Augment = "flip" }, "wants images"},
		"net":              {func(j *orchestrate.TrainJob, _ *orchestrate.TrainSettings) { j.Net = "softmx" }, `net "softmx": did you mean softmax`},
		"split":            {func(j *orchestrate.TrainJob, _ *orchestrate.TrainSettings) { j.Validation = "tset" }, "want one of test, train"},
		"same split":       {func(j *orchestrate.TrainJob, _ *orchestrate.TrainSettings) { j.Validation = "train" }, "that is the part to train on"},
		"fraction":         {func(j *orchestrate.TrainJob, _ *orchestrate.TrainSettings) { j.Validation = "1.5" }, "between 0 and 1"},
		"small fraction":   {func(j *orchestrate.TrainJob, _ *orchestrate.TrainSettings) { j.Validation = "0.00001" }, "and 0 to validate"},
		"patience": {func(j *orchestrate.TrainJob, s *orchestrate.TrainSettings) {
			j.Validation = "none"
			s.EarlyStopping = 2
		}, "wants a validation part"},
		"labels":  {func(j *orchestrate.TrainJob, _ *orchestrate.TrainSettings) { j.Data.Path = "embedded:photos" }, "has no labels: give them with --labels FILE"},
		"classes": {func(j *orchestrate.TrainJob, _ *orchestrate.TrainSettings) { j.Classes = 5 }, "want 0..4"},
		"one class": {func(j *orchestrate.TrainJob, s *orchestrate.TrainSettings) {
			j.Data.Limit = 1
			j.Validation = "none"
			s.BatchSize = 1
		}, "at least two classes"},
		"precision": {func(j *orchestrate.TrainJob, _ *orchestrate.TrainSettings) { j.Precision = "f16" }, `precision "f16"`},
		"weights":   {func(j *orchestrate.TrainJob, _ *orchestrate.TrainSettings) { j.Weights = "none.pth" }, "none.pth"},
		"preset":    {func(j *orchestrate.TrainJob, _ *orchestrate.TrainSettings) { j.Preset = "digts" }, "did you mean digits"},
		"resume":    {func(j *orchestrate.TrainJob, _ *orchestrate.TrainSettings) { j.MustExist = true }, "holds no training"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newTrainWorld(t, "embedded:digits", nil)
			var ignored orchestrate.TrainSettings
			c.change(&w.job, &ignored)
			w.job.Settings = func(s *orchestrate.TrainSettings) error { j := w.job; c.change(&j, s); return nil }
			_, err := w.train("out")
			require.ErrorIs(t, err, usage.Err)
			require.ErrorContains(t, err, c.want)
			require.NotContains(t, err.Error(), "\n")
		})
	}
}

func TestOtherSettingsInTheFolder(t *testing.T) {
	w := newTrainWorld(t, "embedded:iris", func(s *orchestrate.TrainSettings) { s.Epochs = 2 })
	_, err := w.train("out")
	require.NoError(t, err)
	before := w.read("out/train.yaml")
	for name, c := range map[string]struct {
		change func(*orchestrate.TrainJob, *orchestrate.TrainSettings)
		want   string
	}{
		"epochs": {func(_ *orchestrate.TrainJob, s *orchestrate.TrainSettings) { s.Epochs = 3 }, "training.epochs is 2 there and 3 here"},
		"decay":  {func(_ *orchestrate.TrainJob, s *orchestrate.TrainSettings) { s.WeightDecay = .1 }, "training.weightDecay is 0.1 here and not set there"},
		"data":   {func(j *orchestrate.TrainJob, _ *orchestrate.TrainSettings) { j.Data.Limit = 60 }, "data.limit is 60 here"},
	} {
		t.Run(name, func(t *testing.T) {
			other := *w
			var ignored orchestrate.TrainSettings
			c.change(&other.job, &ignored)
			other.job.Settings = func(s *orchestrate.TrainSettings) error {
				s.Epochs = 2
				j := other.job
				c.change(&j, s)
				return nil
			}
			_, err := other.train("out")
			require.ErrorIs(t, err, usage.Err)
			require.ErrorContains(t, err, c.want)
			require.Equal(t, before, w.read("out/train.yaml"))
		})
	}
	require.NoError(t, os.Mkdir(w.path("study"), 0o777))
	require.NoError(t, os.WriteFile(w.path("study/plan.yaml"), nil, 0o666))
	_, err = w.train("study")
	require.ErrorIs(t, err, usage.Err)
	require.ErrorContains(t, err, "another study")
}

func TestSchedulesAreThoseOfPyTorch(t *testing.T) {
	text, err := os.ReadFile("testdata/schedules.json") // scripts/golden_schedules.py
	require.NoError(t, err)
	var golden struct {
		Cases []struct {
			Name     string
			PerEpoch int
			Settings orchestrate.TrainSettings
			Rates    []float64
			Losses   []*float64 // of the epochs; nil: not measured
		}
	}
	require.NoError(t, json.Unmarshal(text, &golden))
	require.Len(t, golden.Cases, 10)
	for _, c := range golden.Cases {
		s, err := orchestrate.DefaultTraining(false, "")
		require.NoError(t, err)
		s.Epochs, s.Schedule, s.Rate, s.Warmup = c.Settings.Epochs, c.Settings.Schedule, c.Settings.Rate, c.Settings.Warmup
		s.Milestones, s.StepEvery, s.Gamma, s.Patience = c.Settings.Milestones, c.Settings.StepEvery, c.Settings.Gamma, c.Settings.Patience
		require.NoError(t, s.Validate())
		var rates []float64
		history := make([]orchestrate.EpochResult, s.Epochs)
		for i := range history {
			if c.Losses != nil {
				history[i].ValidationLoss = c.Losses[i]
			}
			of, err := s.Rates(c.PerEpoch, history[:i])
			require.NoError(t, err)
			rates = append(rates, of...)
		}
		require.Len(t, rates, len(c.Rates))
		for i := range rates {
			require.InDelta(t, c.Rates[i], rates[i], 1e-12, "%s, step %d", c.Name, i)
		}
	}
}

func TestSplitStratified(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		classes := rapid.SliceOfN(rapid.IntRange(0, 4), 1, 200).Draw(t, "classes")
		fraction := rapid.Float64Range(0, 1).Draw(t, "fraction")
		seed := rapid.Uint64().Draw(t, "seed")
		rest, chosen := orchestrate.SplitStratified(classes, fraction, seed)
		all := slices.Concat(rest, chosen)
		slices.Sort(all)
		for i, k := range all {
			require.Equal(t, i, k)
		}
		require.Len(t, all, len(classes))
		require.True(t, slices.IsSorted(rest) && slices.IsSorted(chosen))
		count := map[int][2]int{}
		for _, c := range classes {
			n := count[c]
			n[0]++
			count[c] = n
		}
		for _, k := range chosen {
			n := count[classes[k]]
			n[1]++
			count[classes[k]] = n
		}
		for _, n := range count {
			require.InDelta(t, fraction*float64(n[0]), n[1], .5+1e-9)
		}
		_, again := orchestrate.SplitStratified(classes, fraction, seed)
		require.Equal(t, chosen, again)
	})
}

// Images come as [H,W,C] and leave as [C,H,W].
func TestImagesForTraining(t *testing.T) {
	w := newTrainWorld(t, "", func(s *orchestrate.TrainSettings) { s.Epochs, s.BatchSize = 1, 4 })
	w.make(12)
	w.job.Net, w.job.Data.Path, w.job.Validation = "softmax-image", w.path("data"), "none"
	_, err := w.train("out")
	require.NoError(t, err)
	w.image("a/bad.jpg", "BAD")
	_, err = w.train("other")
	require.ErrorIs(t, err, usage.Err)
	require.ErrorContains(t, err, "a/bad.jpg")
	require.ErrorContains(t, err, "not a JPEG")
}
