package scores

import (
	"context"
	"math"
	"slices"
)

func sparseness() Score {
	return ofMap(Score{
		ID: "sparseness", Summary: "Gini index of the absolute values: how few pixels hold the map", Direction: HigherIsBetter,
		Paper: "Chalasani et al. 2020 (Concise explanations); Gini index: Hurley and Rickard 2009",
	}, func(a []float64) Result {
		slices.Sort(a)
		n := float64(len(a))
		sum, weighted := 0.0, 0.0
		for i, v := range a {
			sum += v
			weighted += (2*float64(i+1) - n - 1) * v
		}
		return Result{Value: weighted / (n * sum)}
	})
}

func complexity() Score {
	return ofMap(Score{
		ID: "complexity", Summary: "entropy of the absolute values as shares of their sum, in nats", Direction: LowerIsBetter,
		Paper: "Bhatt et al. 2020 (Evaluating and aggregating feature-based model explanations), complexity",
		Also:  []Quantity{{"normalised", "divided by the entropy of a constant map, ln n: in [0,1], so that resolutions compare"}},
	}, func(a []float64) Result {
		sum, entropy := 0.0, 0.0
		for _, v := range a {
			sum += v
		}
		for _, v := range a {
			if share := v / sum; share > 0 {
				entropy -= share * math.Log(share)
			}
		}
		r := Result{Value: max(0, entropy)}
		if len(a) > 1 {
			r.Also = map[string]float64{"normalised": r.Value / math.Log(float64(len(a)))}
		}
		return r
	})
}

// ofMap is a score of the absolute values of a map alone.
func ofMap(s Score, value func(absolute []float64) Result) Score {
	s.Inputs, s.Version = []Input{InputMap}, 1
	s.Parameters = []Parameter{reduceParameter("sum", true)}
	s.compute = func(_ context.Context, g *group, p values) ([]Result, error) {
		results := make([]Result, len(g.images))
		for i, m := range g.images {
			a, err := Reduce(m.Map, p.text("reduce"))
			if err != nil {
				return nil, err
			}
			largest := 0.0
			for j := range a {
				a[j] = math.Abs(a[j])
				largest = max(largest, a[j])
			}
			if largest == 0 {
				results[i] = undefined(ZeroMap)
				continue
			}
			results[i] = value(a)
		}
		return results, nil
	}
	return s
}
