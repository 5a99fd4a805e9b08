package orchestrate_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/assay-xai/assay/internal/fake"
	"github.com/assay-xai/assay/internal/usage"
	"github.com/assay-xai/assay/orchestrate"
)

// trained is a plan that trains the generator that it uses, on digits of 8x8.
func (w *world) trained(grid string) *orchestrate.Plan {
	p, err := orchestrate.ParsePlan("plan.yaml", []byte(subst("version: 1\nstudy: road\n"+
		"train: [{name: mine, imputer: gain, data: {path: 'embedded:digits', limit: 100}, settings: {epochs: 2, width: 4, augment: none}}]\n"+
		"generator: {weights: 'train:mine'}\n"+
		"nets: [{net: tiny, weights: DIR/tiny.safetensors, preset: digits}]\n"+
		"data: [{path: 'embedded:digits', limit: 6}]\ngrid: "+grid+"\nbatch: 4\nthreads: 1\ndevice: cpu\n", w.dir)))
	require.NoError(w.t, err)
	return p
}

// A plan trains its generator first, once, and names the file that came of it; shards
// train alike, and the merge takes the training over.
func TestPlansTrainTheirGenerator(t *testing.T) {
	w := newWorld(t, 0)
	const grid = "{order: random, imputer: [gain, channel-mean], fractions: [.5, 1]}"
	_, err := w.run(w.trained(grid), "whole")
	require.NoError(t, err)
	require.Contains(t, w.read("whole/plan.yaml"), "generator:\n  weights: "+w.path("whole/train/mine/best.safetensors")+"\n  hash: ")
	require.Regexp(t, `(?m)^  about: epoch [12], validation error \(MSE\) 0?\.\d+, trained on embedded:digits:train$`, w.read("whole/plan.yaml"))
	for _, plan := range []string{"", "whole/plan.yaml"} {
		p := w.trained(grid)
		if plan != "" {
			p, err = orchestrate.LoadPlan(w.path(plan))
			require.NoError(t, err)
		}
		before := w.backend.Calls()
		_, err := w.run(p, "whole")
		require.NoError(t, err)
		require.Equal(t, before, w.backend.Calls(), "neither trained nor measured again")
	}

	folders := w.shards(w.trained(grid), 2)
	_, err = w.merge("merged", folders...)
	require.NoError(t, err)
	require.Equal(t, w.records("whole"), w.records("merged"))
	require.Contains(t, w.read("merged/plan.yaml"), "weights: "+w.path("merged/train/mine/best.safetensors"))
	require.Equal(t, w.read("whole/train/mine/best.safetensors"), w.read("merged/train/mine/best.safetensors"))

	// The file by itself is the same generator.
	p := w.trained(grid)
	p.Train, p.Generator.Weights = nil, w.path("merged/train/mine/best.safetensors")
	_, err = w.run(p, "file")
	require.NoError(t, err)
	require.Equal(t, w.records("whole"), w.records("file"))
	w.closed()
}

// runWith is a run with the events that it told.
func (w *world) runWith(p *orchestrate.Plan, out string) (told []orchestrate.Event, err error) {
	if out != "" {
		out = w.path(out)
	}
	_, err = orchestrate.Run(w.t.Context(), orchestrate.Job{Plan: p, Out: out, Open: w.backend.Opener(), Progress: func(e orchestrate.Event) { told = append(told, e) }})
	return told, err
}

// messages are those of a kind.
func messages(told []orchestrate.Event, kind orchestrate.EventKind) []string {
	var out []string
	for _, e := range told {
		if e.Kind == kind {
			out = append(out, e.Message)
		}
	}
	return out
}

// What is wrong with a plan that trains is said before anything is trained.
func TestMistakesBeforeTraining(t *testing.T) {
	w := newWorld(t, 0)
	const grid = "{order: random, imputer: [gain, channel-mean], fractions: [.5]}"
	plain := w.trained(grid)
	text, err := plain.Marshal()
	require.NoError(t, err)
	for _, c := range [][3]string{
		{"- gain\n", "- gian\n", "did you mean gain"},
		{"order: random", "method: [weihgts]", "did you mean weights"},
		{"order: random", "method: 'weights(x=1)'", `parameter "x"`},
		{"weights: train:mine", "{}", "imputer gain: which generator? the plan trains one: want generator: {weights: train:mine}"},
		{"weights: train:mine", "weights: nowhere", "generator nowhere: there is no such file"},
		{"net: tiny", "net: tinny", "did you mean tiny"},
		{w.path("tiny.safetensors"), w.path("gone.safetensors"), "gone.safetensors"},
		{"- path: embedded:digits\n  limit: 6", "- path: " + w.path("gone.npz"), "no such data: " + w.path("gone.npz")},
		{"    path: embedded:digits", "    path: " + w.path("gone.npz"), "training mine: no such data: " + w.path("gone.npz")},
		{"  imputer: gain", "  preset: digts\n  imputer: gain", "training mine: "},
	} {
		require.Contains(t, string(text), c[0])
		changed := strings.Replace(string(text), c[0], c[1], 1)
		p, err := orchestrate.ParsePlan("plan.yaml", []byte(changed))
		require.NoError(t, err, changed)
		told, err := w.runWith(p, "no")
		require.ErrorIs(t, err, usage.Err, c[1])
		require.ErrorContains(t, err, c[2])
		require.Empty(t, told, "nothing was trained")
		require.NoDirExists(t, w.path("no"))
	}
	p := w.trained(grid)
	p.Train = append(p.Train, orchestrate.TrainEntry{Name: "other", Net: "sofmax", Data: orchestrate.DataPlan{Path: "embedded:digits"}})
	told, err := w.runWith(p, "no")
	require.ErrorIs(t, err, usage.Err)
	require.ErrorContains(t, err, `training other: net "sofmax": did you mean softmax`)
	require.Empty(t, told)
	w.closed()
}

// Trainings that nothing uses are not done.
func TestUnusedTrainings(t *testing.T) {
	w := newWorld(t, 0)
	require.NoError(t, fake.Generator(w.path("file.safetensors"), []int{1, 8, 8}, 1))
	const net = "{name: net, net: softmax-image, data: {path: 'embedded:digits'}}"
	other, err := orchestrate.ParsePlan("", []byte("version: 1\nstudy: road\ntrain: ["+net+"]\n"))
	require.NoError(t, err)
	for _, c := range []struct {
		change func(*orchestrate.Plan)
		grid   string
		want   string
	}{
		{func(p *orchestrate.Plan) { p.Generator.Weights = w.path("file.safetensors") }, "gain", "training mine: the plan's generator is " + w.path("file.safetensors") + ": not trained; generator: {weights: train:mine} would take it"},
		{func(p *orchestrate.Plan) {}, "zero", "training mine: no imputer of the plan wants a generator: not trained"},
		{func(p *orchestrate.Plan) { p.Generator = orchestrate.GeneratorPlan{} }, "zero", "training mine: nothing of the plan uses it: not trained; generator: {weights: train:mine} would take it"},
		{func(p *orchestrate.Plan) { p.Train, p.Generator = other.Train, orchestrate.GeneratorPlan{} }, "zero", "training net: nothing of the plan uses it: not trained; weights: train:net of a net would take it"},
	} {
		p := w.trained("{order: random, imputer: " + c.grid + ", fractions: .5}")
		c.change(p)
		out := t.TempDir()
		told, err := w.runWith(p, strings.TrimPrefix(out, w.dir))
		require.NoError(t, err)
		require.Equal(t, []string{c.want}, messages(told, orchestrate.Warning))
		require.NoDirExists(t, w.path(strings.TrimPrefix(out, w.dir))+"/train")
	}
	w.closed()
}

// Before a plan's training begins it is said what is trained and where, and what it says
// has its name.
func TestTrainingsOfPlansAreAnnounced(t *testing.T) {
	w := newWorld(t, 0)
	p := w.trained("{order: random, imputer: gain, fractions: .5}")
	p.Scale = map[string]orchestrate.Override{"demo": {}}
	told, err := w.runWith(p, "out")
	require.NoError(t, err)
	notes := messages(told, orchestrate.Note)
	require.Equal(t, "training mine (imputer gain) first, into "+w.path("out/train/mine")+"; --generator FILE uses one that is there; --scale demo is quick", notes[0])
	require.Regexp(t, `^mine: epoch 1/2: `, notes[1])
	steps := 0
	for _, e := range told {
		if e.Kind == orchestrate.Step && e.Stage == "mine: training" {
			steps++
		}
	}
	require.Positive(t, steps)
	told, err = w.runWith(p, "out")
	require.NoError(t, err)
	require.Empty(t, messages(told, orchestrate.Note), "it is there")

	p, err = p.Scaled("demo")
	require.NoError(t, err)
	told, err = w.runWith(p, "")
	require.NoError(t, err)
	require.Equal(t, "training mine (imputer gain) first; it is lost without --out FOLDER; --generator FILE uses one that is there", messages(told, orchestrate.Note)[0])
	w.closed()
}
