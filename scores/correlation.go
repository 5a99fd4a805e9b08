package scores

import (
	"context"
	"errors"

	"gonum.org/v1/gonum/stat"

	"github.com/assay-xai/assay/internal/rng"
	"github.com/assay-xai/assay/internal/usage"
	"github.com/assay-xai/assay/trace"
)

func faithfulnessCorrelation() Score {
	return Score{
		ID: "faithfulness-correlation", Summary: "correlation of the map's sum over random pixels with what removing them takes from the output",
		Direction: HigherIsBetter, Inputs: []Input{InputMap, InputNet}, Output: Logit, Space: "normalised",
		Paper: "Bhatt et al. 2020 (Evaluating and aggregating feature-based model explanations), faithfulness", Version: 1,
		Parameters: []Parameter{
			{Name: "runs", Type: "int", Default: 100, Minimum: number(2), Maximum: number(1 << 20), Summary: "random subsets an image"},
			{Name: "features", Type: "int", Default: 0, Minimum: number(0), Summary: "pixels in a subset; 0: 224, or half of them where there are fewer than 448"},
			referenceParameter("zero", "what removed pixels become"),
			outputParameter(Logit),
			reduceParameter("sum", false),
		},
		cost: func(_ Subject, p values) Cost { return Cost{Forwards: float64(p.int("runs") + 1)} },
		compute: func(ctx context.Context, g *group, p values) ([]Result, error) {
			n := g.elements()
			size := p.int("features")
			if size == 0 {
				size = min(224, max(1, n/2))
			}
			if size > n {
				return nil, usage.Errorf("features %d: the input has %d pixels", size, n)
			}
			scratch := make([]int, n)
			for i := range scratch {
				scratch[i] = i
			}
			return correlate(ctx, g, p, func(m member, run int, do func(pixel int)) {
				subset(g.stream("faithfulness-correlation", m), uint64(run), size, scratch, do)
			})
		},
	}
}

// subset draws size of the numbers in scratch, each subset as likely as any other,
// and leaves scratch as it was.
func subset(stream rng.Stream, run uint64, size int, scratch []int, do func(int)) {
	n := len(scratch)
	picks := make([]int, size)
	for i := range size {
		picks[i] = i + stream.IntN(run, uint64(i), n-i)
		scratch[i], scratch[picks[i]] = scratch[picks[i]], scratch[i]
		do(scratch[i])
	}
	for i := size - 1; i >= 0; i-- {
		scratch[i], scratch[picks[i]] = scratch[picks[i]], scratch[i]
	}
}

// correlate is the score for given subsets of pixels: choose tells those of a run.
func correlate(ctx context.Context, g *group, p values, choose func(m member, run int, do func(pixel int))) (results []Result, err error) {
	n, runs := g.elements(), p.int("runs")
	scene, err := g.scene(ctx, n, eachFeature(n), p.text("reference"))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, scene.Close()) }()
	maps := make([][]float64, len(g.images))
	sums, drops := make([][]float64, len(g.images)), make([][]float64, len(g.images))
	for i, m := range g.images {
		if maps[i], err = Reduce(m.Map, p.text("reduce")); err != nil {
			return nil, err
		}
	}
	state := func(i int) trace.Row {
		at, run := i/(runs+1), i%(runs+1)-1
		row := trace.Row{Slot: g.images[at].row, Target: g.images[at].Target, Set: trace.NewSet(n)}
		if run < 0 {
			return row
		}
		sum := 0.0
		choose(g.images[at], run, func(pixel int) {
			row.Set.Add(pixel)
			sum += maps[at][pixel]
		})
		sums[at] = append(sums[at], sum)
		return row
	}
	whole := 0.0
	err = g.ask(ctx, scene, len(g.images)*(runs+1), state, func(i int, s trace.Score) {
		at, v := i/(runs+1), read(s, p.text("output"))
		if i%(runs+1) == 0 {
			whole = v
		} else {
			drops[at] = append(drops[at], whole-v)
		}
	})
	if err != nil {
		return nil, err
	}
	results = make([]Result, len(g.images))
	for i := range results {
		results[i] = pearson(maps[i], sums[i], drops[i])
	}
	return results, nil
}

func pearson(a, sums, drops []float64) Result {
	for _, v := range drops {
		if !isFinite(v) {
			return undefined(NotFiniteOutput)
		}
	}
	switch {
	case constant(a) || constant(sums):
		return undefined(ConstantMap)
	case constant(drops):
		return undefined(ConstantOutput)
	}
	return Result{Value: min(1, max(-1, stat.Correlation(sums, drops, nil)))}
}
