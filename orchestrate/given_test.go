package orchestrate_test

import (
	"archive/zip"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/assay-xai/assay/internal/fake"
	"github.com/assay-xai/assay/internal/record"
	"github.com/assay-xai/assay/internal/usage"
	"github.com/assay-xai/assay/orchestrate"
)

// npz writes maps of float32 by image id.
func npz(t *testing.T, path string, shape []int, maps map[string][]float32) {
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o777))
	file, err := os.Create(path)
	require.NoError(t, err)
	defer file.Close()
	w := zip.NewWriter(file)
	for id, values := range maps {
		f, err := w.Create(id + ".npy")
		require.NoError(t, err)
		text := strings.ReplaceAll(strings.Trim(fmt.Sprint(shape), "[]"), " ", ", ")
		header := fmt.Sprintf("{'descr': '<f4', 'fortran_order': False, 'shape': (%s,), }", text)
		header += strings.Repeat(" ", 127-10-len(header)) + "\n"
		_, err = f.Write(append([]byte("\x93NUMPY\x01\x00"), byte(len(header)), 0))
		require.NoError(t, err)
		_, err = f.Write([]byte(header))
		require.NoError(t, err)
		require.NoError(t, binary.Write(f, binary.LittleEndian, values))
	}
	require.NoError(t, w.Close())
}

// ramp is a map of 8 x 8 pixels whose patches of 4 x 4 pixels have the means
// 0, -1, -2 and 5: least relevant first 2, 1, 0, 3.
func ramp() []float32 {
	out := make([]float32, 64)
	means := []float32{0, -1, -2, 5}
	for i := range out {
		out[i] = means[i/32*2+i%8/4] + []float32{-.5, .5}[i%2]
	}
	return out
}

func (w *world) maps(path string, count int) {
	all := map[string][]float32{}
	for i := range count {
		all[fmt.Sprintf("%c/%04d.jpg", 'a'+i%3, i)] = ramp()
	}
	npz(w.t, w.path(path), []int{1, 8, 8}, all)
}

func TestStartFromMaps(t *testing.T) {
	w := newWorld(t, 3)
	w.maps("cam.npz", 3)
	grid := subst("{edge: 2, solver: order, map: DIR/cam.npz}", w.dir)
	outcome, err := w.run(w.plan("trace", grid), "out")
	require.NoError(t, err)
	require.Equal(t, 3, outcome.Units)
	for _, r := range w.records("out") {
		require.Equal(t, []int{2, 1, 0, 3}, r.Trajectory)
		require.Equal(t, "map", r.Params["start"])
		require.Regexp(t, `^cam\.npz#[0-9a-f]{8}$`, r.Params["map"])
	}
	w.closed()
	// The same plan goes on; the plan that it left does too; a copy elsewhere of
	// the same content is the same plan; other content is not.
	again, err := w.run(w.plan("trace", grid), "out")
	require.NoError(t, err)
	require.Equal(t, 3, again.Before)
	left, err := orchestrate.LoadPlan(w.path("out/plan.yaml"))
	require.NoError(t, err)
	again, err = w.run(left, "out")
	require.NoError(t, err)
	require.Equal(t, 3, again.Before)
	require.NoError(t, os.MkdirAll(w.path("moved"), 0o777))
	text, err := os.ReadFile(w.path("cam.npz"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(w.path("moved/cam.npz"), text, 0o666))
	moved := strings.Replace(grid, "/cam.npz", "/moved/cam.npz", 1)
	again, err = w.run(w.plan("trace", moved), "out")
	require.NoError(t, err)
	require.Equal(t, 3, again.Before)
	npz(t, w.path("cam.npz"), []int{8, 8}, map[string][]float32{"a/0000.jpg": ramp(), "b/0001.jpg": ramp(), "c/0002.jpg": make([]float32, 64)})
	_, err = w.run(w.plan("trace", grid), "out")
	require.ErrorIs(t, err, usage.Err)
	require.ErrorContains(t, err, "grid.map is cam.npz#")
	_, err = w.run(left, "out2")
	require.ErrorContains(t, err, "is not what the plan was made with")
	// Among equals the smaller index is the less relevant.
	_, err = w.run(w.plan("trace", grid), "changed")
	require.NoError(t, err)
	orders := map[string][]int{}
	for _, r := range w.records("changed") {
		orders[r.Image] = r.Trajectory
	}
	require.Equal(t, []int{0, 1, 2, 3}, orders["c/0002.jpg"])
	require.Equal(t, []int{2, 1, 0, 3}, orders["a/0000.jpg"])
}

// Searches begin with the map; other starts of the grid take no notice of it.
func TestSearchesStartFromMaps(t *testing.T) {
	w := newWorld(t, 2)
	w.maps("cam.npz", 2)
	grid := subst("{edge: 2, solver: [sa, order], iterations: 5, start: [map, random], map: DIR/cam.npz}", w.dir)
	outcome, err := w.run(w.plan("trace", grid), "out")
	require.NoError(t, err)
	require.Equal(t, 4*2, outcome.Units)
	first := map[string]float64{}
	for _, r := range w.records("out") {
		if r.Params["start"] == "random" {
			require.NotContains(t, r.Params, "map")
		} else if r.Solver == "order" {
			first[r.Image] = r.Value
		}
	}
	for _, r := range w.records("out") {
		if r.Params["start"] == "map" && r.Solver == "sa" {
			require.Equal(t, first[r.Image], r.History[0].Current)
		}
	}
}

// A run's trajectories begin another's: each net takes its own where there is one.
func TestStartFromARun(t *testing.T) {
	w := newWorld(t, 3)
	_, err := w.run(w.threeNets("trace", "{edge: 4, solver: sa, iterations: 20, scoreOn: [prob, logit]}"), "first")
	require.NoError(t, err)
	for _, from := range []string{"first", "first/results.jsonl"} {
		out := strings.ReplaceAll("out-"+from, "/", "-")
		_, err = w.run(w.threeNets("trace", "{edge: 4, solver: order, scoreOn: logit, map: "+w.path(from)+"}"), out)
		require.NoError(t, err)
		want := map[string]record.Record{}
		for _, r := range w.records("first") {
			if r.ScoreOn == "logit" {
				want[r.Net+r.Image] = r
			}
		}
		got := w.records(out)
		require.Len(t, got, 9)
		for _, r := range got {
			require.Equal(t, want[r.Net+r.Image].Trajectory, r.Trajectory)
			require.Equal(t, want[r.Net+r.Image].Curves, r.Curves)
			require.Equal(t, want[r.Net+r.Image].Value, r.Value)
		}
	}
	// Costs and the order of records are no part of what was found.
	before := w.read("out-first/plan.yaml")
	lines := strings.SplitAfter(strings.TrimSuffix(w.read("first/results.jsonl"), "\n"), "\n")
	lines[len(lines)-1] += "\n"
	for i, l := range lines {
		lines[i] = strings.Replace(l, `"seconds":`, `"seconds":1`, 1)
	}
	lines[0], lines[1] = lines[1], lines[0]
	require.NoError(t, os.WriteFile(w.path("first/results.jsonl"), []byte(strings.Join(lines, "")), 0o666))
	again, err := w.run(w.threeNets("trace", "{edge: 4, solver: order, scoreOn: logit, map: "+w.path("first")+"}"), "out-first")
	require.NoError(t, err)
	require.Equal(t, again.Units, again.Before)
	require.Equal(t, before, w.read("out-first/plan.yaml"))
	// Another net takes what there is, if that is one.
	require.NoError(t, fake.SeededWeights(w.path("tiny.safetensors"), 10, 5))
	_, err = w.run(w.plan("trace", "{edge: 4, solver: order, scoreOn: logit, map: "+w.path("first")+"}"), "other")
	require.ErrorIs(t, err, usage.Err)
	require.ErrorContains(t, err, "has 3 trajectories for a/0000.jpg on net tiny, by net: ")
}

func TestGivenErrors(t *testing.T) {
	w := newWorld(t, 3)
	w.maps("good.npz", 3)
	w.maps("few.npz", 2)
	npz(t, w.path("large.npz"), []int{3, 16, 16}, map[string][]float32{"a/0000.jpg": make([]float32, 768)})
	nan := ramp()
	nan[9] = float32(math.NaN())
	npz(t, w.path("nan.npz"), []int{1, 8, 8}, map[string][]float32{"a/0000.jpg": nan})
	require.NoError(t, os.WriteFile(w.path("text.npz"), []byte("text"), 0o666))
	require.NoError(t, os.MkdirAll(w.path("bare"), 0o777))
	_, err := w.run(w.plan("trace", "{edge: 4, solver: order}"), "run")
	require.NoError(t, err)
	_, err = w.run(w.plan("eval", "{}"), "eval")
	require.NoError(t, err)
	for text, want := range map[string]string{
		"start: map":           "which orders? give --map FILE",
		"map: DIR/nowhere.npz": "no such file",
		"map: DIR/text.npz":    "is no .npz file",
		"map: DIR/bare":        "want an .npz of maps by image id, a folder of them, or a trace run",
		"map: DIR/few.npz":     "has none for c/0002.jpg; it has a/0000.jpg, b/0001.jpg",
		"map: DIR/large.npz":   "the map of a/0000.jpg is 16x16: want 8x8, the size of what net tiny sees",
		"map: DIR/nan.npz":     "the value at [0 1 1] is not a number",
		"map: DIR/run":         "the trajectory for a/0000.jpg has 16 features: want 4",
		"map: DIR/eval":        "want a run with trajectories, it has none",
	} {
		_, err := w.run(w.plan("trace", subst("{edge: 2, solver: order, "+text+"}", w.dir)), "none")
		require.ErrorIs(t, err, usage.Err, text)
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), "\n")
		require.NoFileExists(t, w.path("none/results.jsonl"))
	}
	w.closed()
}

// Tables have maps of columns.
func TestMapsOfColumns(t *testing.T) {
	w := newWorld(t, 0)
	require.NoError(t, fake.SeededWeights(w.path("l.safetensors"), 2, 3))
	p, err := orchestrate.ParsePlan("p", []byte(substAll(`version: 1
study: trace
nets: [{net: logistic, weights: DIR/l.safetensors}]
data: [{path: 'embedded:breast-cancer', limit: 2}]
grid: {solver: order, map: DIR/cols.npz}
batch: 4
threads: 1
device: cpu
`, w.dir, "", "")))
	require.NoError(t, err)
	columns := make([]float32, 30)
	for i := range columns {
		columns[i] = float32(-i)
	}
	_, err = w.run(p, "none")
	require.ErrorContains(t, err, "no such file")
	maps := map[string][]float32{}
	for i := range 569 {
		maps[fmt.Sprintf("%06d", i)] = columns
	}
	npz(t, w.path("cols.npz"), []int{30}, maps)
	_, err = w.run(p, "out")
	require.NoError(t, err)
	for _, r := range w.records("out") {
		require.Equal(t, 29, r.Trajectory[0])
		require.Equal(t, 0, r.Trajectory[29])
	}
}
