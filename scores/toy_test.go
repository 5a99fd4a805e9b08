package scores

import (
	"context"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/assay-xai/assay/trace"
)

// plainStage is a net that tests define by a function, and images in memory. The
// plain loops in here are what compute is checked against.
type plainStage struct {
	shape  []int
	rows   [][]float32
	logits func(x []float32) []float64
	// prob, if set, is in place of the softmax.
	prob       func(x []float32, target int) float64
	reference  func(x []float32, name string) []float32
	explain    func(s *plainStage, x []float32, target int) Map
	noise      func(d Draw, radius float64) []float32
	randomised func(s *plainStage, layers []string, seed uint64) *plainStage
	layers     []Layer
	batch      int
	open       int
	calls      []int // rows of every call
	bend       float64
	history    []string
	opened     *int // copies with other parameters
	shut       *int // ... that were closed
}

func (s *plainStage) Shape() []int    { return s.shape }
func (s *plainStage) Classes() int    { return len(s.logits(s.rows[0])) }
func (s *plainStage) Batch() int      { return s.batch }
func (s *plainStage) Layers() []Layer { return s.layers }

func (s *plainStage) Close() error {
	if len(s.history) > 0 {
		*s.shut++
	}
	return nil
}

func (s *plainStage) score(x []float32, target int) trace.Score {
	y := s.logits(x)
	out := trace.Score{Logit: y[target], Prob: softmax(y)[target]}
	if s.prob != nil {
		out.Prob = s.prob(x, target)
	}
	return out
}

type plainScene struct {
	s    *plainStage
	spec SceneSpec
}

func (s *plainStage) Scene(_ context.Context, spec SceneSpec) (Scene, error) {
	if len(spec.Keys) != len(s.rows) {
		return nil, fmt.Errorf("%d keys for %d rows", len(spec.Keys), len(s.rows))
	}
	s.open++
	return &plainScene{s, spec}, nil
}

func (c *plainScene) Close() error { c.s.open--; return nil }

func (c *plainScene) of(row int) []float32 {
	if c.s.reference == nil {
		return make([]float32, len(c.s.rows[row]))
	}
	return c.s.reference(c.s.rows[row], c.spec.Reference)
}

func (c *plainScene) Difference(_ context.Context, row int) ([]float32, error) {
	out := slices.Clone(c.s.rows[row])
	for i, v := range c.of(row) {
		out[i] -= v
	}
	return out, nil
}

func (c *plainScene) ScoreRows(_ context.Context, rows []trace.Row) ([]trace.Score, error) {
	c.s.calls = append(c.s.calls, len(rows))
	var out []trace.Score
	for _, r := range rows {
		x := slices.Clone(c.s.rows[r.Slot])
		for i, v := range c.of(r.Slot) {
			if r.Set.Has(int(c.spec.FeatureMap[i%len(c.spec.FeatureMap)])) {
				x[i] = v
			}
		}
		out = append(out, c.s.score(x, r.Target))
	}
	return out, nil
}

func (s *plainStage) Scaled(_ context.Context, rows []Scaled) ([]trace.Score, error) {
	s.calls = append(s.calls, len(rows))
	var out []trace.Score
	for _, r := range rows {
		x := slices.Clone(s.rows[r.Row])
		for i := range x {
			x[i] *= r.Mask[i%len(r.Mask)]
		}
		out = append(out, s.score(x, r.Target))
	}
	return out, nil
}

func (s *plainStage) Noisy(_ context.Context, draws []Draw, radius float64) (Stage, error) {
	out := *s
	out.rows = nil
	for _, d := range draws {
		x := slices.Clone(s.rows[d.Row])
		for i, v := range s.noise(d, radius) {
			x[i] += v
		}
		out.rows = append(out.rows, x)
	}
	return &out, nil
}

func (s *plainStage) Explain(_ context.Context, targets []int) ([]Map, error) {
	if len(targets) != len(s.rows) {
		return nil, fmt.Errorf("%d targets for %d rows", len(targets), len(s.rows))
	}
	var out []Map
	for i, t := range targets {
		out = append(out, s.explain(s, s.rows[i], t))
	}
	return out, nil
}

func (s *plainStage) Randomise(_ context.Context, layers []string, seed uint64) (Stage, error) {
	return s.randomised(s, layers, seed), nil
}

// sumStage is a net whose "probability" is the sum of its inputs.
func sumStage(shape []int, rows ...[]float32) *plainStage {
	sum := func(x []float32) float64 {
		total := 0.0
		for _, v := range x {
			total += float64(v)
		}
		return total
	}
	return &plainStage{shape: shape, rows: rows, batch: 4,
		logits: func(x []float32) []float64 { return []float64{sum(x), 0} },
		prob:   func(x []float32, _ int) float64 { return sum(x) }}
}

func one(t *testing.T, id string, g Group, parameters map[string]any) Result {
	t.Helper()
	s, err := ByID(id)
	require.NoError(t, err)
	out, err := s.Compute(t.Context(), g, parameters)
	require.NoError(t, err)
	require.Len(t, out, len(g.Images))
	return out[0]
}

// The toy of torch-cam's tests, computed by hand: pixels .4 .3 .2 .1, two steps of
// two, the score is the sum. The curves are 1, .3, 0 and 0, .7, 1.
func TestDeletionAndInsertionOfTheToy(t *testing.T) {
	x := []float32{.4, .3, .2, .1}
	g := Group{Stage: sumStage([]int{1, 2, 2}, x), Images: []Image{{ID: "toy", Map: Map{[]int{1, 2, 2}, x}}}}
	require.InDelta(t, .4, one(t, "deletion", g, map[string]any{"step": 2}).Value, 1e-7)
	got := one(t, "insertion", g, map[string]any{"step": 2, "reference": "zero"})
	require.InDelta(t, .6, got.Value, 1e-7)
	require.Equal(t, []float64{0, .5, 1}, got.Curves[0].X)
	require.InDeltaSlice(t, []float64{0, .7, 1}, got.Curves[0].Y, 1e-7)
}

// Xplique's perfect case: one pixel of 256 is all that counts, 256 steps.
func TestPerfectDeletionAndInsertion(t *testing.T) {
	x, a := make([]float32, 256), make([]float32, 256)
	x[77], a[77] = 1, 1
	g := Group{Stage: sumStage([]int{1, 16, 16}, x), Images: []Image{{ID: "perfect", Map: Map{[]int{1, 16, 16}, a}}}}
	require.InDelta(t, .00195, one(t, "deletion", g, map[string]any{"step": 1}).Value, 5e-6)
	require.InDelta(t, .99805, one(t, "insertion", g, map[string]any{"step": 1, "reference": "zero"}).Value, 5e-6)
}

// Known Gini indices and entropies: one of n pixels, all equal, and 1 2 3 4 by hand
// (sum of (2i-5) a_i = 10, over 4 x 10).
func TestSparsenessAndComplexity(t *testing.T) {
	for _, c := range []struct {
		name                 string
		values               []float32
		gini, entropy, share float64
	}{
		{"one of four", []float32{0, -3, 0, 0}, .75, 0, 0},
		{"all equal", []float32{2, -2, 2, 2}, 0, 1.3862943611198906, 1},
		{"1 2 3 4", []float32{3, -1, 4, 2}, .25, 1.2798542258336676, .9232196723355078},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := Group{Images: []Image{{ID: "a", Map: Map{[]int{1, 2, 2}, c.values}}}}
			require.InDelta(t, c.gini, one(t, "sparseness", g, nil).Value, 1e-12)
			got := one(t, "complexity", g, nil)
			require.InDelta(t, c.entropy, got.Value, 1e-12)
			require.InDelta(t, c.share, got.Also["normalised"], 1e-12)
		})
	}
	g := Group{Images: []Image{{ID: "a", Map: Map{[]int{2, 2}, make([]float32, 4)}}}}
	require.Equal(t, Result{Undefined: ZeroMap}, one(t, "sparseness", g, nil))
	require.Equal(t, Result{Undefined: ZeroMap}, one(t, "complexity", g, nil))
}
func softmax(y []float64) []float64 {
	largest, sum := slices.Max(y), 0.0
	out := make([]float64, len(y))
	for i, v := range y {
		out[i] = math.Exp(v - largest)
		sum += out[i]
	}
	for i := range out {
		out[i] /= sum
	}
	return out
}
