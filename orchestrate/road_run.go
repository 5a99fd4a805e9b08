package orchestrate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/assay-xai/assay/internal/record"
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
		if err := x.explain(ctx, images, list); err != nil {
			return nil, err
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

// explain asks a method for maps.
func (x *remover) explain(ctx context.Context, images Images, list []*bared) error {
	asked := make([]explained, len(list))
	for i, e := range list {
		asked[i] = e.explained
	}
	return x.makes.mapsOf(ctx, images, asked, func(from int, got Attribution, seconds float64) error {
		for i, m := range got.Maps {
			e := list[from+i]
			e.values, e.shape, e.warnings, e.seconds = m, got.Shape, got.Warnings, seconds/float64(len(got.Maps))
		}
		return nil
	}, func(i int, why string) error { return x.fail(list[i], why) })
}

// fail records that none of an image's units has a result.
func (x *remover) fail(e *bared, why string) error {
	return x.emit(record.Failures(e.records, why)...)
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
