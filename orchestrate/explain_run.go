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

// explainImages are in memory at once.
const explainImages = 64

// ImagesOfACall is how many images a call is about where an image takes so many rows: as
// many as fill some batches, the last of which is padded, and a batch of images where
// that is not much, for what runs once an image. One where an image is much by itself:
// what a kill costs is a call.
func ImagesOfACall(batch int, rows float64) int {
	const some, much = 4, 64 // batches
	n := float64(batch) / max(rows, 1)
	return int(max(math.Ceil(some*n), min(float64(batch), math.Floor(much*n)), 1))
}

// runExplain goes through the images in groups and asks all methods for each group,
// so that an image is decoded once.
func runExplain(ctx context.Context, s *Session, units []Unit, emit func(...record.Record) error) (err error) {
	x := &explainer{s: s, store: s.kept.(*mapStore), emit: emit, rows: map[string]float64{}}
	defer func() {
		if e := x.wait(); err == nil {
			err = e
		}
	}()
	s.pixels = s.overlaid
	return s.eachNet(ctx, units, func(net Net, units []Unit) error {
		units = sortUnits(units)
		x.net = net
		return eachChunk(ctx, s, units, s.wholeBatches(explainImages), func(c *chunk) error { return x.chunk(ctx, c) })
	})
}

// explainer asks one device for maps.
type explainer struct {
	s     *Session
	store *mapStore
	net   Net
	emit  func(...record.Record) error
	// rows is what an image took by a method, in forwards or backwards, once known.
	rows map[string]float64
	// keeping is what becomes of the maps that are on their way to disk; nil: none are.
	keeping chan error
}

// explained is an image that a method is asked about: its units differ in the
// reduction alone, and have a record each with what is known before the map.
type explained struct {
	row     int
	image   string
	target  int
	units   []Unit
	records []record.Record
}

// callKey is what units have in common that one call explains.
func callKey(u *Unit) string {
	return fmt.Sprint(u.Seed, " ", string(canonical(without(u.Params, reduceKey))))
}

// predictTarget is predict for units that explain a class, of which the net must have it.
func (s *Session) predictTarget(ctx context.Context, net Net, c *chunk) ([]record.Record, error) {
	records, err := s.predict(ctx, net, c)
	classes := net.Info().Classes
	for i, r := range records {
		if r.Error == "" && (r.Target < 0 || r.Target >= classes) {
			records[i] = record.Failure(r, fmt.Sprintf("no class to explain: the image's label is %d, the net's classes are 0..%d", r.Target, classes-1))
		}
	}
	return records, err
}

// chunk explains the images of a chunk by all methods that want them.
func (x *explainer) chunk(ctx context.Context, c *chunk) error {
	records, err := x.s.predictTarget(ctx, x.net, c)
	if err != nil {
		return err
	}
	var order []string
	calls := map[string][]explained{}
	for i, u := range c.units {
		row, rec := c.row[i], records[i]
		rec.Method = u.Params.Text(methodKey)
		if rec.Error != "" {
			if err := x.keep([]keptMaps{{units: []Unit{u}, records: []record.Record{rec}}}); err != nil {
				return err
			}
			continue
		}
		key := callKey(&u)
		list := calls[key]
		if list == nil {
			order = append(order, key)
		}
		if n := len(list); n == 0 || list[n-1].row != row {
			list = append(list, explained{row: row, image: rec.Image, target: rec.Target})
		}
		last := &list[len(list)-1]
		last.units, last.records = append(last.units, u), append(last.records, rec)
		calls[key] = list
	}
	for _, key := range order {
		if err := x.explain(ctx, c.images, calls[key]); err != nil {
			return err
		}
	}
	return nil
}

// explain explains the images of a chunk by one method.
func (x *explainer) explain(ctx context.Context, images Images, list []explained) error {
	return x.mapsOf(ctx, images, list, func(from int, got Attribution, seconds float64) error {
		kept, err := x.reduce(images, list[from:from+len(got.Maps)], got, seconds)
		if err != nil {
			return err
		}
		return x.keep(kept)
	}, func(i int, why string) error {
		return x.keep([]keptMaps{{units: list[i].units, records: record.Failures(list[i].records, why)}})
	})
}

// mapsOf asks the method of the images' units for maps, a group of images at a time:
// take gets the maps of the images from place from on, with the seconds of their call,
// fail an image that the method refuses.
func (x *explainer) mapsOf(ctx context.Context, images Images, list []explained,
	take func(from int, got Attribution, seconds float64) error, fail func(i int, why string) error) error {
	method, name, err := x.s.Catalogue.Method(list[0].units[0].Params.Text(methodKey))
	if err != nil {
		return err
	}
	// ask makes one call. Where it says that something is wrong with what was asked,
	// every image is asked for alone: what one cannot have another may.
	var ask func(from, to int) error
	ask = func(from, to int) error {
		got, seconds, err := x.attribute(ctx, images, method, list[from:to])
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, usage.Err) && to-from > 1:
			for i := from; i < to; i++ {
				if err := ask(i, i+1); err != nil {
					return err
				}
			}
			return nil
		case errors.Is(err, usage.Err):
			return fail(from, err.Error())
		case err != nil:
			return fmt.Errorf("explaining %s by %s: %w", list[from].image, name, err)
		case len(got.Maps) != to-from:
			return fmt.Errorf("explaining by %s: %d maps of %d images", name, len(got.Maps), to-from)
		}
		x.rows[name] = float64(max(got.Forwards, got.Backwards)) / float64(to-from)
		return take(from, got, seconds)
	}
	for from := 0; from < len(list); {
		to := from + min(len(list)-from, x.group(name, &method))
		if err := ask(from, to); err != nil {
			return err
		}
		from = to
	}
	return nil
}

// group is the number of images of a call.
func (x *explainer) group(name string, m *MethodSpec) int {
	each, known := x.rows[name]
	if !known {
		each = float64(x.s.Catalogue.rowsOf(m))
	}
	return ImagesOfACall(x.s.Batch(), each)
}

// keptMaps are maps of one folder with their units and records; without values the
// records are those of failures.
type keptMaps struct {
	units   []Unit
	records []record.Record
	values  [][]float32
	shape   []int
}

// reduce makes the maps of every reduction that a call's images are wanted in.
func (x *explainer) reduce(images Images, list []explained, got Attribution, seconds float64) ([]keptMaps, error) {
	var out []keptMaps
	places := map[string]int{}
	for i, e := range list {
		for j, u := range e.units {
			reduction, err := dataset.MapReductionByID(u.Params.Text(reduceKey))
			if err != nil {
				return nil, err
			}
			at, ok := places[reduction.ID]
			if !ok {
				at = len(out)
				places[reduction.ID] = at
				out = append(out, keptMaps{})
			}
			k := &out[at]
			values, shape := reduction.Reduce(got.Maps[i], got.Shape)
			finish(&e.records[j], values, shape, got, i, seconds)
			if err := x.overlay(images, u, e, values, shape); err != nil {
				return nil, err
			}
			k.units, k.records = append(k.units, u), append(k.records, e.records[j])
			k.values, k.shape = append(k.values, values), shape
		}
	}
	return out, nil
}

func (x *explainer) attribute(ctx context.Context, images Images, method MethodSpec, list []explained) (Attribution, float64, error) {
	first := list[0].units[0]
	spec := AttributionSpec{Method: method, Preset: first.Net.Preset.ForSet(first.Data.Set), Batch: x.s.Batch()}
	rows := make([]int, len(list))
	for i, e := range list {
		rows[i] = e.row
		spec.Targets = append(spec.Targets, e.target)
		spec.Keys = append(spec.Keys, rng.Key(first.Seed, "attribution", e.image))
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

// finish writes what is known of map i of a call into a record. Costs of a call are
// shared out among its images; each of several reductions of a map has them all.
func finish(rec *record.Record, values []float32, shape []int, got Attribution, i int, seconds float64) {
	m, equal := describe(values, shape)
	if i < len(got.Deltas) && !math.IsNaN(got.Deltas[i]) && !math.IsInf(got.Deltas[i], 0) {
		m.Delta = &got.Deltas[i]
	}
	n := int64(len(got.Maps))
	share := func(all int64) int64 { return all*int64(i+1)/n - all*int64(i)/n }
	rec.Map = &m
	rec.Cost = record.Cost{Seconds: seconds / float64(n), Forwards: share(got.Forwards), Backwards: share(got.Backwards)}
	rec.Warnings = append(rec.Warnings, got.Warnings...)
	if equal {
		rec.Warnings = append(rec.Warnings, equalMap)
	}
	if m.NonFinite > 0 {
		rec.Warnings = append(rec.Warnings, nanMap)
	}
}

// keep makes maps last, then their records, while the device works on the next: the
// maps of one call are on their way at most.
func (x *explainer) keep(list []keptMaps) error {
	if err := x.wait(); err != nil {
		return err
	}
	done := make(chan error, 1)
	x.keeping = done
	go func() { done <- x.write(list) }()
	return nil
}

// wait waits for what keep began.
func (x *explainer) wait() error {
	if x.keeping == nil {
		return nil
	}
	err := <-x.keeping
	x.keeping = nil
	return err
}

func (x *explainer) write(list []keptMaps) error {
	parts := make([]string, len(list))
	var records []record.Record
	for i, k := range list {
		records = append(records, k.records...)
		if k.values == nil {
			continue
		}
		var err error
		if parts[i], err = x.store.save(k.units, k.values, k.shape); err != nil {
			return err
		}
	}
	if err := x.emit(records...); err != nil {
		return err
	}
	for i, k := range list {
		if err := x.store.recorded(k, parts[i]); err != nil {
			return err
		}
	}
	return nil
}
