package orchestrate

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/assay-xai/assay/trace"
)

// board is a scene on a net, its rows shared by searches.
type board struct {
	scene   Scene
	rows    *sharedRows
	merger  *trace.Merger
	stop    context.CancelFunc
	merging sync.WaitGroup
}

func (st *stage) newBoard(net Net) (*board, error) {
	scene, err := net.Scene(st.ctx, st.spec)
	if err != nil {
		return nil, fmt.Errorf("preparing the deletion of features: %w", err)
	}
	b := &board{scene: scene, rows: &sharedRows{rows: scene, seconds: make([]float64, st.spec.Slots)}}
	b.merger = trace.NewMerger(b.rows, st.spec.Batch)
	var ctx context.Context
	ctx, b.stop = context.WithCancel(st.ctx)
	b.merging.Go(func() { b.merger.Run(ctx) })
	return b, nil
}

func (b *board) close() error {
	if b == nil {
		return nil
	}
	b.stop()
	b.merging.Wait()
	return b.scene.Close()
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

// worked is how long the device has worked for a slot since begin.
func (r *sharedRows) worked(slot int) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return time.Duration(r.seconds[slot] * float64(time.Second))
}
