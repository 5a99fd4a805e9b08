package orchestrate

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/assay-xai/assay/dataset"
	"github.com/assay-xai/assay/internal/journal"
	"github.com/assay-xai/assay/trace"
	"github.com/assay-xai/assay/weights"
)

// Session is what a study runs with.
type Session struct {
	*Resolved
	views *views
	// batch is the plan's, or less after memory ran out.
	batch int
	// searches is the folder of journals, which are synced as often as it says.
	searches     string
	journalEvery time.Duration
	// partly is told what part of a unit is done, 0 to 1.
	partly func(u Unit, part float64)
	// records is the file of the run's records.
	records string
	// out is the folder of the run.
	out string
	// pixels says of which data Load is to have the pixels too; nil: of none.
	pixels func(d *ResolvedData) bool
	// kept is what the study keeps beside records; nil: nothing.
	kept RunFiles
	// orders are the trajectories that units were given, by the unit's id.
	orders map[string]givenOrder
}

// defaultJournalEvery is how much of a long search a kill can cost.
const defaultJournalEvery = 3 * time.Second

// journal returns the journal of a unit's search: a scorer over scorer that
// knows what an interrupted run has scored. Scores depend on the batch shape, so
// those of another one are not taken.
func (s *Session) journal(u Unit, features int, scorer trace.Scorer, device func() time.Duration) (*journal.Journal, error) {
	name := fmt.Sprintf("%s at batch %d", u.ID, s.batch)
	return journal.Open(filepath.Join(s.searches, u.ID+".states"), name, features, s.journalEvery, scorer, device)
}

// Batch is the number of rows of every forward from now on.
func (s *Session) Batch() int { return s.batch }

// Batch is the number of rows of every forward that the plan asks for.
func (r *Resolved) Batch() int { return int(r.Plan.Batch) }

// OpenNet loads a net of the plan; the caller closes it.
func (s *Session) OpenNet(ctx context.Context, n *ResolvedNet) (Net, error) {
	return s.openNet(ctx, n, s.Plan.Precision)
}

func (r *Resolved) openNet(ctx context.Context, n *ResolvedNet, precision string) (Net, error) {
	state, err := r.state(ctx, n)
	if err != nil {
		return nil, err
	}
	spec := NetSpec{Net: n.Info.Net, Classes: n.Info.Classes, Features: n.Features, File: n.File, Precision: precision}
	net, err := r.Backend.OpenNet(ctx, spec, state)
	if err != nil {
		return nil, fmt.Errorf("opening net %s: %w", n.Name, err)
	}
	return net, nil
}

// state reads the net's weights again; nil where the net holds them.
func (r *Resolved) state(ctx context.Context, n *ResolvedNet) (map[string]weights.Tensor, error) {
	if n.File != nil {
		state, _, err := n.fileState()
		return state, err
	}
	sd, err := weights.Open(n.Path)
	if err != nil {
		return nil, err
	}
	if err := n.setHash(sd.Hash); err != nil {
		return nil, err
	}
	again := *n // match writes; several devices may open the net at once
	state, _, err := r.match(ctx, &again, n.Info.Net, sd)
	return state, err
}

// Load reads and preprocesses items of d as n wants them. failed[i] says why
// items[i] could not be. Views for the report are written on the way.
func (s *Session) Load(ctx context.Context, n *ResolvedNet, d *ResolvedData, items []int) (images Images, failed []error, err error) {
	if d.Set.Kind == dataset.Images {
		images, failed, err = s.loadFiles(ctx, n, d, items)
	} else {
		images, err = s.loadRows(ctx, n, d, items)
		failed = make([]error, len(items))
	}
	if err != nil {
		return nil, nil, fmt.Errorf("preparing images of %s: %w", d.Name, err)
	}
	if err := s.views.save(n, d, items, images, failed); err != nil {
		images.Close()
		return nil, nil, err
	}
	return images, failed, nil
}

func (s *Session) loadFiles(ctx context.Context, n *ResolvedNet, d *ResolvedData, items []int) (Images, []error, error) {
	files := make([][]byte, len(items))
	unread := make([]error, len(items))
	pixels := s.pixels != nil && s.pixels(d)
	for i, item := range items {
		if err := ctx.Err(); err != nil {
			return nil, nil, err
		}
		if files[i], unread[i] = d.Set.Read(ctx, item); unread[i] != nil {
			files[i] = []byte{} // fails to decode, for the reason kept here
		}
		pixels = pixels || s.views.wants(n, d, item)
	}
	images, failed, err := s.Backend.Images(ctx, files, n.Preset, pixels)
	if err != nil {
		return nil, nil, err
	}
	for i := range failed {
		if unread[i] != nil {
			failed[i] = unread[i]
		}
	}
	return images, failed, nil
}

func (s *Session) loadRows(ctx context.Context, n *ResolvedNet, d *ResolvedData, items []int) (Images, error) {
	preset := n.Preset.ForSet(d.Set)
	var all []float32
	var first []int
	for _, item := range items {
		values, shape, err := d.Set.Values(item)
		if err != nil {
			return nil, err
		}
		if err := preset.Normalise(values, shape); err != nil {
			return nil, err
		}
		if len(n.Info.Input) == 1 {
			shape = []int{len(values)}
		}
		if first == nil {
			first = shape
		}
		all = append(all, values...)
	}
	return s.Backend.Arrays(ctx, all, first)
}
