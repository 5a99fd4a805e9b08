//go:build cgo

package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/assay-xai/assay/orchestrate"
	"github.com/assay-xai/assay/weights"
)

// stoppedDevice stops the program after the first steps from a step on.
type stoppedDevice struct {
	orchestrate.TrainingBackend
	from int64
	stop context.CancelFunc
}

func (s stoppedDevice) OpenTrainer(ctx context.Context, spec orchestrate.TrainerSpec, state map[string]weights.Tensor) (orchestrate.Trainer, error) {
	t, err := s.TrainingBackend.OpenTrainer(ctx, spec, state)
	if err != nil {
		return nil, err
	}
	return stoppedTrainer{t, s}, nil
}

type stoppedTrainer struct {
	orchestrate.Trainer
	device stoppedDevice
}

func (t stoppedTrainer) Steps(ctx context.Context, indices []int32, batch int, rates []float64, first int64) (orchestrate.StepsResult, error) {
	r, err := t.Trainer.Steps(ctx, indices, batch, rates, first)
	if first >= t.device.from {
		t.device.stop()
	}
	return r, err
}

// canTrainGain says whether the library has the imputer.
func canTrainGain(t *testing.T) bool {
	t.Helper()
	b, err := openDevice("cpu", 1)
	require.NoError(t, err)
	defer b.Close()
	catalogue, err := b.Catalogue(t.Context())
	require.NoError(t, err)
	return slices.ContainsFunc(catalogue.Imputers, func(e orchestrate.Entry) bool { return e.ID == "gain" && e.Generator })
}

// Train, stop, go on, read: the real device.
func TestTrainImputerOnTheDevice(t *testing.T) {
	if !canTrainGain(t) {
		t.Skip("SKIP: the library that is built has no imputer gain yet: build it again")
	}
	t.Chdir(t.TempDir())
	run := func(ctx context.Context, open orchestrate.Opener, words string) (int, string, string) {
		var out, errs bytes.Buffer
		code := run(ctx, environment{stdout: &out, stderr: &errs, open: open}, strings.Fields(words))
		return code, out.String(), errs.String()
	}
	// An epoch has 4 steps: 58 of 64 examples in batches of 16.
	const words = "train --imputer gain --data embedded:digits --limit 64 --width 4 --epochs 2 --batch-size 16 --device cpu --threads 1 --out "
	code, out, errs := run(t.Context(), openDevice, words+"whole")
	require.Equal(t, 0, code, errs)
	require.Contains(t, out, "validation error (MSE) 0.")
	require.FileExists(t, "whole/report.html")

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	stopping := func(device string, threads int) (orchestrate.Backend, error) {
		b, err := openDevice(device, threads)
		if err != nil {
			return nil, err
		}
		return stoppedDevice{b.(orchestrate.TrainingBackend), 4, cancel}, nil
	}
	code, _, errs = run(ctx, stopping, words+"parts")
	require.Equal(t, exitInterrupted, code, errs)
	require.Contains(t, errs, "stopped in epoch 2 of 2")
	code, _, errs = run(t.Context(), openDevice, words+"parts --resume")
	require.Equal(t, 0, code, errs)
	require.NotContains(t, errs, "epoch 1/2")
	for _, name := range []string{orchestrate.BestFile, orchestrate.LastFile, orchestrate.TrainFile} {
		a, err := os.ReadFile("whole/" + name)
		require.NoError(t, err)
		b, err := os.ReadFile("parts/" + name)
		require.NoError(t, err)
		require.Equal(t, a, b, name)
	}

	sd, err := weights.Open("whole/best.safetensors")
	require.NoError(t, err)
	require.Equal(t, "gain", sd.Metadata["imputer"])
	require.Equal(t, "[1,8,8]", sd.Metadata["shape"])
	require.Equal(t, []int64{1, 8, 8}, sd.Tensors["mfv"].Shape)
	// The first convolutions are 7x7: of image, mask and noise, and of image and hint.
	require.Equal(t, []int64{4, 3, 7, 7}, sd.Tensors["generator.net.0.weight_orig"].Shape)
	require.Equal(t, []int64{4, 2, 7, 7}, sd.Tensors["discriminator.net.0.weight_orig"].Shape)

	cwd, err := os.Getwd()
	require.NoError(t, err)
	code, _, errs = run(t.Context(), openDevice, words+"further --weights whole/last.safetensors")
	require.Equal(t, 0, code, errs)
	code, _, errs = run(t.Context(), openDevice, strings.Replace(words, "--width 4", "--width 8", 1)+"wide --weights whole/last.safetensors")
	require.Equal(t, exitUsage, code, errs)
	require.Contains(t, errs, "width 8: "+filepath.Join(cwd, "whole/last.safetensors")+" is of width 4 (its metadata)")
	code, _, errs = run(t.Context(), openDevice, strings.Replace(words, "--width 4", "", 1)+"further --weights whole/last.safetensors")
	require.Equal(t, 0, code, "the width is the file's, so this is the training that is there: "+errs)

	require.NoError(t, os.Mkdir("broken", 0o777))
	require.NoError(t, os.WriteFile("broken/bad.png", []byte{'x'}, 0o666))
	code, _, errs = run(t.Context(), openDevice, "train --imputer gain --data broken --out none --device cpu --threads 1")
	require.Equal(t, exitUsage, code, errs)
	require.Contains(t, errs, "bad.png of broken: ")
	require.Contains(t, errs, "mend it or take it out; training leaves no image out by itself")
	require.NoDirExists(t, "none")
}
