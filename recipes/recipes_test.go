package recipes_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/assay-xai/assay/internal/fake"
	"github.com/assay-xai/assay/internal/usage"
	"github.com/assay-xai/assay/orchestrate"
	"github.com/assay-xai/assay/recipes"
	"github.com/assay-xai/assay/report"
	"github.com/assay-xai/assay/weights"
)

// catalogue is a fake backend whose nets have the names, inputs and numbers of
// classes that recipes ask for.
type catalogue struct{ *fake.Backend }

// inputs of the nets that recipes name; those without are ImageNet's.
var inputs = map[string][]int{"cifar-resnet20": {3, 32, 32}, "cifar-resnet56": {3, 32, 32}, "cnn3": {1, 8, 8}, "cnn3-cifar": {3, 32, 32}, "mlp": {30}}

func netNames() []string {
	names := []string{"cnn3", "cnn3-cifar", "mlp"}
	for _, p := range weights.Published() {
		names = append(names, p.Net)
	}
	return names
}

func (c catalogue) Catalogue(ctx context.Context) (orchestrate.Catalogue, error) {
	out, err := c.Backend.Catalogue(ctx)
	out.Nets = nil
	for _, name := range netNames() {
		info, _ := c.Describe(ctx, name, 0, 0)
		out.Nets = append(out.Nets, orchestrate.Entry{ID: name, Input: info.Input, Classes: info.Classes, Preset: info.Preset})
	}
	out.Imputers = append(out.Imputers, orchestrate.Entry{ID: "mean"})
	out.Methods = append(out.Methods, methods()...)
	return out, err
}

// methods are those that recipes name, with the parameters that they give.
func methods() []orchestrate.Entry {
	aligned := []orchestrate.EntryParameter{{Name: "align-corners", Type: "bool", Default: false}}
	out := []orchestrate.Entry{
		{ID: "grad-cam", OneChannel: true, Parameters: aligned},
		{ID: "guided-grad-cam", Parameters: aligned},
		{ID: "rise", OneChannel: true, Parameters: []orchestrate.EntryParameter{{Name: "samples", Type: "int", Default: 8000}}},
	}
	for _, id := range []string{"gradient", "input-x-gradient", "gradient-shap", "guided-backprop", "deconvolution"} {
		out = append(out, orchestrate.Entry{ID: id})
	}
	out = append(out, orchestrate.Entry{ID: "integrated-gradients", Parameters: []orchestrate.EntryParameter{{Name: "steps", Type: "int", Default: 50}}})
	for _, id := range []string{"smoothgrad", "smoothgrad-sq", "vargrad"} {
		out = append(out, orchestrate.Entry{ID: id, Base: "gradient", Parameters: []orchestrate.EntryParameter{
			{Name: "samples", Type: "int", Default: 15}, {Name: "noise", Type: "float", Default: .15}, {Name: "scale", Type: "string", Default: "range"}}})
	}
	return out
}

func (c catalogue) Describe(ctx context.Context, net string, classes, features int) (orchestrate.NetInfo, error) {
	info, err := c.Backend.Describe(ctx, "tiny", classes, features)
	info.Net, info.Input, info.Preset = net, []int{3, 224, 224}, "imagenet"
	if in, ok := inputs[net]; ok {
		info.Input, info.Preset = in, "cifar10"
	} else if classes == 0 {
		info, err = c.Backend.Describe(ctx, "tiny", 1000, features)
		info.Net, info.Input, info.Preset = net, []int{3, 224, 224}, "imagenet"
	}
	if net == "cnn3" {
		info.Preset = "digits"
	}
	return info, err
}

func (c catalogue) open(string, int) (orchestrate.Backend, error) { c.Name = "cpu"; return c, nil }

// machine is one that has everything: weights of all nets, and data.
func machine(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", dir)
	t.Setenv(orchestrate.DataVariable, filepath.Join(dir, "data"))
	cache := filepath.Join(dir, "assay", "weights")
	require.NoError(t, os.MkdirAll(cache, 0o777))
	for _, p := range weights.Published() {
		classes := 1000
		if strings.HasPrefix(p.Net, "cifar") {
			classes = 10
		}
		// The content says what it is, whatever the name.
		require.NoError(t, fake.Weights(filepath.Join(cache, "w.safetensors"), classes))
		require.NoError(t, os.Rename(filepath.Join(cache, "w.safetensors"), filepath.Join(cache, p.File)))
	}
	for _, name := range []string{"imagenet-val/n01440764/a.jpg", "imagenet-val/n01443537/b.jpg", "cifar10/airplane/a.jpg", "cifar10/bird/b.jpg"} {
		path := filepath.Join(dir, "data", filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o777))
		require.NoError(t, os.WriteFile(path, []byte(name), 0o666))
	}
}

func parse(t *testing.T, name, scale string) *orchestrate.Plan {
	text, ok := recipes.Text(name)
	require.True(t, ok)
	plan, err := orchestrate.ParsePlan(name+".yaml", text)
	require.NoError(t, err)
	require.NotEmpty(t, plan.Title, "a recipe without title")
	require.NotEmpty(t, plan.Source, "a recipe that does not say what it reproduces")
	plan, err = plan.Scaled(scale)
	require.NoError(t, err)
	return plan
}

// Every recipe is a plan that can be run at every scale, and as it was
// published every published row and every claim speaks of a point of its grid.
func TestRecipesResolve(t *testing.T) {
	machine(t)
	require.NotEmpty(t, recipes.Names())
	for _, name := range recipes.Names() {
		for _, scale := range []string{"", "small", "demo"} {
			t.Run(fmt.Sprint(name, scale), func(t *testing.T) {
				plan := parse(t, name, scale)
				require.True(t, plan.Optional, "a recipe goes on without what is not there: optional: true")
				require.NotEmpty(t, append(plan.Reference, claims(plan)...), "a recipe says what was published")
				imputerOf(t, plan)
				plan.Device, plan.Batch = "cpu", 8
				for i, n := range plan.Nets {
					if strings.HasPrefix(n.Weights, "train:") {
						plan.Nets[i].Weights = filepath.Join(t.TempDir(), "w.safetensors")
						classes := 2 // of the pictures with groups
						if n.Net == "cnn3" {
							classes = 10
						}
						require.NoError(t, fake.Weights(plan.Nets[i].Weights, classes))
					}
				}
				if classes, carried := map[string]int{"cnn3": 10, "cnn3-cifar": 10, "mlp": 2}[plan.Nets[0].Net]; carried && plan.Nets[0].Weights == "" {
					plan.Nets[0].Weights = filepath.Join(t.TempDir(), "w.safetensors")
					require.NoError(t, fake.Weights(plan.Nets[0].Weights, classes))
				}
				r, err := orchestrate.Resolve(t.Context(), plan, catalogue{&fake.Backend{Name: "cpu"}})
				require.NoError(t, err)
				defer r.Close()
				for _, n := range r.Plan.Nets {
					require.Empty(t, n.Absent)
				}
				if scale == "" {
					require.Empty(t, r.Unmatched())
				}
			})
		}
	}
}

// imputerOf puts a generator for the first net's images in the place of the one that a
// plan trains, which is an imputer that the plan takes.
func imputerOf(t *testing.T, plan *orchestrate.Plan) {
	name, trained := strings.CutPrefix(plan.Generator.Weights, "train:")
	require.Equal(t, trained, strings.Contains(fmt.Sprint(plan.Grid["imputer"]), "gain"), "want a generator where one is used")
	if !trained {
		return
	}
	require.Len(t, plan.Train, 1)
	require.Equal(t, name, plan.Train[0].Name)
	require.Equal(t, "gain", plan.Train[0].Imputer)
	require.Equal(t, strings.HasPrefix(plan.Data[0].Path, "embedded:"), strings.HasPrefix(plan.Train[0].Data.Path, "embedded:"), "small scales train on what is carried")
	plan.Generator.Weights = filepath.Join(t.TempDir(), "gain.safetensors")
	require.NoError(t, fake.Generator(plan.Generator.Weights, inputs[plan.Nets[0].Net], 1))
}

// A recipe runs from end to end: its table has the published rows beside what
// was measured, and its report the figures.
func TestARecipeRuns(t *testing.T) {
	machine(t)
	plan := parse(t, "trace-table2", "demo")
	plan.Device, plan.Batch, plan.Threads = "cpu", 8, 1
	plan.Nets[0].Weights = filepath.Join(t.TempDir(), "w.safetensors")
	plan.Grids[1]["iterations"] = []any{100, 200}
	require.NoError(t, fake.Weights(plan.Nets[0].Weights, 10))
	plan.Data[0].Limit = 2
	plan.Reference = append(plan.Reference, map[string]any{"net": "cnn3", "solver": "greedy", "metric": "prob-le-mo", "value": 1., "tolerance": 1e9})
	out := filepath.Join(t.TempDir(), "out")
	outcome, err := orchestrate.Run(t.Context(), orchestrate.Job{Plan: plan, Out: out, Open: catalogue{&fake.Backend{}}.open})
	require.NoError(t, err)
	require.Equal(t, 2*(1+4), outcome.Units)
	readings := map[string]int{}
	for _, row := range outcome.Summary {
		readings[row.Reading]++
		if row.Reading == orchestrate.ReadingNotMeasured {
			require.Equal(t, "resnet18", row.Net)
			require.Contains(t, row.Reason, "scale demo")
			require.NotNil(t, row.Reference)
		}
	}
	require.Equal(t, 10, readings[orchestrate.ReadingNotMeasured])
	require.Equal(t, 1, readings[orchestrate.ReadingAgrees])
	require.NotEmpty(t, outcome.Claims)
	path, err := report.Write(t.Context(), out, report.Options{})
	require.NoError(t, err)
	page, err := os.ReadFile(path)
	require.NoError(t, err)
	for _, want := range []string{"Progress of the searches", "start greedy-le", "scale demo does not measure it", "TRACE (Wang and Wang, ICML 2024), Table 2", "31.6900", "agrees"} {
		require.Contains(t, string(page), want)
	}
}

// Recipes of methods have the searched optimum beside them, and list what the program
// does not have with the reason.
func TestARecipeOfMethodsRuns(t *testing.T) {
	machine(t)
	plan := parse(t, "trace-table1-methods", "demo")
	plan.Device, plan.Batch, plan.Threads = "cpu", 8, 1
	plan.Data[0].Limit = 6 // fewer decide no claim
	plan.Nets[0].Weights = filepath.Join(t.TempDir(), "w.safetensors")
	require.NoError(t, fake.Weights(plan.Nets[0].Weights, 10))
	// The fake's methods for those that it only knows by name.
	plan.Grids = []map[string]any{{"method": []any{"weights", "random"}}, {"baseline": "trace(iterations=50)"}}
	plan.Reference = append(plan.Reference, map[string]any{"net": "cnn3", "method": "trace optimum", "metric": "le-mo(edge=4)", "value": 1., "tolerance": 1e9})
	plan.Claims = append(plan.Claims, orchestrate.Claim{Claim: "above chance", Metric: "le-mo", Higher: map[string]any{"method": "trace optimum"}, Lower: map[string]any{"method": "random"}})
	out := filepath.Join(t.TempDir(), "out")
	outcome, err := orchestrate.Run(t.Context(), orchestrate.Job{Plan: plan, Out: out, Open: catalogue{&fake.Backend{}}.open})
	require.NoError(t, err)
	require.Equal(t, 6*3*(2+1), outcome.Units)
	reasons := map[string]int{}
	for _, row := range outcome.Summary {
		if row.Reading == orchestrate.ReadingNotMeasured {
			require.NotNil(t, row.Reference)
			reasons[row.Reason]++
		}
	}
	// Six nets and three references of each.
	require.Equal(t, map[string]int{"IBA is not there yet": 18, "extremal perturbation is not there yet": 18,
		"excitation backpropagation is not there yet": 18, "scale demo does not measure it": 6 * 18}, reasons)
	holds := 0
	for _, c := range outcome.Claims {
		if c.Claim == "above chance" {
			require.Equal(t, orchestrate.ReadingHolds, c.Reading, c.Metric)
			holds++
		}
	}
	require.Equal(t, 3, holds, "at each reference")
	path, err := report.Write(t.Context(), out, report.Options{})
	require.NoError(t, err)
	page, err := os.ReadFile(path)
	require.NoError(t, err)
	for _, want := range []string{"le-mo(edge=4) · LeRF", "le-mo(edge=4,reference=mean) · MoRF", "trace optimum", "IBA is not there yet", "agrees"} {
		require.Contains(t, string(page), want)
	}
}

// Figures that recipes ask for are those that reports know.
func TestFiguresOfRecipes(t *testing.T) {
	for _, name := range recipes.Names() {
		for _, scale := range []string{"", "small", "demo"} {
			for _, f := range parse(t, name, scale).Report.Figures {
				require.Contains(t, report.FigureKinds(), f["kind"], name)
			}
		}
	}
}

func claims(p *orchestrate.Plan) (out []map[string]any) {
	for _, c := range p.Claims {
		out = append(out, map[string]any{"claim": c.Claim})
	}
	return out
}

// A mistake in the key or the value of a published row does not go unseen.
func TestMistakesInPublishedRows(t *testing.T) {
	machine(t)
	plan := parse(t, "trace-table2", "")
	plan.Device, plan.Batch = "cpu", 8
	for row, want := range map[string]string{
		`{net: resnet18, slover: sa, metric: prob-le-mo}`:   `key "slover": did you mean solver`,
		`{net: resnet18, solver: sa, metric: prob-le-no}`:   `metric "prob-le-no": did you mean prob-le-mo`,
		`{net: resnet81, solver: sa, metric: prob-le-mo}`:   "",
		`{net: resnet18, solver: sb, metric: prob-le-mo}`:   "",
		`{net: resnet18, iterations: 7, metric: seconds}`:   "",
		`{net: resnet18, objective: le, iterations: 5000}`:  "",
		`{net: resnet18, data: cifar10, metric: logit-le}`:  "",
		`{net: resnet18, reference: blur, metric: prob-le}`: "",
	} {
		text := "version: 1\nstudy: trace\nreference:\n- " + strings.TrimSuffix(row, "}") + ", value: 1}\n"
		wrong, err := orchestrate.ParsePlan("wrong.yaml", []byte(text))
		require.NoError(t, err)
		bad := *plan
		bad.Reference = append(bad.Reference, wrong.Reference...)
		r, err := orchestrate.Resolve(t.Context(), &bad, catalogue{&fake.Backend{Name: "cpu"}})
		if want != "" {
			require.ErrorIs(t, err, usage.Err)
			require.ErrorContains(t, err, want)
			continue
		}
		require.NoError(t, err)
		require.Len(t, r.Unmatched(), 1, row)
		require.NoError(t, r.Close())
	}
}

func TestTextOfUnknownRecipes(t *testing.T) {
	for _, name := range []string{"", "trace", "../recipes/trace-table2", "trace-table2.yaml"} {
		_, ok := recipes.Text(name)
		require.False(t, ok, name)
	}
}

// Recipes of removal have published numbers beside measured ones at every fraction, by
// every imputer.
func TestARecipeOfRemovalRuns(t *testing.T) {
	machine(t)
	plan := parse(t, "road-table6", "demo")
	plan.Device, plan.Batch, plan.Threads = "cpu", 8, 1
	plan.Nets[0].Weights = filepath.Join(t.TempDir(), "w.safetensors")
	require.NoError(t, fake.Weights(plan.Nets[0].Weights, 10))
	plan.Data[0].Limit = 2
	plan.Grid["method"] = []any{"weights", "random"} // the fake's, for those that it only knows by name
	plan.Reference = append(plan.Reference,
		map[string]any{"net": "cnn3", "metric": "accuracy", "method": "weights", "order": "morf", "imputer": "noisy-linear", "fraction": .5, "value": 1., "tolerance": 1.},
		map[string]any{"net": "cnn3", "metric": "accuracy", "method": "weights", "order": "lerf", "imputer": "gain", "fraction": .7, "value": 1., "tolerance": 1.},
		map[string]any{"net": "cnn3", "metric": "order-spearman", "imputer": "noisy-linear", "value": 0.})
	out := filepath.Join(t.TempDir(), "out")
	outcome, err := orchestrate.Run(t.Context(), orchestrate.Job{Plan: plan, Out: out, Open: catalogue{&fake.Backend{}}.open})
	require.NoError(t, err)
	require.Equal(t, 2*2*2*3, outcome.Units)
	missing, compared := 0, 0
	for _, row := range outcome.Summary {
		switch {
		case row.Reading == orchestrate.ReadingNotMeasured:
			missing++
			require.Equal(t, "scale demo does not measure it", row.Reason)
		case row.Reference != nil:
			compared++
		}
	}
	require.Equal(t, 2*3*7, missing, "orders, imputers and fractions of the table")
	require.GreaterOrEqual(t, compared, 2)
	require.FileExists(t, filepath.Join(out, "train", "gain", "best.safetensors"), "what the plan imputes with")
	path, err := report.Write(t.Context(), out, report.Options{})
	require.NoError(t, err)
	page, err := os.ReadFile(path)
	require.NoError(t, err)
	for _, want := range []string{"Is the ranking stable?", "What the net saw", "What it takes", "gain", "Table 6", "agrees"} {
		require.Contains(t, string(page), want)
	}
}
