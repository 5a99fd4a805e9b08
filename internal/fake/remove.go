package fake

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/assay-xai/assay/internal/rng"
	"github.com/assay-xai/assay/internal/usage"
	"github.com/assay-xai/assay/orchestrate"
)

// Imputers that look at the mask or at all of the data.
const (
	datasetMean = "dataset-mean"
	noisyLinear = "noisy-linear"
)

// Remove removes features by rank and imputes them, one row after the other.
func (n *net) Remove(ctx context.Context, in orchestrate.Images, spec orchestrate.RemovalSpec) (orchestrate.Removal, error) {
	var out orchestrate.Removal
	from := in.(*images)
	if err := checkRemoval(from, spec); err != nil {
		return out, err
	}
	if n.b.Memory > 0 && spec.Batch > n.b.Memory {
		return out, fmt.Errorf("batch %d: %w", spec.Batch, orchestrate.ErrOutOfMemory)
	}
	call := n.b.calls.Add(1)
	if n.b.Fail != nil {
		if err := n.b.Fail(call); err != nil {
			return out, err
		}
	}
	if err := n.b.wait(ctx); err != nil {
		return out, err
	}
	rankings := map[int][]int{}
	for _, row := range spec.Rows {
		if rankings[row.Image] == nil {
			rankings[row.Image] = ranking(from, spec, row.Image)
		}
		ranked := rankings[row.Image]
		gone := ranked[:row.Removed]
		if row.Least {
			gone = ranked[len(ranked)-row.Removed:]
		}
		x, iterations, err := impute(from, spec, row.Image, gone)
		if err != nil {
			return out, err
		}
		p := softmax(n.logits(x))
		out.Classes = append(out.Classes, best(p, 1).Classes[0])
		var probabilities []float64
		for _, target := range spec.Targets[row.Image] {
			probabilities = append(probabilities, p[target])
		}
		out.Probabilities = append(out.Probabilities, probabilities)
		out.Variations = append(out.Variations, maskVariation(from.shape, gone))
		out.Iterations = append(out.Iterations, iterations)
		if spec.Inputs {
			out.Inputs = append(out.Inputs, x)
		}
		out.Forwards++
	}
	out.ImputeSeconds, out.ForwardSeconds = .001, .002
	return out, nil
}

func checkRemoval(in *images, spec orchestrate.RemovalSpec) error {
	features := featuresOf(in.shape)
	for name, length := range map[string]int{"targets": len(spec.Targets), "tie keys": len(spec.TieKeys), "noise keys": len(spec.NoiseKeys)} {
		if length != in.Len() {
			return fmt.Errorf("fake: %d %s of %d images", length, name, in.Len())
		}
	}
	if spec.Maps != nil && len(spec.Maps) != in.Len() {
		return fmt.Errorf("fake: %d maps of %d images", len(spec.Maps), in.Len())
	}
	for _, m := range spec.Maps {
		if len(m) != features {
			return fmt.Errorf("fake: a map of %d values: want %d", len(m), features)
		}
	}
	for _, row := range spec.Rows {
		if row.Image < 0 || row.Image >= in.Len() || row.Removed < 0 || row.Removed > features {
			return fmt.Errorf("fake: row %+v of %d images with %d features", row, in.Len(), features)
		}
	}
	return nil
}

func featuresOf(shape []int) int {
	if len(shape) == 3 {
		return shape[1] * shape[2]
	}
	return shape[0]
}

// ranking lists the features of an image, those that rank first before others.
func ranking(in *images, spec orchestrate.RemovalSpec, image int) []int {
	n := featuresOf(in.shape)
	values := make([]float64, n)
	if spec.Maps != nil {
		for i, v := range spec.Maps[image] {
			values[i] = float64(v)
		}
	}
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	ties := rng.Stream{Key: spec.TieKeys[image]}
	switch spec.Ties {
	case orchestrate.TiesRandom:
		order = ties.Perm(0, n)
	case orchestrate.TiesNoise:
		least, most := slices.Min(values), slices.Max(values)
		for i := range values {
			if most > least {
				values[i] = (values[i] - least) / (most - least)
			}
			values[i] += 1e-4 * ties.Normal(uint64(i), 0)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int {
		switch {
		case values[a] > values[b]:
			return -1
		case values[a] < values[b]:
			return 1
		}
		return 0
	})
	return order
}

// impute is an image without some of its features.
func impute(in *images, spec orchestrate.RemovalSpec, image int, gone []int) ([]float32, int, error) {
	x := slices.Clone(in.rows[image])
	n := featuresOf(in.shape)
	everything := len(gone) == n
	if err := checkGenerator(spec.Imputer, spec.Generator); err != nil {
		return nil, 0, err
	}
	if spec.DatasetMean == nil && (spec.Imputer.ID == datasetMean && len(gone) > 0 || spec.Imputer.ID == noisyLinear && everything) {
		return nil, 0, usage.Errorf("fake: imputer %s: the mean of the data is not known", spec.Imputer.ID)
	}
	for c := range len(x) / n {
		channel := x[c*n : (c+1)*n]
		fill := 0.0
		switch spec.Imputer.ID {
		case "zero":
		case "channel-mean":
			for _, v := range channel {
				fill += float64(v) / float64(n)
			}
		case datasetMean:
			if spec.DatasetMean != nil {
				fill = spec.DatasetMean[c]
			}
		case noisyLinear:
			if len(in.shape) != 3 {
				return nil, 0, usage.Errorf("imputer %s: want images, columns have no neighbours", noisyLinear)
			}
			switch {
			case everything:
				for i := range channel {
					channel[i] = float32(spec.DatasetMean[c])
				}
			case len(gone) > 0:
				solve(channel, in.shape[1], in.shape[2], gone)
			}
			sigma := spec.Imputer.Params["noise"].(float64) / spec.Preset.Std[c%len(spec.Preset.Std)]
			for _, i := range gone {
				channel[i] += float32(sigma * rng.Stream{Key: spec.NoiseKeys[image]}.Normal(uint64(c*n+i), 0))
			}
			continue
		case gainImputer:
			if err := generate(x, in.shape, gone, spec.Generator, spec.Preset, spec.NoiseKeys[image]); err != nil {
				return nil, 0, err
			}
			return x, 0, nil
		default:
			return nil, 0, usage.Errorf("imputer %s: the fake has none", spec.Imputer.ID)
		}
		for _, i := range gone {
			channel[i] = float32(fill)
		}
	}
	iterations := 0
	if spec.Imputer.ID == noisyLinear && len(gone) > 0 && !everything {
		iterations = len(gone)
	}
	return x, iterations, nil
}

// solve makes removed pixels weighted means of their neighbours, by elimination: 1/6
// for the direct ones, 1/12 for the diagonal ones, divided by the sum of those that are
// in the image.
func solve(channel []float32, h, w int, gone []int) {
	at := map[int]int{}
	for k, i := range gone {
		at[i] = k
	}
	m := len(gone)
	a := make([][]float64, m)
	for k, i := range gone {
		a[k] = make([]float64, m+1)
		y, x := i/w, i%w
		for dy := -1; dy <= 1; dy++ {
			for dx := -1; dx <= 1; dx++ {
				if dy == 0 && dx == 0 || y+dy < 0 || y+dy >= h || x+dx < 0 || x+dx >= w {
					continue
				}
				weight := 1.0 / 6
				if dy != 0 && dx != 0 {
					weight = 1.0 / 12
				}
				a[k][k] += weight
				j := (y+dy)*w + x + dx
				if other, unknown := at[j]; unknown {
					a[k][other] -= weight
				} else {
					a[k][m] += weight * float64(channel[j])
				}
			}
		}
	}
	for k := range m { // the matrix is symmetric positive definite: no pivots needed
		for r := k + 1; r < m; r++ {
			f := a[r][k] / a[k][k]
			if f == 0 {
				continue
			}
			for c := k; c <= m; c++ {
				a[r][c] -= f * a[k][c]
			}
		}
	}
	for k := m - 1; k >= 0; k-- {
		v := a[k][m]
		for c := k + 1; c < m; c++ {
			v -= a[k][c] * float64(channel[gone[c]])
		}
		channel[gone[k]] = float32(v / a[k][k])
	}
}

// maskVariation is the mean difference of vertical and of horizontal neighbours.
func maskVariation(shape, gone []int) float64 {
	if len(shape) != 3 {
		return 0
	}
	h, w := shape[1], shape[2]
	mask := make([]float64, h*w)
	for _, i := range gone {
		mask[i] = 1
	}
	vertical, horizontal := 0.0, 0.0
	for y := range h {
		for x := range w {
			if y+1 < h {
				vertical += math.Abs(mask[(y+1)*w+x] - mask[y*w+x])
			}
			if x+1 < w {
				horizontal += math.Abs(mask[y*w+x+1] - mask[y*w+x])
			}
		}
	}
	return vertical/float64(max(1, (h-1)*w)) + horizontal/float64(max(1, h*(w-1)))
}

// Remove is not there: removal is tested with the other nets.
func (n *softmaxRegression) Remove(context.Context, orchestrate.Images, orchestrate.RemovalSpec) (orchestrate.Removal, error) {
	return orchestrate.Removal{}, usage.Errorf("net %s removes nothing", n.Info().Net)
}
