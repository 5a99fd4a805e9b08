package orchestrate

import (
	"context"
	"sync"
)

// chunk is a few consecutive units with their images.
type chunk struct {
	units []Unit
	// row[i] is the row of units[i] in images: units of one image share it.
	row    []int
	images Images
	// failed[row] says why a row could not be decoded.
	failed []error
}

// chunks reads units' images one chunk ahead of need, so that the memory that
// is in use does not grow with the number of images.
type chunks struct {
	out    chan *chunk
	err    error // valid once out is closed
	cancel context.CancelFunc
	done   sync.WaitGroup
}

// eachChunk calls f with units and their images, at most size images at a time; they
// are closed when f returns.
func eachChunk(ctx context.Context, s *Session, units []Unit, size int, f func(*chunk) error) error {
	next := prefetch(ctx, s, units, size)
	defer next.stop()
	for {
		c, err := next.get()
		if err != nil || c == nil {
			return err
		}
		err = f(c)
		c.images.Close()
		if err != nil {
			return err
		}
	}
}

// wholeBatches is at most n images, in batches, and at least a batch.
func (s *Session) wholeBatches(n int) int { return max(1, n/s.Batch()) * s.Batch() }

// prefetch starts reading; size is the largest number of images in a chunk.
func prefetch(ctx context.Context, s *Session, units []Unit, size int) *chunks {
	ctx, cancel := context.WithCancel(ctx)
	c := &chunks{out: make(chan *chunk), cancel: cancel}
	c.done.Go(func() {
		defer close(c.out)
		for len(units) > 0 {
			n := cut(units, size)
			next, err := s.chunk(ctx, units[:n])
			if err != nil {
				c.err = err
				return
			}
			select {
			case c.out <- next:
			case <-ctx.Done():
				next.images.Close()
				c.err = ctx.Err()
				return
			}
			units = units[n:]
		}
	})
	return c
}

// cut is the number of units at the head of the list that share net and data
// and have at most size images.
func cut(units []Unit, size int) int {
	items := map[int]bool{}
	for i, u := range units {
		if u.Net != units[0].Net || u.Data != units[0].Data {
			return i
		}
		if items[u.Item] = true; len(items) > size {
			return i
		}
	}
	return len(units)
}

func (s *Session) chunk(ctx context.Context, units []Unit) (*chunk, error) {
	c := &chunk{units: units, row: make([]int, len(units))}
	rows := map[int]int{}
	var items []int
	for i, u := range units {
		row, ok := rows[u.Item]
		if !ok {
			row = len(items)
			rows[u.Item] = row
			items = append(items, u.Item)
		}
		c.row[i] = row
	}
	var err error
	c.images, c.failed, err = s.Load(ctx, units[0].Net, units[0].Data, items)
	return c, err
}

// get returns the next chunk, whose images the caller closes; nil at the end.
func (c *chunks) get() (*chunk, error) {
	next, ok := <-c.out
	if !ok {
		return nil, c.err
	}
	return next, nil
}

// stop ends reading and waits for it.
func (c *chunks) stop() {
	c.cancel()
	for next := range c.out {
		next.images.Close()
	}
	c.done.Wait()
}

// eachNet opens the nets of the units in turn, one in memory at a time.
func (s *Session) eachNet(ctx context.Context, units []Unit, do func(net Net, units []Unit) error) error {
	for len(units) > 0 {
		n := 1
		for n < len(units) && units[n].Net == units[0].Net {
			n++
		}
		if err := s.withNet(ctx, units[:n], do); err != nil {
			return err
		}
		units = units[n:]
	}
	return nil
}

func (s *Session) withNet(ctx context.Context, units []Unit, do func(net Net, units []Unit) error) error {
	net, err := s.OpenNet(ctx, units[0].Net)
	if err != nil {
		return err
	}
	defer net.Close()
	return do(net, units)
}
