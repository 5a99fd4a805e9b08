package orchestrate

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/assay-xai/assay/dataset"
	"github.com/assay-xai/assay/internal/record"
	"github.com/assay-xai/assay/internal/rng"
	"github.com/assay-xai/assay/internal/usage"
	"github.com/assay-xai/assay/trace"
)

// sceneKey is what units of one scene share.
type sceneKey struct {
	net       *ResolvedNet
	data      *ResolvedData
	edge      int
	reference string
	// alone keeps searches with a budget of time from sharing the device.
	alone bool
}

func sceneOf(u Unit) sceneKey {
	return sceneKey{u.Net, u.Data, u.Params.Int("edge"), u.Params.Text("reference"), u.Params.Float("time") > 0}
}

// runTrace runs the units scene by scene, the units of one image beside each
// other, so that every image is decoded once a scene.
func runTrace(ctx context.Context, s *Session, units []Unit, emit func(...record.Record) error) error {
	return s.eachNet(ctx, units, func(net Net, units []Unit) error {
		var order []sceneKey
		scenes := map[sceneKey][]Unit{}
		for _, u := range units {
			key := sceneOf(u)
			if scenes[key] == nil {
				order = append(order, key)
			}
			scenes[key] = append(scenes[key], u)
		}
		for _, key := range order {
			list := scenes[key]
			slices.SortStableFunc(list, func(a, b Unit) int { return a.Item - b.Item })
			if err := s.runScene(ctx, net, key, list, emit); err != nil {
				return err
			}
		}
		return nil
	})
}

// Searches in flight: enough to fill the device's batches between them, few
// enough that memory is small and images are finished soon.
const (
	minSlots = 8
	maxSlots = 64
)

// stage is where the searches of one scene play.
type stage struct {
	s     *Session
	net   Net
	key   sceneKey
	spec  SceneSpec
	board *board
	// exact scores what was found once more in f32, where nets run in a
	// precision whose noise can exceed the last temperatures; else nil.
	exact    *board
	exactNet Net
	slots    chan int
	group    *errgroup.Group
	ctx      context.Context
	emit     func(...record.Record) error
}

func (s *Session) runScene(ctx context.Context, net Net, key sceneKey, units []Unit, emit func(...record.Record) error) (err error) {
	images := max(1, min(minSlots, s.Batch()))
	st := &stage{s: s, net: net, key: key, emit: emit}
	st.group, st.ctx = errgroup.WithContext(ctx)
	defer func() {
		// The searches' error is the cause; what ended the loop follows from it.
		if e := st.finish(err); e != nil {
			err = e
		}
	}()
	return eachChunk(ctx, s, units, images, func(c *chunk) error { return st.play(c, len(units)) })
}

// finish waits for the searches; with an error they are told to stop.
func (st *stage) finish(err error) error {
	if err != nil {
		st.group.Go(func() error { return err })
	}
	first := st.group.Wait()
	for _, b := range []*board{st.board, st.exact} {
		if e := b.close(); first == nil {
			first = e
		}
	}
	if st.exactNet != nil {
		if e := st.exactNet.Close(); first == nil {
			first = e
		}
	}
	return first
}

// open makes the scene when the images' shape is known.
func (st *stage) open(shape []int, units int) error {
	reference, err := st.s.Catalogue.reference(st.key.reference)
	if err != nil {
		return err
	}
	slots := min(units, max(minSlots, min(maxSlots, st.s.Batch())))
	if st.key.alone {
		slots = 1
	}
	st.spec = SceneSpec{Slots: slots, Shape: shape, Reference: reference, Generator: st.s.generatorOf(st.key.reference),
		Preset: st.key.net.Preset.ForSet(st.key.data.Set), Batch: st.s.Batch()}
	if len(shape) == 1 {
		st.spec.Features, st.spec.FeatureMap = shape[0], trace.ColumnMap(shape[0])
	} else {
		st.spec.Features = st.key.edge * st.key.edge
		if st.spec.FeatureMap, err = trace.PatchMap(st.key.edge, shape[1], shape[2]); err != nil {
			return err
		}
	}
	if st.s.Catalogue.needsMean(st.key.reference, true) {
		if st.spec.DatasetMean, err = st.s.dataMean(st.ctx, st.key.net, st.key.data); err != nil {
			return err
		}
	}
	if reference.ID == otherImageReference {
		other, err := st.otherImage(reference)
		if err != nil {
			return err
		}
		defer other.Close()
		st.spec.Other = other
	}
	st.slots = make(chan int, slots)
	for i := range slots {
		st.slots <- i
	}
	if st.board, err = st.newBoard(st.net); err != nil || !reduced(st.s.Plan.Precision) {
		return err
	}
	if st.exactNet, err = st.s.openNet(st.ctx, st.key.net, "f32"); err != nil {
		return err
	}
	st.exact, err = st.newBoard(st.exactNet)
	return err
}

// otherImage loads the image that the reference "image" names.
func (st *stage) otherImage(reference Reference) (Images, error) {
	id, _ := reference.Params["image"].(string)
	items := st.key.data.Set.Items()
	i := slices.IndexFunc(items, func(item dataset.Item) bool { return item.ID == id })
	if i < 0 {
		return nil, usage.Errorf("reference image(image=%s): no image of that id in %s: want one of its ids, for example image(image=%s)", id, st.key.data.Name, items[0].ID)
	}
	images, failed, err := st.s.Load(st.ctx, st.key.net, st.key.data, []int{i})
	if err != nil {
		return nil, err
	}
	if failed[0] != nil {
		images.Close()
		return nil, usage.Errorf("reference image(image=%s): %w", id, failed[0])
	}
	return images, nil
}

// reduced is true of precisions whose results are scored again.
func reduced(precision string) bool { return precision == "tf32" || precision == "bf16" }

// play starts the searches of a chunk's units as slots become free.
func (st *stage) play(c *chunk, units int) error {
	if st.board == nil {
		if err := st.open(c.images.Shape(), units); err != nil {
			return err
		}
	}
	predictions, err := st.net.Predict(st.ctx, c.images, min(evalTop, st.net.Info().Classes), st.s.Batch())
	if err != nil {
		return fmt.Errorf("running net %s: %w", st.key.net.Name, err)
	}
	for i, u := range c.units {
		row := c.row[i]
		rec := st.s.begin(u, predictions[row], c.failed[row])
		if rec.Error != "" {
			if err := st.emit(rec); err != nil {
				return err
			}
			continue
		}
		var slot int
		select {
		case slot = <-st.slots:
		case <-st.ctx.Done():
			return context.Cause(st.ctx)
		}
		for _, b := range []*board{st.board, st.exact} {
			if b == nil {
				continue
			}
			if err := b.scene.Put(st.ctx, slot, c.images, row, rng.Key(u.Seed, "reference", rec.Image)); err != nil {
				return fmt.Errorf("preparing %s: %w", rec.Image, err)
			}
			b.rows.begin(slot)
		}
		b := st.boardOf(u)
		scorer, done := b.merger.Image(slot, rec.Target)
		st.group.Go(func() error {
			defer func() { st.slots <- slot }()
			defer done()
			return st.search(u, rec, slot, b, scorer, done)
		})
	}
	return nil
}

// boardOf is where a unit's search plays. Solvers that look at every state prove
// something of the scores, which would not hold of other scores: they play in f32
// from the beginning.
func (st *stage) boardOf(u Unit) *board {
	solver, err := trace.SolverByID(u.Params.Text("solver"))
	if err == nil && solver.MaxFeatures > 0 && st.exact != nil {
		return st.exact
	}
	return st.board
}

// search plays one unit on a board and emits its record.
func (st *stage) search(u Unit, rec record.Record, slot int, b *board, scorer trace.Scorer, done func()) (err error) {
	j, err := st.s.journal(u, st.spec.Features, scorer, func() time.Duration { return b.rows.worked(slot) })
	if err != nil {
		return err
	}
	ended := false
	defer func() {
		finish := j.Keep
		if ended {
			finish = j.Remove
		}
		if e := finish(); err == nil {
			err = e
		}
	}()
	problem := trace.Problem{T: st.spec.Features, ImageID: rec.Image, Scorer: j, Before: j.Before,
		Progress: func(part float64) { st.s.partly(u, part) }}
	options, err := st.options(u)
	var result trace.Result
	if err == nil {
		result, err = trace.Run(st.ctx, problem, options)
	}
	done()
	if err == nil && st.exact != nil && b != st.exact {
		err = st.again(u, &result, slot, rec.Target)
	}
	rec.Cost = record.Cost{Seconds: (j.Device + b.rows.worked(slot)).Seconds(), Evaluations: result.Evaluations,
		Forwards: result.Forwards, StartForwards: result.StartForwards, Changed: result.Changed, Discarded: result.Discarded}
	var device *deviceError
	switch {
	case st.ctx.Err() != nil:
		return context.Cause(st.ctx)
	case errors.As(err, &device):
		return fmt.Errorf("scoring %s: %w", rec.Image, device.error)
	case err != nil: // of this image alone, and for good
		rec = record.Failure(rec, err.Error())
	default:
		rec.Trace = traceRecord(u, st.spec.Features, result)
		rec.Warnings = result.Warnings
	}
	err = st.emit(rec)
	ended = err == nil
	return err
}

// again scores a found trajectory in f32; values of the search stay in history.
func (st *stage) again(u Unit, result *trace.Result, slot, target int) error {
	scorer, done := st.exact.merger.Image(slot, target)
	defer done()
	item := u.Data.Set.Items()[u.Item]
	curves, err := trace.Evaluate(st.ctx, trace.Problem{T: st.spec.Features, ImageID: item.ID, Scorer: scorer}, result.Trajectory)
	if err != nil {
		return err
	}
	objective, err := trace.ObjectiveByID(u.Params.Text("objective"))
	if err != nil {
		return err
	}
	le, mo := curves.Prob.Sums()
	if u.Params.Text("scoreOn") == "logit" {
		le, mo = curves.Logit.Sums()
	}
	result.Curves, result.Value = curves, float64(objective.Le)*le+float64(objective.Mo)*mo
	result.Forwards += int64(2 * st.spec.Features) // both ends are shared
	result.Warnings = append(result.Warnings, "searched in "+st.s.Plan.Precision+", scored again in f32")
	return nil
}

func traceRecord(u Unit, features int, r trace.Result) *record.Trace {
	t := &record.Trace{
		Objective: u.Params.Text("objective"), ScoreOn: u.Params.Text("scoreOn"), Solver: u.Params.Text("solver"),
		Value: r.Value, Features: features, EdgePatches: u.Params.Int("edge"), Trajectory: r.Trajectory, Accepted: r.Accepted,
		Bound: r.Bounds != nil,
		Curves: record.Curves{
			Prob:  record.Curve{Le: r.Curves.Prob.Le, Mo: r.Curves.Prob.Mo},
			Logit: record.Curve{Le: r.Curves.Logit.Le, Mo: r.Curves.Logit.Mo},
		},
	}
	t.Sums.Prob.Le, t.Sums.Prob.Mo = r.Curves.Prob.Sums()
	t.Sums.Logit.Le, t.Sums.Logit.Mo = r.Curves.Logit.Sums()
	for _, p := range r.History {
		t.History = append(t.History, record.HistoryPoint{Iteration: p.Iteration, Accepted: p.Accepted, Evaluations: p.Evaluations, Current: p.Current, Best: p.Best})
	}
	if len(r.History) > 0 {
		t.Last = &r.Last
	}
	if len(r.Restarts) > 1 {
		t.Restarts = r.Restarts
	}
	if !math.IsNaN(r.Relaxed) {
		t.Relaxed = &r.Relaxed
	}
	return t
}
