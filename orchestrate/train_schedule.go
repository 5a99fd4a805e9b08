package orchestrate

import (
	"fmt"
	"math"

	"github.com/assay-xai/assay/internal/usage"
)

// Schedule says how the learning rate changes. The rate of a step is
//
//	Rate * warm-up * factor
//
// where the warm-up rises in a line from warmupStart at step 0 to 1 at the
// first step after Warmup epochs (PyTorch's LinearLR, a step a batch).
type Schedule struct {
	ID      string
	Summary string
	// factor of a step, counted from 0; an epoch has perEpoch steps.
	factor func(s TrainSettings, step, perEpoch int64) float64
	check  func(s TrainSettings) error
}

// warmupStart is the part of the rate that a warm-up begins with.
const warmupStart = .01

// Schedules lists the schedules.
func Schedules() []Schedule {
	constant := func(TrainSettings, int64, int64) float64 { return 1 }
	noSteps := func(s TrainSettings) error {
		if s.Milestones != nil || s.StepEvery != 0 || s.Gamma != 0 {
			return usage.Errorf("milestones, step-every and gamma belong to schedule step, not to %s", s.Schedule)
		}
		return nil
	}
	return []Schedule{
		{"constant", "the rate stays", constant, noSteps},
		{"step", "times gamma after each of the milestones, or every so many epochs (PyTorch's MultiStepLR, StepLR)", stepFactor, checkSteps},
		{"cosine", "half a cosine from the rate to 0, a step a batch, after the warm-up (PyTorch's CosineAnnealingLR)", cosineFactor, noSteps},
	}
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
	case !(s.Gamma > 0 && s.Gamma < 1):
		return usage.Errorf("gamma %v: want more than 0 and less than 1", s.Gamma)
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

// Rates are the learning rates of all steps of a training, given how many steps
// an epoch has.
func (s TrainSettings) Rates(perEpoch int) ([]float64, error) {
	schedule, err := findSchedule(s.Schedule)
	if err != nil {
		return nil, err
	}
	if perEpoch < 1 {
		return nil, fmt.Errorf("an epoch of %d steps", perEpoch)
	}
	out := make([]float64, s.Epochs*perEpoch)
	rising := float64(s.Warmup * perEpoch)
	for i := range out {
		warm := 1.
		if float64(i) < rising {
			warm = warmupStart + (1-warmupStart)*float64(i)/rising
		}
		out[i] = s.Rate * warm * schedule.factor(s, int64(i), int64(perEpoch))
	}
	return out, nil
}
