package orchestrate

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
)

// TrainEntry is a net that a plan trains before it measures: `assay train` into
// OUT/train/NAME, which goes on where it stopped and is not done twice.
type TrainEntry struct {
	// Name stands for the net in weights: train:NAME.
	Name string `yaml:"name"`
	Net  string `yaml:"net"`
	// Weights are what it starts from; "" draws parameters from the seed.
	Weights    string   `yaml:"weights,omitempty"`
	Classes    int      `yaml:"classes,omitempty"`
	Preset     string   `yaml:"preset,omitempty"`
	Data       DataPlan `yaml:"data"`
	Validation string   `yaml:"validation,omitempty"`
	// Settings are those of TrainSettings that are not the default's.
	Settings map[string]any `yaml:"settings,omitempty"`
}

const (
	trainPrefix = "train:"
	// TrainFolder holds the plan's trainings, relative to OUT, by name.
	TrainFolder = "train"
)

// apply changes what DefaultTraining gives to the entry's.
func (t TrainEntry) apply(s *TrainSettings) error {
	text, err := yaml.Marshal(t.Settings)
	if err != nil {
		return fmt.Errorf("settings: %w", err)
	}
	if len(t.Settings) == 0 {
		return nil
	}
	return yaml.UnmarshalWithOptions(text, s, yaml.Strict())
}

func (t TrainEntry) optimizer() string {
	name, _ := t.Settings["optimizer"].(string)
	return name
}

// checkTrain finds what is wrong with the plan's trainings, and nets that want
// one that is not there.
func (p *Plan) checkTrain() error {
	var names []string
	for i, t := range p.Train {
		at := fmt.Sprintf("$.train[%d]", i)
		switch {
		case t.Name == "" || !filepath.IsLocal(t.Name) || strings.ContainsAny(t.Name, `/\`):
			return p.errorf(at, "training %q: want a name that is good for a folder (name: ...)", t.Name)
		case slices.Contains(names, t.Name):
			return p.errorf(at, "two trainings are called %s", t.Name)
		case t.Net == "":
			return p.errorf(at, "training %s: without its net (net: ...)", t.Name)
		case t.Data.Path == "":
			return p.errorf(at, "training %s: data without path", t.Name)
		}
		s, err := DefaultTraining(false, t.optimizer())
		if err == nil {
			err = t.apply(&s)
		}
		if err == nil {
			err = s.Validate()
		}
		if err != nil {
			return p.errorf(at, "training %s: %w", t.Name, err)
		}
		names = append(names, t.Name)
	}
	for i, n := range p.Nets {
		if name, ok := strings.CutPrefix(n.Weights, trainPrefix); ok && !slices.Contains(names, name) {
			return p.errorf(netPath(i, "weights"), "weights %s: %s", n.Weights, DidYouMean(name, names))
		}
	}
	return nil
}

// trainFirst trains what the plan lists and returns the plan with the files
// that came of it.
func trainFirst(ctx context.Context, p *Plan, job Job) (*Plan, error) {
	if len(p.Train) == 0 {
		return p, nil
	}
	files := map[string]string{}
	for i, t := range p.Train {
		if p.Code != "" && !slices.ContainsFunc(p.Nets, func(n NetPlan) bool { return n.Weights == trainPrefix+t.Name }) {
			continue // the plan was resolved after the training, and names the file that came of it
		}
		folder := filepath.Join(job.Out, TrainFolder, t.Name)
		data := t.Data
		path, err := locate(data.Path)
		if err != nil {
			return nil, p.errorf(fmt.Sprintf("$.train[%d].data", i), "%w", err)
		}
		data.Path = path
		device, _, _ := strings.Cut(p.Device, ",") // one net is trained on one device
		outcome, err := RunTraining(ctx, TrainJob{
			Net: t.Net, Weights: t.Weights, Classes: t.Classes, Preset: t.Preset, Data: data, Validation: t.Validation,
			Optimizer: t.optimizer(), Settings: t.apply, Device: device, Precision: p.Precision, Threads: p.Threads,
			Out: folder, Open: job.Open, Progress: job.Progress, Env: job.Env,
		})
		if err != nil {
			return nil, fmt.Errorf("training %s: %w", t.Name, err)
		}
		if outcome.Before < len(outcome.History) {
			job.Progress(Event{Kind: Note, Message: fmt.Sprintf("trained %s: %s", t.Name, outcome.line())})
		}
		files[trainPrefix+t.Name] = filepath.Join(folder, BestFile)
	}
	out := *p
	out.Nets = slices.Clone(p.Nets)
	for i, n := range out.Nets {
		if file, ok := files[n.Weights]; ok {
			out.Nets[i].Weights = file
			if n.Name == "" {
				out.Nets[i].Name = strings.TrimPrefix(n.Weights, trainPrefix)
			}
		}
	}
	return &out, nil
}

// line says in a few words how well the net does.
func (o TrainOutcome) line() string {
	best := o.History[o.BestEpoch-1]
	if a := best.ValidationAccuracy; a != nil {
		return fmt.Sprintf("%.1f %% of the validation part right after %d of %d epochs", 100**a, o.BestEpoch, len(o.History))
	}
	return fmt.Sprintf("%.1f %% of the training part right after %d epochs", 100*best.Accuracy, len(o.History))
}
