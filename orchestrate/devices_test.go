package orchestrate_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/assay-xai/assay/internal/fake"
	"github.com/assay-xai/assay/internal/usage"
	"github.com/assay-xai/assay/orchestrate"
)

// machine opens a fake of its own for every device.
func machine(gpus map[string]*fake.Backend) orchestrate.Opener {
	return func(name string, threads int) (orchestrate.Backend, error) {
		if gpus[name] == nil {
			return nil, usage.Errorf("device %q: not here", name)
		}
		return gpus[name].Opener()(name, threads)
	}
}

func (w *world) runOn(device, out string, gpus map[string]*fake.Backend) (orchestrate.Outcome, error) {
	p := w.plan("trace", searchGrid)
	p.Device = device
	return orchestrate.Run(w.t.Context(), orchestrate.Job{Plan: p, Out: w.path(out), Open: machine(gpus)})
}

func TestSeveralDevicesShareTheUnits(t *testing.T) {
	w := newWorld(t, 8)
	one := map[string]*fake.Backend{"cuda:0": {}}
	_, err := w.runOn("cuda:0", "one", one)
	require.NoError(t, err)
	two := map[string]*fake.Backend{"cuda:0": {}, "cuda:1": {}}
	_, err = w.runOn("cuda:0, cuda:1", "two", two)
	require.NoError(t, err)
	require.Equal(t, w.records("one"), w.records("two"))
	for name, b := range two {
		require.NotZero(t, b.Calls(), name)
		require.Less(t, b.Calls(), one["cuda:0"].Calls(), name)
		require.Zero(t, b.OpenNets.Load()+b.OpenImages.Load()+b.OpenScenes.Load()+b.Opened.Load(), name)
	}
	require.Contains(t, w.read("two/plan.yaml"), "device: cuda:0,cuda:1")
	// A run may go on with another number of devices.
	again, err := w.runOn("cuda:1", "two", two)
	require.NoError(t, err)
	require.Equal(t, again.Units, again.Before)
}

func TestOneOfSeveralDevicesRunsOutOfMemory(t *testing.T) {
	w := newWorld(t, 8)
	gpus := map[string]*fake.Backend{"cuda:0": {}, "cuda:1": {Memory: 2}}
	_, err := w.runOn("cuda:0,cuda:1", "out", gpus)
	require.NoError(t, err)
	require.Contains(t, w.read("out/results.jsonl"), "out of memory on cuda:1 at batch 4: run at batch 2")
}

func TestOneOfSeveralDevicesFails(t *testing.T) {
	w := newWorld(t, 8)
	broken := errors.New("fell off the bus")
	gpus := map[string]*fake.Backend{"cuda:0": {}, "cuda:1": {Fail: func(call int64) error {
		if call > 5 {
			return broken
		}
		return nil
	}}}
	_, err := w.runOn("cuda:0,cuda:1", "out", gpus)
	require.ErrorIs(t, err, broken)
	gpus["cuda:1"].Fail = nil
	_, err = w.runOn("cuda:0,cuda:1", "out", gpus)
	require.NoError(t, err)
	_, err = w.runOn("cuda:0", "undisturbed", gpus)
	require.NoError(t, err)
	require.Equal(t, w.records("undisturbed"), w.records("out"))
}

func TestDevicesThatCannotBe(t *testing.T) {
	w := newWorld(t, 2)
	gpus := map[string]*fake.Backend{"cuda:0": {}, "cuda:1": {}, "cpu": {}}
	for devices, want := range map[string]string{
		"cuda:0,cuda:0": "cuda:0 is there twice",
		"cuda:0,cpu":    "want devices of one kind",
		"cuda:0,cuda:7": `device "cuda:7": not here`,
	} {
		_, err := w.runOn(devices, "out", gpus)
		require.ErrorIs(t, err, usage.Err, devices)
		require.ErrorContains(t, err, want)
	}
	for name, b := range gpus {
		require.Zero(t, b.Opened.Load(), name)
	}
}
