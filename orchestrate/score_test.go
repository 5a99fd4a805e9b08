package orchestrate_test

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/assay-xai/assay/dataset"
	"github.com/assay-xai/assay/internal/record"
	"github.com/assay-xai/assay/internal/usage"
	"github.com/assay-xai/assay/orchestrate"
)

const scoreGrid = `{method: [weights, random, plain], metric: ["deletion(step=16)", "le-mo(edge=4)", sparseness]}`

// byScore finds a run's values: method, metric, image.
func (w *world) byScore(out string) map[string]map[string]map[string]record.Record {
	found := map[string]map[string]map[string]record.Record{}
	for _, r := range w.records(out) {
		metric := fmt.Sprint(r.Params["metric"])
		if found[r.Method] == nil {
			found[r.Method] = map[string]map[string]record.Record{}
		}
		if found[r.Method][metric] == nil {
			found[r.Method][metric] = map[string]record.Record{}
		}
		found[r.Method][metric][r.Image] = r
	}
	return found
}

func TestScore(t *testing.T) {
	w := newWorld(t, 5)
	outcome, err := w.run(w.plan("score", scoreGrid), "out")
	require.NoError(t, err)
	w.closed()
	require.Zero(t, w.backend.OpenStages.Load(), "stages left open")
	require.Equal(t, 3*3*5, outcome.Units)
	found := w.byScore("out")
	require.Len(t, found, 3)

	for image, r := range found["plain"]["sparseness"] {
		require.NotNil(t, r.Score.Value, image)
		require.InDelta(t, 0, *r.Score.Value, 1e-12, "the Gini index of equal numbers")
		require.Contains(t, r.Warnings, "all values of the map are the same: it ranks nothing")
	}
	for _, r := range found["weights"]["deletion(step=16)"] {
		require.Len(t, r.Score.Curves, 1)
		y := r.Score.Curves[0].Y
		require.Len(t, y, 5, "four steps of 16 of 64 pixels, and the image")
		area := -(y[0] + y[4]) / 2
		for _, v := range y {
			area += v
		}
		require.InDelta(t, area/4, *r.Score.Value, 1e-12)
		require.InDelta(t, r.Prediction.Probabilities[0], y[0], 1e-6, "the curve begins with what the net says of the image")
	}

	// Means, ranks and wins say what the records do.
	require.Len(t, outcome.Contests, 3)
	for _, c := range outcome.Contests {
		require.Equal(t, c.Metric != "deletion(step=16)", c.HigherIsBetter)
		require.Len(t, c.Competitors, 3)
		require.Len(t, c.Wins, 3)
		for _, one := range c.Competitors {
			sum := 0.
			for _, r := range found[one.Name][c.Metric] {
				sum += *r.Score.Value
			}
			require.InDelta(t, sum/5, one.Mean, 1e-12)
			before := 0
			for _, other := range c.Competitors {
				if other.Name != one.Name && (other.Mean > one.Mean) == c.HigherIsBetter {
					before++
				}
			}
			require.Equal(t, float64(before+1), one.Rank)
		}
		for _, win := range c.Wins {
			wins := 0.
			for image, r := range found[win.A][c.Metric] {
				a, b := *r.Score.Value, *found[win.B][c.Metric][image].Score.Value
				if a == b {
					wins += .5
				} else if (a > b) == c.HigherIsBetter {
					wins++
				}
			}
			require.InDelta(t, wins/5, win.Fraction, 1e-12)
			require.Equal(t, 5, win.N)
			require.GreaterOrEqual(t, win.PHolm, win.P)
		}
	}
	rows := readCSV(t, w.path("out/summary.csv"))
	require.Len(t, rows, 9)
	for _, row := range rows {
		require.Contains(t, []string{"weights", "random", "plain"}, row["method"])
		mean, err := strconv.ParseFloat(row["mean"], 64)
		require.NoError(t, err)
		sum := 0.
		for _, r := range found[row["method"]][row["metric"]] {
			sum += *r.Score.Value
		}
		require.InDelta(t, sum/5, mean, 1e-12)
		require.Equal(t, "5", row["n"])
		require.Equal(t, "0", row["undefined"])
		require.NotEmpty(t, row["rank"])
	}
	require.Len(t, readCSV(t, w.path("out/ranks.csv")), 9)
	require.Len(t, readCSV(t, w.path("out/wins.csv")), 9)
	var contests []orchestrate.Contest
	require.NoError(t, json.Unmarshal([]byte(w.read("out/contests.json")), &contests))
	require.Equal(t, outcome.Contests, contests)

	// Every method is asked once for each group of images, whatever the metrics: again
	// with one metric, it is asked as often.
	calls := w.backend.Calls()
	_, err = w.run(w.plan("score", `{method: [weights, random, plain], metric: sparseness}`), "one")
	require.NoError(t, err)
	require.Equal(t, int64(3), w.backend.Calls()-calls)
}

func readCSV(t *testing.T, path string) []map[string]string {
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	lines, err := csv.NewReader(f).ReadAll()
	require.NoError(t, err)
	var out []map[string]string
	for _, line := range lines[1:] {
		row := map[string]string{}
		for i, head := range lines[0] {
			row[head] = line[i]
		}
		out = append(out, row)
	}
	return out
}

// Values do not depend on which images and metrics were scored together.
func TestScoresOfGroups(t *testing.T) {
	w := newWorld(t, 7)
	_, err := w.run(w.plan("score", scoreGrid), "all")
	require.NoError(t, err)
	all := w.records("all")
	for _, batch := range []int{4} {
		p := w.plan("score", `{method: [plain, weights], metric: [sparseness, "deletion(step=16)"]}`)
		p.Batch, p.Data[0].Limit = orchestrate.Batch(batch), 2
		_, err = w.run(p, "some")
		require.NoError(t, err)
		some := w.records("some")
		require.Len(t, some, 8)
		for id, r := range some {
			require.Equal(t, all[id], r)
		}
	}
	// Another batch is another run by its ids; the fake's numbers are the same.
	p := w.plan("score", scoreGrid)
	p.Batch = 3
	_, err = w.run(p, "three")
	require.NoError(t, err)
	three := w.byScore("three")
	for method, list := range w.byScore("all") {
		for metric, images := range list {
			for image, r := range images {
				require.Equal(t, r.Score, three[method][metric][image].Score)
			}
		}
	}
}

// A run that was stopped goes on without doing again what has a record.
func TestScoreGoesOn(t *testing.T) {
	w := newWorld(t, 5)
	_, err := w.run(w.plan("score", scoreGrid), "whole")
	require.NoError(t, err)
	for _, kept := range []int{1, 7, 23, 44} {
		out := fmt.Sprint("part", kept)
		require.NoError(t, os.MkdirAll(w.path(out), 0o777))
		lines := strings.SplitAfter(w.read("whole/results.jsonl"), "\n")
		require.NoError(t, os.WriteFile(w.path(out+"/results.jsonl"), []byte(strings.Join(lines[:kept], "")+lines[kept][:10]), 0o666))
		require.NoError(t, os.WriteFile(w.path(out+"/plan.yaml"), []byte(w.read("whole/plan.yaml")), 0o666))
		outcome, err := w.run(w.plan("score", scoreGrid), out)
		require.NoError(t, err)
		require.Equal(t, kept, outcome.Before)
		require.Equal(t, w.records("whole"), w.records(out), "each once, and the same")
		for _, name := range []string{"summary.csv", "ranks.csv", "wins.csv", "contests.json"} {
			require.Equal(t, w.read("whole/"+name), w.read(out+"/"+name))
		}
	}
}

// Maps of files score as the method that made them does.
func TestScoreGivenMaps(t *testing.T) {
	w := newWorld(t, 5)
	_, err := w.run(w.plan("explain", `{method: [weights, random]}`), "maps")
	require.NoError(t, err)
	folders, err := orchestrate.AttributionFolders(w.path("maps"))
	require.NoError(t, err)
	require.Equal(t, []string{w.path("maps/maps/random"), w.path("maps/maps/weights")}, folders)
	_, err = w.run(w.plan("score", scoreGrid), "made")
	require.NoError(t, err)
	given := subst(`{attributions: [DIR/maps/maps/weights, DIR/maps/maps/random], metric: ["deletion(step=16)", "le-mo(edge=4)", sparseness]}`, w.dir)
	_, err = w.run(w.plan("score", given), "given")
	require.NoError(t, err)
	made, read := w.byScore("made"), w.byScore("given")
	require.ElementsMatch(t, []string{"weights", "random"}, slices.Collect(maps.Keys(read)))
	for method, list := range read {
		for metric, images := range list {
			require.Len(t, images, 5)
			for image, r := range images {
				require.Equal(t, made[method][metric][image].Score, r.Score)
			}
		}
	}

	// Metrics that ask the method again have none to ask.
	_, err = w.run(w.plan("score", subst(`{attributions: DIR/maps/maps/weights, metric: max-sensitivity}`, w.dir)), "no")
	require.ErrorIs(t, err, usage.Err)
	require.ErrorContains(t, err, "metric max-sensitivity asks the method for more maps")
}

// writeMaps writes an .npz of maps.
func (w *world) writeMaps(name string, list map[string][]float32, shapes map[string][]int) {
	require.NoError(w.t, os.MkdirAll(filepath.Dir(w.path(name)), 0o777))
	f, err := os.Create(w.path(name))
	require.NoError(w.t, err)
	z := dataset.NewMapWriter(f)
	for _, id := range slices.Sorted(maps.Keys(list)) {
		shape := shapes[id]
		if shape == nil {
			shape = []int{8, 8}
		}
		require.NoError(w.t, z.Add(id, list[id], shape))
	}
	require.NoError(w.t, z.Close())
	require.NoError(w.t, f.Close())
}

func rising(n int) []float32 {
	out := make([]float32, n)
	for i := range out {
		out[i] = float32(i)
	}
	return out
}

func TestScoreBadMaps(t *testing.T) {
	w := newWorld(t, 5) // a/0000 b/0001 c/0002 a/0003 b/0004
	good := rising(64)
	holes := rising(64)
	holes[5] = float32(math.NaN())
	list := map[string][]float32{"a/0000.jpg": good, "b/0001.jpg": rising(49), "a/0003.jpg": holes, "z/9.jpg": good}
	w.writeMaps("own.npz", list, map[string][]int{"b/0001.jpg": {7, 7}})
	grid := subst(`{attributions: DIR/own.npz, metric: sparseness}`, w.dir)
	_, err := w.run(w.plan("score", grid), "bad")
	require.ErrorIs(t, err, usage.Err)
	for _, want := range []string{
		"2 of 5 images have no map (b/0004.jpg, c/0002.jpg)", "1 maps of no image (z/9.jpg)",
		"1 maps of another size than 8x8 (b/0001.jpg is 7x7)", "1 maps with NaN or infinity (a/0003.jpg): --skip-nan",
	} {
		require.ErrorContains(t, err, want)
	}
	require.NoDirExists(t, w.path("bad"))

	// What is left over does not matter to a part of the data.
	delete(list, "b/0001.jpg")
	list["b/0001.jpg"], list["b/0004.jpg"], list["c/0002.jpg"] = good, good, make([]float32, 64)
	delete(list, "z/9.jpg")
	w.writeMaps("own.npz", list, nil)
	_, err = w.run(w.plan("score", grid), "bad")
	require.ErrorIs(t, err, usage.Err)
	require.NotContains(t, err.Error(), "have no map")

	var warnings []string
	p := w.plan("score", subst(`{attributions: DIR/own.npz, metric: [sparseness, "le-mo(edge=4)"], nan: skip}`, w.dir))
	outcome, err := orchestrate.Run(t.Context(), orchestrate.Job{Plan: p, Out: w.path("skip"), Open: w.backend.Opener(), Progress: func(e orchestrate.Event) {
		if e.Kind == orchestrate.Warning {
			warnings = append(warnings, e.Message)
		}
	}})
	require.NoError(t, err)
	text := strings.Join(warnings, "\n")
	require.Contains(t, text, "1 of 5 maps have values that are no numbers and are skipped (a/0003.jpg)")
	require.Contains(t, text, "all values are the same in 1 of 5 maps, which rank nothing (c/0002.jpg)")
	for _, c := range outcome.Contests {
		one := c.Competitors[0]
		require.Equal(t, "own", one.Name)
		require.Equal(t, 5, one.N+one.Undefined)
		require.Equal(t, map[string]int{"sparseness": 2, "le-mo(edge=4)": 1}[c.Metric], one.Undefined, c.Metric)
	}
	require.Equal(t, "map not finite", w.byScore("skip")["own"]["sparseness"]["a/0003.jpg"].Score.Undefined)
	require.Equal(t, "zero map", w.byScore("skip")["own"]["sparseness"]["c/0002.jpg"].Score.Undefined)
	for _, row := range outcome.Summary {
		require.Equal(t, 5, row.N+row.Undefined)
	}
}

// A method's maps with values that are no numbers are failures, or skipped.
func TestScoreHoles(t *testing.T) {
	w := newWorld(t, 2)
	outcome, err := w.run(w.plan("score", `{method: [holes, weights], metric: sparseness}`), "fail")
	var incomplete *orchestrate.Incomplete
	require.ErrorAs(t, err, &incomplete)
	require.Equal(t, 2, incomplete.Failed)
	require.Contains(t, incomplete.First, "--skip-nan")
	require.Len(t, outcome.Summary, 1)
	outcome, err = w.run(w.plan("score", `{method: [holes, weights], metric: sparseness, nan: skip}`), "skip")
	require.NoError(t, err)
	require.Len(t, outcome.Summary, 2)
	require.Equal(t, [2]int{0, 2}, [2]int{outcome.Summary[0].N, outcome.Summary[0].Undefined})
	require.Nil(t, outcome.Summary[0].Rank, "no value, no rank")
	require.Equal(t, 1., *outcome.Summary[1].Rank)
	require.Contains(t, w.read("skip/summary.csv"), ",holes,,sparseness,,,,0,2,,,,,,")
}

// The searched optimum stands beside the methods, and none does better.
func TestScoreBaseline(t *testing.T) {
	w := newWorld(t, 4)
	p := w.plan("score", `{metric: ["le(edge=2)", "mo(edge=2)", "le-mo(edge=2)", sparseness]}`)
	p.Grids = []map[string]any{{"method": []any{"weights", "random"}}, {"baseline": "trace(iterations=400)"}}
	outcome, err := w.run(p, "out")
	require.NoError(t, err)
	w.closed()
	require.Equal(t, 2*4*4+3*4, outcome.Units, "no search maximises sparseness")
	found := w.byScore("out")
	for _, metric := range []string{"le(edge=2)", "mo(edge=2)", "le-mo(edge=2)"} {
		for image, best := range found["trace optimum"][metric] {
			require.Nil(t, best.Trace)
			require.Equal(t, "score", best.Study)
			for _, method := range []string{"weights", "random"} {
				require.LessOrEqual(t, *found[method][metric][image].Score.Value, *best.Score.Value+1e-9, metric)
			}
		}
	}
	for _, c := range outcome.Contests {
		require.Len(t, c.Competitors, 2, "the optimum takes no part")
		require.Equal(t, c.Metric != "sparseness", c.Optimum != nil)
		for _, one := range c.Competitors {
			if c.Metric == "le(edge=2)" {
				require.InDelta(t, one.Mean / *c.Optimum, *one.Share, 1e-12)
			}
			if c.Metric == "mo(edge=2)" {
				require.InDelta(t, *c.Optimum/one.Mean, *one.Share, 1e-12)
			}
			if one.Share != nil {
				require.LessOrEqual(t, *one.Share, 1+1e-9)
			}
		}
	}
	// The same search by study trace.
	traced, err := w.run(w.plan("trace", `{edge: 2, iterations: 400, objective: le}`), "trace")
	require.NoError(t, err)
	for _, row := range traced.Summary {
		if row.Metric == "value" {
			for _, c := range outcome.Contests {
				if c.Metric == "le(edge=2)" {
					require.Equal(t, row.Mean, *c.Optimum)
				}
			}
		}
	}
	again, err := w.run(p, "out")
	require.NoError(t, err)
	require.Equal(t, again.Units, again.Before)
}

func TestScoreMistakes(t *testing.T) {
	w := newWorld(t, 2)
	for grid, want := range map[string]string{
		`{method: weights, metric: delation}`:                                      `did you mean deletion?`,
		`{method: weights, metric: "deletion(stop=3)"}`:                            `did you mean step?`,
		`{method: weights, metric: "deletion(step=-1)"}`:                           `want at least 0`,
		`{method: weights, metric: "deletion(reference=zreo)"}`:                    `did you mean zero?`,
		`{method: weights, metric: "deletion(output=loss)"}`:                       `want one of probability, logit`,
		`{method: weights, metric: "deletion(reference=image(image=a/0000.jpg))"}`: `take no other image as reference`,
		`{method: wieghts, metric: deletion}`:                                      `did you mean weights?`,
		`{metric: sparseness}`:                                                     `no method, and no attributions`,
		`{method: weights, attributions: /nowhere.npz, metric: sparseness}`:        `no such file`,
		`{method: weights, metric: pointing-game}`:                                 `needs boxes or masks`,
		`{method: weights, metric: "le(edge=3)"}`:                                  `edge 3`,
		`{method: weights, metric: "deletion(step=65)"}`:                           ``,
		`{method: weights, metric: sparseness, reduce: mean}`:                      `want one of none`,
		`{method: weights, metric: deletion, reduce: none}`:                        `want one of abs-mean`,
		`{baseline: search, metric: le}`:                                           `want one of trace`,
		`{baseline: "trace(iteration=3)", metric: le}`:                             `did you mean iterations?`,
		`{baseline: trace, metric: deletion}`:                                      `no search maximises metric deletion`,
	} {
		out := "none"
		if want == "" {
			continue // known when it runs
		}
		_, err := w.run(w.plan("score", grid), out)
		require.ErrorIs(t, err, usage.Err, grid)
		require.ErrorContains(t, err, want, grid)
		require.NoDirExists(t, w.path(out), grid)
	}
}

// A reference with parameters of its own may stand in a metric's, and what is the
// default is left out of the name.
func TestMetricNames(t *testing.T) {
	w := newWorld(t, 1)
	outcome, err := w.run(w.plan("score", `{method: weights, metric: ["deletion(output=probability, step=16)", "deletion(reference=blur(sigma=2),step=16)"]}`), "out")
	require.NoError(t, err)
	require.Equal(t, "deletion(step=16)", outcome.Summary[0].Metric)
	require.Equal(t, "deletion(reference=blur(sigma=2),step=16)", outcome.Summary[1].Metric)
}

// A grid's reduction is the metric's, but where the metric names its own.
func TestScoreReduce(t *testing.T) {
	w := newWorld(t, 2)
	outcome, err := w.run(w.plan("score", `{method: random, metric: [sparseness, "sparseness(reduce=abs-max)"], reduce: [sum, abs-sum]}`), "out")
	require.NoError(t, err)
	require.Equal(t, 3*2, outcome.Units)
	_, err = w.run(w.plan("score", `{method: random, metric: "sparseness(reduce=abs-sum)"}`), "own")
	require.NoError(t, err)
	want := map[string]*record.Score{}
	for _, r := range w.records("own") {
		want[r.Image] = r.Score
	}
	n := 0
	for _, r := range w.records("out") {
		if r.Params["reduce"] == "abs-sum" {
			require.Equal(t, want[r.Image], r.Score)
			n++
		}
	}
	require.Equal(t, 2, n)
	require.Len(t, outcome.Contests, 2)
	require.Equal(t, []string{"random sum", "random abs-sum"}, []string{outcome.Contests[0].Competitors[0].Name, outcome.Contests[0].Competitors[1].Name})
}

// The pointing game knows what is to be found from boxes.
func TestScoreBoxes(t *testing.T) {
	w := newWorld(t, 4) // a/0000 b/0001 c/0002 a/0003
	point := func(x, y int) []float32 {
		m := make([]float32, 64)
		m[y*8+x] = 1
		return m
	}
	w.writeMaps("own.npz", map[string][]float32{"a/0000.jpg": point(2, 3), "b/0001.jpg": point(6, 6), "c/0002.jpg": point(0, 7), "a/0003.jpg": point(1, 1)}, nil)
	require.NoError(t, os.WriteFile(w.path("boxes.txt"), []byte("# two boxes of one image\na/0000.jpg 2 3 3 4\nb/0001.jpg 0 0 6 6\nc/0002.jpg,5,5,8,8\nc/0002.jpg,0,7,1,8\n"), 0o666))
	grid := subst(`{attributions: DIR/own.npz, boxes: DIR/boxes.txt, metric: ["pointing-game(tolerance=0)", sparseness]}`, w.dir)
	outcome, err := w.run(w.plan("score", grid), "out")
	require.NoError(t, err)
	got := w.byScore("out")["own"]["pointing-game(tolerance=0)"]
	for image, want := range map[string]float64{"a/0000.jpg": 1, "b/0001.jpg": 0, "c/0002.jpg": 1} {
		require.Equal(t, want, *got[image].Score.Value, image)
	}
	require.Equal(t, "no region", got["a/0003.jpg"].Score.Undefined)
	require.Equal(t, 3, outcome.Contests[0].Competitors[0].N)
	for _, r := range w.byScore("out")["own"]["sparseness"] {
		require.NotContains(t, r.Params, "boxes")
	}
	for text, want := range map[string]string{
		"a/0000.jpg 1 2 3": "want IMAGE X0 Y0 X1 Y1", "a/0000.jpg 1 2 x 4": "want whole numbers", "a/0000.jpg 3 3 3 5": "no pixel", "\n": "has no boxes",
		"z/1.jpg 0 0 2 2": "none of the images of data", "a/0000.jpg 0 0 9 9": "outside of the 8x8 pixels",
	} {
		require.NoError(t, os.WriteFile(w.path("boxes.txt"), []byte(text), 0o666))
		_, err := w.run(w.plan("score", grid), "bad")
		require.ErrorIs(t, err, usage.Err, text)
		require.ErrorContains(t, err, want, text)
	}
}

// One game answers le, mo and le-mo, each with the bits that it has alone, and when
// only a part of them is left to do.
func TestScoresOfOneGame(t *testing.T) {
	w := newWorld(t, 5)
	metrics := []string{"le(edge=4)", "mo(edge=4)", "le-mo(edge=4)"}
	_, err := w.run(w.plan("score", `{method: [weights, random], metric: ["le(edge=4)", "mo(edge=4)", "le-mo(edge=4)"]}`), "all")
	require.NoError(t, err)
	all := w.records("all")
	alone := map[string]record.Record{}
	for i, metric := range metrics {
		out := fmt.Sprint("one", i)
		_, err := w.run(w.plan("score", `{method: [weights, random], metric: "`+metric+`"}`), out)
		require.NoError(t, err)
		maps.Copy(alone, w.records(out))
	}
	require.Equal(t, alone, all)
	lines := strings.SplitAfter(w.read("all/results.jsonl"), "\n")
	require.NoError(t, os.MkdirAll(w.path("part"), 0o777))
	var kept []string
	for i, line := range lines {
		if i%4 == 1 || i%7 == 0 {
			kept = append(kept, line)
		}
	}
	require.NoError(t, os.WriteFile(w.path("part/results.jsonl"), []byte(strings.Join(kept, "")), 0o666))
	require.NoError(t, os.WriteFile(w.path("part/plan.yaml"), []byte(w.read("all/plan.yaml")), 0o666))
	_, err = w.run(w.plan("score", `{method: [weights, random], metric: ["le(edge=4)", "mo(edge=4)", "le-mo(edge=4)"]}`), "part")
	require.NoError(t, err)
	require.Equal(t, all, w.records("part"))
}

// What needs the layers of a net is no metric of a black box; all else is.
func TestScoreBlackBox(t *testing.T) {
	w := newWorld(t, 2)
	w.backend.BlackBox = true
	_, err := w.run(w.plan("score", `{method: weights, metric: randomisation}`), "none")
	require.ErrorIs(t, err, usage.Err)
	require.ErrorContains(t, err, "metric randomisation needs the layers of the net, and net tiny is a black box (made so)")
	outcome, err := w.run(w.plan("score", `{method: weights, metric: [randomisation, "deletion(step=16)", "max-sensitivity(samples=2)"]}`), "out")
	require.NoError(t, err)
	require.Equal(t, 2*2, outcome.Units)
}

// A run that ends at whatever call of the device, or has too little memory, is none
// the worse for it.
func TestScoreAfterFailures(t *testing.T) {
	w := newWorld(t, 5)
	_, err := w.run(w.plan("score", scoreGrid), "whole")
	require.NoError(t, err)
	whole := w.records("whole")
	before := 0
	for _, at := range []int64{1, 3, 8, 20} {
		start := w.backend.Calls()
		w.backend.Fail = func(call int64) error {
			if call-start == at {
				return errors.New("unplugged")
			}
			return nil
		}
		_, err := w.run(w.plan("score", scoreGrid), "out")
		w.backend.Fail = nil
		w.closed()
		require.Zero(t, w.backend.OpenStages.Load(), "stages left open")
		if err != nil {
			require.ErrorContains(t, err, "unplugged")
		}
		if _, err := os.Stat(w.path("out/results.jsonl")); err == nil {
			n := len(w.records("out"))
			require.GreaterOrEqual(t, n, before)
			before = n
		}
	}
	_, err = w.run(w.plan("score", scoreGrid), "out")
	require.NoError(t, err)
	require.Equal(t, whole, w.records("out"))
}
