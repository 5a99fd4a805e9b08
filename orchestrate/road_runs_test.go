package orchestrate_test

import (
	"encoding/json"
	"fmt"
	"image/png"
	"maps"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/assay-xai/assay/internal/fake"
	"github.com/assay-xai/assay/internal/record"
	"github.com/assay-xai/assay/internal/usage"
	"github.com/assay-xai/assay/orchestrate"
)

const roadChildVariable = "ASSAY_ROAD_CHILD"

func roadChild(dir string) {
	plan, err := orchestrate.ParsePlan("plan.yaml", []byte(planText(dir, "road", roadGrid)))
	if err == nil {
		_, err = orchestrate.Run(background, orchestrate.Job{Plan: plan, Out: dir + "/killed", Open: (&fake.Backend{}).Opener()})
	}
	if err != nil {
		os.Stderr.WriteString(err.Error())
		os.Exit(1)
	}
}

// requireSameFiles compares what runs leave beside records.
func (w *world) requireSameFiles(want, got string) {
	files, found := w.tree(want), w.tree(got)
	require.ElementsMatch(w.t, slices.Collect(maps.Keys(files)), slices.Collect(maps.Keys(found)))
	for name, text := range files {
		if name != record.FileName {
			require.True(w.t, text == found[name], name)
		}
	}
}

func TestKilledRoadGoesOn(t *testing.T) {
	w := newWorld(t, 25)
	_, err := w.run(w.plan("road", roadGrid), "whole")
	require.NoError(t, err)
	killChildren(t, roadChildVariable, w.dir, 3, moreLines(w.path("killed/results.jsonl")))
	_, err = w.run(w.plan("road", roadGrid), "killed")
	require.NoError(t, err)
	require.Equal(t, w.records("whole"), w.records("killed"))
	w.requireSameFiles("whole", "killed")
}

// A run that was stopped anywhere goes on without doing again what has a record.
func TestRoadGoesOn(t *testing.T) {
	w := newWorld(t, 5)
	_, err := w.run(w.plan("road", roadGrid), "whole")
	require.NoError(t, err)
	for _, kept := range []int{1, 12, 60} {
		out := fmt.Sprint("part", kept)
		require.NoError(t, os.MkdirAll(w.path(out), 0o777))
		lines := strings.SplitAfter(w.read("whole/results.jsonl"), "\n")
		require.NoError(t, os.WriteFile(w.path(out+"/results.jsonl"), []byte(strings.Join(lines[:kept], "")+lines[kept][:10]), 0o666))
		require.NoError(t, os.WriteFile(w.path(out+"/plan.yaml"), []byte(w.read("whole/plan.yaml")), 0o666))
		outcome, err := w.run(w.plan("road", roadGrid), out)
		require.NoError(t, err)
		require.Equal(t, kept, outcome.Before)
		require.Equal(t, w.records("whole"), w.records(out), "each once, and the same")
		for _, name := range []string{"summary.csv", "ranks.csv", "wins.csv", "consistency.csv"} {
			require.Equal(t, w.read("whole/"+name), w.read(out+"/"+name))
		}
	}
	// The resolved plan says the same.
	p, err := orchestrate.LoadPlan(w.path("whole/plan.yaml"))
	require.NoError(t, err)
	outcome, err := w.run(p, "whole")
	require.NoError(t, err)
	require.Equal(t, outcome.Units, outcome.Before)
}

// What is asked for together, how large batches are, and how many devices there are
// changes no answer.
func TestRoadDoesNotDependOnCompany(t *testing.T) {
	w := newWorld(t, 7)
	_, err := w.run(w.plan("road", roadGrid), "whole")
	require.NoError(t, err)
	whole := w.roads("whole")
	p := w.plan("road", `{method: [random], imputer: noisy-linear, order: lerf}`)
	p.Data[0].Limit = 2
	_, err = w.run(p, "some")
	require.NoError(t, err)
	require.Len(t, w.records("some"), 2)
	all := w.records("whole")
	for id, r := range w.records("some") {
		require.Equal(t, all[id], r)
	}
	w.backend.Memory = 3
	_, err = w.run(w.plan("road", roadGrid), "small")
	require.NoError(t, err)
	for key, r := range w.roads("small") {
		require.Contains(t, r.Warnings, "out of memory at batch 4: run at batch 2")
		require.Equal(t, whole[key].Road, r.Road)
	}
	gpus := map[string]*fake.Backend{"cuda:0": {}, "cuda:1": {}}
	p = w.plan("road", roadGrid)
	p.Device = "cuda:0,cuda:1"
	_, err = orchestrate.Run(t.Context(), orchestrate.Job{Plan: p, Out: w.path("two"), Open: func(device string, threads int) (orchestrate.Backend, error) {
		return gpus[device].Opener()(device, threads)
	}})
	require.NoError(t, err)
	for key, r := range w.roads("two") {
		require.Equal(t, whole[key].Road, r.Road)
	}
	require.Equal(t, w.read("whole/summary.csv"), w.read("two/summary.csv"))
}

// One call serves an image's orders and fractions: a map is made once, a prediction too.
func TestRoadCalls(t *testing.T) {
	w := newWorld(t, 4)
	_, err := w.run(w.plan("road", `{method: [weights, random], imputer: [zero, channel-mean], order: [morf, lerf]}`), "out")
	require.NoError(t, err)
	strips := 2 * 2 * 2 // images, imputers and methods
	require.Equal(t, int64(2*(1+2)+strips), w.backend.Calls(), "for each method its maps, and a removal by each imputer")
}

// Everything removed is the mean of all of the data, whatever the shard, and noise.
func TestRoadEverythingAndNothing(t *testing.T) {
	w := newWorld(t, 6)
	const grid = `{method: weights, imputer: ["noisy-linear(noise=0)", noisy-linear, dataset-mean], order: [morf, lerf], fractions: [0, 1]}`
	_, err := w.run(w.plan("road", grid), "out")
	require.NoError(t, err)
	mean := make([]float64, 3)
	weights := tinyWeights(t, w)
	for _, r := range w.roads("out") {
		if r.Road.Imputer != "dataset-mean" || r.Road.Order != "morf" {
			continue
		}
		for i, v := range tinyImage(t, w, r.Image) {
			mean[i/64] += v / 64 / 6
		}
	}
	x := make([]float64, 192)
	for i := range x {
		x[i] = float64(float32(mean[i/64]))
	}
	want := tinyAnswer(weights, x)
	noisy := 0
	for key, r := range w.roads("out") {
		require.Equal(t, []int{0, 64}, r.Road.Removed)
		require.Nil(t, r.Road.Iterations, "there is nothing to solve")
		require.Equal(t, []float64{0, 0}, r.Road.MaskVariation)
		require.InDelta(t, r.Prediction.Probabilities[0], r.Road.PredictedProbabilities[0], 1e-12, key)
		if r.Road.Imputer == "noisy-linear" {
			require.NotEqual(t, want[r.Target], r.Road.Probabilities[1])
			noisy++
			continue
		}
		require.InDelta(t, want[r.Target], r.Road.Probabilities[1], 1e-6, key)
	}
	require.Equal(t, 12, noisy)
	w.closed()

	// The ids of units that rest on all of the data are others on a part of it; those of
	// units that do not are the same.
	all := w.records("out")
	p := w.plan("road", `{method: weights, imputer: [dataset-mean, zero], order: morf, fractions: [.5]}`)
	_, err = w.run(p, "half")
	require.NoError(t, err)
	p.Data[0].Limit = 3
	_, err = w.run(p, "part")
	require.NoError(t, err)
	half, shared := w.records("half"), 0
	for id, r := range w.records("part") {
		_, same := half[id]
		require.Equal(t, r.Road.Imputer == "zero", same)
		require.NotContains(t, all, id)
		if same {
			shared++
		}
	}
	require.Equal(t, 3, shared)
}

// What fails by itself has a record that says why, and takes part in nothing.
func TestRoadFailures(t *testing.T) {
	w := newWorld(t, 3)
	w.image("a/bad.jpg", "BAD")
	w.image("b/nan.jpg", "NAN")
	outcome, err := w.run(w.plan("road", `{method: [weights, holes, picky], order: [morf, random], fractions: [.5]}`), "out")
	var incomplete *orchestrate.Incomplete
	require.ErrorAs(t, err, &incomplete)
	why := map[string]int{}
	for _, r := range w.records("out") {
		if r.Error != "" {
			require.Nil(t, r.Road)
			word, _, _ := strings.Cut(r.Error, ":")
			why[r.Method+" "+word]++
		}
	}
	require.Equal(t, 1, why["weights not a JPEG or PNG file"])
	require.Equal(t, 1, why["weights the net's output is not a finite number (NaN or infinity)"])
	require.Equal(t, 3, why["holes the map has values that are no numbers (NaN or infinite)"])
	require.Equal(t, 1, why[" not a JPEG or PNG file"], "of the random order")
	for _, row := range outcome.Summary {
		require.LessOrEqual(t, row.N, 3)
		require.NotEqual(t, "holes", row.Params["method"])
	}
	w.closed()
}

// Maps of files rank as the method that made them does; what does not match is said.
func TestRoadGivenMaps(t *testing.T) {
	w := newWorld(t, 4)
	_, err := w.run(w.plan("explain", `{method: weights, target: label}`), "maps")
	require.NoError(t, err)
	_, err = w.run(w.plan("road", `{method: weights}`), "made")
	require.NoError(t, err)
	_, err = w.run(w.plan("road", subst(`{attributions: DIR/maps/maps/weights}`, w.dir)), "given")
	require.NoError(t, err)
	made, given := w.roads("made"), w.roads("given")
	require.Len(t, given, 8)
	for key, r := range given {
		require.Equal(t, made[key].Road, r.Road)
	}
	summary := func(out string) (rows []string) {
		for _, row := range readCSV(t, w.path(out+"/summary.csv")) {
			rows = append(rows, fmt.Sprint(row))
		}
		return rows
	}
	require.Equal(t, summary("made"), summary("given"))
	require.Contains(t, w.read("given/summary.csv"), ",weights,")

	holes := rising(64)
	holes[3] = float32(math.Inf(1))
	w.writeMaps("bad.npz", map[string][]float32{"a/0000.jpg": holes, "z.jpg": rising(64)}, nil)
	_, err = w.run(w.plan("road", subst(`{attributions: DIR/bad.npz}`, w.dir)), "bad")
	require.ErrorIs(t, err, usage.Err)
	require.ErrorContains(t, err, "3 of 4 images have no map")
	require.ErrorContains(t, err, "1 maps of no image (z.jpg)")
	require.ErrorContains(t, err, "1 maps with NaN or infinity (a/0000.jpg)")
	require.NotContains(t, err.Error(), "skip-nan")
	require.NoDirExists(t, w.path("bad"))
}

// Without labels there is no accuracy, and the default target says what to do.
func TestRoadWithoutLabels(t *testing.T) {
	w := newWorld(t, 0)
	for i := range 3 {
		w.image(fmt.Sprintf("%d.jpg", i), fmt.Sprint("image ", i))
	}
	_, err := w.run(w.plan("road", `{method: weights}`), "out")
	require.ErrorIs(t, err, usage.Err)
	require.ErrorContains(t, err, "--target predicted")
	outcome, err := w.run(w.plan("road", `{method: [weights, random], target: predicted}`), "out")
	require.NoError(t, err)
	for _, r := range w.records("out") {
		require.Nil(t, r.Road.Correct)
	}
	metrics := map[string]int{}
	for _, row := range outcome.Summary {
		metrics[row.Metric]++
	}
	require.Zero(t, metrics["accuracy"])
	require.Equal(t, 2*2*7, metrics["probability"])
	require.Contains(t, outcome.Consistency.Verdicts[0], "by probability")
}

// Numbers of the summary, from the records by hand.
func TestRoadSummary(t *testing.T) {
	w := newWorld(t, 5)
	p := w.plan("road", `{method: [weights, random], imputer: [zero, noisy-linear], order: [morf, lerf, random], fractions: [.2, .5]}`)
	p.Seeds = []uint64{1, 2}
	outcome, err := w.run(p, "out")
	require.NoError(t, err)
	mean := func(values []float64) float64 {
		sum := 0.
		for _, v := range values {
			sum += v
		}
		return sum / float64(len(values))
	}
	roads := w.roads("out")
	count := map[string]int{}
	for _, row := range outcome.Summary {
		if row.Metric == "order-spearman" || row.Metric == "order-kendall" {
			continue
		}
		var values []float64
		bySeed := map[uint64][]float64{}
		add := func(seed uint64, v float64) {
			values = append(values, v)
			bySeed[seed] = append(bySeed[seed], v)
		}
		for _, r := range roads {
			c := r.Road
			if r.Method != row.Params.Text("method") || c.Imputer != row.Params.Text("imputer") || row.Params["order"] != nil && c.Order != row.Params.Text("order") {
				continue
			}
			at := slices.Index(c.Fractions, row.Params.Float("fraction"))
			switch row.Metric {
			case "accuracy":
				add(r.Seed, map[bool]float64{true: 1}[c.Correct[at]])
			case "probability":
				add(r.Seed, c.Probabilities[at])
			case "predicted-probability":
				add(r.Seed, c.PredictedProbabilities[at])
			case "mask-variation":
				add(r.Seed, c.MaskVariation[at])
			case "mean-accuracy":
				n := 0.
				for _, right := range c.Correct {
					n += map[bool]float64{true: 1}[right]
				}
				add(r.Seed, n/2)
			case "mean-probability":
				add(r.Seed, mean(c.Probabilities))
			case "map-variation":
				if c.Order == "morf" {
					add(r.Seed, *c.MapVariation)
				}
			case "road-combined":
				if c.Order == "lerf" {
					other := roads[strings.Join([]string{r.Method, "morf", c.Imputer, r.Image, strconv.FormatUint(r.Seed, 10)}, " ")]
					add(r.Seed, (mean(c.Probabilities)-mean(other.Road.Probabilities))/2)
				}
			default:
				t.Fatal(row.Metric)
			}
		}
		count[row.Metric]++
		require.Len(t, values, 10, "%v", row)
		require.Equal(t, 5, row.N)
		require.InDelta(t, mean(values), row.Mean, 1e-12, "%v", row)
		require.LessOrEqual(t, row.Lo, row.Mean)
		require.GreaterOrEqual(t, row.Hi, row.Mean)
		a, b := mean(bySeed[1]), mean(bySeed[2])
		require.InDelta(t, math.Abs(a-b)/math.Sqrt2, *row.Deviation, 1e-12)
		require.InDelta(t, math.Abs(a-b)/2, *row.Error, 1e-12)
	}
	settings := (2*2 + 1) * 2 // methods, orders and a random one, imputers
	require.Equal(t, map[string]int{"accuracy": settings * 2, "probability": settings * 2, "predicted-probability": settings * 2, "mask-variation": settings * 2,
		"mean-accuracy": settings, "mean-probability": settings, "road-combined": 4, "map-variation": 4}, count)

	// Ranks: the lowest in morf, the highest in lerf.
	contests := 0
	for _, c := range outcome.Contests {
		contests++
		require.Len(t, c.Competitors, 2)
		require.NotEqual(t, "random", c.Setting["order"])
		require.Equal(t, c.Metric == "road-combined" || c.Setting["order"] == "lerf", c.HigherIsBetter)
		x, y := c.Competitors[0], c.Competitors[1]
		switch {
		case x.Mean == y.Mean:
			require.Equal(t, 1.5, x.Rank)
		case (x.Mean > y.Mean) == c.HigherIsBetter:
			require.Equal(t, 1., x.Rank)
		default:
			require.Equal(t, 2., x.Rank)
		}
	}
	require.Equal(t, 2*2*(2*2+2)+2, contests, "order x imputer x (accuracy and probability x fraction, and their means), combined x imputer")
	ranks := readCSV(t, w.path("out/ranks.csv"))
	require.Len(t, ranks, 2*contests)
	for _, name := range []string{"imputer", "order", "ties", "fraction", "metric", "method", "rank", "rankLo", "rankHi"} {
		require.Contains(t, ranks[0], name)
	}
}

// Consistency, from the means of the summary's own seeds by hand.
func TestRoadConsistency(t *testing.T) {
	w := newWorld(t, 6)
	p := w.plan("road", `{method: [weights, random, plain], imputer: [zero, channel-mean], order: [morf, lerf, random], fractions: [.1, .3, .9]}`)
	p.Seeds = []uint64{1, 2}
	outcome, err := w.run(p, "out")
	require.NoError(t, err)
	roads := w.roads("out")
	// probability of a method at a fraction for a seed
	score := func(method, order, imputer string, at int, seed uint64) float64 {
		sum, n := 0., 0.
		for _, r := range roads {
			if r.Method == method && r.Road.Order == order && r.Road.Imputer == imputer && r.Seed == seed {
				sum, n = sum+r.Road.Probabilities[at], n+1
			}
		}
		require.Equal(t, 6., n)
		return sum / n
	}
	ranks := func(order, imputer string, at int, seed uint64) []float64 {
		out := make([]float64, 3)
		methods := []string{"weights", "random", "plain"}
		for i, m := range methods {
			out[i] = 1
			for _, other := range methods {
				a, b := score(m, order, imputer, at, seed), score(other, order, imputer, at, seed)
				if other != m && (b > a) == (order == "lerf") {
					out[i]++
				}
			}
		}
		return out
	}
	// Spearman of three ranks without ties.
	spearman := func(x, y []float64) float64 {
		d := 0.
		for i := range x {
			d += (x[i] - y[i]) * (x[i] - y[i])
		}
		return 1 - 6*d/24
	}
	checked := map[string]int{}
	for _, a := range outcome.Consistency.Agreements {
		if a.Metric != "probability" {
			continue
		}
		var values []float64
		for _, seed := range p.Seeds {
			for at := range 3 {
				other := at
				if a.Pairing == "index" {
					if other = map[int]int{0: 2, 2: 0}[at]; at == 1 { // .3 has no .7
						continue
					}
				}
				if a.Differs == "seed" {
					if seed == 2 {
						continue
					}
					values = append(values, spearman(ranks(a.A.Order, a.A.Imputer, at, 1), ranks(a.A.Order, a.A.Imputer, at, 2)))
					continue
				}
				values = append(values, spearman(ranks(a.A.Order, a.A.Imputer, at, seed), ranks(a.B.Order, a.B.Imputer, other, seed)))
			}
		}
		sum := 0.
		for _, v := range values {
			sum += v
		}
		mean := sum / float64(len(values))
		squares := 0.
		for _, v := range values {
			squares += (v - mean) * (v - mean)
		}
		deviation := math.Sqrt(squares / float64(len(values)-1))
		require.InDelta(t, mean, *a.Spearman.Mean, 1e-12, "%+v", a)
		require.InDelta(t, deviation, *a.Spearman.Deviation, 1e-12)
		require.InDelta(t, deviation/math.Sqrt(float64(len(values))), *a.Spearman.Error, 1e-12)
		require.Equal(t, len(values), a.Repeats)
		require.NotEqual(t, "random", a.A.Order)
		checked[a.Differs+" "+a.Pairing]++
	}
	require.Equal(t, map[string]int{"order removed": 2, "order index": 2, "imputer removed": 2, "imputer+order removed": 2, "imputer+order index": 2, "seed removed": 4}, checked)
	require.Len(t, readCSV(t, w.path("out/consistency.csv")), len(outcome.Consistency.Agreements))
	var read orchestrate.Consistency
	require.NoError(t, json.Unmarshal([]byte(w.read("out/consistency.json")), &read))
	require.Equal(t, *outcome.Consistency, read)
	require.Len(t, read.Verdicts, 2)
	require.Regexp(t, `^The ranking of the 3 methods by accuracy (depends on|is .*) which.* pixels are removed first: least alike with \S+ morf and lerf [a-z ]+ \([-+]\d\.\d\d ± .*, most alike with \S+ morf and lerf .* over 3 fractions and 2 seeds; all 2 pairs in consistency\.csv\)\.$`, read.Verdicts[0])
	require.Regexp(t, `: least alike in (morf|lerf) zero and channel-mean .*, most alike in (morf|lerf) zero and channel-mean `, read.Verdicts[1])
}

// Strips show what the net saw.
func TestRoadStrips(t *testing.T) {
	w := newWorld(t, 4)
	_, err := w.run(w.plan("road", `{method: [weights, random], imputer: [zero, noisy-linear], order: [morf, random], fractions: [0, .5, 1]}`), "out")
	require.NoError(t, err)
	strips, err := orchestrate.ReadStrips(w.path("out"))
	require.NoError(t, err)
	require.Len(t, strips, 2*3*2, "two images, two methods and chance, two imputers")
	for _, s := range strips {
		r := w.records("out")[s.ID]
		require.Equal(t, r.Road.Probabilities, s.Probabilities)
		require.Equal(t, r.Road.Predicted, s.Predicted)
		f, err := os.Open(w.path("out/strips/" + s.File))
		require.NoError(t, err)
		picture, err := png.Decode(f)
		f.Close()
		require.NoError(t, err)
		require.Equal(t, [2]int{24, 8}, [2]int{picture.Bounds().Dx(), picture.Bounds().Dy()})
		x := tinyImage(t, w, s.Image)
		for i := range 64 {
			red, _, _, _ := picture.At(i%8, i/8).RGBA()
			require.InDelta(t, 255*x[i], float64(red>>8), .51, "nothing removed: the image")
			if s.Imputer == "zero" {
				red, green, blue, _ := picture.At(16+i%8, i/8).RGBA()
				require.Zero(t, red+green+blue, "everything removed")
			}
		}
	}
}

// Published rows and claims speak of fractions and of all methods together.
func TestRoadPublished(t *testing.T) {
	w := newWorld(t, 4)
	p := w.plan("road", `{method: [weights, random], imputer: zero, fractions: [.1, .5]}`)
	p.Reference = []map[string]any{
		{"metric": "accuracy", "method": "weights", "order": "morf", "imputer": "zero", "fraction": .5, "value": .25, "tolerance": 1},
		{"metric": "order-spearman", "imputer": "zero", "value": .01, "spread": .01},
		{"metric": "road-combined", "method": "random", "value": 0},
	}
	p.Claims = []orchestrate.Claim{{Claim: "lerf keeps more", Metric: "probability", Higher: map[string]any{"order": "lerf"}, Lower: map[string]any{"order": "morf"}}}
	b, err := w.backend.Opener()("cpu", 1)
	require.NoError(t, err)
	r, err := orchestrate.Resolve(t.Context(), p, b)
	require.NoError(t, err)
	require.Empty(t, r.Unmatched())
	r.Plan.Reference = append(r.Plan.Reference, map[string]any{"metric": "accuracy", "fraction": .7, "value": 1})
	require.Len(t, r.Unmatched(), 1)
	r.Close()
	outcome, err := w.run(p, "out")
	require.NoError(t, err)
	read := 0
	for _, row := range outcome.Summary {
		if row.Reference != nil {
			read++
		}
	}
	require.Equal(t, 3, read)
	require.Len(t, outcome.Claims, 2*2, "for each method and fraction")
	for _, c := range outcome.Claims {
		require.Equal(t, 4, c.N)
	}

	p.Reference = []map[string]any{{"metric": "acuracy", "value": 1}}
	_, err = w.run(p, "no")
	require.ErrorContains(t, err, "did you mean accuracy?")
}

// Columns of a table are removed as pixels are; there are no neighbours to impute from,
// no shapes of masks, and nothing to be seen.
func TestRoadOnTables(t *testing.T) {
	w := newWorld(t, 0)
	p := w.columns("{}")
	p.Study, p.Grid = "road", map[string]any{"method": []any{"weights", "random"}}
	_, err := w.run(p, "out")
	require.ErrorIs(t, err, usage.Err)
	require.ErrorContains(t, err, "imputer noisy-linear: columns of a table have no neighbours")
	p.Grid["imputer"], p.Grid["fractions"] = []any{"zero", "noisy-linear"}, []any{.3, 1}
	outcome, err := w.run(p, "out")
	require.NoError(t, err, "where other imputers are asked for, too, it is left out")
	require.Equal(t, 2*2*3, outcome.Units)
	for _, r := range w.roads("out") {
		require.Equal(t, []int{3, 9}, r.Road.Removed, "of nine columns 2.7 and all")
		require.Nil(t, r.Road.MaskVariation)
		require.Nil(t, r.Road.MapVariation)
	}
	require.NoDirExists(t, w.path("out/strips"))
}

// Nets and data entries are settings and frames of their own.
func TestRoadOfSeveralNetsAndData(t *testing.T) {
	w := newWorld(t, 4)
	require.NoError(t, fake.SeededWeights(w.path("other.safetensors"), 10, 77))
	p := w.plan("road", `{method: [weights, random, plain], imputer: zero, fractions: [.2, .6]}`)
	other := p.Nets[0]
	other.Name, other.Weights = "other", w.path("other.safetensors")
	p.Nets = append(p.Nets, other)
	for i := range 3 {
		w.image(fmt.Sprintf("../others/%c/%d.jpg", 'a'+i, i), fmt.Sprint("other ", i))
	}
	p.Data = append(p.Data, orchestrate.DataPlan{Path: w.path("others")})
	outcome, err := w.run(p, "out")
	require.NoError(t, err)
	require.Equal(t, 2*3*2*(4+3), outcome.Units)
	differs := map[string]int{}
	for _, a := range outcome.Consistency.Agreements {
		require.NotEmpty(t, a.Data)
		if a.Metric == "accuracy" {
			differs[a.Differs+" "+a.Pairing]++
		}
	}
	// In each data entry four settings: nets and orders.
	require.Equal(t, map[string]int{"order removed": 4, "order index": 4, "net removed": 4, "net+order removed": 4, "net+order index": 4}, differs)
	require.Len(t, outcome.Consistency.Verdicts, 4)
	for _, v := range outcome.Consistency.Verdicts {
		require.Regexp(t, `^(tiny|other), (data|others), target label, ties random: The ranking`, v)
	}
	for _, c := range outcome.Contests {
		require.Len(t, c.Competitors, 3)
		n := map[string]int{"data": 4, "others": 3}[c.Data]
		require.Equal(t, n, c.Competitors[0].N)
	}

	// Two runs compare by what is over all fractions.
	_, err = w.run(w.plan("road", `{method: [weights, random, plain], imputer: channel-mean, fractions: [.2, .6]}`), "mean")
	require.NoError(t, err)
	_, err = w.run(w.plan("road", `{method: [weights, random, plain], imputer: zero, fractions: [.2, .6]}`), "zero")
	require.NoError(t, err)
	c, err := orchestrate.Compare(t.Context(), w.path("zero"), w.path("mean"), orchestrate.CompareOptions{})
	require.NoError(t, err)
	require.Len(t, c.Groups, 3*2)
	require.Equal(t, "imputer", c.Differ[0].Name)
	require.ElementsMatch(t, []string{"mean-accuracy", "mean-probability", "map-variation"}, []string{c.Groups[0].Scores[0].Metric, c.Groups[0].Scores[1].Metric, c.Groups[0].Scores[2].Metric})
}
