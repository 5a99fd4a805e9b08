package device_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/assay-xai/assay/dataset"
	"github.com/assay-xai/assay/orchestrate"
	"github.com/assay-xai/assay/trace"
)

// remembered asks the scene for a state once; 16 features are one word.
type remembered struct {
	rows   trace.RowScorer
	target int
	scores map[uint64]trace.Score
}

func (r *remembered) Scores(ctx context.Context, sets []trace.Set) ([]trace.Score, error) {
	var rows []trace.Row
	for _, s := range sets {
		if _, known := r.scores[s[0]]; !known {
			rows = append(rows, trace.Row{Target: r.target, Set: s})
		}
	}
	if len(rows) > 0 {
		scores, err := r.rows.ScoreRows(ctx, rows)
		if err != nil {
			return nil, err
		}
		for i, v := range scores {
			r.scores[rows[i].Set[0]] = v
		}
	}
	out := make([]trace.Score, len(sets))
	for i, s := range sets {
		out[i] = r.scores[s[0]]
	}
	return out, nil
}

// On real nets at t = 16, in value: every heuristic <= exact <= complete search,
// jointly <= complete search, separately.
func TestHeuristicsExactAndBoundsOnNets(t *testing.T) {
	for _, c := range []struct {
		net, weights, data, preset string
	}{
		{"mlp", "embedded:mlp-digits", "embedded:digits", "digits"},
		{"cnn3", "embedded:cnn3-digits", "embedded:digits", "digits"},
		{"cifar-resnet20", "resnet20-12fca82f.th", "cifar10.tgz", "cifar10"},
	} {
		t.Run(c.net, func(t *testing.T) {
			if !strings.HasPrefix(c.data, "embedded:") {
				if testing.Short() {
					t.Skip("SKIP: 65536 states of a residual net take a minute or two; without -short they are scored")
				}
				c.weights, c.data = sharedFile(t, "weights/"+c.weights), sharedFile(t, c.data)
			}
			b := backend(t)
			set, err := dataset.Open(t.Context(), c.data, dataset.Options{Split: "test", Limit: 1})
			require.NoError(t, err)
			defer set.Close()
			scene, target := edgeFour(t, b, open(t, b, c.net, c.weights), set, preset(t, c.preset))
			scorer := &remembered{rows: scene, target: target, scores: map[uint64]trace.Score{}}
			for _, objective := range []string{"le", "mo", "le-mo"} {
				for _, on := range trace.ScoreOns() {
					compareSolvers(t, scorer, objective, on)
				}
			}
			require.Len(t, scorer.scores, 1<<16)
		})
	}
}

// edgeFour puts a set's only image into a scene of 4 x 4 patches, columns of 8 x 8
// digits as well, and returns what the net takes it for.
func edgeFour(t *testing.T, b orchestrate.Backend, n orchestrate.Net, set *dataset.Set, p dataset.Preset) (orchestrate.Scene, int) {
	t.Helper()
	const batch = 64
	ctx := t.Context()
	images, size := loaded(t, b, n, set, p)
	defer images.Close()
	featureMap, err := trace.PatchMap(4, size[0], size[1])
	require.NoError(t, err)
	scene, err := n.Scene(ctx, orchestrate.SceneSpec{Slots: 1, Shape: n.Info().Input, Features: 16, FeatureMap: featureMap,
		Reference: orchestrate.Reference{ID: "zero"}, Preset: p, Batch: batch})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, scene.Close()) })
	predictions, err := n.Predict(ctx, images, 1, batch)
	require.NoError(t, err)
	require.Len(t, predictions, 1)
	require.NoError(t, scene.Put(ctx, 0, images, 0, 0))
	return scene, predictions[0].Classes[0]
}

// loaded is a set as the net takes it, and its height and width.
func loaded(t *testing.T, b orchestrate.Backend, n orchestrate.Net, set *dataset.Set, p dataset.Preset) (orchestrate.Images, [2]int) {
	t.Helper()
	if set.Kind == dataset.Images {
		var files [][]byte
		for i := range set.Items() {
			file, err := set.Read(t.Context(), i)
			require.NoError(t, err)
			files = append(files, file)
		}
		images, failed, err := b.Images(t.Context(), files, p, false)
		require.NoError(t, err)
		require.NoError(t, errors.Join(failed...))
		return images, [2]int(n.Info().Input[1:])
	}
	var all []float32
	var size [2]int
	for i := range set.Items() {
		values, shape, err := set.Values(i)
		require.NoError(t, err)
		require.NoError(t, p.Normalise(values, shape))
		all, size = append(all, values...), [2]int(shape[len(shape)-2:])
	}
	images, err := b.Arrays(t.Context(), all, n.Info().Input)
	require.NoError(t, err)
	return images, size
}

func compareSolvers(t *testing.T, scorer trace.Scorer, objective, on string) {
	t.Helper()
	value := func(solver, schedule string, iterations int) float64 {
		o := trace.Options{Solver: solver, Objective: objective, ScoreOn: on, Schedule: schedule, Budget: trace.Budget{Iterations: iterations}}
		got, err := trace.Run(t.Context(), trace.Problem{T: 16, ImageID: "a", Scorer: scorer}, o)
		require.NoError(t, err)
		return got.Value
	}
	optimum := value("exact", "", 0)
	joint, separate := value("complete-search", "joint", 0), value("complete-search", "separate", 0)
	require.LessOrEqual(t, optimum, joint)
	require.LessOrEqual(t, joint, separate)
	reached := false
	for _, s := range trace.Solvers() {
		if s.MaxFeatures > 0 || !slices.Contains(s.Objectives, objective) {
			continue
		}
		got := value(s.ID, "", 500)
		require.LessOrEqual(t, got, optimum, s.ID)
		if s.ID == "order" {
			require.Less(t, got, optimum, "a random order is not the best")
		}
		reached = reached || got > optimum-.05*(separate-value("order", "", 0))
		t.Logf("%s by %s: %s %.4f of %.4f", objective, on, s.ID, got, optimum)
	}
	require.True(t, reached, "%s by %s: some search comes close to the optimum %v", objective, on, optimum)
}
