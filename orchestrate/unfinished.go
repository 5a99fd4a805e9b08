package orchestrate

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/assay-xai/assay/internal/record"
	"github.com/assay-xai/assay/internal/usage"
)

// MayBeUnfinished says that a run in the folder out was begun and has no summary, or has
// one that is older than its records.
func MayBeUnfinished(out string) bool {
	if _, err := os.Stat(filepath.Join(out, PlanFile)); err != nil {
		return false
	}
	summary, err := os.Stat(filepath.Join(out, SummaryJSONFile))
	if err != nil {
		return true
	}
	records, err := os.Stat(filepath.Join(out, record.FileName))
	return err != nil || records.ModTime().After(summary.ModTime())
}

// RunState is how far a run has come.
type RunState struct {
	// Done of the Units have a record.
	Done, Units int
	// Ended says that the run has its summary.
	Ended bool
}

// Unfinished says that there is more to come.
func (s RunState) Unfinished() bool { return s.Done < s.Units || !s.Ended }

// String says how far the run is: "unfinished: 18 of 24 units".
func (s RunState) String() string {
	text := fmt.Sprintf("unfinished: %d of %s", s.Done, count(s.Units, "unit"))
	if s.Done == s.Units {
		text += ", without its summary"
	}
	return text
}

// SummariseSoFar finds out how far the run in the folder out is, and writes the files of
// a summary of the records that it has to the folder into; out stays as it is. The data and
// weights of the plan have to be there, a GPU need not be: open is asked for the CPU.
func SummariseSoFar(ctx context.Context, out, into string, open Opener) (RunState, error) {
	var state RunState
	plan, err := readPrior(out)
	if err != nil {
		return state, err
	}
	if plan == nil {
		return state, usage.Errorf("%s holds no run", out)
	}
	study, err := checkStatic(plan)
	if err != nil {
		return state, err
	}
	backend, err := open("cpu", 1)
	if err != nil {
		return state, err
	}
	defer backend.Close()
	r, err := resolve(ctx, plan, study, ofDevice{backend, plan.Device}, nil, func(Event) {})
	if err != nil {
		return state, err
	}
	defer r.Close()
	if d := differenceBetween(plan, r.Plan, "in "+out, "now"); d != "" {
		return state, usage.Errorf("the plan is not what it was when %s was begun: %s", out, d)
	}
	units, err := r.units(ctx)
	if err != nil {
		return state, err
	}
	if !plan.Shard.IsZero() {
		if units, err = plan.Shard.choose(units); err != nil {
			return state, err
		}
	}
	missing := make(map[string]bool, len(units))
	for _, u := range units {
		missing[u.ID] = true
	}
	state.Units = len(units)
	path := filepath.Join(out, record.FileName)
	err = record.Scan(path, func(rec record.Record) error {
		delete(missing, rec.ID)
		return ctx.Err()
	})
	if err != nil {
		return state, err
	}
	state.Done, state.Ended = state.Units-len(missing), ended(out)
	s, err := summarise(path, r, units)
	if err != nil {
		return state, err
	}
	return state, s.write(into)
}
