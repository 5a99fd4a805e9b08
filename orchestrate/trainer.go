package orchestrate

import (
	"context"

	"github.com/assay-xai/assay/dataset"
	"github.com/assay-xai/assay/weights"
)

// TrainingBackend is a Backend that can train nets. internal/device satisfies
// it with torchx; tests use fakes.
type TrainingBackend interface {
	Backend
	// OpenTrainer builds a net and its optimiser. Parameters come from state; a
	// nil state draws them from the spec's seed as PyTorch's layers do.
	OpenTrainer(ctx context.Context, spec TrainerSpec, state map[string]weights.Tensor) (Trainer, error)
}

// TrainerSpec says what is trained and how a step is made.
type TrainerSpec struct {
	Net       string
	Classes   int // 0: the net's own
	Features  int // nets on tables; 0: the net's own
	Precision string
	// Seed keys everything random: initial parameters, augmentation, dropout.
	Seed      uint64
	Optimizer Optimizer
	// LabelSmoothing is in [0,1): PyTorch's CrossEntropyLoss(label_smoothing).
	LabelSmoothing float64
	Augment        Augment
	// Preset gives scale, mean and std, which are applied on the device, after
	// augmentation of the raw values.
	Preset dataset.Preset
	// Imputer, where it is not nil, is trained in place of a net: Net, Classes, Features,
	// LabelSmoothing and the mean and std of the preset then say nothing.
	Imputer *ImputerTraining
}

// ImputerTraining is an imputer that is a net, "gain" (Yoon et al. 2018; nets of Kachuee et
// al. 2020), and what its training is told beside what all trainings are told.
type ImputerTraining struct {
	ID    string `yaml:"id"`
	Shape []int  `yaml:"shape"` // [C,H,W] of the images
	// Alpha weighs the generator's error on pixels that are known, HintRate is the
	// probability that the discriminator is told of a pixel, U(0, MaximumRate) of an
	// image's pixels are removed, Width is the number of channels of the first layer.
	Alpha       float64 `yaml:"alpha"`
	HintRate    float64 `yaml:"hintRate"`
	MaximumRate float64 `yaml:"maximumRate"`
	Width       int     `yaml:"width"`
}

// Optimizer is SGD or Adam with PyTorch's update rules.
type Optimizer struct {
	ID          string  // "sgd", "adam"
	Momentum    float64 // SGD
	Nesterov    bool    // SGD
	WeightDecay float64 // L2, added to the gradient
	Beta1       float64 // Adam
	Beta2       float64
	Epsilon     float64
}

// Augment changes training examples anew each time they are seen. The draws
// are keyed by (seed, step, place in the batch).
type Augment struct {
	// Pad is the zero border (in raw values, before normalisation) from which a
	// window of the original size is cropped at random; 0: none.
	Pad int
	// Flip mirrors half of the examples left to right.
	Flip bool
}

// TrainingData is a part of the examples, as they are before normalisation.
// Exactly one of Pixels and Values is set.
type TrainingData struct {
	Shape  []int     // [C,H,W] or [F] of one example
	Pixels []byte    // N*C*H*W, channels first
	Values []float32 // N*C*H*W or N*F
	Labels []int32   // N, 0..classes-1; for imputers any N numbers from 0
}

// Trainer trains one net. Calls are safe from any goroutine, one at a time.
type Trainer interface {
	Info() NetInfo
	// SetData moves the examples of a part ("train", "validation") to the
	// device, where they stay; it replaces what was there.
	SetData(ctx context.Context, part string, data TrainingData) error
	// Steps takes len(rates) optimiser steps: step i uses the examples
	// indices[i*batch : min((i+1)*batch, len(indices))] of part "train" and the
	// learning rate rates[i]. first is the number of the first step since the
	// start of training: it keys the random draws and Adam's bias correction.
	Steps(ctx context.Context, indices []int32, batch int, rates []float64, first int64) (StepsResult, error)
	// Evaluate runs a part in inference mode, batch rows at a time.
	Evaluate(ctx context.Context, part string, batch int) (Evaluation, error)
	// Parameters returns a copy of the net's state dict, with buffers.
	Parameters(ctx context.Context) (map[string]weights.Tensor, error)
	// OptimizerState returns a copy of the optimiser's tensors by parameter name
	// and kind ("fc.weight/momentum"); SetState puts both back.
	OptimizerState(ctx context.Context) (map[string]weights.Tensor, error)
	SetState(ctx context.Context, parameters, optimizer map[string]weights.Tensor) error
	Close() error
}

// StepsResult is what some training steps came to, with augmentation and the
// parameters of their time.
type StepsResult struct {
	// Losses has one mean loss a step (imputers: of the generator); a value that is not
	// finite says that training has diverged.
	Losses []float64
	// Correct counts right predictions among the Examples seen. Imputers: of the pixels,
	// channel by channel, those that the discriminator took for what they are, imputed or not.
	Correct, Examples int
}

// Evaluation is what a net makes of a part of the data.
type Evaluation struct {
	// Loss is the mean cross-entropy, without label smoothing; of imputers the mean squared
	// error of imputed images over all of their pixels, which are in 0..1.
	Loss float64
	// As in StepsResult.
	Correct, Examples int
}
