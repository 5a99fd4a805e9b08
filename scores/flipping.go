package scores

import (
	"context"
	"errors"
	"math"

	"github.com/assay-xai/assay/internal/usage"
	"github.com/assay-xai/assay/trace"
)

const rise = "Petsiuk et al. 2018 (RISE), section 4.1"

func deletion() Score {
	return flipping("deletion", LowerIsBetter, "area under the output's curve as pixels are deleted, most relevant first", rise, "zero", false)
}

func insertion() Score {
	return flipping("insertion", HigherIsBetter, "area under the output's curve as pixels are put into a blurred image, most relevant first", rise,
		"blur(kernel=11,sigma=5)", true)
}

func pixelFlipping() Score {
	s := flipping("pixel-flipping", LowerIsBetter, "area under the output's curve as pixels are replaced, most relevant first",
		"Bach et al. 2015 (Pixel-wise explanations), pixel flipping; Samek et al. 2017", "zero", false)
	s.Parameters = append(s.Parameters, Parameter{Name: "compat", Type: "string", Default: "none", Choices: []string{"none", quantus},
		Summary: "quantus: the curve without the unperturbed point, the area not divided by the number of steps"})
	return s
}

// quantus is the value of compat that follows Quantus 0.6.
const quantus = "quantus"

// stepsADeletion is in how many steps all pixels go by default: RISE's 224 pixels
// a step of an image of 224 x 224.
const stepsADeletion = 224

// flipping changes pixels step by step, most relevant first, and takes the area
// under the curve of the output.
func flipping(id string, direction Direction, summary, paper, reference string, insert bool) Score {
	return Score{
		ID: id, Summary: summary, Direction: direction,
		Inputs: []Input{InputMap, InputNet}, Output: Probability, Space: "normalised", Paper: paper, Version: 1,
		Parameters: []Parameter{
			{Name: "step", Type: "int", Default: 0, Minimum: number(0), Summary: "pixels a step; 0: a 224th of them, at least 1"},
			referenceParameter(reference, "what pixels that are not there are"),
			outputParameter(Probability),
			reduceParameter("sum", false),
		},
		cost: func(s Subject, p values) Cost {
			n := elements(s.Shape)
			return Cost{Forwards: float64(steps(n, stepSize(n, p)) + 1)}
		},
		compute: func(ctx context.Context, g *group, p values) ([]Result, error) {
			return flip(ctx, g, p, insert)
		},
	}
}

func stepSize(n int, p values) int {
	if k := p.int("step"); k > 0 {
		return k
	}
	return max(1, int(math.Round(float64(n)/stepsADeletion)))
}

func steps(n, size int) int { return (n + size - 1) / size }

func flip(ctx context.Context, g *group, p values, insert bool) (results []Result, err error) {
	n := g.elements()
	size := stepSize(n, p)
	if size > n {
		return nil, usage.Errorf("step %d: the input has %d pixels", size, n)
	}
	scene, err := g.scene(ctx, n, eachFeature(n), p.text("reference"))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, scene.Close()) }()

	points := steps(n, size) + 1
	results = make([]Result, len(g.images))
	curves := make([][]float64, len(g.images))
	// The states of an image follow each other: one set grows with them.
	var order []int
	set := trace.NewSet(n)
	state := func(i int) trace.Row {
		at, k := i/points, i%points
		m := g.images[at]
		if k == 0 {
			values, e := Reduce(m.Map, p.text("reduce"))
			if e != nil {
				err = e
				values = make([]float64, n)
			}
			if constant(values) {
				results[at].Warnings = []string{"constant map: the order is drawn"}
			}
			order = Descending(values, g.seed, m.ID)
			set = trace.NewSet(n)
		} else {
			for _, pixel := range order[(k-1)*size : min(n, k*size)] {
				set.Add(pixel)
			}
		}
		row := trace.Row{Slot: m.row, Target: m.Target}
		if insert { // what is not inserted yet is deleted
			row.Set = set.Complement(n)
		} else {
			row.Set = set.Clone()
		}
		return row
	}
	asked := g.ask(ctx, scene, points*len(g.images), state, func(i int, s trace.Score) {
		curves[i/points] = append(curves[i/points], read(s, p.text("output")))
	})
	if err = errors.Join(err, asked); err != nil {
		return nil, err
	}
	compat := p["compat"] == quantus
	for i, y := range curves {
		results[i] = area(results[i], y, size, n, compat)
	}
	return results, nil
}

// area is the trapezoids' area under a curve of the output by the number of
// steps, divided by that number.
func area(r Result, y []float64, size, n int, compat bool) Result {
	for _, v := range y {
		if !isFinite(v) {
			return undefined(NotFiniteOutput)
		}
	}
	x := make([]float64, len(y))
	for k := range x {
		x[k] = float64(min(n, k*size)) / float64(n)
	}
	if compat {
		x, y = x[1:], y[1:]
	}
	for k := 1; k < len(y); k++ {
		r.Value += (y[k-1] + y[k]) / 2
	}
	if !compat {
		r.Value /= float64(len(y) - 1)
	}
	r.Curves = []Curve{{Name: "output", X: x, Y: y}}
	return r
}
