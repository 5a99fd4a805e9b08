package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/google/renameio/v2"
	"github.com/urfave/cli/v2"

	"github.com/assay-xai/assay/internal/usage"
)

// benchOptions are what a measurement wants to know.
type benchOptions struct {
	python, script, self, device, data string
	parts, match                       []string
	threads, rounds                    int
	seconds                            float64
}

func benchCommand(env environment) *cli.Command {
	return &cli.Command{
		Name:  "bench",
		Usage: "speed and memory of this machine, beside plain PyTorch where it is installed",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "python", Value: "python3", Usage: "interpreter `FILE` with torch and torchvision, the opponent"},
			&cli.StringFlag{Name: "script", Value: filepath.Join("scripts", "bench_opponent.py"), Usage: "the opponent's program `FILE`"},
			&cli.StringFlag{Name: "out", Usage: "`FILE` for the page (default: standard output)"},
			&cli.StringFlag{Name: "device", Value: "cpu", Usage: "cpu or cuda:`N`"},
			&cli.StringFlag{Name: "data", Usage: "`FOLDER` with cifar10.tgz, imagenet-val-100 and weights/, for measurements on real images (default: none)"},
			&cli.StringFlag{Name: "only", Usage: "`PARTS` to measure, separated by commas: forward, train, decode, trace, search, memory, explain, score, road (default: all)"},
			&cli.StringFlag{Name: "match", Usage: "of parts explain and score, only what has all of `TEXTS` (separated by commas) in its net's or its own name"},
			&cli.IntFlag{Name: "threads", Usage: "`N` threads (default: one a core)"},
			&cli.IntFlag{Name: "rounds", Value: 3, Usage: "`N` turns of either side"},
			&cli.Float64Flag{Name: "seconds", Value: 3, Usage: "`SECONDS` a turn"},
		},
		Action: func(c *cli.Context) error {
			if err := noPositionals(c); err != nil {
				return err
			}
			self, err := os.Executable()
			if err != nil {
				return fmt.Errorf("finding this program: %w", err)
			}
			o := benchOptions{python: c.String("python"), script: c.String("script"), self: self, device: c.String("device"), data: c.String("data"),
				threads: c.Int("threads"), rounds: c.Int("rounds"), seconds: c.Float64("seconds")}
			if o.rounds < 1 || o.seconds <= 0 || o.threads < 0 {
				return usage.Errorf("bench: rounds %d, seconds %v, threads %d: want at least 1, more than 0, and 0 or more", o.rounds, o.seconds, o.threads)
			}
			if only := c.String("only"); only != "" {
				o.parts = strings.Split(only, ",")
			}
			if match := c.String("match"); match != "" {
				o.match = strings.Split(match, ",")
			}
			if o.threads == 0 {
				o.threads = runtime.NumCPU()
			}
			page, err := runBench(c.Context, o, env.stderr)
			if err != nil {
				return fmt.Errorf("measuring: %w", err)
			}
			if c.String("out") == "" {
				_, err = fmt.Fprint(env.stdout, page)
				return err
			}
			if err := renameio.WriteFile(c.String("out"), []byte(page), 0o644); err != nil {
				return fmt.Errorf("writing the page: %w", err)
			}
			return nil
		},
	}
}
