package bench

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/assay-xai/assay/orchestrate"
)

// wantedShare of its limit is what every method and score should reach.
const wantedShare = .85

// Parts of Options.Seconds: a turn of a method, of the raw rates around it.
const (
	turnPart = 1. / 8
	rawPart  = 1. / 16
)

// line is a method or score with what it is compared with.
type line struct {
	name  string
	needs needs
	tails int     // see attribution
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
	return b.onSubjects(ctx, "method", func(l *lab) ([]line, error) {
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
func (b *bench) onSubjects(ctx context.Context, what string, measure func(*lab) ([]line, error), then ...func(context.Context) error) error {
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
		if lines != nil {
			b.result.Notes = append(b.result.Notes, l.table(what, lines))
		}
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

// method measures a method: ours, the others', ours again.
func (l *lab) method(ctx context.Context, a attribution, method orchestrate.MethodSpec, name string) (out line, err error) {
	// A call is one of the study.
	rows := max(a.needs.rows(), 1)
	n := orchestrate.ImagesOfACall(l.batch, rows)
	images, err := l.images(ctx, n)
	if err != nil {
		return out, err
	}
	defer images.Close()
	spec, err := l.asked(ctx, images, method)
	if err != nil {
		return out, err
	}
	out = line{name: name, needs: a.needs, tails: a.tails, known: a.known}
	ours := func() (float64, error) {
		return paced(ctx, turnPart*l.b.o.Seconds, n, func() error {
			got, err := l.net.Attribute(ctx, images, spec)
			out.ran = needs{forwards: float64(got.Forwards-got.Backwards) / float64(n), gradients: float64(got.Backwards) / float64(n)}
			return err
		})
	}
	return out, l.compare(ctx, &out, ours, a.others)
}

// longTurn is the seconds of a turn that is long enough to stand alone.
const longTurn = 4

// compare measures ours, the others and ours again, between raw rates.
func (l *lab) compare(ctx context.Context, out *line, ours func() (float64, error), others []other) error {
	err := l.around(ctx, out.needs, func() error {
		start := time.Now()
		first, err := ours()
		if err != nil {
			return err
		}
		long := time.Since(start).Seconds() > longTurn
		for _, o := range others {
			got, err := l.b.theirs(l.id, o)
			if err != nil {
				return err
			}
			out.with = append(out.with, got)
		}
		out.ours = first
		if long || len(others) == 0 && first < 1 { // seconds an image, and nothing was between
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
	key := fmt.Sprint(net, o.library, o.method, o.options)
	if known, ok := b.answers[key]; ok {
		known.other = o
		return known, nil
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
	b.answers[key] = out
	return out, nil
}
