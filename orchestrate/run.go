package orchestrate

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/assay-xai/assay/internal/record"
	"github.com/assay-xai/assay/internal/usage"
)

// Opener opens a device: "cpu", "cuda:N", or "" for the first GPU if there is
// one, else the CPU.
type Opener func(device string, threads int) (Backend, error)

// Job is a plan to be run.
type Job struct {
	Plan *Plan
	// Out is the folder of the run; "" keeps nothing.
	Out string
	// MustExist demands that Out holds a run (--resume).
	MustExist bool
	// ResolveOnly writes the resolved plan to Out, trains what it trains, and runs no
	// unit: shards on several machines start from one plan then.
	ResolveOnly bool
	Open        Opener
	// Progress gets events, one at a time; nil: nobody does.
	Progress func(Event)
	Tuning   Tuning
	// JournalEvery is how often scores of long searches are synced; 0: every
	// three seconds.
	JournalEvery time.Duration
	// Env is written to OUT/env.json beside what the backend says.
	Env map[string]any
	// Inspect sees OUT once the summary stands, before a folder that is not
	// kept goes; it may be nil.
	Inspect func(ctx context.Context, out string, r *Resolved, outcome Outcome) error
}

// Outcome is what a run came to.
type Outcome struct {
	// Units counts all units of the plan, or of its shard; Before those that an earlier run had
	// done; Failed those whose record is an error, earlier ones included.
	Units, Before, Failed int
	// PlanUnits counts the units of the plan where the run is a shard of them.
	PlanUnits int
	Summary   []SummaryRow
	Claims    []ClaimRow
	// Contests are those of studies of scores.
	Contests []Contest
	// Consistency is that of study road: how alike its settings rank methods.
	Consistency *Consistency
}

// Incomplete is the error of a run whose work is done except for units that
// failed by themselves.
type Incomplete struct {
	Failed, Units int
	// First says why the first of them failed.
	First string
}

func (e *Incomplete) Error() string {
	return fmt.Sprintf("%d of %d units failed; the first: %s", e.Failed, e.Units, e.First)
}

// Run runs a job: it goes on where an earlier run of the same plan in the same
// folder stopped. The error is an *Incomplete where units failed by themselves;
// then the outcome stands too.
func Run(ctx context.Context, job Job) (Outcome, error) {
	if job.Progress == nil {
		job.Progress = func(Event) {}
	}
	var once sync.Mutex
	progress := job.Progress
	job.Progress = func(e Event) { once.Lock(); defer once.Unlock(); progress(e) }

	study, err := checkStatic(job.Plan)
	if err != nil {
		return Outcome{}, err
	}
	shard := job.Plan.Shard
	switch {
	case job.Out == "" && (!shard.IsZero() || job.ResolveOnly):
		return Outcome{}, usage.Errorf("no folder: a shard, and a plan that is only resolved, are nothing without one (--out FOLDER)")
	case !shard.IsZero() && job.ResolveOnly:
		return Outcome{}, usage.Errorf("resolving only: want the whole plan, not %s of it", shard.Words())
	}
	temporary := job.Out == ""
	if temporary {
		if job.Out, err = os.MkdirTemp("", "assay-"); err != nil {
			return Outcome{}, fmt.Errorf("making a temporary folder: %w", err)
		}
		defer os.RemoveAll(job.Out)
	}
	prior, err := readPrior(job.Out)
	if err != nil {
		return Outcome{}, err
	}
	if err := checkShard(job.Out, prior, job.Plan); err != nil {
		return Outcome{}, err
	}
	if prior == nil {
		if err := checkOutside(job.Out, job.Plan.Data); err != nil {
			return Outcome{}, err
		}
	}
	if prior == nil && job.MustExist {
		return Outcome{}, usage.Errorf("resume: %s holds no run: leave --resume out to begin one", job.Out)
	}
	plan := applyPrior(job.Plan, prior)
	if len(plan.Train) > 0 {
		var warnings []string
		if plan, warnings, err = checkBeforeTraining(ctx, plan, study, job.Open); err != nil {
			return Outcome{}, err
		}
		for _, w := range warnings {
			job.Progress(Event{Kind: Warning, Message: w})
		}
		if plan, err = trainFirst(ctx, plan, job, !temporary); err != nil {
			return Outcome{}, err
		}
	}
	backends, err := openDevices(job.Open, plan.Device, plan.Threads)
	if errors.Is(err, usage.Err) {
		return Outcome{}, plan.errorf("$.device", "%w", err)
	}
	if err != nil {
		return Outcome{}, err
	}
	defer closeDevices(backends)
	resolved, err := resolve(ctx, plan, study, backends[0], job.Tuning, job.Progress)
	if err != nil {
		return Outcome{}, err
	}
	defer resolved.Close()
	resolved.Plan.Device = deviceNames(backends)
	if plan.Batch == 0 && !shard.IsZero() {
		resolved.Warnings = append(resolved.Warnings, fmt.Sprintf("batch auto was measured for this shard alone: %d. Shards of other batches cannot be merged; "+
			"give all --batch %[1]d, or resolve the plan once (--resolve-only)", int(resolved.Plan.Batch)))
	}
	for _, w := range resolved.Warnings {
		job.Progress(Event{Kind: Warning, Message: w})
	}
	r := &run{job: job, Resolved: resolved, backends: backends}
	return r.all(ctx)
}

// run is a job under way.
type run struct {
	*Resolved
	job Job
	// backends share the units; the first is Resolved's.
	backends []Backend
	units    []Unit
	writer   *record.Writer
	mu       sync.Mutex
	known    map[string]bool // ids of the plan, true once recorded
	event    Event
	parts    map[string]float64 // of units under way, by id
	told     time.Time          // when progress within units was told last
	failure  error              // of the writer
	stop     context.CancelFunc
	// kept is what the study keeps beside records; nil: nothing.
	kept RunFiles
	// warning is what every record from now on says, "" for nothing.
	warning string
}

func (r *run) all(ctx context.Context) (outcome Outcome, err error) {
	if r.units, err = r.Resolved.units(ctx); err != nil {
		return outcome, err
	}
	if len(r.units) == 0 {
		return outcome, usage.Errorf("the plan has no units: its data is empty")
	}
	if shard := r.Plan.Shard; !shard.IsZero() {
		outcome.PlanUnits = len(r.units)
		if r.units, err = shard.choose(r.units); err != nil {
			return outcome, err
		}
		r.job.Progress(Event{Kind: Note, Message: fmt.Sprintf("%s: %d of the plan's %d units", shard.Words(), len(r.units), outcome.PlanUnits)})
	}
	if err := r.open(ctx); err != nil {
		return outcome, err
	}
	defer func() {
		if e := r.writer.Close(); err == nil && e != nil {
			err = fmt.Errorf("closing records: %w", e)
		}
	}()
	outcome.Units, outcome.Before = len(r.units), r.event.Before
	if r.job.ResolveOnly {
		return outcome, nil
	}
	if err := r.work(ctx); err != nil {
		return outcome, err
	}
	s, err := summarise(filepath.Join(r.job.Out, record.FileName), r.Resolved, r.units)
	if err != nil {
		return outcome, err
	}
	s.into(&outcome)
	if err := s.write(r.job.Out); err != nil {
		return outcome, err
	}
	if r.job.Inspect != nil {
		if err := r.job.Inspect(ctx, r.job.Out, r.Resolved, outcome); err != nil {
			return outcome, err
		}
	}
	if s.failed > 0 {
		return outcome, &Incomplete{Failed: s.failed, Units: len(r.units), First: s.firstFailure}
	}
	return outcome, nil
}

// open makes OUT, takes its lock, and only then compares and writes the plan.
func (r *run) open(ctx context.Context) error {
	out := r.job.Out
	if err := os.MkdirAll(out, 0o777); err != nil {
		if errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrExist) {
			return usage.Errorf("out: %w", err)
		}
		return fmt.Errorf("out: %w", err)
	}
	r.known = make(map[string]bool, len(r.units))
	for _, u := range r.units {
		r.known[u.ID] = false
	}
	var err error
	r.writer, err = record.Open(filepath.Join(out, record.FileName), r.remember)
	if err != nil {
		return err
	}
	if err := r.settle(ctx); err != nil {
		r.writer.Close()
		return err
	}
	return nil
}

// remember counts a record that an earlier run has written.
func (r *run) remember(rec record.Record) error {
	if done, ours := r.known[rec.ID]; ours && !done {
		r.known[rec.ID] = true
		r.event.Before++
		if rec.Error != "" {
			r.event.Failed++
		}
	}
	return nil
}

// settle writes plan, environment and class names, with the lock held.
func (r *run) settle(ctx context.Context) error {
	out := r.job.Out
	sweep(out)
	prior, err := readPrior(out) // another process may have written it meanwhile
	if err != nil {
		return err
	}
	if prior != nil {
		if err := checkShard(out, prior, r.Plan); err != nil {
			return err
		}
		if d := sameRun(prior, r.Plan); d != "" {
			return usage.Errorf("out: %s holds another run: %s; choose another folder, or give the plan that is there", out, d)
		}
	}
	text, err := r.Plan.Marshal()
	if err != nil {
		return err
	}
	return writeOrigin(ctx, r.Backend, filepath.Join(out, PlanFile), text, r.job.Env, r.ClassNames())
}

// work runs the units that have no record yet.
func (r *run) work(ctx context.Context) error {
	r.event.Kind, r.event.Stage = Step, StageRun
	r.event.Done, r.event.Total = r.event.Before, len(r.known)
	r.job.Progress(r.event)
	if r.Study.Files != nil {
		var err error
		if r.kept, err = r.Study.Files(ctx, r.Resolved, r.job.Out, r.units); err != nil {
			return err
		}
	}
	if r.event.Done == r.event.Total {
		return r.end(ctx) // a kill may have come just before
	}
	v, err := newViews(r.job.Out, r.Plan.Report.images(), r.Data[0].Index)
	if err != nil {
		return err
	}
	parent := ctx
	ctx, r.stop = context.WithCancel(parent)
	defer r.stop()
	// Units that read the records of others wait for all of them.
	for stage := 0; err == nil && stage <= r.lastStage(); stage++ {
		err = r.spread(ctx, v, stage)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failure != nil {
		return r.failure
	}
	if parent.Err() != nil {
		return fmt.Errorf("stopped with %d of %d units done: %w", r.event.Done, r.event.Total, parent.Err())
	}
	if err != nil {
		return err
	}
	if r.event.Done != r.event.Total {
		return fmt.Errorf("study %s ended with %d of %d units done", r.Study.ID, r.event.Done, r.event.Total)
	}
	return r.end(parent)
}

// end completes what is kept beside records, and removes what was kept for a kill.
func (r *run) end(ctx context.Context) error {
	if r.kept != nil {
		if err := r.kept.Finish(ctx); err != nil {
			return err
		}
	}
	return r.forgetSearches()
}

// forgetSearches removes the journals of searches, which have all been recorded.
func (r *run) forgetSearches() error {
	if err := os.RemoveAll(filepath.Join(r.job.Out, SearchesFolder)); err != nil {
		return fmt.Errorf("removing what searches have scored: %w", err)
	}
	return nil
}

// lastStage is the last of the stages in which units run.
func (r *run) lastStage() int {
	last := 0
	for i := range r.units {
		last = max(last, r.units[i].stage())
	}
	return last
}

// todo returns the units of a stage and a device that have no record yet.
func (r *run) todo(stage, device int) []Unit {
	r.mu.Lock()
	defer r.mu.Unlock()
	var todo []Unit
	for _, u := range r.units {
		if !r.known[u.ID] && u.stage() == stage && (u.Net.Index+u.Item+1)%len(r.backends) == device {
			todo = append(todo, u)
		}
	}
	return todo
}

// warn tells the user, and every record from now on.
func (r *run) warn(message string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.warning = message
	r.job.Progress(Event{Kind: Warning, Message: message})
}

// tellEvery is how often progress within units is told.
const tellEvery = time.Second / 4

// partly tells of progress within a unit.
func (r *run) partly(u Unit, part float64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.known[u.ID] {
		return
	}
	if r.parts == nil {
		r.parts = map[string]float64{}
	}
	if r.parts[u.ID] = part; time.Since(r.told) < tellEvery {
		return
	}
	r.told = time.Now()
	r.sumParts()
	r.job.Progress(r.event)
}

func (r *run) sumParts() {
	r.event.Part = 0
	for _, id := range sortedKeys(r.parts) {
		r.event.Part += r.parts[id]
	}
}

// emit keeps records. What cannot be kept ends the run.
func (r *run) emit(records ...record.Record) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failure != nil {
		return r.failure
	}
	for i, rec := range records {
		if done, ours := r.known[rec.ID]; !ours || done {
			r.failure = fmt.Errorf("study %s: a record %q that the plan does not ask for", r.Study.ID, rec.ID)
			r.stop()
			return r.failure
		}
		if rec.Error == "" && !rec.Finite() {
			records[i] = record.Failure(rec, notFinite)
		}
		if r.warning != "" {
			records[i].Warnings = append(records[i].Warnings, r.warning)
		}
	}
	if err := r.writer.Append(records...); err != nil {
		r.failure = err
		r.stop()
		return err
	}
	for _, rec := range records {
		r.known[rec.ID] = true
		delete(r.parts, rec.ID)
		r.event.Done++
		if rec.Error != "" {
			r.event.Failed++
		}
	}
	r.sumParts()
	r.job.Progress(r.event)
	return nil
}

const notFinite = "the net's output is not a finite number (NaN or infinity)"
