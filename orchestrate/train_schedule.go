package orchestrate

import (
	"fmt"
	"math"

	"github.com/assay-xai/assay/internal/usage"
)

// Schedule says how the learning rate changes. The rate of a step is
//
//	Rate * warm-up * factor * feedback
//
// where the warm-up rises in a line from warmupStart at step 0 to 1 at the
// first step after Warmup epochs (PyTorch's LinearLR, a step a batch).
type Schedule struct {
	ID      string
	Summary string
	// factor of a step, counted from 0; an epoch has perEpoch steps. nil: 1.
	factor func(s TrainSettings, step, perEpoch int64) float64
	// feedback of an epoch, of the validation losses before it alone; nil: 1.
	feedback func(s TrainSettings, losses []float64) float64
	// defaults fills what belongs to the schedule and is unset; usual are the
	// settings that were chosen before anything was changed.
	defaults func(s *TrainSettings, usual TrainSettings)
	check    func(s TrainSettings) error
}

// warmupStart is the part of the rate that a warm-up begins with.
const warmupStart = .01

// What gamma and patience are where neither the user nor the defaults of what is
// trained say so: PyTorch's.
const (
	defaultGamma    = .1
	defaultPatience = 10
)

// ReduceLROnPlateau's: a loss is better if it is below the best by that part of it, and
// a rate that would fall by less than that stays.
const (
	plateauThreshold = 1e-4
	plateauEpsilon   = 1e-8
)

// Schedules lists the schedules.
func Schedules() []Schedule {
	plain := func(s TrainSettings) error {
		if s.Milestones != nil || s.StepEvery != 0 {
			return usage.Errorf("milestones and step-every belong to schedule step, not to %s", s.Schedule)
		}
		if s.Gamma != 0 {
			return usage.Errorf("gamma belongs to schedules step and plateau, not to %s", s.Schedule)
		}
		return noPatience(s)
	}
	return []Schedule{
		{ID: "constant", Summary: "the rate stays", check: plain},
		{ID: "step", Summary: "times gamma after each of the milestones, or every so many epochs (PyTorch's MultiStepLR, StepLR)",
			factor: stepFactor, check: checkSteps,
			defaults: func(s *TrainSettings, _ TrainSettings) {
				if isUnset(s.Gamma) {
					s.Gamma = defaultGamma
				}
			}},
		{ID: "cosine", Summary: "half a cosine from the rate to 0, a step a batch, after the warm-up (PyTorch's CosineAnnealingLR)",
			factor: cosineFactor, check: plain},
		{ID: "plateau", Summary: "times gamma whenever the validation loss has been no better for more than so many validations (PyTorch's ReduceLROnPlateau)",
			feedback: plateauFactor, defaults: plateauDefaults, check: checkPlateau},
	}
}

func noPatience(s TrainSettings) error {
	if s.Patience != 0 {
		return usage.Errorf("patience belongs to schedule plateau, not to %s", s.Schedule)
	}
	return nil
}

// unsetPatience and NaN for Gamma say, while settings are being changed, that nobody has
// said what they are: which default is right depends on what the others become.
const unsetPatience = math.MinInt

func isUnset(gamma float64) bool { return math.IsNaN(gamma) }

// settle changes default settings, fills what belongs to the schedule that came of it, and
// says what of the outcome makes no sense. change may be nil.
func settle(usual TrainSettings, change func(*TrainSettings) error) (TrainSettings, error) {
	s := usual
	s.Gamma, s.Patience = math.NaN(), unsetPatience
	if change != nil {
		if err := change(&s); err != nil {
			return s, err
		}
	}
	// One that is not known is told of by Validate.
	if schedule, err := findSchedule(s.Schedule); err == nil && schedule.defaults != nil {
		schedule.defaults(&s, usual)
	}
	if isUnset(s.Gamma) {
		s.Gamma = 0
	}
	if s.Patience == unsetPatience {
		s.Patience = 0
	}
	return s, s.Validate()
}

// plateauDefaults: defaults that have the schedule themselves say how patient they are for
// their number of epochs; for another number it is the same part.
func plateauDefaults(s *TrainSettings, usual TrainSettings) {
	gamma, patience := defaultGamma, defaultPatience
	if usual.Schedule == s.Schedule {
		gamma, patience = usual.Gamma, max(1, s.Epochs*usual.Patience/usual.Epochs)
	}
	if isUnset(s.Gamma) {
		s.Gamma = gamma
	}
	if s.Patience == unsetPatience {
		s.Patience = patience
	}
}

func checkPlateau(s TrainSettings) error {
	switch {
	case s.Milestones != nil || s.StepEvery != 0:
		return usage.Errorf("milestones and step-every belong to schedule step, not to %s", s.Schedule)
	case s.Patience < 0:
		return usage.Errorf("patience %d: want a number of epochs from 0", s.Patience)
	}
	return checkGamma(s)
}

func checkGamma(s TrainSettings) error {
	if !(s.Gamma > 0 && s.Gamma < 1) {
		return usage.Errorf("gamma %v: want more than 0 and less than 1", s.Gamma)
	}
	return nil
}

// plateauFactor is ReduceLROnPlateau's rate after those losses (mode min, relative
// threshold, no cooldown), as a part of the first.
func plateauFactor(s TrainSettings, losses []float64) float64 {
	rate, best, worse := s.Rate, math.Inf(1), 0
	for _, loss := range losses {
		if loss < best*(1-plateauThreshold) {
			best, worse = loss, 0
			continue
		}
		if worse++; worse <= s.Patience {
			continue
		}
		if lower := rate * s.Gamma; rate-lower > plateauEpsilon {
			rate = lower
		}
		worse = 0
	}
	return rate / s.Rate
}

func findSchedule(id string) (Schedule, error) {
	var ids []string
	for _, s := range Schedules() {
		if s.ID == id {
			return s, nil
		}
		ids = append(ids, s.ID)
	}
	return Schedule{}, usage.Errorf("schedule %q: %s", id, DidYouMean(id, ids))
}

// stepFactor counts milestones in epochs from the start of training, warm-up
// included.
func stepFactor(s TrainSettings, step, perEpoch int64) float64 {
	epoch := int(step / perEpoch)
	times := 0
	for _, m := range s.Milestones {
		if epoch >= m {
			times++
		}
	}
	if s.StepEvery > 0 {
		times = epoch / s.StepEvery
	}
	return math.Pow(s.Gamma, float64(times))
}

func checkSteps(s TrainSettings) error {
	switch {
	case s.Milestones == nil && s.StepEvery == 0, s.Milestones != nil && s.StepEvery != 0:
		return usage.Errorf("schedule step: want either milestones (epochs) or step-every (epochs)")
	case s.StepEvery < 0:
		return usage.Errorf("step-every %d: want at least 1", s.StepEvery)
	}
	if err := checkGamma(s); err != nil {
		return err
	}
	if err := noPatience(s); err != nil {
		return err
	}
	for i, m := range s.Milestones {
		if m < 1 || i > 0 && m <= s.Milestones[i-1] {
			return usage.Errorf("milestones %v: want ascending epochs from 1", s.Milestones)
		}
	}
	return nil
}

func cosineFactor(s TrainSettings, step, perEpoch int64) float64 {
	start, end := int64(s.Warmup)*perEpoch, int64(s.Epochs)*perEpoch
	return (1 + math.Cos(math.Pi*float64(max(0, step-start))/float64(end-start))) / 2
}

// Rates are the learning rates of the steps of the epoch that follows history, an epoch
// having perEpoch steps. They are a function of the history alone, so that a training
// that goes on goes on as it would have.
func (s TrainSettings) Rates(perEpoch int, history []EpochResult) ([]float64, error) {
	schedule, err := findSchedule(s.Schedule)
	if err != nil {
		return nil, err
	}
	if perEpoch < 1 {
		return nil, fmt.Errorf("an epoch of %d steps", perEpoch)
	}
	feedback := 1.
	if schedule.feedback != nil {
		var losses []float64
		for _, e := range history {
			if e.ValidationLoss != nil {
				losses = append(losses, *e.ValidationLoss)
			}
		}
		feedback = schedule.feedback(s, losses)
	}
	out := make([]float64, perEpoch)
	rising := float64(s.Warmup * perEpoch)
	for i := range out {
		step := len(history)*perEpoch + i
		warm, factor := 1., 1.
		if float64(step) < rising {
			warm = warmupStart + (1-warmupStart)*float64(step)/rising
		}
		if schedule.factor != nil {
			factor = schedule.factor(s, int64(step), int64(perEpoch))
		}
		out[i] = s.Rate * warm * factor * feedback
	}
	return out, nil
}
