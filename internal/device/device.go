// Package device lets studies run on torchx: it satisfies orchestrate.Backend.
package device

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"

	"github.com/assay-xai/assay/dataset"
	"github.com/assay-xai/assay/internal/usage"
	"github.com/assay-xai/assay/orchestrate"
	"github.com/assay-xai/assay/torchx"
	"github.com/assay-xai/assay/weights"
)

// Backend is a torchx device.
type Backend struct {
	d       *torchx.Device
	threads int // for decoding

	probe      sync.Once // of bf16 on the CPU
	probeError error

	generators generators
}

var _ orchestrate.Backend = (*Backend)(nil)

// Open opens "cpu", "cuda:N" or "" (the first GPU if there is one, else the
// CPU) with so many threads (0: one a core).
func Open(name string, threads int) (orchestrate.Backend, error) {
	if threads < 0 {
		return nil, usage.Errorf("threads %d: want at least 1, or 0 for one a core", threads)
	}
	if threads == 0 {
		threads = runtime.NumCPU()
	}
	if name == "" {
		if d, err := torchx.Open("cuda:0", threads); err == nil {
			return &Backend{d: d, threads: threads}, nil
		}
		name = "cpu"
	}
	d, err := torchx.Open(name, threads)
	if err != nil {
		return nil, mark(err)
	}
	return &Backend{d: d, threads: threads}, nil
}

// mark makes errors about what was asked for errors of usage, and those that a
// smaller batch may mend findable.
func mark(err error) error {
	if torchx.IsOutOfMemory(err) {
		return fmt.Errorf("%w: %w", orchestrate.ErrOutOfMemory, err)
	}
	if errors.Is(err, torchx.ErrInvalid) || errors.Is(err, torchx.ErrNotFound) || errors.Is(err, torchx.ErrUnsupported) {
		return usage.Mark(err)
	}
	return err
}

// Device is "cpu" or "cuda:N".
func (b *Backend) Device() string { return b.d.Name() }

// Kind is "cpu" or "cuda".
func (b *Backend) Kind() string { return b.d.Kind() }

// Close ends the device's thread.
func (b *Backend) Close() error { return errors.Join(b.generators.close(), b.d.Close()) }

// Runtime describes libtorch, the CPU and the GPUs.
func (b *Backend) Runtime(ctx context.Context) (map[string]any, error) {
	text, err := b.d.Runtime(ctx)
	if err != nil {
		return nil, err
	}
	var out map[string]any
	if err := json.Unmarshal(text, &out); err != nil {
		return nil, fmt.Errorf("describing the runtime: %w", err)
	}
	free, total, err := b.d.Memory()
	if err != nil {
		return nil, err
	}
	out["device"] = b.d.Name()
	out["memoryFree"], out["memoryTotal"] = free, total
	return out, nil
}

// Catalogue lists what the library offers.
func (b *Backend) Catalogue(context.Context) (orchestrate.Catalogue, error) {
	var out orchestrate.Catalogue
	text, err := torchx.Catalogue()
	if err != nil {
		return out, err
	}
	if err := json.Unmarshal(text, &out); err != nil {
		return out, fmt.Errorf("the library's catalogue: %w", err)
	}
	return out, nil
}

// Describe answers for a net without weights.
func (b *Backend) Describe(ctx context.Context, net string, classes, features int) (orchestrate.NetInfo, error) {
	return b.describeSpec(ctx, orchestrate.NetSpec{Net: net, Classes: classes, Features: features})
}

// DescribeFile answers for a net that comes as a file.
func (b *Backend) DescribeFile(ctx context.Context, file orchestrate.NetFile) (orchestrate.NetInfo, error) {
	return b.describeSpec(ctx, orchestrate.NetSpec{File: &file})
}

func (b *Backend) describeSpec(ctx context.Context, spec orchestrate.NetSpec) (orchestrate.NetInfo, error) {
	n, err := b.build(ctx, spec)
	if err != nil {
		return orchestrate.NetInfo{}, mark(err)
	}
	defer n.Close()
	return describe(n)
}

// build makes a net without its parameters, except for TorchScript, which has them.
func (b *Backend) build(ctx context.Context, spec orchestrate.NetSpec) (*torchx.Net, error) {
	switch f := spec.File; {
	case f == nil:
		return b.d.NewNet(ctx, torchx.NetSpec{Net: spec.Net, Classes: spec.Classes, Features: spec.Features})
	case f.Script:
		return b.d.NetFromTorchScript(ctx, f.Content, torchx.ScriptSpec{Name: f.Name, Input: f.Input})
	case !json.Valid(f.Content):
		return nil, usage.Errorf("%s: no net file: it is not JSON", f.Name)
	default:
		n, err := b.d.NewNet(ctx, torchx.NetSpec{Graph: f.Content})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.Name, usage.Line(err, ""))
		}
		return n, nil
	}
}

func describe(n *torchx.Net) (orchestrate.NetInfo, error) {
	var info orchestrate.NetInfo
	text, err := n.Describe()
	if err != nil {
		return info, err
	}
	if err := json.Unmarshal(text, &info); err != nil {
		return info, fmt.Errorf("the library's description of a net: %w", err)
	}
	return info, nil
}

// OpenNet builds a net, loads its parameters and prepares it.
func (b *Backend) OpenNet(ctx context.Context, spec orchestrate.NetSpec, state map[string]weights.Tensor) (orchestrate.Net, error) {
	precision, err := torchx.ParsePrecision(spec.Precision)
	if err != nil {
		return nil, mark(err)
	}
	if err := b.makeBF16Safe(ctx, precision); err != nil {
		return nil, err
	}
	n, err := b.build(ctx, spec)
	if err != nil {
		return nil, mark(err)
	}
	out := &net{b: b, n: n, precision: precision}
	if err := out.load(ctx, spec, state); err != nil {
		n.Close()
		return nil, fmt.Errorf("net %s: %w", spec.Net, mark(err))
	}
	return out, nil
}

type net struct {
	b         *Backend
	n         *torchx.Net
	precision torchx.Precision
	info      orchestrate.NetInfo
}

func (n *net) load(ctx context.Context, spec orchestrate.NetSpec, state map[string]weights.Tensor) error {
	tensors := make(map[string]*torchx.Tensor, len(state))
	defer func() {
		for _, t := range tensors {
			t.Close()
		}
	}()
	for name, t := range state {
		dtype, err := torchx.ParseDType(t.DType)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if tensors[name], err = torchx.NewTensor(dtype, t.Shape, t.Data); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	if spec.File == nil || !spec.File.Script {
		if err := n.n.Load(ctx, tensors); err != nil {
			return err
		}
	}
	if err := n.n.Prepare(ctx, n.precision); err != nil {
		return err
	}
	var err error
	n.info, err = describe(n.n)
	return err
}

// Info describes the net.
func (n *net) Info() orchestrate.NetInfo { return n.info }

// Close frees the net.
func (n *net) Close() error { return n.n.Close() }

// Predict returns the k best classes of every image.
func (n *net) Predict(ctx context.Context, images orchestrate.Images, k, batch int) ([]orchestrate.Prediction, error) {
	in, err := own(images)
	if err != nil {
		return nil, err
	}
	logits, err := n.n.Forward(ctx, in.values, batch)
	if err != nil {
		return nil, fmt.Errorf("predicting with %s: %w", n.info.Net, mark(err))
	}
	defer logits.Close()
	classes := n.info.Classes
	var rows []float64
	if n.precision == torchx.PrecisionF64 {
		rows, err = logits.Doubles()
	} else {
		var narrow []float32
		narrow, err = logits.Floats()
		rows = make([]float64, len(narrow))
		for i, v := range narrow {
			rows[i] = float64(v)
		}
	}
	if err != nil {
		return nil, err
	}
	out := make([]orchestrate.Prediction, in.Len())
	for i := range out {
		out[i] = best(rows[i*classes:(i+1)*classes], k)
	}
	return out, nil
}

// best takes the k largest softmax values; ties go to the smaller class, and a
// row with NaN answers classes 0..k-1 with NaN.
func best(logits []float64, k int) orchestrate.Prediction {
	k = min(k, len(logits))
	p := orchestrate.Prediction{Classes: make([]int, k), Probabilities: make([]float64, k)}
	if slices.ContainsFunc(logits, math.IsNaN) {
		for i := range p.Classes {
			p.Classes[i], p.Probabilities[i] = i, math.NaN()
		}
		return p
	}
	largest, sum := slices.Max(logits), 0.0
	for _, v := range logits {
		sum += math.Exp(v - largest)
	}
	order := make([]int, len(logits))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		switch {
		case logits[a] > logits[b]:
			return -1
		case logits[a] < logits[b]:
			return 1
		}
		return 0
	})
	for i := range k {
		p.Classes[i] = order[i]
		p.Probabilities[i] = math.Exp(logits[order[i]]-largest) / sum
	}
	return p
}

// Images decodes encoded images on all threads.
func (b *Backend) Images(_ context.Context, files [][]byte, preset dataset.Preset, pixels bool) (orchestrate.Images, []error, error) {
	spec, err := imageSpec(preset)
	if err != nil {
		return nil, nil, err
	}
	values, px, messages, err := torchx.DecodeImages(files, spec, b.threads, pixels)
	if err != nil {
		return nil, nil, fmt.Errorf("decoding %d images: %w", len(files), mark(err))
	}
	out, err := newImages(values, px)
	if err != nil {
		return nil, nil, err
	}
	failed := make([]error, len(messages))
	for i, m := range messages {
		if m != "" {
			failed[i] = errors.New(m)
		}
	}
	return out, failed, nil
}

func imageSpec(p dataset.Preset) (torchx.ImageSpec, error) {
	spec := torchx.ImageSpec{
		Height: p.Height, Width: p.Width, Bicubic: p.Interpolation == "bicubic",
		CropHeight: p.CropHeight, CropWidth: p.CropWidth, Channels: p.Channels,
	}
	switch p.Resize {
	case "", "none":
		spec.Resize = torchx.ResizeNone
	case "shorter":
		spec.Resize = torchx.ResizeShorter
	case "squash":
		spec.Resize = torchx.ResizeSquash
	default:
		return spec, usage.Errorf("preset %s: resize %q: want none, shorter or squash", p.ID, p.Resize)
	}
	if spec.Channels == 0 {
		spec.Channels = 3
	}
	spec.Mean, spec.Std = channelValues(p.Mean, spec.Channels, 0), channelValues(p.Std, spec.Channels, 1)
	return spec, nil
}

// channelValues spreads a single value over all channels; none means otherwise.
func channelValues(values []float64, channels int, otherwise float32) []float32 {
	out := make([]float32, channels)
	for i := range out {
		switch {
		case len(values) == 0:
			out[i] = otherwise
		case len(values) == 1:
			out[i] = float32(values[0])
		case i < len(values):
			out[i] = float32(values[i])
		}
	}
	return out
}

// Arrays takes normalised arrays.
func (b *Backend) Arrays(_ context.Context, values []float32, shape []int) (orchestrate.Images, error) {
	each := 1
	for _, d := range shape {
		each *= d
	}
	if each == 0 || len(values)%each != 0 {
		return nil, fmt.Errorf("%d values are no multiple of shape %v", len(values), shape)
	}
	dims := []int64{int64(len(values) / each)}
	for _, d := range shape {
		dims = append(dims, int64(d))
	}
	t, err := torchx.NewFloats(dims, values)
	if err != nil {
		return nil, err
	}
	return newImages(t, nil)
}

type images struct {
	values, pixels *torchx.Tensor
	shape          []int
	n              int
}

func newImages(values, pixels *torchx.Tensor) (*images, error) {
	_, dims, err := values.Describe()
	if err != nil {
		return nil, err
	}
	out := &images{values: values, pixels: pixels, n: int(dims[0])}
	for _, d := range dims[1:] {
		out.shape = append(out.shape, int(d))
	}
	return out, nil
}

// own says whether images came from this package.
func own(in orchestrate.Images) (*images, error) {
	out, ok := in.(*images)
	if !ok {
		return nil, fmt.Errorf("images of type %T come from another backend", in)
	}
	return out, nil
}

func (m *images) Len() int     { return m.n }
func (m *images) Shape() []int { return slices.Clone(m.shape) }

func (m *images) Values(i int) ([]float32, error) {
	row, err := m.values.Row(i)
	if err != nil {
		return nil, err
	}
	defer row.Close()
	return row.Floats()
}

func (m *images) Pixels(i int) ([]byte, error) {
	if m.pixels == nil {
		return nil, nil
	}
	row, err := m.pixels.Row(i)
	if err != nil {
		return nil, err
	}
	defer row.Close()
	return row.Bytes()
}

func (m *images) Close() error {
	return errors.Join(m.values.Close(), m.pixels.Close())
}
