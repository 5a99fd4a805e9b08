package orchestrate_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/assay-xai/assay/internal/record"
	"github.com/assay-xai/assay/internal/usage"
	"github.com/assay-xai/assay/orchestrate"
)

// shardOf is a plan's copy for one shard.
func shardOf(p *orchestrate.Plan, index, of int) *orchestrate.Plan {
	out := *p
	out.Shard = orchestrate.Shard{Index: index, Of: of}
	return &out
}

// shards runs all shards of a plan and returns their folders; failed units are fine.
func (w *world) shards(p *orchestrate.Plan, of int) (folders []string) {
	for i := range of {
		out := fmt.Sprintf("shard-%d-of-%d", i+1, of)
		_, err := w.run(shardOf(p, i+1, of), out)
		w.fine(err)
		folders = append(folders, w.path(out))
	}
	return folders
}

// fine accepts what a run says whose units failed by themselves.
func (w *world) fine(err error) {
	var incomplete *orchestrate.Incomplete
	if !errors.As(err, &incomplete) {
		require.NoError(w.t, err)
	}
}

func (w *world) merge(out string, folders ...string) (orchestrate.Outcome, error) {
	return orchestrate.Merge(w.t.Context(), orchestrate.MergeJob{Out: w.path(out), Shards: folders, Open: w.backend.Opener()})
}

// requireSameRun says that two folders hold one run: the same files, records but for
// their order and cost.
func (w *world) requireSameRun(want, got string) {
	require.Equal(w.t, w.records(want), w.records(got))
	files, found := w.tree(want), w.tree(got)
	delete(files, record.FileName)
	delete(found, record.FileName)
	require.Equal(w.t, files, found)
}

// everyStudy has a plan of each kind of study, with what is particular about it.
func (w *world) everyStudy() map[string]*orchestrate.Plan {
	explained := w.plan("explain", `{method: [random, picky], reduce: [none, abs-mean]}`)
	explained.Maps.Formats = []string{"npy", "safetensors"}
	few := 3
	eval := w.plan("eval", "{}")
	eval.Report.Images = &few
	return map[string]*orchestrate.Plan{
		"eval":     eval,
		"road":     w.plan("road", `{method: [weights, picky], imputer: [noisy-linear, dataset-mean], order: [morf, lerf, random], fractions: [.2, 1]}`),
		"trace":    w.plan("trace", searchGrid),
		"explain":  explained,
		"score":    w.plan("score", `{method: [weights, random], metric: ["deletion(step=16)", sparseness]}`),
		"transfer": w.threeNets("transfer", "{edge: 4, iterations: 10}"),
	}
}

func TestEveryStudyIsShardedAndMerged(t *testing.T) {
	for _, study := range orchestrate.Studies() {
		require.Equal(t, study.Files == nil, study.Merge == nil, "study %s keeps files: it has to say how they are merged", study.ID)
	}
	w := newWorld(t, 7)
	w.image("b/bad.jpg", "BAD")
	w.image("c/nan.jpg", "NAN")
	plans := w.everyStudy()
	for _, study := range orchestrate.Studies() {
		p := plans[study.ID]
		require.NotNil(t, p, "study %s: want a plan of it here", study.ID)
		t.Run(study.ID, func(t *testing.T) {
			w := &world{t, mkdir(t, w.path(study.ID)), w.backend}
			_, err := w.run(p, "whole")
			w.fine(err)
			folders := w.shards(p, 3)
			outcome, err := w.merge("merged", folders[2], folders[0], folders[1])
			w.fine(err)
			var incomplete *orchestrate.Incomplete
			require.ErrorAs(t, err, &incomplete, "two images cannot be seen")
			require.Equal(t, len(w.records("whole")), outcome.Units)
			w.requireSameRun("whole", "merged")
			w.closed()

			// Records are in plan order.
			plan, err := orchestrate.LoadPlan(w.path("merged/plan.yaml"))
			require.NoError(t, err)
			require.True(t, plan.Shard.IsZero())
			resolved, err := orchestrate.Resolve(t.Context(), plan, w.backend)
			require.NoError(t, err)
			defer resolved.Close()
			units, err := resolved.Units(t.Context())
			require.NoError(t, err)
			for i, line := range strings.Split(strings.TrimSpace(w.read("merged/results.jsonl")), "\n") {
				require.Contains(t, line, `"id":"`+units[i].ID+`"`)
			}

			// The merged run is a run: it goes on, and has nothing to do.
			outcome, err = w.run(p, "merged")
			w.fine(err)
			require.Equal(t, outcome.Units, outcome.Before)
			w.requireSameRun("whole", "merged")
			// Merging once more finds it done; the shards are as they were.
			require.NoError(t, os.Remove(w.path("merged/summary.csv")))
			_, err = w.merge("merged", folders...)
			w.fine(err)
			w.requireSameRun("whole", "merged")
		})
	}
}

// division is a plan, its shards, and where each of them is stopped once.
type division struct {
	study        string
	images, of   int
	fails, hasty bool // an image fails; somebody merges before a shard is finished
	stops        []int
}

func drawDivision(r *rapid.T) division {
	d := division{study: rapid.SampledFrom([]string{"eval", "trace", "explain", "score", "transfer", "road"}).Draw(r, "study"),
		images: rapid.IntRange(2, 9).Draw(r, "images"), fails: rapid.Bool().Draw(r, "fails"), hasty: rapid.Bool().Draw(r, "hasty")}
	d.of = rapid.IntRange(1, d.images).Draw(r, "shards")
	for range d.of {
		d.stops = append(d.stops, rapid.IntRange(0, 12).Draw(r, "stop"))
	}
	return d
}

// Any number of shards, of any number of images, stopped and gone on with at any
// record, merge to the run that was never divided.
func TestMergedIsUndivided(t *testing.T) {
	const divisions = 10
	for seed := range divisions {
		d := rapid.Custom(drawDivision).Example(seed)
		w := newWorld(t, d.images)
		if d.fails {
			w.image("a/bad.jpg", "BAD")
		}
		p := w.everyStudy()[d.study]
		_, err := w.run(p, "whole")
		w.fine(err)
		var folders []string
		for i, stop := range d.stops {
			out := fmt.Sprint("shard-", i+1)
			ctx, cancel := context.WithCancelCause(t.Context())
			_, err := orchestrate.Run(ctx, orchestrate.Job{Plan: shardOf(p, i+1, d.of), Out: w.path(out), Open: w.backend.Opener(), Progress: func(e orchestrate.Event) {
				if e.Stage == orchestrate.StageRun && e.Done >= stop {
					cancel(errors.New("stopped by the test"))
				}
			}})
			cancel(nil)
			folders = append(folders, w.path(out))
			if errors.Is(err, context.Canceled) {
				if _, ended := os.Stat(w.path(out + "/summary.json")); ended != nil && d.hasty {
					_, err := w.merge("merged", append(folders, w.rest(p, i+2, d.of)...)...)
					require.ErrorIs(t, err, usage.Err, "%+v", d)
					require.ErrorContains(t, err, fmt.Sprintf("not finished: shard %d of %d", i+1, d.of))
					require.NoDirExists(t, w.path("merged"))
				}
				_, err = w.run(shardOf(p, i+1, d.of), out)
			}
			w.fine(err)
		}
		_, err = w.merge("merged", folders...)
		w.fine(err)
		w.requireSameRun("whole", "merged")
		w.closed()
	}
}

// rest runs the shards from the one given on, in folders of their own.
func (w *world) rest(p *orchestrate.Plan, from, of int) (folders []string) {
	for i := from; i <= of; i++ {
		out := fmt.Sprint("rest-", i)
		_, err := w.run(shardOf(p, i, of), out)
		w.fine(err)
		folders = append(folders, w.path(out))
	}
	return folders
}

// Shards have whole images, in blocks that differ by one image at most.
func TestShardsAreBlocksOfImages(t *testing.T) {
	w := newWorld(t, 11)
	p := w.plan("trace", searchGrid)
	seen := map[string]int{}
	var order []string
	for i := range 4 {
		out := fmt.Sprint("s", i)
		outcome, err := w.run(shardOf(p, i+1, 4), out)
		require.NoError(t, err)
		require.Equal(t, 22, outcome.PlanUnits)
		images := map[string]bool{}
		for _, r := range w.records(out) {
			images[r.Image] = true
		}
		require.Contains(t, []int{2, 3}, len(images))
		require.Equal(t, 2*len(images), outcome.Units, "both points of the grid")
		for image := range images {
			require.NotContains(t, seen, image)
			seen[image] = i
		}
		require.Contains(t, w.read(out+"/summary.csv"), fmt.Sprintf(",%d/4\n", i+1))
		require.Contains(t, w.read(out+"/summary.json"), fmt.Sprintf(`"shard": "%d/4"`, i+1))
	}
	require.Len(t, seen, 11)
	_, err := w.run(p, "whole")
	require.NoError(t, err)
	set := w.tree("data")
	for name := range set {
		order = append(order, filepath.ToSlash(name))
	}
	require.Len(t, order, 11)
	_, err = w.run(shardOf(p, 12, 12), "too-many")
	require.ErrorIs(t, err, usage.Err)
	require.ErrorContains(t, err, "12 shards: the plan's units are of 11 images")
	require.NoDirExists(t, w.path("too-many"))
}

func TestShardFoldersAreTheirOwn(t *testing.T) {
	w := newWorld(t, 4)
	p := w.plan("eval", "{}")
	_, err := w.run(shardOf(p, 1, 2), "shard")
	require.NoError(t, err)
	for name, c := range map[string]struct {
		plan *orchestrate.Plan
		out  string
		want string
	}{
		"another":      {shardOf(p, 2, 2), "shard", "holds shard 1 of 2, and this is shard 2 of 2: give --shard 1/2"},
		"other number": {shardOf(p, 1, 3), "shard", "holds shard 1 of 2, and this is shard 1 of 3"},
		"the whole":    {p, "shard", "holds shard 1 of 2, and this is the whole run: give --shard 1/2"},
		"no folder":    {shardOf(p, 1, 2), "", "no folder"},
	} {
		t.Run(name, func(t *testing.T) {
			out := c.out
			if out != "" {
				out = w.path(out)
			}
			_, err := orchestrate.Run(t.Context(), orchestrate.Job{Plan: c.plan, Out: out, Open: w.backend.Opener()})
			require.ErrorIs(t, err, usage.Err)
			require.ErrorContains(t, err, c.want)
		})
	}
	_, err = w.run(p, "whole")
	require.NoError(t, err)
	_, err = w.run(shardOf(p, 1, 2), "whole")
	require.ErrorIs(t, err, usage.Err)
	require.ErrorContains(t, err, "holds the whole run, and this is shard 1 of 2: leave --shard out")

	// Its own plan goes on with it.
	own, err := orchestrate.LoadPlan(w.path("shard/plan.yaml"))
	require.NoError(t, err)
	require.Equal(t, orchestrate.Shard{Index: 1, Of: 2}, own.Shard)
	outcome, err := w.run(own, "shard")
	require.NoError(t, err)
	require.Equal(t, 2, outcome.Before)
}

func TestParseShard(t *testing.T) {
	s, err := orchestrate.ParseShard("2/4")
	require.NoError(t, err)
	require.Equal(t, orchestrate.Shard{Index: 2, Of: 4}, s)
	require.Equal(t, "2/4", s.String())
	for text, want := range map[string]string{
		"": "want i/n", "2": "want i/n", "2/": "want i/n", "a/4": "want i/n", "0/4": "want one of 1/4 to 4/4", "5/4": "want one of 1/4 to 4/4",
		"1/0": "want i/n", "1/99999": "at most 65536", "1/4/2": "want i/n", "-1/4": "want one of",
	} {
		_, err := orchestrate.ParseShard(text)
		require.ErrorIs(t, err, usage.Err, text)
		require.ErrorContains(t, err, want, text)
	}
	_, err = orchestrate.ParsePlan("p.yaml", []byte("version: 1\nstudy: eval\nshard: 5/4\n"))
	require.ErrorIs(t, err, usage.Err)
	require.ErrorContains(t, err, "p.yaml:3:8")
	p, err := orchestrate.ParsePlan("p.yaml", []byte("version: 1\nstudy: eval\nshard: \"1/4\"\n"))
	require.NoError(t, err)
	require.Equal(t, orchestrate.Shard{Index: 1, Of: 4}, p.Shard)
}

// A plan that is resolved once is what shards on other machines start from.
func TestResolveOnly(t *testing.T) {
	w := newWorld(t, 4)
	p := w.plan("eval", "{}")
	p.Batch = 0
	_, err := orchestrate.Run(t.Context(), orchestrate.Job{Plan: p, Out: w.path("plan"), Open: w.backend.Opener(), ResolveOnly: true})
	require.NoError(t, err)
	w.closed()
	require.Empty(t, w.records("plan"))
	require.NoFileExists(t, w.path("plan/summary.csv"))
	resolved, err := orchestrate.LoadPlan(w.path("plan/plan.yaml"))
	require.NoError(t, err)
	require.Positive(t, int(resolved.Batch))
	require.Len(t, resolved.Data[0].Hash, 64)
	folders := w.shards(resolved, 2)
	_, err = w.merge("merged", folders...)
	require.NoError(t, err)
	_, err = w.run(p, "plan") // the same folder can run it whole
	require.NoError(t, err)
	w.requireSameRun("plan", "merged")
	for _, job := range []orchestrate.Job{{Plan: p, ResolveOnly: true}, {Plan: shardOf(p, 1, 2), Out: w.path("x"), ResolveOnly: true}} {
		job.Open = w.backend.Opener()
		_, err = orchestrate.Run(t.Context(), job)
		require.ErrorIs(t, err, usage.Err)
	}
}

// What a machine measures for itself is told.
func TestBatchAutoOfAShardIsToldOf(t *testing.T) {
	w := newWorld(t, 4)
	p := shardOf(w.plan("eval", "{}"), 1, 2)
	p.Batch = 0
	var said []string
	_, err := orchestrate.Run(t.Context(), orchestrate.Job{Plan: p, Out: w.path("out"), Open: w.backend.Opener(), Progress: func(e orchestrate.Event) {
		if e.Kind == orchestrate.Warning {
			said = append(said, e.Message)
		}
	}})
	require.NoError(t, err)
	require.Contains(t, strings.Join(said, "\n"), "batch auto was measured for this shard alone")
}

// Rows of tables have a preset of their own, which a run that goes on reads back.
func TestRunsOnTablesGoOn(t *testing.T) {
	w := newWorld(t, 0)
	p := w.columns("{solver: sa, iterations: 10}")
	folders := w.shards(p, 3)
	for i, folder := range folders {
		own, err := orchestrate.LoadPlan(folder + "/plan.yaml")
		require.NoError(t, err)
		for _, p := range []*orchestrate.Plan{own, shardOf(p, i+1, 3)} {
			outcome, err := w.run(p, filepath.Base(folder))
			require.NoError(t, err)
			require.Equal(t, 1, outcome.Before)
		}
	}
	_, err := w.run(p, "whole")
	require.NoError(t, err)
	_, err = w.merge("merged", folders...)
	require.NoError(t, err)
	w.requireSameRun("whole", "merged")
}
