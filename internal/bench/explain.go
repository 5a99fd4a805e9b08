package bench

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/assay-xai/assay/dataset"
	"github.com/assay-xai/assay/internal/device"
	"github.com/assay-xai/assay/internal/fill"
	"github.com/assay-xai/assay/internal/rng"
	"github.com/assay-xai/assay/orchestrate"
	"github.com/assay-xai/assay/weights"
)

// wantedShare of its limit is what every method and score should reach.
const wantedShare = .85

// Parts of Options.Seconds: a turn of a method, of the raw rates around it.
const (
	turnPart = 1. / 6
	rawPart  = 1. / 12
)

// line is a method or score with what it is compared with.
type line struct {
	name  string
	needs needs
	known bool    // what it needs is
	ran   needs   // what ran, an image; 0: not counted
	ours  float64 // images a second
	limit float64
	with  []against
}

// against is another library's rate; NaN with why it has none.
type against struct {
	other
	rate  float64
	batch string
	why   string
}

// explain measures every method of the catalogue on every subject.
func (b *bench) explain(ctx context.Context) error {
	return b.onSubjects(ctx, "method", "rows an image", func(l *lab) ([]line, error) {
		if err := l.rawRows(ctx); err != nil {
			return nil, err
		}
		catalogue, err := l.backend.Catalogue(ctx)
		if err != nil {
			return nil, err
		}
		var lines []line
		for _, a := range l.attributions(catalogue) {
			if !b.matches(l.id, a.spec) {
				continue
			}
			method, name, err := catalogue.Method(a.spec)
			if err != nil {
				return nil, err
			}
			one, err := l.method(ctx, a, method, name)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			b.logLine(l, one)
			lines = append(lines, one)
		}
		return lines, nil
	}, b.stepsMemory)
}

// onSubjects prepares one net after the other, and makes a table of its lines.
func (b *bench) onSubjects(ctx context.Context, what, needed string, measure func(*lab) ([]line, error), then ...func(context.Context) error) error {
	if err := b.startLibraries(ctx); err != nil {
		return err
	}
	for _, s := range subjects() {
		if !b.wants(s.id) {
			continue
		}
		start := time.Now()
		l, err := b.lab(ctx, s)
		if err != nil {
			return fmt.Errorf("%s: %w", s.title, err)
		}
		lines, err := measure(l)
		l.close()
		if err != nil {
			return fmt.Errorf("%s: %w", s.title, err)
		}
		b.logf("%s: %.0f s", s.title, time.Since(start).Seconds())
		b.result.Notes = append(b.result.Notes, l.table(what, needed, lines))
	}
	for _, f := range then {
		if err := f(ctx); err != nil {
			return err
		}
	}
	return nil
}

// matches says whether Options.Match has what is measured on a net.
func (b *bench) matches(net, what string) bool {
	return !slices.ContainsFunc(b.o.Match, func(text string) bool { return !strings.Contains(net+" "+what, text) })
}

// wants says whether Options.Match leaves anything on a net.
func (b *bench) wants(net string) bool {
	return !slices.ContainsFunc(b.o.Match, func(text string) bool {
		isNet := slices.ContainsFunc(subjects(), func(s subject) bool { return strings.Contains(s.id, text) })
		return isNet && !strings.Contains(net, text)
	})
}

func (b *bench) startLibraries(ctx context.Context) (err error) {
	if b.them == nil || b.libraries != nil {
		return nil
	}
	script := filepath.Join(filepath.Dir(b.o.Script), "bench_attribution_opponent.py")
	if b.libraries, err = startOpponent(ctx, b.o.Python, script, b.o.Threads); err != nil {
		return err
	}
	b.result.Versions += b.libraries.libraries
	return nil
}

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

// method measures a method: ours, the others', ours again.
func (l *lab) method(ctx context.Context, a attribution, method orchestrate.MethodSpec, name string) (out line, err error) {
	// A call has as many images as fill four batches, like a run of the study.
	rows := max(a.needs.rows(), 1)
	n := max(1, int(math.Ceil(4*float64(l.batch)/rows)))
	images, err := l.images(ctx, n)
	if err != nil {
		return out, err
	}
	defer images.Close()
	spec, err := l.asked(ctx, images, method)
	if err != nil {
		return out, err
	}
	out = line{name: name, needs: a.needs, known: a.known}
	ours := func() (float64, error) {
		return paced(ctx, turnPart*l.b.o.Seconds, n, func() error {
			got, err := l.net.Attribute(ctx, images, spec)
			out.ran = needs{forwards: float64(got.Forwards-got.Backwards) / float64(n), gradients: float64(got.Backwards) / float64(n)}
			return err
		})
	}
	return out, l.compare(ctx, &out, ours, a.others)
}

// compare measures ours, the others and ours again, between raw rates.
func (l *lab) compare(ctx context.Context, out *line, ours func() (float64, error), others []other) error {
	err := l.around(ctx, out.needs, func() error {
		first, err := ours()
		if err != nil {
			return err
		}
		for _, o := range others {
			got, err := l.b.theirs(l.id, o)
			if err != nil {
				return err
			}
			out.with = append(out.with, got)
		}
		out.ours = first
		if len(others) == 0 && first < 1 { // seconds an image, and nothing was between
			return nil
		}
		second, err := ours()
		out.ours = (first + second) / 2
		return err
	})
	out.limit = nan
	if out.needs.rows() > 0 {
		out.limit = out.needs.limit(l.forward, l.gradient)
	}
	return err
}

// theirs asks another library.
func (b *bench) theirs(net string, o other) (against, error) {
	out := against{other: o, rate: nan, why: "no interpreter with torch"}
	if b.libraries == nil {
		return out, nil
	}
	var answer struct {
		Rate                float64
		How, Missing, Error string
	}
	err := b.libraries.ask(map[string]any{"do": "explain", "net": net, "library": o.library, "method": o.method, "options": o.options,
		"seconds": turnPart * b.o.Seconds}, &answer)
	switch {
	case err != nil:
		return out, err
	case answer.Missing != "":
		out.why = "not installed"
	case answer.Error != "":
		out.why = answer.Error
	default:
		out.rate, out.batch, out.why = answer.Rate, answer.How, ""
	}
	return out, nil
}
