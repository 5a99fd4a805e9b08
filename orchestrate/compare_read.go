package orchestrate

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/assay-xai/assay/internal/record"
	"github.com/assay-xai/assay/internal/usage"
	"github.com/assay-xai/assay/trace"
)

// comparedRun is what a comparison keeps of a run.
type comparedRun struct {
	path   string
	study  string
	plan   *Plan // nil where it cannot be read
	units  []*comparedUnit
	failed int
}

// comparedUnit is a record without what comparisons do not need.
type comparedUnit struct {
	id, image  string
	target     int
	facts      map[string]string
	metrics    map[string]float64
	features   int
	edge       int
	trajectory []int32 // nil where the study has none
	failed     bool
	matched    bool
}

// readRun reads the records of a folder that the filters leave. The last record
// of a unit counts.
func readRun(ctx context.Context, name, path string, filters []where) (*comparedRun, error) {
	info, err := os.Stat(path)
	if err != nil || !info.IsDir() {
		return nil, usage.Errorf("compare: %s: want the folder of a run, there is no such folder", path)
	}
	r := &comparedRun{path: path}
	if p, err := readPrior(path); err == nil {
		r.plan = p // a comparison is of records; the plan only tells more
	}
	byID := map[string]*comparedUnit{}
	var order []string
	var study Study
	err = record.Scan(filepath.Join(path, record.FileName), func(rec record.Record) error {
		if r.study == "" {
			r.study = rec.Study
			var err error
			if study, err = FindStudy(rec.Study); err != nil {
				return usage.Errorf("compare: %s: %w", path, err)
			}
		}
		if rec.Study != r.study {
			return usage.Errorf("compare: %s holds records of %s and %s: want a run of one study", path, r.study, rec.Study)
		}
		if byID[rec.ID] == nil {
			order = append(order, rec.ID)
		}
		u, err := newComparedUnit(study, rec)
		if err != nil {
			return usage.Errorf("compare: %s: unit %s: %w", path, rec.ID, err)
		}
		byID[rec.ID] = u
		return ctx.Err()
	})
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, usage.Errorf("compare: %s: want the folder of a run, it has no %s", path, record.FileName)
	case err != nil:
		return nil, err
	case len(order) == 0:
		return nil, usage.Errorf("compare: %s: the run has no results yet", path)
	}
	for _, id := range order {
		r.units = append(r.units, byID[id])
	}
	if err := r.filter(name, filters); err != nil {
		return nil, err
	}
	all := len(r.units)
	r.units = slices.DeleteFunc(r.units, func(u *comparedUnit) bool { return u.failed })
	if r.failed = all - len(r.units); len(r.units) == 0 {
		return nil, usage.Errorf("compare: %s: all %d units failed, there is nothing to compare", path, all)
	}
	return r, nil
}

func newComparedUnit(study Study, rec record.Record) (*comparedUnit, error) {
	u := &comparedUnit{id: rec.ID, image: rec.Image, target: rec.Target, failed: rec.Error != "", facts: map[string]string{"net": rec.Net}}
	for k, v := range rec.Params {
		u.facts[k] = plain(v)
	}
	if rec.Method != "" {
		u.facts["method"] = rec.Method
	}
	if study.Seeded {
		u.facts["seed"] = strconv.FormatUint(rec.Seed, 10)
	}
	if u.failed {
		return u, nil
	}
	u.metrics = map[string]float64{}
	for _, m := range study.Metrics {
		if m.Value == nil || m.Cost {
			continue // it wants the data too, which a folder of records has not, or is of the machine
		}
		if v, ok := m.Value(rec); ok {
			u.metrics[m.ID] = v
		}
	}
	if t := rec.Trace; t != nil {
		u.features, u.edge = t.Features, t.EdgePatches
		if t.Bound { // of sets, not of an order
			return u, nil
		}
		if err := trace.CheckTrajectory(t.Trajectory, t.Features); err != nil {
			return nil, err
		}
		u.trajectory = make([]int32, len(t.Trajectory))
		for i, f := range t.Trajectory {
			u.trajectory[i] = int32(f)
		}
	}
	return u, nil
}

func (r *comparedRun) filter(name string, filters []where) error {
	for _, w := range filters {
		if w.run != "" && w.run != name {
			continue
		}
		there := r.values(w.key)
		kept := slices.DeleteFunc(slices.Clone(r.units), func(u *comparedUnit) bool { return u.facts[w.key] != w.value })
		if len(kept) == 0 && len(there) == 1 && there[0] == "" {
			known := map[string]bool{}
			for _, u := range r.units {
				for k := range u.facts {
					known[k] = true
				}
			}
			return usage.Errorf("compare: where %s=%s: %s has no %q: %s", w.key, w.value, r.path, w.key, DidYouMean(w.key, sortedKeys(known)))
		}
		if len(kept) == 0 {
			return usage.Errorf("compare: where %s=%s leaves nothing of %s: its %s is %s", w.key, w.value, r.path, w.key, listed(there))
		}
		r.units = kept
	}
	return nil
}

// values lists the values of a fact, "" for units that have none.
func (r *comparedRun) values(name string) []string {
	seen := map[string]bool{}
	var out []string
	for _, u := range r.units {
		if v := u.facts[name]; !seen[v] {
			seen[v] = true
			out = append(out, v)
		}
	}
	slices.SortFunc(out, compareNatural)
	return out
}

func (r *comparedRun) images() int {
	seen := map[string]bool{}
	for _, u := range r.units {
		seen[u.image] = true
	}
	return len(seen)
}

func (r *comparedRun) unmatched() int {
	n := 0
	for _, u := range r.units {
		if !u.matched {
			n++
		}
	}
	return n
}

func (r *comparedRun) info() ComparedRun {
	return ComparedRun{Path: r.path, Title: runTitle(r.path, r.plan), Units: len(r.units) + r.failed, Failed: r.failed, Images: r.images()}
}
