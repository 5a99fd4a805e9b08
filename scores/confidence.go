package scores

import (
	"context"
	"fmt"
	"slices"

	"github.com/assay-xai/assay/trace"
)

const gradCAMPlusPlus = "Chattopadhyay et al. 2018 (Grad-CAM++), section 4.1"

func averageDrop() Score {
	return confidence(Score{
		ID: "average-drop", Summary: "part of the output that is lost when the image is dimmed by its map: max(s - s_m, 0) / s", Direction: LowerIsBetter,
	}, func(whole, dimmed float64) Result {
		if whole == 0 {
			return undefined(ZeroOutput)
		}
		return Result{Value: max(whole-dimmed, 0) / whole}
	})
}

func increaseInConfidence() Score {
	return confidence(Score{
		ID: "increase-in-confidence", Summary: "whether the output grows when the image is dimmed by its map: 1 or 0", Direction: HigherIsBetter,
	}, func(whole, dimmed float64) Result {
		if dimmed > whole {
			return Result{Value: 1}
		}
		return Result{}
	})
}

// confidence compares the output for an image with that for the image times its
// map, scaled to [0,1], in normalised space: 0 is the data set's mean colour.
func confidence(s Score, value func(whole, dimmed float64) Result) Score {
	s.Inputs, s.Output, s.Space, s.Paper, s.Version = []Input{InputMap, InputNet}, Probability, "normalised", gradCAMPlusPlus, 1
	s.Parameters = []Parameter{reduceParameter("sum", false)}
	s.Also = []Quantity{{"whole", "probability for the image"}, {"dimmed", "probability for the image times its map"}}
	s.cost = func(Subject, values) Cost { return Cost{Forwards: 2} }
	s.compute = func(ctx context.Context, g *group, p values) ([]Result, error) {
		results := make([]Result, len(g.images))
		masks := make([][]float32, len(g.images))
		ones := slices.Repeat([]float32{1}, g.elements())
		for i, m := range g.images {
			a, err := Reduce(m.Map, p.text("reduce"))
			if err != nil {
				return nil, err
			}
			if masks[i] = scaledTo01(a); masks[i] == nil {
				results[i] = undefined(ConstantMap)
				masks[i] = ones
			}
		}
		// Image after image, so that a call holds few masks.
		scores := make([]trace.Score, 0, 2*len(g.images))
		step := max(1, (chunkScaled+g.Batch()-1)/g.Batch()*g.Batch()/2)
		for from := 0; from < len(g.images); from += step {
			var rows []Scaled
			for i, m := range g.images[from:min(len(g.images), from+step)] {
				rows = append(rows, Scaled{m.row, m.Target, ones}, Scaled{m.row, m.Target, masks[from+i]})
			}
			part, err := g.Scaled(ctx, rows)
			if err != nil {
				return nil, err
			}
			if len(part) != len(rows) {
				return nil, fmt.Errorf("%d scores for %d rows", len(part), len(rows))
			}
			scores = append(scores, part...)
		}
		for i := range results {
			whole, dimmed := scores[2*i].Prob, scores[2*i+1].Prob
			switch {
			case results[i].Undefined != "":
			case !isFinite(whole) || !isFinite(dimmed):
				results[i] = undefined(NotFiniteOutput)
			default:
				results[i] = value(whole, dimmed)
				if results[i].Undefined == "" {
					results[i].Also = map[string]float64{"whole": whole, "dimmed": dimmed}
				}
			}
		}
		return results, nil
	}
	return s
}

// chunkScaled is about how many masks are handed over at a time.
const chunkScaled = 64

// scaledTo01 maps the smallest value to 0 and the largest to 1; nil where they
// are the same.
func scaledTo01(a []float64) []float32 {
	lo, hi := slices.Min(a), slices.Max(a)
	if !(hi > lo) {
		return nil
	}
	out := make([]float32, len(a))
	for i, v := range a {
		out[i] = float32((v - lo) / (hi - lo))
	}
	return out
}
