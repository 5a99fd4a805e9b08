package orchestrate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
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

// stage is a scene with the searches that play on it.
type stage struct {
	s       *Session
	net     Net
	key     sceneKey
	spec    SceneSpec
	scene   Scene
	rows    *sharedRows
	merger  *trace.Merger
	slots   chan int
	group   *errgroup.Group
	ctx     context.Context
	emit    func(...record.Record) error
	closing context.CancelFunc
	merging sync.WaitGroup
}

func (s *Session) runScene(ctx context.Context, net Net, key sceneKey, units []Unit, emit func(...record.Record) error) (err error) {
	images := max(1, min(minSlots, s.Batch()))
	next := prefetch(ctx, s, units, images)
	defer next.stop()
	st := &stage{s: s, net: net, key: key, emit: emit}
	st.group, st.ctx = errgroup.WithContext(ctx)
	defer func() {
		// The searches' error is the cause; what ended the loop follows from it.
		if e := st.finish(err); e != nil {
			err = e
		}
	}()
	for {
		c, err := next.get()
		if err != nil || c == nil {
			return err
		}
		err = st.play(c, len(units))
		c.images.Close()
		if err != nil {
			return err
		}
	}
}

// finish waits for the searches; with an error they are told to stop.
func (st *stage) finish(err error) error {
	if err != nil {
		st.group.Go(func() error { return err })
	}
	first := st.group.Wait()
	if st.scene != nil {
		st.closing()
		st.merging.Wait()
		if e := st.scene.Close(); first == nil {
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
	st.spec = SceneSpec{Slots: slots, Shape: shape, Reference: reference, Preset: st.key.net.Preset.ForSet(st.key.data.Set), Batch: st.s.Batch()}
	if len(shape) == 1 {
		st.spec.Features, st.spec.FeatureMap = shape[0], trace.ColumnMap(shape[0])
	} else {
		st.spec.Features = st.key.edge * st.key.edge
		if st.spec.FeatureMap, err = trace.PatchMap(st.key.edge, shape[1], shape[2]); err != nil {
			return err
		}
	}
	if reference.ID == "image" {
		other, err := st.otherImage(reference)
		if err != nil {
			return err
		}
		defer other.Close()
		st.spec.Other = other
	}
	if st.scene, err = st.net.Scene(st.ctx, st.spec); err != nil {
		return fmt.Errorf("preparing the deletion of features: %w", err)
	}
	st.rows = &sharedRows{rows: st.scene, seconds: make([]float64, slots)}
	st.merger = trace.NewMerger(st.rows, st.s.Batch())
	st.slots = make(chan int, slots)
	for i := range slots {
		st.slots <- i
	}
	merging, stop := context.WithCancel(st.ctx)
	st.closing = stop
	st.merging.Go(func() { st.merger.Run(merging) })
	return nil
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

// play starts the searches of a chunk's units as slots become free.
func (st *stage) play(c *chunk, units int) error {
	if st.scene == nil {
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
		if err := st.scene.Put(st.ctx, slot, c.images, row, rng.Key(u.Seed, "reference", rec.Image)); err != nil {
			return fmt.Errorf("preparing %s: %w", rec.Image, err)
		}
		st.rows.begin(slot)
		scorer, done := st.merger.Image(slot, rec.Target)
		st.group.Go(func() error {
			defer func() { st.slots <- slot }()
			defer done()
			return st.search(u, rec, slot, scorer, done)
		})
	}
	return nil
}

// search plays one unit and emits its record.
func (st *stage) search(u Unit, rec record.Record, slot int, scorer trace.Scorer, done func()) error {
	result, err := trace.Run(st.ctx, trace.Problem{T: st.spec.Features, ImageID: rec.Image, Scorer: scorer}, traceOptions(u))
	done()
	rec.Cost = record.Cost{Seconds: st.rows.end(slot), Evaluations: result.Evaluations, Forwards: result.Forwards, StartForwards: result.StartForwards}
	var device *deviceError
	switch {
	case st.ctx.Err() != nil:
		return context.Cause(st.ctx)
	case errors.As(err, &device):
		return fmt.Errorf("scoring %s: %w", rec.Image, device.error)
	case err != nil: // of this image alone, and for good
		return st.emit(record.Failure(rec, err.Error()))
	}
	rec.Trace = traceRecord(u, st.spec.Features, result)
	rec.Warnings = result.Warnings
	return st.emit(rec)
}

func traceRecord(u Unit, features int, r trace.Result) *record.Trace {
	t := &record.Trace{
		Objective: u.Params.Text("objective"), ScoreOn: u.Params.Text("scoreOn"), Solver: u.Params.Text("solver"),
		Value: r.Value, Features: features, EdgePatches: u.Params.Int("edge"), Trajectory: r.Trajectory, Accepted: r.Accepted,
		Curves: record.Curves{
			Prob:  record.Curve{Le: r.Curves.Prob.Le, Mo: r.Curves.Prob.Mo},
			Logit: record.Curve{Le: r.Curves.Logit.Le, Mo: r.Curves.Logit.Mo},
		},
	}
	t.Sums.Prob.Le, t.Sums.Prob.Mo = r.Curves.Prob.Sums()
	t.Sums.Logit.Le, t.Sums.Logit.Mo = r.Curves.Logit.Sums()
	for _, p := range r.History {
		t.History = append(t.History, record.HistoryPoint{Iteration: p.Iteration, Accepted: p.Accepted, Current: p.Current, Best: p.Best})
	}
	if len(r.History) > 0 {
		t.Last = &r.Last
	}
	return t
}

// deviceError is an error of the device: not this image's, the run's.
type deviceError struct{ error }

func (e *deviceError) Unwrap() error { return e.error }

// sharedRows divides the device's time between the slots whose rows it ran.
type sharedRows struct {
	rows    trace.RowScorer
	mu      sync.Mutex
	seconds []float64
}

func (r *sharedRows) ScoreRows(ctx context.Context, rows []trace.Row) ([]trace.Score, error) {
	start := time.Now()
	scores, err := r.rows.ScoreRows(ctx, rows)
	if err != nil {
		return nil, &deviceError{err}
	}
	share := time.Since(start).Seconds() / float64(max(1, len(rows)))
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, row := range rows {
		r.seconds[row.Slot] += share
	}
	return scores, nil
}

func (r *sharedRows) begin(slot int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seconds[slot] = 0
}

func (r *sharedRows) end(slot int) float64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.seconds[slot]
}
