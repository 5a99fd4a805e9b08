package scores

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/assay-xai/assay/internal/rng"
	"github.com/assay-xai/assay/trace"
)

// bentStage is a net that no score can see through: classes are sines of weighted sums.
func bentStage(shape []int, rows int, seed uint64) *plainStage {
	n := 1
	for _, d := range shape {
		n *= d
	}
	stream := rng.New(seed, "test", "")
	s := &plainStage{shape: shape, batch: 4}
	for r := range rows {
		x := make([]float32, n)
		for i := range x {
			x[i] = float32(stream.Normal(uint64(r), uint64(i)))
		}
		s.rows = append(s.rows, x)
	}
	s.logits = func(x []float32) []float64 {
		y := make([]float64, 3)
		for c := range y {
			sum := 0.0
			for i, v := range x {
				sum += float64(v) * (stream.Float64(uint64(1000+c), uint64(i)) - .5)
			}
			y[c] = 3 * math.Sin(sum)
		}
		return y
	}
	return s
}

// images makes maps of the stage's rows: random numbers, some of them equal.
func (s *plainStage) images(channels int, seed uint64) []Image {
	stream := rng.New(seed, "test/maps", "")
	var out []Image
	for r, x := range s.rows {
		n := elements(s.shape)
		m := Map{Shape: []int{channels, 1, n}, Values: make([]float32, channels*n)}
		if len(s.shape) == 3 {
			copy(m.Shape[1:], s.shape[1:])
		} else {
			m.Shape = []int{n}
		}
		for i := range m.Values {
			m.Values[i] = float32(stream.IntN(uint64(r), uint64(i), 6*len(x))-3*len(x)) / 8
		}
		out = append(out, Image{ID: string(rune('a' + r)), Target: r % 3, Map: m})
	}
	return out
}

// The plain loop: every state of the order of patches by their mean, from scratch.
func TestPatchDeletionEqualsThePlainLoop(t *testing.T) {
	s := bentStage([]int{2, 6, 9}, 3, 1)
	g := Group{Stage: s, Images: s.images(2, 1)}
	for _, output := range []string{Probability, Logit} {
		for at, im := range g.Images {
			featureMap, err := trace.PatchMap(4, 6, 9)
			require.NoError(t, err)
			mean, count := make([]float64, 16), make([]float64, 16)
			for p, f := range featureMap {
				mean[f] += float64(im.Map.Values[p]) + float64(im.Map.Values[54+p])
				count[f]++
			}
			for f := range mean {
				mean[f] /= count[f]
			}
			lessRelevant := func(a, b int) bool { return mean[a] < mean[b] || mean[a] == mean[b] && a < b }
			le, mo := 0.0, 0.0
			for k := range 17 {
				least, most := append([]float32(nil), s.rows[at]...), append([]float32(nil), s.rows[at]...)
				for p, f := range featureMap {
					rank := 0
					for other := range 16 {
						if lessRelevant(other, int(f)) {
							rank++
						}
					}
					for c := range 2 {
						if rank < k {
							least[c*54+p] = 0
						}
						if rank >= 16-k {
							most[c*54+p] = 0
						}
					}
				}
				le += read(s.score(least, im.Target), output)
				mo += read(s.score(most, im.Target), output)
			}
			for id, want := range map[string]float64{"le": le, "mo": -mo, "le-mo": le - mo} {
				score, err := ByID(id)
				require.NoError(t, err)
				got, err := score.Compute(t.Context(), g, map[string]any{"edge": 4, "output": output})
				require.NoError(t, err)
				require.InDelta(t, want, got[at].Value, 1e-9, "%s of %s by %s", id, im.ID, output)
			}
		}
	}
	require.Zero(t, s.open)
}

// The same map as a start of the search that searches nothing gives the same bits.
func TestPatchDeletionEqualsTheOrderSolver(t *testing.T) {
	s := bentStage([]int{1, 8, 8}, 2, 2)
	g := Group{Stage: s, Images: s.images(1, 2), Seed: 7}
	featureMap, err := trace.PatchMap(4, 8, 8)
	require.NoError(t, err)
	scene, err := s.Scene(t.Context(), SceneSpec{Features: 16, FeatureMap: featureMap, Keys: make([]uint64, 2)})
	require.NoError(t, err)
	score, err := ByID("le-mo")
	require.NoError(t, err)
	got, err := score.Compute(t.Context(), g, map[string]any{"edge": 4})
	require.NoError(t, err)
	for i, im := range g.Images {
		reduced, err := Reduce(im.Map, "sum")
		require.NoError(t, err)
		order, err := trace.Order(reduced, featureMap, 16)
		require.NoError(t, err)
		merger := trace.NewMerger(scene, 1)
		scorer, done := merger.Image(i, im.Target)
		go func() { _ = merger.Run(t.Context()) }()
		want, err := trace.Run(t.Context(), trace.Problem{T: 16, ImageID: im.ID, Scorer: scorer},
			trace.Options{Solver: "order", Objective: "le-mo", ScoreOn: "prob", Start: "map", Given: order})
		done()
		require.NoError(t, err)
		require.Equal(t, want.Value, got[i].Value)
		require.Equal(t, want.Curves.Prob.Le, got[i].Curves[0].Y)
		require.Equal(t, want.Curves.Prob.Mo, got[i].Curves[1].Y)
	}
}
