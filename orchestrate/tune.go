package orchestrate

import (
	"context"
	"fmt"
	"time"
)

// Tuning keeps measured batch sizes, so that one machine gives the same answer
// each time: the batch shape is part of what determines a result. A nil Tuning
// keeps nothing.
type Tuning interface {
	Get(key string) (int, bool)
	Put(key string, batch int)
}

// batchCandidates are the shapes that are tried, ascending.
func batchCandidates(kind string) []int {
	if kind == "cpu" {
		return []int{8, 16, 32}
	}
	return []int{32, 64, 128, 256, 512}
}

// A larger batch has to be this much faster to be taken: it costs memory, and
// small differences are noise.
const worthwhile = 1.08

// batch is the batch shape of a plan that leaves it open: the one that was
// measured, or less where no forward has so many rows.
func (r *resolver) batch(ctx context.Context) (int, error) {
	most := maxBatch
	if r.Study.Rows != nil {
		if most = r.Study.Rows(r.Resolved); most <= batchCandidates(r.Backend.Kind())[0] {
			return max(1, most), nil
		}
	}
	n, err := r.measure(ctx)
	return min(n, most), err
}

// measure finds the batch shape with the most rows a second for the plan's
// first net, on inputs of zeros.
func (r *resolver) measure(ctx context.Context) (int, error) {
	n := r.Nets[0]
	key := fmt.Sprintf("%s/%d/%s/%s/%d/%v", n.Info.Net, n.Info.Classes, r.Plan.Device, r.Plan.Precision, r.Plan.Threads, r.inputShape(n))
	if r.tuning != nil {
		if batch, ok := r.tuning.Get(key); ok && batch > 0 && batch <= maxBatch {
			return batch, nil
		}
	}
	net, err := r.openNet(ctx, n, r.Plan.Precision)
	if err != nil {
		return 0, err
	}
	defer net.Close()
	candidates := batchCandidates(r.Backend.Kind())
	best, bestRate := candidates[0], 0.0
	for i, batch := range candidates {
		r.progress(Event{Kind: Step, Stage: "measuring batch sizes", Done: i, Total: len(candidates)})
		rate, err := r.rate(ctx, net, n, batch)
		if ctx.Err() != nil {
			return 0, ctx.Err()
		}
		if err != nil {
			if i == 0 {
				return 0, fmt.Errorf("measuring batch %d: %w", batch, err)
			}
			break // most likely too large for the memory
		}
		if rate > bestRate*worthwhile {
			best, bestRate = batch, rate
		}
	}
	if r.tuning != nil {
		r.tuning.Put(key, best)
	}
	return best, nil
}

// rate is rows a second at a batch size: the best of three, after one to warm up.
func (r *resolver) rate(ctx context.Context, net Net, n *ResolvedNet, batch int) (float64, error) {
	shape := r.inputShape(n)
	size := batch
	for _, d := range shape {
		size *= d
	}
	images, err := r.Backend.Arrays(ctx, make([]float32, size), shape)
	if err != nil {
		return 0, err
	}
	defer images.Close()
	best := time.Duration(0)
	for i := range 4 {
		start := time.Now()
		if _, err := net.Predict(ctx, images, 1, batch); err != nil {
			return 0, err
		}
		if d := time.Since(start); i > 0 && (best == 0 || d < best) {
			best = d
		}
	}
	return float64(batch) / max(best.Seconds(), 1e-9), nil
}

// inputShape is the shape that the preset makes, where it makes one.
func (r *Resolved) inputShape(n *ResolvedNet) []int {
	if len(n.Info.Input) != 3 {
		return n.Info.Input
	}
	p := n.Preset
	h, w := p.CropHeight, p.CropWidth
	if h == 0 && p.Resize == "squash" {
		h, w = p.Height, p.Width
	}
	if h == 0 {
		return n.Info.Input
	}
	return []int{n.Info.Input[0], h, w}
}
