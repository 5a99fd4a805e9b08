package device_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/assay-xai/assay/dataset"
	"github.com/assay-xai/assay/internal/device"
	"github.com/assay-xai/assay/internal/fill"
	"github.com/assay-xai/assay/internal/rng"
	"github.com/assay-xai/assay/orchestrate"
	"github.com/assay-xai/assay/trace"
	"github.com/assay-xai/assay/weights"
)

const shared = "../../../shared/data"

func sharedFile(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join(shared, name)
	if _, err := os.Stat(path); err != nil {
		t.Skipf("SKIP: %s is not beside the repository", name)
	}
	return path
}

func backend(t *testing.T) orchestrate.Backend {
	t.Helper()
	b, err := device.Open("cpu", 2)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.Close()) })
	return b
}

// open loads a net from a weights file; path "" is random parameters.
func open(t *testing.T, b orchestrate.Backend, net, path string) orchestrate.Net {
	t.Helper()
	ctx := context.Background()
	info, err := b.Describe(ctx, net, 0, 0)
	require.NoError(t, err)
	state := map[string]weights.Tensor{}
	if path == "" {
		for _, p := range info.Parameters {
			if !p.Optional {
				state[p.Name] = fill.Weights(p.Name, p.Shape, p.Buffer)
			}
		}
	} else {
		sd, err := weights.Open(path)
		require.NoError(t, err)
		state, _, err = weights.Match(sd, info.Parameters)
		require.NoError(t, err)
	}
	n, err := b.OpenNet(ctx, orchestrate.NetSpec{Net: net}, state)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, n.Close()) })
	return n
}

func preset(t *testing.T, id string) dataset.Preset {
	t.Helper()
	p, err := dataset.PresetByID(id)
	require.NoError(t, err)
	return p
}

// liteWeights is the published EfficientNet-Lite0 that set-up puts into the cache.
func liteWeights(t *testing.T) string {
	t.Helper()
	path, err := weights.Resolve("efficientnet-lite0", "")
	if err != nil {
		t.Skipf("SKIP: %v", err)
	}
	return path
}

// accuracy counts right answers over a set, images a call.
func accuracy(t *testing.T, b orchestrate.Backend, n orchestrate.Net, set *dataset.Set, p dataset.Preset, batch int) (right, all int) {
	t.Helper()
	ctx := context.Background()
	items := set.Items()
	for begin := 0; begin < len(items); begin += 250 {
		var files [][]byte
		end := min(begin+250, len(items))
		for i := begin; i < end; i++ {
			file, err := set.Read(ctx, i)
			require.NoError(t, err)
			files = append(files, file)
		}
		images, failed, err := b.Images(ctx, files, p, false)
		require.NoError(t, err)
		require.NoError(t, errors.Join(failed...))
		predictions, err := n.Predict(ctx, images, 1, batch)
		require.NoError(t, err)
		require.NoError(t, images.Close())
		for i, prediction := range predictions {
			all++
			if prediction.Classes[0] == items[begin+i].Class {
				right++
			}
		}
	}
	return right, all
}

// 77 of the first 100 validation images, as PyTorch with Pillow gives.
func TestEfficientNetLite0OnImageNet(t *testing.T) {
	b := backend(t)
	n := open(t, b, "efficientnet-lite0", liteWeights(t))
	set, err := dataset.Open(context.Background(), sharedFile(t, "imagenet-val-100"), dataset.Options{})
	require.NoError(t, err)
	defer set.Close()
	right, all := accuracy(t, b, n, set, preset(t, "tf-lite"), 8)
	require.Equal(t, [2]int{77, 100}, [2]int{right, all})
}

// What the published weights score on the JPEG test set: 81.03 % and 83.20 %.
func TestCIFARResNetsOnTheirTestSet(t *testing.T) {
	b := backend(t)
	set, err := dataset.Open(context.Background(), sharedFile(t, "cifar10.tgz"), dataset.Options{Split: "test"})
	require.NoError(t, err)
	defer set.Close()
	for _, c := range []struct {
		net, file string
		right     int
	}{{"cifar-resnet20", "resnet20-12fca82f.th", 8103}, {"cifar-resnet56", "resnet56-4bfd9763.th", 8320}} {
		n := open(t, b, c.net, sharedFile(t, filepath.Join("weights", c.file)))
		right, all := accuracy(t, b, n, set, preset(t, "cifar10"), 64)
		require.Equal(t, [2]int{c.right, 10000}, [2]int{right, all}, c.net)
	}
}

// Probabilities within 1e-4 of PyTorch's with Pillow (scripts/golden_real.py):
// decoding, preprocessing and the net together.
func TestProbabilitiesAgainstPyTorch(t *testing.T) {
	ctx := context.Background()
	text, err := os.ReadFile("testdata/real.json")
	require.NoError(t, err)
	var golden struct {
		Cases []struct {
			Net, Preset string
			Rows        []struct {
				Image         string
				Classes       []int
				Probabilities []float64
			}
		}
	}
	require.NoError(t, json.Unmarshal(text, &golden))
	require.Len(t, golden.Cases, 2)
	b := backend(t)
	for _, c := range golden.Cases {
		t.Run(c.Net, func(t *testing.T) {
			require.Len(t, c.Rows, 20)
			data, weightsFile := sharedFile(t, "imagenet-val-100"), ""
			if c.Net == "efficientnet-lite0" {
				weightsFile = liteWeights(t)
			} else {
				data, weightsFile = sharedFile(t, "cifar10.tgz"), sharedFile(t, "weights/resnet20-12fca82f.th")
			}
			set, err := dataset.Open(ctx, data, dataset.Options{})
			require.NoError(t, err)
			defer set.Close()
			index := map[string]int{}
			for i, item := range set.Items() {
				index[item.ID] = i
			}
			var files [][]byte
			for _, row := range c.Rows {
				i, there := index[row.Image]
				require.True(t, there, row.Image)
				file, err := set.Read(ctx, i)
				require.NoError(t, err)
				files = append(files, file)
			}
			images, failed, err := b.Images(ctx, files, preset(t, c.Preset), false)
			require.NoError(t, err)
			require.NoError(t, errors.Join(failed...))
			defer images.Close()
			predictions, err := open(t, b, c.Net, weightsFile).Predict(ctx, images, 5, 8)
			require.NoError(t, err)
			for i, row := range c.Rows {
				require.Equal(t, row.Classes[0], predictions[i].Classes[0], row.Image)
				for k, p := range row.Probabilities {
					require.InDelta(t, p, predictions[i].Probabilities[k], 1e-4, row.Image)
				}
			}
		})
	}
}

// The three embedded photographs, whose answers are known.
func TestPhotographs(t *testing.T) {
	ctx := context.Background()
	b := backend(t)
	n := open(t, b, "efficientnet-lite0", liteWeights(t))
	set, err := dataset.Open(ctx, "embedded:photos", dataset.Options{})
	require.NoError(t, err)
	defer set.Close()
	want := map[string]struct {
		name        string
		probability float64
	}{"chelsea": {"tiger cat", .38}, "coffee": {"espresso", .96}, "rocket": {"missile", .36}}
	var files [][]byte
	for i := range set.Items() {
		file, err := set.Read(ctx, i)
		require.NoError(t, err)
		files = append(files, file)
	}
	require.Len(t, files, 3)
	images, failed, err := b.Images(ctx, files, preset(t, "tf-lite"), true)
	require.NoError(t, err)
	require.NoError(t, errors.Join(failed...))
	defer images.Close()
	predictions, err := n.Predict(ctx, images, 5, 8)
	require.NoError(t, err)
	for i, item := range set.Items() {
		w := want[strings.TrimSuffix(item.ID, filepath.Ext(item.ID))]
		require.Equal(t, w.name, dataset.ClassNames("imagenet")[predictions[i].Classes[0]])
		require.InDelta(t, w.probability, predictions[i].Probabilities[0], .005)
	}
}

// A row's bits depend neither on its place in the batch nor on its neighbours:
// what makes searches reproducible whatever runs beside them.
func TestRowsAreIndependent(t *testing.T) {
	ctx := context.Background()
	b := backend(t)
	for _, c := range []struct {
		net   string
		batch int
	}{{"resnet18", 8}, {"efficientnet-lite0", 8}, {"cifar-resnet20", 64}, {"cifar-resnet20", 16}, {"cnn3", 32}, {"mlp", 16}} {
		t.Run(fmt.Sprint(c.net, "/", c.batch), func(t *testing.T) {
			n := open(t, b, c.net, "")
			scene := newScene(t, b, n, c.batch, 2, 2)
			const features = 4
			rows := make([]trace.Row, c.batch+3)
			for i := range rows {
				rows[i] = trace.Row{Slot: i % 2, Target: i % 3, Set: trace.Set{uint64(i*7+3) % (1 << features)}}
			}
			together, err := scene.ScoreRows(ctx, rows)
			require.NoError(t, err)
			for trial := range uint64(3) {
				order := rng.New(trial, "test", "").Perm(0, len(rows))
				shuffled := make([]trace.Row, len(rows))
				for i, j := range order {
					shuffled[i] = rows[j]
				}
				got, err := scene.ScoreRows(ctx, shuffled)
				require.NoError(t, err)
				for i, j := range order {
					require.Equal(t, together[j], got[i])
				}
			}
			alone, err := scene.ScoreRows(ctx, rows[5:6])
			require.NoError(t, err)
			require.Equal(t, together[5], alone[0])
		})
	}
}

// newScene fills a scene with inputs of the formula, cut into 2x2 patches (the
// first columns of a table are one feature each).
func newScene(t *testing.T, b orchestrate.Backend, n orchestrate.Net, batch, slots, edge int) orchestrate.Scene {
	t.Helper()
	ctx := context.Background()
	shape := n.Info().Input
	spec := orchestrate.SceneSpec{Slots: slots, Shape: shape, Features: edge * edge, Reference: orchestrate.Reference{ID: "zero"}, Batch: batch}
	dims := []int64{int64(slots)}
	for _, d := range shape {
		dims = append(dims, int64(d))
	}
	if len(shape) == 3 {
		var err error
		spec.FeatureMap, err = trace.PatchMap(edge, shape[1], shape[2])
		require.NoError(t, err)
	} else {
		spec.FeatureMap = make([]int32, shape[0])
		for i := range spec.FeatureMap {
			spec.FeatureMap[i] = int32(i % (edge * edge))
		}
	}
	images, err := b.Arrays(ctx, fill.Input(dims), shape)
	require.NoError(t, err)
	defer images.Close()
	scene, err := n.Scene(ctx, spec)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, scene.Close()) })
	for slot := range slots {
		require.NoError(t, scene.Put(ctx, slot, images, slot, 0))
	}
	return scene
}

// plainScorer scores one image's states one call each, two rows at a time, as
// the published loop does.
type plainScorer struct {
	scene orchestrate.Scene
	slot  int
}

func (p plainScorer) Scores(ctx context.Context, sets []trace.Set) ([]trace.Score, error) {
	var out []trace.Score
	for _, s := range sets {
		scores, err := p.scene.ScoreRows(ctx, []trace.Row{{Slot: p.slot, Target: 1, Set: s}})
		if err != nil {
			return nil, err
		}
		out = append(out, scores...)
	}
	return out, nil
}

// On a real net, searches that share batches find what each finds when its
// states are scored one by one.
func TestSearchOnARealNetIsThatOfOneByOne(t *testing.T) {
	ctx := context.Background()
	b := backend(t)
	n := open(t, b, "cnn3", "")
	const images, batch, edge = 3, 8, 4
	scene := newScene(t, b, n, batch, images, edge)
	for _, options := range []trace.Options{
		{Solver: "sa", Objective: "le-mo", ScoreOn: "prob", Budget: trace.Budget{Iterations: 25}},
		{Solver: "sa", Objective: "le", ScoreOn: "logit", Neighbourhood: "mix", Budget: trace.Budget{Iterations: 15}},
		{Solver: "hill-climbing", Objective: "mo", ScoreOn: "prob", Start: "greedy-le", Budget: trace.Budget{Evaluations: 150}},
		{Solver: "tabu", Objective: "le-mo", ScoreOn: "prob", Budget: trace.Budget{Iterations: 6}},
		{Solver: "genetic", Objective: "le-mo", ScoreOn: "prob", Params: map[string]float64{"population": 4}, Budget: trace.Budget{Iterations: 8}},
	} {
		options.Seed = 5
		merger := trace.NewMerger(scene, batch)
		merging, stop := context.WithCancel(ctx)
		var group, runner sync.WaitGroup
		runner.Go(func() { _ = merger.Run(merging) })
		var merged [images]trace.Result
		var errs [images]error
		for i := range images {
			scorer, done := merger.Image(i, 1)
			group.Go(func() {
				defer done()
				merged[i], errs[i] = trace.Run(ctx, trace.Problem{T: edge * edge, ImageID: fmt.Sprint(i), Scorer: scorer}, options)
			})
		}
		group.Wait()
		stop()
		runner.Wait()
		options.Without = trace.AllSavings
		for i := range images {
			require.NoError(t, errs[i])
			alone, err := trace.Run(ctx, trace.Problem{T: edge * edge, ImageID: fmt.Sprint(i), Scorer: plainScorer{scene, i}}, options)
			require.NoError(t, err)
			require.LessOrEqual(t, merged[i].Forwards, alone.Forwards)
			alone.Forwards, alone.StartForwards, alone.Discarded = merged[i].Forwards, merged[i].StartForwards, merged[i].Discarded
			require.Equal(t, alone, merged[i], options.Solver)
		}
	}
}

// A scene's score is the net's answer to the image that a person would make by
// hand: a state's row equals the prediction for the masked values.
func TestMaskedForwardIsTheForwardOfTheMaskedImage(t *testing.T) {
	ctx := context.Background()
	b := backend(t)
	n := open(t, b, "cnn3", "")
	shape := n.Info().Input
	scene := newScene(t, b, n, 4, 1, 2)
	values := fill.Input([]int64{1, int64(shape[0]), int64(shape[1]), int64(shape[2])})
	featureMap, err := trace.PatchMap(2, shape[1], shape[2])
	require.NoError(t, err)
	for state := range uint64(16) {
		masked := make([]float32, len(values))
		for i, v := range values {
			if state>>featureMap[i%(shape[1]*shape[2])]&1 == 0 {
				masked[i] = v
			}
		}
		images, err := b.Arrays(ctx, masked, shape)
		require.NoError(t, err)
		p, err := n.Predict(ctx, images, n.Info().Classes, 4)
		require.NoError(t, err)
		require.NoError(t, images.Close())
		scores, err := scene.ScoreRows(ctx, []trace.Row{{Target: p[0].Classes[2], Set: trace.Set{state}}})
		require.NoError(t, err)
		require.InDelta(t, p[0].Probabilities[2], scores[0].Prob, 1e-7)
	}
}
