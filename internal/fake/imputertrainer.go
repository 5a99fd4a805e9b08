package fake

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/assay-xai/assay/internal/rng"
	"github.com/assay-xai/assay/internal/usage"
	"github.com/assay-xai/assay/orchestrate"
	"github.com/assay-xai/assay/weights"
)

// Names of the state of the fake's gain. They begin as the real one's do.
const (
	gainImputer       = "gain"
	generatorName     = "generator.net.0.weight_orig"
	discriminatorName = "discriminator.net.0.weight_orig"
	meanName          = "mfv"
)

// gain is a generator of one number a channel, which removed pixels get beside the mean
// image, and a discriminator of one number, the logit of a pixel being real. Masks are drawn
// by (seed, step, place), in evaluation by the place alone.
type gain struct{ *trainer }

func (b *Backend) openImputerTrainer(ctx context.Context, spec orchestrate.TrainerSpec, state map[string]weights.Tensor) (orchestrate.Trainer, error) {
	i := spec.Imputer
	if i.ID != gainImputer || len(i.Shape) != 3 || i.Width < 1 {
		return nil, usage.Errorf("the fake cannot train imputer %s of width %d on %v", i.ID, i.Width, i.Shape)
	}
	width, channels := int64(i.Width), int64(i.Shape[0])
	t := &trainer{b: b, spec: spec, params: map[string][]float32{}, parts: map[string]orchestrate.TrainingData{},
		info: orchestrate.NetInfo{Net: gainImputer, Input: i.Shape, Parameters: []weights.Parameter{
			{Name: generatorName, Shape: []int64{width, channels}}, {Name: discriminatorName, Shape: []int64{1}},
			{Name: meanName, Shape: []int64{channels, int64(i.Shape[1]), int64(i.Shape[2])}, Buffer: true}}}}
	for _, p := range t.info.Parameters {
		list := make([]float32, product(p.Shape))
		if !p.Buffer {
			stream := rng.New(spec.Seed, "fake/start", p.Name)
			for k := range list {
				list[k] = float32(.2 * (stream.Float64(uint64(k), 0) - .5))
			}
		}
		t.params[p.Name] = list
	}
	if state != nil {
		if err := t.SetState(ctx, state, nil); err != nil {
			return nil, err
		}
	}
	b.OpenTrainers.Add(1)
	return &gain{t}, nil
}

// SetData makes the mean image out of the training part.
func (g *gain) SetData(ctx context.Context, part string, data orchestrate.TrainingData) error {
	if !slices.Equal(data.Shape, g.spec.Imputer.Shape) {
		return usage.Errorf("%s data of shape %v: want %v", part, data.Shape, g.spec.Imputer.Shape)
	}
	if err := g.trainer.SetData(ctx, part, data); err != nil || part != "train" {
		return err
	}
	mean := make([]float64, len(g.params[meanName]))
	for i := range data.Labels {
		for k, v := range g.image(data, i) {
			mean[k] += float64(v) / float64(len(data.Labels))
		}
	}
	for k, v := range mean {
		g.params[meanName][k] = float32(v)
	}
	return nil
}

// Parameters are without the mean image as long as there is none.
func (g *gain) Parameters(ctx context.Context) (map[string]weights.Tensor, error) {
	out, err := g.trainer.Parameters(ctx)
	if _, ok := g.parts["train"]; !ok {
		delete(out, meanName)
	}
	return out, err
}

// image is row i, divided by the scale.
func (g *gain) image(data orchestrate.TrainingData, i int) []float32 {
	x := example(data, i)
	for k := range x {
		x[k] /= float32(g.spec.Preset.Scale)
	}
	return x
}

// pass imputes an image and adds up what the nets did: squared error, right judgements,
// gradients of the error on removed pixels and of the discriminator's cross-entropy.
func (g *gain) pass(x []float32, draw func(pixel int) float64, gradient map[string][]float64) (squared float64, right int) {
	w, mean := g.params[generatorName], g.params[meanName]
	shape := g.spec.Imputer.Shape
	plane := shape[1] * shape[2]
	rate := g.spec.Imputer.MaximumRate * draw(plane)
	real := 1 / (1 + math.Exp(-float64(g.params[discriminatorName][0])))
	for k, v := range x {
		removed := draw(k%plane) < rate
		if (real > .5) != removed {
			right++
		}
		truth := 1.
		if removed {
			truth = 0
			c, sum := k/plane, 0.
			for row := range g.spec.Imputer.Width {
				sum += float64(w[row*shape[0]+c])
			}
			d := float64(mean[k]) + sum - float64(v)
			squared += d * d
			for row := range g.spec.Imputer.Width {
				gradient[generatorName][row*shape[0]+c] += 2 * d
			}
		}
		gradient[discriminatorName][0] += real - truth
	}
	return squared, right
}

func (g *gain) gradients() map[string][]float64 {
	return map[string][]float64{generatorName: make([]float64, len(g.params[generatorName])), discriminatorName: make([]float64, 1)}
}

// Steps trains both nets; its loss is the squared error.
func (g *gain) Steps(ctx context.Context, indices []int32, batch int, rates []float64, first int64) (orchestrate.StepsResult, error) {
	var out orchestrate.StepsResult
	if err := g.b.wait(ctx); err != nil {
		return out, err
	}
	data := g.parts["train"]
	for i, rate := range rates {
		step := first + int64(i)
		if g.b.FailStep != nil {
			if err := g.b.FailStep(step); err != nil {
				return out, err
			}
		}
		rows := indices[i*batch : min((i+1)*batch, len(indices))]
		gradient, loss := g.gradients(), 0.
		for place, row := range rows {
			x := g.augment(g.image(data, int(row)), data.Shape, step, place)
			stream := rng.New(g.spec.Seed, "fake/mask", fmt.Sprint(place))
			squared, right := g.pass(x, func(pixel int) float64 { return stream.Float64(uint64(step), uint64(pixel)) }, gradient)
			loss += squared / float64(len(rows)*len(x))
			out.Correct, out.Examples = out.Correct+right, out.Examples+len(x)
		}
		out.Losses = append(out.Losses, loss)
		for name, list := range gradient {
			for k := range list {
				list[k] /= float64(len(rows) * len(g.params[meanName]))
			}
			g.update(name, list, rate, step)
		}
	}
	return out, nil
}

// Evaluate imputes a part.
func (g *gain) Evaluate(ctx context.Context, part string, _ int) (orchestrate.Evaluation, error) {
	data := g.parts[part]
	var out orchestrate.Evaluation
	for i := range data.Labels {
		x := g.image(data, i)
		stream := rng.New(g.spec.Seed, "fake/evaluate", "")
		squared, right := g.pass(x, func(pixel int) float64 { return stream.Float64(uint64(i), uint64(pixel)) }, g.gradients())
		out.Loss += squared / float64(len(data.Labels)*len(x))
		out.Correct, out.Examples = out.Correct+right, out.Examples+len(x)
	}
	return out, ctx.Err()
}
