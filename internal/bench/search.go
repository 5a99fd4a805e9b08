package bench

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/assay-xai/assay/dataset"
	"github.com/assay-xai/assay/internal/device"
	"github.com/assay-xai/assay/internal/record"
	"github.com/assay-xai/assay/internal/rng"
	"github.com/assay-xai/assay/orchestrate"
	"github.com/assay-xai/assay/trace"
	"github.com/assay-xai/assay/weights"
)

// The searches that are measured: real nets on real images, because what early
// rejection saves depends on how confident a net is.
type searched struct {
	name, net, weights, data  string
	images, iterations, batch int
	start                     string
	target                    string
}

func (b *bench) searches() []searched {
	cifar := searched{name: "CIFAR ResNet-20, real weights and images, 32 px", net: "cifar-resnet20", weights: filepath.Join(b.o.Data, "weights", "resnet20-12fca82f.th"),
		data: filepath.Join(b.o.Data, "cifar10.tgz"), images: 12, iterations: 5000, batch: 8, start: "random", target: ">= 20"}
	greedy := cifar
	greedy.start, greedy.target, greedy.iterations = "greedy-le", "", 1000
	lite := searched{name: "EfficientNet-Lite0, real weights, ImageNet images, 224 px", net: "efficientnet-lite0",
		data: filepath.Join(b.o.Data, "imagenet-val-100"), images: 4, iterations: 100, batch: 8, start: "random"}
	liteGreedy := lite
	liteGreedy.start = "greedy-le"
	return []searched{cifar, greedy, lite, liteGreedy}
}

// search measures whole annealing searches at t = 49: iterations a second against
// the plain loop, and what each saving leaves of its 100 evaluations an iteration.
func (b *bench) search(ctx context.Context) error {
	table := []string{"Evaluations an iteration of annealing at t = 49, objective le-mo on probabilities, by saving. \"Changed\" are the states that a swap changes, " +
		"\"memo\" those of them that are new, \"scored\" what early rejection leaves with speculation's waste, which is its last part; rows are all images, and " +
		"thirds of them by the net's confidence.\n",
		"| search | start, iterations | images | plain | changed | memo | scored | wasted | accepted |", "|---|---|---|---|---|---|---|---|---|"}
	for _, s := range b.searches() {
		if !there(s.data) || s.weights != "" && !there(s.weights) {
			b.add(Row{Name: "annealing, " + s.name, Ours: nan, Unit: "iterations/s", Opponent: "plain PyTorch loop of 100 forwards", Theirs: nan, Ratio: nan, Target: s.target})
			continue
		}
		records, seconds, err := b.searching(ctx, s)
		if err != nil {
			return err
		}
		rate := float64(len(records)*s.iterations) / seconds
		row := Row{Name: fmt.Sprintf("annealing, %s, t=49, %d images, %d iterations, start %s, whole command", s.name, len(records), s.iterations, s.start),
			Ours: rate, Unit: "iterations/s", Opponent: "plain PyTorch loop of 100 forwards", Theirs: nan, Ratio: nan, Target: s.target}
		if b.them != nil {
			var answer struct{ SecondsPerIteration float64 }
			if err := b.them.ask(map[string]any{"do": "trace-plain", "net": s.net, "edge": 7, "iterations": 4}, &answer); err != nil {
				return err
			}
			row.Theirs, row.Ratio = 1/answer.SecondsPerIteration, rate*answer.SecondsPerIteration
		}
		b.add(row)
		table = append(table, savings(s, records)...)
	}
	b.result.Notes = append(b.result.Notes, strings.Join(table, "\n"))
	if err := b.speculation(ctx); err != nil {
		return err
	}
	return b.many(ctx)
}

func there(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func (b *bench) arguments(s searched, out string) []string {
	args := []string{"trace", "--net", s.net, "--data", s.data, "--limit", strconv.Itoa(s.images), "--edge", "7", "--start", s.start,
		"--iterations", strconv.Itoa(s.iterations), "--batch", strconv.Itoa(s.batch), "--device", b.d.Name(), "--threads", strconv.Itoa(b.o.Threads),
		"--quiet", "--out", out}
	if s.weights != "" {
		args = append(args, "--weights", s.weights)
	}
	return args
}

func (b *bench) searching(ctx context.Context, s searched) (records []record.Record, seconds float64, err error) {
	out := filepath.Join(b.folder, fmt.Sprint(s.net, " ", s.start, s.images, " ", s.iterations))
	if seconds, _, err = b.child(ctx, b.arguments(s, out)...); err != nil {
		return nil, 0, err
	}
	err = record.Scan(filepath.Join(out, record.FileName), func(r record.Record) error {
		if r.Trace == nil {
			return fmt.Errorf("%s: %s", r.Image, r.Error)
		}
		records = append(records, r)
		return nil
	})
	return records, seconds, err
}

// savings are lines of the table: all images, and thirds by confidence.
func savings(s searched, records []record.Record) []string {
	line := func(name string, list []record.Record) string {
		iterations := float64(len(list) * s.iterations)
		var changed, memo, scored, wasted, accepted float64
		for _, r := range list {
			changed += float64(r.Cost.Changed)
			memo += float64(r.Cost.Evaluations - r.History[0].Evaluations)
			scored += float64(r.Cost.Forwards - r.Cost.StartForwards)
			wasted += float64(r.Cost.Discarded)
			accepted += float64(r.Accepted)
		}
		return fmt.Sprintf("| %s | %s, %d | %s | 100 | %.1f | %.1f | %.1f | %.1f | %.0f %% |", s.name, s.start, s.iterations, name,
			changed/iterations, memo/iterations, scored/iterations, wasted/iterations, 100*accepted/iterations)
	}
	confidence := func(r record.Record) float64 { return r.Curves.Prob.Le[0] }
	slices.SortFunc(records, func(p, q record.Record) int {
		switch {
		case confidence(p) < confidence(q):
			return -1
		case confidence(p) > confidence(q):
			return 1
		}
		return strings.Compare(p.Image, q.Image)
	})
	out := []string{line("all", records)}
	for third := range 3 {
		part := records[third*len(records)/3 : (third+1)*len(records)/3]
		if len(part) > 0 {
			out = append(out, line(fmt.Sprintf("p = %.2f to %.2f", confidence(part[0]), confidence(part[len(part)-1])), part))
		}
	}
	return out
}

// speculation compares one image's search with and without it, turn about.
func (b *bench) speculation(ctx context.Context) error {
	s := b.searches()[0]
	if !there(s.weights) || !there(s.data) {
		return nil
	}
	const batch, iterations = 8, 400
	one := s
	one.images, one.iterations, one.batch = 1, 1, batch
	records, _, err := b.searching(ctx, one)
	if err != nil {
		return err
	}
	target := records[0].Target
	scene, done, err := b.scene(ctx, s, batch)
	if err != nil {
		return err
	}
	defer done()
	var wasted, scored float64
	run := func(without trace.Savings) func() (float64, error) {
		return func() (float64, error) {
			merger := trace.NewMerger(scene, batch)
			ctx, stop := context.WithCancel(ctx)
			ended := make(chan error, 1)
			go func() { ended <- merger.Run(ctx) }()
			scorer, leave := merger.Image(0, target)
			start := time.Now()
			result, err := trace.Run(ctx, trace.Problem{T: 49, ImageID: "bench", Scorer: scorer}, trace.Options{Solver: "sa", Objective: "le-mo",
				ScoreOn: "prob", Budget: trace.Budget{Iterations: iterations}, Without: without})
			seconds := time.Since(start).Seconds()
			leave()
			stop()
			<-ended
			if without == 0 {
				wasted, scored = float64(result.Discarded), float64(result.Forwards-result.StartForwards)
			}
			return iterations / seconds, err
		}
	}
	our, their, ratio, err := duel(b.o.Rounds, run(0), run(trace.Speculation))
	if err != nil {
		return err
	}
	b.add(Row{Name: fmt.Sprintf("annealing, one image, %s, batch %d, with speculation (%.0f %% of its forwards came to nothing)", s.net, batch, 100*wasted/scored),
		Ours: our, Unit: "iterations/s", Opponent: "without speculation", Theirs: their, Ratio: ratio, Target: ">= 1"})
	return nil
}

// scene puts the first image before a net with real weights.
func (b *bench) scene(ctx context.Context, s searched, batch int) (orchestrate.Scene, func(), error) {
	backend, err := device.Open(b.o.Device, b.o.Threads)
	if err != nil {
		return nil, nil, err
	}
	info, err := backend.Describe(ctx, s.net, 0, 0)
	if err != nil {
		return nil, nil, err
	}
	sd, err := weights.Open(s.weights)
	if err != nil {
		return nil, nil, err
	}
	state, _, err := weights.Match(sd, info.Parameters)
	if err != nil {
		return nil, nil, err
	}
	net, err := backend.OpenNet(ctx, orchestrate.NetSpec{Net: s.net, Precision: "f32"}, state)
	if err != nil {
		return nil, nil, err
	}
	preset, err := dataset.PresetByID(info.Preset)
	if err != nil {
		return nil, nil, err
	}
	set, err := dataset.Open(ctx, s.data, dataset.Options{Limit: 1})
	if err != nil {
		return nil, nil, err
	}
	defer set.Close()
	file, err := set.Read(ctx, 0)
	if err != nil {
		return nil, nil, err
	}
	images, failed, err := backend.Images(ctx, [][]byte{file}, preset, false)
	if err != nil || failed[0] != nil {
		return nil, nil, fmt.Errorf("preparing an image: %v %v", err, failed)
	}
	features, err := trace.PatchMap(7, info.Input[1], info.Input[2])
	if err != nil {
		return nil, nil, err
	}
	scene, err := net.Scene(ctx, orchestrate.SceneSpec{Slots: 1, Shape: info.Input, Features: 49, FeatureMap: features,
		Reference: orchestrate.Reference{ID: "zero"}, Preset: preset, Batch: batch})
	if err != nil {
		return nil, nil, err
	}
	if err := scene.Put(ctx, 0, images, 0, rng.Key(0, "reference", "bench")); err != nil {
		return nil, nil, err
	}
	return scene, func() { scene.Close(); images.Close(); net.Close(); backend.Close() }, nil
}

// many compares throughput and memory of a few images with those of many.
func (b *bench) many(ctx context.Context) error {
	s := b.searches()[0]
	if !there(s.weights) || !there(s.data) {
		return nil
	}
	s.batch = 8
	var firstRate, firstPeak float64
	for _, c := range []struct{ images, iterations int }{{4, 400}, {1000, 2}} {
		s.images, s.iterations = c.images, c.iterations
		out := filepath.Join(b.folder, fmt.Sprint("many", c.images))
		_, peak, err := b.child(ctx, b.arguments(s, out)...)
		if err != nil {
			return err
		}
		var forwards, seconds float64
		err = record.Scan(filepath.Join(out, record.FileName), func(r record.Record) error {
			forwards += float64(r.Cost.Forwards)
			seconds += r.Cost.Seconds
			return nil
		})
		if err != nil {
			return err
		}
		name := fmt.Sprintf("`assay trace`, %s, %d images", s.net, c.images)
		rates := Row{Name: name + ", scoring", Ours: forwards / seconds, Unit: "states/s", Theirs: nan, Ratio: nan}
		peaks := Row{Name: name + ", peak memory", Ours: peak, Unit: "MiB", Theirs: nan, Ratio: nan}
		if c.images == 4 {
			firstRate, firstPeak = rates.Ours, peak
		} else {
			rates.Opponent, rates.Theirs, rates.Ratio, rates.Target = "4 images", firstRate, rates.Ours/firstRate, "1: the same"
			peaks.Opponent, peaks.Theirs, peaks.Ratio, peaks.Target = "4 images", firstPeak, peak/firstPeak, "1: the same"
		}
		b.add(rates)
		b.add(peaks)
	}
	return nil
}
