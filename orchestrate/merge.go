package orchestrate

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/assay-xai/assay/internal/record"
	"github.com/assay-xai/assay/internal/usage"
)

// MergeJob is shards to be made one run of.
type MergeJob struct {
	// Out is the folder of the whole run. It comes to be when all of it is there.
	Out string
	// Shards are the folders of all shards, in any order.
	Shards []string
	// Open opens the CPU, which is asked what nets are and computes nothing.
	Open     Opener
	Progress func(Event)
	// Inspect sees the whole run before it is put in place, in the folder where it is
	// made; it may write to it, and may be nil.
	Inspect func(ctx context.Context, folder string, r *Resolved, outcome Outcome) error
}

// MergePart is a shard that is merged.
type MergePart struct {
	// Out is its folder, Units its units in plan order.
	Out   string
	Units []Unit
}

// StageMerge is the stage in which records are merged.
const StageMerge = "merging"

// merge is a job under way.
type merge struct {
	*Resolved
	job    MergeJob
	shards []*shardFolder // by index
	units  []Unit
	share  []int // of units
	// where finds a unit's record.
	where map[string]recordPlace
}

// shardFolder is a shard and its folder.
type shardFolder struct {
	out  string
	plan *Plan
	hold func() error // lets go of the records
}

// recordPlace is where a record stands in a shard's file.
type recordPlace struct {
	shard    int // its place in merge.shards
	from, to int64
}

// Merge makes one run of the shards of a plan, with the files of a run that was never
// divided: records in plan order, summary, views, and what the study keeps beside
// records. The shards stay as they are. What is wrong with them is a usage error that
// names it: folders of several plans, a shard twice, one that is not there or not
// finished. The error is an *Incomplete where units failed by themselves; then the
// outcome stands too. A merge that was killed has left no run, and a hidden folder
// beside Out that the next one clears away. Where Out holds this very merge already, its
// summary is written again.
func Merge(ctx context.Context, job MergeJob) (outcome Outcome, err error) {
	if job.Progress == nil {
		job.Progress = func(Event) {}
	}
	if job.Out == "" {
		return outcome, usage.Errorf("merge: no folder for the whole run: give one with --out FOLDER")
	}
	m := &merge{job: job}
	defer func() {
		for _, s := range m.shards {
			s.hold()
		}
	}()
	if err := m.readShards(); err != nil {
		return outcome, err
	}
	if err := m.checkShards(); err != nil {
		return outcome, err
	}
	if err := m.resolve(ctx); err != nil {
		return outcome, err
	}
	defer m.Resolved.Backend.Close()
	defer m.Resolved.Close()
	if err := m.find(ctx); err != nil {
		return outcome, err
	}
	return m.place(ctx)
}

// readShards reads the plans of all folders and keeps writers away from them.
func (m *merge) readShards() error {
	if len(m.job.Shards) == 0 {
		return usage.Errorf("merge: no shards: want the folders of all shards of a run")
	}
	var infos []os.FileInfo
	for _, out := range m.job.Shards {
		info, err := os.Stat(out)
		if err != nil {
			return usage.Errorf("merge: %w", err)
		}
		for i, other := range infos {
			if os.SameFile(info, other) {
				return usage.Errorf("merge: %s and %s are one folder: want every shard once", m.job.Shards[i], out)
			}
		}
		infos = append(infos, info)
		plan, err := readPrior(out)
		switch {
		case err != nil:
			return err
		case plan == nil:
			return usage.Errorf("merge: %s holds no run", out)
		case plan.Shard.IsZero():
			return usage.Errorf("merge: %s holds a whole run, not a shard of one", out)
		}
		hold, err := record.Hold(filepath.Join(out, record.FileName))
		if errors.Is(err, os.ErrNotExist) {
			return usage.Errorf("merge: %s has no %s: %s has not begun", out, record.FileName, plan.Shard.Words())
		}
		if err != nil {
			return err
		}
		m.shards = append(m.shards, &shardFolder{out, plan, hold.Close})
	}
	return nil
}

// checkShards finds out whether the folders are all shards of one plan, and puts them
// in order.
func (m *merge) checkShards() error {
	first := m.shards[0]
	ordered := make([]*shardFolder, first.plan.Shard.Of)
	for _, s := range m.shards {
		if s.plan.Shard.Of != first.plan.Shard.Of {
			return usage.Errorf("merge: %s is %s, %s is %s: want the shards of one run", first.out, first.plan.Shard.Words(), s.out, s.plan.Shard.Words())
		}
		at := &ordered[s.plan.Shard.Index-1]
		if *at != nil {
			return usage.Errorf("merge: %s and %s are both %s: want every shard once", (*at).out, s.out, s.plan.Shard.Words())
		}
		*at = s
		if d := differenceBetween(first.plan, s.plan, "in "+first.out, "in "+s.out); d != "" {
			hint := ""
			if strings.HasPrefix(d, "batch ") || strings.HasPrefix(d, "threads ") {
				hint = "; what a machine decides is decided once where the plan is resolved (assay run PLAN --resolve-only --out FOLDER) and shards are of FOLDER/" + PlanFile
			}
			return usage.Errorf("merge: shards of different plans: %s%s", d, hint)
		}
	}
	var missing []string
	for i, s := range ordered {
		if s == nil {
			missing = append(missing, Shard{i + 1, len(ordered)}.String())
		}
	}
	if len(missing) > 0 {
		const few = 12
		more := ""
		if n := len(missing); n > few {
			missing, more = missing[:few], fmt.Sprintf(" and %d more", n-few)
		}
		return usage.Errorf("merge: of the %d shards are missing: %s%s; run them, and give all folders", len(ordered), strings.Join(missing, ", "), more)
	}
	m.shards = ordered
	return nil
}

// ofDevice is a backend that answers for a device which other machines have.
type ofDevice struct {
	Backend
	device string
}

// Device is the name of the first of the devices.
func (b ofDevice) Device() string { name, _, _ := strings.Cut(b.device, ","); return name }

// Kind is its kind.
func (b ofDevice) Kind() string { kind, _, _ := strings.Cut(b.device, ":"); return kind }

// resolve finds what the plan names, and checks that it is what the shards found.
func (m *merge) resolve(ctx context.Context) error {
	first := m.shards[0].plan
	plan := *first
	plan.Shard = Shard{}
	study, err := checkStatic(&plan)
	if err != nil {
		return err
	}
	backend, err := m.job.Open("cpu", 1)
	if err != nil {
		return err
	}
	m.Resolved, err = resolve(ctx, &plan, study, ofDevice{backend, first.Device}, nil, m.job.Progress)
	if err != nil {
		backend.Close()
		return err
	}
	if d := differenceBetween(first, m.Plan, "in "+m.shards[0].out, "now"); d != "" {
		m.Resolved.Close()
		backend.Close()
		return usage.Errorf("merge: the plan is not what it was for the shards: %s", d)
	}
	m.Plan.Device = first.Device
	return nil
}

// find looks for the records of all units.
func (m *merge) find(ctx context.Context) error {
	var err error
	if m.units, err = m.Resolved.units(ctx); err != nil {
		return err
	}
	if m.share, err = shares(m.units, len(m.shards)); err != nil {
		return err
	}
	owner := make(map[string]int, len(m.units))
	wanted := make([]int, len(m.shards))
	for i, u := range m.units {
		owner[u.ID] = m.share[i] - 1
		wanted[m.share[i]-1]++
	}
	m.where = make(map[string]recordPlace, len(m.units))
	var unfinished []string
	for i, s := range m.shards {
		found := 0
		path := filepath.Join(s.out, record.FileName)
		err := record.ScanLines(path, func(rec record.Record, from, to int64) error {
			switch shard, ours := owner[rec.ID]; {
			case !ours:
				return usage.Errorf("merge: %s: record %s of image %s is of no unit of the plan: the file is not the run's", path, rec.ID, rec.Image)
			case shard != i:
				return usage.Errorf("merge: %s: record %s of image %s is of shard %d, not %d: the file is not the run's", path, rec.ID, rec.Image, shard+1, i+1)
			}
			if _, again := m.where[rec.ID]; !again {
				m.where[rec.ID] = recordPlace{i, from, to}
				found++
			}
			return ctx.Err()
		})
		if err != nil {
			return err
		}
		_, ended := os.Stat(filepath.Join(s.out, SummaryJSONFile))
		if found < wanted[i] || ended != nil {
			unfinished = append(unfinished, fmt.Sprintf("%s (%s): %d of %d units have no record", s.plan.Shard.Words(), s.out, wanted[i]-found, wanted[i]))
		}
	}
	if len(unfinished) > 0 {
		return usage.Errorf("merge: not finished: %s; the command that began a shard goes on with it, and so does assay run FOLDER/%s --out FOLDER", strings.Join(unfinished, "; "), PlanFile)
	}
	return nil
}

// place makes the run in a folder beside OUT and then calls it OUT, so that OUT is
// whole or not there. An OUT that has the same records already only gets its summary
// anew.
func (m *merge) place(ctx context.Context) (outcome Outcome, err error) {
	out := filepath.Clean(m.job.Out)
	if link, err := filepath.EvalSymlinks(out); err == nil {
		out = link
	}
	if err := checkOutside(out, m.Plan.Data); err != nil {
		return outcome, err
	}
	if err := os.MkdirAll(filepath.Dir(out), 0o777); err != nil {
		return outcome, usage.Errorf("out: %w", err)
	}
	making := filepath.Join(filepath.Dir(out), "."+filepath.Base(out)+".merging")
	if err := os.Mkdir(making, 0o777); err != nil && !errors.Is(err, os.ErrExist) {
		return outcome, usage.Errorf("out: %w", err)
	}
	lock, err := record.Lock(filepath.Join(making, lockFile))
	if err != nil {
		return outcome, err
	}
	defer lock.Close()
	defer os.RemoveAll(making) // with the lock held; nothing where it is OUT now
	there, err := m.already(out)
	if err != nil {
		return outcome, err
	}
	if there {
		m.job.Progress(Event{Kind: Note, Message: out + " holds this merge already"})
		return m.finish(ctx, out)
	}
	if err := clearFolder(making); err != nil {
		return outcome, err
	}
	if err := m.build(ctx, making); err != nil {
		return outcome, err
	}
	outcome, err = m.finish(ctx, making)
	var incomplete *Incomplete
	if err != nil && !errors.As(err, &incomplete) {
		return outcome, err
	}
	if e := putInPlace(making, out); e != nil {
		return outcome, e
	}
	return outcome, err // that of units which failed
}

// already says whether OUT holds this merge; where it holds anything else that is an
// error.
func (m *merge) already(out string) (bool, error) {
	entries, err := os.ReadDir(out)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return false, nil
	case err != nil:
		return false, usage.Errorf("out: %w", err)
	case len(entries) == 0:
		return false, nil
	}
	prior, err := readPrior(out)
	if err != nil {
		return false, err
	}
	if prior != nil && prior.Shard.IsZero() && difference(prior, m.Plan) == "" {
		same, err := m.sameRecords(filepath.Join(out, record.FileName))
		if err == nil && same {
			err = unlock(out)
		}
		if err != nil || same {
			return same, err
		}
	}
	return false, usage.Errorf("out: %s has files, and they are not this merge: choose a folder that is not there, or remove it", out)
}

// finish writes the summary of the whole run.
func (m *merge) finish(ctx context.Context, folder string) (outcome Outcome, err error) {
	outcome.Units, outcome.Before = len(m.units), len(m.units)
	s, err := summarise(filepath.Join(folder, record.FileName), m.Resolved, m.units)
	if err != nil {
		return outcome, err
	}
	s.into(&outcome)
	if err := s.write(folder); err != nil {
		return outcome, err
	}
	if m.job.Inspect != nil {
		if err := m.job.Inspect(ctx, folder, m.Resolved, outcome); err != nil {
			return outcome, err
		}
	}
	if s.failed > 0 {
		return outcome, &Incomplete{Failed: s.failed, Units: len(m.units), First: s.firstFailure}
	}
	return outcome, nil
}
