package orchestrate_test

import (
	"encoding/csv"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/assay-xai/assay/internal/fake"
	"github.com/assay-xai/assay/internal/usage"
	"github.com/assay-xai/assay/orchestrate"
)

func (w *world) parse(text string) *orchestrate.Plan {
	p, err := orchestrate.ParsePlan("plan.yaml", []byte(subst(text, w.dir)))
	require.NoError(w.t, err)
	return p
}

const optionalPlan = `version: 1
study: trace
optional: true
nets:
- {net: tiny, weights: DIR/tiny.safetensors, preset: &p {resize: squash, height: 8, width: 8, channels: 3, mean: [0, 0, 0], std: [1, 1, 1]}}
- {net: tiny-wide, weights: DIR/later.safetensors, preset: {resize: squash, height: 8, width: 8, channels: 3, mean: [0, 0, 0], std: [1, 1, 1]}}
data:
- {path: DIR/nothing, name: absent}
- {path: DIR/data, name: there}
grid: {edge: 2, solver: greedy, objective: le}
batch: 4
threads: 1
reference:
- {net: tiny, data: there, metric: value, value: 1, tolerance: 1e9}
- {net: tiny-wide, metric: value, value: 2, tolerance: 1e9, note: of another net}
- {net: tiny-wide, metric: prob-mo, value: 3}
claims:
- {claim: one is better, metric: value, higher: {net: tiny-wide}, lower: {net: tiny}}
`

// What is not there is listed, and the rest runs; what has come since is
// measured by the same command.
func TestOptionalPlansGoOnWithoutWhatIsAbsent(t *testing.T) {
	w := newWorld(t, 3)
	outcome, err := w.run(w.parse(optionalPlan), "out")
	require.NoError(t, err)
	require.Equal(t, 3, outcome.Units)
	var missing []orchestrate.SummaryRow
	for _, row := range outcome.Summary {
		switch row.Reading {
		case orchestrate.ReadingNotMeasured:
			missing = append(missing, row)
		case orchestrate.ReadingAgrees:
			require.Equal(t, "tiny", row.Net)
		default:
			require.Empty(t, row.Reading)
		}
	}
	require.Len(t, missing, 3)
	require.Equal(t, "tiny-wide", missing[0].Net)
	require.Equal(t, "value", missing[0].Metric)
	require.Equal(t, 2., *missing[0].Reference)
	require.Equal(t, "of another net", missing[0].Note)
	require.Contains(t, missing[0].Reason, w.path("later.safetensors"))
	require.Equal(t, "absent", missing[2].Params["data"])
	require.Contains(t, missing[2].Reason, w.path("nothing"))
	require.Equal(t, orchestrate.ReadingNotMeasured, outcome.Claims[0].Reading)
	require.Contains(t, outcome.Claims[0].Reason, "later.safetensors")

	var rows []map[string]any
	require.NoError(t, json.Unmarshal([]byte(w.read("out/summary.json")), &rows))
	last := rows[len(rows)-1]
	require.Nil(t, last["mean"])
	require.Contains(t, last, "mean")
	require.EqualValues(t, 0, last["n"])
	require.Equal(t, "not measured", last["reading"])
	require.Contains(t, w.read("out/summary.csv"), ",value,,,,0,2,,not measured,")

	require.NoError(t, fake.Weights(w.path("later.safetensors"), 10))
	outcome, err = w.run(w.parse(optionalPlan), "out")
	require.NoError(t, err)
	require.Equal(t, 6, outcome.Units)
	require.Equal(t, 3, outcome.Before, "what was measured before is not measured again")
	require.Equal(t, 3, outcome.Claims[0].N)
	scaled, err := w.parse(strings.Replace(optionalPlan, "batch: 4", "batch: 4\nscale: {one: {limit: 1}, two: {limit: 2}}", 1)).Scaled("one")
	require.NoError(t, err)
	single, err := w.run(scaled, "single")
	require.NoError(t, err)
	require.Equal(t, orchestrate.ReadingUndecided, single.Claims[0].Reading)
	scaled.Data[1].Path = w.path("gone")
	_, err = w.run(scaled, "none")
	require.ErrorContains(t, err, "or take another scale: --scale two")
	require.NotContains(t, w.read("out/summary.csv"), "later.safetensors")

	// The plan that OUT has is the same plan.
	again, err := orchestrate.LoadPlan(w.path("out/plan.yaml"))
	require.NoError(t, err)
	outcome, err = w.run(again, "out")
	require.NoError(t, err)
	require.Equal(t, 6, outcome.Before)
	w.closed()
}

func TestNothingOfAnOptionalPlanIsThere(t *testing.T) {
	w := newWorld(t, 1)
	for text, want := range map[string]string{
		strings.ReplaceAll(optionalPlan, "DIR/tiny.saf", "DIR/gone.saf"):                                                   "are published) (and 1 more)",
		strings.ReplaceAll(optionalPlan, "DIR/data", "DIR/gone"):                                                           "nothing of this plan can be measured here: no such data",
		strings.ReplaceAll(optionalPlan, "DIR/data", "data:cifar10"):                                                       "nothing of this plan",
		strings.Replace(optionalPlan, "optional: true\n", "", 1):                                                           "no such data",
		strings.Replace(optionalPlan, "path: DIR/nothing", "path: data:imagenet-vel", 1):                                   `data "data:imagenet-vel": did you mean data:imagenet-val`,
		strings.Replace(optionalPlan, "batch: 4", "scale: {tiny: {limit: 1}}", 1) + "# DIR/data":                           "",
		strings.ReplaceAll(strings.Replace(optionalPlan, "batch: 4", "scale: {demo: {limit: 1}}", 1), "DIR/data", "DIR/x"): "or take another scale: --scale demo",
	} {
		p := w.parse(text)
		p.Batch = 4
		_, err := w.run(p, "none")
		if want == "" {
			require.NoError(t, err)
			require.NoError(t, os.RemoveAll(w.path("none")))
			continue
		}
		require.ErrorIs(t, err, usage.Err)
		require.ErrorContains(t, err, want)
		require.NoDirExists(t, w.path("none"))
		w.closed()
	}
}

// Data that is called by name is found in the folders of the variable, the
// first name first; weights that the cache lacks lie there too.
func TestPlaces(t *testing.T) {
	w := newWorld(t, 0)
	t.Setenv("XDG_CACHE_HOME", w.path("cache"))
	t.Setenv(orchestrate.DataVariable, w.path("a")+string(filepath.ListSeparator)+w.path("b"))
	w.image("../b/imagenet-val-2/n/1.jpg", "one")
	w.image("../b/imagenet-val-2/n/2.jpg", "two")
	text := strings.ReplaceAll(optionalPlan, "DIR/data, name: there", "data:imagenet-val")
	outcome, err := w.run(w.parse(text), "first")
	require.NoError(t, err)
	require.Equal(t, 2, outcome.Units)
	require.Contains(t, w.read("first/plan.yaml"), "name: imagenet-val\n")
	w.image("../a/imagenet-val/n/1.jpg", "one")
	outcome, err = w.run(w.parse(text), "second")
	require.NoError(t, err)
	require.Equal(t, 1, outcome.Units, "the name itself comes before one that begins with it")
}

// The parts of grids are products of their own, over the values of grid.
func TestGridsArePutTogether(t *testing.T) {
	w := newWorld(t, 1)
	p := w.plan("trace", "{edge: [2, 4], objective: le}")
	p.Grids = []map[string]any{{"solver": "greedy"}, {"solver": "sa", "iterations": []any{2, 3}, "edge": 2}, {"solver": "greedy", "edge": 4}}
	outcome, err := w.run(p, "out")
	require.NoError(t, err)
	require.Equal(t, 2+2, outcome.Units, "the third part is within the first")
	again, err := orchestrate.LoadPlan(w.path("out/plan.yaml"))
	require.NoError(t, err)
	outcome, err = w.run(again, "out")
	require.NoError(t, err)
	require.Equal(t, outcome.Units, outcome.Before)
	p.Grids[1]["iterations"] = 4
	_, err = w.run(p, "out")
	require.ErrorContains(t, err, "grids[")
	_, err = w.run(w.parse(planText(w.dir, "trace", "{}")+"grids:\n- {edge: 2}\n- {egde: 2}\n"), "bad")
	require.ErrorContains(t, err, `study trace has no parameter "egde": did you mean edge?`)
	require.ErrorContains(t, err, "plan.yaml:15:")
}

func TestClaims(t *testing.T) {
	w := newWorld(t, 6)
	text := planText(w.dir, "trace", "{edge: [2, 4], objective: le-mo, start: random}") + `grids:
- {solver: [exact, order]}
- {solver: complete-search, schedule: [separate, joint]}
claims:
- {claim: right, metric: value, higher: {solver: exact}, lower: {solver: order}}
- {claim: wrong, metric: value, higher: {solver: order, edge: 4}, lower: {solver: exact, edge: 4}}
- {claim: bound, metric: value, higher: {solver: exact}, lower: {solver: complete-search, schedule: joint}, within: 1e-9}
- {claim: loose, metric: value, higher: {solver: complete-search, schedule: joint, edge: 4}, lower: {solver: order, edge: 4}, within: 0}
- {claim: other, metric: value, higher: {solver: exact}, lower: {solver: order, edge: 7}}
- {claim: to be seen}
`
	outcome, err := w.run(w.parse(text), "out")
	require.NoError(t, err)
	got := map[string][]string{}
	for _, c := range outcome.Claims {
		got[c.Claim] = append(got[c.Claim], c.Reading)
		if c.Difference != nil {
			require.Equal(t, 6, c.N)
			require.LessOrEqual(t, *c.Lo, *c.Difference)
			require.GreaterOrEqual(t, *c.Hi, *c.Difference)
		}
	}
	require.Equal(t, map[string][]string{
		"right":      {"holds", "holds"}, // at each edge
		"wrong":      {"does not hold"},
		"bound":      {"holds", "holds"},
		"loose":      {"does not hold"},
		"other":      {"not measured"},
		"to be seen": {"see the figures"},
	}, got)
	var rows []orchestrate.ClaimRow
	require.NoError(t, json.Unmarshal([]byte(w.read("out/claims.json")), &rows))
	require.Equal(t, outcome.Claims[0].Reading, rows[0].Reading)
	require.Equal(t, *outcome.Claims[0].Difference, *rows[0].Difference)

	for claim, want := range map[string]string{
		"{metric: value, higher: {edge: 2}, lower: {edge: 4}}":           "a claim without its words",
		"{claim: x, metric: value, higher: {edge: 2}}":                   "want both higher and lower",
		"{claim: x, metric: vale, higher: {edge: 2}, lower: {edge: 4}}":  `metric "vale": did you mean value`,
		"{claim: x, metric: value, higher: {egde: 2}, lower: {edge: 4}}": `key "egde": did you mean edge`,
	} {
		_, err := w.run(w.parse(planText(w.dir, "trace", "{edge: 2}")+"claims: ["+claim+"]\n"), "bad")
		require.ErrorIs(t, err, usage.Err)
		require.ErrorContains(t, err, want)
	}
}

// Few images decide nothing, not even where they leave no doubt among themselves; one
// has no bounds in tables.
func TestClaimsOfFewImages(t *testing.T) {
	for n := 1; n <= orchestrate.MinClaimImages; n++ {
		w := newWorld(t, n)
		text := planText(w.dir, "trace", "{edge: 4, objective: le-mo, start: random, solver: [exact, order]}") + `claims:
- {claim: same, metric: value, higher: {solver: exact}, lower: {solver: exact}, within: 1e-9}
`
		outcome, err := w.run(w.parse(text), "out")
		require.NoError(t, err)
		require.Len(t, outcome.Claims, 1)
		c := outcome.Claims[0]
		require.Equal(t, n, c.N)
		require.Zero(t, *c.Lo)
		require.Zero(t, *c.Hi)
		if n < orchestrate.MinClaimImages {
			require.Equal(t, orchestrate.ReadingUndecided, c.Reading, n)
			require.Contains(t, c.Reason, "want at least 5")
		} else {
			require.Equal(t, orchestrate.ReadingHolds, c.Reading)
			require.Empty(t, c.Reason)
		}
		lines, err := csv.NewReader(strings.NewReader(w.read("out/summary.csv"))).ReadAll()
		require.NoError(t, err)
		lo, mean := slices.Index(lines[0], "lo"), slices.Index(lines[0], "mean")
		for _, line := range lines[1:] {
			require.NotEmpty(t, line[mean])
			require.Equal(t, n == 1, line[lo] == "")
			require.Equal(t, n == 1, line[lo+1] == "")
		}
	}
}

// A claim of a score without parameters is of all metrics of that name, and one with
// a reason is listed as not measured.
func TestClaimsOfScores(t *testing.T) {
	w := newWorld(t, 3)
	text := planText(w.dir, "score", `{metric: ["le-mo(edge=2)", "le-mo(edge=2,output=logit)", sparseness]}`) + `grids:
- {method: [weights, random]}
- {baseline: trace(iterations=200)}
claims:
- {claim: all, metric: le-mo, higher: {method: trace optimum}, lower: {method: random}}
- {claim: one, metric: 'le-mo(edge=2,output=logit)', higher: {method: trace optimum}, lower: {method: random}}
- {claim: none, metric: mo, higher: {method: trace optimum}, lower: {method: random}}
- {claim: later, reason: not there yet}
`
	outcome, err := w.run(w.parse(text), "out")
	require.NoError(t, err)
	type found struct{ claim, metric, reading, reason string }
	var got []found
	for _, c := range outcome.Claims {
		if c.Difference != nil { // no order is above the optimum, and three images say no more
			require.GreaterOrEqual(t, *c.Difference, 0.)
			require.Equal(t, 3, c.N)
			require.Equal(t, orchestrate.ReadingUndecided, c.Reading)
			require.Contains(t, c.Reason, "3 images cannot decide")
			c.Reading, c.Reason = "compared", ""
		}
		got = append(got, found{c.Claim, c.Metric, c.Reading, c.Reason})
	}
	require.Equal(t, []found{
		{"all", "le-mo(edge=2)", "compared", ""},
		{"all", "le-mo(edge=2,output=logit)", "compared", ""},
		{"one", "le-mo(edge=2,output=logit)", "compared", ""},
		{"none", "mo", "not measured", "no two settings of this run to compare"},
		{"later", "", "not measured", "not there yet"},
	}, got)
	_, err = w.run(w.parse(planText(w.dir, "score", "{metric: sparseness}")+
		"claims: [{claim: x, metric: sparseness, higher: {method: weights}, lower: {method: random}, reason: later}]\n"), "bad")
	require.ErrorIs(t, err, usage.Err)
	require.ErrorContains(t, err, "or a reason why it is not measured")
}

// Published rows of what is not there are listed with their reason, and need no
// value; those that could be measured all the same are mistakes of the plan.
func TestPublishedRowsWithAReason(t *testing.T) {
	w := newWorld(t, 2)
	rows := `reference:
- {net: tiny, method: iba, metric: sparseness, value: 3, reason: IBA is not there yet}
- {net: tiny, method: lrp, reason: LRP is not there yet}
- {net: tiny, method: random, metric: sparseness, value: 0.5, tolerance: 1}
`
	text := planText(w.dir, "score", "{metric: sparseness, method: [weights, random]}") + rows
	outcome, err := w.run(w.parse(text), "out")
	require.NoError(t, err)
	missing := map[string]orchestrate.SummaryRow{}
	for _, row := range outcome.Summary {
		if row.Reading == orchestrate.ReadingNotMeasured {
			missing[row.Reason] = row
		} else if row.Params["method"] == "random" {
			require.Equal(t, orchestrate.ReadingAgrees, row.Reading)
		}
	}
	require.Len(t, missing, 2)
	require.Equal(t, 3., *missing["IBA is not there yet"].Reference)
	require.Equal(t, "iba", missing["IBA is not there yet"].Params["method"])
	require.Nil(t, missing["LRP is not there yet"].Reference)
	require.Contains(t, w.read("out/summary.csv"), "LRP is not there yet")

	for text, want := range map[string]int{
		text: 0,
		text + "- {net: tiny, method: weights, metric: sparseness, value: 1, reason: not there}\n": 1,
		text + "- {net: tiny, method: wieghts, metric: sparseness, value: 1}\n":                    1,
	} {
		r, err := orchestrate.Resolve(t.Context(), w.parse(text), w.backend)
		require.NoError(t, err)
		require.Len(t, r.Unmatched(), want)
		require.NoError(t, r.Close())
	}
	_, err = w.run(w.parse(text+"- {net: tiny, method: random}\n"), "bad")
	require.ErrorIs(t, err, usage.Err)
	require.ErrorContains(t, err, "a published row without value")
}

// Settings are compared that differ in what the claim speaks of, and in what
// follows from that: the start of another solver, the temperature of another
// output; and not those with another budget.
func TestClaimsCompareLikeWithLike(t *testing.T) {
	w := newWorld(t, 2)
	text := planText(w.dir, "trace", "{edge: 4, objective: le-mo}") + `grids:
- {solver: order, start: random}
- {solver: sa, start: [random, greedy-le], iterations: [5, 10], scoreOn: [prob, logit]}
- {solver: [sa, hill-climbing], start: random, evaluations: 100}
claims:
- {claim: solver, metric: prob-le-mo, higher: {solver: sa}, lower: {solver: order}}
- {claim: output, metric: prob-le-mo, higher: {scoreOn: prob}, lower: {scoreOn: logit}}
- {claim: start, metric: prob-le-mo, higher: {start: greedy-le}, lower: {start: random, solver: sa}}
- {claim: budget, metric: prob-le-mo, higher: {solver: sa}, lower: {solver: hill-climbing}}
`
	outcome, err := w.run(w.parse(text), "out")
	require.NoError(t, err)
	got := map[string]int{}
	for _, c := range outcome.Claims {
		require.NotNil(t, c.Difference, c.Claim)
		got[c.Claim]++
	}
	// By probability from the random start: two numbers of iterations, and 100
	// evaluations; two starts and two numbers; two outputs and two numbers; the
	// same budget.
	require.Equal(t, map[string]int{"solver": 3, "output": 4, "start": 4, "budget": 1}, got)
}

// Seconds differ from run to run: summaries have them only where asked for.
func TestCostMetricsAreAskedFor(t *testing.T) {
	w := newWorld(t, 1)
	_, err := w.run(w.plan("trace", "{edge: 2, solver: greedy, objective: le}"), "without")
	require.NoError(t, err)
	require.NotContains(t, w.read("without/summary.csv"), ",seconds,")
	_, err = w.run(w.parse(planText(w.dir, "trace", "{edge: 2, solver: greedy, objective: le}")+"reference: [{metric: seconds, value: 1}]\n"), "with")
	require.NoError(t, err)
	require.Contains(t, w.read("with/summary.csv"), ",seconds,")
}

const trainedPlan = `version: 1
study: eval
train:
- {name: one, net: softmax-image, data: {path: embedded:digits, limit: 400}, validation: none, settings: {epochs: 3, batchSize: 50, optimizer: adam, rate: 0.01, weightDecay: 0}}
nets:
- {net: softmax-image, weights: train:one}
data:
- {path: embedded:digits, split: test, limit: 100}
batch: 8
threads: 1
`

// A plan trains what it needs, once.
func TestPlansTrainFirst(t *testing.T) {
	w := newWorld(t, 0)
	outcome, err := w.run(w.parse(trainedPlan), "out")
	require.NoError(t, err)
	require.Equal(t, "one", outcome.Summary[0].Net)
	require.Greater(t, outcome.Summary[0].Mean, .5)
	require.FileExists(t, w.path("out/train/one/best.safetensors"))
	before := w.backend.Calls()
	outcome, err = w.run(w.parse(trainedPlan), "out")
	require.NoError(t, err)
	require.Equal(t, outcome.Units, outcome.Before)
	require.Equal(t, before, w.backend.Calls(), "neither trained nor measured again")
	_, err = w.run(w.parse(strings.Replace(trainedPlan, "epochs: 3", "epochs: 2", 1)), "out")
	require.ErrorContains(t, err, "training.epochs is 3 there and 2 here")
	_, err = w.run(w.parse(trainedPlan), "") // into a temporary folder
	require.NoError(t, err)
	w.closed()

	for _, c := range [][3]string{
		{"train:one", "train:on", `weights train:on: did you mean one`},
		{"name: one", "name: ../one", "want a name that is good for a folder"},
		{"epochs: 3", "epochs: 0", "epochs 0: want at least 1"},
		{"epochs: 3", "epohcs: 3", "epohcs"},
		{"net: softmax-image, data", "data", "without its net"},
		{"embedded:digits, limit", "data:nothing, limit", `data "data:nothing"`},
	} {
		_, err := w.run(w.parse(strings.Replace(trainedPlan, c[0], c[1], 1)), "bad")
		require.ErrorIs(t, err, usage.Err)
		require.ErrorContains(t, err, c[2])
	}
}

// Four patches of an image of 4 x 4; the object is the upper left patch and the
// left half of the upper right one.
func TestForegroundByHand(t *testing.T) {
	patches := []int32{0, 0, 1, 1, 0, 0, 1, 1, 2, 2, 3, 3, 2, 2, 3, 3}
	mask := make([]bool, 16)
	for _, i := range []int{0, 1, 4, 5, 2, 6} {
		mask[i] = true
	}
	// Patch 0 is most relevant, then 1, 2, 3: psi = 1, (3/4)^2, (2/4)^2, (1/4)^2.
	f, ok := orchestrate.MeasureForeground([]int{3, 2, 1, 0}, patches, mask, 2)
	require.True(t, ok)
	require.InDelta(t, 6./16, f.Area, 1e-15)
	// On it: 4*1 + 2*9/16; in all: 4*(1 + 9/16 + 4/16 + 1/16) = 7.5.
	require.InDelta(t, (4+18./16)/7.5/(6./16), f.Mass, 1e-12)
	// The last ceil(.1*4) = 1 and ceil(.25*4) = 1 patch, and the last two.
	require.InDeltaSlice(t, []float64{1, 1, .75}, f.Last, 1e-15)

	f, _ = orchestrate.MeasureForeground([]int{0, 1, 2, 3}, patches, mask, 1)
	require.InDelta(t, (4*.25+2*.5)/(4*2.5)/(6./16), f.Mass, 1e-12)
	require.InDeltaSlice(t, []float64{0, 0, 0}, f.Last, 1e-15)

	// Patches of different sizes: 3 x 3 pixels in 2 x 2 patches of 1, 2, 2 and 4.
	f, _ = orchestrate.MeasureForeground([]int{0, 1, 2, 3}, []int32{0, 1, 1, 2, 3, 3, 2, 3, 3}, []bool{true, false, false, false, true, false, false, false, false}, 1)
	require.InDelta(t, 2./9, f.Area, 1e-15)
	require.InDelta(t, (.25+1)/(.25+2*.5+2*.75+4*1)/(2./9), f.Mass, 1e-12)
	require.InDeltaSlice(t, []float64{1. / 4, 1. / 4, 1. / 6}, f.Last, 1e-15)

	for _, all := range []bool{false, true} {
		even := make([]bool, 16)
		for i := range even {
			even[i] = all
		}
		_, ok = orchestrate.MeasureForeground([]int{0, 1, 2, 3}, patches, even, 2)
		require.False(t, ok, "nothing to tell apart")
	}
}
