package orchestrate

import (
	"fmt"
	"math"
	"slices"

	"github.com/assay-xai/assay/internal/usage"
)

// TrainSettings say how a net is trained: everything but the net and the data.
// DefaultTraining fills them; the zero value is not a training.
type TrainSettings struct {
	Epochs    int `yaml:"epochs" json:"epochs"`
	BatchSize int `yaml:"batchSize" json:"batchSize"`

	// Optimizer is one of Optimizers; what it does not use stays zero.
	Optimizer   string    `yaml:"optimizer" json:"optimizer"`
	Rate        float64   `yaml:"rate" json:"rate"`
	Momentum    float64   `yaml:"momentum,omitempty" json:"momentum,omitempty"`
	Nesterov    bool      `yaml:"nesterov,omitempty" json:"nesterov,omitempty"`
	WeightDecay float64   `yaml:"weightDecay,omitempty" json:"weightDecay,omitempty"`
	Betas       []float64 `yaml:"betas,omitempty" json:"betas,omitempty"`
	Epsilon     float64   `yaml:"epsilon,omitempty" json:"epsilon,omitempty"`
	// LabelSmoothing is in [0,1), PyTorch's.
	LabelSmoothing float64 `yaml:"labelSmoothing,omitempty" json:"labelSmoothing,omitempty"`

	// Schedule is one of Schedules. Warmup is a number of epochs in which the
	// rate rises to it. Milestones are epochs after which schedule step
	// multiplies the rate by Gamma; StepEvery instead does so every so many. Schedule
	// plateau does so when the validation loss was no better for more than Patience
	// validations.
	Schedule   string  `yaml:"schedule" json:"schedule"`
	Warmup     int     `yaml:"warmup,omitempty" json:"warmup,omitempty"`
	Milestones []int   `yaml:"milestones,omitempty" json:"milestones,omitempty"`
	StepEvery  int     `yaml:"stepEvery,omitempty" json:"stepEvery,omitempty"`
	Gamma      float64 `yaml:"gamma,omitempty" json:"gamma,omitempty"`
	Patience   int     `yaml:"patience,omitempty" json:"patience,omitempty"`

	// Augment lists changes of the examples, "crop(4),flip"; "" is none.
	Augment string `yaml:"augment,omitempty" json:"augment,omitempty"`

	// EarlyStopping is how many epochs training goes on without a better one;
	// 0: to the end. BestBy is what makes an epoch better: one of BestBy.
	EarlyStopping int    `yaml:"earlyStopping,omitempty" json:"earlyStopping,omitempty"`
	BestBy        string `yaml:"bestBy" json:"bestBy"`
	// EvaluateEvery and SaveEvery count epochs; the last is always among them.
	EvaluateEvery int    `yaml:"evaluateEvery" json:"evaluateEvery"`
	SaveEvery     int    `yaml:"saveEvery" json:"saveEvery"`
	Seed          uint64 `yaml:"seed" json:"seed"`
}

// OptimizerInfo describes an optimiser.
type OptimizerInfo struct {
	ID      string
	Summary string
	// defaults fills what belongs to the optimiser.
	defaults func(s *TrainSettings)
	// unused lists settings that belong to others and are set.
	unused func(s TrainSettings) []string
}

// Optimizers lists the optimisers, with PyTorch's update rules.
func Optimizers() []OptimizerInfo {
	return []OptimizerInfo{
		{
			ID: "sgd", Summary: "stochastic gradient descent, with momentum .9 unless told otherwise",
			defaults: func(s *TrainSettings) { s.Rate, s.Momentum = .05, .9 },
			unused: func(s TrainSettings) []string {
				return named(map[string]bool{"betas": s.Betas != nil, "epsilon": s.Epsilon != 0})
			},
		},
		{
			ID: "adam", Summary: "Adam (Kingma and Ba 2015); weight decay is added to the gradient",
			defaults: func(s *TrainSettings) { s.Rate, s.Betas, s.Epsilon = .001, []float64{.9, .999}, 1e-8 },
			unused: func(s TrainSettings) []string {
				return named(map[string]bool{"momentum": s.Momentum != 0, "nesterov": s.Nesterov})
			},
		},
	}
}

func named(set map[string]bool) []string {
	var out []string
	for _, name := range sortedKeys(set) {
		if set[name] {
			out = append(out, name)
		}
	}
	return out
}

func findOptimizer(id string) (OptimizerInfo, error) {
	var ids []string
	for _, o := range Optimizers() {
		if o.ID == id {
			return o, nil
		}
		ids = append(ids, o.ID)
	}
	return OptimizerInfo{}, usage.Errorf("optimizer %q: %s", id, DidYouMean(id, ids))
}

// BestBy lists what can make an epoch the best: the accuracy on the validation
// part (where equal, the loss), or its loss.
func BestBy() []string { return []string{"accuracy", "loss"} }

// DefaultTraining are settings that suit small nets: on columns (tables) Adam
// at 1e-3 for 100 epochs of batches of 32; on images SGD at .05 with
// Nesterov's momentum, weight decay 5e-4 and a cosine schedule for 30 epochs of
// batches of 128. Another optimiser than the default ("") brings its own rate.
func DefaultTraining(columns bool, optimizer string) (TrainSettings, error) {
	s := TrainSettings{Optimizer: "sgd", Epochs: 30, BatchSize: 128, WeightDecay: 5e-4, Schedule: "cosine"}
	if columns {
		s = TrainSettings{Optimizer: "adam", Epochs: 100, BatchSize: 32, Schedule: "constant"}
	}
	if optimizer != "" {
		s.Optimizer = optimizer
	}
	o, err := findOptimizer(s.Optimizer)
	if err != nil {
		return s, err
	}
	o.defaults(&s)
	s.Nesterov = !columns && s.Momentum > 0
	if s.Optimizer == "adam" {
		s.WeightDecay = 0
	}
	s.BestBy, s.EvaluateEvery, s.SaveEvery = "accuracy", 1, 1
	return s, nil
}

// Validate says what of the settings makes no sense.
func (s TrainSettings) Validate() error {
	o, err := findOptimizer(s.Optimizer)
	if err != nil {
		return err
	}
	finite := func(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }
	for _, c := range []struct {
		bad  bool
		what string
	}{
		{s.Epochs < 1, fmt.Sprintf("epochs %d: want at least 1", s.Epochs)},
		{s.BatchSize < 1, fmt.Sprintf("batch-size %d: want at least 1", s.BatchSize)},
		{!(s.Rate > 0) || !finite(s.Rate), fmt.Sprintf("rate %v: want more than 0", s.Rate)},
		{!(s.Momentum >= 0 && s.Momentum < 1), fmt.Sprintf("momentum %v: want 0 to less than 1", s.Momentum)},
		{s.Nesterov && s.Momentum == 0, "nesterov: wants a momentum above 0"},
		{!(s.WeightDecay >= 0) || !finite(s.WeightDecay), fmt.Sprintf("weight-decay %v: want 0 or more", s.WeightDecay)},
		{s.Betas != nil && (len(s.Betas) != 2 || !inUnit(s.Betas[0]) || !inUnit(s.Betas[len(s.Betas)-1])), fmt.Sprintf("betas %v: want two numbers from 0 to less than 1", s.Betas)},
		{!(s.Epsilon >= 0) || !finite(s.Epsilon), fmt.Sprintf("epsilon %v: want 0 or more", s.Epsilon)},
		{!inUnit(s.LabelSmoothing), fmt.Sprintf("label-smoothing %v: want 0 to less than 1", s.LabelSmoothing)},
		{s.EarlyStopping < 0, fmt.Sprintf("early-stopping %d: want a number of epochs, or 0 for none", s.EarlyStopping)},
		{!slices.Contains(BestBy(), s.BestBy), fmt.Sprintf("best-by %q: %s", s.BestBy, DidYouMean(s.BestBy, BestBy()))},
		{s.EvaluateEvery < 1, fmt.Sprintf("evaluate-every %d: want at least 1", s.EvaluateEvery)},
		{s.SaveEvery < 1, fmt.Sprintf("save-every %d: want at least 1", s.SaveEvery)},
		{s.Warmup < 0 || s.Warmup > 0 && s.Warmup >= s.Epochs, fmt.Sprintf("warmup %d: want 0 to less than the %d epochs", s.Warmup, s.Epochs)},
	} {
		if c.bad {
			return usage.Errorf("%s", c.what)
		}
	}
	if foreign := o.unused(s); len(foreign) > 0 {
		return usage.Errorf("%s: optimizer %s has none: leave it out, or take another optimizer", foreign[0], s.Optimizer)
	}
	schedule, err := findSchedule(s.Schedule)
	if err != nil {
		return err
	}
	if err := schedule.check(s); err != nil {
		return err
	}
	_, err = ParseAugment(s.Augment)
	return err
}

func inUnit(v float64) bool { return v >= 0 && v < 1 }

// checkValidation says what cannot be without a validation part.
func (s TrainSettings) checkValidation() error {
	schedule, err := findSchedule(s.Schedule)
	switch {
	case err != nil:
		return err
	case s.EarlyStopping > 0:
		return usage.Errorf("early-stopping: wants a validation part")
	case schedule.feedback != nil:
		return usage.Errorf("schedule %s: wants a validation part; schedule constant does without one", s.Schedule)
	}
	return nil
}

// needsValidation says whether the schedule goes by what a validation part says.
func (s TrainSettings) needsValidation() bool {
	schedule, err := findSchedule(s.Schedule)
	return err == nil && schedule.feedback != nil
}

// optimizer is what a trainer is told.
func (s TrainSettings) optimizer() Optimizer {
	o := Optimizer{ID: s.Optimizer, Momentum: s.Momentum, Nesterov: s.Nesterov, WeightDecay: s.WeightDecay, Epsilon: s.Epsilon}
	if len(s.Betas) == 2 {
		o.Beta1, o.Beta2 = s.Betas[0], s.Betas[1]
	}
	return o
}

// augmentation is a way to change examples.
type augmentation struct {
	id, usage string
	apply     func(s Spec, a *Augment) error
}

func augmentations() []augmentation {
	return []augmentation{
		{"crop", "crop(4): a window of the image's size, out of the image with a border of 4 zeros", func(s Spec, a *Augment) error {
			text := ""
			switch {
			case len(s.Args) == 1 && len(s.Params) == 0:
				text = s.Args[0].String()
			case len(s.Args) == 0 && len(s.Params) == 1:
				text = formatScalar(s.Params["pad"])
			}
			if n, ok := scalar(text).(int); ok && n >= 1 && n <= maxPad {
				a.Pad = n
				return nil
			}
			return usage.Errorf("augment %s: want crop(N) with a border of 1 to %d pixels", s, maxPad)
		}},
		{"flip", "flip: half of the images, left to right", func(s Spec, a *Augment) error {
			if len(s.Args)+len(s.Params) > 0 {
				return usage.Errorf("augment %s: flip takes nothing", s)
			}
			a.Flip = true
			return nil
		}},
	}
}

// maxPad bounds borders: larger ones are mistakes.
const maxPad = 1024

// ParseAugment reads "crop(4),flip"; "" and "none" are no augmentation.
func ParseAugment(text string) (Augment, error) {
	var a Augment
	if text == "" || text == "none" {
		return a, nil
	}
	specs, err := ParseSpecs(text)
	if err != nil {
		return a, usage.Errorf("augment %w", err)
	}
	var ids []string
	for _, known := range augmentations() {
		ids = append(ids, known.id)
	}
	for i, s := range specs {
		at := slices.Index(ids, s.Name)
		if at < 0 {
			return a, usage.Errorf("augment %q: %s", s.Name, DidYouMean(s.Name, ids))
		}
		if slices.ContainsFunc(specs[:i], func(o Spec) bool { return o.Name == s.Name }) {
			return a, usage.Errorf("augment: %s is there twice", s.Name)
		}
		if err := augmentations()[at].apply(s, &a); err != nil {
			return a, err
		}
	}
	return a, nil
}
