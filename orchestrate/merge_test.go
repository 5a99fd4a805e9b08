package orchestrate_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/assay-xai/assay/dataset"
	"github.com/assay-xai/assay/internal/fake"
	"github.com/assay-xai/assay/internal/record"
	"github.com/assay-xai/assay/internal/usage"
	"github.com/assay-xai/assay/orchestrate"
)

func TestMergeRefusesWhatIsNotAllShardsOfOnePlan(t *testing.T) {
	w := newWorld(t, 6)
	p := w.plan("eval", "{}")
	folders := w.shards(p, 3)
	_, err := w.run(p, "whole")
	require.NoError(t, err)
	change := func(name string, shard, of int, how func(p *orchestrate.Plan)) string {
		other := shardOf(p, shard, of)
		how(other)
		_, err := w.run(other, name)
		require.NoError(t, err)
		return w.path(name)
	}
	again := change("again", 2, 3, func(*orchestrate.Plan) {})
	batch := change("batch", 2, 3, func(p *orchestrate.Plan) { p.Batch = 8 })
	fewer := change("fewer", 2, 3, func(p *orchestrate.Plan) { p.Data = []orchestrate.DataPlan{{Path: p.Data[0].Path, Limit: 5}} })
	scored := change("scored", 2, 3, func(p *orchestrate.Plan) {
		p.Study, p.Grid = "score", map[string]any{"method": "weights", "metric": "sparseness"}
	})
	half := change("half", 1, 2, func(*orchestrate.Plan) {})
	require.NoError(t, os.Symlink(folders[1], w.path("link")))
	unfinished := func(name string, spoil func(dir string)) string {
		change(name, 2, 3, func(*orchestrate.Plan) {})
		spoil(w.path(name))
		return w.path(name)
	}
	edit := func(change func(text string) string) func(dir string) {
		return func(dir string) {
			path := filepath.Join(dir, record.FileName)
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(path, []byte(change(string(text))), 0o666))
		}
	}
	strangers := w.read("shard-1-of-3/results.jsonl")
	short := unfinished("short", edit(func(text string) string { return text[:strings.Index(text, "\n")+20] }))
	noEnd := unfinished("no-end", func(dir string) { require.NoError(t, os.Remove(filepath.Join(dir, orchestrate.SummaryJSONFile))) })
	foreign := unfinished("foreign", edit(func(text string) string { return text + "{\"id\":\"ffff\",\"image\":\"x\"}\n" }))
	mixed := unfinished("mixed", edit(func(text string) string { return text + strangers }))
	damaged := unfinished("damaged", edit(func(text string) string { return "{\n" + text }))
	for name, c := range map[string]struct {
		folders []string
		want    string
	}{
		"nothing":         {nil, "no shards"},
		"one missing":     {folders[:2], "of the 3 shards are missing: 3/3"},
		"two missing":     {folders[1:2], "missing: 1/3, 3/3"},
		"given twice":     {[]string{folders[0], folders[1], folders[1] + "/.", folders[2]}, "are one folder"},
		"a link to it":    {[]string{folders[0], folders[1], w.path("link"), folders[2]}, "are one folder"},
		"two of one":      {[]string{folders[0], folders[1], again, folders[2]}, "are both shard 2 of 3"},
		"another batch":   {[]string{folders[0], batch, folders[2]}, "shards of different plans: batch is 4 in " + folders[0] + " and 8 in " + batch},
		"other data":      {[]string{folders[0], fewer, folders[2]}, "data[0].limit is 0 in"},
		"another study":   {[]string{folders[0], scored, folders[2]}, "study is eval in"},
		"another number":  {[]string{folders[0], half}, "is shard 1 of 2: want the shards of one run"},
		"a whole run":     {[]string{folders[0], w.path("whole")}, "holds a whole run"},
		"no run":          {[]string{folders[0], w.path("data")}, "holds no run"},
		"no folder":       {[]string{folders[0], w.path("none")}, "no such file or directory"},
		"unfinished":      {[]string{folders[0], short, folders[2]}, "not finished: shard 2 of 3 (" + short + "): 1 of 2 units have no record"},
		"not ended":       {[]string{folders[0], noEnd, folders[2]}, "not finished: shard 2 of 3 (" + noEnd + "): 0 of 2"},
		"a strange unit":  {[]string{folders[0], foreign, folders[2]}, "record ffff of image x is of no unit of the plan"},
		"another's units": {[]string{folders[0], mixed, folders[2]}, "is of shard 1, not 2"},
		"damaged":         {[]string{folders[0], damaged, folders[2]}, "damaged/results.jsonl:1: not a record"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := w.merge("merged", c.folders...)
			require.ErrorContains(t, err, c.want)
			if name != "damaged" {
				require.ErrorIs(t, err, usage.Err)
			}
			require.NoDirExists(t, w.path("merged"))
			require.NoDirExists(t, w.path(".merged.merging"))
			w.closed()
		})
	}
	_, err = w.merge("", folders...)
	require.ErrorIs(t, err, usage.Err)
	_, err = w.merge("merged", folders...)
	require.NoError(t, err)
}

func TestMergeLeavesOtherFoldersAlone(t *testing.T) {
	w := newWorld(t, 5)
	p := w.plan("eval", "{}")
	folders := w.shards(p, 2)
	mkdir(t, w.path("taken"))
	require.NoError(t, os.WriteFile(w.path("taken/notes.txt"), nil, 0o666))
	other := w.plan("eval", "{}")
	other.Data[0].Limit = 3
	_, err := w.run(other, "other")
	require.NoError(t, err)
	_, err = orchestrate.Run(t.Context(), orchestrate.Job{Plan: p, Out: w.path("resolved"), Open: w.backend.Opener(), ResolveOnly: true})
	require.NoError(t, err)
	for out, want := range map[string]string{"taken": "not this merge", "other": "not this merge", "resolved": "not this merge",
		"shard-1-of-2": "not this merge", "data/merged": "lies in the data folder"} {
		before := w.tree(".")
		_, err := w.merge(out, folders...)
		require.ErrorIs(t, err, usage.Err, out)
		require.ErrorContains(t, err, want, out)
		require.Equal(t, before, w.tree("."), out)
	}
	mkdir(t, w.path("empty"))
	_, err = w.merge("empty", folders...)
	require.NoError(t, err)
	_, err = w.run(p, "whole")
	require.NoError(t, err)
	w.requireSameRun("whole", "empty")
}

// A shard that is still running is waited for, by the user.
func TestMergeOfARunningShard(t *testing.T) {
	w := newWorld(t, 4)
	folders := w.shards(w.plan("eval", "{}"), 2)
	running, err := record.Open(filepath.Join(folders[1], record.FileName), nil)
	require.NoError(t, err)
	_, err = w.merge("merged", folders...)
	require.ErrorIs(t, err, record.ErrLocked)
	require.ErrorIs(t, err, usage.Err)
	require.NoError(t, running.Close())
	mkdir(t, w.path(".merged.merging"))
	merging, err := record.Lock(w.path(".merged.merging/.lock"))
	require.NoError(t, err)
	_, err = w.merge("merged", folders...)
	require.ErrorIs(t, err, record.ErrLocked)
	require.NoError(t, merging.Close())
	_, err = w.merge("merged", folders...)
	require.NoError(t, err)
	require.NoDirExists(t, w.path(".merged.merging"))
}

// Files of maps have a thousand images, whichever shard made them.
func TestMergedMapsSpanShards(t *testing.T) {
	w := newWorld(t, 1030)
	p := w.plan("explain", "{method: random, reduce: sum}")
	p.Maps.Formats = []string{"npy"}
	p.Batch = 256
	_, err := w.run(p, "whole")
	require.NoError(t, err)
	folders := w.shards(p, 3)
	_, err = w.merge("merged", folders...)
	require.NoError(t, err)
	w.requireSameRun("whole", "merged")
	files := w.tree("merged/maps/random")
	require.Contains(t, files, "0001.npz")
	require.Contains(t, files, "0001.npy")
	maps, err := dataset.OpenMaps(t.Context(), w.path("merged/maps/random"))
	require.NoError(t, err)
	require.Len(t, maps.IDs(), 1030)
	require.NoError(t, maps.Close())
}

// A map that a record speaks of and that is gone ends the merge.
func TestMergeWithoutAMap(t *testing.T) {
	w := newWorld(t, 4)
	folders := w.shards(w.plan("explain", "{method: random}"), 2)
	require.NoError(t, os.Remove(filepath.Join(folders[1], "maps/random/0000.npz")))
	_, err := w.merge("merged", folders...)
	require.ErrorContains(t, err, "maps/random/0000.npz")
	require.NoDirExists(t, w.path("merged"))
	require.NoDirExists(t, w.path(".merged.merging"))
}

// Where shards were run by a GPU, the machine that merges need not have one.
func TestMergeWithoutTheDevice(t *testing.T) {
	w := newWorld(t, 4)
	p := w.plan("eval", "{}")
	p.Device = "cuda:1"
	_, err := w.run(p, "whole")
	require.NoError(t, err)
	folders := w.shards(p, 2)
	_, err = orchestrate.Merge(t.Context(), orchestrate.MergeJob{Out: w.path("merged"), Shards: folders, Open: func(device string, threads int) (orchestrate.Backend, error) {
		require.Equal(t, "cpu", device)
		return w.backend.Opener()(device, threads)
	}})
	require.NoError(t, err)
	w.requireSameRun("whole", "merged")
	w.closed()
}

// Nets that a plan trains are trained by every shard, or where it is resolved.
func TestMergeOfPlansThatTrain(t *testing.T) {
	w := newWorld(t, 0)
	p := w.trainedPlan()
	_, err := w.run(p, "whole")
	require.NoError(t, err)
	folders := w.shards(p, 2)
	_, err = w.merge("merged", folders...)
	require.NoError(t, err)
	merged := w.tree("merged")
	require.Contains(t, merged, "train/mine/best.safetensors")
	require.Contains(t, merged["plan.yaml"], w.path("merged/train/mine/best.safetensors"))
	require.Equal(t, w.read("whole/summary.csv"), merged["summary.csv"])
	_, err = w.run(p, "merged")
	require.NoError(t, err)

	_, err = orchestrate.Run(t.Context(), orchestrate.Job{Plan: p, Out: w.path("plan"), Open: w.backend.Opener(), ResolveOnly: true})
	require.NoError(t, err)
	resolved, err := orchestrate.LoadPlan(w.path("plan/plan.yaml"))
	require.NoError(t, err)
	for _, folder := range folders {
		require.NoError(t, os.RemoveAll(folder))
	}
	folders = w.shards(resolved, 2)
	require.NoDirExists(t, folders[0]+"/train")
	_, err = w.merge("again", folders...)
	require.NoError(t, err)
	require.Equal(t, w.read("whole/summary.csv"), w.read("again/summary.csv"))
}

// trainedPlan trains a net on a table and asks what it sees.
func (w *world) trainedPlan() *orchestrate.Plan {
	var table strings.Builder
	table.WriteString("a,b,class\n")
	for i := range 40 {
		fmt.Fprintf(&table, "%d,%d,%d\n", i%7-3, i%5-2, i%2)
	}
	require.NoError(w.t, os.WriteFile(w.path("t.csv"), []byte(table.String()), 0o666))
	p, err := orchestrate.ParsePlan("plan.yaml", []byte(subst("version: 1\nstudy: eval\n"+
		"train: [{name: mine, net: softmax, data: {path: DIR/t.csv}, settings: {epochs: 2}}]\n"+
		"nets: [{net: softmax, weights: 'train:mine'}]\ndata: [{path: DIR/t.csv}]\nbatch: 8\nthreads: 1\ndevice: cpu\n", w.dir)))
	require.NoError(w.t, err)
	return p
}

// mergeChildVariable makes the test binary merge the shards in the folder it names,
// and be killed at the step that follows.
const mergeChildVariable = "ASSAY_TEST_MERGE_CHILD"

func mergeChild(dir string) {
	_, err := orchestrate.Merge(background, orchestrate.MergeJob{Out: dir + "/merged", Shards: []string{dir + "/shard-1-of-2", dir + "/shard-2-of-2"},
		Open: (&fake.Backend{}).Opener()})
	if err != nil {
		os.Stderr.WriteString(err.Error())
		os.Exit(1)
	}
}

// A merge that is killed at any moment has left no run, or the whole one; the next one
// makes it.
func TestKilledMerge(t *testing.T) {
	w := newWorld(t, 60)
	p := w.plan("explain", `{method: [weights, random, "scaled(random,factor=3)"], reduce: [none, abs-mean]}`)
	p.Maps.Formats = []string{"npy"}
	_, err := w.run(p, "whole")
	require.NoError(t, err)
	folders := w.shards(p, 2)
	before := w.tree("shard-1-of-2")
	// Places in a merge: files that come to be one after the other.
	places := []string{".lock", record.FileName, orchestrate.PlanFile, "maps/weights-none/0000.npz", "maps/random-abs-mean/0000.npz",
		"maps/scaled-random-factor-3-none/index.json", orchestrate.SummaryCSVFile}
	killed := 0
	for _, place := range places {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), mergeChildVariable+"="+w.dir)
		var words strings.Builder
		cmd.Stderr = &words
		require.NoError(t, cmd.Start())
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		var waited error
		for running := true; running; {
			select {
			case waited = <-ended:
				running = false
			default:
				if _, err := os.Stat(w.path(".merged.merging/" + place)); err == nil {
					cmd.Process.Kill()
					waited = <-ended
					running = false
				}
				time.Sleep(time.Millisecond / 10)
			}
		}
		require.Empty(t, words.String())
		if waited != nil {
			killed++
			if _, err := os.Stat(w.path("merged")); err == nil {
				w.requireSameRun("whole", "merged")
			}
		}
		if place == places[len(places)/2] { // the next process clears up what this one has left
			_, err = w.merge("merged", folders...)
			require.NoError(t, err)
			w.requireSameRun("whole", "merged")
			require.NoDirExists(t, w.path(".merged.merging"))
		}
		require.NoError(t, os.RemoveAll(w.path("merged")))
	}
	require.Positive(t, killed)
	_, err = w.merge("merged", folders...)
	require.NoError(t, err)
	w.requireSameRun("whole", "merged")
	require.NoDirExists(t, w.path(".merged.merging"))
	require.Equal(t, before, w.tree("shard-1-of-2"))
}
