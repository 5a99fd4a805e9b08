package trace

import (
	"cmp"
	"context"
	"slices"
	"time"
)

// A walk is a search that proposes one trajectory an iteration and takes it or
// leaves it: annealing, hill climbing, the genetic search. Each implements
// walker; this file scores as few states of the proposals as the decision needs,
// and looks ahead where the device has rows to spare.

// walker is what one kind of walk decides.
type walker interface {
	// propose fills in trial t of an iteration: its order, what it is compared
	// with (from) and the range of positions that differ. before is the trial of
	// the iteration before if that is not decided yet, supposed to be rejected;
	// else nil.
	propose(t *trial, before *trial)
	// accepts says whether a trial whose sum differs by d from from's is taken. It
	// is monotone in d.
	accepts(t *trial, d int64) bool
	// decided ends the iteration: an accepted trial becomes part of the walk.
	decided(t *trial, accepted bool, d int64)
}

// trial is a proposed trajectory, scored as far as needed.
type trial struct {
	iteration int
	order     []int
	from      *position
	// Prefixes of lengths lo+1..hi differ from from's; the slices below are
	// aligned with them.
	lo, hi int
	keys   []stateKey
	le, mo []int64
	// sum is what the known states change; slack the most that pending ones can
	// add. Nothing bounds it where open.
	sum, slack int64
	open       bool
	pending    []term // the most promising first
	next       int    // pending before it are known
	needed     int    // of pending, the terms that had to be known before the decision was clear
	clear      bool   // needed is known
	bad        error  // a state whose score cannot be summed; its slack stays
	// scored counts states that the net was asked for, planned those to be in
	// the next call.
	scored, planned int

	// The walk's own.
	temperature, uniform float64
	never                bool // rejected without looking
}

// term is a state of a trial.
type term struct {
	m     int32 // prefix length - lo - 1
	whole bool  // the complement of the prefix: a MoRF state
	slack int64
}

// lookahead bounds the iterations that a walk speculates on.
const lookahead = 64

// walk runs iterations of w until the budget ends.
type walk struct {
	*search
	w     walker
	after told
	// offset is the number of iterations of earlier restarts.
	offset, iterations int
	window             []*trial // undecided, in order of iterations
	spare              []*trial
	done               int // iterations decided in this walk

	// What decides which states to score ahead: the running shares of rejected
	// trials, and of trials that needed more than n states.
	decisions, rejections float64
	need                  []float64
}

func (s *search) newWalk(w walker, after told) *walk {
	wk := &walk{search: s, w: w, after: after}
	// Until something is known: every second trial is rejected, and only after
	// all its states.
	wk.decisions, wk.rejections = 2, 1
	wk.need = make([]float64, 2*s.p.T+3)
	for i := range wk.need {
		wk.need[i] = 2
	}
	return wk
}

// exhausted says whether the budget ends before another iteration.
func (s *search) exhausted() bool {
	return s.o.Budget.Evaluations > 0 && s.g.evaluations >= s.o.Budget.Evaluations || s.stalled() ||
		s.o.Budget.Time > 0 && time.Since(s.started)+s.p.Before >= s.o.Budget.Time
}

func (wk *walk) run(ctx context.Context, offset, iterations int) (int, error) {
	wk.offset, wk.iterations = offset, iterations
	err := wk.all(ctx)
	return wk.done, err
}

// all decides iterations until the budget ends.
func (wk *walk) all(ctx context.Context) error {
	for {
		for len(wk.window) > 0 {
			t := wk.window[0]
			if !wk.decidable(t) {
				break
			}
			if wk.exhausted() {
				return nil
			}
			if t.bad != nil && wk.reachable(t) {
				return t.bad
			}
			accepted := !t.never && t.next == len(t.pending) && t.bad == nil && wk.w.accepts(t, t.sum)
			wk.settle(t, accepted)
			wk.after(t.iteration, accepted, t.lo+1, t.hi)
		}
		if wk.iterations > 0 && wk.done >= wk.iterations || wk.exhausted() {
			return nil
		}
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		if len(wk.window) == 0 {
			wk.extend()
			if wk.decidable(wk.window[0]) {
				continue
			}
		}
		wk.plan()
		if err := wk.ask(ctx); err != nil {
			return err
		}
	}
}

// decidable says whether enough is known of a trial.
func (wk *walk) decidable(t *trial) bool {
	return t.never || t.next == len(t.pending) || wk.saves(EarlyRejection) && !wk.reachable(t)
}

// reachable says whether a trial may still be accepted.
func (wk *walk) reachable(t *trial) bool { return t.open || wk.w.accepts(t, t.sum+t.slack) }

// settle ends the front trial's iteration.
func (wk *walk) settle(t *trial, accepted bool) {
	wk.done++
	for i, k := range t.keys {
		// Nominal evaluations: the plain loop scores all states that changed.
		if t.never || t.from.keys[t.lo+1+i] == k {
			continue
		}
		if wk.objective.Le != 0 {
			wk.g.ask(k)
			wk.result.Changed++
		}
		if wk.objective.Mo != 0 {
			wk.g.ask(k.xor(wk.g.whole))
			wk.result.Changed++
		}
	}
	wk.learn(t, accepted)
	wk.w.decided(t, accepted, t.sum)
	if !accepted {
		wk.window = append(wk.window[:0], wk.window[1:]...)
		wk.spare = append(wk.spare, t)
		return
	}
	for _, later := range wk.window[1:] {
		wk.result.Discarded += int64(later.scored)
	}
	wk.spare = append(wk.spare, wk.window...)
	wk.window = wk.window[:0]
}

// learn keeps what plan goes by; old decisions fade.
func (wk *walk) learn(t *trial, accepted bool) {
	const memory = 512
	if wk.decisions >= memory {
		wk.decisions /= 2
		wk.rejections /= 2
		for i := range wk.need {
			wk.need[i] /= 2
		}
	}
	wk.decisions++
	if !accepted {
		wk.rejections++
	}
	needed := t.needed
	if !t.clear {
		needed = len(t.pending)
	}
	for i := range min(needed, len(wk.need)) {
		wk.need[i]++
	}
}

// extend proposes the iteration after the window's last.
func (wk *walk) extend() bool {
	iteration := wk.done + len(wk.window) + 1
	if wk.iterations > 0 && iteration > wk.iterations {
		return false
	}
	var t, before *trial
	if n := len(wk.spare); n > 0 {
		t, wk.spare = wk.spare[n-1], wk.spare[:n-1]
	} else {
		t = &trial{order: make([]int, wk.p.T)}
	}
	if n := len(wk.window); n > 0 {
		before = wk.window[n-1]
	}
	*t = trial{iteration: wk.offset + iteration, order: t.order, keys: t.keys[:0], le: t.le[:0], mo: t.mo[:0], pending: t.pending[:0], open: wk.logit}
	wk.w.propose(t, before)
	wk.window = append(wk.window, t)
	if !t.never {
		wk.prepare(t)
	}
	return true
}

// prepare finds the states of a trial, and what is known of them.
func (wk *walk) prepare(t *trial) {
	if !wk.saves(OnlyChanged) {
		t.lo, t.hi = -1, len(t.order)
	}
	n := t.hi - t.lo
	t.keys = slices.Grow(t.keys, n+1)[:n+1]
	if t.lo >= 0 {
		t.keys[0] = t.from.keys[t.lo]
		wk.g.prefixKeys(t.order, t.lo, t.hi, t.keys)
		t.keys = t.keys[1:]
	} else {
		t.keys = t.keys[:n]
		t.keys[0] = stateKey{}
		wk.g.prefixKeys(t.order, 0, t.hi, t.keys)
	}
	t.le, t.mo = slices.Grow(t.le, n)[:n], slices.Grow(t.mo, n)[:n]
	for i, k := range t.keys {
		m := t.lo + 1 + i
		t.le[i], t.mo[i] = t.from.le[m], t.from.mo[m]
		if wk.saves(OnlyChanged) && k == t.from.keys[m] {
			continue
		}
		if wk.objective.Le != 0 {
			wk.consider(t, term{int32(i), false, unit - t.le[i]}, k)
		}
		if wk.objective.Mo != 0 {
			wk.consider(t, term{int32(i), true, t.mo[i]}, k.xor(wk.g.whole))
		}
	}
	slices.SortStableFunc(t.pending, func(a, b term) int { return cmp.Compare(b.slack, a.slack) })
	wk.note(t)
}

// consider adds a term to a trial: to what is known of it, if the memo has it.
func (wk *walk) consider(t *trial, x term, k stateKey) {
	if v, ok := wk.g.known(k); ok {
		wk.fold(t, x, v, true)
		return
	}
	t.slack += x.slack
	t.pending = append(t.pending, x)
}

func (t *trial) key(g *game, x term) stateKey {
	if x.whole {
		return t.keys[x.m].xor(g.whole)
	}
	return t.keys[x.m]
}

// set returns the deleted features of a term's state.
func (t *trial) set(x term) Set {
	s := prefix(t.order, t.lo+1+int(x.m))
	if x.whole {
		return s.Complement(len(t.order))
	}
	return s
}

// fold adds a term's score to what is known. One that cannot be summed stays
// what it could have been at most: the trial is rejected if that is too little
// all the same, and an error if it is not. So it does not matter how many states
// were scored at a time.
func (wk *walk) fold(t *trial, x term, v Score, fresh bool) {
	if !fresh {
		t.slack -= x.slack
	}
	fixed, err := fix(v, wk.logit, wk.p.T)
	if !finite(v) {
		m := t.lo + 1 + int(x.m)
		if x.whole {
			m = wk.p.T - m
		}
		err = &NotFiniteError{Score: v, Deleted: m, T: wk.p.T}
	}
	if err != nil {
		t.slack += x.slack
		if t.bad == nil {
			t.bad = err
		}
		return
	}
	if x.whole {
		t.sum += wk.objective.Mo * (fixed - t.mo[x.m])
		t.mo[x.m] = fixed
	} else {
		t.sum += wk.objective.Le * (fixed - t.le[x.m])
		t.le[x.m] = fixed
	}
}

// note remembers how many terms a decision against a trial takes.
func (wk *walk) note(t *trial) {
	if wk.saves(EarlyRejection) && !t.clear && !wk.reachable(t) {
		t.clear, t.needed = true, t.next
	}
}

// plan chooses the states of the next call: first what the iteration at hand
// needs, and in the rows that would be empty those that are needed most
// probably, of it and of later iterations.
func (wk *walk) plan() {
	want := 1
	if h, ok := wk.p.Scorer.(Hinter); ok {
		want = max(1, h.Want())
	}
	for _, t := range wk.window {
		t.planned = 0
	}
	front := wk.window[0]
	if front.open || !wk.saves(EarlyRejection) {
		// No bound: all of them will be needed.
		front.planned = len(front.pending) - front.next
		want -= front.planned
	}
	reject := wk.rejections / wk.decisions
	for want > 0 {
		best, chance, ahead := (*trial)(nil), 0.0, 1.0
		for _, t := range wk.window {
			if c := ahead * wk.chance(t); c > chance {
				best, chance = t, c
			}
			ahead *= wk.rejection(t, reject)
		}
		if wk.saves(Speculation) && len(wk.window) < lookahead && ahead*wk.need[0]/wk.decisions > chance && wk.extend() {
			continue
		}
		if best == nil {
			return
		}
		take := 1
		if best.open || !wk.saves(EarlyRejection) {
			take = len(best.pending) - best.next - best.planned
		}
		best.planned += take
		want -= take
	}
}

// rejection is the probability that a trial will be rejected.
func (wk *walk) rejection(t *trial, share float64) float64 {
	switch {
	case t.never || t.clear:
		return 1
	case t.next < len(t.pending):
		return share
	case wk.w.accepts(t, t.sum):
		return 0
	}
	return 1
}

// chance is the share of trials like t that need one more state.
func (wk *walk) chance(t *trial) float64 {
	n := t.next + t.planned
	if n >= len(t.pending) || t.never || t.clear {
		return 0
	}
	if t == wk.window[0] && t.planned == 0 {
		return 2 // it is needed for certain
	}
	return wk.need[min(n, len(wk.need)-1)] / wk.decisions
}

// ask scores the planned states and tells the trials.
func (wk *walk) ask(ctx context.Context) error {
	var keys []stateKey
	var sets []Set
	place := make(map[stateKey]int, 16)
	for _, t := range wk.window {
		for _, x := range t.pending[t.next : t.next+t.planned] {
			k := t.key(wk.g, x)
			if _, twice := place[k]; twice {
				continue
			}
			if _, known := wk.g.known(k); known {
				continue
			}
			place[k] = len(keys)
			keys, sets = append(keys, k), append(sets, t.set(x))
			t.scored++
		}
	}
	scored, err := wk.g.score(ctx, keys, sets)
	if err != nil {
		return err
	}
	for _, t := range wk.window {
		for range t.planned {
			x := t.pending[t.next]
			k := t.key(wk.g, x)
			t.next++
			v, ok := wk.g.known(k)
			if i, now := place[k]; now {
				v, ok = scored[i], true
			}
			if !ok { // the memo began anew between the two
				v, err = wk.one(ctx, t, x, k)
				if err != nil {
					return err
				}
			}
			wk.fold(t, x, v, false)
			wk.note(t)
		}
		t.planned = 0
	}
	return nil
}

func (wk *walk) one(ctx context.Context, t *trial, x term, k stateKey) (Score, error) {
	scored, err := wk.g.score(ctx, []stateKey{k}, []Set{t.set(x)})
	if err != nil {
		return Score{}, err
	}
	return scored[0], nil
}
