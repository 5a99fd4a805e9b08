package orchestrate

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/assay-xai/assay/dataset"
	"github.com/assay-xai/assay/internal/record"
	"github.com/assay-xai/assay/internal/rng"
	"github.com/assay-xai/assay/internal/usage"
	"github.com/assay-xai/assay/weights"
)

// Training is a net (or an imputer that is one) to be trained: what studies that retrain
// nets hand to Train, data in memory and nothing kept unless Store is set.
type Training struct {
	// Net is what is trained, unless Imputer is set: then that is, Classes and Features
	// say nothing, and the labels of the data are let be.
	Net       string
	Imputer   *ImputerTraining
	Classes   int
	Features  int // nets on tables
	Precision string
	// Preset gives scale, mean and std of the data.
	Preset dataset.Preset
	// State is what the parameters start from; those that are not in it are
	// drawn from the seed. Of imputers all must be there, or none.
	State map[string]weights.Tensor
	Train TrainingData
	// Validation may be empty: then the best epoch is the last.
	Validation TrainingData
	Settings   TrainSettings
	// Store keeps what makes the training go on after an interruption; nil:
	// nothing does.
	Store TrainingStore
	// Progress gets events; nil: nobody does.
	Progress func(Event)
}

// EpochResult is what an epoch came to. Cost is outside of comparisons.
type EpochResult struct {
	record.TrainingEpoch
	Seconds float64 `json:"seconds"`
}

// Checkpoint is everything that a training needs to go on.
type Checkpoint struct {
	// History has an entry an epoch done; its length is the number of epochs.
	History []EpochResult
	// BestEpoch counts from 1.
	BestEpoch                   int
	Parameters, Optimizer, Best map[string]weights.Tensor
}

// TrainingStore keeps a training's state. Its methods are called one at a time.
type TrainingStore interface {
	// Load returns the last checkpoint, nil where there is none. What was
	// recorded of later epochs is forgotten.
	Load(ctx context.Context) (*Checkpoint, error)
	// Record keeps the figures of an epoch.
	Record(e EpochResult) error
	// Save replaces the checkpoint.
	Save(c *Checkpoint) error
}

// Trained is a net that was trained.
type Trained struct {
	Info    NetInfo
	History []EpochResult
	// BestEpoch counts from 1; without validation it is the last.
	BestEpoch int
	// Stopped says that no epoch was better for as long as was allowed.
	Stopped bool
	// Last and Best are state dicts.
	Last, Best map[string]weights.Tensor
	// Before is the number of epochs that an earlier run did.
	Before int
}

// Names of parts of the data, and of what random numbers are for.
const (
	partTrain      = "train"
	partValidation = "validation"
	shufflePurpose = "train/shuffle"
	stageTraining  = "training"
)

// A call to the device takes as many steps as fit in callSeconds, up to
// mostSteps: few calls, but a training that is interrupted stops soon. How
// steps are divided into calls does not matter for the result.
const (
	callSeconds = .5
	mostSteps   = 256
)

// epochNoteEvery is how often epochs are told of, at most.
const epochNoteEvery = time.Second

// Train trains a net. The same training on the same device with the same
// number of threads gives the same parameters to the bit, whether it was
// interrupted or not. A loss that is not finite ends it with an error that is
// a *Diverged.
func Train(ctx context.Context, b TrainingBackend, t Training) (*Trained, error) {
	l := &loop{Training: t, perCall: 1}
	if l.Progress == nil {
		l.Progress = func(Event) {}
	}
	if err := l.check(); err != nil {
		return nil, err
	}
	if l.Imputer != nil && len(l.Validation.Labels) > 0 {
		expected := l.Imputer.meanImageError(l.Train, l.Validation, l.Preset.Scale)
		l.meanImageError = &expected
	}
	if err := l.open(ctx, b); err != nil {
		return nil, err
	}
	defer l.trainer.Close()
	return l.run(ctx)
}

// Diverged is the error of a training whose loss is no number any more.
type Diverged struct {
	Epoch, Step, Steps int
	Loss, Rate         float64
	Kept               int // epochs
}

func (e *Diverged) Error() string {
	at := fmt.Sprintf("step %d of %d", e.Step, e.Steps)
	if e.Step == 0 {
		at = "on the validation part"
	}
	return fmt.Sprintf("training diverged in epoch %d, %s: the loss is %v at rate %.4g (%d epochs were finite): a smaller --rate, or --warmup, may help",
		e.Epoch, at, e.Loss, e.Rate, e.Kept)
}

// loop is a training under way.
type loop struct {
	Training
	trainer  Trainer
	perEpoch int // steps
	perCall  int // steps
	// meanImageError is of imputers that are validated, else nil.
	meanImageError *float64
	Trained
	noted time.Time
}

// check finds what is wrong before anything is opened.
func (t Training) check() error {
	s := t.Settings
	if err := s.Validate(); err != nil {
		return err
	}
	n := len(t.Train.Labels)
	if err := s.checkCount(n); err != nil {
		return err
	}
	if len(t.Validation.Labels) == 0 {
		if err := s.checkValidation(); err != nil {
			return err
		}
	}
	if a, _ := ParseAugment(s.Augment); (a != Augment{}) && len(t.Train.Shape) != 3 {
		return usage.Errorf("augment %s: wants images, net %s takes columns", s.Augment, t.Net)
	}
	for _, part := range []struct {
		name string
		data TrainingData
	}{{partTrain, t.Train}, {partValidation, t.Validation}} {
		if err := part.data.check(t.Classes); err != nil {
			return fmt.Errorf("%s part: %w", part.name, err)
		}
	}
	if t.Imputer != nil {
		return t.Imputer.check(s, t.Train, t.Validation)
	}
	if slices.Min(t.Train.Labels) == slices.Max(t.Train.Labels) {
		return oneClass(n, int(t.Train.Labels[0]))
	}
	return nil
}

// checkCount says whether there are enough examples for a batch.
func (s TrainSettings) checkCount(examples int) error {
	switch {
	case examples == 0:
		return usage.Errorf("no examples to train on")
	case s.BatchSize > examples:
		return usage.Errorf("batch-size %d is more than the %d training examples", s.BatchSize, examples)
	}
	return nil
}

func oneClass(examples, class int) error {
	return usage.Errorf("all %d training examples have class %d: want at least two classes", examples, class)
}

// open makes the trainer and brings it to where the store says it was.
func (l *loop) open(ctx context.Context, b TrainingBackend) (err error) {
	n, s := len(l.Train.Labels), l.Settings
	l.perEpoch = (n + s.BatchSize - 1) / s.BatchSize
	var from *Checkpoint
	if l.Store != nil {
		if from, err = l.Store.Load(ctx); err != nil {
			return err
		}
	}
	augment, err := ParseAugment(s.Augment)
	if err != nil {
		return err
	}
	state := l.State
	if from != nil {
		state = from.Parameters
	} else if len(state) == 0 {
		state = nil
	}
	spec := TrainerSpec{Net: l.Net, Classes: l.Classes, Features: l.Features, Precision: l.Precision, Seed: s.Seed,
		Optimizer: s.optimizer(), LabelSmoothing: s.LabelSmoothing, Augment: augment, Preset: l.Preset, Imputer: l.Imputer}
	if l.trainer, err = openTrainer(ctx, b, spec, state); err != nil {
		return fmt.Errorf("opening %s for training: %w", l.what(), err)
	}
	defer func() {
		if err != nil {
			l.trainer.Close()
		}
	}()
	l.Info = l.trainer.Info()
	if err := l.trainer.SetData(ctx, partTrain, l.Train); err != nil {
		return fmt.Errorf("moving %d training examples to the device: %w", n, err)
	}
	if m := len(l.Validation.Labels); m > 0 {
		if err := l.trainer.SetData(ctx, partValidation, l.Validation); err != nil {
			return fmt.Errorf("moving %d validation examples to the device: %w", m, err)
		}
	}
	if from == nil {
		return nil
	}
	if err := l.trainer.SetState(ctx, from.Parameters, from.Optimizer); err != nil {
		return fmt.Errorf("going on from a checkpoint: %w", err)
	}
	l.History, l.BestEpoch, l.Before = from.History, from.BestEpoch, len(from.History)
	l.Last, l.Best = from.Parameters, from.Best
	return nil
}

// openTrainer opens a trainer whose parameters come from state as far as they
// are there.
func openTrainer(ctx context.Context, b TrainingBackend, spec TrainerSpec, state map[string]weights.Tensor) (Trainer, error) {
	if spec.Imputer != nil {
		return b.OpenTrainer(ctx, spec, state)
	}
	info, err := b.Describe(ctx, spec.Net, spec.Classes, spec.Features)
	if err != nil {
		return nil, err
	}
	missing := func(p weights.Parameter) bool {
		_, ok := state[p.Name]
		return !ok && !p.Optional && !p.Buffer
	}
	if state == nil || !slices.ContainsFunc(info.Parameters, missing) {
		return b.OpenTrainer(ctx, spec, state)
	}
	t, err := b.OpenTrainer(ctx, spec, nil)
	if err != nil {
		return nil, err
	}
	all, err := t.Parameters(ctx)
	if err == nil {
		maps.Copy(all, state)
		err = t.SetState(ctx, all, nil)
	}
	if err != nil {
		t.Close()
		return nil, err
	}
	return t, nil
}

// what names what is trained, in errors.
func (l *loop) what() string {
	if l.Imputer != nil {
		return "imputer " + l.Imputer.ID
	}
	return "net " + l.Net
}

// steps is how many a whole training has.
func (l *loop) steps() int { return l.Settings.Epochs * l.perEpoch }

func (l *loop) run(ctx context.Context) (*Trained, error) {
	for !l.finished() {
		e, err := l.epoch(ctx, len(l.History)+1)
		switch {
		case err == nil:
		case ctx.Err() != nil:
			return nil, fmt.Errorf("stopped in epoch %d of %d: %w", len(l.History)+1, l.Settings.Epochs, ctx.Err())
		case errors.Is(err, ErrOutOfMemory):
			return nil, fmt.Errorf("%w: a smaller --batch-size needs less", err)
		default:
			return nil, err
		}
		if err := l.keep(ctx, e); err != nil {
			if ctx.Err() != nil {
				return nil, fmt.Errorf("stopped in epoch %d of %d: %w", e.Epoch, l.Settings.Epochs, ctx.Err())
			}
			return nil, err
		}
	}
	return &l.Trained, nil
}

// finished looks at the history alone, so that a run that goes on stops where
// it would have stopped.
func (l *loop) finished() bool {
	done := len(l.History)
	if done == 0 {
		return false
	}
	wait := l.Settings.EarlyStopping
	l.Stopped = wait > 0 && done < l.Settings.Epochs && l.History[done-1].ValidationLoss != nil && done-l.BestEpoch >= wait
	return l.Stopped || done >= l.Settings.Epochs
}

// epoch takes all steps of an epoch and measures.
func (l *loop) epoch(ctx context.Context, epoch int) (EpochResult, error) {
	start := time.Now()
	n, s := len(l.Train.Labels), l.Settings
	order := make([]int32, n)
	for i, k := range rng.New(s.Seed, shufflePurpose, "").Perm(uint64(epoch), n) {
		order[i] = int32(k)
	}
	out := EpochResult{TrainingEpoch: record.TrainingEpoch{Epoch: epoch}}
	if l.Imputer != nil {
		out.Imputer = l.Imputer.ID
	}
	first := (epoch - 1) * l.perEpoch
	all, err := s.Rates(l.perEpoch, l.History)
	if err != nil {
		return out, err
	}
	out.Rate = all[0]
	correct, judged, total := 0, 0, 0.
	for step := 0; step < l.perEpoch; {
		if err := ctx.Err(); err != nil {
			return out, err
		}
		l.Progress(Event{Kind: Step, Stage: stageTraining, Done: first + step, Before: l.Before * l.perEpoch, Total: l.steps()})
		end := min(step+l.perCall, l.perEpoch)
		rates := all[step:end]
		began := time.Now()
		r, err := l.trainer.Steps(ctx, order[step*s.BatchSize:min(end*s.BatchSize, n)], s.BatchSize, rates, int64(first+step))
		if err != nil {
			return out, fmt.Errorf("training %s, epoch %d: %w", l.what(), epoch, err)
		}
		if len(r.Losses) != len(rates) {
			return out, fmt.Errorf("training %s, epoch %d: %d losses of %d steps", l.what(), epoch, len(r.Losses), len(rates))
		}
		correct, judged = correct+r.Correct, judged+r.Examples
		for i, loss := range r.Losses {
			if !isFinite(loss) {
				return out, &Diverged{Epoch: epoch, Step: step + i + 1, Steps: l.perEpoch, Loss: loss, Rate: rates[i], Kept: epoch - 1}
			}
			total += loss * float64(min(s.BatchSize, n-(step+i)*s.BatchSize))
		}
		each := time.Since(began).Seconds() / float64(len(rates))
		l.perCall = max(1, min(2*l.perCall, mostSteps, int(callSeconds/max(each, 1e-9))))
		step = end
	}
	if err := ctx.Err(); err != nil {
		return out, err // small parts are evaluated before a device hears of it
	}
	out.Loss, out.Accuracy = total/float64(n), float64(correct)/float64(judged)
	if len(l.Validation.Labels) > 0 && (epoch%s.EvaluateEvery == 0 || epoch == s.Epochs) {
		v, err := l.trainer.Evaluate(ctx, partValidation, s.BatchSize)
		if err != nil {
			return out, fmt.Errorf("validating %s, epoch %d: %w", l.what(), epoch, err)
		}
		if !isFinite(v.Loss) {
			return out, &Diverged{Epoch: epoch, Loss: v.Loss, Rate: all[l.perEpoch-1], Kept: epoch - 1}
		}
		accuracy := float64(v.Correct) / float64(v.Examples)
		out.ValidationLoss, out.ValidationAccuracy, out.MeanImageError = &v.Loss, &accuracy, l.meanImageError
	}
	out.Seconds = time.Since(start).Seconds()
	return out, nil
}

func isFinite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// keep takes an epoch into the history and saves what is to be saved.
func (l *loop) keep(ctx context.Context, e EpochResult) (err error) {
	l.History = append(l.History, e)
	l.BestEpoch = bestEpoch(l.History, l.Settings.BestBy)
	isBest := l.BestEpoch == e.Epoch
	save := l.finished() || l.Store != nil && e.Epoch%l.Settings.SaveEvery == 0
	if save || isBest && e.ValidationLoss != nil {
		if l.Last, err = l.trainer.Parameters(ctx); err != nil {
			return fmt.Errorf("reading the parameters of epoch %d: %w", e.Epoch, err)
		}
	}
	if isBest {
		l.Best = l.Last
	}
	l.note(e)
	if l.Store == nil {
		return nil
	}
	if save {
		c := &Checkpoint{History: l.History, BestEpoch: l.BestEpoch, Parameters: l.Last, Best: l.Best}
		if c.Optimizer, err = l.trainer.OptimizerState(ctx); err != nil {
			return fmt.Errorf("reading the optimiser's state of epoch %d: %w", e.Epoch, err)
		}
		if err := l.Store.Save(c); err != nil {
			return err
		}
	}
	return l.Store.Record(e)
}

// note tells of an epoch, not more than one a second.
func (l *loop) note(e EpochResult) {
	l.Progress(Event{Kind: Step, Stage: stageTraining, Done: e.Epoch * l.perEpoch, Before: l.Before * l.perEpoch, Total: l.steps()})
	if !l.noted.IsZero() && time.Since(l.noted) < epochNoteEvery && !l.finished() {
		return
	}
	l.noted = time.Now()
	l.Progress(Event{Kind: Note, Message: fmt.Sprintf("epoch %d/%d: %s; rate %.3g, %.2f s", e.Epoch, l.Settings.Epochs, e.figures(l.Imputer), e.Rate, e.Seconds)})
}

// figures says in words what an epoch came to, of a net or an imputer.
func (e EpochResult) figures(imputer *ImputerTraining) string {
	if imputer != nil {
		return imputer.figures(e)
	}
	text := fmt.Sprintf("loss %.4f, accuracy %.2f %%", e.Loss, 100*e.Accuracy)
	if e.ValidationLoss != nil {
		text += fmt.Sprintf("; validation loss %.4f, accuracy %.2f %%", *e.ValidationLoss, 100**e.ValidationAccuracy)
	}
	return text
}

// bestEpoch is the epoch, from 1, with the best validation figures, the first
// of equals; the last where nothing was measured.
func bestEpoch(history []EpochResult, by string) int {
	best := -1
	better := func(a, b EpochResult) bool {
		if by == "accuracy" && *a.ValidationAccuracy != *b.ValidationAccuracy {
			return *a.ValidationAccuracy > *b.ValidationAccuracy
		}
		return *a.ValidationLoss < *b.ValidationLoss
	}
	for i, e := range history {
		if e.ValidationLoss != nil && (best < 0 || better(e, history[best])) {
			best = i
		}
	}
	if best < 0 {
		return len(history)
	}
	return best + 1
}
