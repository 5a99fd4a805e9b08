package bench

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"time"

	"github.com/assay-xai/assay/dataset"
	"github.com/assay-xai/assay/internal/device"
	"github.com/assay-xai/assay/internal/fill"
	"github.com/assay-xai/assay/internal/rng"
	"github.com/assay-xai/assay/orchestrate"
	"github.com/assay-xai/assay/weights"
)

// lab is a subject ready to be measured.
type lab struct {
	subject
	b       *bench
	backend orchestrate.Backend
	net     orchestrate.Net
	preset  dataset.Preset
	batch   int
	// Rates that were last measured, rows a second.
	forward, gradient float64
}

func (b *bench) lab(ctx context.Context, s subject) (_ *lab, err error) {
	l := &lab{subject: s, b: b}
	defer func() {
		if err != nil {
			l.close()
		}
	}()
	if l.backend, err = device.Open(b.o.Device, b.o.Threads); err != nil {
		return nil, err
	}
	info, err := l.backend.Describe(ctx, s.id, 0, 0)
	if err != nil {
		return nil, err
	}
	for _, layer := range info.Layers {
		if layer.Name == info.DefaultLayer {
			l.channels = layer.Outputs[0]
		}
	}
	if l.preset, err = dataset.PresetByID(info.Preset); err != nil {
		return nil, err
	}
	state, err := b.state(s, info)
	if err != nil {
		return nil, err
	}
	if l.net, err = l.backend.OpenNet(ctx, orchestrate.NetSpec{Net: s.id, Precision: "f32"}, state); err != nil {
		return nil, err
	}
	return l, l.choose(ctx)
}

func (l *lab) close() {
	if l.net != nil {
		l.net.Close()
	}
	if l.backend != nil {
		l.backend.Close()
	}
}

// state is a net's parameters: a file's where it is there, else the formula's.
func (b *bench) state(s subject, info orchestrate.NetInfo) (map[string]weights.Tensor, error) {
	if file := filepath.Join(b.o.Data, "weights", s.weights); b.o.Data != "" && s.weights != "" && there(file) {
		dict, err := weights.Open(file)
		if err != nil {
			return nil, err
		}
		state, _, err := weights.Match(dict, info.Parameters)
		return state, err
	}
	state := map[string]weights.Tensor{}
	for _, p := range info.Parameters {
		if !p.Optional {
			state[p.Name] = fill.Weights(p.Name, p.Shape, p.Buffer)
		}
	}
	return state, nil
}

// choose takes the batch shape that a plan that leaves it open would get: of a few
// the quickest forward, a larger one where it is 8 % quicker.
func (l *lab) choose(ctx context.Context) error {
	candidates := []int{8, 16, 32}
	if l.backend.Kind() != "cpu" {
		candidates = []int{32, 64, 128, 256}
	}
	best := 0.0
	for _, batch := range candidates {
		got, err := l.raw(ctx, batch, needs{forwards: 1}, rawPart)
		if err != nil {
			return err
		}
		if got > best*1.08 {
			best, l.batch = got, batch
		}
	}
	return nil
}

// images are inputs by the formula.
func (l *lab) images(ctx context.Context, n int) (orchestrate.Images, error) {
	shape := l.net.Info().Input
	all := []int64{int64(n)}
	for _, d := range shape {
		all = append(all, int64(d))
	}
	return l.backend.Arrays(ctx, fill.Input(all), shape)
}

// asked is a question about images: by their most probable classes.
func (l *lab) asked(ctx context.Context, images orchestrate.Images, method orchestrate.MethodSpec) (orchestrate.AttributionSpec, error) {
	spec := orchestrate.AttributionSpec{Method: method, Preset: l.preset, Batch: l.batch}
	predictions, err := l.net.Predict(ctx, images, 1, l.batch)
	for i, p := range predictions {
		spec.Targets = append(spec.Targets, p.Classes[0])
		spec.Keys = append(spec.Keys, rng.Key(0, "attribution", strconv.Itoa(i)))
	}
	return spec, err
}

// paced is units a second of f: of the first call where that takes the whole time,
// else of those after it.
func paced(ctx context.Context, seconds float64, units int, f func() error) (float64, error) {
	start := time.Now()
	if err := f(); err != nil {
		return 0, err
	}
	if once := time.Since(start).Seconds(); once >= seconds {
		return float64(units) / once, nil
	}
	calls := 0
	for start = time.Now(); calls == 0 || time.Since(start).Seconds() < seconds; calls++ {
		if err := ctx.Err(); err != nil {
			return 0, context.Cause(ctx)
		}
		if err := f(); err != nil {
			return 0, err
		}
	}
	return float64(calls*units) / time.Since(start).Seconds(), nil
}

// raw is rows a second of full batches: predictions, or gradients of the target's
// logit with respect to the input, which take a forward and a backward.
func (l *lab) raw(ctx context.Context, batch int, what needs, part float64) (float64, error) {
	images, err := l.images(ctx, batch)
	if err != nil {
		return 0, err
	}
	defer images.Close()
	once := func() error {
		_, err := l.net.Predict(ctx, images, 1, batch)
		return err
	}
	if what.gradients > 0 {
		spec, err := l.asked(ctx, images, orchestrate.MethodSpec{ID: "gradient"})
		if err != nil {
			return 0, err
		}
		once = func() error {
			_, err := l.net.Attribute(ctx, images, spec)
			return err
		}
	}
	return paced(ctx, part*l.b.o.Seconds, batch, once)
}

// around measures the raw rates that the needs are made of, before and after f.
func (l *lab) around(ctx context.Context, n needs, f func() error) error {
	measure := func() (forward, gradient float64, err error) {
		if n.forwards > 0 {
			if forward, err = l.raw(ctx, l.batch, needs{forwards: 1}, rawPart); err != nil {
				return 0, 0, err
			}
		}
		if n.gradients > 0 {
			gradient, err = l.raw(ctx, l.batch, needs{gradients: 1}, rawPart)
		}
		return forward, gradient, err
	}
	forward, gradient, err := measure()
	if err != nil {
		return err
	}
	if err := f(); err != nil {
		return err
	}
	l.forward, l.gradient, err = measure()
	l.forward, l.gradient = (l.forward+forward)/2, (l.gradient+gradient)/2
	return err
}

// rawRows measures the raw rates, turn about with PyTorch's eager net.
func (l *lab) rawRows(ctx context.Context) error {
	for _, c := range []struct {
		name string
		what needs
	}{{"forward", needs{forwards: 1}}, {"forward and backward to the input", needs{gradients: 1}}} {
		name := fmt.Sprintf("%s, %s, batch %d", c.name, l.title, l.batch)
		if !l.b.matches(l.id, c.name) {
			continue
		}
		row := Row{Name: name, Unit: "images/s", Opponent: "PyTorch eager, its best batch", Theirs: nan, Ratio: nan}
		var theirs func() (float64, error)
		if l.b.libraries != nil {
			theirs = func() (float64, error) {
				var answer struct {
					Rate float64
					How  string
				}
				err := l.b.libraries.ask(map[string]any{"do": "raw", "net": l.id, "backward": c.what.gradients > 0, "seconds": turnPart * l.b.o.Seconds}, &answer)
				row.Opponent = "PyTorch eager, " + answer.How
				return answer.Rate, err
			}
		}
		var err error
		row.Ours, row.Theirs, row.Ratio, err = duel(l.b.o.Rounds, func() (float64, error) { return l.raw(ctx, l.batch, c.what, turnPart) }, theirs)
		if err != nil {
			return err
		}
		l.b.add(row)
	}
	return nil
}
