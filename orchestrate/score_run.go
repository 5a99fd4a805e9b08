package orchestrate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/assay-xai/assay/internal/record"
	"github.com/assay-xai/assay/internal/rng"
	"github.com/assay-xai/assay/internal/usage"
	"github.com/assay-xai/assay/scores"
)

// runScore goes through the images in groups; every map is made once for all its
// metrics, which have a record each as soon as they are known.
func runScore(ctx context.Context, s *Session, units []Unit, emit func(...record.Record) error) error {
	var maps, searches []Unit
	for _, u := range units {
		if u.Params.Text(baselineKey) != "" {
			searches = append(searches, u)
		} else {
			maps = append(maps, u)
		}
	}
	err := s.eachNet(ctx, maps, func(net Net, units []Unit) error {
		j := &judge{s: s, net: net, emit: emit, makes: explainer{s: s, net: net, rows: map[string]float64{}}}
		units = sortUnits(units)
		return eachChunk(ctx, s, units, s.wholeBatches(explainImages), func(c *chunk) error { return j.chunk(ctx, c) })
	})
	if err != nil || len(searches) == 0 {
		return err
	}
	return runBaseline(ctx, s, searches, emit)
}

// judge scores maps on one device.
type judge struct {
	s     *Session
	net   Net
	emit  func(...record.Record) error
	makes explainer
}

// judged is an image with its map by one method, and the units that want it scored.
type judged struct {
	explained
	scores.Map
	// warnings are about the map.
	warnings []string
}

// mapKeyOf is what units have in common that one map serves.
func mapKeyOf(u *Unit) string {
	return fmt.Sprint(u.Seed, " ", string(canonical(without(without(without(u.Params, metricKey), reduceKey), boxesKey))))
}

func (j *judge) chunk(ctx context.Context, c *chunk) error {
	records, err := j.s.predictTarget(ctx, j.net, c)
	if err != nil {
		return err
	}
	var order []string
	calls := map[string][]*judged{}
	for i, u := range c.units {
		row, rec := c.row[i], records[i]
		rec.Method = j.s.rowName(u.Params)
		if rec.Error != "" {
			if err := j.emit(rec); err != nil {
				return err
			}
			continue
		}
		key := mapKeyOf(&u)
		list := calls[key]
		if list == nil {
			order = append(order, key)
		}
		if n := len(list); n == 0 || list[n-1].row != row {
			list = append(list, &judged{explained: explained{row: row, image: rec.Image, target: rec.Target}})
		}
		last := list[len(list)-1]
		last.units, last.records = append(last.units, u), append(last.records, rec)
		calls[key] = list
	}
	for _, key := range order {
		list, err := j.maps(ctx, c.images, calls[key])
		if err != nil {
			return err
		}
		if err := j.score(ctx, c.images, list); err != nil {
			return err
		}
	}
	return nil
}

// maps gets the maps of images by one method or from one file, and returns the images
// that have one to be scored.
func (j *judge) maps(ctx context.Context, images Images, list []*judged) ([]*judged, error) {
	first := list[0].units[0].Params
	var err error
	if first.Text(attributionsKey) != "" {
		err = j.read(list)
	} else {
		err = j.make(ctx, images, list)
	}
	if err != nil {
		return nil, err
	}
	var out []*judged
	for _, e := range list {
		if e.Values == nil {
			continue // has failed
		}
		_, equal := describe(e.Values, e.Shape)
		switch {
		case nonFinite(e.Values) && first.Text(nanKey) != nanSkip:
			if err := j.fail(e, nanMap+": --skip-nan counts it as undefined"); err != nil {
				return nil, err
			}
			continue
		case nonFinite(e.Values):
			e.warnings = append(e.warnings, nanMap)
		case equal:
			e.warnings = append(e.warnings, equalMap)
		}
		out = append(out, e)
	}
	return out, nil
}

// read reads given maps.
func (j *judge) read(list []*judged) error {
	g, err := j.s.attributions(list[0].units[0].Params)
	if err != nil {
		return err
	}
	for _, e := range list {
		if e.Values, e.Shape, err = g.Raw(e.image); err != nil {
			return err
		}
	}
	return nil
}

// make asks a method for maps.
func (j *judge) make(ctx context.Context, images Images, list []*judged) error {
	asked := make([]explained, len(list))
	for i, e := range list {
		asked[i] = e.explained
	}
	return j.makes.mapsOf(ctx, images, asked, func(from int, got Attribution, _ float64) error {
		for i, m := range got.Maps {
			list[from+i].Map, list[from+i].warnings = scores.Map{Shape: got.Shape, Values: m}, got.Warnings
		}
		return nil
	}, func(i int, why string) error { return j.fail(list[i], why) })
}

// fail records that an image has no map to be scored.
func (j *judge) fail(e *judged, why string) error {
	return j.emit(record.Failures(e.records, why)...)
}

// scored is a metric of some images: at[i] are the places of its units among
// images[i]'s, of which there are several where one game answers several metrics.
type scored struct {
	images []*judged
	at     [][]int
}

// score runs all metrics that a method's maps are wanted for.
func (j *judge) score(ctx context.Context, images Images, list []*judged) error {
	var order []string
	calls := map[string]*scored{}
	for _, e := range list {
		for i, u := range e.units {
			key, err := j.playKey(&u)
			if err != nil {
				return err
			}
			if calls[key] == nil {
				order = append(order, key)
				calls[key] = &scored{}
			}
			c := calls[key]
			if n := len(c.images); n > 0 && c.images[n-1] == e {
				c.at[n-1] = append(c.at[n-1], i)
			} else {
				c.images, c.at = append(c.images, e), append(c.at, []int{i})
			}
		}
	}
	for _, key := range order {
		c := calls[key]
		for len(c.images) > 0 {
			n, err := j.group(c)
			if err != nil {
				return err
			}
			if err := j.compute(ctx, images, scored{c.images[:n], c.at[:n]}); err != nil {
				return err
			}
			c.images, c.at = c.images[n:], c.at[n:]
		}
	}
	return nil
}

// group is the number of images that a metric is asked about at a time.
func (j *judge) group(c *scored) (int, error) {
	u := c.images[0].units[c.at[0][0]]
	shape, err := j.s.shapeOf(u.Net, u.Data)
	if err != nil {
		return 0, err
	}
	each, err := j.s.costOf(u.Net, u.Params, shape)
	if err != nil {
		return 0, err
	}
	return min(ImagesOfACall(j.s.Batch(), each), len(c.images)), nil
}

// compute runs one metric on some images and records what it says.
func (j *judge) compute(ctx context.Context, images Images, c scored) error {
	start := time.Now()
	results, err := j.results(ctx, images, c)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, usage.Err) && len(c.images) > 1:
		for i := range c.images {
			if err := j.compute(ctx, images, scored{c.images[i : i+1], c.at[i : i+1]}); err != nil {
				return err
			}
		}
		return nil
	case errors.Is(err, usage.Err):
		failed := make([]record.Record, len(c.at[0]))
		for i, at := range c.at[0] {
			failed[i] = record.Failure(c.images[0].records[at], err.Error())
		}
		return j.emit(failed...)
	case err != nil:
		return fmt.Errorf("scoring the map of %s by %s: %w", c.images[0].image, c.images[0].records[c.at[0][0]].Method, err)
	}
	seconds := time.Since(start).Seconds() / float64(len(c.images))
	var records []record.Record
	for i, e := range c.images {
		for _, at := range c.at[i] {
			rec := e.records[at]
			result := results[i]
			if c.shared() {
				score, parameters, err := j.s.scoreOf(e.units[at].Params)
				if err != nil {
					return err
				}
				result = share(result, score.ID, plain(parameters["output"]))
			}
			rec.Cost.Seconds = seconds / float64(len(c.at[i]))
			rec.Warnings = slices.Concat(rec.Warnings, e.warnings, result.Warnings)
			rec.Score = scoreRecord(result)
			records = append(records, rec)
		}
	}
	return j.emit(records...)
}

func (j *judge) results(ctx context.Context, images Images, c scored) (results []scores.Result, err error) {
	first := c.images[0].units[c.at[0][0]]
	score, parameters, err := j.s.scoreOf(first.Params)
	if err == nil && c.shared() {
		score, err = scores.ByID(bothCurves)
	}
	if err != nil {
		return nil, err
	}
	spec := StageSpec{Preset: first.Net.Preset.ForSet(first.Data.Set), Batch: j.s.Batch()}
	if text := first.Params.Text(methodKey); text != "" {
		method, _, err := j.s.Catalogue.Method(text)
		if err != nil {
			return nil, err
		}
		spec.Method = &method
	}
	group := scores.Group{Seed: first.Seed}
	for i, e := range c.images {
		region, err := j.region(e.units[c.at[i][0]], score)
		if err != nil {
			return nil, err
		}
		spec.Rows = append(spec.Rows, e.row)
		spec.Keys = append(spec.Keys, rng.Key(first.Seed, "attribution", e.image))
		group.Images = append(group.Images, scores.Image{ID: e.image, Target: e.target, Map: e.Map, Region: region})
	}
	stage, err := j.net.Stage(ctx, images, spec)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, stage.Close()) }()
	group.Stage = stage
	return score.Compute(ctx, group, parameters)
}

func scoreRecord(r scores.Result) *record.Score {
	out := &record.Score{Undefined: r.Undefined, Also: r.Also}
	if r.Undefined == "" {
		out.Value = &r.Value
	}
	for _, c := range r.Curves {
		out.Curves = append(out.Curves, record.ScoreCurve{Name: c.Name, X: c.X, Labels: c.Labels, Y: c.Y})
	}
	return out
}
