package main

import (
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/assay-xai/assay/internal/usage"
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
			path, err := pages.Write(c.Context, c.Args().First(), pages.Options{
				Title: c.String("title"), Images: int(images), Alpha: c.Float64("alpha"), Plots: c.Bool("plots")})
			if err != nil {
				return err
			}
			if c.Bool("json") {
				return printJSON(env, map[string]string{"report": path})
			}
			_, err = fmt.Fprintln(env.stdout, path)
			return err
		},
	}
}
