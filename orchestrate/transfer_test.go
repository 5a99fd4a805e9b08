package orchestrate_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/assay-xai/assay/internal/fake"
	"github.com/assay-xai/assay/internal/record"
	"github.com/assay-xai/assay/internal/usage"
	"github.com/assay-xai/assay/orchestrate"
)

// threeNets is a plan of three nets whose weights differ.
func (w *world) threeNets(study, grid string) *orchestrate.Plan {
	nets := ""
	for i, name := range []string{"one", "two", "three"} {
		path := w.path(name + ".safetensors")
		if _, err := os.Stat(path); err != nil {
			require.NoError(w.t, fake.SeededWeights(path, 10, uint64(100+i)))
		}
		nets += fmt.Sprintf("- {net: tiny, name: %s, weights: %s, preset: {id: small, resize: squash, height: 8, width: 8, channels: 3, mean: [0, 0, 0], std: [1, 1, 1]}}\n", name, path)
	}
	p, err := orchestrate.ParsePlan("plan.yaml", []byte(fmt.Sprintf("version: 1\nstudy: %s\nnets:\n%sdata: [{path: %s}]\ngrid: %s\nbatch: 4\nthreads: 1\ndevice: cpu\n",
		study, nets, w.path("data"), grid)))
	require.NoError(w.t, err)
	return p
}

const transferGrid = "{edge: 4, iterations: 20, scoreOn: [prob, logit], reference: [zero, 'blur(kernel=3,sigma=2)']}"

// The diagonal is what study trace finds; the rest is what the order solver
// scores for the same trajectories: here it is played state by state.
func TestTransferScoresWhatTheSearchesFound(t *testing.T) {
	w := newWorld(t, 4)
	outcome, err := w.run(w.threeNets("transfer", transferGrid), "t")
	require.NoError(t, err)
	require.Equal(t, 3*3*4*4, outcome.Units)
	w.closed()
	_, err = w.run(w.threeNets("trace", strings.Replace(transferGrid, "{", "{target: label, ", 1)), "searches")
	require.NoError(t, err)

	type key struct{ net, image, reference, scoreOn string }
	searches := map[key]record.Record{}
	for _, r := range w.records("searches") {
		searches[key{r.Net, r.Image, r.Params["reference"].(string), r.ScoreOn}] = r
	}
	transferred, better := 0, 0
	for _, r := range w.records("t") {
		source := r.Params["source"].(string)
		want := searches[key{source, r.Image, r.Params["reference"].(string), r.ScoreOn}]
		require.Equal(t, want.Trajectory, r.Trajectory)
		require.Equal(t, *r.Class, r.Target)
		if source == r.Net {
			require.Equal(t, want.Curves, r.Curves)
			require.Equal(t, want.Value, r.Value)
			continue
		}
		transferred++
		require.Empty(t, r.History)
		require.NotEqual(t, want.Curves, r.Curves)
		// Both ends of a net's curves do not depend on the order.
		own := searches[key{r.Net, r.Image, r.Params["reference"].(string), r.ScoreOn}]
		require.Equal(t, own.Curves.Prob.Le[0], r.Curves.Prob.Le[0])
		require.Equal(t, own.Curves.Logit.Mo[16], r.Curves.Logit.Mo[16])
		if own.Value > r.Value {
			better++
		}
	}
	require.Equal(t, 3*2*4*4, transferred)
	require.Greater(t, better, transferred*8/10, "a net's own trajectory is nearly always better there than another's")
}

// A killed run that goes on, one in another order of devices, and one at rest
// end alike.
func TestTransferGoesOn(t *testing.T) {
	w := newWorld(t, 5)
	p := w.threeNets("transfer", "{edge: 4, iterations: 20}")
	_, err := w.run(p, "whole")
	require.NoError(t, err)
	for _, calls := range []int64{1, 30, 90, 125} {
		out := fmt.Sprint("broken", calls)
		before := w.backend.Calls()
		w.backend.Fail = func(call int64) error {
			if call-before > calls {
				return errors.New("the device is gone")
			}
			return nil
		}
		_, err := w.run(p, out)
		require.ErrorContains(t, err, "the device is gone")
		w.closed()
		w.backend.Fail = nil
		again, err := w.run(p, out)
		require.NoError(t, err)
		require.Equal(t, 3*3*5, again.Units)
		require.Equal(t, w.records("whole"), w.records(out))
		require.Equal(t, w.read("whole/summary.csv"), w.read(out+"/summary.csv"))
	}
	two := *p
	two.Device = "cuda:0,cuda:1"
	gpus := map[string]*fake.Backend{"cuda:0": {}, "cuda:1": {}}
	_, err = orchestrate.Run(t.Context(), orchestrate.Job{Plan: &two, Out: w.path("two"), Open: machine(gpus)})
	require.NoError(t, err)
	one := two
	one.Device = "cuda:0"
	_, err = orchestrate.Run(t.Context(), orchestrate.Job{Plan: &one, Out: w.path("one"), Open: machine(gpus)})
	require.NoError(t, err)
	require.Equal(t, w.records("one"), w.records("two"))
	require.Equal(t, w.read("one/summary.csv"), w.read("two/summary.csv"))
}

// Where a search fails, what would have read it fails and says so.
func TestTransferOfAFailedSearch(t *testing.T) {
	w := newWorld(t, 2)
	p := w.threeNets("transfer", "{edge: 2, iterations: 5}")
	_, err := w.run(p, "t")
	require.NoError(t, err)
	// Left are the searches, one of them failed.
	var kept []string
	for _, line := range strings.SplitAfter(w.read("t/results.jsonl"), "\n") {
		var r record.Record
		if line == "" {
			continue
		}
		require.NoError(t, json.Unmarshal([]byte(line), &r))
		if r.Params["source"] != r.Net {
			continue
		}
		if r.Net == "two" && r.Image == "a/0000.jpg" {
			text, err := json.Marshal(record.Failure(r, "made to fail"))
			require.NoError(t, err)
			line = string(text) + "\n"
		}
		kept = append(kept, line)
	}
	require.Len(t, kept, 3*2)
	require.NoError(t, os.WriteFile(w.path("t/results.jsonl"), []byte(strings.Join(kept, "")), 0o666))
	outcome, err := w.run(p, "t")
	var incomplete *orchestrate.Incomplete
	require.ErrorAs(t, err, &incomplete)
	require.Equal(t, 3, outcome.Failed, "the search, and what it was to give to two nets")
	n := 0
	for _, r := range w.records("t") {
		if strings.Contains(r.Error, "the search on net two failed: made to fail") {
			require.NotEqual(t, "two", r.Net)
			n++
		}
	}
	require.Equal(t, 2, n)
}

// Nets whose presets show other parts of an image do not share patches.
func TestTransferBetweenPresets(t *testing.T) {
	w := newWorld(t, 2)
	p := w.threeNets("transfer", "{edge: 2, iterations: 5}")
	warnings := func() (list []string) {
		_, err := orchestrate.Run(t.Context(), orchestrate.Job{Plan: p, Open: w.backend.Opener(), Progress: func(e orchestrate.Event) {
			if e.Kind == orchestrate.Warning && !strings.Contains(e.Message, "classes (a, b)") { // two folders for ten classes
				list = append(list, e.Message)
			}
		}})
		require.NoError(t, err)
		return list
	}
	require.Empty(t, warnings())
	other := *p.Nets[2].Preset.Preset
	other.ID, other.Resize, other.Height, other.CropHeight, other.CropWidth = "crop", "shorter", 10, 8, 8
	p.Nets[2].Preset.Preset = &other
	list := warnings()
	require.Len(t, list, 1)
	require.Contains(t, list[0], "nets one and three see other parts of an image (presets small and crop)")
}

// A chosen source is one row of the matrix.
func TestTransferOfOneSource(t *testing.T) {
	w := newWorld(t, 2)
	outcome, err := w.run(w.threeNets("transfer", "{edge: 2, iterations: 5, source: two}"), "t")
	require.NoError(t, err)
	require.Equal(t, 3*2, outcome.Units)
	for _, row := range outcome.Summary {
		require.Equal(t, "two", row.Params["source"])
	}
}

func TestTransferErrors(t *testing.T) {
	w := newWorld(t, 2)
	for grid, want := range map[string]string{
		"{target: predicted}":                "want label, or a class from 0",
		"{source: tow}":                      `source "tow": did you mean two`,
		"{solver: complete-search, edge: 2}": "finds no trajectory",
		"{edge: 14}":                         "larger than the image",
	} {
		_, err := w.run(w.threeNets("transfer", grid), "none")
		require.ErrorIs(t, err, usage.Err)
		require.ErrorContains(t, err, want)
	}
	_, err := w.run(w.plan("transfer", "{edge: 2}"), "none")
	require.ErrorContains(t, err, "want at least two")
	require.NoError(t, weightsFor(w.path("two.safetensors"), 7))
	_, err = w.run(w.threeNets("transfer", "{edge: 2}"), "none")
	require.ErrorContains(t, err, "want nets of the same classes")
}
