package main

import (
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/assay-xai/assay/orchestrate"
)

const trainGain = "train --imputer gain --data embedded:digits --limit 200 --width 2 --epochs 3 --rate .01 --threads 1"

const trainDigits = "train --net softmax --data embedded:digits --validation test --epochs 4 --rate .01 --threads 1"

func TestTrainThenEval(t *testing.T) {
	s := newShop(t, 0)
	code, out, errs := s.assay(trainDigits + " --out run")
	require.Equal(t, 0, code, errs)
	require.Equal(t, 1, strings.Count(out, "\n"), out)
	require.Contains(t, out, "softmax: 4 epochs")
	require.Contains(t, out, "run/best.safetensors")
	require.Contains(t, errs, "epoch 1/4: loss")
	require.Contains(t, errs, "epoch 4/4: loss")

	code, out, errs = s.assay(trainDigits + " --out run --json --resume")
	require.Equal(t, 0, code, errs)
	var got trained
	require.NoError(t, json.Unmarshal([]byte(out), &got))
	require.Equal(t, 4, got.Epochs)
	require.Greater(t, *got.Best.ValidationAccuracy, .9)
	for l := range strings.Lines(errs) {
		require.True(t, json.Valid([]byte(l)), "progress as JSON: %s", l)
	}

	code, out, errs = s.assay("eval --net softmax --data embedded:digits --split test --weights run/best.safetensors --batch 16 --json --quiet")
	require.Equal(t, 0, code, errs)
	var seen accuracy
	require.NoError(t, json.Unmarshal([]byte(out), &seen))
	require.InDelta(t, *got.Best.ValidationAccuracy, *seen.Top1, 1e-12)

	code, _, errs = s.assay(trainDigits + " --out run --momentum 0.5 --optimizer sgd")
	require.Equal(t, 2, code)
	require.Contains(t, errs, "holds another training")
}

func TestTrainFlagsReachTheSettings(t *testing.T) {
	s := newShop(t, 0)
	code, _, errs := s.args(context.Background(), strings.Fields("train --net softmax-image --data embedded:digits --epochs 3 --batch-size 50 --optimizer sgd --rate 0.1 --momentum 0.8 "+
		"--nesterov=false --weight-decay 0.001 --label-smoothing 0.1 --schedule step --milestones 1,2 --gamma 0.5 --warmup 1 --augment crop(1),flip "+
		"--early-stopping 5 --best-by loss --seed 9 --validation 0.25 --evaluate-every 2 --save-every 3 --limit 300 --threads 1 --out run --quiet")...)
	require.Equal(t, 0, code, errs)
	text, err := os.ReadFile("run/train.yaml")
	require.NoError(t, err)
	for _, line := range []string{"net: softmax-image", "classes: 10", "epochs: 3", "batchSize: 50", "optimizer: sgd", "rate: 0.1", "momentum: 0.8",
		"weightDecay: 0.001", "labelSmoothing: 0.1", "schedule: step", "warmup: 1", "gamma: 0.5", "augment: crop(1),flip", "earlyStopping: 5",
		"bestBy: loss", "evaluateEvery: 2", "saveEvery: 3", "seed: 9", "fraction: 0.25", "limit: 300", "split: train"} {
		require.Contains(t, string(text), line)
	}
	require.NotContains(t, string(text), "nesterov")
	code, _, errs = s.assay("train --net softmax --data embedded:iris --optimizer adam --betas .8,.9 --epsilon 1e-6 --epochs 1 --out adam --quiet")
	require.Equal(t, 0, code, errs)
	text, err = os.ReadFile("adam/train.yaml")
	require.NoError(t, err)
	require.Contains(t, string(text), "epsilon: 1e-06")
	require.Contains(t, string(text), "- 0.8")
	require.Contains(t, string(text), "id: table")
}

func TestTrainImputer(t *testing.T) {
	s := newShop(t, 0)
	code, out, errs := s.assay(trainGain + " --alpha 50 --hint-rate .1 --maximum-rate .4 --patience 1 --gamma .3 --augment crop(1) --out run")
	require.Equal(t, 0, code, errs)
	require.Equal(t, 1, strings.Count(out, "\n"), out)
	require.Regexp(t, `^gain: 3 epochs in [0-9.]+ s; validation error \(MSE\) 0\.\d+ at epoch 3; the mean image alone: about 0\.\d+; discriminator right about [0-9.]+ % of pixels \(80.00 % are known on average\); weights: run/best.safetensors`, out)
	require.Regexp(t, `epoch 1/3: generator's loss 0\.\d+, discriminator right about [0-9.]+ % of pixels; validation error \(MSE\) 0\.\d+; the mean image alone: about 0\.\d+; discriminator right about [0-9.]+ % \(80 % are known\); rate 0.01`, errs)
	text, err := os.ReadFile("run/train.yaml")
	require.NoError(t, err)
	for _, line := range []string{"id: gain", "alpha: 50", "hintRate: 0.1", "maximumRate: 0.4", "width: 2", "patience: 1", "gamma: 0.3", "augment: crop(1)", "schedule: plateau", "bestBy: loss", "fraction: 0.1"} {
		require.Contains(t, string(text), line)
	}
	page, err := os.ReadFile("run/report.html")
	require.NoError(t, err)
	require.Contains(t, string(page), "Training gain")

	code, out, errs = s.assay(trainGain + " --alpha 50 --hint-rate .1 --maximum-rate .4 --patience 1 --gamma .3 --augment crop(1) --out run --json --resume")
	require.Equal(t, 0, code, errs)
	var got struct {
		Imputer                    string
		Shape                      []int
		Epochs                     int
		Best                       map[string]float64
		MeanImageError, KnownShare float64
		StoppedEarly               *bool
		Weights                    map[string]string
	}
	require.NoError(t, json.Unmarshal([]byte(out), &got))
	require.Equal(t, "gain", got.Imputer)
	require.Equal(t, []int{1, 8, 8}, got.Shape)
	require.Equal(t, 3, got.Epochs)
	require.Equal(t, 3., got.Best["epoch"])
	for _, name := range []string{"generatorLoss", "discriminatorAccuracy", "validationError", "validationDiscriminatorAccuracy"} {
		require.Contains(t, got.Best, name)
	}
	require.Equal(t, .8, got.KnownShare)
	require.Greater(t, got.MeanImageError, .005)
	require.Less(t, got.MeanImageError, .05)
	require.False(t, *got.StoppedEarly)
	require.Equal(t, "run/last.safetensors", got.Weights["last"])
	require.NotContains(t, out, `"net"`)

	code, out, errs = s.assay(trainGain + " --validation none")
	require.Equal(t, 0, code, errs)
	require.Contains(t, errs, "no validation part: the rate stays as it is (schedule constant, not plateau)\n")
	require.Less(t, strings.Index(errs, "nothing is kept without --out FOLDER\n"), strings.Index(errs, "epoch 1/3"))
	require.Regexp(t, `\nnothing is kept without --out FOLDER\n$`, errs)
	require.Regexp(t, `; generator's loss [0-9.]+, discriminator right about [0-9.]+ % of training pixels \(75.00 % are known on average\), no validation\n`, out)
}

func TestBadTrainFlags(t *testing.T) {
	s := newShop(t, 2)
	for words, want := range map[string]string{
		"train":                "no net",
		"train --net softmax":  "no data",
		"train --imputer gain": "no data",
		"train --imputer gian --data embedded:digits":                  "did you mean gain?",
		trainDigits + " --imputer gain":                                "--net softmax and --imputer gain: one training trains one of them",
		trainDigits + " --alpha 3":                                     "--alpha: belongs to imputers (--imputer), not to nets",
		trainDigits + " --patience 3":                                  "patience belongs to schedule plateau, not to constant",
		trainGain + " --classes 3":                                     "--classes: imputers know of no classes",
		trainGain + " --width a":                                       `--width "a": want a whole number`,
		trainGain + " --alpha a":                                       `--alpha "a": want a number`,
		trainGain + " --maximum-rate 2":                                "maximum-rate 2: want a part of the pixels",
		trainGain + " --validation none --schedule plateau":            "schedule plateau: wants a validation part",
		trainGain + " --best-by accuracy":                              "want loss",
		"train --imputer gain --data embedded:iris":                    "imputers are trained on images",
		trainDigits + " --epochs x":                                    `--epochs "x": want a whole number`,
		trainDigits + " --rate 0":                                      "rate 0: want more than 0",
		trainDigits + " --optimizer sdg":                               "did you mean sgd?",
		trainDigits + " --milestones a":                                "want epochs",
		trainDigits + " --betas .9":                                    "want two numbers",
		trainDigits + " --resume":                                      "which run?",
		trainDigits + " --resume --out none":                           "holds no training",
		trainDigits + " --epoch 3":                                     "did you mean --epochs",
		trainDigits + " --classes 1":                                   `--classes "1": want a whole number from 2`,
		trainDigits + " --device cuda:0,cuda:1":                        "trained on one device",
		trainDigits + " more":                                          "takes flags only",
		"train --net softmax-image --data data --preset none":          `preset "none"`,
		"train --net softmax-image --data embedded:photos --out other": "no labels",
	} {
		t.Run(words, func(t *testing.T) {
			code, out, errs := s.assay(words)
			require.Equal(t, 2, code, errs)
			require.Empty(t, out)
			require.Contains(t, errs, want)
			require.Equal(t, 1, strings.Count(errs, "\n"), errs)
		})
	}
	code, out, errs := s.assay(trainDigits + " --optimizer sgd --rate 1e30 --out run")
	require.Equal(t, 1, code)
	require.Empty(t, out)
	require.Contains(t, errs, "assay: training diverged in epoch 1")
}

func TestStoppedTrainingGoesOn(t *testing.T) {
	s := newShop(t, 0)
	ctx, cancel := context.WithCancel(context.Background())
	s.backend.FailStep = func(step int64) error {
		if step == 2*45+10 { // an epoch has 45
			cancel()
		}
		return nil
	}
	words := strings.Fields(trainDigits + " --out run")
	code, out, errs := s.args(ctx, words...)
	require.Equal(t, 130, code, errs)
	require.Empty(t, out)
	require.Contains(t, errs, "the same command goes on from here (stopped in epoch 3 of 4")
	s.backend.FailStep = nil
	code, _, errs = s.args(context.Background(), words...)
	require.Equal(t, 0, code, errs)
	require.NotContains(t, errs, "epoch 1/4")
	code, _, errs = s.assay(trainDigits + " --out whole")
	require.Equal(t, 0, code, errs)
	for _, name := range []string{orchestrate.BestFile, orchestrate.LastFile} {
		a, err := os.ReadFile("run/" + name)
		require.NoError(t, err)
		b, err := os.ReadFile("whole/" + name)
		require.NoError(t, err)
		require.Equal(t, b, a)
	}
}
