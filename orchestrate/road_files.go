package orchestrate

import (
	"context"
	"math"
	"path/filepath"
	"sync"
)

// roadFiles are what a run keeps beside records: film strips of some images. Devices
// share it.
type roadFiles struct {
	out    string
	order  map[string]int // of units, by id
	mu     sync.Mutex
	strips []Strip
}

func openRoadFiles(_ context.Context, _ *Resolved, out string, units []Unit) (RunFiles, error) {
	f := &roadFiles{out: out, order: map[string]int{}}
	for _, u := range units {
		f.order[u.ID] = u.Order
	}
	sweepHidden(filepath.Join(out, StripsFolder))
	var err error
	f.strips, err = ReadStrips(out)
	return f, err
}

// mergeRoad puts the strips of shards together.
func mergeRoad(ctx context.Context, r *Resolved, out string, units []Unit, parts []MergePart) error {
	opened, err := openRoadFiles(ctx, r, out, units)
	if err != nil {
		return err
	}
	f := opened.(*roadFiles)
	for _, p := range parts {
		strips, err := ReadStrips(p.Out)
		if err != nil {
			return err
		}
		f.strips = append(f.strips, strips...)
		if err := copyTree(ctx, filepath.Join(p.Out, StripsFolder), filepath.Join(out, StripsFolder)); err != nil {
			return err
		}
	}
	if len(f.strips) == 0 {
		return nil
	}
	return f.index()
}

// Finish has nothing to do: strips are complete when their units have records.
func (f *roadFiles) Finish(context.Context) error { return nil }

// mapVariation is the total variation of a map [1,H,W] that is scaled to 0..1: the mean
// absolute difference of vertical neighbours and that of horizontal ones, added. 0 for
// maps of one value and for columns.
func mapVariation(values []float32, shape []int) float64 {
	if len(shape) != 3 {
		return 0
	}
	h, w := shape[1], shape[2]
	low, high := math.Inf(1), math.Inf(-1)
	for _, v := range values {
		low, high = min(low, float64(v)), max(high, float64(v))
	}
	if !(high > low) {
		return 0
	}
	vertical, horizontal := 0.0, 0.0
	for y := range h {
		for x := range w {
			v := float64(values[y*w+x])
			if y+1 < h {
				vertical += math.Abs(float64(values[(y+1)*w+x]) - v)
			}
			if x+1 < w {
				horizontal += math.Abs(float64(values[y*w+x+1]) - v)
			}
		}
	}
	return (vertical/float64(max(1, (h-1)*w)) + horizontal/float64(max(1, h*(w-1)))) / (high - low)
}
