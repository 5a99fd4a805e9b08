package orchestrate

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/assay-xai/assay/dataset"
	"github.com/assay-xai/assay/internal/usage"
	"github.com/assay-xai/assay/weights"
)

// Imputers that are nets are trained by the loop that trains nets; what is theirs is here.

// TrainableImputer describes an imputer that `assay train --imputer` trains.
type TrainableImputer struct {
	ID      string
	Summary string
	// Defaults are those of its own settings, Training those of its training; another
	// optimiser than the default ("") brings its own rate.
	Defaults ImputerTraining
	Training func(optimizer string) (TrainSettings, error)
}

// TrainableImputers lists the imputers that can be trained.
func TrainableImputers() []TrainableImputer {
	return []TrainableImputer{{
		ID: "gain", Summary: "generative adversarial imputation (Yoon et al. 2018), as ROAD has it (Rong et al. 2022, appendix B)",
		Defaults: ImputerTraining{ID: "gain", Alpha: 100, HintRate: .01, MaximumRate: .5, Width: 64},
		Training: gainTraining,
	}}
}

// gainTraining is what ROAD's appendix B and its public code say.
func gainTraining(optimizer string) (TrainSettings, error) {
	s := TrainSettings{Optimizer: orElse(optimizer, "adam"), Epochs: 100, BatchSize: 64, Augment: "flip",
		Schedule: "plateau", Gamma: .2, Patience: 25, BestBy: "loss", EvaluateEvery: 1, SaveEvery: 1}
	o, err := findOptimizer(s.Optimizer)
	if err != nil {
		return s, err
	}
	if o.defaults(&s); s.Optimizer == "adam" {
		s.Rate, s.Betas = 5e-4, []float64{.5, .999}
	}
	return s, nil
}

func findTrainableImputer(id string) (TrainableImputer, error) {
	var ids []string
	for _, i := range TrainableImputers() {
		if i.ID == id {
			return i, nil
		}
		ids = append(ids, i.ID)
	}
	return TrainableImputer{}, usage.Errorf("imputer %q: not one that is trained: %s", id, DidYouMean(id, ids))
}

// Validate says what of the settings makes no sense, but for the shape.
func (i ImputerTraining) Validate() error {
	switch {
	case !(i.Alpha > 0) || !isFinite(i.Alpha):
		return usage.Errorf("alpha %v: want more than 0", i.Alpha)
	case !(i.HintRate > 0 && i.HintRate <= 1):
		return usage.Errorf("hint-rate %v: want a probability, more than 0 and at most 1", i.HintRate)
	case !(i.MaximumRate > 0 && i.MaximumRate <= 1):
		return usage.Errorf("maximum-rate %v: want a part of the pixels, more than 0 and at most 1", i.MaximumRate)
	case i.Width < 1:
		return usage.Errorf("width %d: want a number of channels from 1", i.Width)
	}
	return nil
}

// validateTraining says what of a training's settings does not go with an imputer.
func (i ImputerTraining) validateTraining(s TrainSettings) error {
	switch {
	case s.BestBy != "loss":
		return usage.Errorf("best-by %s: imputers are judged by their error alone: want loss", s.BestBy)
	case s.LabelSmoothing != 0:
		return usage.Errorf("label-smoothing %v: imputers see no labels: leave it out", s.LabelSmoothing)
	}
	return nil
}

// check finds what is wrong with a training in memory.
func (i ImputerTraining) check(s TrainSettings, parts ...TrainingData) error {
	if _, err := findTrainableImputer(i.ID); err != nil {
		return err
	}
	if err := i.Validate(); err != nil {
		return err
	}
	if err := i.validateTraining(s); err != nil {
		return err
	}
	for _, part := range parts {
		if len(part.Labels) > 0 && (len(i.Shape) != 3 || !slices.Equal(part.Shape, i.Shape)) {
			return usage.Errorf("imputer %s is for images of shape %v, there are examples of shape %v", i.ID, i.Shape, part.Shape)
		}
	}
	return nil
}

// figures are an epoch's: what they mean is not what they mean for nets.
func (i ImputerTraining) figures(e EpochResult) string {
	text := fmt.Sprintf("generator's loss %.4f, discriminator right about %.1f %% of pixels", e.Loss, 100*e.Accuracy)
	if e.ValidationLoss != nil {
		text += fmt.Sprintf("; validation error (MSE) %.4g", *e.ValidationLoss)
		if e.MeanImageError != nil {
			text += fmt.Sprintf("; the mean image alone: about %.3g", *e.MeanImageError)
		}
		text += fmt.Sprintf("; discriminator right about %.1f %%", 100**e.ValidationAccuracy)
	}
	return text + fmt.Sprintf(" (%.3g %% are known)", 100*i.KnownShare())
}

// KnownShare is the part of the pixels that is not removed, on average: what a discriminator
// is right about that takes all for real.
func (i ImputerTraining) KnownShare() float64 { return 1 - i.MaximumRate/2 }

// meanImageError is the error that imputing the mean of the training images would have on the
// validation images, [0,1]: the mean square of what pixels differ from it by, times the part
// of them that is removed, on average (what is known counts as no error).
func (i ImputerTraining) meanImageError(train, validation TrainingData, scale float64) float64 {
	mean := make([]float64, train.size())
	train.each(func(k int, v float64) { mean[k] += v })
	for k := range mean {
		mean[k] /= float64(len(train.Labels))
	}
	squared := 0.
	validation.each(func(k int, v float64) {
		d := (v - mean[k]) / scale
		squared += d * d
	})
	return (1 - i.KnownShare()) * squared / float64(len(validation.Labels)*len(mean))
}

// imputer resolves a training of an imputer.
func (r *training) imputer(ctx context.Context) error {
	job, p := r.job, r.plan
	switch {
	case job.Net != "":
		return usage.Errorf("net %s and imputer %s: one training trains one of them", job.Net, job.Imputer)
	case job.Classes != 0:
		return usage.Errorf("classes %d: imputers know of no classes: leave it out", job.Classes)
	}
	known, err := findTrainableImputer(job.Imputer)
	if err != nil {
		return err
	}
	var sd *weights.StateDict
	if job.Weights != "" {
		if sd, err = r.openWeights(known.ID); err != nil {
			return err
		}
	}
	if err := r.imputerSettings(known, sd); err != nil {
		return err
	}
	if r.set, err = openTrainingPart(ctx, job.Data, 0); err != nil {
		return err
	}
	for _, w := range r.set.Warnings {
		job.Progress(Event{Kind: Warning, Message: w})
	}
	if r.set.Len() == 0 {
		return usage.Errorf("%s has nothing to train on", r.set.Path)
	}
	if err := r.imputerPreset(ctx, sd); err != nil {
		return err
	}
	if p.Imputer.Shape, err = r.imageShape(ctx); err != nil {
		return err
	}
	r.info = NetInfo{Net: known.ID, Input: p.Imputer.Shape}
	if sd != nil {
		if err := r.imputerState(ctx, sd); err != nil {
			return err
		}
	}
	return r.divide(ctx)
}

// imputerSettings are the defaults, or what of them follows from the weights and from what
// validates, changed.
func (r *training) imputerSettings(known TrainableImputer, sd *weights.StateDict) (err error) {
	job, p := r.job, r.plan
	width, of := 0, ""
	if sd != nil {
		if width, of = fileWidth(sd); width > 0 {
			known.Defaults.Width = width
		}
	}
	if p.Training, p.Imputer, err = known.settings(job.Optimizer, job.Validation, job.Settings, job.ImputerSettings); err != nil {
		return err
	}
	if width > 0 && p.Imputer.Width != width {
		return usage.Errorf("width %d: %s is of width %d (%s): leave the width out, or start from a file of that width", p.Imputer.Width, p.Weights, width, of)
	}
	usual, err := known.Training(job.Optimizer)
	if err != nil {
		return err
	}
	if s, err := settle(usual, job.Settings); err == nil && s.Schedule != p.Training.Schedule {
		r.notes = append(r.notes, fmt.Sprintf("no validation part: the rate stays as it is (schedule %s, not %s)", p.Training.Schedule, s.Schedule))
	}
	return nil
}

// fileWidth is the width of an imputer in a file and where it stands, 0 where it does not.
func fileWidth(sd *weights.StateDict) (width int, of string) {
	if width, err := strconv.Atoi(sd.Metadata["width"]); err == nil && width > 0 {
		return width, "its metadata"
	}
	if first, ok := sd.Tensors[generatorFirst]; ok && len(first.Shape) > 0 {
		return int(first.Shape[0]), "its " + generatorFirst
	}
	return 0, ""
}

// noValidation is the validation part that there is not.
const noValidation = "none"

// settings are the defaults, changed; the shape is not known yet. A schedule that goes by a
// validation part is no default where there is none.
func (i TrainableImputer) settings(optimizer, validation string, change func(*TrainSettings) error, own func(*ImputerTraining) error) (TrainSettings, *ImputerTraining, error) {
	imputer := i.Defaults
	s, err := i.Training(optimizer)
	if err == nil && validation == noValidation && s.needsValidation() {
		s.Schedule, s.Gamma, s.Patience = "constant", 0, 0
	}
	if err == nil {
		s, err = settle(s, change)
	}
	if err == nil && own != nil {
		err = own(&imputer)
	}
	if err == nil {
		err = imputer.Validate()
	}
	if err == nil {
		err = imputer.validateTraining(s)
	}
	return s, &imputer, err
}

func wantImages(set *dataset.Set, shape []int) error {
	if set.Kind == dataset.Table || len(shape) != 3 {
		return usage.Errorf("%s has examples of shape %v: imputers are trained on images, [channels, height, width]", set.Path, shape)
	}
	return nil
}

// imageShape is that of the first example, as it will be read.
func (r *training) imageShape(ctx context.Context) ([]int, error) {
	if r.set.Kind != dataset.Images {
		_, shape, err := r.set.Values(0)
		if err == nil {
			err = wantImages(r.set, shape)
		}
		return slices.Clone(shape), err
	}
	file, err := r.set.Read(ctx, 0)
	if err != nil {
		return nil, err
	}
	return r.decodedShape(ctx, 0, file, r.plan.Preset)
}

// meanImage is the name of the mean of the training images in a state.
const meanImage = "mfv"

// imputerState takes the parameters of a file, which must be all that the training has.
func (r *training) imputerState(ctx context.Context, sd *weights.StateDict) error {
	p := r.plan
	if net := sd.Metadata["net"]; net != "" {
		return usage.Errorf("%s holds weights of net %s: want a file of assay train --imputer %s", p.Weights, net, p.Imputer.ID)
	}
	t, err := r.b.OpenTrainer(ctx, TrainerSpec{Precision: p.Precision, Seed: p.Training.Seed, Optimizer: p.Training.optimizer(),
		Preset: p.Preset, Imputer: p.Imputer}, nil)
	if err != nil {
		return fmt.Errorf("opening imputer %s: %w", p.Imputer.ID, err)
	}
	defer t.Close()
	own, err := t.Parameters(ctx)
	if err != nil {
		return fmt.Errorf("reading what imputer %s consists of: %w", p.Imputer.ID, err)
	}
	// Before there is data it has no mean image yet.
	shape := []int64{}
	for _, d := range p.Imputer.Shape {
		shape = append(shape, int64(d))
	}
	own[meanImage] = weights.Tensor{Shape: shape}
	r.state = map[string]weights.Tensor{}
	var wrong []string
	for _, name := range sortedKeys(own) {
		got, ok := sd.Tensors[name]
		switch want := own[name]; {
		case !ok:
			wrong = append(wrong, name+" is missing")
		case !slices.Equal(got.Shape, want.Shape):
			wrong = append(wrong, fmt.Sprintf("%s has shape %v, want %v", name, got.Shape, want.Shape))
		default:
			r.state[name] = got
		}
	}
	for _, name := range sortedKeys(sd.Tensors) {
		if _, ok := own[name]; !ok {
			wrong = append(wrong, name+" has no place")
		}
	}
	if len(wrong) == 0 {
		return nil
	}
	const shown = 3
	more := ""
	if n := len(wrong) - shown; n > 0 {
		wrong, more = wrong[:shown], fmt.Sprintf("; and %d more", n)
	}
	return usage.Errorf("%s does not fit imputer %s of width %d for images of shape %v: %s%s",
		p.Weights, p.Imputer.ID, p.Imputer.Width, p.Imputer.Shape, strings.Join(wrong, "; "), more)
}

// metadata of the weights of an imputer.
func (i ImputerTraining) metadata() (map[string]string, error) {
	shape, err := json.Marshal(i.Shape)
	if err != nil {
		return nil, fmt.Errorf("writing metadata: %w", err)
	}
	return map[string]string{"imputer": i.ID, "shape": string(shape), "alpha": formatScalar(i.Alpha), "hintRate": formatScalar(i.HintRate),
		"maximumRate": formatScalar(i.MaximumRate), "width": formatScalar(i.Width)}, nil
}
