package bench

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/assay-xai/assay/internal/rng"
	"github.com/assay-xai/assay/orchestrate"
)

// road measures noisy linear imputation beside SciPy's direct solver, and whole
// commands beside the forwards that they need and the plain program.
func (b *bench) road(ctx context.Context) (err error) {
	var them *opponent
	if b.them != nil {
		script := filepath.Join(filepath.Dir(b.o.Script), "road_baseline.py")
		if them, err = startOpponent(ctx, b.o.Python, script, b.o.Threads); err != nil {
			return err
		}
		defer them.close()
	}
	if err := b.imputing(ctx, them); err != nil {
		return err
	}
	for _, r := range b.removals() {
		if err := b.removing(ctx, r, them); err != nil {
			return fmt.Errorf("%s: %w", r.title, err)
		}
	}
	return nil
}

// hole is what is removed of an image of a side.
type hole struct {
	name string
	// asked is what the opponent calls it: a share of scattered pixels, or a name.
	asked any
	// count of pixels, and whether one is in it; nil: they are scattered.
	count func(side int) int
	in    func(side, row, column int) bool
	// Wanted against the opponent, by side.
	wanted map[int]string
}

func holes() []hole {
	scattered := func(p float64, wanted map[int]string) hole {
		return hole{name: fmt.Sprintf("%g %% at random", p*100), asked: p, wanted: wanted,
			count: func(side int) int { return int(math.Floor(p*float64(side*side) + .5)) }}
	}
	return []hole{
		scattered(.1, map[int]string{32: ">= 10"}), scattered(.5, map[int]string{32: ">= 10", 224: ">= 20"}), scattered(.9, map[int]string{32: ">= 10", 224: ">= 20"}),
		{name: "a square of 3/4 of the side", asked: "square", count: func(side int) int { return (side - side/8*2) * (side - side/8*2) },
			in: func(side, row, column int) bool {
				return min(row, column) >= side/8 && max(row, column) < side-side/8
			}},
		{name: "the left half", asked: "half", count: func(side int) int { return side * (side / 2) },
			in: func(side, _, column int) bool { return column < side/2 }},
	}
}

// imputing compares the time of an imputation on one core.
func (b *bench) imputing(ctx context.Context, them *opponent) error {
	one := *b
	one.o.Threads = 1
	for _, s := range []struct {
		net    string
		images int
	}{{"cifar-resnet20", 64}, {"resnet18", 4}} {
		l, err := one.lab(ctx, subject{id: s.net, title: s.net})
		if err != nil {
			return err
		}
		err = l.fillings(ctx, s.images, them)
		l.close()
		if err != nil {
			return err
		}
	}
	return nil
}

func (l *lab) fillings(ctx context.Context, count int, them *opponent) error {
	images, err := l.images(ctx, count)
	if err != nil {
		return err
	}
	defer images.Close()
	side := images.Shape()[1]
	for _, h := range holes() {
		steps := 0
		ours := func() (rate float64, err error) {
			rate, steps, err = l.imputation(ctx, images, h)
			return rate, err
		}
		var theirs func() (float64, error)
		if them != nil {
			theirs = func() (float64, error) {
				var answer struct{ Milliseconds float64 }
				err := them.asked(map[string]any{"do": "solve", "side": side, "removed": h.asked, "seconds": l.b.o.Seconds}, &answer)
				return 1000 / answer.Milliseconds, err
			}
		}
		our, their, ratio, err := duel(l.b.o.Rounds, ours, theirs)
		if err != nil {
			return err
		}
		how := fmt.Sprintf("%d steps at most", steps)
		if steps == 1 {
			how = "hole by hole"
		}
		l.b.add(Row{Name: fmt.Sprintf("noisy linear imputation, %d px, %s removed, one core (%s)", side, h.name, how), Ours: our, Unit: "images/s",
			Opponent: "SciPy spsolve", Theirs: their, Ratio: ratio, Target: h.wanted[side]})
	}
	return nil
}

// imputation is images a second, masks and copies included, and the solver's steps. An
// image's ranking is that of many rows, so that it hardly counts: the opponent is given
// its masks.
func (l *lab) imputation(ctx context.Context, images orchestrate.Images, h hole) (rate float64, steps int, err error) {
	const repeats = 16
	side := images.Shape()[1]
	spec := orchestrate.RemovalSpec{Ties: orchestrate.TiesRandom, Preset: l.preset, Batch: l.batch,
		Imputer: orchestrate.Reference{ID: "noisy-linear", Params: map[string]any{"noise": 0.0}}, Targets: make([][]int, images.Len())}
	for i := range images.Len() {
		spec.TieKeys = append(spec.TieKeys, rng.Key(0, "ties", strconv.Itoa(i)))
		if h.in != nil {
			spec.Maps = append(spec.Maps, indicator(side, h.in))
		}
		for range repeats {
			spec.Rows = append(spec.Rows, orchestrate.RemovalRow{Image: i, Removed: h.count(side)})
		}
	}
	spec.NoiseKeys = spec.TieKeys
	got, err := l.net.Remove(ctx, images, spec)
	if err != nil {
		return 0, 0, err
	}
	return float64(len(spec.Rows)) / got.ImputeSeconds, slices.Max(got.Iterations), nil
}

// indicator is a map that ranks a hole first.
func indicator(side int, in func(side, row, column int) bool) []float32 {
	out := make([]float32, side*side)
	for i := range out {
		if in(side, i/side, i%side) {
			out[i] = 1
		}
	}
	return out
}

// removal is a whole command: eight methods' maps, seven fractions, two orders.
type removal struct {
	net, title, weights, data string
	images, batch             int
	overForwards, target      string
}

// mapsOf are methods whose maps take little to make: they are not what is measured.
const mapsOf = "gradient,input-x-gradient,guided-backprop,deconvolution,grad-cam,hires-cam,sobel,random"

// evaluationsOf is how many inputs an image takes: methods, fractions, orders.
const evaluationsOf = 8 * 7 * 2

func (b *bench) removals() []removal {
	return []removal{
		{net: "cifar-resnet20", title: "CIFAR ResNet-20, 32 px", weights: filepath.Join(b.o.Data, "weights", "resnet20-12fca82f.th"),
			data: filepath.Join(b.o.Data, "cifar10.tgz"), images: 500, batch: 64, target: ">= 10"},
		{net: "resnet18", title: "ResNet-18, 224 px", data: filepath.Join(b.o.Data, "imagenet-val-100"), images: 16, batch: 8, overForwards: ">= 0.80"},
	}
}

func (b *bench) removing(ctx context.Context, r removal, them *opponent) error {
	name := fmt.Sprintf("assay road, %s, given maps of 8 methods, 7 fractions, 2 orders, %d images, whole command", r.title, r.images)
	if !there(r.data) || r.weights != "" && !there(r.weights) {
		b.add(Row{Name: name, Ours: nan, Unit: "inputs/s", Theirs: nan, Ratio: nan, Target: r.target})
		return nil
	}
	if r.weights == "" {
		n, info, err := b.net(ctx, r.net)
		if err != nil {
			return err
		}
		n.Close()
		if r.weights, err = b.weightsFile(info); err != nil {
			return err
		}
	}
	common := []string{"--net", r.net, "--weights", r.weights, "--data", r.data, "--limit", strconv.Itoa(r.images), "--batch", strconv.Itoa(r.batch),
		"--device", b.d.Name(), "--threads", strconv.Itoa(b.o.Threads), "--quiet"}
	maps := filepath.Join(b.folder, "maps "+r.net)
	if _, _, err := b.child(ctx, append([]string{"explain", "--methods", mapsOf, "--reduce", "sum", "--target", "label", "--overlays=false", "--out", maps}, common...)...); err != nil {
		return err
	}
	l, err := b.lab(ctx, subject{id: r.net, title: r.title})
	if err != nil {
		return err
	}
	defer l.close()
	inputs := float64(r.images * evaluationsOf)
	round := 0
	var seconds, raw []float64
	ours := func() (float64, error) {
		before, err := l.raw(ctx, r.batch, needs{forwards: 1}, 1)
		if err != nil {
			return 0, err
		}
		round++
		took, _, err := b.child(ctx, append([]string{"road", "--attributions", maps, "--out", filepath.Join(b.folder, fmt.Sprint("road ", r.net, round))}, common...)...)
		if err != nil {
			return 0, err
		}
		after, err := l.raw(ctx, r.batch, needs{forwards: 1}, 1)
		seconds, raw = append(seconds, took), append(raw, (before+after)/2)
		return inputs / took, err
	}
	var theirs func() (float64, error)
	if them != nil {
		theirs = func() (float64, error) {
			var answer struct{ SecondsPerEvaluation float64 }
			err := them.asked(map[string]any{"do": "road", "net": r.net, "imputer": "noisy-linear", "methods": 8, "batch": r.batch, "seconds": b.o.Seconds}, &answer)
			return 1 / answer.SecondsPerEvaluation, err
		}
	}
	our, their, ratio, err := duel(b.o.Rounds, ours, theirs)
	if err != nil {
		return err
	}
	b.add(Row{Name: name, Ours: our, Unit: "inputs/s", Opponent: "SciPy spsolve and PyTorch, an image at a time", Theirs: their, Ratio: ratio, Target: r.target})
	var shares []float64
	for i := range seconds {
		shares = append(shares, seconds[i]*raw[i]/inputs)
	}
	b.add(Row{Name: "the same over the raw forwards of its inputs", Ours: our, Unit: "inputs/s", Opponent: "forwards alone", Theirs: median(raw), Ratio: 1 / median(shares), Target: r.overForwards})
	if r.net == "cifar-resnet20" {
		whole := time.Duration(median(seconds) / 16 * 10000 / float64(r.images) * float64(time.Second)).Round(time.Second / 10)
		b.result.Notes = append(b.result.Notes, fmt.Sprintf("One method in one order at seven fractions of 10,000 CIFAR-10 images would take %s at that rate "+
			"(ROAD, table 4, a GeForce RTX 2080 Ti and a vanilla ResNet-18: 33 s).", whole))
	}
	return nil
}
