package orchestrate

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/assay-xai/assay/dataset"
	"github.com/assay-xai/assay/internal/usage"
	"github.com/assay-xai/assay/weights"
)

// TrainJob is a training from data on disk into a folder: `assay train`.
type TrainJob struct {
	Net string
	// Imputer, in place of Net, is one of TrainableImputers; it needs no labels and knows
	// no classes. ImputerSettings may change its defaults, and may be nil.
	Imputer         string
	ImputerSettings func(*ImputerTraining) error
	// Weights is what to start from: a file or a published version; "" draws
	// parameters from the seed. An imputer is as wide as its file is.
	Weights string
	// Classes is the number of classes; 0: the weights', else the data's.
	Classes int
	// Preset is a name or a YAML file; "": the weights', else for tables
	// "table", else the net's; for imputers: the weights', else the data as it is.
	Preset string
	// Data is the training part; without a split it is train where there is one.
	Data DataPlan
	// Validation is a split, a fraction ("0.2") or "none"; "": split val where
	// there is one, else a tenth of the training part. Without one the rate of imputers
	// is constant by default.
	Validation string
	// Optimizer chooses the defaults that Settings may change; it may be nil.
	Optimizer string
	Settings  func(*TrainSettings) error

	Device    string
	Precision string
	Threads   int
	// Out keeps everything; "" keeps nothing.
	Out       string
	MustExist bool
	Open      Opener
	Progress  func(Event)
	Env       map[string]any
}

// TrainOutcome is what a training from data came to.
type TrainOutcome struct {
	*Trained
	Plan *TrainPlan
}

// defaultFraction is the part of the training data that validates by default.
const defaultFraction = .1

// RunTraining runs a job: it goes on where an earlier run of the same settings
// in the same folder stopped.
func RunTraining(ctx context.Context, job TrainJob) (TrainOutcome, error) {
	if job.Progress == nil {
		job.Progress = func(Event) {}
	}
	if job.Precision != "" && !slices.Contains(Precisions(), job.Precision) {
		return TrainOutcome{}, usage.Errorf("precision %q: %s", job.Precision, DidYouMean(job.Precision, Precisions()))
	}
	if strings.Contains(job.Device, ",") {
		return TrainOutcome{}, usage.Errorf("device %s: a net is trained on one device", job.Device)
	}
	goesOn := false
	if job.Out != "" || job.MustExist {
		prior, err := readPriorTraining(job.Out)
		if err != nil {
			return TrainOutcome{}, err
		}
		if prior == nil && job.MustExist {
			return TrainOutcome{}, usage.Errorf("resume: %s holds no training: leave --resume out to begin one", job.Out)
		}
		if goesOn = prior != nil; goesOn {
			job.Device, job.Threads = orElse(job.Device, prior.Device), max(job.Threads, 0)
			if job.Threads == 0 {
				job.Threads = prior.Threads
			}
		}
	}
	b, err := job.Open(job.Device, job.Threads)
	if err != nil {
		return TrainOutcome{}, err
	}
	defer b.Close()
	trainer, ok := b.(TrainingBackend)
	if !ok {
		return TrainOutcome{}, fmt.Errorf("device %s cannot train", b.Device())
	}
	r := &training{job: job, b: trainer, goesOn: goesOn, plan: &TrainPlan{Version: PlanVersion, Code: trainCode}}
	defer r.close()
	if err := r.resolve(ctx); err != nil {
		return TrainOutcome{}, err
	}
	return r.run(ctx)
}

// training is a job under way.
type training struct {
	job   TrainJob
	b     TrainingBackend
	plan  *TrainPlan
	entry Entry
	info  NetInfo
	state map[string]weights.Tensor
	// set is the training part, validation the other: nil, or the same set.
	set, validation *dataset.Set
	rows, held      []int
	// goesOn says that OUT holds a training.
	goesOn bool
	// notes are told before the first epoch.
	notes []string
}

func (r *training) close() {
	for _, s := range []*dataset.Set{r.set, r.validation} {
		if s != nil {
			s.Close()
		}
	}
}

// resolve finds everything that the job names and fills the plan.
func (r *training) resolve(ctx context.Context) error {
	p, job := r.plan, r.job
	p.Device, p.Precision, p.Threads = r.b.Device(), orElse(job.Precision, "f32"), job.Threads
	if p.Threads == 0 {
		p.Threads = runtime.NumCPU()
	}
	if job.Imputer != "" {
		return r.imputer(ctx)
	}
	catalogue, err := r.b.Catalogue(ctx)
	if err != nil {
		return err
	}
	if isNetFile(job.Net) {
		return usage.Errorf("net %s is a file: only nets of assay list nets can be trained; train it where it was made", job.Net)
	}
	if r.entry, err = findEntry("net", job.Net, catalogue.Nets); err != nil {
		return err
	}
	if err := r.settings(); err != nil {
		return err
	}
	if r.set, err = openTrainingPart(ctx, job.Data, job.Classes); err != nil {
		return err
	}
	if !r.set.HasLabels {
		return usage.Errorf("%s has no labels: give them with --labels FILE (\"file class\" a line)", job.Data.Path)
	}
	if r.set.Kind != dataset.Images && r.set.Len() > 0 {
		_, row, err := r.set.Values(0)
		if err != nil {
			return err
		}
		r.entry = catalogue.variant(r.entry, row)
	}
	for _, w := range r.set.Warnings {
		job.Progress(Event{Kind: Warning, Message: w})
	}
	var sd *weights.StateDict
	if job.Weights != "" {
		if sd, err = r.openWeights(job.Net); err != nil {
			return err
		}
	}
	if err := r.net(ctx, sd); err != nil {
		return err
	}
	if err := r.set.CheckClasses(p.Classes); err != nil {
		return err
	}
	if err := r.preset(sd); err != nil {
		return err
	}
	return r.divide(ctx)
}

func (r *training) settings() error {
	s, err := DefaultTraining(len(r.entry.Input) == 1, r.job.Optimizer)
	if err != nil {
		return err
	}
	r.plan.Training, err = settle(s, r.job.Settings)
	return err
}

// openTrainingPart opens split train where the data has splits and none is named.
func openTrainingPart(ctx context.Context, d DataPlan, classes int) (*dataset.Set, error) {
	opt := dataset.Options{Split: d.Split, Labels: d.Labels, Limit: d.Limit, Classes: classes}
	set, err := dataset.Open(ctx, d.Path, opt)
	if err != nil || d.Split != "" || len(set.Splits) == 0 || set.Split == partTrain {
		return set, err
	}
	set.Close()
	if !slices.Contains(set.Splits, partTrain) {
		return nil, usage.Errorf("data %s has no split train: name the one to train on with --split: %s", d.Path, strings.Join(set.Splits, ", "))
	}
	opt.Split = partTrain
	return dataset.Open(ctx, d.Path, opt)
}

func (r *training) openWeights(of string) (*weights.StateDict, error) {
	path, err := weights.Resolve(of, r.job.Weights)
	if err != nil {
		return nil, err
	}
	sd, err := weights.Open(path)
	if err != nil {
		return nil, err
	}
	r.plan.Weights, r.plan.WeightsHash = absolute(path), sd.Hash
	return sd, nil
}

// net finds out the numbers of columns and classes, and the parameters.
func (r *training) net(ctx context.Context, sd *weights.StateDict) error {
	p := r.plan
	p.Net = r.entry.ID
	if len(r.entry.Input) == 1 {
		if r.set.Kind == dataset.Images {
			return usage.Errorf("net %s takes columns, %s holds images", p.Net, r.set.Path)
		}
		values, _, err := r.set.Values(0)
		if err != nil {
			return err
		}
		p.Features = len(values)
	}
	own, err := r.b.Describe(ctx, p.Net, 0, p.Features)
	if err != nil {
		return err
	}
	p.Classes = r.job.Classes
	if p.Classes == 0 && sd != nil {
		p.Classes, _ = headClasses(own, sd)
	}
	if p.Classes == 0 {
		p.Classes = len(r.set.ClassNames)
		for _, item := range r.set.Items() {
			p.Classes = max(p.Classes, item.Class+1)
		}
	}
	if p.Classes < 2 {
		return usage.Errorf("%s has %d class: want at least two to train a classifier", r.set.Path, p.Classes)
	}
	if r.info, err = r.b.Describe(ctx, p.Net, p.Classes, p.Features); err != nil {
		return err
	}
	if sd == nil {
		return nil
	}
	return r.startFrom(ctx, own, sd)
}

// startFrom takes the parameters of a file. A head for another number of
// classes is left out, and drawn from the seed.
func (r *training) startFrom(ctx context.Context, own NetInfo, sd *weights.StateDict) error {
	p, theirs := r.plan, r.info
	if imputer := sd.Metadata["imputer"]; imputer != "" {
		return usage.Errorf("%s holds a trained imputer %s: want weights of net %s", p.Weights, imputer, p.Net)
	}
	if n, ok := headClasses(own, sd); ok && n != p.Classes {
		var err error
		if theirs, err = r.b.Describe(ctx, p.Net, n, p.Features); err != nil {
			return err
		}
	}
	state, warnings, err := weights.Match(sd, theirs.Parameters)
	if err != nil {
		return usage.Errorf("%s does not fit net %s: %w", p.Weights, p.Net, err)
	}
	for i, want := range r.info.Parameters {
		if !slices.Equal(want.Shape, theirs.Parameters[i].Shape) {
			delete(state, want.Name)
			warnings = append(warnings, fmt.Sprintf("%s is for %d classes: drawn anew for %d", want.Name, theirs.Classes, p.Classes))
		}
	}
	for _, w := range warnings {
		r.job.Progress(Event{Kind: Warning, Message: p.Weights + ": " + w})
	}
	r.state = state
	return nil
}

// preset chooses the preprocessing, which the weights will remember.
func (r *training) preset(sd *weights.StateDict) (err error) {
	p := r.plan
	switch {
	case r.job.Preset != "":
		p.Preset, err = dataset.LoadPreset(r.job.Preset)
	case sd != nil:
		if own, ok := metadataPreset(sd); ok {
			p.Preset = own
			break
		}
		p.Preset, err = dataset.LoadPreset(orElse(publishedPreset(p.Weights, p.Net), defaultPreset(r.info, r.set)))
	default:
		p.Preset, err = dataset.LoadPreset(defaultPreset(r.info, r.set))
	}
	p.Preset = p.Preset.ForSet(r.set)
	p.Preset.Summary = ""
	return err
}

// defaultPreset is the net's own, but for tables of columns.
func defaultPreset(info NetInfo, set *dataset.Set) string {
	if set.Kind == dataset.Table {
		return "table"
	}
	return orElse(info.Preset, "imagenet")
}

// divide opens or cuts off the validation part and hashes what is used.
func (r *training) divide(ctx context.Context) error {
	p := r.plan
	p.Data = r.job.Data
	p.Data.Path, p.Data.Split, p.Data.Items = absolute(p.Data.Path), r.set.Split, r.set.Len()
	if p.Data.Labels != "" {
		p.Data.Labels = absolute(p.Data.Labels)
	}
	var err error
	if p.Data.Hash, err = hashSet(ctx, r.set, r.job.Progress); err != nil {
		return err
	}
	r.rows = make([]int, r.set.Len())
	for i := range r.rows {
		r.rows[i] = i
	}
	text := r.job.Validation
	if text == "" {
		text = formatScalar(defaultFraction)
		if slices.Contains(r.set.Splits, "val") && r.set.Split != "val" {
			text = "val"
		}
	}
	if text == noValidation {
		return p.Training.checkValidation()
	}
	if fraction, err := strconv.ParseFloat(text, 64); err == nil {
		return r.cut(fraction)
	}
	return r.validationSplit(ctx, text)
}

func (r *training) cut(fraction float64) error {
	if !(fraction > 0 && fraction < 1) {
		return usage.Errorf("validation %v: want a fraction between 0 and 1, a split, or none", fraction)
	}
	// Examples without labels are as of one class, so that nothing is stratified.
	classes := make([]int, r.set.Len())
	for i, item := range r.set.Items() {
		classes[i] = item.Class
	}
	r.rows, r.held = SplitStratified(classes, fraction, r.plan.Training.Seed)
	if len(r.held) == 0 || len(r.rows) == 0 {
		return usage.Errorf("validation %v: leaves %d examples to train on and %d to validate: want both", fraction, len(r.rows), len(r.held))
	}
	r.plan.Validation = ValidationPlan{Fraction: fraction, Items: len(r.held)}
	return nil
}

func (r *training) validationSplit(ctx context.Context, split string) error {
	if split == r.set.Split {
		return usage.Errorf("validation %s: that is the part to train on", split)
	}
	if len(r.set.Splits) == 0 {
		return usage.Errorf("validation %q: want a fraction such as 0.1, or none: %s has no splits", split, r.set.Path)
	}
	d := r.job.Data
	set, err := dataset.Open(ctx, d.Path, dataset.Options{Split: split, Labels: d.Labels, Classes: r.plan.Classes})
	if err != nil {
		return fmt.Errorf("validation: %w", err)
	}
	r.validation = set
	if r.plan.Imputer == nil && !set.HasLabels {
		return usage.Errorf("validation: split %s of %s has no labels", split, d.Path)
	}
	if r.plan.Imputer == nil {
		if err := set.CheckClasses(r.plan.Classes); err != nil {
			return err
		}
	} else if set.Kind != dataset.Images {
		seen, _, err := rowRange(ctx, set)
		if err == nil {
			err = seen.check(set, r.plan.Preset, func(Event) {}) // the training part's says whether it is little
		}
		if err != nil {
			return fmt.Errorf("validation: %w", err)
		}
	}
	r.plan.Validation = ValidationPlan{Split: split, Items: set.Len()}
	r.plan.Validation.Hash, err = hashSet(ctx, set, r.job.Progress)
	return err
}

// hashSet reads a set through once.
func hashSet(ctx context.Context, set *dataset.Set, progress func(Event)) (string, error) {
	for i := range set.Len() {
		if i%64 == 0 {
			progress(Event{Kind: Step, Stage: "hashing " + set.Path, Done: i, Total: set.Len()})
		}
		if _, err := set.ItemHash(ctx, i); err != nil {
			return "", err
		}
	}
	return set.ContentHash(ctx)
}
