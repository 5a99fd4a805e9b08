package main

import (
	"context"
	"errors"
	"path/filepath"

	"github.com/urfave/cli/v2"

	"github.com/assay-xai/assay/internal/usage"
	"github.com/assay-xai/assay/orchestrate"
	pages "github.com/assay-xai/assay/report"
)

func mergeCommand(env environment) *cli.Command {
	return &cli.Command{
		Name:      "merge",
		Usage:     "make one run of all shards of a plan",
		ArgsUsage: "SHARD...",
		Description: "SHARDs are the folders that runs with --shard 1/N to N/N have filled, on whatever machines. The run that comes of them has the files of one that\n" +
			"was never divided; the shards stay as they are. The data and weights that the plan names have to be there, a GPU need not be.\n\n" +
			"   assay merge --out runs/whole runs/part-*",
		Flags: append([]cli.Flag{
			&cli.StringFlag{Name: "out", Usage: "`FOLDER` of the whole run: one that is not there, or is empty"},
		}, outputFlags()...),
		Action: func(c *cli.Context) error {
			out := c.String("out")
			if out == "" {
				return usage.Errorf("assay merge: give a folder for the whole run with --out FOLDER")
			}
			p := newProgress(env, c.Bool("json"), c.Bool("quiet"))
			defer p.close()
			_, err := orchestrate.Merge(c.Context, orchestrate.MergeJob{
				Out: out, Shards: c.Args().Slice(), Open: env.open, Progress: p.event,
				Inspect: func(ctx context.Context, folder string, r *orchestrate.Resolved, outcome orchestrate.Outcome) error {
					p.close()
					// Files first: who reads the tables may stop reading.
					_, failed := pages.Write(ctx, folder, pages.Options{})
					if err := showAny(env, c.Bool("json"), folder, r, outcome); err != nil {
						return err
					}
					return failed
				},
			})
			var incomplete *orchestrate.Incomplete
			if err == nil || errors.As(err, &incomplete) {
				p.note("report: " + filepath.Join(out, pages.FileName))
			}
			return err
		},
	}
}
