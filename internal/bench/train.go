package bench

import (
	"context"
	"fmt"

	"github.com/assay-xai/assay/internal/fill"
	"github.com/assay-xai/assay/torchx"
)

const (
	trainBatch    = 128
	trainExamples = 1024
	trainSteps    = 4 // a call
)

// train compares training steps: batches gathered and normalised from 8-bit
// images, forward, backward, SGD with Nesterov momentum and weight decay.
func (b *bench) train(ctx context.Context) error {
	for _, c := range []struct {
		net   string
		shape []int64
		name  string
	}{
		{"cifar-resnet20", []int64{trainExamples, 3, 32, 32}, "training, ResNet-20, 32 px, f32, batch 128"},
		{"cnn3-fashion", []int64{trainExamples, 1, 28, 28}, "training, three convolutions (cnn3), 28 px, f32, batch 128"},
	} {
		t, err := b.trainer(ctx, c.net, c.shape)
		if err != nil {
			return err
		}
		indices, rates := make([]int32, trainBatch*trainSteps), make([]float64, trainSteps)
		for i := range indices {
			indices[i] = int32(i * 7 % trainExamples)
		}
		for i := range rates {
			rates[i] = .01
		}
		first := int64(0)
		ours := func() (float64, error) {
			return rate(ctx, b.o.Seconds, trainBatch*trainSteps, func() error {
				_, _, _, err := t.Steps(ctx, indices, trainBatch, rates, first)
				first += trainSteps
				return err
			})
		}
		for _, o := range []struct{ mode, name, target string }{
			{"eager", "PyTorch eager", ">= 1"}, {"channels-last", "PyTorch eager, channels last", ""},
		} {
			our, their, ratio, err := duel(b.o.Rounds, ours, b.theirTraining(o.mode, c.net))
			if err != nil {
				return err
			}
			b.add(Row{Name: c.name, Ours: our, Unit: "images/s", Opponent: o.name, Theirs: their, Ratio: ratio, Target: o.target})
		}
		if err := t.Close(); err != nil {
			return err
		}
	}
	return nil
}

// trainer has examples of the formula.
func (b *bench) trainer(ctx context.Context, id string, shape []int64) (*torchx.Trainer, error) {
	n, err := b.d.NewNet(ctx, torchx.NetSpec{Net: id})
	if err != nil {
		return nil, err
	}
	defer n.Close()
	t, err := b.d.NewTrainer(ctx, n, torchx.TrainerSpec{
		Optimizer: torchx.OptimizerSpec{ID: "sgd", Momentum: .9, Nesterov: true, WeightDecay: 5e-4},
		Scale:     255, Mean: []float64{.5}, Std: []float64{.25},
	}, torchx.PrecisionF32)
	if err != nil {
		return nil, err
	}
	values := fill.Input(shape)
	pixels := make([]byte, len(values))
	for i, v := range values {
		pixels[i] = byte(128 + 60*v)
	}
	x, err := torchx.NewTensor(torchx.U8, shape, pixels)
	if err != nil {
		return nil, err
	}
	defer x.Close()
	labels := make([]byte, 4*trainExamples)
	for i := range trainExamples {
		labels[4*i] = byte(i % 10)
	}
	y, err := torchx.NewTensor(torchx.I32, shape[:1], labels)
	if err != nil {
		return nil, err
	}
	defer y.Close()
	if err := t.SetData(ctx, "train", x, y); err != nil {
		return nil, fmt.Errorf("data for %s: %w", id, err)
	}
	return t, nil
}

func (b *bench) theirTraining(mode, net string) func() (float64, error) {
	if b.them == nil {
		return nil
	}
	return func() (float64, error) {
		var answer struct{ Rate float64 }
		err := b.them.ask(map[string]any{"do": "train", "mode": mode, "net": net, "batch": trainBatch, "seconds": b.o.Seconds}, &answer)
		return answer.Rate, err
	}
}
