package orchestrate

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/assay-xai/assay/dataset"
	"github.com/assay-xai/assay/internal/rng"
	"github.com/assay-xai/assay/internal/usage"
)

// readChunk is how many images are decoded at once.
const readChunk = 256

// ReadTrainingData reads items of a set (all if items is nil) as a trainer
// wants them: images decoded once, before normalisation, channels first;
// arrays and tables as they stand, those of whole numbers 0..255 as bytes.
// input is what the net takes; images for a net on columns are flattened.
func ReadTrainingData(ctx context.Context, b Backend, set *dataset.Set, items []int, preset dataset.Preset, input []int, progress func(Event)) (TrainingData, error) {
	if !set.HasLabels {
		return TrainingData{}, usage.Errorf("%s has no labels: give them with --labels FILE (\"file class\" a line)", set.Path)
	}
	data, err := readExamples(ctx, b, set, items, preset, input, progress)
	if err != nil {
		return TrainingData{}, err
	}
	for i := range data.Labels {
		item := i
		if items != nil {
			item = items[i]
		}
		data.Labels[i] = int32(set.Items()[item].Class)
	}
	return data, nil
}

// readExamples is ReadTrainingData for examples whose labels do not matter: they are 0.
func readExamples(ctx context.Context, b Backend, set *dataset.Set, items []int, preset dataset.Preset, input []int, progress func(Event)) (TrainingData, error) {
	if items == nil {
		items = make([]int, set.Len())
		for i := range items {
			items[i] = i
		}
	}
	r := &dataReader{set: set, preset: preset, input: input, total: len(items), progress: progress}
	r.out.Labels = make([]int32, len(items))
	var err error
	if set.Kind == dataset.Images {
		err = r.images(ctx, b, items)
	} else {
		err = r.rows(ctx, items)
	}
	if err != nil {
		return TrainingData{}, err
	}
	return r.out, nil
}

// check says whether sizes agree and labels are in range.
func (d TrainingData) check(classes int) error {
	size := len(d.Labels) * d.size()
	if len(d.Labels) > 0 && (d.Pixels == nil) == (d.Values == nil) || len(d.Pixels)+len(d.Values) != size {
		return fmt.Errorf("%d pixels and %d values for %d examples of shape %v", len(d.Pixels), len(d.Values), len(d.Labels), d.Shape)
	}
	for i, label := range d.Labels {
		if label < 0 || classes > 0 && int(label) >= classes {
			return usage.Errorf("class %d of example %d: want 0..%d", label, i, classes-1)
		}
	}
	return nil
}

// size is the number of values of an example.
func (d TrainingData) size() int {
	size := 1
	for _, n := range d.Shape {
		size *= n
	}
	return size
}

// each hands over the raw values of all examples and where in the example they stand.
func (d TrainingData) each(value func(place int, v float64)) {
	for example := range slices.Chunk(d.Pixels, d.size()) {
		for k, v := range example {
			value(k, float64(v))
		}
	}
	for example := range slices.Chunk(d.Values, d.size()) {
		for k, v := range example {
			value(k, float64(v))
		}
	}
}

type dataReader struct {
	set      *dataset.Set
	preset   dataset.Preset
	input    []int
	total    int
	progress func(Event)
	out      TrainingData
}

func (r *dataReader) tell(done int) {
	r.progress(Event{Kind: Step, Stage: "reading " + r.set.Path, Done: done, Total: r.total})
}

// shape checks the shape of the examples and says what it becomes.
func (r *dataReader) shape(shape []int) error {
	size := 1
	for _, n := range shape {
		size *= n
	}
	switch {
	case len(r.input) == 1 && r.input[0] == size:
		r.out.Shape = []int{size}
	case slices.Equal(shape, r.input):
		r.out.Shape = slices.Clone(shape)
	default:
		return usage.Errorf("%s has examples of shape %v, the net takes %v", r.set.Path, shape, r.input)
	}
	return nil
}

func (r *dataReader) images(ctx context.Context, b Backend, items []int) error {
	if len(r.input) == 1 {
		return usage.Errorf("the net takes %d columns, %s holds images", r.input[0], r.set.Path)
	}
	for at := 0; at < len(items); at += readChunk {
		r.tell(at)
		if err := r.chunk(ctx, b, items[at:min(at+readChunk, len(items))]); err != nil {
			return err
		}
	}
	return nil
}

func (r *dataReader) chunk(ctx context.Context, b Backend, items []int) error {
	files := make([][]byte, len(items))
	for i, item := range items {
		var err error
		if files[i], err = r.set.Read(ctx, item); err != nil {
			return err
		}
	}
	images, failed, err := b.Images(ctx, files, r.preset, true)
	if err != nil {
		return fmt.Errorf("decoding images of %s: %w", r.set.Path, err)
	}
	defer images.Close()
	for i, item := range items {
		if failed[i] != nil {
			return undecodable(r.set, item, failed[i])
		}
	}
	shape := images.Shape()
	if r.out.Pixels == nil {
		if err := r.shape(shape); err != nil {
			return err
		}
		r.out.Pixels = make([]byte, 0, r.total*shape[0]*shape[1]*shape[2])
	}
	for i := range items {
		pixels, err := images.Pixels(i)
		if err != nil {
			return err
		}
		if len(pixels) != shape[0]*shape[1]*shape[2] {
			return fmt.Errorf("decoding %s: %d pixels of shape %v", r.set.Items()[items[i]].ID, len(pixels), shape)
		}
		r.out.Pixels = appendPlanes(r.out.Pixels, pixels, shape[0])
	}
	return nil
}

// appendPlanes appends [H,W,C] pixels as [C,H,W].
func appendPlanes(to, pixels []byte, channels int) []byte {
	for c := range channels {
		for i := c; i < len(pixels); i += channels {
			to = append(to, pixels[i])
		}
	}
	return to
}

// rows reads arrays and tables: as bytes as long as all values are such.
func (r *dataReader) rows(ctx context.Context, items []int) error {
	bytes := true
	for i, item := range items {
		if i%4096 == 0 {
			r.tell(i)
			if err := ctx.Err(); err != nil {
				return err
			}
		}
		values, shape, err := r.set.Values(item)
		if err != nil {
			return err
		}
		if i == 0 {
			if err := r.shape(shape); err != nil {
				return err
			}
			r.out.Pixels = make([]byte, 0, r.total*len(values))
		}
		if bytes && !slices.ContainsFunc(values, notByte) {
			for _, v := range values {
				r.out.Pixels = append(r.out.Pixels, byte(v))
			}
			continue
		}
		if bytes {
			bytes = false
			r.out.Values = make([]float32, 0, r.total*len(values))
			for _, v := range r.out.Pixels {
				r.out.Values = append(r.out.Values, float32(v))
			}
			r.out.Pixels = nil
		}
		r.out.Values = append(r.out.Values, values...)
	}
	return nil
}

func notByte(v float32) bool {
	return !(v >= 0 && v <= math.MaxUint8) || v != float32(math.Trunc(float64(v)))
}

// SplitStratified divides places with those classes into two parts, ascending:
// of each class the nearest whole number to fraction of its places, chosen at
// random by the seed, is the second.
func SplitStratified(classes []int, fraction float64, seed uint64) (rest, chosen []int) {
	byClass := map[int][]int{}
	for i, c := range classes {
		byClass[c] = append(byClass[c], i)
	}
	taken := make([]bool, len(classes))
	stream := rng.New(seed, "train/validation", "")
	for c, places := range byClass {
		order := stream.Perm(uint64(c), len(places))
		for _, k := range order[:int(math.Round(fraction*float64(len(places))))] {
			taken[places[k]] = true
		}
	}
	for i := range classes {
		if taken[i] {
			chosen = append(chosen, i)
		} else {
			rest = append(rest, i)
		}
	}
	return rest, chosen
}

// spread gives a preset of images a mean and std a value, for a net that takes
// images of that shape as columns.
func spread(p dataset.Preset, shape []int) dataset.Preset {
	if len(shape) != 3 || len(p.Mean) <= 1 {
		return p
	}
	each := func(list []float64) []float64 {
		var out []float64
		for _, v := range list {
			out = append(out, slices.Repeat([]float64{v}, shape[1]*shape[2])...)
		}
		return out
	}
	p.Mean, p.Std = each(p.Mean), each(p.Std)
	return p
}
