package scores

import (
	"context"
	"errors"

	"github.com/assay-xai/assay/internal/usage"
	"github.com/assay-xai/assay/trace"
)

func infidelity() Score {
	return Score{
		ID: "infidelity", Summary: "mean square of what the map says a removed patch takes from the output, less what it takes",
		Direction: LowerIsBetter, Inputs: []Input{InputMap, InputNet}, Output: Logit, Space: "normalised",
		Paper: "Yeh et al. 2019 (On the (in)fidelity and sensitivity of explanations), Definition 2.1 with square removal", Version: 1,
		Parameters: []Parameter{
			{Name: "patch", Type: "int", Default: 0, Minimum: number(0), Summary: "side of a square patch in pixels; 0: a quarter of the shorter side; tables remove columns"},
			referenceParameter("zero", "what removed patches become"),
			{Name: "scale", Type: "string", Default: "none", Choices: []string{"none", "optimal"}, Summary: "optimal: the map times the number that makes the score best"},
			outputParameter(Logit),
			{Name: "compat", Type: "string", Default: "none", Choices: []string{"none", quantus},
				Summary: "quantus: patches stay removed, and a map of one channel counts in every channel"},
		},
		Also: []Quantity{{"scale", "the number that makes the score best, once multiplied with the map"}, {"scaled", "the score then"}},
		cost: func(s Subject, p values) Cost {
			_, features := patchGrid(s.Shape, p.int("patch"))
			return Cost{Forwards: float64(features + 1)}
		},
		compute: computeInfidelity,
	}
}

// patchGrid cuts an image into squares from its upper left corner, row by row; the
// last ones are what is left. Of tables every column is one.
func patchGrid(shape []int, side int) (featureMap []int32, features int) {
	if len(shape) != 3 {
		return eachFeature(elements(shape)), elements(shape)
	}
	h, w := shape[1], shape[2]
	if side == 0 {
		side = max(1, min(h, w)/4)
	}
	across := (w + side - 1) / side
	featureMap = make([]int32, h*w)
	for y := range h {
		for x := range w {
			featureMap[y*w+x] = int32(y/side*across + x/side)
		}
	}
	return featureMap, across * ((h + side - 1) / side)
}

func computeInfidelity(ctx context.Context, g *group, p values) (results []Result, err error) {
	shape := g.Shape()
	if side := p.int("patch"); len(shape) == 3 && side > max(shape[1], shape[2]) {
		return nil, usage.Errorf("patch %d: the image has %dx%d pixels", side, shape[1], shape[2])
	}
	featureMap, features := patchGrid(shape, p.int("patch"))
	scene, err := g.scene(ctx, features, featureMap, p.text("reference"))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, scene.Close()) }()
	accumulate := p.text("compat") == quantus
	// What the map says: the sum of a (x - x~) over what is removed.
	said := make([][]float64, len(g.images))
	for i, m := range g.images {
		difference, err := scene.Difference(ctx, m.row)
		if err != nil {
			return nil, err
		}
		said[i] = sumsOverFeatures(m.Map.Values, difference, featureMap, features, accumulate)
		for f := 1; f < features && accumulate; f++ {
			said[i][f] += said[i][f-1]
		}
	}
	took := make([][]float64, len(g.images))
	whole := 0.0
	var set trace.Set
	err = g.ask(ctx, scene, len(g.images)*(features+1), func(i int) trace.Row {
		m, f := g.images[i/(features+1)], i%(features+1)-1
		if f < 0 || !accumulate {
			set = trace.NewSet(features)
		}
		if f >= 0 {
			set.Add(f)
		}
		return trace.Row{Slot: m.row, Target: m.Target, Set: set.Clone()}
	}, func(i int, s trace.Score) {
		at, v := i/(features+1), read(s, p.text("output"))
		if i%(features+1) == 0 {
			whole = v
		} else {
			took[at] = append(took[at], whole-v)
		}
	})
	if err != nil {
		return nil, err
	}
	results = make([]Result, len(g.images))
	for i := range results {
		results[i] = meanSquare(said[i], took[i], p.text("scale") == "optimal")
	}
	return results, nil
}

// sumsOverFeatures sums map times difference over channels and the pixels of each
// feature. A map of one channel for an input of several is spread over them: each
// gets an equal part, so that the map's sum stays; with whole, each gets all.
func sumsOverFeatures(a, difference []float32, featureMap []int32, features int, whole bool) []float64 {
	out := make([]float64, features)
	n := len(featureMap)
	share := 1.0
	if len(a) < len(difference) && !whole {
		share = float64(n) / float64(len(difference))
	}
	for i, d := range difference {
		out[featureMap[i%n]] += float64(a[i%len(a)]) * float64(d) * share
	}
	return out
}

func meanSquare(said, took []float64, optimal bool) Result {
	products, squares := 0.0, 0.0
	for i, v := range said {
		if !isFinite(took[i]) {
			return undefined(NotFiniteOutput)
		}
		products += v * took[i]
		squares += v * v
	}
	at := func(scale float64) float64 {
		sum := 0.0
		for i, v := range said {
			gap := scale*v - took[i]
			sum += gap * gap
		}
		return sum / float64(len(said))
	}
	r := Result{Value: at(1)}
	if squares == 0 {
		if optimal {
			return undefined(ZeroMap)
		}
		return r
	}
	best := products / squares
	r.Also = map[string]float64{"scale": best, "scaled": at(best)}
	if optimal {
		r.Value = r.Also["scaled"]
	}
	return r
}
