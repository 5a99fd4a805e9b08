package orchestrate

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/assay-xai/assay/dataset"
	"github.com/assay-xai/assay/internal/record"
	"github.com/assay-xai/assay/internal/usage"
	"github.com/assay-xai/assay/trace"
)

// transferStudy asks how well the trajectories that were found on each net do on
// every other (appendix I, Fig. 16). First come the searches, one unit a net;
// what they found is then scored on the other nets, by units that read the
// searches' records. A record's net is the one that scored, its parameter source
// the one that the trajectory was found on; both are the same for searches.
func transferStudy() Study {
	return Study{
		ID:         "transfer",
		Summary:    "how well the best orders of deletion of each net do on the others (TRACE, appendix I)",
		Code:       "transfer/1 " + traceCode(),
		Seeded:     true,
		Parameters: transferParameters(),
		Check:      checkTransfer,
		Fit:        fitTransfer,
		Later:      transfers,
		Run:        runTransfer,
		Metrics:    traceMetrics(),
	}
}

// sourceKey is the parameter that names the net of the search.
const sourceKey = "source"

func transferParameters() []Parameter {
	list := traceParameters()
	for i := range list {
		if list[i].Name == "target" {
			list[i] = Parameter{Name: "target", Type: "string", Default: targetLabel,
				Summary: "tracked class, one for all nets: label, or a class from 0"}
		}
	}
	return append(list, Parameter{Name: sourceKey, Type: "string", Summary: "the net that the trajectory was found on; none: every net of the plan in turn"})
}

func checkTransfer(r *Resolved, p Params) (Params, error) {
	if len(r.Plan.Nets) < 2 {
		return nil, usage.Errorf("transfer: one net: want at least two, between which trajectories are transferred")
	}
	if t := p.Text("target"); t == targetPredicted {
		return nil, usage.Errorf("transfer: target predicted: each net would track a class of its own; want label, or a class from 0")
	}
	solver, err := trace.SolverByID(p.Text("solver"))
	if err == nil && solver.Bounds {
		return nil, &inapplicable{usage.Errorf("transfer: solver %s bounds scores and finds no trajectory: want another", solver.ID)}
	}
	out, err := checkTrace(r, p)
	if err != nil {
		return nil, err
	}
	if source := p.Text(sourceKey); source != "" {
		var names []string
		for _, n := range r.Plan.Nets {
			names = append(names, n.name())
		}
		if !slices.Contains(names, source) {
			return nil, usage.Errorf("source %q: %s", source, DidYouMean(source, names))
		}
		out[sourceKey] = source
	}
	return out, nil
}

// fitTransfer makes a point that of a search on the net.
func fitTransfer(r *Resolved, n *ResolvedNet, d *ResolvedData, p Params) (Params, error) {
	if first := r.Nets[0]; first.Info.Classes != n.Info.Classes {
		return nil, usage.Errorf("transfer: net %s knows %d classes, %s knows %d: want nets of the same classes", first.Name, first.Info.Classes, n.Name, n.Info.Classes)
	}
	if first := r.Nets[0]; d.Set.Kind == dataset.Images && seen(first.Preset) != seen(n.Preset) {
		r.warnOnce(fmt.Sprintf("nets %s and %s see other parts of an image (presets %s and %s): their patches are not the same places", first.Name, n.Name, first.Preset.ID, n.Preset.ID))
	}
	if source := p.Text(sourceKey); source != "" && source != n.Name {
		return nil, &inapplicable{&elsewhere{usage.Errorf("transfer: no search on net %s, the source is %s", n.Name, source)}}
	}
	out, err := fitTrace(r, n, d, p)
	if err != nil {
		return nil, err
	}
	return with(out, sourceKey, n.Name), nil
}

// seen is what part of an image a preset shows: how it is resized, and the shares
// of height and width that are left.
func seen(p dataset.Preset) string {
	share := func(crop, size int) float64 {
		if crop == 0 || size == 0 {
			return 1
		}
		return float64(crop) / float64(size)
	}
	width := p.Width
	if width == 0 {
		width = p.Height
	}
	return fmt.Sprintf("%s %.3f %.3f", p.Resize, share(p.CropHeight, p.Height), share(p.CropWidth, width))
}

// transfers lists the units that score what the searches found on the other nets,
// net by net.
func transfers(ctx context.Context, r *Resolved, searches []Unit) ([]Unit, error) {
	var out []Unit
	for _, n := range r.Nets {
		for i := range searches {
			s := &searches[i]
			if s.Net == n {
				continue
			}
			params, _, err := fitFeatures(r, n, s.Data, s.Params)
			var skip *inapplicable
			if errors.As(err, &skip) {
				continue
			}
			if err != nil {
				return nil, err
			}
			u := Unit{Net: n, Data: s.Data, Item: s.Item, Params: params, Seed: s.Seed, Source: s}
			if err := r.identify(ctx, &u); err != nil {
				return nil, err
			}
			out = append(out, u)
		}
	}
	return out, nil
}

// withSources is what a net measures at a point: where it is a source of
// trajectories, those of the other nets too.
func (r *Resolved) withSources(point Params) []Params {
	out := []Params{point}
	if r.Study.Later == nil {
		return out
	}
	for _, n := range r.Nets {
		if n.Name != point.Text(sourceKey) {
			other := maps.Clone(point)
			other[sourceKey] = n.Name
			out = append(out, other)
		}
	}
	return out
}

// givenOrder is a trajectory that a unit starts from, or why there is none.
type givenOrder struct {
	order []int
	err   error
}

// runTransfer runs units of either kind.
func runTransfer(ctx context.Context, s *Session, units []Unit, emit func(...record.Record) error) error {
	if err := s.readSources(ctx, units); err != nil {
		return err
	}
	return runTrace(ctx, s, units, emit)
}

// readSources reads the trajectories that units' sources found.
func (s *Session) readSources(ctx context.Context, units []Unit) error {
	wanted := map[string]bool{}
	for _, u := range units {
		if u.Source != nil {
			wanted[u.Source.ID] = true
		}
	}
	if len(wanted) == 0 {
		return nil
	}
	s.orders = make(map[string]givenOrder, len(wanted))
	return record.Scan(s.records, func(rec record.Record) error {
		if !wanted[rec.ID] {
			return ctx.Err()
		}
		given := givenOrder{}
		switch {
		case rec.Error != "":
			given.err = fmt.Errorf("the search on net %s failed: %s", rec.Net, rec.Error)
		case rec.Trace == nil || rec.Trajectory == nil:
			given.err = fmt.Errorf("the search on net %s has no trajectory", rec.Net)
		default:
			given.order = rec.Trajectory
		}
		s.orders[rec.ID] = given
		return ctx.Err()
	})
}

// options are those of a unit's search, with the trajectory that it was given. A
// unit that reads another's trajectory searches nothing.
func (st *stage) options(u Unit) (trace.Options, error) {
	o := traceOptions(u)
	if u.Source == nil && o.Start == startMap {
		var err error
		o.Given, err = st.s.files[u.Params.Text(mapKey)].order(u, mapShape(st.spec.Shape), st.spec.FeatureMap, st.spec.Features)
		return o, err
	}
	if u.Source == nil {
		return o, nil
	}
	given, ok := st.s.orders[u.Source.ID]
	if !ok {
		return o, fmt.Errorf("the search on net %s left no record", u.Source.Net.Name)
	}
	return trace.Options{Solver: "order", Start: startMap, Given: given.order, Objective: o.Objective, ScoreOn: o.ScoreOn, Seed: o.Seed}, given.err
}
