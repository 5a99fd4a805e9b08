// Package fake is a backend without a device, for tests: its nets are small
// linear functions of the pixels, deterministic and independent of batches.
package fake

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"github.com/assay-xai/assay/dataset"
	"github.com/assay-xai/assay/internal/rng"
	"github.com/assay-xai/assay/internal/usage"
	"github.com/assay-xai/assay/orchestrate"
	"github.com/assay-xai/assay/trace"
	"github.com/assay-xai/assay/weights"
)

// Backend is the fake. Files that begin with "BAD" do not decode, those that
// begin with "NAN" make nets answer NaN.
type Backend struct {
	Name string
	// Delay is how long every batch takes.
	Delay time.Duration
	// Fail, if set, is asked before every batch of states; its error is the
	// device's. FailStep is asked before every training step.
	Fail     func(call int64) error
	FailStep func(step int64) error
	// Memory is the largest batch that fits; 0 is no limit.
	Memory int
	// BlackBox makes nets say that only their answers are known.
	BlackBox bool

	calls atomic.Int64
	// Open counts what was opened and not closed.
	OpenImages, OpenNets, OpenScenes, OpenStages, OpenTrainers, Opened atomic.Int64
	// MostImages is the largest number of decoded images at any time.
	MostImages atomic.Int64
}

var _ orchestrate.Backend = (*Backend)(nil)

// Opener opens b again and again.
func (b *Backend) Opener() orchestrate.Opener {
	return func(device string, threads int) (orchestrate.Backend, error) {
		if device != "" && device != "cpu" && device != "cuda:0" && device != "cuda:1" {
			return nil, usage.Errorf("device %q: want cpu or cuda:0", device)
		}
		if b.Name = device; device == "" {
			b.Name = "cpu"
		}
		b.Opened.Add(1)
		return b, nil
	}
}

// Calls counts the batches of states and the calls for training steps.
func (b *Backend) Calls() int64 { return b.calls.Load() }

// Device is the name it was opened with.
func (b *Backend) Device() string { return b.Name }

// Kind is the device without its number.
func (b *Backend) Kind() string {
	kind, _, _ := bytes.Cut([]byte(b.Name), []byte(":"))
	return string(kind)
}

// Close counts.
func (b *Backend) Close() error { b.Opened.Add(-1); return nil }

// Runtime says that it is a fake.
func (b *Backend) Runtime(context.Context) (map[string]any, error) {
	return map[string]any{"torch": "fake", "device": b.Name, "threads": 1}, nil
}

// Catalogue has an image net and a table net, and a few imputers.
func (b *Backend) Catalogue(context.Context) (orchestrate.Catalogue, error) {
	none, one := 0.0, 1.0
	return orchestrate.Catalogue{
		Nets: []orchestrate.Entry{
			{ID: "tiny", Summary: "ten classes of 8x8 images", Preset: "digits", Input: []int{3, 8, 8}, Classes: 10},
			{ID: "tiny-wide", Summary: "the same with another name", Preset: "digits", Input: []int{3, 8, 8}, Classes: 10},
			{ID: "logistic", Summary: "on tables", Preset: "table", Input: []int{30}, Classes: 2},
			{ID: softmaxNet, Summary: "softmax regression on columns", Preset: "digits", Input: []int{64}, Classes: 10},
			{ID: softmaxImages, Summary: "softmax regression on 8x8 images", Preset: "digits", Input: []int{1, 8, 8}, Classes: 10},
		},
		Methods: methods(),
		Imputers: []orchestrate.Entry{
			{ID: "zero", Summary: "zero"},
			{ID: "blur", Summary: "Gaussian blur", Parameters: []orchestrate.EntryParameter{
				{Name: "kernel", Type: "int", Default: 31, Minimum: &one}, {Name: "sigma", Type: "float", Default: 56.0, Minimum: &one}}},
			{ID: "uniform", Summary: "random numbers"},
			{ID: "patch-mean", Summary: "the mean of each patch"},
			{ID: "image", Summary: "another image", Parameters: []orchestrate.EntryParameter{{Name: "image", Type: "string", Default: ""}}},
			{ID: "channel-mean", Summary: "the mean of every channel of the image"},
			{ID: datasetMean, Needs: orchestrate.NeedsData, Summary: "the mean of every channel of the data"},
			{ID: noisyLinear, Needs: orchestrate.NeedsMask, Summary: "weighted means of neighbours, and noise", Parameters: []orchestrate.EntryParameter{
				{Name: "noise", Type: "float", Default: .01, Minimum: &none}}},
			{ID: gainImputer, Needs: orchestrate.NeedsMask, Generator: true, Summary: "a trained generator"},
		},
	}, nil
}

// inputs is how many numbers of an image the weights look at.
const inputs = 16

// Describe answers for "tiny", "tiny-wide" and "logistic".
func (b *Backend) Describe(_ context.Context, net string, classes, features int) (orchestrate.NetInfo, error) {
	info := orchestrate.NetInfo{Net: net, Preset: "digits", Input: []int{3, 8, 8}, Classes: 10, BlackBox: b.BlackBox}
	if b.BlackBox {
		info.Reason = "made so"
	}
	if net == "logistic" {
		info.Preset, info.Input, info.Classes = "table", []int{30}, 2
		if features > 0 {
			info.Input = []int{features}
		}
	}
	if classes > 0 {
		info.Classes = classes
	}
	if net == softmaxNet || net == softmaxImages {
		return describeSoftmax(net, info.Classes, features), nil
	}
	info.Layers = []orchestrate.Layer{{Name: "input", Op: "input", Outputs: info.Input}, {Name: "fc", Op: "linear", Outputs: []int{info.Classes}}}
	info.DefaultLayer = "fc"
	info.Parameters = []weights.Parameter{{Name: "fc.weight", Shape: []int64{int64(info.Classes), inputs}}}
	return info, nil
}

// Weights is a state for a net of so many classes, and its file's name.
func Weights(path string, classes int) error { return SeededWeights(path, classes, uint64(classes)) }

// SeededWeights is Weights for another seed.
func SeededWeights(path string, classes int, seed uint64) error {
	stream := rng.New(seed, "fake/weights", "")
	var data []byte
	for i := range classes * inputs {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(float32(stream.Float64(uint64(i), 0)-.5)))
	}
	return weights.WriteSafetensors(path, map[string]weights.Tensor{
		"fc.weight": {DType: "f32", Shape: []int64{int64(classes), inputs}, Data: data}}, nil)
}

// DescribeFile takes a net file whose "net" is one of the fake's.
func (b *Backend) DescribeFile(ctx context.Context, file orchestrate.NetFile) (orchestrate.NetInfo, error) {
	var own struct {
		Net     string `json:"net"`
		Classes int    `json:"classes"`
	}
	if err := json.Unmarshal(file.Content, &own); err != nil {
		return orchestrate.NetInfo{}, usage.Errorf("fake: %s: %w", file.Name, err)
	}
	return b.Describe(ctx, own.Net, own.Classes, 0)
}

// OpenNet opens a net.
func (b *Backend) OpenNet(ctx context.Context, spec orchestrate.NetSpec, state map[string]weights.Tensor) (orchestrate.Net, error) {
	var info orchestrate.NetInfo
	var err error
	if spec.File != nil {
		info, err = b.DescribeFile(ctx, *spec.File)
	} else {
		info, err = b.Describe(ctx, spec.Net, spec.Classes, spec.Features)
	}
	if err != nil {
		return nil, err
	}
	if spec.Net == softmaxNet || spec.Net == softmaxImages {
		b.OpenNets.Add(1)
		return &softmaxRegression{b: b, info: info, w: floats(state[weightName]), bias: floats(state[biasName])}, nil
	}
	n := &net{b: b, info: info}
	data := state["fc.weight"].Data
	for i := 0; i+4 <= len(data); i += 4 {
		w := float64(math.Float32frombits(binary.LittleEndian.Uint32(data[i:])))
		if spec.Precision == "bf16" {
			w = math.Round(w*16) / 16 // coarse, so that tests see it
		}
		n.w = append(n.w, w)
	}
	b.OpenNets.Add(1)
	return n, nil
}

// Images makes images out of the files' hashes.
func (b *Backend) Images(ctx context.Context, files [][]byte, preset dataset.Preset, pixels bool) (orchestrate.Images, []error, error) {
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	channels := max(1, preset.Channels)
	h, w := preset.Height, preset.Width
	out := &images{b: b, shape: []int{channels, h, w}}
	failed := make([]error, len(files))
	for i, f := range files {
		row := make([]float32, channels*h*w)
		switch {
		case len(f) == 0 || bytes.HasPrefix(f, []byte("BAD")):
			failed[i] = errors.New("not a JPEG or PNG file")
		case bytes.HasPrefix(f, []byte("NAN")):
			for j := range row {
				row[j] = float32(math.NaN())
			}
		default:
			sum := sha256.Sum256(f)
			stream := rng.Stream{Key: binary.LittleEndian.Uint64(sum[:])}
			for j := range row {
				row[j] = float32(stream.Float64(uint64(j), 0))
			}
		}
		out.rows = append(out.rows, row)
	}
	out.pixels = pixels
	return b.count(out), failed, nil
}

// Arrays takes arrays.
func (b *Backend) Arrays(ctx context.Context, values []float32, shape []int) (orchestrate.Images, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	size := 1
	for _, d := range shape {
		size *= d
	}
	out := &images{b: b, shape: shape}
	for row := range slices.Chunk(values, size) {
		out.rows = append(out.rows, slices.Clone(row))
	}
	return b.count(out), nil
}

func (b *Backend) count(i *images) *images {
	n := b.OpenImages.Add(int64(len(i.rows)))
	for most := b.MostImages.Load(); n > most && !b.MostImages.CompareAndSwap(most, n); most = b.MostImages.Load() {
	}
	return i
}

type images struct {
	b      *Backend
	rows   [][]float32
	shape  []int
	pixels bool
	closed atomic.Bool
}

func (i *images) Len() int                        { return len(i.rows) }
func (i *images) Shape() []int                    { return i.shape }
func (i *images) Values(n int) ([]float32, error) { return slices.Clone(i.rows[n]), nil }
func (i *images) Close() error {
	if !i.closed.Swap(true) {
		i.b.OpenImages.Add(-int64(len(i.rows)))
	}
	return nil
}

func (i *images) Pixels(n int) ([]byte, error) {
	if !i.pixels {
		return nil, nil
	}
	c, h, w := i.shape[0], i.shape[1], i.shape[2]
	out := make([]byte, c*h*w)
	for p := range out {
		out[p] = byte(255 * i.rows[n][p%c*h*w+p/c])
	}
	return out, nil
}

type net struct {
	b      *Backend
	info   orchestrate.NetInfo
	w      []float64
	closed atomic.Bool
}

func (n *net) Info() orchestrate.NetInfo { return n.info }

func (n *net) Close() error {
	if !n.closed.Swap(true) {
		n.b.OpenNets.Add(-1)
	}
	return nil
}

// logits are weighted sums: number i of the image has weight i%inputs of every
// class, bent so that features interact.
func (n *net) logits(x []float32) []float64 {
	out := make([]float64, n.info.Classes)
	for c := range out {
		sum := 0.0
		for i, v := range x {
			sum += float64(v) * n.w[c*inputs+i%inputs] * (1 + float64(i%7))
		}
		out[c] = 4 * math.Sin(sum/4)
	}
	return out
}

func softmax(logits []float64) []float64 {
	top := slices.Max(logits)
	out := make([]float64, len(logits))
	sum := 0.0
	for i, v := range logits {
		out[i] = math.Exp(v - top)
		sum += out[i]
	}
	for i := range out {
		out[i] /= sum
	}
	return out
}

func (n *net) Predict(ctx context.Context, in orchestrate.Images, k, batch int) ([]orchestrate.Prediction, error) {
	if err := n.b.wait(ctx); err != nil {
		return nil, err
	}
	var out []orchestrate.Prediction
	for _, row := range in.(*images).rows {
		out = append(out, best(softmax(n.logits(row)), k))
	}
	return out, nil
}

// best takes the k most probable classes.
func best(probabilities []float64, k int) orchestrate.Prediction {
	order := make([]int, len(probabilities))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		switch {
		case probabilities[a] > probabilities[b]:
			return -1
		case probabilities[a] < probabilities[b]:
			return 1
		}
		return 0
	})
	p := orchestrate.Prediction{Classes: order[:k]}
	for _, c := range order[:k] {
		p.Probabilities = append(p.Probabilities, probabilities[c])
	}
	return p
}

func (b *Backend) wait(ctx context.Context) error {
	if b.Delay == 0 {
		return ctx.Err()
	}
	select {
	case <-time.After(b.Delay):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (n *net) Scene(_ context.Context, spec orchestrate.SceneSpec) (orchestrate.Scene, error) {
	if err := checkGenerator(spec.Reference, spec.Generator); err != nil {
		return nil, err
	}
	var other []float32
	if spec.Other != nil {
		other, _ = spec.Other.Values(0)
	}
	n.b.OpenScenes.Add(1)
	return &scene{n: n, other: other, spec: spec, rows: make([][]float32, spec.Slots), reference: make([][]float32, spec.Slots), keys: make([]uint64, spec.Slots)}, nil
}

type scene struct {
	n               *net
	spec            orchestrate.SceneSpec
	rows, reference [][]float32
	keys            []uint64 // for imputers that go by the mask
	other           []float32
	closed          atomic.Bool
}

func (s *scene) Put(ctx context.Context, slot int, in orchestrate.Images, i int, key uint64) error {
	if slot < 0 || slot >= s.spec.Slots {
		return fmt.Errorf("slot %d: want 0..%d", slot, s.spec.Slots-1)
	}
	row := slices.Clone(in.(*images).rows[i])
	reference := make([]float32, len(row))
	for j := range reference {
		switch s.spec.Reference.ID {
		case "blur":
			reference[j] = .5
		case "image":
			reference[j] = s.other[j]
		case "uniform":
			reference[j] = float32(rng.Stream{Key: key}.Float64(uint64(j), 0))
		}
	}
	s.rows[slot], s.reference[slot], s.keys[slot] = row, reference, key
	return ctx.Err()
}

func (s *scene) ScoreRows(ctx context.Context, rows []trace.Row) ([]trace.Score, error) {
	if s.n.b.Memory > 0 && s.spec.Batch > s.n.b.Memory {
		return nil, fmt.Errorf("batch %d: %w", s.spec.Batch, orchestrate.ErrOutOfMemory)
	}
	call := s.n.b.calls.Add(1)
	if s.n.b.Fail != nil {
		if err := s.n.b.Fail(call); err != nil {
			return nil, err
		}
	}
	if err := s.n.b.wait(ctx); err != nil {
		return nil, err
	}
	out := make([]trace.Score, len(rows))
	for r, row := range rows {
		x := slices.Clone(s.rows[row.Slot])
		pixels := len(s.spec.FeatureMap)
		var gone []int // of the pixels
		for i := range x {
			f := s.spec.FeatureMap[i%pixels]
			if row.Set[f/64]>>(f%64)&1 == 1 {
				x[i] = s.reference[row.Slot][i]
				if i < pixels {
					gone = append(gone, i)
				}
			}
		}
		if s.spec.Reference.ID == gainImputer {
			x = slices.Clone(s.rows[row.Slot])
			if err := generate(x, s.spec.Shape, gone, s.spec.Generator, s.spec.Preset, s.keys[row.Slot]); err != nil {
				return nil, err
			}
		}
		logits := s.n.logits(x)
		out[r] = trace.Score{Logit: logits[row.Target], Prob: softmax(logits)[row.Target]}
	}
	return out, nil
}

func (s *scene) Close() error {
	if !s.closed.Swap(true) {
		s.n.b.OpenScenes.Add(-1)
	}
	return nil
}
