package scores

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/assay-xai/assay/internal/usage"
	"github.com/assay-xai/assay/trace"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestUndefinedStatesAreNamed(t *testing.T) {
	flat := func(v float32) Map { return Map{[]int{1, 8, 8}, slices.Repeat([]float32{v}, 64)} }
	for _, s := range Registry() {
		t.Run(s.ID, func(t *testing.T) {
			stage := bentStage([]int{1, 8, 8}, 4, 11).withMaps()
			images := stage.ownMaps()
			for i := range images {
				images[i].Region = &Region{Boxes: []Box{{0, 0, 8, 8}}}
			}
			images[1].Map, images[2].Map = flat(1), flat(0)
			images[3].Map.Values = slices.Clone(images[3].Map.Values)
			images[3].Map.Values[5] = float32(math.NaN())
			got, err := s.Compute(t.Context(), Group{Stage: stage, Images: images}, map[string]map[string]any{
				"le": {"edge": 4}, "mo": {"edge": 4}, "le-mo": {"edge": 4}}[s.ID])
			require.NoError(t, err)
			require.Empty(t, got[0].Undefined)
			require.Equal(t, undefined(NotFiniteMap), got[3])
			want := map[string][2]string{ // of a constant map, and of zeros
				"average-drop": {ConstantMap, ConstantMap}, "increase-in-confidence": {ConstantMap, ConstantMap},
				"faithfulness-correlation": {ConstantMap, ConstantMap}, "pointing-game": {ConstantMap, ConstantMap},
				"randomisation": {ConstantMap, ConstantMap}, "random-logit": {ConstantMap, ConstantMap},
				"max-sensitivity": {"", ZeroMap}, "sparseness": {"", ZeroMap}, "complexity": {"", ZeroMap},
			}[s.ID]
			require.Equal(t, want, [2]string{got[1].Undefined, got[2].Undefined})
			if want == [2]string{} && s.ID != "infidelity" { // its order means nothing
				require.NotEmpty(t, got[1].Warnings)
			}

			if s.Needs(InputNet) && !s.Needs(InputMaps) {
				nan := bentStage([]int{1, 8, 8}, 1, 11)
				nan.logits = func([]float32) []float64 { return []float64{math.NaN(), 0, 0} }
				nan.prob = func([]float32, int) float64 { return math.NaN() }
				got, err := s.Compute(t.Context(), Group{Stage: nan, Images: images[:1]}, map[string]map[string]any{
					"le": {"edge": 4}, "mo": {"edge": 4}, "le-mo": {"edge": 4}}[s.ID])
				require.NoError(t, err)
				require.Equal(t, undefined(NotFiniteOutput), got[0])
			}
		})
	}
}

func TestBadInputIsUsage(t *testing.T) {
	s := bentStage([]int{1, 8, 8}, 1, 12)
	g := Group{Stage: s, Images: s.images(1, 12)}
	for _, c := range []struct {
		id   string
		with map[string]any
		want string
	}{
		{"deletion", map[string]any{"stepp": 1}, `parameter "stepp": want one of [step reference output reduce]`},
		{"deletion", map[string]any{"step": 1.5}, "step 1.5: want a whole number"},
		{"deletion", map[string]any{"step": -1}, "step -1: want at least 0"},
		{"deletion", map[string]any{"step": 65}, "step 65: the input has 64 pixels"},
		{"deletion", map[string]any{"output": "odds"}, `output "odds": want one of probability, logit`},
		{"deletion", map[string]any{"reduce": "none"}, `reduce "none": want one of abs-mean`},
		{"le-mo", map[string]any{"edge": 9}, "edge 9"},
		{"faithfulness-correlation", map[string]any{"features": 65}, "features 65: the input has 64 pixels"},
		{"infidelity", map[string]any{"patch": 9}, "patch 9: the image has 8x8 pixels"},
		{"randomisation", nil, "no layers of which the parameters are known"},
	} {
		score, err := ByID(c.id)
		require.NoError(t, err)
		_, err = score.Compute(t.Context(), g, c.with)
		require.ErrorIs(t, err, usage.Err)
		require.ErrorContains(t, err, c.want)
	}
	_, err := ByID("deletions")
	require.ErrorIs(t, err, usage.Err)
	score := deletion()
	_, err = score.Compute(t.Context(), Group{Images: g.Images}, nil)
	require.ErrorContains(t, err, "needs a net")
	bad := g
	bad.Images = slices.Clone(g.Images)
	bad.Images[0].Map = Map{[]int{7, 8}, make([]float32, 56)}
	_, err = score.Compute(t.Context(), bad, nil)
	require.ErrorContains(t, err, "map of a is [7 8]: want 64 values a channel, for inputs of [1 8 8]")
	bad.Images[0] = g.Images[0]
	bad.Images[0].Target = 3
	_, err = score.Compute(t.Context(), bad, nil)
	require.ErrorContains(t, err, "target of a is 3: the net has classes 0..2")
}

var errDevice = errors.New("the device is gone")

// failingStage fails at a call.
type failingStage struct {
	*plainStage
	left int
}

func (s *failingStage) Scene(ctx context.Context, spec SceneSpec) (Scene, error) {
	scene, err := s.plainStage.Scene(ctx, spec)
	return &failingScene{scene, s}, err
}

type failingScene struct {
	Scene
	s *failingStage
}

func (c *failingScene) ScoreRows(ctx context.Context, rows []trace.Row) ([]trace.Score, error) {
	if c.s.left--; c.s.left < 0 {
		return nil, errDevice
	}
	return c.Scene.ScoreRows(ctx, rows)
}

// An error of the device ends the score as it is, and nothing stays open.
func TestDeviceErrorsComeThrough(t *testing.T) {
	for _, id := range []string{"le-mo", "deletion", "faithfulness-correlation", "infidelity"} {
		for left := range 2 {
			s := &failingStage{bentStage([]int{1, 8, 8}, 3, 13), left}
			score, err := ByID(id)
			require.NoError(t, err)
			with := map[string]any{}
			if id == "le-mo" {
				with["edge"] = 4
			}
			_, err = score.Compute(t.Context(), Group{Stage: s, Images: s.images(1, 13)}, with)
			if left == 0 {
				require.ErrorIs(t, err, errDevice, id)
			}
			require.Zero(t, s.open, id)
		}
	}
}

// Whatever the group, its order and the batch: the same bits.
func TestResultsDoNotDependOnGroupOrBatch(t *testing.T) {
	all := bentStage([]int{2, 8, 7}, 5, 14).withMaps()
	images := all.ownMaps()
	for i := range images {
		images[i].Region = &Region{Boxes: []Box{{1, 1, 3, 3}}}
	}
	parameters := map[string]map[string]any{"le": {"edge": 4}, "mo": {"edge": 4}, "le-mo": {"edge": 4},
		"faithfulness-correlation": {"runs": 9}, "max-sensitivity": {"samples": 3}, "deletion": {"step": 9}, "insertion": {"step": 9}}
	for _, s := range Registry() {
		t.Run(s.ID, func(t *testing.T) {
			want, err := s.Compute(t.Context(), Group{Stage: all, Images: images, Seed: 1}, parameters[s.ID])
			require.NoError(t, err)
			rapid.Check(t, func(r *rapid.T) {
				picks := rapid.SliceOfNDistinct(rapid.IntRange(0, 4), 1, 5, rapid.ID).Draw(r, "images")
				stage := *all
				stage.batch = rapid.IntRange(1, 40).Draw(r, "batch")
				stage.rows = nil
				g := Group{Stage: &stage, Seed: 1}
				for _, p := range picks {
					stage.rows = append(stage.rows, all.rows[p])
					g.Images = append(g.Images, images[p])
				}
				got, err := s.Compute(context.Background(), g, parameters[s.ID])
				require.NoError(r, err)
				for i, p := range picks {
					require.Equal(r, want[p], got[i])
				}
			})
		})
	}
}

// A call holds whole batches, but for the last.
func TestCallsFillBatches(t *testing.T) {
	s := bentStage([]int{1, 16, 16}, 6, 15)
	s.batch = 48
	one(t, "deletion", Group{Stage: s, Images: s.images(1, 15)}, map[string]any{"step": 1})
	for _, rows := range s.calls[:len(s.calls)-1] {
		require.Zero(t, rows%48)
	}
	total := 0
	for _, rows := range s.calls {
		total += rows
	}
	require.Equal(t, 6*257, total)
}

// Estimates are the number of states and maps that are really asked for.
func TestEstimatesHold(t *testing.T) {
	for _, s := range Registry() {
		stage := bentStage([]int{1, 16, 16}, 1, 16).withMaps()
		images := stage.ownMaps()
		images[0].Region = &Region{Boxes: []Box{{0, 0, 8, 8}}}
		maps := 0
		explain := stage.explain
		stage.explain = func(s *plainStage, x []float32, target int) Map { maps++; return explain(s, x, target) }
		_, err := s.Compute(t.Context(), Group{Stage: stage, Images: images}, nil)
		require.NoError(t, err)
		rows := 0
		for _, c := range stage.calls {
			rows += c
		}
		cost, err := s.Estimate(Subject{Shape: stage.shape, Layers: stage.layers}, nil)
		require.NoError(t, err)
		require.Equal(t, Cost{float64(rows), float64(maps)}, cost, s.ID)
	}
}

// Declarations are complete: tables and docs are made of them.
func TestRegistryIsComplete(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range Registry() {
		require.False(t, seen[s.ID])
		seen[s.ID] = true
		require.NotEmpty(t, s.Summary, s.ID)
		require.Contains(t, []Direction{HigherIsBetter, LowerIsBetter}, s.Direction, s.ID)
		require.True(t, s.Needs(InputMap), s.ID)
		require.NotEmpty(t, s.Paper, s.ID)
		require.Positive(t, s.Version, s.ID)
		_, err := s.resolve(nil)
		require.NoError(t, err, s.ID)
		for _, p := range s.Parameters {
			require.NotEmpty(t, p.Summary, "%s of %s", p.Name, s.ID)
		}
	}
	require.Len(t, seen, 16)
}
