package trace

import (
	"context"
	"fmt"
	"sync"
)

// Merger lets searches of many images share the batches of one device. Every
// search runs in its own goroutine and blocks when it asks for scores; the
// merger collects what all of them ask for and scores it together. What a
// search gets depends on its own states alone, so results do not depend on
// which searches run beside it.
type Merger struct {
	rows  RowScorer
	batch int

	mu      sync.Mutex
	changed *sync.Cond
	live    int        // searches that may still ask
	waiting []*request // in the order of arrival
	stopped error
}

type request struct {
	rows   []Row
	scores []Score
	done   chan error
	next   int // rows before it are scored
}

// NewMerger returns a merger over rows, whose batches have `batch` rows.
func NewMerger(rows RowScorer, batch int) *Merger {
	m := &Merger{rows: rows, batch: max(1, batch)}
	m.changed = sync.NewCond(&m.mu)
	return m
}

// Image registers a search of the image in a slot, tracked class target. Call
// done when the search ends, or the others wait for it.
func (m *Merger) Image(slot, target int) (scorer Scorer, done func()) {
	m.mu.Lock()
	m.live++
	m.mu.Unlock()
	var once sync.Once
	return &mergedScorer{m, slot, target}, func() {
		once.Do(func() {
			m.mu.Lock()
			m.live--
			m.changed.Broadcast()
			m.mu.Unlock()
		})
	}
}

type mergedScorer struct {
	m            *Merger
	slot, target int
}

// Want shares a batch among the searches that are under way.
func (s *mergedScorer) Want() int {
	s.m.mu.Lock()
	defer s.m.mu.Unlock()
	live := max(1, s.m.live)
	return (s.m.batch + live - 1) / live
}

func (s *mergedScorer) Scores(ctx context.Context, sets []Set) ([]Score, error) {
	if len(sets) == 0 {
		return nil, nil
	}
	r := &request{scores: make([]Score, len(sets)), done: make(chan error, 1)}
	for _, set := range sets {
		r.rows = append(r.rows, Row{Slot: s.slot, Target: s.target, Set: set})
	}
	s.m.mu.Lock()
	if s.m.stopped != nil {
		defer s.m.mu.Unlock()
		return nil, s.m.stopped
	}
	s.m.waiting = append(s.m.waiting, r)
	s.m.changed.Broadcast()
	s.m.mu.Unlock()
	select {
	case err := <-r.done:
		if err != nil {
			return nil, err
		}
		return r.scores, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// Run scores what the searches ask for until ctx ends; then every search that
// waits or asks gets the context's cause. All calls to the RowScorer are made
// from here. An error of the RowScorer goes to the searches whose rows were in
// that call, and the others go on.
func (m *Merger) Run(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() {
		m.mu.Lock()
		m.stopped = context.Cause(ctx)
		for _, r := range m.waiting {
			r.done <- m.stopped
		}
		m.waiting = nil
		m.changed.Broadcast()
		m.mu.Unlock()
	})
	defer stop()
	for {
		part := m.next()
		if part == nil {
			return nil
		}
		var rows []Row
		for _, p := range part {
			rows = append(rows, p.r.rows[p.from:p.to]...)
		}
		scores, err := m.rows.ScoreRows(ctx, rows)
		if err == nil && len(scores) != len(rows) {
			err = fmt.Errorf("trace: %d scores for %d rows", len(scores), len(rows))
		}
		m.deliver(part, scores, err)
	}
}

func (m *Merger) rowsWaiting() int {
	total := 0
	for _, r := range m.waiting {
		total += len(r.rows) - r.next
	}
	return total
}

type piece struct {
	r        *request
	from, to int
}

// next waits until there are rows for a batch or every live search asks, then
// takes as many rows as fill whole batches, in the order of arrival; all rows if
// they fill none. nil: stopped.
func (m *Merger) next() []piece {
	m.mu.Lock()
	defer m.mu.Unlock()
	for m.stopped == nil && (len(m.waiting) == 0 || len(m.waiting) < m.live && m.rowsWaiting() < m.batch) {
		m.changed.Wait()
	}
	if m.stopped != nil {
		return nil
	}
	total := m.rowsWaiting()
	take := total / m.batch * m.batch
	if take == 0 || len(m.waiting) == 1 {
		take = total
	}
	var out []piece
	for _, r := range m.waiting {
		n := min(take, len(r.rows)-r.next)
		if n == 0 {
			break
		}
		out = append(out, piece{r, r.next, r.next + n})
		take -= n
	}
	return out
}

func (m *Merger) deliver(part []piece, scores []Score, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, p := range part {
		n := p.to - p.from
		if err == nil {
			copy(p.r.scores[p.from:], scores[:n])
			scores = scores[n:]
		}
		p.r.next = p.to
		if err == nil && p.r.next < len(p.r.rows) {
			continue
		}
		for i, r := range m.waiting {
			if r == p.r {
				m.waiting = append(m.waiting[:i], m.waiting[i+1:]...)
				p.r.done <- err
				break
			}
		}
	}
}
