package trace

import (
	"context"
	"fmt"
	"math"
	"math/bits"

	"github.com/assay-xai/assay/internal/rng"
)

// course is a search from one start.
type course interface {
	// run goes on until it has done so many iterations (0: any number) or the
	// budget ends, and returns how many there were. The first is number
	// offset + 1, which addresses its random numbers.
	run(ctx context.Context, offset, iterations int) (int, error)
}

// told is called after every iteration: whether it changed the course's
// position, and if so in which prefix lengths lo..hi.
type told func(iteration int, accepted bool, lo, hi int)

// beginner begins a course at a position, which the course keeps up to date.
type beginner func(ctx context.Context, now *position, after told) (course, error)

// fromStarts runs a course from as many starts as the parameters ask for, and
// keeps the best trajectory of all.
func (s *search) fromStarts(ctx context.Context, begin beginner) error {
	start, err := startByID(s.o.Start)
	if err != nil {
		return err
	}
	offset, iterations := 0, s.iterations()
	for r := range int(max(1, s.params["restarts"])) {
		if s.idle = 0; r > 0 && s.exhausted() {
			break
		}
		s.restarts = r
		order, err := start.order(ctx, s)
		if err != nil {
			return err
		}
		now, err := s.play(ctx, order)
		if err != nil {
			return err
		}
		own := now.value
		s.offer(now, 0, s.p.T)
		if r == 0 {
			s.result.StartForwards = s.g.forwards
			s.mark(0, false, now.value)
		}
		c, err := begin(ctx, now, func(iteration int, accepted bool, lo, hi int) {
			s.walked = float64(iteration) / (float64(iterations) * max(1, s.params["restarts"])) // Inf: not known
			if s.g.progress != nil && iteration%64 == 0 {
				s.g.progress() // iterations that score nothing new are progress, too
			}
			if s.idle++; s.g.evaluations > s.asked {
				s.idle, s.asked = 0, s.g.evaluations
			}
			improved := false
			if accepted {
				s.result.Accepted++
				improved = s.offer(now, lo, hi)
				own = max(own, now.value)
			}
			if improved || sparse(iteration-offset, iterations) {
				s.mark(iteration, accepted, now.value)
			}
		})
		if err != nil {
			return err
		}
		done, err := c.run(ctx, offset, iterations)
		if err != nil {
			return err
		}
		offset += done
		s.result.Iterations = offset
		if s.stalled() {
			s.result.Warnings = append(s.result.Warnings, fmt.Sprintf("ended before its budget of evaluations: the last %d iterations asked for no new state", s.idle))
		}
		s.result.Restarts = append(s.result.Restarts, toFloat(own))
		s.result.Last = toFloat(now.value)
	}
	s.result.Trajectory, s.result.Value = s.best.order, toFloat(s.best.value)
	return nil
}

// stalled says whether a search that only a budget of evaluations ends goes round
// in circles: it has proposed every swap some twenty times and asked for nothing new.
func (s *search) stalled() bool {
	return s.o.Budget.Evaluations > 0 && s.o.Budget.Iterations == 0 && s.o.Budget.Time == 0 && s.idle >= max(1000, 10*s.p.T*(s.p.T-1))
}

// iterations of one course; 0 where budgets of another kind end it.
func (s *search) iterations() int {
	if n := s.o.Budget.Iterations; n > 0 {
		return n
	}
	if s.o.Budget.Evaluations > 0 || s.o.Budget.Time > 0 {
		return 0
	}
	return int(s.params["iterations"])
}

// stream returns the random numbers of a purpose, the search's own.
func (s *search) stream(purpose string) rng.Stream {
	return rng.New(s.o.Seed, purpose, s.p.ImageID)
}

// sparse says whether iteration i of n is in the history whatever happens: every
// hundredth part, or, where a budget of another kind ends the search, some 64
// for every doubling.
func sparse(i, n int) bool {
	if n <= 0 {
		return i%max(1, 1<<bits.Len(uint(i))>>7) == 0
	}
	return i == n || i%max(1, n/100) == 0
}

// mark adds a point to the history.
func (s *search) mark(iteration int, accepted bool, current int64) {
	s.result.History = append(s.result.History, Point{iteration, accepted, s.g.evaluations, toFloat(current), toFloat(s.best.value)})
}

// offer tells of a position that the search stands on, new in prefix lengths
// lo..hi, and says whether it is the best so far.
func (s *search) offer(p *position, lo, hi int) bool {
	if s.sizes == nil {
		s.sizes = make([]int64, s.p.T+1)
		for m := range s.sizes {
			s.sizes[m] = math.MinInt64
		}
	}
	for m := lo; m <= hi; m++ {
		s.sizes[m] = max(s.sizes[m], s.objective.gain(p.le[m], p.mo[m]))
	}
	if s.best != nil && p.value <= s.best.value {
		return false
	}
	if s.best == nil {
		s.best = newPosition(s.p.T)
	}
	s.best.copyFrom(p)
	return true
}

// relaxed is the sum of the best gains of all sizes.
func (s *search) relaxed() float64 {
	if s.sizes == nil {
		return math.NaN()
	}
	sum := int64(0)
	for _, v := range s.sizes {
		sum += v
	}
	return toFloat(sum)
}
