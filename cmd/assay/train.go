package main

import (
	"context"
	"errors"
	"fmt"
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
const trainCategory = "Training (defaults on images; on columns; of imputers)"

// imputerCategory is the flags' of what imputer is trained.
const imputerCategory = "Imputer (with --imputer)"

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
		{name: "epochs", usage: "`N` passes over the data (30; 100; 100)", set: count(func(s *orchestrate.TrainSettings) *int { return &s.Epochs })},
		{name: "batch-size", usage: "`N` examples a step (128; 32; 64)", set: count(func(s *orchestrate.TrainSettings) *int { return &s.BatchSize })},
		{name: "rate", usage: "learning `RATE` (sgd .05, adam .001, of imputers .0005)", set: real(func(s *orchestrate.TrainSettings) *float64 { return &s.Rate })},
		{name: "momentum", usage: "`M` of sgd (.9)", set: real(func(s *orchestrate.TrainSettings) *float64 { return &s.Momentum })},
		{name: "nesterov", usage: "Nesterov's momentum (with sgd on images; no; no): --nesterov=false for none", boolean: true,
			set: func(s *orchestrate.TrainSettings, text string) error { s.Nesterov = text == "true"; return nil }},
		{name: "weight-decay", usage: "`D` times the parameters is added to the gradient (sgd on images 5e-4, else 0)", set: real(func(s *orchestrate.TrainSettings) *float64 { return &s.WeightDecay })},
		{name: "betas", usage: "`B1,B2` of adam (.9,.999; .9,.999; .5,.999)", set: func(s *orchestrate.TrainSettings, text string) error {
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
		{name: "schedule", usage: "`SCHEDULE` of the rate: " + names(orchestrate.Schedules(), func(s orchestrate.Schedule) string { return s.ID }) + " (cosine; constant; plateau, or constant with --validation none)",
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
		{name: "gamma", usage: "`FACTOR` of schedules step and plateau (.1; .1; .2)", set: real(func(s *orchestrate.TrainSettings) *float64 { return &s.Gamma })},
		{name: "patience", usage: "`N` validations without a better loss after which schedule plateau multiplies the rate by gamma (10; 10; a quarter of the epochs)", set: count(func(s *orchestrate.TrainSettings) *int { return &s.Patience })},
		{name: "augment", usage: "`CHANGES` of training images: 'crop(4),flip', or none (none; none; flip)", set: func(s *orchestrate.TrainSettings, text string) error { s.Augment = text; return nil }},
		{name: "early-stopping", usage: "stop after `N` epochs without a better one (0: never)", set: count(func(s *orchestrate.TrainSettings) *int { return &s.EarlyStopping })},
		{name: "best-by", usage: "`FIGURE` on the validation part that makes an epoch the best: " + strings.Join(orchestrate.BestBy(), ", ") + " (accuracy; accuracy; loss)",
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

// imputerSetting is a flag that changes the imputer.
type imputerSetting struct {
	name, usage string
	set         func(i *orchestrate.ImputerTraining, text string) error
}

// imputerSettings lists the flags that change the imputer.
func imputerSettings() []imputerSetting {
	real := func(field func(*orchestrate.ImputerTraining) *float64) func(*orchestrate.ImputerTraining, string) error {
		return func(i *orchestrate.ImputerTraining, text string) (err error) {
			if *field(i), err = strconv.ParseFloat(text, 64); err != nil {
				return errors.New("want a number")
			}
			return nil
		}
	}
	return []imputerSetting{
		{"alpha", "weight `A` of the error on pixels that are known (100)", real(func(i *orchestrate.ImputerTraining) *float64 { return &i.Alpha })},
		{"hint-rate", "`P`robability that the discriminator is told of a pixel (.01)", real(func(i *orchestrate.ImputerTraining) *float64 { return &i.HintRate })},
		{"maximum-rate", "up to this `PART` of an image's pixels is removed (.5)", real(func(i *orchestrate.ImputerTraining) *float64 { return &i.MaximumRate })},
		{"width", "`N` channels of the first layer (that of --weights, else 64)", func(i *orchestrate.ImputerTraining, text string) (err error) {
			if i.Width, err = strconv.Atoi(text); err != nil {
				return errors.New("want a whole number")
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

func trainCommand(env environment) *cli.Command {
	flags := []cli.Flag{
		&cli.StringFlag{Name: "net", Usage: "`NET` of assay list nets", Category: whatCategory},
		&cli.StringFlag{Name: "imputer", Usage: "in place of a net: the `IMPUTER` to train: " + names(orchestrate.TrainableImputers(), func(i orchestrate.TrainableImputer) string { return i.ID }) + " (for --generator of studies that impute)", Category: whatCategory},
		&cli.StringFlag{Name: "weights", Usage: "start from a weights `FILE` or published version (default: drawn from the seed)", Category: whatCategory},
		&cli.StringFlag{Name: "data", Usage: "folder, archive, table or array `PATH`", Category: whatCategory},
		&cli.StringFlag{Name: "split", Usage: "`SPLIT` to train on (default: train, or everything where there are no splits)", Category: whatCategory},
		&cli.StringFlag{Name: "validation", Usage: "`PART` to validate on: a split, a fraction of the training part (by the seed, stratified where there are labels), or none (default: split val if there is one, else 0.1)", Category: whatCategory},
		&cli.StringFlag{Name: "labels", Usage: "`FILE` of \"file class\" lines (default: labels.txt beside the images)", Category: whatCategory},
		&cli.StringFlag{Name: "limit", Usage: "`N` training examples, the classes in turn", Category: whatCategory},
		&cli.StringFlag{Name: "preset", Usage: "preprocessing: a `PRESET` of assay list presets or a YAML file (default: the weights' own, table for tables, else the net's; of imputers: the data as it is)", Category: whatCategory},
		&cli.StringFlag{Name: "classes", Usage: "`N` classes (default: the weights', else the data's)", Category: whatCategory},
		&cli.StringFlag{Name: "optimizer", Usage: "`OPTIMIZER`: " + names(orchestrate.Optimizers(), func(o orchestrate.OptimizerInfo) string { return o.ID }) + " (sgd; adam; adam)", Category: trainCategory},
	}
	for _, s := range trainSettings() {
		if s.boolean {
			flags = append(flags, &cli.BoolFlag{Name: s.name, Usage: s.usage, Category: trainCategory, DefaultText: "see there"})
			continue
		}
		flags = append(flags, &cli.StringFlag{Name: s.name, Usage: s.usage, Category: trainCategory})
	}
	for _, s := range imputerSettings() {
		flags = append(flags, &cli.StringFlag{Name: s.name, Usage: s.usage, Category: imputerCategory})
	}
	for _, f := range runFlags() {
		if !slices.Contains([]string{"batch", "shard", "resolve-only"}, f.Names()[0]) {
			flags = append(flags, f)
		}
	}
	return &cli.Command{
		Name:  "train",
		Usage: "train a net or an imputer, or go on training one",
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
	if err := whatIsTrained(c); err != nil {
		return job, err
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
		Net: c.String("net"), Imputer: c.String("imputer"), ImputerSettings: imputerOf(c), Weights: c.String("weights"), Classes: int(classes), Preset: c.String("preset"),
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
		return nil
	}
}

// whatIsTrained says what of the flags that name net, imputer and data is missing or too
// much.
func whatIsTrained(c *cli.Context) error {
	net, imputer := c.String("net"), c.String("imputer")
	switch {
	case net == "" && imputer == "":
		return usage.Errorf("no net: give one with --net NET (assay list nets shows them), or an imputer with --imputer")
	case net != "" && imputer != "":
		return usage.Errorf("--net %s and --imputer %s: one training trains one of them", net, imputer)
	case imputer != "" && c.IsSet("classes"):
		return usage.Errorf("--classes: imputers know of no classes: leave it out")
	case c.String("data") == "":
		return usage.Errorf("no data: give a folder, archive, table or array with --data PATH")
	}
	for _, f := range imputerSettings() {
		if imputer == "" && c.IsSet(f.name) {
			return usage.Errorf("--%s: belongs to imputers (--imputer), not to nets", f.name)
		}
	}
	return nil
}

// imputerOf applies the imputer's flags that were given.
func imputerOf(c *cli.Context) func(*orchestrate.ImputerTraining) error {
	return func(i *orchestrate.ImputerTraining) error {
		for _, f := range imputerSettings() {
			if !c.IsSet(f.name) {
				continue
			}
			if err := f.set(i, c.String(f.name)); err != nil {
				return usage.Errorf("--%s %q: %w", f.name, c.String(f.name), err)
			}
		}
		return nil
	}
}

// programFacts go to env.json.
func programFacts() map[string]any {
	return map[string]any{"assay": version(), "go": runtime.Version(), "os": runtime.GOOS + "/" + runtime.GOARCH,
		"cpus": runtime.NumCPU(), "modules": modules()}
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
	result := resultOf(outcome, job.Out)
	if c.Bool("json") {
		return printJSON(env, result)
	}
	fmt.Fprintln(env.stdout, result.line())
	return nil
}
