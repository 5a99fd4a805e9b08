package orchestrate_test

import (
	"encoding/binary"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/assay-xai/assay/dataset"
	"github.com/assay-xai/assay/internal/fake"
	"github.com/assay-xai/assay/internal/record"
	"github.com/assay-xai/assay/internal/rng"
	"github.com/assay-xai/assay/internal/usage"
	"github.com/assay-xai/assay/orchestrate"
	"github.com/assay-xai/assay/weights"
)

// generators writes files for imputer gain on the world's images: two and a copy.
func (w *world) generators() {
	require.NoError(w.t, fake.Generator(w.path("one.safetensors"), []int{3, 8, 8}, 1))
	require.NoError(w.t, fake.Generator(w.path("two.safetensors"), []int{3, 8, 8}, 2))
	require.NoError(w.t, os.WriteFile(w.path("copy.bin"), []byte(w.read("one.safetensors")), 0o666))
}

// gain is a plan with a generator.
func (w *world) gain(study, grid, generator string) *orchestrate.Plan {
	p := w.plan(study, grid)
	p.Generator.Weights = w.path(generator)
	return p
}

// idsBy are the ids of a run's records by imputer.
func (w *world) idsBy(out string) map[string][]string {
	ids := map[string][]string{}
	for id, r := range w.records(out) {
		key := r.Params["imputer"]
		if key == nil {
			key = r.Params["reference"]
		}
		ids[key.(string)] = append(ids[key.(string)], id)
	}
	for _, list := range ids {
		slices.Sort(list)
	}
	return ids
}

// The mean image stands for everything, whatever the data, and noise by seed and image.
func TestGainWithEverythingRemoved(t *testing.T) {
	w := newWorld(t, 3)
	w.generators()
	p := w.gain("road", "{method: weights, imputer: gain, order: [morf, lerf], fractions: [0, 1]}", "one.safetensors")
	_, err := w.run(p, "out")
	require.NoError(t, err)
	sd, err := weights.Open(w.path("one.safetensors"))
	require.NoError(t, err)
	mean := sd.Tensors["mfv"].Data
	found := w.roads("out")
	require.Len(t, found, 2*3)
	for _, r := range found {
		noise := rng.Stream{Key: rng.Key(0, "impute", r.Image)}
		x := make([]float64, 192)
		for i := range x {
			x[i] = float64(float32(float64(math.Float32frombits(binary.LittleEndian.Uint32(mean[4*i:]))) + .01*noise.Normal(uint64(i), 0)))
		}
		require.InDelta(t, tinyAnswer(tinyWeights(t, w), x)[r.Target], r.Road.Probabilities[1], 1e-9)
		require.InDelta(t, r.Prediction.Probabilities[0], r.Road.PredictedProbabilities[0], 1e-12)
	}
	w.closed()

	// The mean of all of the data takes no part: a unit of less data is the same unit.
	p.Data[0].Limit = 1
	_, err = w.run(p, "less")
	require.NoError(t, err)
	all := w.records("out")
	for id, r := range w.records("less") {
		require.Equal(t, all[id], r)
	}
}

// A generator's content is part of the ids of the units that use it, its path is not,
// and no other id has anything of it: those here were made before there were any.
func TestGeneratorsInIDs(t *testing.T) {
	w := newWorld(t, 1)
	w.generators()
	for study, c := range map[string]struct{ grid, other, id string }{
		"road":  {"{method: weights, imputer: [noisy-linear, gain], order: morf, fractions: [.5, 1]}", "noisy-linear", "a7f77837e3e467446a788503"},
		"trace": {"{edge: 2, iterations: 2, reference: [zero, gain]}", "zero", "5ef19dd423e1a7b42423e2e6"},
	} {
		ids := map[string]map[string][]string{}
		for _, name := range []string{"one.safetensors", "two.safetensors", "copy.bin"} {
			out := study + " " + name
			_, err := w.run(w.gain(study, c.grid, name), out)
			require.NoError(t, err)
			ids[name] = w.idsBy(out)
			require.Equal(t, []string{c.id}, ids[name][c.other])
			require.Len(t, ids[name]["gain"], 1)
			plan := w.read(out + "/plan.yaml")
			require.Contains(t, plan, "generator:\n  weights: "+w.path(name)+"\n  hash: ")
		}
		require.Equal(t, ids["one.safetensors"], ids["copy.bin"])
		require.NotEqual(t, ids["one.safetensors"]["gain"], ids["two.safetensors"]["gain"])
		one, two := w.records(study+" one.safetensors"), w.records(study+" two.safetensors")
		a, b := one[ids["one.safetensors"]["gain"][0]], two[ids["two.safetensors"]["gain"][0]]
		if study == "road" {
			require.NotEqual(t, a.Road.Probabilities, b.Road.Probabilities)
		} else {
			require.NotEqual(t, a.Trace.Curves, b.Trace.Curves)
		}

		// A copy is the same run, another generator is not.
		outcome, err := w.run(w.gain(study, c.grid, "copy.bin"), study+" one.safetensors")
		require.NoError(t, err)
		require.Equal(t, 2, outcome.Before)
		_, err = w.run(w.gain(study, c.grid, "two.safetensors"), study+" one.safetensors")
		require.ErrorIs(t, err, usage.Err)
		require.ErrorContains(t, err, "holds another run: generator (hash) is ")

		compared, err := orchestrate.Compare(t.Context(), w.path(study+" one.safetensors"), w.path(study+" two.safetensors"), orchestrate.CompareOptions{})
		require.NoError(t, err)
		require.Len(t, compared.Plans, 1)
		require.Equal(t, "generator", compared.Plans[0].Name)
	}
	w.closed()
}

// A search finds with a generator what a game with it says: its last state, all deleted,
// is the mean image and noise.
func TestTraceWithAGenerator(t *testing.T) {
	w := newWorld(t, 2)
	w.generators()
	_, err := w.run(w.gain("trace", "{edge: 2, iterations: 5, reference: gain, target: label}", "one.safetensors"), "out")
	require.NoError(t, err)
	sd, err := weights.Open(w.path("one.safetensors"))
	require.NoError(t, err)
	mean := sd.Tensors["mfv"].Data
	for _, r := range w.records("out") {
		noise := rng.Stream{Key: rng.Key(0, "reference", r.Image)}
		x := make([]float64, 192)
		for i := range x {
			x[i] = float64(float32(float64(math.Float32frombits(binary.LittleEndian.Uint32(mean[4*i:]))) + .01*noise.Normal(uint64(i), 0)))
		}
		require.InDelta(t, tinyAnswer(tinyWeights(t, w), x)[r.Target], r.Trace.Curves.Prob.Le[4], 1e-9)
	}
	w.closed()
}

// Trajectories of a search with a generator are scored on other nets with it, too.
func TestTransferWithAGenerator(t *testing.T) {
	w := newWorld(t, 2)
	ids := map[string]bool{}
	for i, name := range []string{"first", "second"} {
		p := w.threeNets("transfer", "{edge: 2, iterations: 3, reference: gain}")
		p.Generator.Weights = w.path(name)
		require.NoError(t, fake.Generator(p.Generator.Weights, []int{3, 8, 8}, uint64(i)))
		outcome, err := w.run(p, "with "+name)
		require.NoError(t, err)
		require.Equal(t, 2*3*3, outcome.Units)
		for id, r := range w.records("with " + name) {
			require.False(t, ids[id], "a search and what is scored of it are of one generator")
			ids[id] = true
			require.NotNil(t, r.Trace)
		}
	}
	w.closed()
}

func TestGainGoesOnAndIsMerged(t *testing.T) {
	w := newWorld(t, 5)
	w.generators()
	p := w.gain("road", "{method: [weights, random], imputer: [gain, noisy-linear], order: [morf, lerf], fractions: [.2, 1]}", "one.safetensors")
	_, err := w.run(p, "whole")
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(w.path("part"), 0o777))
	lines := strings.SplitAfter(w.read("whole/results.jsonl"), "\n")
	require.NoError(t, os.WriteFile(w.path("part/results.jsonl"), []byte(strings.Join(lines[:7], "")), 0o666))
	require.NoError(t, os.WriteFile(w.path("part/plan.yaml"), []byte(w.read("whole/plan.yaml")), 0o666))
	resolved, err := orchestrate.LoadPlan(w.path("part/plan.yaml"))
	require.NoError(t, err)
	outcome, err := w.run(resolved, "part")
	require.NoError(t, err)
	require.Equal(t, 7, outcome.Before)
	require.Equal(t, w.records("whole"), w.records("part"))
	for _, name := range []string{"summary.csv", "ranks.csv", "consistency.csv"} {
		require.Equal(t, w.read("whole/"+name), w.read("part/"+name))
	}

	folders := w.shards(p, 3)
	_, err = w.merge("merged", folders...)
	require.NoError(t, err)
	w.requireSameRun("whole", "merged")

	// Shards with other generators are of other plans.
	other := shardOf(w.gain("road", "{method: [weights, random], imputer: [gain, noisy-linear], order: [morf, lerf], fractions: [.2, 1]}", "two.safetensors"), 2, 3)
	_, err = w.run(other, "other")
	require.NoError(t, err)
	_, err = w.merge("no", folders[0], w.path("other"), folders[2])
	require.ErrorIs(t, err, usage.Err)
	require.ErrorContains(t, err, "shards of different plans: generator (hash) is ")
	w.closed()
}

func TestMistakesWithGenerators(t *testing.T) {
	w := newWorld(t, 2)
	w.generators()
	require.NoError(t, fake.Generator(w.path("flat.safetensors"), []int{64}, 1))
	require.NoError(t, os.WriteFile(w.path("words.txt"), []byte("not a generator"), 0o666))
	sd, err := weights.Open(w.path("one.safetensors"))
	require.NoError(t, err)
	sd.Tensors["generator.net.0.weight_orig"] = weights.Tensor{DType: "f32", Shape: []int64{0}, Data: []byte{}}
	require.NoError(t, weights.WriteSafetensors(w.path("empty.safetensors"), sd.Tensors, nil))
	for _, name := range []string{"empty-folder", "trained"} {
		require.NoError(t, os.Mkdir(w.path(name), 0o777))
	}
	for _, name := range []string{"best.safetensors", "train.yaml"} {
		require.NoError(t, os.WriteFile(w.path("trained/"+name), nil, 0o666))
	}
	require.NoError(t, weights.WriteSafetensors(w.path("trained/checkpoint.safetensors"), map[string]weights.Tensor{"moments": sd.Tensors["mfv"]}, nil))
	const gain = "{method: weights, imputer: [zero, gain], fractions: .5}"
	for _, c := range []struct{ study, grid, weights, hash, want string }{
		{"road", gain, "", "", "imputer gain: it is a net that is trained first: assay train --imputer gain --data DATA --out gain, then --generator gain/best.safetensors"},
		{"trace", "{edge: 2, reference: gain}", "", "", "reference gain: it is a net that is trained first"},
		{"road", gain, "nowhere", "", "/nowhere: there is no such file: want one of assay train --imputer"},
		{"road", gain, "one.safetensors,two.safetensors", "", "/one.safetensors,two.safetensors: there is no such file; a plan has one generator, for all of its nets: want one file"},
		{"road", gain, "empty-folder", "", "/empty-folder is a folder, without a best.safetensors: want a file of assay train --imputer"},
		{"road", gain, "trained", "", "/trained is a folder: did you mean DIR/trained/best.safetensors?"},
		{"road", gain, "trained/checkpoint.safetensors", "", "did you mean DIR/trained/best.safetensors?"},
		{"road", gain, "words.txt", "", "words.txt"},
		{"road", gain, "tiny.safetensors", "", "tiny.safetensors is no generator: want generator.net.0.weight_orig and mfv, as assay train --imputer writes them; it has fc.weight"},
		{"road", gain, "flat.safetensors", "", "the mean image mfv is of shape [64]: want [channels, height, width]"},
		{"road", gain, "empty.safetensors", "", "empty.safetensors: fake: generator.net.0.weight_orig is empty"},
		{"road", gain, "one.safetensors", strings.Repeat("0", 64), "the plan was made with 000000000000..."},
		{"road", gain, "", strings.Repeat("0", 64), "a generator without its file"},
		{"score", "{method: weights, metric: 'deletion(reference=gain)'}", "one.safetensors", "", "metrics take references that are an image's own"},
	} {
		p := w.plan(c.study, c.grid)
		if c.weights != "" {
			p.Generator.Weights = w.path(c.weights)
		}
		p.Generator.Hash = c.hash
		_, err := w.run(p, "no")
		require.ErrorIs(t, err, usage.Err, c.want)
		require.ErrorContains(t, err, subst(c.want, w.dir))
		require.NoDirExists(t, w.path("no"))
	}
	w.closed()
}

// unmeasured are the rows of what was not measured.
func unmeasured(o orchestrate.Outcome) []orchestrate.SummaryRow {
	return slices.DeleteFunc(slices.Clone(o.Summary), func(row orchestrate.SummaryRow) bool { return row.N > 0 })
}

// Images of another size than the generator's are left out where others of the grid do.
func TestGeneratorsForOtherImages(t *testing.T) {
	w := newWorld(t, 2)
	require.NoError(t, fake.Generator(w.path("other.safetensors"), []int{1, 8, 8}, 1))
	const says = "gain: generator DIR/other.safetensors imputes images of 1x8x8, and the net takes 3x8x8: want one that was trained on such images"
	for study, grid := range map[string]string{"road": "{method: weights, imputer: gain}", "trace": "{edge: 2, reference: gain}"} {
		_, err := w.run(w.gain(study, grid, "other.safetensors"), "no")
		require.ErrorIs(t, err, usage.Err)
		require.ErrorContains(t, err, subst(says, w.dir))
	}
	var warnings []string
	p := w.gain("road", "{method: weights, imputer: [gain, zero], order: morf, fractions: .5}", "other.safetensors")
	outcome, err := orchestrate.Run(t.Context(), orchestrate.Job{Plan: p, Out: w.path("some"), Open: w.backend.Opener(), Progress: func(e orchestrate.Event) {
		if e.Kind == orchestrate.Warning {
			warnings = append(warnings, e.Message)
		}
	}})
	require.NoError(t, err)
	require.Equal(t, 2, outcome.Units)
	require.Contains(t, warnings, "left out of the grid: net tiny: imputer "+subst(says, w.dir))
	require.Equal(t, []string{"zero"}, slices.Collect(maps.Keys(w.idsBy("some"))))
	// The summary says so, too, whoever writes it again.
	reason := subst("imputer "+says, w.dir)
	listed := []orchestrate.SummaryRow{{Net: "tiny", Params: orchestrate.Params{"data": "data", "imputer": "gain"}, Reading: orchestrate.ReadingNotMeasured, Reason: reason}}
	require.Equal(t, listed, unmeasured(outcome))
	resolved, err := orchestrate.LoadPlan(w.path("some/plan.yaml"))
	require.NoError(t, err)
	outcome, err = w.run(resolved, "some")
	require.NoError(t, err)
	require.Equal(t, listed, unmeasured(outcome))
	// Published rows of it have the reason; rows that nothing measures have another.
	p.Reference = []map[string]any{
		{"net": "tiny", "imputer": "gain", "metric": "order-spearman", "value": .5}, {"imputer": "gain", "order": "morf", "fraction": .5, "metric": "accuracy", "value": .5},
		{"imputer": "gain", "net": "other", "metric": "accuracy", "value": .5}, {"imputer": "zero", "order": "lerf", "metric": "accuracy", "value": .5}, {"order": "lerf", "metric": "accuracy", "value": .5},
	}
	outcome, err = w.run(p, "published")
	require.NoError(t, err)
	var reasons []string
	for _, row := range unmeasured(outcome) {
		reasons = append(reasons, row.Reason)
	}
	const none = "no unit of the plan measures it"
	require.Equal(t, []string{reason, reason, none, none, none}, reasons)
	folders := w.shards(p, 2)
	outcome, err = w.merge("merged", folders...)
	require.NoError(t, err)
	require.Len(t, unmeasured(outcome), 5)
	require.Equal(t, w.read("published/summary.csv"), w.read("merged/summary.csv"))

	columns := w.columns("{reference: gain}")
	columns.Generator.Weights = w.path("other.safetensors")
	_, err = w.run(columns, "no")
	require.ErrorIs(t, err, usage.Err)
	require.ErrorContains(t, err, "imputer gain: it is a net for images, and a table has none: want another imputer, for example dataset-mean")
}

// A generator says in its file what values were divided by when it was trained: other
// values are nothing that it knows. Files that do not say are taken.
func TestGeneratorsOfAnotherScale(t *testing.T) {
	w := newWorld(t, 2)
	for channels, of := range map[int]string{1: "", 3: "rgb-"} {
		require.NoError(t, fake.Generator(w.path(of+"one.safetensors"), []int{channels, 8, 8}, 1))
		sd, err := weights.Open(w.path(of + "one.safetensors"))
		require.NoError(t, err)
		for name, scale := range map[string]string{"sixteen": "16", "bytes": "255", "unit": "1"} {
			preset := `{"id":"own","resize":"squash","height":8,"width":8,"mean":[0],"std":[1],"scale":` + scale + "}"
			require.NoError(t, weights.WriteSafetensors(w.path(of+name+".safetensors"), sd.Tensors, map[string]string{"preset": preset}))
		}
	}
	says := func(file, trained, net string) string {
		return "gain: generator " + w.path(file+".safetensors") + " was trained on values divided by " + trained + ", and those of net tiny are divided by " + net + ": want one that was trained with the net's preset"
	}
	for study, grid := range map[string]string{"road": "{method: weights, imputer: gain, order: morf, fractions: .5}", "trace": "{edge: 2, iterations: 2, reference: gain, target: label}"} {
		for _, c := range []struct{ data, preset, generator, trained, net string }{
			{"embedded:digits", "digits", "sixteen", "", ""}, {"embedded:digits", "digits", "one", "", ""},
			{"embedded:digits", "digits", "bytes", "255", "16"}, {"embedded:digits", "digits", "unit", "1", "16"},
			{"embedded:digits", "mnist", "sixteen", "16", "255"}, {"embedded:digits", "mnist", "bytes", "", ""},
			// Encoded images are of 8 bits, whatever a preset says of arrays.
			{w.path("data"), "digits", "rgb-bytes", "", ""}, {w.path("data"), "digits", "rgb-sixteen", "", ""}, {w.path("data"), "digits", "rgb-unit", "1", "255"},
		} {
			p := w.gain(study, grid, c.generator+".safetensors")
			p.Data = []orchestrate.DataPlan{{Path: c.data, Limit: 2}}
			preset, err := dataset.PresetByID(c.preset)
			require.NoError(t, err)
			preset.Channels = 3 // of encoded images
			p.Nets[0].Preset = orchestrate.PresetChoice{Preset: &preset}
			out := strings.Join([]string{study, filepath.Base(c.data), c.preset, c.generator}, " ")
			_, err = w.run(p, out)
			if c.trained == "" {
				require.NoError(t, err, out)
				continue
			}
			require.ErrorIs(t, err, usage.Err, out)
			require.ErrorContains(t, err, says(c.generator, c.trained, c.net))
			require.NoDirExists(t, w.path(out))
		}
	}
	// Others of the grid go on.
	p := w.gain("road", "{method: weights, imputer: [gain, zero], order: morf, fractions: .5}", "bytes.safetensors")
	p.Data = []orchestrate.DataPlan{{Path: "embedded:digits", Limit: 2}}
	p.Nets[0].Preset = orchestrate.PresetChoice{Name: "digits"}
	outcome, err := w.run(p, "some")
	require.NoError(t, err)
	require.Equal(t, 2, outcome.Units)
	w.closed()
}

// A generator that nobody wants is no part of the run, whatever the study.
func TestUnusedGenerators(t *testing.T) {
	w := newWorld(t, 1)
	for study, p := range w.everyStudy() {
		_, err := w.run(p, study)
		w.fine(err)
		p.Generator = orchestrate.GeneratorPlan{Weights: "nowhere.safetensors", Hash: strings.Repeat("0", 64)}
		var warnings []string
		_, err = orchestrate.Run(t.Context(), orchestrate.Job{Plan: p, Out: w.path(study), Open: w.backend.Opener(), Progress: func(e orchestrate.Event) {
			if e.Kind == orchestrate.Warning {
				warnings = append(warnings, e.Message)
			}
		}})
		w.fine(err)
		require.Contains(t, warnings, "generator nowhere.safetensors: there is no such file, and no imputer of the plan wants one: not used", study)
		require.Regexp(t, `(?m)^generator:\n  weights: /.*/nowhere.safetensors\n[a-z]`, w.read(study+"/plan.yaml"), "without a hash")
	}
}

// The file that public code keeps: a torch file of a dict with the generator's and the
// mean image (scripts/golden_weights.py).
func TestAPublishedGeneratorIsRead(t *testing.T) {
	w := newWorld(t, 2)
	p := w.plan("road", "{method: weights, imputer: gain}")
	p.Generator.Weights = "../weights/testdata/generator.pth"
	_, err := w.run(p, "no")
	require.ErrorContains(t, err, "imputes images of 1x2x3, and the net takes 3x8x8")
}

// Where none of a plan's data is here nothing is trained for it.
func TestNothingIsTrainedForMissingData(t *testing.T) {
	w := newWorld(t, 1)
	t.Setenv(orchestrate.DataVariable, w.path("data"))
	p := w.plan("road", "{method: weights}")
	p.Optional, p.Scale = true, map[string]orchestrate.Override{"small": {}}
	p.Train = []orchestrate.TrainEntry{{Name: "net", Net: "softmax", Data: orchestrate.DataPlan{Path: "embedded:digits"}}}
	p.Data[0].Path = "data:cifar10"
	_, err := w.run(p, "no")
	require.ErrorIs(t, err, usage.Err)
	require.ErrorContains(t, err, "nothing of this plan can be measured here: CIFAR-10, as images or as published is not in ")
	require.ErrorContains(t, err, "--scale small")
	require.NoDirExists(t, w.path("no"))
}

// Images of which a net makes no number are failures of their own, and have no strips.
func TestGeneratorsThatMakeNoNumbers(t *testing.T) {
	w := newWorld(t, 2)
	w.generators()
	sd, err := weights.Open(w.path("one.safetensors"))
	require.NoError(t, err)
	for i := range 192 {
		binary.LittleEndian.PutUint32(sd.Tensors["mfv"].Data[4*i:], math.Float32bits(float32(math.NaN())))
	}
	require.NoError(t, weights.WriteSafetensors(w.path("nan.safetensors"), sd.Tensors, nil))
	_, err = w.run(w.gain("road", "{method: weights, imputer: [gain, zero], order: morf, fractions: [0, .5]}", "nan.safetensors"), "out")
	var incomplete *orchestrate.Incomplete
	require.ErrorAs(t, err, &incomplete)
	require.Equal(t, 2, incomplete.Failed)
	require.Contains(t, incomplete.First, "not a finite number")
	strips, err := orchestrate.ReadStrips(w.path("out"))
	require.NoError(t, err)
	require.Len(t, strips, 2)
	for _, s := range strips {
		require.Equal(t, "zero", s.Imputer)
	}
	w.closed()
}

// Several devices share a generator.
func TestGeneratorsOnSeveralDevices(t *testing.T) {
	w := newWorld(t, 5)
	w.generators()
	p := w.gain("road", "{method: weights, imputer: gain, fractions: [.3]}", "one.safetensors")
	_, err := w.run(p, "whole")
	require.NoError(t, err)
	p.Device = "cuda:0,cuda:1"
	gpus := map[string]*fake.Backend{"cuda:0": {}, "cuda:1": {}}
	_, err = orchestrate.Run(t.Context(), orchestrate.Job{Plan: p, Out: w.path("two"), Open: func(device string, threads int) (orchestrate.Backend, error) {
		return gpus[device].Opener()(device, threads)
	}})
	require.NoError(t, err)
	whole, two := w.roads("whole"), w.roads("two")
	require.Len(t, two, len(whole))
	for key, r := range two {
		require.Equal(t, whole[key].Road, r.Road)
	}
	require.NotEmpty(t, w.read("two/"+record.FileName))
}
