package fake

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"sync/atomic"

	"github.com/assay-xai/assay/internal/rng"
	"github.com/assay-xai/assay/orchestrate"
	"github.com/assay-xai/assay/weights"
)

// The nets that the fake can train, and their parameters.
const (
	softmaxNet    = "softmax"
	softmaxImages = "softmax-image"
	weightName    = "fc.weight"
	biasName      = "fc.bias"
)

func describeSoftmax(net string, classes, features int) orchestrate.NetInfo {
	info := orchestrate.NetInfo{Net: net, Preset: "digits", Input: []int{64}, Classes: classes}
	if features > 0 {
		info.Input = []int{features}
	}
	columns := info.Input[0]
	if net == softmaxImages {
		info.Input, columns = []int{1, 8, 8}, 64
	}
	info.Parameters = []weights.Parameter{
		{Name: weightName, Shape: []int64{int64(classes), int64(columns)}}, {Name: biasName, Shape: []int64{int64(classes)}}}
	info.ParameterCount = int64(classes * (columns + 1))
	return info
}

// softmaxRegression is the net for inference.
type softmaxRegression struct {
	b       *Backend
	info    orchestrate.NetInfo
	w, bias []float32
	closed  atomic.Bool
}

func (n *softmaxRegression) Info() orchestrate.NetInfo { return n.info }

func (n *softmaxRegression) Close() error {
	if !n.closed.Swap(true) {
		n.b.OpenNets.Add(-1)
	}
	return nil
}

func (n *softmaxRegression) Predict(ctx context.Context, in orchestrate.Images, k, batch int) ([]orchestrate.Prediction, error) {
	var out []orchestrate.Prediction
	for _, row := range in.(*images).rows {
		out = append(out, best(softmax(linear(n.w, n.bias, row)), k))
	}
	return out, ctx.Err()
}

func (n *softmaxRegression) Scene(context.Context, orchestrate.SceneSpec) (orchestrate.Scene, error) {
	return nil, fmt.Errorf("net %s has no scenes", n.info.Net)
}

func linear(w, bias, x []float32) []float64 {
	out := make([]float64, len(bias))
	for c := range out {
		sum := float64(bias[c])
		for i, v := range x {
			sum += float64(v) * float64(w[c*len(x)+i])
		}
		out[c] = sum
	}
	return out
}

// trainer is softmax regression trained as PyTorch would: parameters and
// optimiser state are float32, sums float64.
type trainer struct {
	b      *Backend
	spec   orchestrate.TrainerSpec
	info   orchestrate.NetInfo
	params map[string][]float32
	state  map[string][]float32
	parts  map[string]orchestrate.TrainingData
	closed atomic.Bool
}

var _ orchestrate.TrainingBackend = (*Backend)(nil)

// OpenTrainer opens a trainer of softmax or softmax-image, or of imputer gain.
func (b *Backend) OpenTrainer(ctx context.Context, spec orchestrate.TrainerSpec, state map[string]weights.Tensor) (orchestrate.Trainer, error) {
	if spec.Imputer != nil {
		return b.openImputerTrainer(ctx, spec, state)
	}
	info, err := b.Describe(ctx, spec.Net, spec.Classes, spec.Features)
	if err != nil {
		return nil, err
	}
	if len(info.Parameters) != 2 {
		return nil, fmt.Errorf("the fake cannot train %s", spec.Net)
	}
	t := &trainer{b: b, spec: spec, info: info, params: map[string][]float32{}, parts: map[string]orchestrate.TrainingData{}}
	for _, p := range info.Parameters {
		stream := rng.New(spec.Seed, "fake/start", p.Name)
		bound := 1 / math.Sqrt(float64(info.Parameters[0].Shape[1]))
		list := make([]float32, product(p.Shape))
		for i := range list {
			list[i] = float32(bound * (2*stream.Float64(uint64(i), 0) - 1))
		}
		t.params[p.Name] = list
	}
	if state != nil {
		if err := t.SetState(ctx, state, nil); err != nil {
			return nil, err
		}
	}
	b.OpenTrainers.Add(1)
	return t, nil
}

func product(shape []int64) int64 {
	n := int64(1)
	for _, d := range shape {
		n *= d
	}
	return n
}

func (t *trainer) Info() orchestrate.NetInfo { return t.info }

func (t *trainer) Close() error {
	if !t.closed.Swap(true) {
		t.b.OpenTrainers.Add(-1)
	}
	return nil
}

func (t *trainer) SetData(ctx context.Context, part string, data orchestrate.TrainingData) error {
	t.parts[part] = data
	return ctx.Err()
}

// example is row i, raw.
func example(d orchestrate.TrainingData, i int) []float32 {
	size := 1
	for _, n := range d.Shape {
		size *= n
	}
	if d.Values != nil {
		return slices.Clone(d.Values[i*size : (i+1)*size])
	}
	out := make([]float32, size)
	for k, v := range d.Pixels[i*size : (i+1)*size] {
		out[k] = float32(v)
	}
	return out
}

// augment crops and flips [1,H,W].
func (t *trainer) augment(x []float32, shape []int, step int64, place int) []float32 {
	a := t.spec.Augment
	if a == (orchestrate.Augment{}) {
		return x
	}
	stream := rng.New(t.spec.Seed, "fake/augment", fmt.Sprint(place))
	h, w := shape[1], shape[2]
	dy, dx := stream.IntN(uint64(step), 0, 2*a.Pad+1)-a.Pad, stream.IntN(uint64(step), 1, 2*a.Pad+1)-a.Pad
	flip := a.Flip && stream.IntN(uint64(step), 2, 2) == 1
	out := make([]float32, len(x))
	for y := range h {
		for i := range w {
			from, row := i+dx, y+dy
			if flip {
				from = w - 1 - i + dx
			}
			if row >= 0 && row < h && from >= 0 && from < w {
				out[y*w+i] = x[row*w+from]
			}
		}
	}
	return out
}

func (t *trainer) Steps(ctx context.Context, indices []int32, batch int, rates []float64, first int64) (orchestrate.StepsResult, error) {
	var out orchestrate.StepsResult
	if err := t.b.wait(ctx); err != nil {
		return out, err
	}
	data := t.parts["train"]
	for i, rate := range rates {
		if t.b.FailStep != nil {
			if err := t.b.FailStep(first + int64(i)); err != nil {
				return out, err
			}
		}
		rows := indices[i*batch : min((i+1)*batch, len(indices))]
		gradient := map[string][]float64{}
		for name, p := range t.params {
			gradient[name] = make([]float64, len(p))
		}
		loss := 0.
		for place, row := range rows {
			x := t.augment(example(data, int(row)), data.Shape, first+int64(i), place)
			if err := t.spec.Preset.Normalise(x, data.Shape); err != nil {
				return out, err
			}
			p := softmax(linear(t.params[weightName], t.params[biasName], x))
			label := int(data.Labels[row])
			if slices.Index(p, slices.Max(p)) == label {
				out.Correct++
			}
			for c, v := range p {
				wanted := t.spec.LabelSmoothing / float64(len(p))
				if c == label {
					wanted += 1 - t.spec.LabelSmoothing
				}
				if wanted > 0 {
					loss -= wanted * math.Log(v) / float64(len(rows))
				}
				d := (v - wanted) / float64(len(rows))
				gradient[biasName][c] += d
				for k, xv := range x {
					gradient[weightName][c*len(x)+k] += d * float64(xv)
				}
			}
		}
		out.Losses = append(out.Losses, loss)
		out.Examples += len(rows)
		for name := range t.params {
			t.update(name, gradient[name], rate, first+int64(i))
		}
	}
	return out, nil
}

// update is PyTorch's SGD or Adam.
func (t *trainer) update(name string, gradient []float64, rate float64, step int64) {
	o, p := t.spec.Optimizer, t.params[name]
	list := func(kind string) []float32 {
		key := name + "/" + kind
		if t.state == nil {
			t.state = map[string][]float32{}
		}
		if t.state[key] == nil {
			t.state[key] = make([]float32, len(p))
		}
		return t.state[key]
	}
	if o.ID == "adam" {
		m, v := list("exp_avg"), list("exp_avg_sq")
		n := float64(step + 1)
		c1, c2 := 1-math.Pow(o.Beta1, n), 1-math.Pow(o.Beta2, n)
		for i, g := range gradient {
			g += o.WeightDecay * float64(p[i])
			m[i] = float32(o.Beta1*float64(m[i]) + (1-o.Beta1)*g)
			v[i] = float32(o.Beta2*float64(v[i]) + (1-o.Beta2)*g*g)
			p[i] -= float32(rate * float64(m[i]) / c1 / (math.Sqrt(float64(v[i])/c2) + o.Epsilon))
		}
		return
	}
	var b []float32
	if o.Momentum > 0 {
		b = list("momentum")
	}
	for i, g := range gradient {
		g += o.WeightDecay * float64(p[i])
		if b != nil {
			if b[i] = float32(o.Momentum*float64(b[i]) + g); o.Nesterov {
				g += o.Momentum * float64(b[i])
			} else {
				g = float64(b[i])
			}
		}
		p[i] -= float32(rate * g)
	}
}

func (t *trainer) Evaluate(ctx context.Context, part string, batch int) (orchestrate.Evaluation, error) {
	data := t.parts[part]
	out := orchestrate.Evaluation{Examples: len(data.Labels)}
	for i, label := range data.Labels {
		x := example(data, i)
		if err := t.spec.Preset.Normalise(x, data.Shape); err != nil {
			return out, err
		}
		p := softmax(linear(t.params[weightName], t.params[biasName], x))
		if best(p, 1).Classes[0] == int(label) {
			out.Correct++
		}
		out.Loss -= math.Log(p[label]) / float64(len(data.Labels))
	}
	return out, ctx.Err()
}

func (t *trainer) Parameters(ctx context.Context) (map[string]weights.Tensor, error) {
	out := map[string]weights.Tensor{}
	for _, p := range t.info.Parameters {
		out[p.Name] = tensor(t.params[p.Name], p.Shape)
	}
	return out, ctx.Err()
}

func (t *trainer) OptimizerState(ctx context.Context) (map[string]weights.Tensor, error) {
	out := map[string]weights.Tensor{}
	for name, list := range t.state {
		out[name] = tensor(list, []int64{int64(len(list))})
	}
	return out, ctx.Err()
}

func (t *trainer) SetState(_ context.Context, parameters, optimizer map[string]weights.Tensor) error {
	for _, p := range t.info.Parameters {
		list := floats(parameters[p.Name])
		if int64(len(list)) != product(p.Shape) {
			return fmt.Errorf("%s: %d values for shape %v", p.Name, len(list), p.Shape)
		}
		t.params[p.Name] = list
	}
	t.state = map[string][]float32{}
	for name, s := range optimizer {
		t.state[name] = floats(s)
	}
	return nil
}

func tensor(list []float32, shape []int64) weights.Tensor {
	var data []byte
	for _, v := range list {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(v))
	}
	return weights.Tensor{DType: "f32", Shape: shape, Data: data}
}

func floats(t weights.Tensor) []float32 {
	var out []float32
	for i := 0; i+4 <= len(t.Data); i += 4 {
		out = append(out, math.Float32frombits(binary.LittleEndian.Uint32(t.Data[i:])))
	}
	return out
}
