package orchestrate_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/assay-xai/assay/internal/fake"
	"github.com/assay-xai/assay/internal/record"
	"github.com/assay-xai/assay/internal/usage"
	"github.com/assay-xai/assay/orchestrate"
)

func TestEvalCountsWhatTheNetSees(t *testing.T) {
	w := newWorld(t, 12)
	outcome, err := w.run(w.plan("eval", "{}"), "out")
	require.NoError(t, err)
	require.Equal(t, 12, outcome.Units)
	w.closed()
	right := 0
	records := w.records("out")
	require.Len(t, records, 12)
	for _, r := range records {
		require.NotNil(t, r.Class)
		require.Len(t, r.Prediction.Classes, 5)
		require.Equal(t, int(r.Image[0]-'a'), *r.Class)
		if r.Prediction.Classes[0] == *r.Class {
			right++
		}
	}
	require.Equal(t, "top1", outcome.Summary[0].Metric)
	require.InDelta(t, float64(right)/12, outcome.Summary[0].Mean, 1e-12)
	require.Equal(t, 12, outcome.Summary[0].N)
}

func TestTraceRecords(t *testing.T) {
	w := newWorld(t, 7)
	_, err := w.run(w.plan("trace", searchGrid), "out")
	require.NoError(t, err)
	w.closed()
	records := w.records("out")
	require.Len(t, records, 14)
	for _, r := range records {
		require.Equal(t, 16, r.Features)
		require.Equal(t, 4, r.EdgePatches)
		require.Len(t, r.Trajectory, 16)
		require.Len(t, r.Curves.Logit.Mo, 17)
		le, mo := 0.0, 0.0
		for k := range r.Curves.Prob.Le {
			le += r.Curves.Prob.Le[k]
			mo += r.Curves.Prob.Mo[k]
		}
		require.InDelta(t, le, r.Sums.Prob.Le, 1e-9)
		want := le
		if r.Objective == "le-mo" {
			want -= mo
		}
		require.InDelta(t, want, r.Value, 1e-9)
		require.Equal(t, r.Prediction.Classes[0], r.Target)
	}
	require.Contains(t, w.read("out/summary.csv"), "tiny,predicted,4,zero,le-mo,prob,sa,paper,random,complete,30,")
}

// What a unit finds does not depend on the units beside it: not on the number
// of images, nor on the device's batches, nor on other points of the grid.
func TestRecordsDoNotDependOnTheirNeighbours(t *testing.T) {
	w := newWorld(t, 9)
	_, err := w.run(w.plan("trace", searchGrid), "all")
	require.NoError(t, err)
	one := w.plan("trace", "{edge: 4, solver: sa, iterations: 30, objective: le-mo}")
	one.Data[0].Limit = 2
	_, err = w.run(one, "one")
	require.NoError(t, err)
	all, few := w.records("all"), w.records("one")
	require.Len(t, few, 2)
	for id, r := range few {
		require.Equal(t, all[id], r)
	}
}

func TestSamePlanGoesOnAndAnotherIsRefused(t *testing.T) {
	w := newWorld(t, 4)
	p := w.plan("trace", searchGrid)
	_, err := w.run(p, "out")
	require.NoError(t, err)
	before := w.read("out/results.jsonl")
	outcome, err := w.run(p, "out")
	require.NoError(t, err)
	require.Equal(t, outcome.Units, outcome.Before)
	require.Equal(t, before, w.read("out/results.jsonl"))

	// The resolved plan is a plan: it goes on too.
	resolved, err := orchestrate.LoadPlan(w.path("out/plan.yaml"))
	require.NoError(t, err)
	outcome, err = w.run(resolved, "out")
	require.NoError(t, err)
	require.Equal(t, outcome.Units, outcome.Before)

	// Paths, titles and the number of the GPU are no difference.
	require.NoError(t, os.Rename(w.path("data"), w.path("moved")))
	moved := *p
	moved.Title, moved.Data = "other words", []orchestrate.DataPlan{{Path: w.path("moved"), Name: "data"}}
	_, err = w.run(&moved, "out")
	require.NoError(t, err)
	require.NoError(t, os.Rename(w.path("moved"), w.path("data")))

	for _, c := range []struct {
		name   string
		change func(p *orchestrate.Plan)
		want   string
	}{
		{"grid", func(p *orchestrate.Plan) { p.Grid = map[string]any{"edge": 2, "solver": "sa", "iterations": 30} }, "grid.edge is 4 there and 2 here"},
		{"seeds", func(p *orchestrate.Plan) { p.Seeds = []uint64{1} }, "seeds is 0 there and 1 here"},
		{"limit", func(p *orchestrate.Plan) { p.Data = []orchestrate.DataPlan{{Path: p.Data[0].Path, Limit: 2}} }, "data[0].limit is 0 there and 2 here"},
		{"batch", func(p *orchestrate.Plan) { p.Batch = 8 }, "batch is 4 there and 8 here"},
		{"study", func(p *orchestrate.Plan) { p.Study, p.Grid = "eval", nil }, "study is trace there and eval here"},
		{"device", func(p *orchestrate.Plan) { p.Device = "cuda:0" }, "device is cpu there and cuda here"},
		{"precision", func(p *orchestrate.Plan) { p.Precision = "bf16" }, "precision is f32 there and bf16 here"},
	} {
		t.Run(c.name, func(t *testing.T) {
			other := *p
			c.change(&other)
			_, err := w.run(&other, "out")
			require.ErrorIs(t, err, usage.Err)
			require.ErrorContains(t, err, c.want)
			require.Equal(t, before, w.read("out/results.jsonl"))
		})
	}
	w.image("a/0000.jpg", "changed")
	_, err = w.run(p, "out")
	require.ErrorIs(t, err, usage.Err)
	require.ErrorContains(t, err, "data[0].content")
	w.closed()
}

// A run that is stopped after any number of records, and any torn half of one,
// goes on to the same summary and records.
func TestInterruptedAtEveryRecord(t *testing.T) {
	w := newWorld(t, 4)
	w.image("b/bad.jpg", "BAD")
	p := w.plan("trace", searchGrid)
	_, err := w.run(p, "whole")
	var incomplete *orchestrate.Incomplete
	require.ErrorAs(t, err, &incomplete)
	want := w.records("whole")
	for stop := range len(want) {
		ctx, cancel := context.WithCancelCause(t.Context())
		_, err := orchestrate.Run(ctx, orchestrate.Job{Plan: p, Out: w.path("cut"), Open: w.backend.Opener(), Progress: func(e orchestrate.Event) {
			if e.Stage == orchestrate.StageRun && e.Done >= stop {
				cancel(errors.New("stopped by the test"))
			}
		}})
		cancel(nil)
		require.ErrorIs(t, err, context.Canceled)
		w.closed()
		require.NoFileExists(t, w.path("cut/summary.csv"))
		f, err := os.OpenFile(w.path("cut/results.jsonl"), os.O_APPEND|os.O_WRONLY, 0)
		require.NoError(t, err)
		_, err = f.WriteString(`{"id":"torn","stu`)
		require.NoError(t, err)
		require.NoError(t, f.Close())
		_, err = w.run(p, "cut")
		require.ErrorAs(t, err, &incomplete)
		require.Equal(t, want, w.records("cut"))
		for _, name := range []string{"summary.csv", "summary.json", "plan.yaml", "images/index.json"} {
			require.Equal(t, w.read("whole/"+name), w.read("cut/"+name), name)
		}
		require.NoError(t, os.RemoveAll(w.path("cut")))
	}
}

// childVariable makes the test binary run a plan in the folder it names.
const childVariable = "ASSAY_TEST_CHILD"

func child(dir string) {
	plan, err := orchestrate.ParsePlan("plan.yaml", []byte(planText(dir, "trace", searchGrid)))
	if err == nil {
		_, err = orchestrate.Run(background, orchestrate.Job{Plan: plan, Out: dir + "/killed", Open: (&fake.Backend{}).Opener()})
	}
	if err != nil {
		os.Stderr.WriteString(err.Error())
		os.Exit(1)
	}
}

func TestKilledProcessGoesOn(t *testing.T) {
	w := newWorld(t, 40)
	_, err := w.run(w.plan("trace", searchGrid), "whole")
	require.NoError(t, err)
	killChildren(t, childVariable, w.dir, 8, moreLines(w.path("killed/results.jsonl")))
	_, err = w.run(w.plan("trace", searchGrid), "killed")
	require.NoError(t, err)
	require.Equal(t, w.records("whole"), w.records("killed"))
	require.Equal(t, w.read("whole/summary.csv"), w.read("killed/summary.csv"))
	require.Equal(t, w.read("whole/images/index.json"), w.read("killed/images/index.json"))
}

func lines(path string) int {
	text, _ := os.ReadFile(path)
	return strings.Count(string(text), "\n")
}

func TestImagesThatFail(t *testing.T) {
	w := newWorld(t, 3)
	w.image("b/bad.jpg", "BAD")
	w.image("c/nan.jpg", "NAN")
	for _, study := range []string{"eval", "trace"} {
		t.Run(study, func(t *testing.T) {
			grid := "{}"
			if study == "trace" {
				grid = "{edge: 4, solver: greedy, objective: le}"
			}
			outcome, err := w.run(w.plan(study, grid), study)
			var incomplete *orchestrate.Incomplete
			require.ErrorAs(t, err, &incomplete)
			require.Equal(t, 2, incomplete.Failed)
			require.Equal(t, 5, incomplete.Units)
			require.Contains(t, err.Error(), "b/bad.jpg: not a JPEG or PNG file")
			require.Equal(t, 3, outcome.Summary[0].N)
			reasons := map[string]string{}
			for _, r := range w.records(study) {
				reasons[r.Image] = r.Error
				if r.Error != "" {
					require.Nil(t, r.Trace)
					require.Nil(t, r.Prediction)
				}
			}
			require.Contains(t, reasons["c/nan.jpg"], "not a finite number")
			// Failures are results: the next run does not try again.
			_, err = w.run(w.plan(study, grid), study)
			require.ErrorAs(t, err, &incomplete)
			require.Equal(t, 2, incomplete.Failed)
			w.closed()
		})
	}
}

func TestDeviceErrorEndsTheRun(t *testing.T) {
	w := newWorld(t, 12)
	broken := errors.New("the device is gone")
	w.backend.Fail = func(call int64) error {
		if call > 20 {
			return broken
		}
		return nil
	}
	_, err := w.run(w.plan("trace", searchGrid), "out")
	require.ErrorIs(t, err, broken)
	w.closed()
	require.NoFileExists(t, w.path("out/summary.csv"))
	w.backend.Fail = nil
	_, err = w.run(w.plan("trace", searchGrid), "out")
	require.NoError(t, err)
	_, err = w.run(w.plan("trace", searchGrid), "whole")
	require.NoError(t, err)
	require.Equal(t, w.records("whole"), w.records("out"))
}

// A run that runs out of memory goes on at half the batch, says so in every
// record from then on, and finds the same (this fake's rows do not depend on
// their batch).
func TestOutOfMemoryHalvesTheBatch(t *testing.T) {
	w := newWorld(t, 4)
	p := w.plan("trace", searchGrid)
	p.Batch = 8
	_, err := w.run(p, "whole")
	require.NoError(t, err)
	w.backend.Memory = 3
	_, err = w.run(p, "small")
	require.NoError(t, err)
	want := w.records("whole")
	got := w.records("small")
	require.Len(t, got, len(want))
	for id, r := range got {
		require.Contains(t, r.Warnings[len(r.Warnings)-1], "out of memory at batch 4: run at batch 2")
		r.Warnings = want[id].Warnings
		require.Equal(t, want[id], r)
	}
	w.closed()
}

func TestTwoRunsInOneFolder(t *testing.T) {
	w := newWorld(t, 2)
	other, err := record.Open(mkdir(t, w.path("out"))+"/"+record.FileName, nil)
	require.NoError(t, err)
	_, err = w.run(w.plan("eval", "{}"), "out")
	require.ErrorIs(t, err, record.ErrLocked)
	require.ErrorIs(t, err, usage.Err)
	require.NoError(t, other.Close())
	_, err = w.run(w.plan("eval", "{}"), "out")
	require.NoError(t, err)
}

func mkdir(t *testing.T, path string) string {
	require.NoError(t, os.MkdirAll(path, 0o777))
	return path
}

func TestOutThatIsNotARun(t *testing.T) {
	w := newWorld(t, 2)
	p := w.plan("eval", "{}")
	require.NoError(t, os.WriteFile(w.path("file"), nil, 0o666))
	_, err := w.run(p, "file")
	require.ErrorIs(t, err, usage.Err)
	require.ErrorContains(t, err, "want a folder")
	mkdir(t, w.path("records"))
	require.NoError(t, os.WriteFile(w.path("records/results.jsonl"), []byte("{\"id\":\"a\"}\n"), 0o666))
	_, err = w.run(p, "records")
	require.ErrorIs(t, err, usage.Err)
	require.ErrorContains(t, err, "no plan.yaml")
	_, err = orchestrate.Run(t.Context(), orchestrate.Job{Plan: p, Out: w.path("none"), MustExist: true, Open: w.backend.Opener()})
	require.ErrorIs(t, err, usage.Err)
	require.NoDirExists(t, w.path("none"))
	bad := w.plan("eval", "{}")
	bad.Nets[0].Weights = w.path("nothing.pth")
	_, err = w.run(bad, "none")
	require.ErrorIs(t, err, usage.Err)
	require.NoDirExists(t, w.path("none"))
	w.closed()
}

func TestOutInTheData(t *testing.T) {
	w := newWorld(t, 2)
	for _, out := range []string{"data", "data/runs/first", "data/../data/x"} {
		_, err := w.run(w.plan("eval", "{}"), out)
		require.ErrorIs(t, err, usage.Err)
		require.ErrorContains(t, err, "lies in the data folder")
	}
	require.NoFileExists(t, w.path("data/"+orchestrate.PlanFile))
	_, err := w.run(w.plan("eval", "{}"), "data-run") // begins like it, lies beside it
	require.NoError(t, err)
	w.closed()
}

// Folders are numbered in name order; where that cannot be the net's order of
// classes and labels count, the user hears of it.
func TestClassesThatAreNotTheNets(t *testing.T) {
	w := newWorld(t, 2)
	heard := func(study, grid string) (said []string) {
		_, err := orchestrate.Run(t.Context(), orchestrate.Job{Plan: w.plan(study, grid), Open: w.backend.Opener(), Progress: func(e orchestrate.Event) {
			if e.Kind == orchestrate.Warning {
				said = append(said, e.Message)
			}
		}})
		require.NoError(t, err)
		return said
	}
	said := heard("eval", "{}")
	require.Len(t, said, 1)
	require.Contains(t, said[0], "classes (a")
	require.Contains(t, said[0], "has 10")
	require.Len(t, heard("trace", "{edge: 2, iterations: 2, target: label}"), 1)
	require.Empty(t, heard("trace", "{edge: 2, iterations: 2, target: predicted}"))
	w.closed()
}

// The number of images that are decoded at any time does not grow with the data.
func TestDecodedImagesAreBounded(t *testing.T) {
	most := func(images int, study, grid string) int64 {
		w := newWorld(t, images)
		_, err := w.run(w.plan(study, grid), "out")
		require.NoError(t, err)
		w.closed()
		return w.backend.MostImages.Load()
	}
	require.Equal(t, most(200, "eval", "{}"), most(400, "eval", "{}"))
	grid := "{edge: 2, solver: greedy, objective: le}"
	require.LessOrEqual(t, most(100, "trace", grid), int64(16))
}

func TestViews(t *testing.T) {
	w := newWorld(t, 5)
	w.image("b/bad.jpg", "BAD")
	p := w.plan("eval", "{}")
	three := 3
	p.Report.Images = &three
	_, err := w.run(p, "out")
	require.Error(t, err)
	var index map[string]string
	require.NoError(t, json.Unmarshal([]byte(w.read("out/images/index.json")), &index))
	require.Len(t, index, 3)
	for id, name := range index {
		require.Contains(t, id, "/")
		require.FileExists(t, w.path("out/images/"+name))
	}
	require.JSONEq(t, `["a","b","c"]`, w.read("out/classes.json"))
}

func TestTemporaryRunsLeaveNothing(t *testing.T) {
	w := newWorld(t, 2)
	t.Setenv("TMPDIR", mkdir(t, w.path("tmp")))
	_, err := orchestrate.Run(t.Context(), orchestrate.Job{Plan: w.plan("eval", "{}"), Open: w.backend.Opener()})
	require.NoError(t, err)
	left, err := os.ReadDir(w.path("tmp"))
	require.NoError(t, err)
	require.Empty(t, left)
}

// What a search in reduced precision finds is scored again in f32.
func TestReducedPrecisionIsScoredAgain(t *testing.T) {
	w := newWorld(t, 3)
	grid := "{edge: 4, iterations: 20, objective: le-mo, target: 3}"
	_, err := w.run(w.plan("trace", grid), "f32")
	require.NoError(t, err)
	p := w.plan("trace", grid)
	p.Precision = "bf16"
	_, err = w.run(p, "bf16")
	require.NoError(t, err)
	w.closed()
	exact := map[string]record.Record{}
	for _, r := range w.records("f32") {
		exact[r.Image] = r
	}
	for _, r := range w.records("bf16") {
		require.NotEmpty(t, r.Warnings)
		require.NotEqual(t, r.History[len(r.History)-1].Best, r.Value)
		// The ends of the curves do not depend on the trajectory.
		for _, k := range []int{0, 16} {
			require.Equal(t, exact[r.Image].Curves.Logit.Le[k], r.Curves.Logit.Le[k])
			require.Equal(t, exact[r.Image].Curves.Prob.Mo[k], r.Curves.Prob.Mo[k])
		}
		require.InDelta(t, r.Sums.Prob.Le-r.Sums.Prob.Mo, r.Value, 1e-9)
	}
}

// A proof is of the scores it looked at: exact and its bounds play in f32 from the
// beginning.
func TestProofsAreOfFullPrecision(t *testing.T) {
	w := newWorld(t, 0)
	grid := "{solver: [exact, complete-search], objective: le-mo, target: 1}"
	results := func(precision string) map[string]*record.Trace {
		p := w.columns(grid)
		p.Precision = precision
		_, err := w.run(p, precision)
		require.NoError(t, err)
		out := map[string]*record.Trace{}
		for _, r := range w.records(precision) {
			require.Empty(t, r.Warnings)
			out[r.Image+r.Solver] = r.Trace
		}
		require.Len(t, out, 6)
		return out
	}
	require.Equal(t, results("f32"), results("bf16"))
	w.closed()
}
