package trace

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/assay-xai/assay/internal/usage"
)

// Problem is the deletion game of one image.
type Problem struct {
	// T is the number of features.
	T int
	// ImageID keys the random numbers.
	ImageID string
	Scorer  Scorer
	// Progress, if not nil, is told from time to time what part of the search is
	// done, 0 to 1, as far as can be said beforehand.
	Progress func(part float64)
	// Before is the time that an interrupted search of the same problem has
	// used; it counts towards a budget of time.
	Before time.Duration
}

// Options say how to search.
type Options struct {
	Solver    string // an id of Solvers
	Objective string // an id of Objectives
	ScoreOn   string // "prob" or "logit": what the objective looks at
	Seed      uint64
	// Start is an id of Starts; "" is the solver's own.
	Start string
	// Given is the trajectory that start "map" begins with.
	Given []int
	// Neighbourhood is an id of Neighbourhoods; "" is "complete".
	Neighbourhood string
	// Params are the solver's parameters over its defaults.
	Params map[string]float64
	// Schedule names a preset of parameters of the solver; "" is its first.
	Schedule string
	Budget   Budget
	// Without leaves savings out, for comparisons: the result is the same.
	Without Savings
}

// Budget ends a search: whichever limit is reached first. Zero: no limit of
// that kind; all zero: the schedule's number of iterations. Budgets are looked
// at between iterations. A budget of evaluations alone also ends a search that
// goes round in circles and asks for nothing new; a warning says so.
type Budget struct {
	Iterations int
	// Evaluations is nominal (see Result).
	Evaluations int64
	// Time makes the result depend on the machine.
	Time time.Duration
}

// Result is what a search found.
type Result struct {
	// Trajectory orders the features, least relevant first; nil where Bounds is not.
	Trajectory []int
	// Bounds is nil but for a solver that bounds the objective and finds no
	// trajectory: the most that the LeRF state of m = 0..t deleted features and the
	// MoRF state of t-m can add to it, or more. Value is their sum, Curves
	// those of the sets that were chosen.
	Bounds []float64
	// Value is the objective of Trajectory, to be maximised. Last is the value
	// of the last state of a search that returns its best.
	Value, Last float64
	Curves      Curves
	// Accepted counts accepted proposals, Iterations all of them.
	Accepted, Iterations int
	// Restarts holds the best value of every restart of a search that has them.
	Restarts []float64
	// Relaxed is an estimate, no bound: the sum over sizes of the best set of that
	// size that the search stood on, nested or not. At least Value; NaN where a
	// solver stands on nothing.
	Relaxed float64
	// History has the start, every improvement of the best and every
	// hundredth part of the iterations.
	History []Point
	// Evaluations is nominal: states that the plain loop asks for when it scores
	// only what changed and remembers what it scored. Forwards is states
	// really scored, StartForwards its part before the first iteration.
	Evaluations, Forwards, StartForwards int64
	// Changed counts the states that proposals changed, as often as they did:
	// what a loop without memory would score.
	Changed int64
	// Discarded counts the forwards of speculation that came to nothing: of
	// proposals that an earlier acceptance made pointless.
	Discarded int64
	Warnings  []string
}

// Point is the state of a search after an iteration; iteration 0 is the start.
type Point struct {
	Iteration     int
	Accepted      bool
	Evaluations   int64 // nominal, so far
	Current, Best float64
}

// Parameter describes a parameter of a solver.
type Parameter struct {
	Name             string
	Default          float64
	Minimum, Maximum float64
	Integer          bool
	Summary          string
}

// Solver is one way to search.
type Solver struct {
	ID, Summary string
	Parameters  []Parameter
	// Schedules are named presets: parameter values and a start. The first is
	// the default. Values differ by output where a schedule says so.
	Schedules []Schedule
	// Objectives that it can maximise.
	Objectives []string
	// Neighbourhoods says that it proposes neighbours by Options.Neighbourhood.
	Neighbourhoods bool
	// Start is an id of Starts for a solver that begins somewhere and has no
	// schedule that says where.
	Start string
	// MaxFeatures is the largest t that it takes; 0: any.
	MaxFeatures int
	// Bounds says that it finds no trajectory, only Result.Bounds.
	Bounds bool
	// Version changes when the same options may give another result.
	Version int
	run     func(ctx context.Context, s *search) error
	// states is about how many states a resolved search asks for at most, of
	// which halves (1 or 2) belong to every prefix; nil: not known.
	states func(o Options, t int, halves float64) float64
}

// Schedule is a named preset of a solver.
type Schedule struct {
	ID, Summary string
	Start       string
	Prob, Logit map[string]float64
}

// Solvers returns every solver.
func Solvers() []Solver {
	return []Solver{annealing(), hillClimbing(), tabu(), genetic(), greedy(), greedyLeMo(), beam(), order(), exact(), completeSearch()}
}

// SolverByID returns the solver of that name, or an error of usage.
func SolverByID(id string) (Solver, error) {
	var ids []string
	for _, s := range Solvers() {
		if s.ID == id {
			return s, nil
		}
		ids = append(ids, s.ID)
	}
	return Solver{}, usage.Errorf("trace: solver %q: want one of %v", id, ids)
}

// search is a running search.
type search struct {
	p         Problem
	o         Options
	objective Objective
	logit     bool
	params    map[string]float64
	g         *game
	result    Result
	started   time.Time
	restarts  int // before the present one
	best      *position
	sizes     []int64 // the best gain seen at every size
	asked     int64   // evaluations when something new was asked for last
	idle      int     // iterations since then
	walked    float64 // the part of its iterations that is done
}

// Check says what is wrong with options for t features, as an error of usage.
func (o Options) Check(t int) error {
	_, _, err := o.resolve(t)
	return err
}

// resolve fills in defaults: the solver's parameters, schedule and start.
func (o Options) resolve(t int) (Options, Solver, error) {
	solver, err := SolverByID(o.Solver)
	if err != nil {
		return o, solver, err
	}
	if _, err := ObjectiveByID(o.Objective); err != nil {
		return o, solver, err
	}
	if !slices.Contains(solver.Objectives, o.Objective) {
		return o, solver, usage.Errorf("trace: solver %s cannot maximise %s: want one of %v", solver.ID, o.Objective, solver.Objectives)
	}
	if !slices.Contains(ScoreOns(), o.ScoreOn) {
		return o, solver, usage.Errorf("trace: score-on %q: want prob or logit", o.ScoreOn)
	}
	if t < 2 {
		return o, solver, usage.Errorf("trace: %d features: want at least 2", t)
	}
	if err := solver.CheckFeatures(t); err != nil {
		return o, solver, err
	}
	if o.Budget.Iterations < 0 || o.Budget.Evaluations < 0 || o.Budget.Time < 0 {
		return o, solver, usage.Errorf("trace: budget of %d iterations, %d evaluations, %s: want none below 0", o.Budget.Iterations, o.Budget.Evaluations, o.Budget.Time)
	}
	values := map[string]float64{}
	for _, p := range solver.Parameters {
		values[p.Name] = p.Default
	}
	if len(solver.Schedules) > 0 {
		schedule := solver.Schedules[0]
		if o.Schedule != "" {
			i := slices.IndexFunc(solver.Schedules, func(s Schedule) bool { return s.ID == o.Schedule })
			if i < 0 {
				return o, solver, usage.Errorf("trace: schedule %q: want one of %v", o.Schedule, scheduleIDs(solver))
			}
			schedule = solver.Schedules[i]
		}
		o.Schedule = schedule.ID
		if o.Start == "" {
			o.Start = schedule.Start
		}
		preset := schedule.Prob
		if o.ScoreOn == "logit" {
			preset = schedule.Logit
		}
		for name, v := range preset {
			values[name] = v
		}
	} else if o.Schedule != "" {
		return o, solver, usage.Errorf("trace: solver %s has no schedules", solver.ID)
	}
	for name, v := range o.Params {
		i := slices.IndexFunc(solver.Parameters, func(p Parameter) bool { return p.Name == name })
		if i < 0 {
			return o, solver, usage.Errorf("trace: solver %s has no parameter %q", solver.ID, name)
		}
		p := solver.Parameters[i]
		if !(v >= p.Minimum && v <= p.Maximum) || p.Integer && v != math.Trunc(v) {
			return o, solver, usage.Errorf("trace: %s %v: want a number from %v to %v", name, v, p.Minimum, p.Maximum)
		}
		values[name] = v
	}
	o.Params = values
	if o.Start == "" {
		o.Start = solver.Start
	}
	if _, err := neighbourhoodByID(o.Neighbourhood); err != nil {
		return o, solver, err
	}
	if o.Start != "" {
		if _, err := startByID(o.Start); err != nil {
			return o, solver, err
		}
	}
	if o.Start == "map" {
		if err := CheckTrajectory(o.Given, t); err != nil {
			return o, solver, fmt.Errorf("start map: %w", err)
		}
	}
	return o, solver, nil
}

// CheckFeatures says, as an error of usage, that t features are more than the
// solver takes.
func (s Solver) CheckFeatures(t int) error {
	if s.MaxFeatures == 0 || t <= s.MaxFeatures {
		return nil
	}
	var edges []string
	for _, e := range Edges() {
		if e*e <= s.MaxFeatures {
			edges = append(edges, strconv.Itoa(e))
		}
	}
	return usage.Errorf("trace: solver %s scores all 2^t states, too many for t = %d features: want at most %d (of images: edge %s)",
		s.ID, t, s.MaxFeatures, strings.Join(edges, " or "))
}

func scheduleIDs(s Solver) []string {
	var ids []string
	for _, schedule := range s.Schedules {
		ids = append(ids, schedule.ID)
	}
	return ids
}

// Run searches the order of deleting p's features that maximises the objective.
// The result is a function of the scores, the options and the image id alone,
// unless the budget has a time. A net that returns NaN or infinity ends it with
// a *NotFiniteError.
func Run(ctx context.Context, p Problem, o Options) (Result, error) {
	o, solver, err := o.resolve(p.T)
	if err != nil {
		return Result{}, err
	}
	objective, err := ObjectiveByID(o.Objective)
	if err != nil {
		return Result{}, err
	}
	s := &search{p: p, o: o, objective: objective, logit: o.ScoreOn == "logit", params: o.Params, started: time.Now()}
	s.g = newGame(p, s.logit)
	s.g.forget = !s.saves(Memo)
	if p.Progress != nil {
		if s.g.progress, err = s.progress(); err != nil {
			return Result{}, err
		}
	}
	if o.Budget.Time > 0 {
		s.result.Warnings = append(s.result.Warnings, "a budget of time: another run may find another trajectory")
	}
	if err := solver.run(ctx, s); err != nil {
		var nan *NotFiniteError
		if errors.As(err, &nan) {
			return Result{}, nan
		}
		return Result{}, fmt.Errorf("%s on %s: %w", solver.ID, p.ImageID, err)
	}
	s.result.Evaluations, s.result.Forwards = s.g.evaluations, s.g.forwards
	if s.result.Bounds != nil { // there is no trajectory to score
		s.result.Relaxed = s.relaxed()
		return s.result, nil
	}
	// The curves of the answer on both outputs; its states are all known but for
	// those of the objective's other half.
	s.result.Curves, err = s.g.curves(ctx, s.result.Trajectory)
	if err != nil {
		return Result{}, fmt.Errorf("scoring the trajectory of %s: %w", p.ImageID, err)
	}
	s.result.Forwards, s.result.Relaxed = s.g.forwards, s.relaxed()
	return s.result, nil
}
