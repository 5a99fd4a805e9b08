package orchestrate_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/assay-xai/assay/internal/fake"
	"github.com/assay-xai/assay/orchestrate"
)

const longGrid = "{edge: 4, solver: [sa, tabu], iterations: 3000}"

// longChildVariable makes the test binary run one long search in the folder it names.
const longChildVariable = "ASSAY_TEST_LONG_CHILD"

func longJob(dir, out string, backend *fake.Backend) (orchestrate.Job, error) {
	plan, err := orchestrate.ParsePlan("plan.yaml", []byte(planText(dir, "trace", longGrid)))
	return orchestrate.Job{Plan: plan, Out: filepath.Join(dir, out), Open: backend.Opener(), JournalEvery: 5 * time.Millisecond}, err
}

func longChild(dir string) {
	job, err := longJob(dir, "killed", &fake.Backend{})
	if err == nil {
		_, err = orchestrate.Run(background, job)
	}
	if err != nil {
		os.Stderr.WriteString(err.Error())
		os.Exit(1)
	}
}

// A search that is killed again and again goes on where it was: it ends, and
// with the record of an undisturbed one.
func TestKilledSearchGoesOn(t *testing.T) {
	w := newWorld(t, 1)
	whole, err := longJob(w.dir, "whole", w.backend)
	require.NoError(t, err)
	_, err = orchestrate.Run(t.Context(), whole)
	require.NoError(t, err)
	require.NoDirExists(t, w.path("whole/searches"))
	killed := 0
	for range 12 {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), longChildVariable+"="+w.dir)
		require.NoError(t, cmd.Start())
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		before := journalled(w)
		var waited error
		for running := true; running; {
			select {
			case waited = <-ended:
				running = false
			case <-time.After(time.Millisecond):
				if journalled(w) > before+4000 { // a place in the search, not a time
					cmd.Process.Kill()
					waited = <-ended
					running = false
				}
			}
		}
		if waited == nil {
			break
		}
		killed++
	}
	require.Greater(t, killed, 2)
	again, err := longJob(w.dir, "killed", w.backend)
	require.NoError(t, err)
	_, err = orchestrate.Run(t.Context(), again)
	require.NoError(t, err)
	require.Equal(t, w.records("whole"), w.records("killed"))
	require.NoDirExists(t, w.path("killed/searches"))
}

// journalled is the size of all journals.
func journalled(w *world) int64 {
	files, err := filepath.Glob(w.path("killed/searches/*.states"))
	require.NoError(w.t, err)
	total := int64(0)
	for _, f := range files {
		if info, err := os.Stat(f); err == nil {
			total += info.Size()
		}
	}
	return total
}

// What was scored before a device failed is not scored again.
func TestSearchesAreNotScoredTwice(t *testing.T) {
	w := newWorld(t, 2)
	calls := int64(0)
	w.backend.Fail = func(call int64) error { calls = call; return nil }
	job, err := longJob(w.dir, "whole", w.backend)
	require.NoError(t, err)
	_, err = orchestrate.Run(t.Context(), job)
	require.NoError(t, err)
	whole := calls

	broken := errors.New("the device broke")
	first := &fake.Backend{Fail: func(call int64) error {
		if call > whole/2 {
			return broken
		}
		return nil
	}}
	job, err = longJob(w.dir, "cut", first)
	require.NoError(t, err)
	_, err = orchestrate.Run(t.Context(), job)
	require.ErrorIs(t, err, broken)
	second := &fake.Backend{Fail: func(call int64) error { calls = call; return nil }}
	job, err = longJob(w.dir, "cut", second)
	require.NoError(t, err)
	_, err = orchestrate.Run(t.Context(), job)
	require.NoError(t, err)
	require.Equal(t, w.records("whole"), w.records("cut"))
	require.Less(t, calls, whole*3/4)
}

// A long search is seen to go on before it ends.
func TestProgressWithinASearch(t *testing.T) {
	w := newWorld(t, 1)
	job, err := longJob(w.dir, "out", w.backend)
	require.NoError(t, err)
	w.backend.Fail = func(int64) error { time.Sleep(20 * time.Microsecond); return nil }
	var parts []float64
	var last orchestrate.Event
	job.Progress = func(e orchestrate.Event) {
		if last = e; e.Part > 0 {
			parts = append(parts, e.Part)
		}
	}
	_, err = orchestrate.Run(t.Context(), job)
	require.NoError(t, err)
	require.NotEmpty(t, parts)
	for _, part := range parts {
		require.LessOrEqual(t, part, 2.0, "there are two units")
	}
	require.Zero(t, last.Part)
	require.Equal(t, last.Total, last.Done)
}

// The summary has the estimate beyond the search and how far restarts differ.
func TestRelaxedAndRestartsAreSummarised(t *testing.T) {
	w := newWorld(t, 2)
	_, err := w.run(w.plan("trace", "{edge: 4, solver: [sa, greedy], objective: le, iterations: 30, restarts: 3}"), "out")
	require.NoError(t, err)
	summary := w.read("out/summary.csv")
	require.Contains(t, summary, "restarts-spread")
	for _, r := range w.records("out") {
		if r.Solver != "sa" {
			require.Empty(t, r.Restarts)
			continue
		}
		require.Len(t, r.Restarts, 3)
		require.Equal(t, r.Value, slices.Max(r.Restarts))
		require.GreaterOrEqual(t, *r.Relaxed, r.Value)
	}
	require.Equal(t, 1, strings.Count(summary, ",relaxed,"), "greedy stands on one order: an estimate from it would say nothing")
}
