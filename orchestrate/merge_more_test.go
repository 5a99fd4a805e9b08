package orchestrate_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/assay-xai/assay/internal/fake"
	"github.com/assay-xai/assay/internal/usage"
	"github.com/assay-xai/assay/orchestrate"
)

// A merge that has no room, or is stopped, leaves nothing.
func TestMergeOnAFullDisk(t *testing.T) {
	w := newWorld(t, 40)
	disk := mkdir(t, w.path("disk"))
	if err := unix.Mount("tmpfs", disk, "tmpfs", 0, "size=8k"); err != nil {
		t.Skip("SKIP: a small file system needs the right to mount:", err)
	}
	t.Cleanup(func() { unix.Unmount(disk, unix.MNT_DETACH) })
	p := w.plan("explain", "{method: [weights, random]}")
	_, err := w.run(p, "whole")
	require.NoError(t, err)
	folders := w.shards(p, 2)
	full := 0
	for _, size := range []string{"8k", "32k", "64k", "100k", "16m"} {
		require.NoError(t, unix.Mount("tmpfs", disk, "tmpfs", unix.MS_REMOUNT, "size="+size))
		_, err := w.merge("disk/merged", folders...)
		w.closed()
		if err == nil {
			break
		}
		full++
		require.ErrorIs(t, err, unix.ENOSPC, size)
		left, err := os.ReadDir(disk)
		require.NoError(t, err)
		require.Empty(t, left, size)
	}
	require.Positive(t, full)
	w.requireSameRun("whole", "disk/merged")
}

func TestStoppedMerge(t *testing.T) {
	w := newWorld(t, 12)
	folders := w.shards(w.plan("eval", "{}"), 3)
	for stop := range 13 {
		ctx, cancel := context.WithCancelCause(t.Context())
		_, err := orchestrate.Merge(ctx, orchestrate.MergeJob{Out: w.path("merged"), Shards: folders, Open: w.backend.Opener(), Progress: func(e orchestrate.Event) {
			if e.Stage == orchestrate.StageMerge && e.Done >= stop {
				cancel(errors.New("stopped by the test"))
			}
		}})
		cancel(nil)
		if stop < 12 { // the last record is the last place where it looks
			require.ErrorIs(t, err, context.Canceled)
			require.NoDirExists(t, w.path("merged"))
		}
		require.NoDirExists(t, w.path(".merged.merging"))
		w.closed()
	}
}

// Several data entries, several nets and given maps are divided as one.
func TestShardsOfSeveralDataEntriesAndGivenMaps(t *testing.T) {
	w := newWorld(t, 5)
	_, err := w.run(w.plan("explain", "{method: [weights, random]}"), "maps")
	require.NoError(t, err)
	given := w.plan("score", subst("{attributions: [DIR/maps/maps/weights, DIR/maps/maps/random], metric: [sparseness, 'deletion(step=16)']}", w.dir))
	_, err = w.run(given, "given")
	require.NoError(t, err)
	_, err = w.merge("given-merged", w.shards(given, 2)...)
	require.NoError(t, err)
	w.requireSameRun("given", "given-merged")

	require.NoError(t, os.Rename(w.path("data"), w.path("first")))
	for _, name := range []string{"a/x.jpg", "b/y.jpg"} {
		w.image(name, "another "+name)
	}
	require.NoError(t, os.Rename(w.path("data"), w.path("second")))
	p := w.threeNets("trace", "{edge: 4, iterations: 10}")
	p.Data = []orchestrate.DataPlan{{Path: w.path("first")}, {Path: w.path("second")}}
	p.Seeds = []uint64{1, 2}
	_, err = w.run(p, "whole")
	require.NoError(t, err)
	for _, folder := range []string{"shard-1-of-2", "shard-2-of-2"} {
		require.NoError(t, os.RemoveAll(w.path(folder)))
	}
	for _, of := range []int{1, 2, 6, 7} {
		folders := w.shards(p, of)
		_, err = w.merge("merged", folders...)
		require.NoError(t, err)
		w.requireSameRun("whole", "merged")
		require.NoError(t, os.RemoveAll(w.path("merged")))
	}
}

// A shard does not go on with what was absent when it began, and shards that differ in
// that are of different plans.
func TestShardsOfOptionalPlans(t *testing.T) {
	w := newWorld(t, 3)
	p := w.parse(optionalPlan)
	folders := w.shards(p, 2)
	_, err := w.merge("merged", folders...)
	require.NoError(t, err)
	_, err = w.run(p, "whole")
	require.NoError(t, err)
	w.requireSameRun("whole", "merged")

	require.NoError(t, fake.Weights(w.path("later.safetensors"), 10))
	_, err = w.run(shardOf(p, 1, 2), "shard-1-of-2")
	require.ErrorIs(t, err, usage.Err)
	require.ErrorContains(t, err, "nets[1].net is tiny-wide here and not set there")
	_, err = w.merge("again", folders...)
	require.ErrorIs(t, err, usage.Err)
	require.ErrorContains(t, err, "the plan is not what it was for the shards: nets[1].net is tiny-wide now")
	_, err = w.run(shardOf(p, 2, 2), "later")
	require.NoError(t, err)
	_, err = w.merge("again", folders[0], w.path("later"))
	require.ErrorIs(t, err, usage.Err)
	require.ErrorContains(t, err, "shards of different plans: nets[1].net is tiny-wide in "+w.path("later"))
}

// Data that has changed since is not merged with.
func TestMergeAfterTheDataChanged(t *testing.T) {
	w := newWorld(t, 4)
	folders := w.shards(w.plan("eval", "{}"), 2)
	w.image("a/0000.jpg", "changed")
	_, err := w.merge("merged", folders...)
	require.ErrorIs(t, err, usage.Err)
	require.ErrorContains(t, err, "is not what the plan was made with")
	w.closed()
}

// The whole run says where it was run: once, and what is particular about a shard.
func TestMergedEnvironments(t *testing.T) {
	w := newWorld(t, 4)
	folders := w.shards(w.plan("eval", "{}"), 2)
	path := filepath.Join(folders[1], orchestrate.EnvFile)
	require.NoError(t, os.WriteFile(path, []byte(`{"runtime": {"torch": "fake", "device": "cpu", "threads": 8, "memoryFree": 7}}`), 0o666))
	_, err := w.merge("merged", folders...)
	require.NoError(t, err)
	var env map[string]any
	require.NoError(t, json.Unmarshal([]byte(w.read("merged/env.json")), &env))
	require.Equal(t, map[string]any{"torch": "fake", "device": "cpu", "threads": 1.}, env["runtime"])
	require.Equal(t, map[string]any{"2/2": map[string]any{"runtime": map[string]any{"threads": 8.}}}, env["shards"])
}
