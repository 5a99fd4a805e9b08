package orchestrate

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/assay-xai/assay/dataset"
	"github.com/assay-xai/assay/internal/usage"
)

// What plans train can take hours: what is wrong with them is said before.

// checkBeforeTraining finds what is wrong with a plan that trains, as far as it shows
// without the files that training makes, and returns the plan without trainings that
// nothing uses, and why they are left out.
func checkBeforeTraining(ctx context.Context, p *Plan, study Study, open Opener) (*Plan, []string, error) {
	if err := p.missingData(); err != nil {
		return nil, nil, err
	}
	first, _, _ := strings.Cut(p.Device, ",")
	b, err := open(first, p.Threads)
	if errors.Is(err, usage.Err) {
		return nil, nil, p.errorf("$.device", "%w", err)
	}
	if err != nil {
		return nil, nil, err
	}
	defer b.Close()
	own := *p
	r := resolver{&Resolved{Plan: &own, Study: study, Backend: b, means: &dataMeans{of: map[string][]float64{}}}, nil, func(Event) {}}
	defer r.Close()
	if r.Catalogue, err = b.Catalogue(ctx); err != nil {
		return nil, nil, err
	}
	if err := r.openFiles(ctx); err != nil {
		return nil, nil, err
	}
	if r.Points, err = study.points(r.Resolved); err != nil {
		return nil, nil, err
	}
	if !strings.HasPrefix(own.Generator.Weights, trainPrefix) {
		if err := r.openGenerator(ctx); err != nil {
			return nil, nil, err
		}
	}
	if err := r.names(); err != nil {
		return nil, nil, err
	}
	if err := r.checkFound(); err != nil {
		return nil, nil, err
	}
	return r.usedTrainings(p)
}

// checkFound looks for nets and data that a plan, or one of its trainings, names and that
// are not there.
func (r *resolver) checkFound() error {
	p := r.Plan
	for i, n := range p.Nets {
		if isNetFile(n.Net) {
			continue
		}
		if _, err := findEntry("net", n.Net, r.Catalogue.Nets); err != nil {
			return p.errorf(netPath(i, "net"), "%w", err)
		}
		trained := strings.HasPrefix(n.Weights, trainPrefix)
		if _, err := os.Stat(n.Weights); err != nil && !trained && !p.Optional && strings.ContainsRune(n.Weights, filepath.Separator) {
			return p.errorf(netPath(i, "weights"), "%w", usage.Errorf("weights: %w", err))
		}
	}
	for i, d := range p.Data {
		if _, err := locate(d.Path); err != nil && !(p.Optional && errors.Is(err, errAbsent)) {
			return p.errorf(fmt.Sprintf("$.data[%d]", i), "%w", err)
		}
	}
	for i, t := range p.Train {
		if p.Code != "" && !p.wants(t) {
			continue // done where the plan was resolved
		}
		at := fmt.Sprintf("$.train[%d]", i)
		if _, err := locate(t.Data.Path); err != nil {
			return p.errorf(at+".data", "training %s: %w", t.Name, err)
		}
		if t.Preset != "" {
			if _, err := dataset.LoadPreset(t.Preset); err != nil {
				return p.errorf(at+".preset", "training %s: %w", t.Name, err)
			}
		}
		if t.Net == "" {
			continue
		}
		if _, err := findEntry("net", t.Net, r.Catalogue.Nets); err != nil {
			return p.errorf(at+".net", "training %s: %w", t.Name, err)
		}
	}
	return nil
}

// usedTrainings leaves out trainings that no net and no imputer of the plan's points takes
// the file of.
func (r *resolver) usedTrainings(p *Plan) (*Plan, []string, error) {
	out := *p
	if p.Code != "" {
		return &out, nil, nil // trainFirst knows which were done
	}
	var warnings []string
	_, imputer := r.generated()
	if name, ok := strings.CutPrefix(p.Generator.Weights, trainPrefix); ok && imputer == "" {
		warnings = append(warnings, fmt.Sprintf("training %s: no imputer of the plan wants a generator: not trained", name))
		out.Generator = GeneratorPlan{}
	}
	out.Train = nil
	for _, t := range p.Train {
		switch {
		case out.wants(t):
			out.Train = append(out.Train, t)
		case p.wants(t): // said above
		case t.Imputer != "" && p.Generator.Weights != "":
			warnings = append(warnings, fmt.Sprintf("training %s: the plan's generator is %s: not trained; generator: {weights: %s%s} would take it", t.Name, p.Generator.Weights, trainPrefix, t.Name))
		case t.Imputer != "":
			warnings = append(warnings, fmt.Sprintf("training %s: nothing of the plan uses it: not trained; generator: {weights: %s%s} would take it", t.Name, trainPrefix, t.Name))
		default:
			warnings = append(warnings, fmt.Sprintf("training %s: nothing of the plan uses it: not trained; weights: %s%s of a net would take it", t.Name, trainPrefix, t.Name))
		}
	}
	return &out, warnings, nil
}

// generatorFrom is a training of the plan that makes a generator for an imputer, "" where
// there is none.
func (p *Plan) generatorFrom(imputer string) string {
	i := slices.IndexFunc(p.Train, func(t TrainEntry) bool { return t.Imputer == imputer })
	if i < 0 {
		return ""
	}
	return trainPrefix + p.Train[i].Name
}

// told passes on what a training says under its name, and says before its first step that
// it begins, and how it could be had sooner.
// The folder is "" where nothing is kept.
func (t TrainEntry) told(p *Plan, folder string, progress func(Event)) func(Event) {
	begun := false
	return func(e Event) {
		if e.Kind == Step && e.Stage == stageTraining && !begun {
			begun = true
			progress(Event{Kind: Note, Message: t.announcement(p, folder, e.Before > 0)})
		}
		if e.Kind == Step {
			e.Stage = t.Name + ": " + e.Stage
		} else {
			e.Message = t.Name + ": " + e.Message
		}
		progress(e)
	}
}

// announcement says what is trained first, and where.
func (t TrainEntry) announcement(p *Plan, folder string, further bool) string {
	what := "net " + t.Net
	if t.Imputer != "" {
		what = "imputer " + t.Imputer
	}
	verb := "training"
	if further {
		verb = "going on with training"
	}
	text := fmt.Sprintf("%s %s (%s) first", verb, t.Name, what)
	if folder != "" {
		text += ", into " + folder
	} else {
		text += "; it is lost without --out FOLDER"
	}
	if t.Imputer != "" {
		text += "; --generator FILE uses one that is there"
	}
	const quick = "demo"
	if _, there := p.Scale[quick]; there && p.AppliedScale == "" {
		text += "; --scale " + quick + " is quick"
	}
	return text
}
