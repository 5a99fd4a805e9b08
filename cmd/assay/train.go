package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/assay-xai/assay/internal/usage"
	"github.com/assay-xai/assay/orchestrate"
	pages "github.com/assay-xai/assay/report"
)

// trainCategory is the flags' of how a net is trained.
const trainCategory = "Training (defaults on images; on columns)"

// trainSetting is a flag that changes the settings.
type trainSetting struct {
	name, usage string
	// boolean flags take no value and are set to "true".
	boolean bool
	set     func(s *orchestrate.TrainSettings, text string) error
}

// trainSettings lists the flags that change the settings.
func trainSettings() []trainSetting {
	count := func(field func(*orchestrate.TrainSettings) *int) func(*orchestrate.TrainSettings, string) error {
		return func(s *orchestrate.TrainSettings, text string) (err error) {
			if *field(s), err = strconv.Atoi(text); err != nil {
				return errors.New("want a whole number")
			}
			return nil
		}
	}
	real := func(field func(*orchestrate.TrainSettings) *float64) func(*orchestrate.TrainSettings, string) error {
		return func(s *orchestrate.TrainSettings, text string) (err error) {
			if *field(s), err = strconv.ParseFloat(text, 64); err != nil {
				return errors.New("want a number")
			}
			return nil
		}
	}
	return []trainSetting{
		{name: "epochs", usage: "`N` passes over the data (30; 100)", set: count(func(s *orchestrate.TrainSettings) *int { return &s.Epochs })},
		{name: "batch-size", usage: "`N` examples a step (128; 32)", set: count(func(s *orchestrate.TrainSettings) *int { return &s.BatchSize })},
		{name: "rate", usage: "learning `RATE` (sgd .05, adam .001)", set: real(func(s *orchestrate.TrainSettings) *float64 { return &s.Rate })},
		{name: "momentum", usage: "`M` of sgd (.9)", set: real(func(s *orchestrate.TrainSettings) *float64 { return &s.Momentum })},
		{name: "nesterov", usage: "Nesterov's momentum (with sgd on images; no): --nesterov=false for none", boolean: true,
			set: func(s *orchestrate.TrainSettings, text string) error { s.Nesterov = text == "true"; return nil }},
		{name: "weight-decay", usage: "`D` times the parameters is added to the gradient (sgd on images 5e-4, else 0)", set: real(func(s *orchestrate.TrainSettings) *float64 { return &s.WeightDecay })},
		{name: "betas", usage: "`B1,B2` of adam (.9,.999)", set: func(s *orchestrate.TrainSettings, text string) error {
			s.Betas = []float64{}
			for _, part := range split(text) {
				v, err := strconv.ParseFloat(part, 64)
				if err != nil {
					return errors.New("want two numbers, such as .9,.999")
				}
				s.Betas = append(s.Betas, v)
			}
			return nil
		}},
		{name: "epsilon", usage: "`E` of adam (1e-8)", set: real(func(s *orchestrate.TrainSettings) *float64 { return &s.Epsilon })},
		{name: "label-smoothing", usage: "`S` of the label goes to all classes alike (0)", set: real(func(s *orchestrate.TrainSettings) *float64 { return &s.LabelSmoothing })},
		{name: "schedule", usage: "`SCHEDULE` of the rate: " + names(orchestrate.Schedules(), func(s orchestrate.Schedule) string { return s.ID }) + " (cosine; constant)",
			set: func(s *orchestrate.TrainSettings, text string) error { s.Schedule = text; return nil }},
		{name: "warmup", usage: "`N` epochs in which the rate rises (0)", set: count(func(s *orchestrate.TrainSettings) *int { return &s.Warmup })},
		{name: "milestones", usage: "`EPOCHS` after which schedule step multiplies the rate by gamma, such as 30,60", set: func(s *orchestrate.TrainSettings, text string) error {
			s.Milestones = []int{}
			for _, part := range split(text) {
				v, err := strconv.Atoi(part)
				if err != nil {
					return errors.New("want epochs, such as 30,60")
				}
				s.Milestones = append(s.Milestones, v)
			}
			return nil
		}},
		{name: "step-every", usage: "instead of milestones: every `N` epochs", set: count(func(s *orchestrate.TrainSettings) *int { return &s.StepEvery })},
		{name: "gamma", usage: "`FACTOR` of schedule step (.1)", set: real(func(s *orchestrate.TrainSettings) *float64 { return &s.Gamma })},
		{name: "augment", usage: "`CHANGES` of training images: 'crop(4),flip' (none)", set: func(s *orchestrate.TrainSettings, text string) error { s.Augment = text; return nil }},
		{name: "early-stopping", usage: "stop after `N` epochs without a better one (0: never)", set: count(func(s *orchestrate.TrainSettings) *int { return &s.EarlyStopping })},
		{name: "best-by", usage: "`FIGURE` on the validation part that makes an epoch the best: " + strings.Join(orchestrate.BestBy(), ", ") + " (accuracy)",
			set: func(s *orchestrate.TrainSettings, text string) error { s.BestBy = text; return nil }},
		{name: "evaluate-every", usage: "validate every `N` epochs (1)", set: count(func(s *orchestrate.TrainSettings) *int { return &s.EvaluateEvery })},
		{name: "save-every", usage: "write a checkpoint and weights every `N` epochs (1)", set: count(func(s *orchestrate.TrainSettings) *int { return &s.SaveEvery })},
		{name: "seed", usage: "`SEED` of parameters, shuffles, augmentation and the validation part (0)", set: func(s *orchestrate.TrainSettings, text string) (err error) {
			if s.Seed, err = strconv.ParseUint(text, 10, 64); err != nil {
				return errors.New("want a whole number from 0")
			}
			return nil
		}},
	}
}

func names[T any](list []T, id func(T) string) string {
	out := make([]string, len(list))
	for i, v := range list {
		out[i] = id(v)
	}
	return strings.Join(out, ", ")
}

// defaultGamma is what schedule step multiplies the rate by.
const defaultGamma = .1

func trainCommand(env environment) *cli.Command {
	flags := []cli.Flag{
		&cli.StringFlag{Name: "net", Usage: "`NET` of assay list nets", Category: whatCategory},
		&cli.StringFlag{Name: "weights", Usage: "start from a weights `FILE` or published version (default: drawn from the seed)", Category: whatCategory},
		&cli.StringFlag{Name: "data", Usage: "folder, archive, table or array `PATH`", Category: whatCategory},
		&cli.StringFlag{Name: "split", Usage: "`SPLIT` to train on (default: train, or everything where there are no splits)", Category: whatCategory},
		&cli.StringFlag{Name: "validation", Usage: "`PART` to validate on: a split, a fraction of the training part (stratified, by the seed), or none (default: split val if there is one, else 0.1)", Category: whatCategory},
		&cli.StringFlag{Name: "labels", Usage: "`FILE` of \"file class\" lines (default: labels.txt beside the images)", Category: whatCategory},
		&cli.StringFlag{Name: "limit", Usage: "`N` training examples, the classes in turn", Category: whatCategory},
		&cli.StringFlag{Name: "preset", Usage: "preprocessing: a `PRESET` of assay list presets or a YAML file (default: the weights' own, table for tables, else the net's)", Category: whatCategory},
		&cli.StringFlag{Name: "classes", Usage: "`N` classes (default: the weights', else the data's)", Category: whatCategory},
		&cli.StringFlag{Name: "optimizer", Usage: "`OPTIMIZER`: " + names(orchestrate.Optimizers(), func(o orchestrate.OptimizerInfo) string { return o.ID }) + " (sgd; adam)", Category: trainCategory},
	}
	for _, s := range trainSettings() {
		if s.boolean {
			flags = append(flags, &cli.BoolFlag{Name: s.name, Usage: s.usage, Category: trainCategory, DefaultText: "see there"})
			continue
		}
		flags = append(flags, &cli.StringFlag{Name: s.name, Usage: s.usage, Category: trainCategory})
	}
	for _, f := range runFlags() {
		if !slices.Contains([]string{"batch", "shard", "resolve-only"}, f.Names()[0]) {
			flags = append(flags, f)
		}
	}
	return &cli.Command{
		Name:  "train",
		Usage: "train a net, or go on training one",
		Flags: flags,
		Action: func(c *cli.Context) error {
			job, err := trainJob(c, env)
			if err != nil {
				return err
			}
			return runTraining(c, env, job)
		},
	}
}

func trainJob(c *cli.Context, env environment) (job orchestrate.TrainJob, err error) {
	if err := noPositionals(c); err != nil {
		return job, err
	}
	if c.String("net") == "" {
		return job, usage.Errorf("no net: give one with --net NET (assay list nets shows them)")
	}
	if c.String("data") == "" {
		return job, usage.Errorf("no data: give a folder, archive, table or array with --data PATH")
	}
	limit, err := number(c, "limit", 0)
	if err != nil {
		return job, err
	}
	classes, err := number(c, "classes", 2)
	if err != nil {
		return job, err
	}
	run := &orchestrate.Plan{}
	if err := overrideRun(c, run); err != nil {
		return job, err
	}
	return orchestrate.TrainJob{
		Net: c.String("net"), Weights: c.String("weights"), Classes: int(classes), Preset: c.String("preset"),
		Data:       orchestrate.DataPlan{Path: c.String("data"), Split: c.String("split"), Labels: c.String("labels"), Limit: int(limit)},
		Validation: c.String("validation"), Optimizer: c.String("optimizer"), Settings: settingsOf(c),
		Device: run.Device, Precision: run.Precision, Threads: run.Threads,
		Out: c.String("out"), MustExist: c.Bool("resume"), Open: env.open,
		Env: programFacts(),
	}, nil
}

// settingsOf applies the flags that were given.
func settingsOf(c *cli.Context) func(*orchestrate.TrainSettings) error {
	return func(s *orchestrate.TrainSettings) error {
		for _, f := range trainSettings() {
			if !c.IsSet(f.name) {
				continue
			}
			text := c.String(f.name)
			if f.boolean {
				text = strconv.FormatBool(c.Bool(f.name))
			}
			if err := f.set(s, text); err != nil {
				return usage.Errorf("--%s %q: %w", f.name, text, err)
			}
		}
		if s.Momentum == 0 && !c.IsSet("nesterov") {
			s.Nesterov = false // which --momentum 0 means
		}
		if s.Schedule == "step" && !c.IsSet("gamma") {
			s.Gamma = defaultGamma
		}
		return nil
	}
}

// programFacts go to env.json.
func programFacts() map[string]any {
	return map[string]any{"assay": version(), "go": runtime.Version(), "os": runtime.GOOS + "/" + runtime.GOARCH,
		"cpus": runtime.NumCPU(), "modules": modules()}
}

// trained is what train says in JSON. Accuracies are fractions on the
// validation part, null without one.
type trained struct {
	Net     string  `json:"net"`
	Epochs  int     `json:"epochs"`
	Stopped bool    `json:"stoppedEarly"`
	Best    epoch   `json:"best"`
	Last    epoch   `json:"last"`
	Seconds float64 `json:"seconds"`
	// Weights are files, absent without OUT.
	Weights *trainedFiles `json:"weights,omitempty"`
}

type trainedFiles struct {
	Best string `json:"best"`
	Last string `json:"last"`
}

type epoch struct {
	Epoch              int      `json:"epoch"`
	Loss               float64  `json:"loss"`
	Accuracy           float64  `json:"accuracy"`
	ValidationLoss     *float64 `json:"validationLoss"`
	ValidationAccuracy *float64 `json:"validationAccuracy"`
}

func runTraining(c *cli.Context, env environment, job orchestrate.TrainJob) error {
	p := newProgress(env, c.Bool("json"), c.Bool("quiet"))
	defer p.close()
	job.Progress = p.event
	outcome, err := orchestrate.RunTraining(c.Context, job)
	p.close()
	if errors.Is(err, context.Canceled) && job.Out == "" {
		return fmt.Errorf("%w; without --out nothing is kept", err)
	}
	if err != nil {
		return err
	}
	if job.Out == "" {
		p.note("nothing is kept without --out FOLDER")
	} else {
		path, err := pages.Write(c.Context, job.Out, pages.Options{})
		if err != nil {
			return err
		}
		p.note("report: " + path)
	}
	result := trainedOf(outcome, job.Out)
	if c.Bool("json") {
		return printJSON(env, result)
	}
	fmt.Fprintln(env.stdout, result.line())
	return nil
}

func trainedOf(o orchestrate.TrainOutcome, out string) trained {
	of := func(e orchestrate.EpochResult) epoch {
		return epoch{e.Epoch, e.Loss, e.Accuracy, e.ValidationLoss, e.ValidationAccuracy}
	}
	r := trained{Net: o.Plan.Net, Epochs: len(o.History), Stopped: o.Stopped,
		Best: of(o.History[o.BestEpoch-1]), Last: of(o.History[len(o.History)-1])}
	for _, e := range o.History {
		r.Seconds += e.Seconds
	}
	if out != "" {
		r.Weights = &trainedFiles{filepath.Join(out, orchestrate.BestFile), filepath.Join(out, orchestrate.LastFile)}
	}
	return r
}

// line is the result in one line.
func (r trained) line() string {
	text := fmt.Sprintf("%s: %d epochs in %.1f s", r.Net, r.Epochs, r.Seconds)
	if r.Stopped {
		text += " (stopped early)"
	}
	if r.Best.ValidationAccuracy != nil {
		text += fmt.Sprintf("; validation accuracy %s at epoch %d", percent(r.Best.ValidationAccuracy), r.Best.Epoch)
		if last := r.Last.ValidationAccuracy; last != nil && r.Last.Epoch != r.Best.Epoch {
			text += fmt.Sprintf(", %s at the last", percent(last))
		}
	} else {
		text += fmt.Sprintf("; training accuracy %s, no validation", percent(&r.Last.Accuracy))
	}
	if r.Weights != nil {
		text += "; weights: " + r.Weights.Best + ", " + r.Weights.Last
	}
	return text
}
