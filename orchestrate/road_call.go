package orchestrate

import (
	"context"
	"slices"

	"github.com/assay-xai/assay/dataset"
	"github.com/assay-xai/assay/internal/record"
	"github.com/assay-xai/assay/internal/rng"
)

// removalCall is a call with what is needed to read its answer.
type removalCall struct {
	spec RemovalSpec
	// rows of the images that the call is about, in the chunk.
	rows []int
	// variation of each image's map, nil without maps.
	variations []float64
	// index finds the place of a row.
	index map[RemovalRow]int
}

// removable is how much can be removed of inputs of a shape: pixels or columns.
func removable(shape []int) int {
	if len(shape) == 3 {
		return shape[1] * shape[2]
	}
	return shape[0]
}

// rowOf is what a unit asks for at a fraction. Where nothing or everything is removed
// the order does not matter.
func rowOf(image int, u *Unit, fraction float64, features int) RemovalRow {
	least := u.Params.Text(orderKey) == OrderLeRF
	row := RemovalRow{Image: image, Removed: removedCount(fraction, features, least), Least: least}
	if row.Removed == 0 || row.Removed == features {
		row.Least = false
	}
	return row
}

// plan writes the call for images: every row once, whatever the number of units that
// want it.
func (x *remover) plan(ctx context.Context, images Images, list []stripped) (*removalCall, error) {
	first := list[0].units[list[0].at[0]]
	features := removable(images.Shape())
	imputer, err := x.s.Catalogue.reference(first.Params.Text(imputerKey))
	if err != nil {
		return nil, err
	}
	c := &removalCall{index: map[RemovalRow]int{}, spec: RemovalSpec{
		Ties: orElse(first.Params.Text(tiesKey), TiesRandom), Imputer: imputer, Generator: x.s.generatorOf(first.Params.Text(imputerKey)),
		Preset: first.Net.Preset.ForSet(first.Data.Set), Batch: x.s.Batch()}}
	if slices.ContainsFunc(list[0].at, func(at int) bool { return roadNeedsMean(x.s.Resolved, list[0].units[at].Params) }) {
		if c.spec.DatasetMean, err = x.s.dataMean(ctx, first.Net, first.Data); err != nil {
			return nil, err
		}
	}
	for i, e := range list {
		c.rows = append(c.rows, e.row)
		predicted := e.records[e.at[0]].Prediction.Classes[0]
		c.spec.Targets = append(c.spec.Targets, []int{e.target, predicted})
		c.spec.TieKeys = append(c.spec.TieKeys, rng.Key(first.Seed, "ties", e.image))
		c.spec.NoiseKeys = append(c.spec.NoiseKeys, rng.Key(first.Seed, "impute", e.image))
		if e.values != nil {
			reduction, err := dataset.MapReductionByID(first.Params.Text(reduceKey))
			if err != nil {
				return nil, err
			}
			values, shape := reduction.Reduce(e.values, e.shape)
			c.spec.Maps = append(c.spec.Maps, values)
			c.variations = append(c.variations, mapVariation(values, shape))
		}
		for _, at := range e.at {
			for _, f := range fractionsOf(e.units[at].Params) {
				row := rowOf(i, &e.units[at], f, features)
				if _, there := c.index[row]; !there {
					c.index[row] = len(c.spec.Rows)
					c.spec.Rows = append(c.spec.Rows, row)
				}
			}
		}
	}
	return c, nil
}

// answers makes the records of a call's units. Costs are shared out by rows.
func (x *remover) answers(list []stripped, c *removalCall, got Removal, seconds float64, shape []int) []record.Record {
	features := removable(shape)
	asked := 0 // by units, which share rows
	for _, e := range list {
		for _, at := range e.at {
			asked += len(fractionsOf(e.units[at].Params))
		}
	}
	var out []record.Record
	for i, e := range list {
		for _, at := range e.at {
			u, rec := e.units[at], e.records[at]
			road := &record.Road{Order: u.Params.Text(orderKey), Imputer: u.Params.Text(imputerKey), Fractions: fractionsOf(u.Params)}
			for _, f := range road.Fractions {
				row := rowOf(i, &u, f, features)
				k := c.index[row]
				road.Removed = append(road.Removed, row.Removed)
				road.Probabilities = append(road.Probabilities, got.Probabilities[k][0])
				road.PredictedProbabilities = append(road.PredictedProbabilities, got.Probabilities[k][1])
				road.Predicted = append(road.Predicted, got.Classes[k])
				if rec.Class != nil {
					road.Correct = append(road.Correct, got.Classes[k] == *rec.Class)
				}
				if len(shape) == 3 && len(got.Variations) > k {
					road.MaskVariation = append(road.MaskVariation, got.Variations[k])
				}
				if len(got.Iterations) > k {
					road.Iterations = append(road.Iterations, got.Iterations[k])
				}
			}
			if !slices.ContainsFunc(road.Iterations, func(n int) bool { return n > 0 }) {
				road.Iterations = nil
			}
			if c.variations != nil && len(shape) == 3 {
				v := c.variations[i]
				road.MapVariation = &v
			}
			share := float64(len(road.Fractions)) / float64(asked)
			mapShare := e.seconds / float64(len(e.units))
			rec.Road = road
			rec.Cost = record.Cost{Seconds: seconds*share + mapShare, Forwards: int64(len(road.Fractions)), MapSeconds: mapShare,
				ImputeSeconds: got.ImputeSeconds * share, ForwardSeconds: got.ForwardSeconds * share}
			rec.Warnings = slices.Concat(rec.Warnings, e.warnings)
			out = append(out, rec)
		}
	}
	return out
}
