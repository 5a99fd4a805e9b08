package fake

import (
	"context"
	"fmt"
	"strings"

	"github.com/assay-xai/assay/dataset"
	"github.com/assay-xai/assay/internal/rng"
	"github.com/assay-xai/assay/internal/usage"
	"github.com/assay-xai/assay/orchestrate"
	"github.com/assay-xai/assay/weights"
)

// Generator writes a file for imputer gain: one number, which says how far what is left
// of an image counts, and a mean image of shape, drawn from seed.
func Generator(path string, shape []int, seed uint64) error {
	size := 1
	var dims []int64
	for _, n := range shape {
		size *= n
		dims = append(dims, int64(n))
	}
	stream := rng.New(seed, "fake/generator", "")
	values := make([]float32, size)
	for i := range values {
		values[i] = float32(stream.Float64(uint64(i), 0))
	}
	return weights.WriteSafetensors(path, map[string]weights.Tensor{
		generatorName:                tensor([]float32{float32(stream.Float64(uint64(size), 0))}, []int64{1}),
		meanName:                     tensor(values, dims),
		"discriminator.net.0.bias":   tensor([]float32{0}, []int64{1}),
		"generator.training.seconds": tensor([]float32{0}, []int64{1}),
	}, map[string]string{"imputer": gainImputer})
}

// CheckGenerator wants the generator's number.
func (b *Backend) CheckGenerator(_ context.Context, g *orchestrate.Generator) error {
	if len(floats(g.State[generatorName])) == 0 {
		return usage.Errorf("fake: %s is empty", generatorName)
	}
	return nil
}

// checkGenerator says that an imputer got a generator that it does not want, or none.
func checkGenerator(imputer orchestrate.Reference, g *orchestrate.Generator) error {
	switch {
	case imputer.ID != gainImputer && g != nil:
		return fmt.Errorf("fake: a generator for imputer %s", imputer.ID)
	case imputer.ID != gainImputer:
		return nil
	case g == nil:
		return fmt.Errorf("fake: imputer %s without a generator", gainImputer)
	case g.Hash == "":
		return fmt.Errorf("fake: a generator without its hash")
	}
	for name := range g.State {
		if name != meanName && !strings.HasPrefix(name, "generator.net.") {
			return fmt.Errorf("fake: %s is no part of a generator", name)
		}
	}
	return nil
}

// generate imputes a normalised image [C,H,W] in place: a removed pixel is the mean
// image's, plus the generator's number times how far what is left is from the mean image
// on average, plus a hundredth of a normal number. It is no net, but depends on all that
// one does: mask, image, generator and key.
func generate(x []float32, shape, gone []int, g *orchestrate.Generator, preset dataset.Preset, key uint64) error {
	mean, factor := floats(g.State[meanName]), float64(floats(g.State[generatorName])[0])
	if len(mean) != len(x) || len(shape) != 3 {
		return usage.Errorf("imputer %s: a mean image of %d numbers, and inputs of shape %v", gainImputer, len(mean), shape)
	}
	n := shape[1] * shape[2]
	removed := make([]bool, n)
	for _, i := range gone {
		removed[i] = true
	}
	pixel := func(i int) (mean, std float64) {
		c := i / n
		return preset.Mean[c%len(preset.Mean)], preset.Std[c%len(preset.Std)]
	}
	left, count := 0.0, 0
	for i, v := range x {
		if m, s := pixel(i); !removed[i%n] {
			left += float64(v)*s + m - float64(mean[i])
			count++
		}
	}
	for i := range x {
		if m, s := pixel(i); removed[i%n] {
			value := float64(mean[i]) + factor*left/float64(max(count, 1)) + .01*rng.Stream{Key: key}.Normal(uint64(i), 0)
			x[i] = float32((value - m) / s)
		}
	}
	return nil
}
