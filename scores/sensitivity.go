package scores

import (
	"context"
	"errors"
	"fmt"
	"math"
)

func maxSensitivity() Score {
	return Score{
		ID: "max-sensitivity", Summary: "largest relative change of the map under small uniform noise on the image", Direction: LowerIsBetter,
		Inputs: []Input{InputMap, InputMaps, InputNet}, Space: "normalised", Paper: "Yeh et al. 2019 (On the (in)fidelity and sensitivity of explanations), max-sensitivity, divided by the map's norm", Version: 1,
		Parameters: []Parameter{
			{Name: "samples", Type: "int", Default: 10, Minimum: number(1), Maximum: number(1 << 20), Summary: "noisy images an image"},
			{Name: "radius", Type: "float", Default: .2, Minimum: number(0), Summary: "noise is uniform in [-radius,radius), in normalised space"},
			reduceParameter(noReduction, true),
		},
		Also:    []Quantity{{"mean", "mean relative change"}},
		cost:    func(_ Subject, p values) Cost { return Cost{Maps: float64(p.int("samples"))} },
		compute: computeSensitivity,
	}
}

// chunkMaps is about how many maps are asked for at a time.
const chunkMaps = 64

func computeSensitivity(ctx context.Context, g *group, p values) ([]Result, error) {
	samples := p.int("samples")
	results := make([]Result, len(g.images))
	before := make([][]float64, len(g.images))
	norms := make([]float64, len(g.images))
	var live []int // images that have a norm
	for i, m := range g.images {
		var err error
		if before[i], err = Reduce(m.Map, p.text("reduce")); err != nil {
			return nil, err
		}
		if norms[i] = norm(before[i], nil); norms[i] == 0 {
			results[i] = undefined(ZeroMap)
		} else {
			live = append(live, i)
		}
	}
	changes := make([][]float64, len(g.images))
	step := (chunkMaps + g.Batch() - 1) / g.Batch() * g.Batch()
	total := len(live) * samples
	for from := 0; from < total; from += step {
		var draws []Draw
		var targets []int
		for k := from; k < min(total, from+step); k++ {
			m := g.images[live[k/samples]]
			draws = append(draws, Draw{m.row, g.stream("max-sensitivity", m).Key, uint64(k % samples)})
			targets = append(targets, m.Target)
		}
		maps, err := g.explainNoisy(ctx, draws, targets, p.float("radius"))
		if err != nil {
			return nil, err
		}
		for k, after := range maps {
			at := live[(from+k)/samples]
			a, err := Reduce(after, p.text("reduce"))
			if err != nil {
				return nil, err
			}
			if len(a) != len(before[at]) {
				return nil, fmt.Errorf("the method's map of a noisy %s is %v, and was %v", g.images[at].ID, after.Shape, g.images[at].Map.Shape)
			}
			changes[at] = append(changes[at], norm(a, before[at])/norms[at])
		}
	}
	for _, i := range live {
		largest, sum := 0.0, 0.0
		for _, c := range changes[i] {
			if !isFinite(c) {
				results[i] = undefined(NotFiniteMap)
				break
			}
			largest, sum = max(largest, c), sum+c
		}
		if results[i].Undefined == "" {
			results[i] = Result{Value: largest, Also: map[string]float64{"mean": sum / float64(samples)}}
		}
	}
	return results, nil
}

func (g *group) explainNoisy(ctx context.Context, draws []Draw, targets []int, radius float64) (maps []Map, err error) {
	noisy, err := g.Noisy(ctx, draws, radius)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, noisy.Close()) }()
	if maps, err = noisy.Explain(ctx, targets); err == nil && len(maps) != len(targets) {
		err = fmt.Errorf("%d maps for %d images", len(maps), len(targets))
	}
	return maps, err
}

// norm is the Euclidean length of a, or of a - b.
func norm(a, b []float64) float64 {
	sum := 0.0
	for i, v := range a {
		if b != nil {
			v -= b[i]
		}
		sum += v * v
	}
	return math.Sqrt(sum)
}
