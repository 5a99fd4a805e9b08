package orchestrate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/assay-xai/assay/dataset"
	"github.com/assay-xai/assay/internal/record"
	"github.com/assay-xai/assay/internal/rng"
	"github.com/assay-xai/assay/internal/usage"
)

// runRoad goes through the images in groups. A map is made or read once for all that is
// done with it; what differs in order and fraction alone is one call.
func runRoad(ctx context.Context, s *Session, units []Unit, emit func(...record.Record) error) error {
	return s.eachNet(ctx, units, func(net Net, units []Unit) error {
		x := &remover{s: s, net: net, emit: emit, files: s.kept.(*roadFiles), makes: explainer{s: s, net: net, rows: map[string]float64{}}}
		return eachChunk(ctx, s, sortUnits(units), s.wholeBatches(explainImages), func(c *chunk) error { return x.chunk(ctx, c) })
	})
}

// remover removes pixels on one device.
type remover struct {
	s     *Session
	net   Net
	emit  func(...record.Record) error
	files *roadFiles
	makes explainer
}

// bared is an image with its map by one method, and the units that want its pixels
// removed.
type bared struct {
	explained
	// values and shape are of the map before reduction; nil where there is none.
	values []float32
	shape  []int
	// seconds is what the map took.
	seconds  float64
	warnings []string
}

// rankKey is what units have in common that one map serves.
func rankKey(u *Unit) string {
	p := u.Params
	return fmt.Sprint(u.Seed, "\x00", p.Text("target"), "\x00", p.Text(methodKey), "\x00", p.Text(attributionsKey))
}

// removalKey is what units of a map have in common that one call serves.
func removalKey(u *Unit) string {
	p := u.Params
	return fmt.Sprint(p.Text(imputerKey), "\x00", p.Text(reduceKey), "\x00", p.Text(tiesKey))
}

// grouped divides things by a key, in the order of the keys' first ones.
func grouped[T any](list []T, key func(T) string) [][]T {
	var out [][]T
	at := map[string]int{}
	for _, v := range list {
		k := key(v)
		i, ok := at[k]
		if !ok {
			i = len(out)
			at[k] = i
			out = append(out, nil)
		}
		out[i] = append(out[i], v)
	}
	return out
}

func (x *remover) chunk(ctx context.Context, c *chunk) error {
	records, err := x.s.predictTarget(ctx, x.net, c)
	if err != nil {
		return err
	}
	var failed []record.Record
	var places []int // of units in the chunk
	for i, u := range c.units {
		records[i].Method = x.s.whose(u.Params)
		if records[i].Error != "" {
			failed = append(failed, records[i])
			continue
		}
		places = append(places, i)
	}
	if len(failed) > 0 {
		if err := x.emit(failed...); err != nil {
			return err
		}
	}
	for _, same := range grouped(places, func(i int) string { return rankKey(&c.units[i]) }) {
		var list []*bared
		for _, i := range same {
			row, rec := c.row[i], records[i]
			if n := len(list); n == 0 || list[n-1].row != row {
				list = append(list, &bared{explained: explained{row: row, image: rec.Image, target: rec.Target}})
			}
			last := list[len(list)-1]
			last.units, last.records = append(last.units, c.units[i]), append(last.records, rec)
		}
		if list, err = x.maps(ctx, c.images, list); err != nil {
			return err
		}
		// A call fills whole batches, and a kill costs little.
		for part := range slices.Chunk(list, max(1, x.s.Batch())) {
			if err := x.remove(ctx, c.images, part); err != nil {
				return err
			}
		}
	}
	return nil
}

// whose names what ranks: a method, maps of files, or nothing.
func (r *Resolved) whose(p Params) string {
	if label := p.Text(attributionsKey); label != "" {
		return r.givenName(label)
	}
	return p.Text(methodKey)
}

// maps gets the maps of images by one method or from one file; the images that have
// none for a reason of their own have failed.
func (x *remover) maps(ctx context.Context, images Images, list []*bared) ([]*bared, error) {
	if len(list) == 0 {
		return nil, nil
	}
	first := list[0].units[0].Params
	switch {
	case first.Text(attributionsKey) != "":
		g, err := x.s.attributions(first)
		if err != nil {
			return nil, err
		}
		for _, e := range list {
			if e.values, e.shape, err = g.Raw(e.image); err != nil {
				return nil, err
			}
		}
	case first.Text(methodKey) != "":
		method, name, err := x.s.Catalogue.Method(first.Text(methodKey))
		if err != nil {
			return nil, err
		}
		for rest := list; len(rest) > 0; {
			n := min(len(rest), x.makes.group(name, &method))
			if err := x.explain(ctx, images, method, name, rest[:n]); err != nil {
				return nil, err
			}
			rest = rest[n:]
		}
	default:
		return list, nil
	}
	var out []*bared
	for _, e := range list {
		if e.values == nil {
			continue // has failed
		}
		if nonFinite(e.values) {
			if err := x.fail(e, nanMap); err != nil {
				return nil, err
			}
			continue
		}
		if _, equal := describe(e.values, e.shape); equal {
			e.warnings = append(e.warnings, equalMap)
		}
		out = append(out, e)
	}
	return out, nil
}

// explain makes the maps of one call. Where it says that something is wrong with what
// was asked, every image is asked for alone: what one cannot have another may.
func (x *remover) explain(ctx context.Context, images Images, method MethodSpec, name string, list []*bared) error {
	asked := make([]explained, len(list))
	for i, e := range list {
		asked[i] = e.explained
	}
	got, seconds, err := x.makes.attribute(ctx, images, method, asked)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, usage.Err) && len(list) > 1:
		for i := range list {
			if err := x.explain(ctx, images, method, name, list[i:i+1]); err != nil {
				return err
			}
		}
		return nil
	case errors.Is(err, usage.Err):
		return x.fail(list[0], err.Error())
	case err != nil:
		return fmt.Errorf("explaining %s by %s: %w", list[0].image, name, err)
	case len(got.Maps) != len(list):
		return fmt.Errorf("explaining by %s: %d maps of %d images", name, len(got.Maps), len(list))
	}
	x.makes.rows[name] = float64(max(got.Forwards, got.Backwards)) / float64(len(list))
	for i, e := range list {
		e.values, e.shape, e.warnings, e.seconds = got.Maps[i], got.Shape, got.Warnings, seconds/float64(len(list))
	}
	return nil
}

// fail records that none of an image's units has a result.
func (x *remover) fail(e *bared, why string) error {
	failed := make([]record.Record, len(e.records))
	for i, rec := range e.records {
		failed[i] = record.Failure(rec, why)
	}
	return x.emit(failed...)
}

// stripped is an image in a call: the places of its units that the call answers.
type stripped struct {
	*bared
	at []int
}

// remove makes the calls for images whose maps are known: one for each imputer, way to
// reduce channels and way to break ties.
func (x *remover) remove(ctx context.Context, images Images, list []*bared) error {
	type wanted struct {
		of *bared
		at int
	}
	var all []wanted
	for _, e := range list {
		for at := range e.units {
			all = append(all, wanted{e, at})
		}
	}
	for _, same := range grouped(all, func(w wanted) string { return removalKey(&w.of.units[w.at]) }) {
		var call []stripped
		for _, w := range same {
			if n := len(call); n == 0 || call[n-1].bared != w.of {
				call = append(call, stripped{bared: w.of})
			}
			last := &call[len(call)-1]
			last.at = append(last.at, w.at)
		}
		if err := x.call(ctx, images, call); err != nil {
			return err
		}
	}
	return nil
}

// plannedRow is a row of a call, which several units may want.
type plannedRow = RemovalRow

// removalCall is a call with what is needed to read its answer.
type removalCall struct {
	spec RemovalSpec
	// rows of the images that the call is about, in the chunk.
	rows []int
	// variation of each image's map, nil without maps.
	variations []float64
	// index finds the place of a row.
	index map[plannedRow]int
}

// features is the number of what can be removed of a shape.
func removable(shape []int) int {
	if len(shape) == 3 {
		return shape[1] * shape[2]
	}
	return shape[0]
}

// rowOf is what a unit asks for at a fraction. Where nothing or everything is removed
// the order does not matter.
func rowOf(image int, u *Unit, fraction float64, features int) plannedRow {
	least := u.Params.Text(orderKey) == OrderLeRF
	row := plannedRow{Image: image, Removed: removedCount(fraction, features, least), Least: least}
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
	c := &removalCall{index: map[plannedRow]int{}, spec: RemovalSpec{
		Ties: orElse(first.Params.Text(tiesKey), TiesRandom), Imputer: imputer,
		Preset: first.Net.Preset.ForSet(first.Data.Set), Batch: x.s.Batch()}}
	if roadNeedsMean(x.s.Resolved, first.Params) || slices.ContainsFunc(list[0].at, func(at int) bool { return roadNeedsMean(x.s.Resolved, list[0].units[at].Params) }) {
		if c.spec.DatasetMean, err = x.files.mean(ctx, x.s, first.Net, first.Data); err != nil {
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

// call runs one call and records its answers. Where it says that something is wrong
// with what was asked, every image is asked for alone.
func (x *remover) call(ctx context.Context, images Images, list []stripped) error {
	c, err := x.plan(ctx, images, list)
	if err != nil {
		return err
	}
	some, err := x.makes.rowsOf(ctx, images, c.rows)
	if err != nil {
		return err
	}
	if some != images {
		defer some.Close()
	}
	start := time.Now()
	got, err := x.net.Remove(ctx, some, c.spec)
	seconds := time.Since(start).Seconds()
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, usage.Err) && len(list) > 1:
		for i := range list {
			if err := x.call(ctx, images, list[i:i+1]); err != nil {
				return err
			}
		}
		return nil
	case errors.Is(err, usage.Err):
		failed := make([]record.Record, len(list[0].at))
		for i, at := range list[0].at {
			failed[i] = record.Failure(list[0].records[at], err.Error())
		}
		return x.emit(failed...)
	case err != nil:
		return fmt.Errorf("removing pixels of %s with imputer %s: %w", list[0].image, c.spec.Imputer.ID, err)
	case len(got.Classes) != len(c.spec.Rows) || len(got.Probabilities) != len(c.spec.Rows):
		return fmt.Errorf("removing pixels with imputer %s: %d answers to %d rows", c.spec.Imputer.ID, len(got.Classes), len(c.spec.Rows))
	}
	if err := x.strips(ctx, some, list, c); err != nil {
		return err
	}
	return x.emit(x.answers(list, c, got, seconds, images.Shape())...)
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
