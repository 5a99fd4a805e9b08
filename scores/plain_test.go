package scores

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/stat"

	"github.com/assay-xai/assay/internal/rng"
	"github.com/assay-xai/assay/trace"
)

// summed is a map's sum over channels.
func summed(m Map, n int) []float64 {
	out := make([]float64, n)
	for i, v := range m.Values {
		out[i%n] += float64(v)
	}
	return out
}

// The plain loop of pixel flipping: pixel p is gone after k steps if fewer than k
// size pixels come before it. Ties go by the drawn permutation, written out here.
func TestFlippingEqualsThePlainLoop(t *testing.T) {
	const n, size = 35, 4
	s := bentStage([]int{2, 5, 7}, 3, 3)
	s.reference = func(x []float32, name string) []float32 {
		out := make([]float32, len(x))
		for i := range out {
			out[i] = float32(len(name)) / 8
		}
		return out
	}
	g := Group{Stage: s, Images: s.images(2, 3), Seed: 5}
	for i := range g.Images { // coarse, so that there are ties
		for j, v := range g.Images[i].Map.Values {
			g.Images[i].Map.Values[j] = float32(math.Round(float64(v) / 3))
		}
	}
	for at, im := range g.Images {
		a := summed(im.Map, n)
		place := rng.New(5, "ties", im.ID).Perm(0, n)
		before := func(p, q int) bool { return a[p] > a[q] || a[p] == a[q] && place[p] < place[q] }
		for _, c := range []struct {
			id, reference, output string
			insert                bool
		}{{"deletion", "zero", Probability, false}, {"insertion", "blur", Logit, true}, {"pixel-flipping", "mean", Probability, false}} {
			var curve []float64
			for k := range 10 {
				x := slices.Clone(s.rows[at])
				for p := range n {
					rank := 0
					for q := range n {
						if before(q, p) {
							rank++
						}
					}
					if touched := rank < k*size; touched != c.insert {
						x[p], x[n+p] = float32(len(c.reference))/8, float32(len(c.reference))/8
					}
				}
				curve = append(curve, read(s.score(x, im.Target), c.output))
			}
			area := 0.0
			for k := 1; k < 10; k++ {
				area += (curve[k-1] + curve[k]) / 2 / 9
			}
			score, err := ByID(c.id)
			require.NoError(t, err)
			got, err := score.Compute(t.Context(), g, map[string]any{"step": size, "reference": c.reference, "output": c.output})
			require.NoError(t, err)
			require.InDelta(t, area, got[at].Value, 1e-12, "%s of %s", c.id, im.ID)
			require.InDeltaSlice(t, curve, got[at].Curves[0].Y, 1e-12)
			require.Equal(t, 1., got[at].Curves[0].X[9])
			require.InDelta(t, 4./35, got[at].Curves[0].X[1], 1e-15)
		}
	}
	require.Zero(t, s.open)
}

func TestDescendingDrawsTies(t *testing.T) {
	require.Equal(t, []int{3, 0, 2, 1}, Descending([]float64{2, -5, 1, 7}, 0, "a"))
	flat := make([]float64, 50)
	order := Descending(flat, 1, "a")
	require.Equal(t, order, Descending(flat, 1, "a"))
	require.NotEqual(t, order, Descending(flat, 1, "b"))
	require.NotEqual(t, order, Descending(flat, 2, "a"))
	slices.Sort(order)
	require.Equal(t, trace.ColumnMap(50)[49], int32(order[49]))
}

func TestAverageDropAndIncreaseEqualThePlainLoop(t *testing.T) {
	const n = 12
	s := bentStage([]int{3, 3, 4}, 4, 4)
	g := Group{Stage: s, Images: s.images(3, 4)}
	drops, grows := valuesOf(t, "average-drop", g, nil), valuesOf(t, "increase-in-confidence", g, nil)
	saw := map[float64]bool{}
	for at, im := range g.Images {
		a := summed(im.Map, n)
		lo, hi := slices.Min(a), slices.Max(a)
		x := slices.Clone(s.rows[at])
		for i := range x {
			x[i] *= float32((a[i%n] - lo) / (hi - lo))
		}
		whole, dimmed := s.score(s.rows[at], im.Target).Prob, s.score(x, im.Target).Prob
		require.InDelta(t, max(whole-dimmed, 0)/whole, drops[at], 1e-9)
		want := 0.0
		if dimmed > whole {
			want = 1
		}
		require.Equal(t, want, grows[at])
		saw[want] = true
	}
	require.Len(t, saw, 2, "images of both kinds")
}

func TestFaithfulnessCorrelationEqualsThePlainLoop(t *testing.T) {
	const n, runs, size = 24, 40, 7
	s := bentStage([]int{2, 4, 6}, 2, 5)
	g := Group{Stage: s, Images: s.images(2, 5), Seed: 9}
	got := valuesOf(t, "faithfulness-correlation", g, map[string]any{"runs": runs, "features": size})
	for at, im := range g.Images {
		a := summed(im.Map, n)
		var sums, drops []float64
		scratch := make([]int, n)
		for i := range scratch {
			scratch[i] = i
		}
		for run := range runs {
			x, sum := slices.Clone(s.rows[at]), 0.0
			subset(rng.New(9, "score/faithfulness-correlation", im.ID), uint64(run), size, scratch, func(p int) {
				x[p], x[n+p] = 0, 0
				sum += a[p]
			})
			sums = append(sums, sum)
			drops = append(drops, s.score(s.rows[at], im.Target).Logit-s.score(x, im.Target).Logit)
		}
		require.InDelta(t, stat.Covariance(sums, drops, nil)/stat.StdDev(sums, nil)/stat.StdDev(drops, nil), got[at], 1e-9)
	}
}

// Subsets have the size that was asked for, leave the scratch as it was, and hold
// every pixel equally often: 5 of 20, 4000 times; five standard deviations.
func TestSubsetsAreUniform(t *testing.T) {
	const n, size, runs = 20, 5, 4000
	scratch, counts := make([]int, n), make([]int, n)
	for i := range scratch {
		scratch[i] = i
	}
	for run := range runs {
		seen := map[int]bool{}
		subset(rng.Stream{Key: 3}, uint64(run), size, scratch, func(p int) { seen[p] = true; counts[p]++ })
		require.Len(t, seen, size)
	}
	for i, p := range scratch {
		require.Equal(t, i, p)
		require.InDelta(t, runs*size/n, counts[i], 5*math.Sqrt(runs*.25*.75))
	}
}

func TestInfidelityEqualsThePlainLoop(t *testing.T) {
	s := bentStage([]int{2, 5, 7}, 2, 6)
	s.reference = func(x []float32, _ string) []float32 { return slices.Repeat([]float32{.5}, len(x)) }
	for _, channels := range []int{1, 2} {
		g := Group{Stage: s, Images: s.images(channels, 6)}
		score := infidelity()
		got, err := score.Compute(t.Context(), g, map[string]any{"patch": 3})
		require.NoError(t, err)
		best := valuesOf(t, "infidelity", g, map[string]any{"patch": 3, "scale": "optimal"})
		for at, im := range g.Images {
			at0 := func(scale float64) float64 {
				sum := 0.0
				for top := 0; top < 5; top += 3 {
					for left := 0; left < 7; left += 3 {
						x, said := slices.Clone(s.rows[at]), 0.0
						for c := range 2 {
							for y := top; y < min(5, top+3); y++ {
								for u := left; u < min(7, left+3); u++ {
									i := c*35 + y*7 + u
									a := float64(im.Map.Values[i%len(im.Map.Values)])
									if channels == 1 {
										a /= 2 // spread over the channels
									}
									said += scale * a * (float64(s.rows[at][i]) - .5)
									x[i] = .5
								}
							}
						}
						gap := said - (s.score(s.rows[at], im.Target).Logit - s.score(x, im.Target).Logit)
						sum += gap * gap / 6
					}
				}
				return sum
			}
			require.InEpsilon(t, at0(1), got[at].Value, 1e-6)
			// A parabola in the scale, whose vertex three of its points give.
			down, mid, up := at0(-1), at0(0), at0(1)
			vertex := (down - up) / (2 * (down - 2*mid + up))
			require.InDelta(t, vertex, got[at].Also["scale"], 1e-5)
			require.InEpsilon(t, at0(vertex), got[at].Also["scaled"], 1e-5)
			require.InEpsilon(t, at0(vertex), best[at], 1e-5)
		}
	}
}

// withMaps lets a stage explain: the map is the image, bent by the class, and by
// what the stage's layers were randomised with.
func (s *plainStage) withMaps() *plainStage {
	s.explain = func(s *plainStage, x []float32, target int) Map {
		out := Map{s.shape, make([]float32, len(x))}
		for i, v := range x {
			out.Values[i] = float32(math.Sin(float64(v)*(1+float64(target))) + s.bend*float64(i%5))
		}
		return out
	}
	s.noise = func(d Draw, radius float64) []float32 {
		out := make([]float32, len(s.rows[0]))
		for i := range out {
			out[i] = float32(radius * (2*rng.Stream{Key: d.Key}.Float64(uint64(i), d.Sample) - 1))
		}
		return out
	}
	s.layers = []Layer{{"first", "conv2d"}, {"norm", "batch_norm"}, {"last", "linear"}}
	s.randomised = func(s *plainStage, layers []string, seed uint64) *plainStage {
		out := *s
		for _, l := range layers {
			out.bend += rng.New(seed, "test/layer", l).Float64(0, 0)
			out.history = append(slices.Clone(out.history), l)
		}
		*out.opened++
		return &out
	}
	s.opened, s.shut = new(int), new(int)
	return s
}

func (s *plainStage) ownMaps() []Image {
	images := s.images(1, 1)
	for i := range images {
		images[i].Map = s.explain(s, s.rows[i], images[i].Target)
	}
	return images
}

func TestMaxSensitivityEqualsThePlainLoop(t *testing.T) {
	s := bentStage([]int{2, 5, 7}, 3, 8).withMaps()
	g := Group{Stage: s, Images: s.ownMaps(), Seed: 2}
	score := maxSensitivity()
	got, err := score.Compute(t.Context(), g, map[string]any{"samples": 30, "radius": .1})
	require.NoError(t, err)
	for at, im := range g.Images {
		largest, sum, norm := 0.0, 0.0, 0.0
		for _, v := range im.Map.Values {
			norm += float64(v) * float64(v)
		}
		for sample := range 30 {
			x := slices.Clone(s.rows[at])
			for i := range x {
				x[i] += float32(.1 * (2*rng.New(2, "score/max-sensitivity", im.ID).Float64(uint64(i), uint64(sample)) - 1))
			}
			gap := 0.0
			for i, v := range s.explain(s, x, im.Target).Values {
				d := float64(v) - float64(im.Map.Values[i])
				gap += d * d
			}
			largest, sum = max(largest, math.Sqrt(gap/norm)), sum+math.Sqrt(gap/norm)
		}
		require.InDelta(t, largest, got[at].Value, 1e-6)
		require.InDelta(t, sum/30, got[at].Also["mean"], 1e-6)
	}
}

// Cascading walks from the output down and keeps what was changed; independent
// changes one layer at a time. Copies of the net are closed.
func TestRandomisationWalksTheLayers(t *testing.T) {
	s := bentStage([]int{1, 8, 9}, 2, 9).withMaps()
	g := Group{Stage: s, Images: s.ownMaps(), Seed: 4}
	for _, c := range []struct {
		mode, layers string
		steps        [][]string
	}{
		{"cascading", "all", [][]string{{"last"}, {"last", "norm"}, {"last", "norm", "first"}}},
		{"independent", "all", [][]string{{"last"}, {"norm"}, {"first"}}},
		{"cascading", "convolutions", [][]string{{"first"}}},
	} {
		*s.opened, *s.shut = 0, 0
		score := randomisation()
		got, err := score.Compute(t.Context(), g, map[string]any{"mode": c.mode, "layers": c.layers})
		require.NoError(t, err)
		require.Equal(t, len(c.steps), *s.opened)
		require.Equal(t, *s.opened, *s.shut, "copies that are still open")
		for at, im := range g.Images {
			var want []float64
			before, err := portray(im.Map, "sum")
			require.NoError(t, err)
			for _, step := range c.steps {
				other := s.randomised(s, step, 4)
				after, err := portray(s.explain(other, s.rows[at], im.Target), "sum")
				require.NoError(t, err)
				v, defined := similar(before, after, bySpearman)
				require.True(t, defined)
				want = append(want, v)
			}
			require.InDeltaSlice(t, want, got[at].Curves[1].Y, 1e-12)
			require.InDelta(t, stat.Mean(want, nil), got[at].Value, 1e-12)
			require.Equal(t, "spearman", got[at].Curves[1].Name)
			require.Equal(t, c.steps[0][0], got[at].Curves[1].Labels[0])
		}
	}
}

func TestRandomLogitTakesAnotherClass(t *testing.T) {
	s := bentStage([]int{1, 8, 9}, 6, 10).withMaps()
	g := Group{Stage: s, Images: s.ownMaps()}
	drawn := map[float64]bool{}
	for seed := range uint64(8) {
		g.Seed = seed
		score := randomLogit()
		got, err := score.Compute(t.Context(), g, map[string]any{"similarity": "ssim"})
		require.NoError(t, err)
		for at, im := range g.Images {
			class := got[at].Also["class"]
			drawn[class] = true
			require.NotEqual(t, float64(im.Target), class)
			before, err := portray(im.Map, "sum")
			require.NoError(t, err)
			after, err := portray(s.explain(s, s.rows[at], int(class)), "sum")
			require.NoError(t, err)
			require.InDelta(t, SSIM(before.unit, after.unit, 8, 9), got[at].Value, 1e-12)
		}
	}
	require.Len(t, drawn, 3)
}

func TestPointingGame(t *testing.T) {
	a := make([]float32, 30*40)
	a[10*40+20] = 2 // x 20, y 10
	point := func(r *Region, tolerance int) Result {
		return one(t, "pointing-game", Group{Images: []Image{{ID: "a", Map: Map{[]int{1, 30, 40}, a}, Region: r}}}, map[string]any{"tolerance": tolerance})
	}
	boxes := func(b ...Box) *Region { return &Region{Boxes: b} }
	for _, c := range []struct {
		name      string
		region    *Region
		tolerance int
		want      Result
	}{
		{"in the box", boxes(Box{20, 10, 21, 11}), 0, Result{Value: 1}},
		{"ends are outside", boxes(Box{0, 0, 20, 30}), 0, Result{}},
		{"in the second box", boxes(Box{0, 0, 2, 2}, Box{15, 5, 25, 15}), 0, Result{Value: 1}},
		{"one pixel away", boxes(Box{0, 0, 20, 30}), 1, Result{Value: 1}},
		{"five away, 3 and 4", boxes(Box{0, 0, 18, 7}), 5, Result{Value: 1}},
		{"four do not reach", boxes(Box{0, 0, 18, 7}), 4, Result{}},
		{"no region", nil, 15, Result{Undefined: NoRegion}},
		{"a box outside the image", boxes(Box{50, 50, 60, 60}), 15, Result{Undefined: NoRegion}},
		{"an empty mask", &Region{Mask: make([]bool, 1200)}, 15, Result{Undefined: NoRegion}},
	} {
		t.Run(c.name, func(t *testing.T) { require.Equal(t, c.want, point(c.region, c.tolerance)) })
	}
	mask := make([]bool, 1200)
	mask[10*40+20] = true
	require.Equal(t, Result{Value: 1}, point(&Region{Mask: mask}, 0))
}
