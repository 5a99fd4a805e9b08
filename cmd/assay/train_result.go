package main

import (
	"fmt"
	"path/filepath"

	"github.com/assay-xai/assay/orchestrate"
)

// trainingResult is what train says at the end, as JSON or as a line.
type trainingResult interface{ line() string }

func resultOf(o orchestrate.TrainOutcome, out string) trainingResult {
	if o.Plan.Imputer != nil {
		return trainedImputerOf(o, out)
	}
	return trainedOf(o, out)
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

func trainedOf(o orchestrate.TrainOutcome, out string) trained {
	of := func(e orchestrate.EpochResult) epoch {
		return epoch{e.Epoch, e.Loss, e.Accuracy, e.ValidationLoss, e.ValidationAccuracy}
	}
	return trained{Net: o.Plan.Net, Epochs: len(o.History), Stopped: o.Stopped,
		Best: of(o.History[o.BestEpoch-1]), Last: of(o.History[len(o.History)-1]), Seconds: secondsOf(o), Weights: filesOf(out)}
}

func secondsOf(o orchestrate.TrainOutcome) (seconds float64) {
	for _, e := range o.History {
		seconds += e.Seconds
	}
	return seconds
}

func filesOf(out string) *trainedFiles {
	if out == "" {
		return nil
	}
	return &trainedFiles{filepath.Join(out, orchestrate.BestFile), filepath.Join(out, orchestrate.LastFile)}
}

// line is the result in one line.
func (r trained) line() string {
	text := took(r.Net, r.Epochs, r.Seconds, r.Stopped)
	if r.Best.ValidationAccuracy != nil {
		text += fmt.Sprintf("; validation accuracy %s at epoch %d", percent(r.Best.ValidationAccuracy), r.Best.Epoch)
		if last := r.Last.ValidationAccuracy; last != nil && r.Last.Epoch != r.Best.Epoch {
			text += fmt.Sprintf(", %s at the last", percent(last))
		}
	} else {
		text += fmt.Sprintf("; training accuracy %s, no validation", percent(&r.Last.Accuracy))
	}
	return text + r.Weights.line()
}

func took(what string, epochs int, seconds float64, stopped bool) string {
	text := fmt.Sprintf("%s: %d epochs in %.1f s", what, epochs, seconds)
	if stopped {
		text += " (stopped early)"
	}
	return text
}

func (f *trainedFiles) line() string {
	if f == nil {
		return ""
	}
	return "; weights: " + f.Best + ", " + f.Last
}

// trainedImputer is trained for an imputer.
type trainedImputer struct {
	Imputer string       `json:"imputer"`
	Shape   []int        `json:"shape"`
	Epochs  int          `json:"epochs"`
	Stopped bool         `json:"stoppedEarly"`
	Best    imputerEpoch `json:"best"`
	Last    imputerEpoch `json:"last"`
	// MeanImageError is what the mean image alone would have as validation error, null
	// where nothing was validated; KnownShare is the part of the pixels that is not
	// removed, on average, which a discriminator is right about that cannot tell.
	MeanImageError *float64 `json:"meanImageError"`
	KnownShare     float64  `json:"knownShare"`
	Seconds        float64  `json:"seconds"`
	// Weights are files, absent without OUT.
	Weights *trainedFiles `json:"weights,omitempty"`
}

// imputerEpoch: discriminators judge pixels to be imputed or not, and are right about
// fractions of them; the error is the mean squared one of imputed images over all of their
// pixels, in 0..1. What is of the validation part is null where it was not measured.
type imputerEpoch struct {
	Epoch                   int      `json:"epoch"`
	GeneratorLoss           float64  `json:"generatorLoss"`
	DiscriminatorAccuracy   float64  `json:"discriminatorAccuracy"`
	ValidationError         *float64 `json:"validationError"`
	ValidationDiscriminator *float64 `json:"validationDiscriminatorAccuracy"`
}

func trainedImputerOf(o orchestrate.TrainOutcome, out string) trainedImputer {
	of := func(e orchestrate.EpochResult) imputerEpoch {
		return imputerEpoch{e.Epoch, e.Loss, e.Accuracy, e.ValidationLoss, e.ValidationAccuracy}
	}
	return trainedImputer{Imputer: o.Plan.Imputer.ID, Shape: o.Plan.Imputer.Shape, Epochs: len(o.History), Stopped: o.Stopped,
		Best: of(o.History[o.BestEpoch-1]), Last: of(o.History[len(o.History)-1]),
		MeanImageError: o.History[o.BestEpoch-1].MeanImageError, KnownShare: o.Plan.Imputer.KnownShare(), Seconds: secondsOf(o), Weights: filesOf(out)}
}

// line is the result in one line.
func (r trainedImputer) line() string {
	text := took(r.Imputer, r.Epochs, r.Seconds, r.Stopped)
	known := fmt.Sprintf("(%s are known on average)", percent(&r.KnownShare))
	if r.Best.ValidationError != nil {
		text += fmt.Sprintf("; validation error (MSE) %.4g at epoch %d", *r.Best.ValidationError, r.Best.Epoch)
		if last := r.Last.ValidationError; last != nil && r.Last.Epoch != r.Best.Epoch {
			text += fmt.Sprintf(", %.4g at the last", *last)
		}
		if r.MeanImageError != nil {
			text += fmt.Sprintf("; the mean image alone: about %.3g", *r.MeanImageError)
		}
		text += fmt.Sprintf("; discriminator right about %s of pixels %s", percent(r.Best.ValidationDiscriminator), known)
	} else {
		text += fmt.Sprintf("; generator's loss %.4g, discriminator right about %s of training pixels %s, no validation",
			r.Last.GeneratorLoss, percent(&r.Last.DiscriminatorAccuracy), known)
	}
	return text + r.Weights.line()
}
