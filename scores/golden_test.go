package scores

import (
	"encoding/json"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/assay-xai/assay/metrics"
)

// golden is what other libraries say (scripts/golden_scores.py).
type golden struct {
	Net struct {
		ConvWeight, ConvBias, FcWeight, FcBias []float64
		Channels, Classes                      int
	}
	Height, Width int
	Images, Maps  [][]float32
	Targets       []int
	PixelFlipping struct {
		Step   int
		Curves [][]float64
		Areas  []float64
	}
	Faithfulness struct {
		Subsets [][][]int
		Values  []float64
	}
	Infidelity struct {
		Patch  int
		Values []float64
	}
	Sensitivity struct {
		Noise  [][][]float32
		Values []float64
	}
	Sparseness, Complexity []float64
	Similarity             struct {
		Height, Width int
		Maps          [][]float32
		Pairs         []struct {
			A, B                        int
			SSIM, Spearman, SpearmanAbs float64
		}
	}
}

func readGolden(t *testing.T) golden {
	t.Helper()
	text, err := os.ReadFile("testdata/golden.json")
	require.NoError(t, err)
	var out golden
	require.NoError(t, json.Unmarshal(text, &out))
	return out
}

// hidden is the convolution of 3x3 before its ReLU.
func (g *golden) hidden(x []float32) []float64 {
	h, w := g.Height, g.Width
	var out []float64
	for k := range g.Net.Channels {
		for y := range h {
			for u := range w {
				sum := g.Net.ConvBias[k]
				for dy := -1; dy <= 1; dy++ {
					for dx := -1; dx <= 1; dx++ {
						if y+dy >= 0 && y+dy < h && u+dx >= 0 && u+dx < w {
							sum += g.Net.ConvWeight[k*9+(dy+1)*3+dx+1] * float64(x[(y+dy)*w+u+dx])
						}
					}
				}
				out = append(out, sum)
			}
		}
	}
	return out
}

func (g *golden) logits(x []float32) []float64 {
	hidden := g.hidden(x)
	out := slices.Clone(g.Net.FcBias)
	for c := range out {
		for i, v := range hidden {
			out[c] += g.Net.FcWeight[c*len(hidden)+i] * max(v, 0)
		}
	}
	return out
}

// inputTimesGradient is the map of the golden file.
func (g *golden) inputTimesGradient(x []float32, target int) Map {
	h, w := g.Height, g.Width
	gradient := make([]float64, h*w)
	hidden := g.hidden(x)
	for i, v := range hidden {
		if v <= 0 {
			continue
		}
		k, y, u := i/(h*w), i/w%h, i%w
		for dy := -1; dy <= 1; dy++ {
			for dx := -1; dx <= 1; dx++ {
				if y+dy >= 0 && y+dy < h && u+dx >= 0 && u+dx < w {
					gradient[(y+dy)*w+u+dx] += g.Net.FcWeight[target*len(hidden)+i] * g.Net.ConvWeight[k*9+(dy+1)*3+dx+1]
				}
			}
		}
	}
	out := Map{[]int{1, h, w}, make([]float32, h*w)}
	for i := range gradient {
		out.Values[i] = float32(gradient[i] * float64(x[i]))
	}
	return out
}

func (g *golden) group() Group {
	s := &plainStage{shape: []int{1, g.Height, g.Width}, rows: g.Images, batch: 4, logits: g.logits,
		explain: func(_ *plainStage, x []float32, target int) Map { return g.inputTimesGradient(x, target) }}
	out := Group{Stage: s}
	for i, m := range g.Maps {
		out.Images = append(out.Images, Image{ID: string(rune('a' + i)), Target: g.Targets[i], Map: Map{s.shape, m}})
	}
	return out
}

func valuesOf(t *testing.T, id string, g Group, parameters map[string]any) []float64 {
	t.Helper()
	s, err := ByID(id)
	require.NoError(t, err)
	results, err := s.Compute(t.Context(), g, parameters)
	require.NoError(t, err)
	var out []float64
	for _, r := range results {
		require.Empty(t, r.Undefined)
		out = append(out, r.Value)
	}
	return out
}

func TestTheGoldenNetIsPyTorchs(t *testing.T) {
	g := readGolden(t)
	for i, x := range g.Images {
		require.InDeltaSlice(t, g.Maps[i], g.inputTimesGradient(x, g.Targets[i]).Values, 1e-6)
	}
}

func TestScoresEqualQuantus(t *testing.T) {
	g := readGolden(t)
	group := g.group()
	t.Run("pixel-flipping", func(t *testing.T) {
		s := pixelFlipping()
		parameters := map[string]any{"step": g.PixelFlipping.Step, "compat": "quantus"}
		got, err := s.Compute(t.Context(), group, parameters)
		require.NoError(t, err)
		for i, r := range got {
			require.InDeltaSlice(t, g.PixelFlipping.Curves[i], r.Curves[0].Y, 1e-6)
			require.InDelta(t, g.PixelFlipping.Areas[i], r.Value, 1e-5)
		}
	})
	t.Run("faithfulness-correlation", func(t *testing.T) {
		s := faithfulnessCorrelation()
		p, err := s.resolve(map[string]any{"runs": len(g.Faithfulness.Subsets[0])})
		require.NoError(t, err)
		run, err := s.admit(group)
		require.NoError(t, err)
		got, err := correlate(t.Context(), run, p, func(m member, r int, do func(int)) {
			for _, pixel := range g.Faithfulness.Subsets[m.row][r] {
				do(pixel)
			}
		})
		require.NoError(t, err)
		for i, r := range got {
			require.InDelta(t, g.Faithfulness.Values[i], r.Value, 1e-5)
		}
	})
	t.Run("infidelity", func(t *testing.T) {
		got := valuesOf(t, "infidelity", group, map[string]any{"patch": g.Infidelity.Patch, "compat": "quantus"})
		for i, want := range g.Infidelity.Values {
			require.InEpsilon(t, want, got[i], 1e-5)
		}
	})
	t.Run("max-sensitivity", func(t *testing.T) {
		stage := group.Stage.(*plainStage)
		keys := map[uint64]int{}
		s := maxSensitivity()
		run, err := s.admit(group)
		require.NoError(t, err)
		for i, m := range run.images {
			keys[run.stream("max-sensitivity", m).Key] = i
		}
		stage.noise = func(d Draw, _ float64) []float32 { return g.Sensitivity.Noise[d.Sample][keys[d.Key]] }
		got := valuesOf(t, "max-sensitivity", group, map[string]any{"samples": len(g.Sensitivity.Noise)})
		require.InDeltaSlice(t, g.Sensitivity.Values, got, 1e-5)
	})
	t.Run("sparseness", func(t *testing.T) {
		require.InDeltaSlice(t, g.Sparseness, valuesOf(t, "sparseness", group, nil), 1e-6)
	})
	t.Run("complexity", func(t *testing.T) {
		require.InDeltaSlice(t, g.Complexity, valuesOf(t, "complexity", group, nil), 1e-6)
	})
}

func TestSimilaritiesEqualSkimageAndSciPy(t *testing.T) {
	g := readGolden(t).Similarity
	var portraits []portrait
	for _, m := range g.Maps {
		p, err := portray(Map{[]int{g.Height, g.Width}, m}, "sum")
		require.NoError(t, err)
		portraits = append(portraits, p)
	}
	for _, pair := range g.Pairs {
		for by, want := range map[string]float64{bySSIM: pair.SSIM, bySpearman: pair.Spearman, bySpearmanAbs: pair.SpearmanAbs} {
			got, defined := similar(portraits[pair.A], portraits[pair.B], by)
			require.True(t, defined)
			require.InDelta(t, want, got, 1e-6, "%s of %d and %d", by, pair.A, pair.B)
		}
	}
}

// Average ranks with ties, as metrics has them for itself.
func TestAverageRanks(t *testing.T) {
	values := []float64{3, 1, 3, -2, 1, 3, 0}
	require.Equal(t, []float64{6, 3.5, 6, 1, 3.5, 6, 2}, averageRanks(values))
	require.Equal(t, metrics.Ranks(values), averageRanks(values))
}
