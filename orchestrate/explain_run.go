package orchestrate

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/assay-xai/assay/dataset"
	"github.com/assay-xai/assay/internal/record"
	"github.com/assay-xai/assay/internal/rng"
	"github.com/assay-xai/assay/internal/usage"
)

// Images in memory at once, and the batches that a call should fill: the last one
// of a call is padded.
const (
	explainImages = 64
	fullBatches   = 4
)

// runExplain goes through the images in groups and asks all methods for each group,
// so that an image is decoded once.
func runExplain(ctx context.Context, s *Session, units []Unit, emit func(...record.Record) error) error {
	x := &explainer{s: s, store: s.kept.(*mapStore), emit: emit, rows: map[string]float64{}}
	s.pixels = s.overlaid
	return s.eachNet(ctx, units, func(net Net, units []Unit) error {
		units = sortUnits(units)
		x.net = net
		next := prefetch(ctx, s, units, max(s.Batch(), explainImages/s.Batch()*s.Batch()))
		defer next.stop()
		for {
			c, err := next.get()
			if err != nil || c == nil {
				return err
			}
			err = x.chunk(ctx, c)
			c.images.Close()
			if err != nil {
				return err
			}
		}
	})
}

// explainer asks one device for maps.
type explainer struct {
	s     *Session
	store *mapStore
	net   Net
	emit  func(...record.Record) error
	// rows is what an image took by a method, in forwards and backwards, once known.
	rows map[string]float64
}

// explained is a unit with the row of its image and what is known before its map.
type explained struct {
	unit Unit
	row  int
	rec  record.Record
}

// chunk explains the images of a chunk by all methods that want them.
func (x *explainer) chunk(ctx context.Context, c *chunk) error {
	predictions, err := x.net.Predict(ctx, c.images, min(evalTop, x.net.Info().Classes), x.s.Batch())
	if err != nil {
		return fmt.Errorf("running net %s: %w", c.units[0].Net.Name, err)
	}
	var order []string
	sets := map[string][]explained{}
	for i, u := range c.units {
		row := c.row[i]
		rec := x.s.begin(u, predictions[row], c.failed[row])
		rec.Method = u.Params.Text(methodKey)
		if rec.Error == "" && (rec.Target < 0 || rec.Target >= x.net.Info().Classes) {
			rec = record.Failure(rec, fmt.Sprintf("no class to explain: the image's label is %d, the net's classes are 0..%d", rec.Target, x.net.Info().Classes-1))
		}
		key := mapSetKey(&u)
		if sets[key] == nil {
			order = append(order, key)
		}
		sets[key] = append(sets[key], explained{u, row, rec})
	}
	for _, key := range order {
		if err := x.set(ctx, c.images, sets[key]); err != nil {
			return err
		}
	}
	return nil
}

// set explains the images of a chunk by one method, a group at a time.
func (x *explainer) set(ctx context.Context, images Images, list []explained) error {
	var good []explained
	for _, e := range list {
		if e.rec.Error == "" {
			good = append(good, e)
		} else if err := x.keep([]explained{e}, nil, nil); err != nil {
			return err
		}
	}
	if len(good) == 0 {
		return nil
	}
	u := good[0].unit
	method, name, err := x.s.Catalogue.Method(u.Params.Text(methodKey))
	if err != nil {
		return err
	}
	for len(good) > 0 {
		n := min(len(good), x.group(name, &method))
		if err := x.ask(ctx, images, method, good[:n]); err != nil {
			return err
		}
		good = good[n:]
	}
	return nil
}

// group is the number of images of a call: as many as fill some batches, few where an
// image fills them by itself, so that little is in memory and little is lost.
func (x *explainer) group(name string, m *MethodSpec) int {
	each, known := x.rows[name]
	if !known {
		each = float64(x.s.Catalogue.rowsOf(m))
	}
	return max(1, int(math.Ceil(float64(fullBatches*x.s.Batch())/max(each, 1))))
}

// ask explains images by one call. Where it says that something is wrong with what
// was asked, every image is asked for alone: what one cannot have another may.
func (x *explainer) ask(ctx context.Context, images Images, method MethodSpec, list []explained) error {
	got, seconds, err := x.attribute(ctx, images, method, list)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, usage.Err) && len(list) > 1:
		for i := range list {
			if err := x.ask(ctx, images, method, list[i:i+1]); err != nil {
				return err
			}
		}
		return nil
	case errors.Is(err, usage.Err):
		list[0].rec = record.Failure(list[0].rec, err.Error())
		return x.keep(list, nil, nil)
	case err != nil:
		return fmt.Errorf("explaining %s by %s: %w", list[0].rec.Image, list[0].rec.Method, err)
	case len(got.Maps) != len(list):
		return fmt.Errorf("explaining by %s: %d maps of %d images", list[0].rec.Method, len(got.Maps), len(list))
	}
	x.rows[list[0].rec.Method] = float64(got.Forwards+got.Backwards) / float64(len(list))
	reduction, err := dataset.MapReductionByID(list[0].unit.Params.Text(reduceKey))
	if err != nil {
		return err
	}
	values, shape := make([][]float32, len(list)), got.Shape
	for i := range list {
		values[i], shape = reduction.Reduce(got.Maps[i], got.Shape)
		list[i].finish(values[i], shape, got, i, seconds)
		if err := x.overlay(images, list[i], values[i], shape); err != nil {
			return err
		}
	}
	return x.keep(list, values, shape)
}

func (x *explainer) attribute(ctx context.Context, images Images, method MethodSpec, list []explained) (Attribution, float64, error) {
	spec := AttributionSpec{Method: method, Preset: list[0].unit.Net.Preset.ForSet(list[0].unit.Data.Set), Batch: x.s.Batch()}
	rows := make([]int, len(list))
	for i, e := range list {
		rows[i] = e.row
		spec.Targets = append(spec.Targets, e.rec.Target)
		spec.Keys = append(spec.Keys, rng.Key(e.unit.Seed, "attribution", e.rec.Image))
	}
	some, err := x.rowsOf(ctx, images, rows)
	if err != nil {
		return Attribution{}, 0, err
	}
	if some != images {
		defer some.Close()
	}
	start := time.Now()
	got, err := x.net.Attribute(ctx, some, spec)
	return got, time.Since(start).Seconds(), err
}

// rowsOf is some rows of images, images itself where it is all of them.
func (x *explainer) rowsOf(ctx context.Context, images Images, rows []int) (Images, error) {
	all := len(rows) == images.Len()
	for i := range rows {
		all = all && rows[i] == i
	}
	if all {
		return images, nil
	}
	var values []float32
	for _, row := range rows {
		v, err := images.Values(row)
		if err != nil {
			return nil, err
		}
		values = append(values, v...)
	}
	return x.s.Backend.Arrays(ctx, values, images.Shape())
}

// Warnings about a single map.
const (
	equalMap = "all values of the map are the same: it ranks nothing"
	nanMap   = "the map has values that are no numbers (NaN or infinite)"
)

// finish writes what is known of map i of a call into its record. Costs of a call
// are shared out among its images.
func (e *explained) finish(values []float32, shape []int, got Attribution, i int, seconds float64) {
	m, equal := describe(values, shape)
	if i < len(got.Deltas) && !math.IsNaN(got.Deltas[i]) && !math.IsInf(got.Deltas[i], 0) {
		m.Delta = &got.Deltas[i]
	}
	n := int64(len(got.Maps))
	share := func(all int64) int64 { return all*int64(i+1)/n - all*int64(i)/n }
	e.rec.Map = &m
	e.rec.Cost = record.Cost{Seconds: seconds / float64(n), Forwards: share(got.Forwards), Backwards: share(got.Backwards)}
	e.rec.Warnings = append(e.rec.Warnings, got.Warnings...)
	if equal {
		e.rec.Warnings = append(e.rec.Warnings, equalMap)
	}
	if m.NonFinite > 0 {
		e.rec.Warnings = append(e.rec.Warnings, nanMap)
	}
}

// keep makes maps last, then their records; nil are records of failures.
func (x *explainer) keep(list []explained, values [][]float32, shape []int) error {
	units, records := make([]Unit, len(list)), make([]record.Record, len(list))
	for i, e := range list {
		units[i], records[i] = e.unit, e.rec
	}
	part, kept := "", []Unit(nil)
	if values != nil {
		kept = units
		var err error
		if part, err = x.store.save(units, values, shape); err != nil {
			return err
		}
	}
	if err := x.emit(records...); err != nil {
		return err
	}
	return x.store.recorded(units, kept, part, shape)
}
