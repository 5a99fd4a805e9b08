package orchestrate_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/assay-xai/assay/internal/usage"
	"github.com/assay-xai/assay/orchestrate"
)

// Every mistake in a plan is one line that says where and what would be right.
func TestMistakesInPlans(t *testing.T) {
	w := newWorld(t, 3)
	head := "version: 1\nstudy: trace\nnets:\n- {net: tiny, weights: DIR/tiny.safetensors, preset: {resize: squash, height: 8, width: 8}}\ndata:\n- path: DIR/data\n"
	for _, c := range []struct{ name, text, want string }{
		{"unknown key", "version: 1\nstudy: trace\nnest: []\n", `plan.yaml:3:1: unknown field "nest"`},
		{"unknown key within", "version: 1\nnets:\n- net: tiny\n  wieghts: a\n", `plan.yaml:4:3: unknown field "wieghts"`},
		{"unknown key of a preset", "version: 1\nnets:\n- net: tiny\n  preset:\n    resiz: none\n", `plan.yaml:5:5: unknown field "resiz"`},
		{"syntax", "version: 1\nnets: [\n", "plan.yaml:2:7: "},
		{"type", "version: 1\nthreads: many\n", "plan.yaml:2:10: "},
		{"twice", "version: 1\nstudy: a\nstudy: b\n", "plan.yaml:3:1: "},
		{"version", "version: 2\n", "plan.yaml:1:10: version 2: want 1"},
		{"empty", "", "want one plan, the file is empty"},
		{"batch", "version: 1\nbatch: big\n", "plan.yaml:2:8: batch big: want auto, or a number"},
		{"study", "version: 1\nstudy: trase\n", `plan.yaml:2:8: study "trase": did you mean trace?`},
		{"grid name", head + "grid:\n  egde: 4\n", `plan.yaml:8:9: study trace has no parameter "egde": did you mean edge?`},
		{"grid type", head + "grid:\n  edge: four\n", "plan.yaml:8:9: edge four: want a whole number"},
		{"solver", head + "grid: {solver: as}\n", `solver "as": did you mean sa?`},
		{"objective", head + "grid: {objective: [le, lemo]}\n", `objective "lemo": did you mean le-mo`},
		{"schedule", head + "grid: {schedule: papper}\n", `schedule "papper" of solver sa: did you mean paper?`},
		{"reference", head + "grid: {reference: blurr}\n", `reference "blurr": did you mean blur?`},
		{"reference parameter", head + "grid: {reference: 'blur(kernal=3)'}\n", `reference blur: parameter "kernal": did you mean kernel?`},
		{"reference range", head + "grid: {reference: 'blur(kernel=0)'}\n", "kernel 0: want at least 1"},
		{"reference text", head + "grid: {reference: 'blur(kernel=3'}\n", "at character 14"},
		{"edge", head + "grid: {edge: 9}\n", "edge 9: want one of 2,4,7,8"},
		{"edge larger than the image", head + "grid: {edge: 14}\n", "edge 14 is larger than the image"},
		{"greedy le-mo", head + "grid: {solver: greedy}\n", "solver greedy cannot maximise le-mo"},
		{"exact", head + "grid: {solver: [exact, complete-search]}\n", "edge 7: trace: solver exact scores all 2^t states, too many for t = 49 features: want at most 16 (of images: edge 2 or 4)"},
		{"schedule of another solver", head + "grid: {solver: complete-search, edge: 4, schedule: paper}\n", `schedule "paper" of solver complete-search: want one of separate, joint`},
		{"start of a map", head + "grid: {solver: order, start: map}\n", `which orders? give --map FILE`},
		{"width", head + "grid: {solver: beam, width: 0}\n", "width 0: want at least 1"},
		{"budget", head + "grid: {iterations: 0}\n", "iterations 0: want at least 1"},
		{"precision", head + "precision: f16\n", `plan.yaml:7:12: precision "f16": did you mean bf16`},
		{"threads", head + "threads: -1\n", "threads -1: want at least 1"},
		{"net", "version: 1\nstudy: eval\nnets:\n- net: tinny\ndata: [{path: a}]\n", `plan.yaml:4:8: net "tinny": did you mean tiny`},
		{"preset", "version: 1\nstudy: eval\nnets:\n- {net: tiny, preset: imagnet}\ndata: [{path: a}]\n", `preset "imagnet": did you mean imagenet`},
		{"device", head + "device: tpu\n", `device "tpu"`},
		{"data", "version: 1\nstudy: eval\nnets: [{net: tiny, weights: DIR/tiny.safetensors}]\ndata: [{path: DIR/nothing}]\n", "DIR/nothing"},
		{"no nets", "version: 1\nstudy: eval\ndata: [{path: a}]\n", "the plan has no nets"},
		{"same net twice", "version: 1\nstudy: eval\nnets: [{net: tiny}, {net: tiny}]\ndata: [{path: a}]\n", "two nets are called tiny"},
		{"seed twice", head + "seeds: [1, 2, 1]\n", "seed 1 is there twice"},
		{"target", head + "grid: {target: best}\n", `target "best": want label, predicted or a class`},
		{"target too large", head + "grid: {target: 10}\n", "target 10: net tiny knows classes 0..9"},
		{"published row", head + "reference: [{metric: value}]\n", "a published row without value"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := orchestrate.ParsePlan("plan.yaml", []byte(subst(c.text, w.dir)))
			if err == nil {
				if p.Batch == 0 {
					p.Batch = 4
				}
				_, err = w.run(p, "out")
			}
			require.ErrorIs(t, err, usage.Err)
			require.ErrorContains(t, err, subst(c.want, w.dir))
			require.NotContains(t, err.Error(), "\n")
			require.NoDirExists(t, w.path("out"))
			w.closed()
		})
	}
}

func TestLabelsAreNeededForTargetLabel(t *testing.T) {
	w := newWorld(t, 0)
	w.image("flat.jpg", "one")
	for _, study := range []string{"eval", "trace"} {
		_, err := w.run(w.plan(study, "{target: label}"), "out")
		require.ErrorIs(t, err, usage.Err)
		require.ErrorContains(t, err, "--labels FILE")
	}
	_, err := w.run(w.plan("eval", "{}"), "out")
	require.NoError(t, err)
	require.NotContains(t, w.read("out/summary.csv"), "top1")
}

func TestScale(t *testing.T) {
	w := newWorld(t, 6)
	text := planText(w.dir, "trace", "{edge: [2, 4], solver: greedy, objective: le}") + "scale:\n  small: {limit: 1, grid: {edge: 2}, seeds: [3]}\n"
	p, err := orchestrate.ParsePlan("plan.yaml", []byte(text))
	require.NoError(t, err)
	outcome, err := w.run(p, "large")
	require.NoError(t, err)
	require.Equal(t, 12, outcome.Units)
	small, err := p.Scaled("small")
	require.NoError(t, err)
	outcome, err = w.run(small, "small")
	require.NoError(t, err)
	require.Equal(t, 1, outcome.Units)
	for _, r := range w.records("small") {
		require.EqualValues(t, 3, r.Seed)
	}
	_, err = p.Scaled("smal")
	require.ErrorContains(t, err, "did you mean small?")
}

// Points of the grid that would do the same are one unit; points that mean
// nothing are left out where others remain.
func TestGridIsAProductWithoutRepeats(t *testing.T) {
	w := newWorld(t, 1)
	var warnings []string
	run := func(grid string) int {
		outcome, err := orchestrate.Run(t.Context(), orchestrate.Job{Plan: w.plan("trace", grid), Open: w.backend.Opener(),
			Progress: func(e orchestrate.Event) {
				if e.Kind == orchestrate.Warning {
					warnings = append(warnings, e.Message)
				}
			}})
		require.NoError(t, err)
		return outcome.Units
	}
	require.Equal(t, 6, run("{edge: [2, 4], solver: sa, iterations: 2, objective: [le, mo, le-mo]}"))
	require.Empty(t, warnings)
	require.Equal(t, 2, run("{edge: 2, solver: greedy, objective: [le, mo], schedule: paper, iterations: [5, 6]}"))
	require.Equal(t, 5, run("{edge: 2, solver: [greedy, sa], iterations: 2, objective: [le, mo, le-mo]}"))
	require.Len(t, warnings, 1)
	require.Equal(t, 1, run("{edge: 2, iterations: 2, reference: ['blur(kernel=15)', 'blur(sigma=56,kernel=15)', 'blur( kernel = 15 )']}"))
	require.Equal(t, 1, run("{edge: 2, iterations: 2, start: [random], schedule: paper, eta: [.999, 0.999]}"))
}

// Every solver in one grid: what a solver does not look at makes no units, and
// what it cannot take is left out, with a word.
func TestGridOfSolvers(t *testing.T) {
	w := newWorld(t, 1)
	grid := func(text string) (outcome orchestrate.Outcome, warnings []string) {
		outcome, err := orchestrate.Run(t.Context(), orchestrate.Job{Plan: w.plan("trace", text), Open: w.backend.Opener(),
			Progress: func(e orchestrate.Event) {
				if e.Kind == orchestrate.Warning {
					warnings = append(warnings, e.Message)
				}
			}})
		require.NoError(t, err)
		return outcome, warnings
	}
	// beam and exact take no budget, no start and no neighbourhood; width is beam's.
	outcome, warnings := grid("{edge: 2, objective: le, solver: [beam, exact], iterations: [1, 2], start: [random, greedy-le], neighbourhood: [star, mix], width: [1, 2]}")
	require.Equal(t, 3, outcome.Units)
	require.Empty(t, warnings)
	outcome, warnings = grid("{edge: 2, solver: order, start: [random, greedy-le], objective: [le, mo]}")
	require.Equal(t, 4, outcome.Units)
	require.Empty(t, warnings)
	// 49 features: annealing alone.
	outcome, warnings = grid("{edge: [4, 7], iterations: 2, solver: [sa, exact, complete-search]}")
	require.Equal(t, 4, outcome.Units)
	require.Len(t, warnings, 1)
	require.Contains(t, warnings[0], "left out of the grid: net tiny: edge 7: trace: solver exact")
	require.Contains(t, warnings[0], "; edge 7: trace: solver complete-search", "all of them")
	outcome, warnings = grid("{edge: 2, iterations: 2, solver: [sa, complete-search], schedule: [paper, joint]}")
	require.Equal(t, 2, outcome.Units)
	require.Len(t, warnings, 1)
}

// From one plan: no search is above the optimum, nor that above its bounds, whose
// records have curves and no trajectory.
func TestRecordsOfBounds(t *testing.T) {
	w := newWorld(t, 0)
	p := w.columns("{iterations: 60, objective: [le, mo, le-mo], scoreOn: [prob, logit], schedule: [paper, separate, joint], " +
		"solver: [sa, tabu, greedy, greedy-le-mo, beam, order, exact, complete-search]}")
	_, err := w.run(p, "out")
	require.NoError(t, err)
	type game struct{ image, objective, on string }
	found := map[game]map[string]float64{}
	for _, r := range w.records("out") {
		require.Empty(t, r.Error)
		g := game{r.Image, r.Objective, r.ScoreOn}
		if found[g] == nil {
			found[g] = map[string]float64{}
		}
		name := r.Solver
		if name == "complete-search" {
			name += " " + r.Params["schedule"].(string)
			require.True(t, r.Bound)
			require.Empty(t, r.Trajectory)
			require.Nil(t, r.Relaxed)
		} else {
			require.False(t, r.Bound)
			require.Len(t, r.Trajectory, 9)
		}
		require.Len(t, r.Curves.Prob.Mo, 10)
		found[g][name] = r.Value
	}
	require.Len(t, found, 18)
	for g, value := range found {
		require.GreaterOrEqual(t, len(value), 7, g)
		for name, v := range value {
			if !strings.HasPrefix(name, "complete-search") {
				require.LessOrEqual(t, v, value["exact"], "%v %s", g, name)
			}
		}
		require.LessOrEqual(t, value["exact"], value["complete-search joint"])
		require.LessOrEqual(t, value["complete-search joint"], value["complete-search separate"])
	}
	// Against a bound, scores compare and orders do not.
	c, err := orchestrate.Compare(t.Context(), w.path("out"), w.path("out"), orchestrate.CompareOptions{
		Where: []string{"A:solver=exact", "B:solver=complete-search", "B:schedule=joint", "objective=le-mo", "scoreOn=prob"}})
	require.NoError(t, err)
	require.Equal(t, 3, c.Matched)
	require.Len(t, c.Groups, 1)
	require.Nil(t, c.Groups[0].Orders)
	require.GreaterOrEqual(t, c.Groups[0].Scores[0].Difference.Mean, 0.)
}

func TestPublishedRows(t *testing.T) {
	w := newWorld(t, 3)
	text := planText(w.dir, "trace", "{edge: [2, 4], solver: greedy, objective: le, reference: 'blur(kernel=15)'}") +
		"reference:\n- {edge: 4, metric: value, value: 1e9, tolerance: 1, spread: .5}\n- {edge: 2, net: tiny, reference: 'blur(kernel=15)', metric: prob-le, value: 0, tolerance: 1e9}\n"
	p, err := orchestrate.ParsePlan("plan.yaml", []byte(text))
	require.NoError(t, err)
	outcome, err := w.run(p, "out")
	require.NoError(t, err)
	readings := map[string]int{}
	for _, row := range outcome.Summary {
		readings[row.Reading]++
		switch row.Reading {
		case "differs":
			require.Equal(t, 4, row.Params["edge"])
			require.InDelta(t, .5, *row.ReferenceSpread, 0)
		case "agrees":
			require.Equal(t, 2, row.Params["edge"])
		}
	}
	require.Equal(t, 1, readings["differs"])
	require.Equal(t, 1, readings["agrees"])
}

func TestTables(t *testing.T) {
	w := newWorld(t, 0)
	text := "version: 1\nstudy: STUDY\nnets: [{net: logistic, weights: DIR/w.safetensors, preset: table}]\ndata: [{path: DIR/t.csv}]\ngrid: GRID\nbatch: 2\nthreads: 1\n"
	_ = text
	t.Chdir(w.dir)
	require.NoError(t, os.WriteFile("t.csv", []byte("a,b,c,d,class\n1,2,3,4,0\n2,1,4,3,1\n5,5,5,0,1\n"), 0o666))
	require.NoError(t, weightsFor(filepath.Join(w.dir, "w.safetensors"), 2))
	for _, c := range []struct{ study, grid string }{{"eval", "{}"}, {"trace", "{iterations: 20, edge: [2, 4]}"}} {
		p, err := orchestrate.ParsePlan("plan.yaml", []byte(substAll(text, w.dir, c.study, c.grid)))
		require.NoError(t, err)
		outcome, err := w.run(p, c.study)
		require.NoError(t, err)
		require.Equal(t, 3, outcome.Units)
		for _, r := range w.records(c.study) {
			require.NotContains(t, r.Params, "edge")
			if c.study == "trace" {
				require.Equal(t, 4, r.Features)
				require.Zero(t, r.EdgePatches)
			}
		}
	}
	p, err := orchestrate.ParsePlan("plan.yaml", []byte(substAll(text, w.dir, "trace", "{solver: exact}")))
	require.NoError(t, err)
	_, err = w.run(p, "exact")
	require.NoError(t, err)
	// 17 columns are too many.
	wide := strings.Repeat("1,", 17)
	require.NoError(t, os.WriteFile("t.csv", []byte("a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q,class\n"+wide+"0\n"+wide+"1\n"), 0o666))
	p, err = orchestrate.ParsePlan("plan.yaml", []byte(substAll(text, w.dir, "trace", "{solver: [exact, complete-search]}")))
	require.NoError(t, err)
	_, err = w.run(p, "wide")
	require.ErrorIs(t, err, usage.Err)
	require.ErrorContains(t, err, "the 17 columns of t.csv: trace: solver exact scores all 2^t states, too many for t = 17 features: want at most 16")
	require.NotContains(t, err.Error(), "\n")
	w.closed()
}

func TestSpecs(t *testing.T) {
	list, err := orchestrate.ParseSpecs("gradient, smoothgrad( integrated-gradients( steps=20 ) , samples=15,noise=.2),x()")
	require.NoError(t, err)
	var texts []string
	for _, s := range list {
		texts = append(texts, s.String())
	}
	require.Equal(t, []string{"gradient", "smoothgrad(integrated-gradients(steps=20),noise=0.2,samples=15)", "x"}, texts)
	for _, bad := range []string{"", ",", "a,", "a(", "a)", "a(b=)", "a(=1)", "a(b=1,b=2)", "a b", "a(b(c(d(e(f(g(h(i(j"} {
		_, err := orchestrate.ParseSpecs(bad)
		require.ErrorIs(t, err, usage.Err, bad)
	}
}

// What a spec prints is read back as itself, and no text makes the parser panic.
func TestSpecsRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[a-c(),= .1]{0,20}`).Draw(t, "text")
		list, err := orchestrate.ParseSpecs(text)
		if err != nil {
			return
		}
		for _, s := range list {
			again, err := orchestrate.ParseSpec(s.String())
			require.NoError(t, err, "%q printed %q", text, s.String())
			require.Equal(t, s.String(), again.String())
		}
	})
}

func TestNearest(t *testing.T) {
	nets := []string{"resnet18", "resnet34", "cifar-resnet20", "efficientnet-lite0", "mlp"}
	require.Equal(t, []string{"resnet18"}, orchestrate.Nearest("resnet-18", nets)[:1])
	require.Equal(t, []string{"efficientnet-lite0"}, orchestrate.Nearest("efficientnet", nets))
	require.Empty(t, orchestrate.Nearest("vgg16", nets))
}

// The batch shape is measured once: the resolved plan has it, and a run that
// goes on takes it from there.
func TestAutoBatchIsKept(t *testing.T) {
	w := newWorld(t, 2)
	p := w.plan("eval", "{}")
	p.Batch, p.Threads, p.Device = 0, 0, ""
	_, err := w.run(p, "out")
	require.NoError(t, err)
	resolved, err := orchestrate.LoadPlan(w.path("out/plan.yaml"))
	require.NoError(t, err)
	require.Positive(t, int(resolved.Batch))
	require.Positive(t, resolved.Threads)
	require.Equal(t, "cpu", resolved.Device)
	outcome, err := w.run(p, "out")
	require.NoError(t, err)
	require.Equal(t, 2, outcome.Before)
}

func TestSummaryColumnsHaveOneMeaning(t *testing.T) {
	w := newWorld(t, 1)
	_, err := w.run(w.plan("trace", "{edge: 2, solver: greedy, objective: le}"), "out")
	require.NoError(t, err)
	head, _, _ := strings.Cut(w.read("out/summary.csv"), "\n")
	seen := map[string]bool{}
	for _, name := range strings.Split(head, ",") {
		require.False(t, seen[name], "two columns %s", name)
		seen[name] = true
	}
	for _, name := range []string{"net", "metric", "mean", "lo", "hi", "n", "reference", "referenceSpread", "reading", "imputer"} {
		require.True(t, seen[name], name)
	}
}

// Another image as reference is a part of what a result depends on.
func TestReferenceImage(t *testing.T) {
	w := newWorld(t, 3)
	grid := "{edge: 4, solver: greedy, objective: le, reference: 'image(image=b/0001.jpg)'}"
	_, err := w.run(w.plan("trace", grid), "one")
	require.NoError(t, err)
	w.image("b/0001.jpg", "another reference")
	_, err = w.run(w.plan("trace", grid), "two")
	require.NoError(t, err)
	w.closed()
	one := w.records("one")
	for id := range w.records("two") {
		require.NotContains(t, one, id)
	}
	_, err = w.run(w.plan("trace", strings.ReplaceAll(grid, "0001", "0009")), "three")
	require.ErrorIs(t, err, usage.Err)
	require.ErrorContains(t, err, "no image of that id")
	require.NoDirExists(t, w.path("three"))
	w.closed()
}
