package scores

import (
	"context"
	"errors"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/assay-xai/assay/trace"
)

func le() Score {
	return patchDeletion("le", HigherIsBetter, "deleting patches, least relevant first: sum of the curve, to stay high")
}

func mo() Score {
	return patchDeletion("mo", HigherIsBetter, "minus the sum of the curve of deleting patches, most relevant first")
}

func leMo() Score {
	return patchDeletion("le-mo", HigherIsBetter, "sum of the curve of deleting least relevant patches first, less that of most relevant first")
}

// patchDeletion is TRACE's deletion test of an order: what `assay trace --solver
// order --start map` gives for the same map, to the bit.
func patchDeletion(id string, direction Direction, summary string) Score {
	return Score{
		ID: id, Summary: summary, Direction: direction,
		Inputs: []Input{InputMap, InputNet}, Output: Probability, Space: "normalised",
		Paper:   "TRACE, section 3, Eqs. 3-5",
		Version: 1,
		Parameters: []Parameter{
			{Name: "edge", Type: "int", Default: 7, Minimum: number(2), Summary: "patches a side of an image; tables have a feature a column"},
			referenceParameter("zero", "what deleted patches become"),
			outputParameter(Probability),
			reduceParameter("sum", false),
		},
		Also: []Quantity{
			{"le", "plain sum of the curve of deleting least relevant patches first"},
			{"mo", "plain sum of the curve of deleting most relevant patches first"},
			{"mean", "the value divided by the number of points of a curve, so that edges compare"},
		},
		cost: func(s Subject, p values) Cost {
			return Cost{Forwards: 2 * float64(patches(s.Shape, p.int("edge")))}
		},
		compute: func(ctx context.Context, g *group, p values) ([]Result, error) {
			return playOrders(ctx, g, id, p)
		},
	}
}

func patches(shape []int, edge int) int {
	if len(shape) == 1 {
		return shape[0]
	}
	return edge * edge
}

// playOrders runs the deletion game of every image; the merger fills batches
// with the states of all of them.
func playOrders(ctx context.Context, g *group, objective string, p values) (results []Result, err error) {
	shape := g.Shape()
	featureMap, t := trace.ColumnMap(g.elements()), g.elements()
	if len(shape) == 3 {
		t = p.int("edge") * p.int("edge")
		if featureMap, err = trace.PatchMap(p.int("edge"), shape[1], shape[2]); err != nil {
			return nil, err
		}
	}
	scene, err := g.scene(ctx, t, featureMap, p.text("reference"))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, scene.Close()) }()

	games := make([]trace.Problem, len(g.images))
	options := make([]trace.Options, len(g.images))
	ends := make([]func(), len(g.images))
	merger := trace.NewMerger(scene, g.Batch())
	results = make([]Result, len(g.images))
	for i, m := range g.images {
		reduced, err := Reduce(m.Map, p.text("reduce"))
		if err != nil {
			return nil, err
		}
		order, err := trace.Order(reduced, featureMap, t)
		if err != nil {
			return nil, err
		}
		if constant(reduced) {
			results[i].Warnings = []string{"constant map: the order is that of the patches' indices"}
		}
		options[i] = trace.Options{Solver: "order", Objective: objective, ScoreOn: "prob", Seed: g.seed, Start: "map", Given: order}
		if p.text("output") == Logit {
			options[i].ScoreOn = "logit"
		}
		games[i] = trace.Problem{T: t, ImageID: m.ID}
		games[i].Scorer, ends[i] = merger.Image(m.row, m.Target)
	}

	running, stop := context.WithCancel(ctx)
	var merging sync.WaitGroup
	merging.Go(func() { _ = merger.Run(running) })
	defer merging.Wait()
	defer stop()
	play, playing := errgroup.WithContext(ctx)
	for i := range games {
		play.Go(func() error {
			defer ends[i]()
			played, err := trace.Run(playing, games[i], options[i])
			var nan *trace.NotFiniteError
			switch {
			case errors.As(err, &nan):
				results[i] = undefined(NotFiniteOutput)
			case err != nil:
				return err
			default:
				results[i] = playedResult(played, p.text("output"), results[i].Warnings)
			}
			return nil
		})
	}
	return results, play.Wait()
}

func playedResult(played trace.Result, output string, warnings []string) Result {
	curve := played.Curves.Prob
	if output == Logit {
		curve = played.Curves.Logit
	}
	le, mo := curve.Sums()
	return Result{
		Value:    played.Value,
		Also:     map[string]float64{"le": le, "mo": mo, "mean": played.Value / float64(len(curve.Le))},
		Curves:   []Curve{{Name: "le", Y: curve.Le}, {Name: "mo", Y: curve.Mo}},
		Warnings: warnings,
	}
}
