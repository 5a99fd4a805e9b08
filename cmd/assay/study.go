package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/assay-xai/assay/orchestrate"
	pages "github.com/assay-xai/assay/report"
)

// show prints what a run found; it is called while OUT is still there.
type show func(ctx context.Context, out string, r *orchestrate.Resolved, outcome orchestrate.Outcome) error

// runStudy runs a plan with a command's flags.
func runStudy(c *cli.Context, env environment, plan *orchestrate.Plan, show show) error {
	p := newProgress(env, c.Bool("json"), c.Bool("quiet"))
	defer p.close()
	out := c.String("out")
	job := orchestrate.Job{
		Plan: plan, Out: out, MustExist: c.Bool("resume"), ResolveOnly: c.Bool("resolve-only"), Open: env.open, Progress: p.event, Tuning: newTuning(),
		Env: map[string]any{"assay": version(), "go": runtime.Version(), "os": runtime.GOOS + "/" + runtime.GOARCH, "cpus": runtime.NumCPU(), "modules": modules()},
		Inspect: func(ctx context.Context, folder string, r *orchestrate.Resolved, outcome orchestrate.Outcome) error {
			p.close()
			// Files first: who reads the tables may stop reading.
			var path string
			var failed error
			if out != "" {
				path, failed = pages.Write(ctx, folder, pages.Options{})
			}
			if err := show(ctx, folder, r, outcome); err != nil {
				return err
			}
			if shard := r.Plan.Shard; !shard.IsZero() && !c.Bool("json") {
				fmt.Fprintf(env.stdout, "\n%s: part of the units, %d of %d. assay merge makes one run of all shards.\n",
					strings.ToUpper(shard.Words()[:1])+shard.Words()[1:], outcome.Units, outcome.PlanUnits)
			}
			if out == "" {
				p.note("nothing is kept without --out FOLDER")
				return nil
			}
			if failed != nil {
				return failed
			}
			p.note("report: " + path)
			return nil
		},
	}
	outcome, err := orchestrate.Run(c.Context, job)
	if err == nil && job.ResolveOnly {
		p.close()
		return showResolved(env, c.Bool("json"), out, outcome)
	}
	var incomplete *orchestrate.Incomplete
	if errors.Is(err, context.Canceled) && !errors.As(err, &incomplete) && out == "" {
		return fmt.Errorf("%w; without --out nothing is kept", err)
	}
	return err
}

// showResolved says where a plan is that was resolved and not run.
func showResolved(env environment, asJSON bool, out string, outcome orchestrate.Outcome) error {
	path := filepath.Join(out, orchestrate.PlanFile)
	if asJSON {
		return printJSON(env, map[string]any{"plan": path, "units": outcome.Units})
	}
	_, err := fmt.Fprintf(env.stdout, "%s: %d units, of which none was run\n", path, outcome.Units)
	return err
}

// modules are the versions of what this program was built from.
func modules() map[string]string {
	out := map[string]string{}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			out[m.Path] = m.Version
		}
	}
	return out
}
