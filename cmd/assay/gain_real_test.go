//go:build cgo

package main

import (
	"bytes"
	"context"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/assay-xai/assay/internal/record"
	"github.com/assay-xai/assay/weights"
)

// An imputer that was trained takes part in removal and in searches, the same whatever
// became of the run: stopped and gone on with, in shards.
func TestTrainedImputerInStudies(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv("XDG_CACHE_HOME", "cache")
	assay := func(words string) {
		t.Helper()
		var out, errs bytes.Buffer
		code := run(context.Background(), environment{stdout: &out, stderr: &errs, open: openDevice}, strings.Fields(words+" --device cpu --threads 1"))
		require.Equal(t, 0, code, errs.String())
	}
	records := func(out string) map[string]record.Record {
		t.Helper()
		found := map[string]record.Record{}
		require.NoError(t, record.Scan(out+"/"+record.FileName, func(r record.Record) error {
			require.Empty(t, r.Error)
			require.NotContains(t, found, r.ID)
			r.Cost = record.Cost{}
			found[r.ID] = r
			return nil
		}))
		return found
	}
	assay("train --imputer gain --data embedded:digits --limit 64 --width 4 --epochs 1 --batch-size 16 --augment none --out gain")

	const road = "road --net cnn3 --data embedded:digits --limit 6 --methods gradient,random --imputers gain,noisy-linear --orders morf,lerf --fractions .3,.9,1 " +
		"--batch 8 --generator gain/best.safetensors"
	assay(road + " --out whole")
	whole := records("whole")
	require.Len(t, whole, 6*2*2*2)
	by := map[string][]float64{} // probabilities in one order
	for _, r := range whole {
		key := r.Image + r.Method + r.Road.Order
		if other := by[key]; other != nil {
			require.NotEqual(t, other, r.Road.Probabilities, key)
		}
		by[key] = r.Road.Probabilities
		if r.Road.Imputer == "gain" {
			require.Empty(t, r.Road.Iterations, "nothing is solved")
		}
	}

	require.NoError(t, os.Mkdir("part", 0o777))
	text, err := os.ReadFile("whole/" + record.FileName)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile("part/"+record.FileName, []byte(strings.Join(strings.SplitAfter(string(text), "\n")[:11], "")), 0o666))
	plan, err := os.ReadFile("whole/plan.yaml")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile("part/plan.yaml", plan, 0o666))
	assay("run part/plan.yaml --out part")
	require.Equal(t, whole, records("part"))

	assay(road + " --shard 1/2 --out shard-1")
	assay(road + " --shard 2/2 --out shard-2")
	var out, errs bytes.Buffer
	require.Equal(t, 0, run(context.Background(), environment{stdout: &out, stderr: &errs, open: openDevice}, strings.Fields("merge shard-1 shard-2 --out merged")), errs.String())
	require.Equal(t, whole, records("merged"))

	// What lacks a part is refused before anything runs.
	sd, err := weights.Open("gain/best.safetensors")
	require.NoError(t, err)
	delete(sd.Tensors, "generator.net.1.weight")
	require.NoError(t, weights.WriteSafetensors("lacking.safetensors", sd.Tensors, nil))
	errs.Reset()
	words := strings.Replace(road, "gain/best", "lacking", 1) + " --device cpu --threads 1 --out no"
	require.Equal(t, exitUsage, run(context.Background(), environment{stdout: &out, stderr: &errs, open: openDevice}, strings.Fields(words)))
	require.Contains(t, errs.String(), "generator.net.1.weight is missing")
	require.NoDirExists(t, "no")

	// A search plays with it, and the order that it found is scored alike when it is
	// played again.
	const search = "trace --net cnn3 --data embedded:digits --limit 2 --edge 4 --reference gain --batch 8 --generator gain/best.safetensors"
	assay(search + " --iterations 20 --out search")
	assay(search + " --solver order --map search --out again")
	found := map[string]record.Record{}
	for _, r := range records("search") {
		found[r.Image] = r
	}
	require.Len(t, found, 2)
	for _, r := range records("again") {
		require.Equal(t, found[r.Image].Trace.Trajectory, r.Trace.Trajectory)
		require.Equal(t, found[r.Image].Trace.Curves, r.Trace.Curves)
	}
}
