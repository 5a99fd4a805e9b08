//go:build cgo

package main

import (
	"context"
	"io"

	"github.com/assay-xai/assay/internal/bench"
	"github.com/assay-xai/assay/internal/device"
)

// openDevice opens libtorch's devices.
var openDevice = device.Open

// runProbe runs the trial of an arithmetic that this process was started for.
var runProbe = device.RunProbe

// runBench measures this machine.
var runBench = func(ctx context.Context, o benchOptions, log io.Writer) (markdown string, err error) {
	result, err := bench.Run(ctx, bench.Options{Python: o.python, Script: o.script, Self: o.self, Threads: o.threads, Rounds: o.rounds, Seconds: o.seconds, Device: o.device, Data: o.data, Parts: o.parts, Match: o.match, Log: log})
	return result.Markdown(), err
}
