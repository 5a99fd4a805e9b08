package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/assay-xai/assay/internal/fill"
	"github.com/assay-xai/assay/internal/usage"
	"github.com/assay-xai/assay/orchestrate"
	"github.com/assay-xai/assay/testdata"
	"github.com/assay-xai/assay/torchx"
	"github.com/assay-xai/assay/weights"
)

var nan = math.NaN()

// bench is a run in progress.
type bench struct {
	o    Options
	d    *torchx.Device
	them *opponent
	// libraries is the opponent of methods and scores, once it is wanted.
	libraries *opponent
	// answers are what it said, by what was asked.
	answers map[string]against
	folder  string // temporary
	result  Result
}

// Run measures everything. It takes some minutes and wants the machine for itself.
func Run(ctx context.Context, o Options) (_ Result, err error) {
	b := &bench{o: o, answers: map[string]against{}}
	if b.folder, err = os.MkdirTemp("", "assay-bench-"); err != nil {
		return Result{}, fmt.Errorf("making a temporary folder: %w", err)
	}
	defer os.RemoveAll(b.folder)
	if b.d, err = torchx.Open(o.Device, o.Threads); err != nil {
		return Result{}, err
	}
	defer b.d.Close()
	if b.them, err = startOpponent(ctx, o.Python, o.Script, o.Threads); err != nil {
		return Result{}, err
	}
	defer b.them.close()
	defer func() { b.libraries.close() }()
	if err := b.describe(ctx); err != nil {
		return Result{}, err
	}
	if b.d.Kind() == "cpu" {
		b.result.Notes = append(b.result.Notes, "On a GPU: not measured.")
	}
	parts := []struct {
		name string
		run  func(context.Context) error
	}{{"forward", b.forward}, {"train", b.train}, {"decode", b.decode}, {"trace", b.trace}, {"search", b.search}, {"memory", b.memory},
		{"explain", b.explain}, {"score", b.score}, {"road", b.road}}
	var names []string
	for _, part := range parts {
		names = append(names, part.name)
	}
	for _, name := range o.Parts {
		if !slices.Contains(names, name) {
			return Result{}, usage.Errorf("bench: part %q: want some of %s", name, strings.Join(names, ", "))
		}
	}
	for _, part := range parts {
		if len(o.Parts) > 0 && !slices.Contains(o.Parts, part.name) {
			continue
		}
		if err := part.run(ctx); err != nil {
			return Result{}, fmt.Errorf("%s: %w", part.name, err)
		}
	}
	return b.result, nil
}

func (b *bench) logf(format string, args ...any) {
	fmt.Fprintf(b.o.Log, "bench: "+format+"\n", args...)
}

func (b *bench) add(row Row) {
	b.logf("%s: %s, %s %s, ratio %s", row.Name, figure(row.Ours, row.Unit), dash(row.Opponent), figure(row.Theirs, row.Unit), figure(row.Ratio, "x"))
	b.result.Rows = append(b.result.Rows, row)
}

func (b *bench) describe(ctx context.Context) error {
	text, err := b.d.Runtime(ctx)
	if err != nil {
		return err
	}
	var library struct{ Torch, CPU string }
	if err := json.Unmarshal(text, &library); err != nil {
		return fmt.Errorf("describing the runtime: %w", err)
	}
	b.result.Machine = fmt.Sprintf("%s (%s), device %s, %d threads", describeMachine(ctx), library.CPU, b.d.Name(), b.o.Threads)
	b.result.Versions = fmt.Sprintf("libtorch %s, %s", library.Torch, runtime.Version())
	if b.them != nil {
		b.result.Versions += "; opponent " + b.them.version
	} else {
		b.result.Notes = append(b.result.Notes, "No opponent: set PYTHON to an interpreter that has torch and torchvision.")
	}
	return nil
}

// net opens a net with parameters of the formula: the cost does not depend on them.
func (b *bench) net(ctx context.Context, id string) (_ *torchx.Net, info orchestrate.NetInfo, err error) {
	n, err := b.d.NewNet(ctx, torchx.NetSpec{Net: id})
	if err != nil {
		return nil, info, err
	}
	text, err := n.Describe()
	if err != nil {
		return nil, info, err
	}
	if err := json.Unmarshal(text, &info); err != nil {
		return nil, info, fmt.Errorf("the description of %s: %w", id, err)
	}
	state := map[string]*torchx.Tensor{}
	for _, p := range info.Parameters {
		if p.Optional {
			continue
		}
		if state[p.Name], err = torchx.NewFloats(p.Shape, fill.Tensor(p.Name, p.Shape, p.Buffer)); err != nil {
			return nil, info, err
		}
		defer state[p.Name].Close()
	}
	if err := n.Load(ctx, state); err != nil {
		return nil, info, err
	}
	return n, info, n.Prepare(ctx, torchx.PrecisionF32)
}

// weightsFile writes the same parameters for a child process.
func (b *bench) weightsFile(info orchestrate.NetInfo) (string, error) {
	path := filepath.Join(b.folder, info.Net+".safetensors")
	state := map[string]weights.Tensor{}
	for _, p := range info.Parameters {
		if p.Optional {
			continue
		}
		state[p.Name] = fill.Weights(p.Name, p.Shape, p.Buffer)
	}
	return path, weights.WriteSafetensors(path, state, nil)
}

// raw returns a function that measures the net's forward rate at a batch.
func (b *bench) raw(ctx context.Context, n *torchx.Net, input []int, batch int) (func() (float64, error), func(), error) {
	shape := []int64{int64(batch)}
	for _, d := range input {
		shape = append(shape, int64(d))
	}
	x, err := torchx.NewFloats(shape, fill.Input(shape))
	if err != nil {
		return nil, nil, err
	}
	return func() (float64, error) {
		return rate(ctx, b.o.Seconds, batch, func() error {
			y, err := n.Forward(ctx, x, batch)
			if err != nil {
				return err
			}
			return y.Close()
		})
	}, func() { x.Close() }, nil
}

func (b *bench) theirRate(mode, net string, batch int) func() (float64, error) {
	if b.them == nil {
		return nil
	}
	return func() (float64, error) {
		var answer struct{ Rate float64 }
		err := b.them.ask(map[string]any{"do": "forward", "mode": mode, "net": net, "batch": batch, "seconds": b.o.Seconds}, &answer)
		return answer.Rate, err
	}
}

func (b *bench) forward(ctx context.Context) error {
	n, info, err := b.net(ctx, "resnet18")
	if err != nil {
		return err
	}
	defer n.Close()
	for _, batch := range []int{8, 50} {
		ours, done, err := b.raw(ctx, n, info.Input, batch)
		if err != nil {
			return err
		}
		for _, c := range []struct{ mode, name, target string }{
			{"torchscript", "frozen, optimised TorchScript", ">= 1"}, {"eager", "PyTorch eager", ">= 1.5"},
		} {
			our, their, ratio, err := duel(b.o.Rounds, ours, b.theirRate(c.mode, "resnet18", batch))
			if err != nil {
				return err
			}
			b.add(Row{Name: fmt.Sprintf("forward, ResNet-18, 224 px, f32, batch %d", batch), Ours: our, Unit: "images/s",
				Opponent: c.name, Theirs: their, Ratio: ratio, Target: c.target})
		}
		done()
	}
	return nil
}

// photographs are the embedded ones, count of them in turn.
func photographs(count int) ([][]byte, error) {
	names, err := fs.Glob(testdata.Embedded(), "*.*")
	if err != nil {
		return nil, err
	}
	var files [][]byte
	for _, name := range names {
		switch filepath.Ext(name) {
		case ".png", ".jpg", ".jpeg":
			file, err := fs.ReadFile(testdata.Embedded(), name)
			if err != nil {
				return nil, fmt.Errorf("reading %s: %w", name, err)
			}
			files = append(files, file)
		}
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("no embedded photographs")
	}
	out := make([][]byte, count)
	for i := range out {
		out[i] = files[i%len(files)]
	}
	return out, nil
}

func (b *bench) decode(ctx context.Context) error {
	files, err := photographs(24)
	if err != nil {
		return err
	}
	spec := torchx.ImageSpec{Resize: torchx.ResizeShorter, Height: 256, CropHeight: 224, CropWidth: 224, Channels: 3,
		Mean: []float32{.485, .456, .406}, Std: []float32{.229, .224, .225}}
	ours, err := rate(ctx, b.o.Seconds, len(files), func() error {
		values, _, _, err := torchx.DecodeImages(files, spec, b.o.Threads, false)
		if err != nil {
			return err
		}
		return values.Close()
	})
	if err != nil {
		return err
	}
	forward := nan
	if len(b.result.Rows) > 0 {
		forward = b.result.Rows[0].Ours
	}
	b.add(Row{Name: "decode, resize and normalise the embedded photographs, all cores", Ours: ours, Unit: "images/s",
		Opponent: "our ResNet-18 forward (batch 8)", Theirs: forward, Ratio: ours / forward, Target: "> 1: never the bottleneck"})
	return nil
}

// child runs this program and returns its wall time and peak memory.
func (b *bench) child(ctx context.Context, args ...string) (seconds float64, peakMiB float64, err error) {
	cmd := exec.CommandContext(ctx, b.o.Self, args...)
	start := time.Now()
	if out, err := cmd.CombinedOutput(); err != nil {
		return 0, 0, fmt.Errorf("assay %v: %w\n%s", args, err, out)
	}
	usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	if !ok {
		return 0, 0, fmt.Errorf("this system does not tell a child's memory")
	}
	return time.Since(start).Seconds(), float64(usage.Maxrss) / 1024, nil
}

const (
	traceIterations = 40
	traceBatch      = 8
)

// trace compares whole commands with the raw forward rate and, for ResNet-18,
// with the published loop.
func (b *bench) trace(ctx context.Context) error {
	for _, id := range []string{"resnet18", "efficientnet-lite0"} {
		n, info, err := b.net(ctx, id)
		if err != nil {
			return err
		}
		defer n.Close()
		file, err := b.weightsFile(info)
		if err != nil {
			return err
		}
		raw, done, err := b.raw(ctx, n, info.Input, traceBatch)
		if err != nil {
			return err
		}
		defer done()
		before, err := raw()
		if err != nil {
			return err
		}
		out := filepath.Join(b.folder, id)
		seconds, _, err := b.child(ctx, "trace", "--net", id, "--weights", file, "--data", "embedded:photos", "--preset", "imagenet",
			"--edge", "7", "--iterations", strconv.Itoa(traceIterations), "--batch", strconv.Itoa(traceBatch), "--device", b.d.Name(),
			"--threads", strconv.Itoa(b.o.Threads), "--seed", "0", "--quiet", "--out", out)
		if err != nil {
			return err
		}
		after, err := raw()
		if err != nil {
			return err
		}
		forwards, records, err := countForwards(filepath.Join(out, "results.jsonl"))
		if err != nil {
			return err
		}
		rawRate := (before + after) / 2
		b.add(Row{Name: fmt.Sprintf("`assay trace` as a whole, %s, three photographs, t=49, %d iterations, start-up, decoding and report included", id, traceIterations),
			Ours: float64(forwards) / seconds, Unit: "states/s", Opponent: "our raw forward, batch 8, before and after", Theirs: rawRate,
			Ratio: float64(forwards) / seconds / rawRate, Target: ">= 0.9"})
		if id != "resnet18" {
			continue
		}
		perSecond := float64(records*traceIterations) / seconds
		row := Row{Name: "annealing, ResNet-18, t=49, 224 px, random start", Ours: perSecond, Unit: "iterations/s",
			Opponent: "plain PyTorch loop of 100 forwards", Theirs: nan, Ratio: nan, Target: ">= 5"}
		if b.them != nil {
			var answer struct{ SecondsPerIteration float64 }
			if err := b.them.ask(map[string]any{"do": "trace-plain", "net": "resnet18", "edge": 7, "iterations": 4}, &answer); err != nil {
				return err
			}
			row.Theirs, row.Ratio = 1/answer.SecondsPerIteration, perSecond*answer.SecondsPerIteration
		}
		b.add(row)
	}
	return nil
}

func countForwards(path string) (forwards int64, records int, err error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, 0, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		var r struct{ Cost struct{ Forwards int64 } }
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			return 0, 0, fmt.Errorf("reading %s: %w", path, err)
		}
		forwards += r.Cost.Forwards
		records++
	}
	return forwards, records, lines.Err()
}

// memory is the peak of `assay eval` on 100 and on 1000 images.
func (b *bench) memory(ctx context.Context) error {
	n, info, err := b.net(ctx, "resnet18")
	if err != nil {
		return err
	}
	if err := n.Close(); err != nil {
		return err
	}
	file, err := b.weightsFile(info)
	if err != nil {
		return err
	}
	var first float64
	for _, count := range []int{100, 1000} {
		files, err := photographs(count)
		if err != nil {
			return err
		}
		folder := filepath.Join(b.folder, fmt.Sprint("images", count))
		if err := os.Mkdir(folder, 0o755); err != nil {
			return err
		}
		for i, data := range files {
			if err := os.WriteFile(filepath.Join(folder, fmt.Sprintf("%04d.png", i)), data, 0o644); err != nil {
				return err
			}
		}
		_, peak, err := b.child(ctx, "eval", "--net", "resnet18", "--weights", file, "--data", folder, "--preset", "imagenet",
			"--device", b.d.Name(), "--threads", strconv.Itoa(b.o.Threads), "--quiet")
		if err != nil {
			return err
		}
		row := Row{Name: fmt.Sprintf("peak memory of `assay eval`, ResNet-18, %d images", count), Ours: peak, Unit: "MiB", Theirs: nan, Ratio: nan, Target: "<= 1536 MiB"}
		if count == 100 {
			first = peak
		} else {
			row.Opponent, row.Theirs, row.Ratio, row.Target = "100 images", first, peak/first, "1: the same"
		}
		b.add(row)
	}
	return nil
}
