// Package bench measures assay against plain PyTorch programs in one run and
// writes what it found as a page of documentation. Rates of one run on one
// machine are compared turn about, never across runs: machines are noisy.
package bench

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"time"
)

// Options of a run.
type Options struct {
	// Python is the interpreter that has torch and torchvision; "" leaves the
	// opponents out.
	Python string
	// Script is scripts/bench_opponent.py.
	Script string
	// Self is the assay binary, for measurements of whole commands.
	Self string
	// Threads of both sides.
	Threads int
	// Rounds of turn-about measurements, each of Seconds a side.
	Rounds  int
	Seconds float64
	Device  string
	// Data is a folder with cifar10.tgz, imagenet-val-100 and weights/; "" or one
	// without them leaves out what needs them.
	Data string
	// Parts are what is measured; none: everything.
	Parts []string
	// Match are texts of methods, scores and nets; parts explain and score measure
	// those that have all; none: everything.
	Match []string
	// Log is told what is being measured.
	Log io.Writer
}

// Row is one measurement with the figure it is compared with.
type Row struct {
	Name     string
	Ours     float64
	Unit     string
	Opponent string  // what the other side is; "" for none
	Theirs   float64 // NaN: not measured
	Ratio    float64 // ours : theirs as a speed-up, median over rounds; NaN: not measured
	Target   string
}

// Result is a whole run.
type Result struct {
	Machine  string
	Versions string
	Rows     []Row
	Notes    []string
}

// median of values; they are sorted in place.
func median(values []float64) float64 {
	slices.Sort(values)
	n := len(values)
	if n%2 == 1 {
		return values[n/2]
	}
	return (values[n/2-1] + values[n/2]) / 2
}

// rate calls f until the time is up and returns units a second; one call first,
// not counted, warms up.
func rate(ctx context.Context, seconds float64, units int, f func() error) (float64, error) {
	if err := f(); err != nil {
		return 0, err
	}
	calls := 0
	start := time.Now()
	for calls == 0 || time.Since(start).Seconds() < seconds {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		if err := f(); err != nil {
			return 0, err
		}
		calls++
	}
	return float64(calls*units) / time.Since(start).Seconds(), nil
}

// duel measures both sides turn about; theirs may be nil.
func duel(rounds int, ours, theirs func() (float64, error)) (our, their, ratio float64, err error) {
	var a, b, r []float64
	for range rounds {
		x, err := ours()
		if err != nil {
			return 0, 0, 0, err
		}
		a = append(a, x)
		if theirs != nil {
			y, err := theirs()
			if err != nil {
				return 0, 0, 0, err
			}
			b, r = append(b, y), append(r, x/y)
		}
	}
	if theirs == nil {
		return median(a), nan, nan, nil
	}
	return median(a), median(b), median(r), nil
}

// describeMachine says what it ran on: CPU, cores, memory, accelerators.
func describeMachine(ctx context.Context) string {
	model := "unknown CPU"
	if f, err := os.Open("/proc/cpuinfo"); err == nil {
		defer f.Close()
		for s := bufio.NewScanner(f); s.Scan(); {
			if name, value, ok := strings.Cut(s.Text(), ":"); ok && strings.TrimSpace(name) == "model name" {
				model = strings.TrimSpace(value)
				break
			}
		}
	}
	out := fmt.Sprintf("%s, %d cores, %s/%s", model, runtime.NumCPU(), runtime.GOOS, runtime.GOARCH)
	if text, err := exec.CommandContext(ctx, "nvidia-smi", "--query-gpu=name", "--format=csv,noheader").Output(); err == nil {
		out += ", " + strings.Join(strings.Fields(string(text)), " ")
	}
	return out
}

// Markdown returns the page docs/benchmarks.md.
func (r Result) Markdown() string {
	b := &strings.Builder{}
	fmt.Fprintf(b, "# Benchmarks\n\nWritten by `make bench`; both sides of a ratio were measured turn about in that one run, and the ratio is\n")
	fmt.Fprintf(b, "the median over the rounds. Machines are noisy: compare ratios, not rates of different runs.\n\n")
	fmt.Fprintf(b, "Machine: %s. Versions: %s.\n\n", r.Machine, r.Versions)
	if len(r.Rows) > 0 {
		fmt.Fprintf(b, "| what | assay | opponent | opponent's figure | ratio | wanted |\n|---|---|---|---|---|---|\n")
	}
	for _, row := range r.Rows {
		fmt.Fprintf(b, "| %s | %s | %s | %s | %s | %s |\n", row.Name, figure(row.Ours, row.Unit), dash(row.Opponent),
			figure(row.Theirs, row.Unit), figure(row.Ratio, "x"), dash(row.Target))
	}
	for _, note := range r.Notes {
		fmt.Fprintf(b, "\n%s\n", note)
	}
	return b.String()
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func figure(v float64, unit string) string {
	if v != v {
		return "not measured"
	}
	if unit == "x" {
		return fmt.Sprintf("%.2f x", v)
	}
	return fmt.Sprintf("%.4g %s", v, unit)
}
