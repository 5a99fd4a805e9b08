package trace

import "context"

// tabu is appendix E's tabu search: the best neighbour is taken, better or
// worse, unless it swaps back what was swapped lately. All neighbours are asked
// for, which is why the paper takes those of the bubble-sort graph, t-1 instead
// of t(t-1)/2. Ours, for the paper names neither: the tenure, and that a forbidden
// swap is allowed where it gives the best value so far, or where all are forbidden.
func tabu() Solver {
	return Solver{
		ID: "tabu", Summary: "the best of the bubble-sort neighbours that does not undo a late swap (appendix E)",
		Parameters: []Parameter{
			{Name: "tenure", Default: 10, Minimum: 0, Maximum: 1e6, Integer: true, Summary: "iterations for which two swapped features may not be swapped back"},
			iterationsParameter(), restartsParameter(),
		},
		Schedules:  []Schedule{{ID: "paper", Summary: "random start, 5000 iterations", Start: "random"}},
		Objectives: []string{"le-mo", "le", "mo"}, Version: 1,
		run: func(ctx context.Context, s *search) error {
			return s.fromStarts(ctx, func(_ context.Context, now *position, after told) (course, error) {
				return &tabuCourse{search: s, now: now, after: after, until: map[[2]int]int{}}, nil
			})
		},
		// A swap leaves all neighbours as they were, but for the two beside it and its
		// own way back, which is known.
		states: func(o Options, t int, halves float64) float64 {
			return halves*float64(t-1) + courses(o, t, halves, 2)
		},
	}
}

// tabuCourse is a tabu search from one start.
type tabuCourse struct {
	*search
	now   *position
	after told
	until map[[2]int]int // the last iteration for which a pair of features is forbidden
}

// adjacent is the neighbour that swaps positions m-1 and m: of its prefixes only
// that of length m differs.
type adjacent struct {
	m      int
	key    stateKey
	le, mo int64
	// missing[0]: le is not known, missing[1]: mo; what they can be at best stands
	// in for them. bad: they are not numbers.
	missing [2]bool
	bad     error
	tabu    bool
	d       int64 // the change of the objective, or what it is at most
}

func (c *tabuCourse) run(ctx context.Context, offset, iterations int) (int, error) {
	for done := 0; ; done++ {
		if iterations > 0 && done >= iterations || c.exhausted() {
			return done, nil
		}
		if err := ctx.Err(); err != nil {
			return done, context.Cause(ctx)
		}
		iteration := offset + done + 1
		best, err := c.choose(ctx, iteration)
		if err != nil {
			return done, err
		}
		m := best.m
		c.until[pair(c.now.order[m-1], c.now.order[m])] = iteration + int(c.params["tenure"])
		c.now.order[m-1], c.now.order[m] = c.now.order[m], c.now.order[m-1]
		c.now.keys[m], c.now.le[m], c.now.mo[m] = best.key, best.le, best.mo
		c.now.value += best.d
		c.after(iteration, true, m, m)
	}
}

func pair(a, b int) [2]int { return [2]int{min(a, b), max(a, b)} }

// choose returns the best admissible neighbour, the smallest m among equals. It
// scores neighbours from the most promising down, until the best is known.
func (c *tabuCourse) choose(ctx context.Context, iteration int) (*adjacent, error) {
	order := c.now.order
	list := make([]*adjacent, 0, len(order)-1)
	for m := 1; m < len(order); m++ {
		a := &adjacent{m: m, key: c.now.keys[m-1].xor(c.g.feature[order[m]]), le: c.now.le[m], mo: c.now.mo[m]}
		a.tabu = c.until[pair(order[m-1], order[m])] >= iteration
		for half, weight := range [2]int64{c.objective.Le, c.objective.Mo} {
			if weight == 0 {
				continue
			}
			c.g.ask(c.half(a, half))
			if v, ok := c.g.known(c.half(a, half)); ok {
				c.learn(a, half, v)
			} else {
				a.missing[half] = true
				*a.score(half) = int64(1-half) * unit
			}
		}
		a.d = c.change(a)
		list = append(list, a)
	}
	if c.logit || !c.saves(EarlyRejection) {
		if err := c.score(ctx, list); err != nil {
			return nil, err
		}
	}
	for _, all := range []bool{false, true} {
		for {
			top := c.top(list, all)
			if top == nil {
				break
			}
			if top.bad != nil {
				return nil, top.bad
			}
			if !top.missing[0] && !top.missing[1] {
				return top, nil
			}
			if err := c.score(ctx, []*adjacent{top}); err != nil {
				return nil, err
			}
		}
	}
	return nil, nil // not reached: there is a neighbour
}

func (a *adjacent) score(half int) *int64 {
	if half == 0 {
		return &a.le
	}
	return &a.mo
}

// half is the key of a neighbour's LeRF (0) or MoRF (1) state.
func (c *tabuCourse) half(a *adjacent, half int) stateKey {
	if half == 1 {
		return a.key.xor(c.g.whole)
	}
	return a.key
}

func (c *tabuCourse) change(a *adjacent) int64 {
	return c.objective.gain(a.le-c.now.le[a.m], a.mo-c.now.mo[a.m])
}

// learn takes in a score; one that is not a number stays what it is at best.
func (c *tabuCourse) learn(a *adjacent, half int, v Score) {
	fixed, err := fix(v, c.logit, c.p.T)
	if !finite(v) {
		deleted := a.m
		if half == 1 {
			deleted = c.p.T - a.m
		}
		err = &NotFiniteError{Score: v, Deleted: deleted, T: c.p.T}
	}
	a.missing[half] = false
	if err != nil {
		a.bad = err
		*a.score(half) = int64(1-half) * unit
		return
	}
	*a.score(half) = fixed
}

// top is the admissible neighbour that can be the best; nil: none is admissible.
func (c *tabuCourse) top(list []*adjacent, all bool) *adjacent {
	var top *adjacent
	for _, a := range list {
		if a.tabu && !all && c.now.value+a.d <= c.best.value {
			continue
		}
		if top == nil || a.d > top.d {
			top = a
		}
	}
	return top
}

// score asks the net for the unknown states of neighbours.
func (c *tabuCourse) score(ctx context.Context, list []*adjacent) error {
	var keys []stateKey
	var sets []Set
	type place struct {
		a    *adjacent
		half int
	}
	var places []place
	for _, a := range list {
		for half := range 2 {
			if !a.missing[half] {
				continue
			}
			set := prefix(c.now.order, a.m-1)
			set.Add(c.now.order[a.m])
			if half == 1 {
				set = set.Complement(c.p.T)
			}
			keys, sets, places = append(keys, c.half(a, half)), append(sets, set), append(places, place{a, half})
		}
	}
	scored, err := c.g.score(ctx, keys, sets)
	if err != nil {
		return err
	}
	for i, v := range scored {
		c.learn(places[i].a, places[i].half, v)
		places[i].a.d = c.change(places[i].a)
	}
	return nil
}
