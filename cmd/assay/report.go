package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/urfave/cli/v2"

	"github.com/assay-xai/assay/internal/record"
	"github.com/assay-xai/assay/internal/usage"
	"github.com/assay-xai/assay/orchestrate"
	pages "github.com/assay-xai/assay/report"
)

func reportCommand(env environment) *cli.Command {
	return &cli.Command{
		Name:      "report",
		Usage:     "make the report of a run anew",
		ArgsUsage: "OUT",
		Flags: append([]cli.Flag{
			&cli.StringFlag{Name: "images", Usage: "show `N` images one by one (default: the plan's number)"},
			&cli.Float64Flag{Name: "alpha", Usage: "`EXPONENT` of heat maps, (rank/t)^alpha (default: the plan's, or 2)"},
			&cli.StringFlag{Name: "title", Usage: "`TEXT` above the page"},
			&cli.BoolFlag{Name: "plots", Usage: "write the plots as files too"},
		}, outputFlags()...),
		Action: func(c *cli.Context) error {
			if c.NArg() != 1 {
				return usage.Errorf("assay report takes one folder of a run, there are %d arguments", c.NArg())
			}
			images, err := number(c, "images", 0)
			if err != nil {
				return err
			}
			if c.IsSet("images") && images == 0 {
				images = -1 // none
			}
			out := c.Args().First()
			options := pages.Options{Title: c.String("title"), Images: int(images), Alpha: c.Float64("alpha"), Plots: c.Bool("plots")}
			if orchestrate.MayBeUnfinished(out) {
				clear, err := soFar(c, env, out, &options)
				if err != nil {
					return err
				}
				defer clear()
			}
			path, err := pages.Write(c.Context, out, options)
			if err != nil {
				return err
			}
			if c.Bool("json") {
				result := map[string]string{"report": path}
				if options.Unfinished != "" {
					result["unfinished"] = options.Unfinished
				}
				return printJSON(env, result)
			}
			_, err = fmt.Fprintln(env.stdout, path)
			return err
		},
	}
}

// soFar makes a summary of what an unfinished run has, and says how far the run is. A run
// whose plan is not to be had on this machine is shown without one.
func soFar(c *cli.Context, env environment, out string, options *pages.Options) (clear func(), err error) {
	folder, err := os.MkdirTemp("", "assay-")
	if err != nil {
		return nil, fmt.Errorf("making a temporary folder: %w", err)
	}
	clear = func() { os.RemoveAll(folder) }
	state, err := orchestrate.SummariseSoFar(c.Context, out, folder, env.open)
	switch {
	case c.Context.Err() != nil:
		clear()
		return nil, c.Context.Err()
	case err == nil && !state.Unfinished():
		return clear, nil
	case err == nil:
		options.Unfinished, options.Summary = state.String(), folder
		fmt.Fprintf(env.stderr, "%s: %s; the report is of the units that are done\n", out, state)
	case errors.Is(err, fs.ErrNotExist) && noRecords(out):
		options.Unfinished = "unfinished: no unit has a record"
		fmt.Fprintf(env.stderr, "%s: %s\n", out, options.Unfinished)
	default:
		fmt.Fprintf(env.stderr, "%s: no summary of the records that there are: %v\n", out, err)
		if _, err := os.Stat(filepath.Join(out, orchestrate.SummaryJSONFile)); err != nil {
			options.Unfinished = "unfinished: the run has no summary"
			fmt.Fprintf(env.stderr, "%s: %s\n", out, options.Unfinished)
		}
	}
	return clear, nil
}

func noRecords(out string) bool {
	_, err := os.Stat(filepath.Join(out, record.FileName))
	return errors.Is(err, fs.ErrNotExist)
}
