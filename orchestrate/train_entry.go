package orchestrate

import (
	"context"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/assay-xai/assay/internal/usage"
	"github.com/assay-xai/assay/internal/yamlfile"
)

// TrainEntry is a net, or an imputer, that a plan trains before it measures: `assay
// train` into OUT/train/NAME, which goes on where it stopped and is not done twice.
type TrainEntry struct {
	// Name stands for what is trained in weights of nets and of the generator: train:NAME.
	Name string `yaml:"name"`
	// Net or Imputer is what is trained.
	Net     string `yaml:"net,omitempty"`
	Imputer string `yaml:"imputer,omitempty"`
	// Weights are what it starts from; "" draws parameters from the seed.
	Weights    string   `yaml:"weights,omitempty"`
	Classes    int      `yaml:"classes,omitempty"`
	Preset     string   `yaml:"preset,omitempty"`
	Data       DataPlan `yaml:"data"`
	Validation string   `yaml:"validation,omitempty"`
	// Settings are those of TrainSettings, and of ImputerTraining for imputers, that are
	// not the default's.
	Settings map[string]any `yaml:"settings,omitempty"`
}

const (
	trainPrefix = "train:"
	// TrainFolder holds the plan's trainings, relative to OUT, by name.
	TrainFolder = "train"
)

// imputerSettings are the names of settings that belong to the imputer itself.
func imputerSettings() []string { return []string{"alpha", "hintRate", "maximumRate", "width"} }

// apply changes the defaults of how is trained to the entry's.
func (t TrainEntry) apply(s *TrainSettings) error { return t.decode(false, s) }

// applyImputer changes the defaults of the imputer to the entry's.
func (t TrainEntry) applyImputer(i *ImputerTraining) error { return t.decode(true, i) }

// decode takes those of the settings that are the imputer's own, or the others.
func (t TrainEntry) decode(imputers bool, into any) error {
	for _, name := range sortedKeys(t.Settings) {
		if imputers != (t.Imputer != "" && slices.Contains(imputerSettings(), name)) {
			continue
		}
		text, err := yaml.Marshal(map[string]any{name: t.Settings[name]})
		if err != nil {
			return fmt.Errorf("settings: %s: %w", name, err)
		}
		if err := yaml.UnmarshalWithOptions(text, into, yaml.Strict()); err != nil {
			// The place is that in what was just written.
			_, why, _ := strings.Cut(yamlfile.Error("", err).Error(), ": ")
			return usage.Errorf("settings: %s: %s", name, why)
		}
	}
	return nil
}

// checkNames says which settings there are none of.
func (t TrainEntry) checkNames() error {
	var names []string
	for field := range reflect.TypeFor[TrainSettings]().Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("yaml"), ",")
		names = append(names, name)
	}
	if t.Imputer != "" {
		names = append(names, imputerSettings()...)
	}
	for _, name := range sortedKeys(t.Settings) {
		if slices.Contains(names, name) {
			continue
		}
		if slices.Contains(imputerSettings(), name) {
			return usage.Errorf("settings: %s: belongs to imputers, not to nets", name)
		}
		return usage.Errorf("settings: %s: %s", name, DidYouMean(name, names))
	}
	return nil
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
		case t.Net == "" && t.Imputer == "":
			return p.errorf(at, "training %s: without its net (net: ...) or imputer (imputer: ...)", t.Name)
		case t.Net != "" && t.Imputer != "":
			return p.errorf(at, "training %s: net %s and imputer %s: want one of them", t.Name, t.Net, t.Imputer)
		case t.Imputer != "" && t.Classes != 0:
			return p.errorf(at, "training %s: classes %d: imputers know of no classes: leave it out", t.Name, t.Classes)
		case t.Data.Path == "":
			return p.errorf(at, "training %s: data without path", t.Name)
		}
		if err := t.checkSettings(); err != nil {
			return p.errorf(at, "training %s: %w", t.Name, err)
		}
		names = append(names, t.Name)
	}
	for i, n := range p.Nets {
		if err := p.checkTrained(n.Weights, false); err != nil {
			return p.errorf(netPath(i, "weights"), "weights %w", err)
		}
	}
	if err := p.checkTrained(p.Generator.Weights, true); err != nil {
		return p.errorf("$.generator.weights", "generator %w", err)
	}
	return nil
}

func (t TrainEntry) checkSettings() error {
	if err := t.checkNames(); err != nil {
		return err
	}
	if t.Imputer == "" {
		s, err := DefaultTraining(false, t.optimizer())
		if err == nil {
			_, err = settle(s, t.apply)
		}
		return err
	}
	known, err := findTrainableImputer(t.Imputer)
	if err == nil {
		_, _, err = known.settings(t.optimizer(), t.Validation, t.apply, t.applyImputer)
	}
	return err
}

// checkTrained says whether weights that name a training name one that there is, of an
// imputer or of a net.
func (p *Plan) checkTrained(file string, imputer bool) error {
	name, ok := strings.CutPrefix(file, trainPrefix)
	if !ok {
		return nil
	}
	var names []string
	for _, t := range p.Train {
		switch {
		case (t.Imputer != "") == imputer:
			names = append(names, t.Name)
		case t.Name == name && imputer:
			return usage.Errorf("%s: that is a training of net %s: want one of an imputer", file, t.Net)
		case t.Name == name:
			return usage.Errorf("%s: that is a training of imputer %s: want one of a net", file, t.Imputer)
		}
	}
	if !slices.Contains(names, name) {
		return usage.Errorf("%s: %s", file, DidYouMean(name, names))
	}
	return nil
}

// wants says whether the plan takes the file that comes of a training.
func (p *Plan) wants(t TrainEntry) bool {
	file := trainPrefix + t.Name
	return p.Generator.Weights == file || slices.ContainsFunc(p.Nets, func(n NetPlan) bool { return n.Weights == file })
}

// trainFirst trains what the plan lists and returns the plan with the files
// that came of it. kept is false where OUT does not outlive the run.
func trainFirst(ctx context.Context, p *Plan, job Job, kept bool) (*Plan, error) {
	files := map[string]string{}
	for i, t := range p.Train {
		if p.Code != "" && !p.wants(t) {
			continue // the plan was resolved after the training, and names the file that came of it
		}
		folder := filepath.Join(job.Out, TrainFolder, t.Name)
		shown := folder
		if !kept {
			shown = ""
		}
		data := t.Data
		path, err := locate(data.Path)
		if err != nil {
			return nil, p.errorf(fmt.Sprintf("$.train[%d].data", i), "%w", err)
		}
		data.Path = path
		device, _, _ := strings.Cut(p.Device, ",") // one net is trained on one device
		outcome, err := RunTraining(ctx, TrainJob{
			Net: t.Net, Imputer: t.Imputer, ImputerSettings: t.applyImputer, Weights: t.Weights, Classes: t.Classes, Preset: t.Preset, Data: data, Validation: t.Validation,
			Optimizer: t.optimizer(), Settings: t.apply, Device: device, Precision: p.Precision, Threads: p.Threads,
			Out: folder, Open: job.Open, Progress: t.told(p, shown, job.Progress), Env: job.Env,
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
	if file, ok := files[out.Generator.Weights]; ok {
		out.Generator.Weights = file
	}
	return &out, nil
}

// line says in a few words how well what was trained does.
func (o TrainOutcome) line() string {
	best := o.History[o.BestEpoch-1]
	if o.Plan.Imputer != nil {
		return fmt.Sprintf("%s; %s", best.figures(o.Plan.Imputer), o.which())
	}
	if a := best.ValidationAccuracy; a != nil {
		return fmt.Sprintf("%.1f %% of the validation part right; %s", 100**a, o.which())
	}
	return fmt.Sprintf("%.1f %% of the training part right after %d epochs", 100*best.Accuracy, len(o.History))
}

// which says what epoch the weights are of that a plan goes on with.
func (o TrainOutcome) which() string {
	if o.History[o.BestEpoch-1].ValidationLoss == nil {
		return fmt.Sprintf("after %d epochs", len(o.History))
	}
	return fmt.Sprintf("best of %d epochs: epoch %d", len(o.History), o.BestEpoch)
}
