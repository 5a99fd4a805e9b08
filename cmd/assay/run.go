package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/assay-xai/assay/internal/usage"
	"github.com/assay-xai/assay/orchestrate"
)

func runCommand(env environment) *cli.Command {
	return &cli.Command{
		Name:      "run",
		Usage:     "run a plan file",
		ArgsUsage: "PLAN",
		Flags: append([]cli.Flag{
			&cli.StringFlag{Name: "scale", Usage: "a named `CHANGE` of the plan, such as small", Category: whatCategory},
			&cli.StringFlag{Name: "limit", Usage: "`N` images of every data entry", Category: whatCategory},
		}, runFlags()...),
		Action: func(c *cli.Context) error {
			if c.NArg() != 1 {
				return usage.Errorf("assay run takes one plan file, there are %d arguments", c.NArg())
			}
			plan, err := orchestrate.LoadPlan(c.Args().First())
			if err != nil {
				return err
			}
			if plan, err = plan.Scaled(c.String("scale")); err != nil {
				return err
			}
			limit, err := number(c, "limit", 1)
			if err != nil {
				return err
			}
			if limit > 0 {
				plan.Data = slices.Clone(plan.Data)
				for i := range plan.Data {
					plan.Data[i].Limit = int(limit)
				}
			}
			if err := overrideRun(c, plan); err != nil {
				return err
			}
			return runStudy(c, env, plan, func(_ context.Context, out string, r *orchestrate.Resolved, outcome orchestrate.Outcome) error {
				if r.Study.ID == "eval" {
					return showEval(env, c.Bool("json"), "", out, r)
				}
				return showRun(env, c.Bool("json"), out, r, outcome)
			})
		},
	}
}

// runResult is what study commands print as JSON.
type runResult struct {
	Units   int                      `json:"units"`
	Failed  int                      `json:"failed"`
	Before  int                      `json:"before"`
	Summary []orchestrate.SummaryRow `json:"summary"`
}

// showRun prints a run's summary, and the searches of a small one.
func showRun(env environment, asJSON bool, out string, r *orchestrate.Resolved, outcome orchestrate.Outcome) error {
	if asJSON {
		return printJSON(env, runResult{outcome.Units, outcome.Failed, outcome.Before, outcome.Summary})
	}
	if r.Study.ID == "trace" {
		if err := showTrace(env, out, r, outcome); err != nil {
			return err
		}
	}
	printSummary(env, outcome.Summary)
	return nil
}

// printSummary leaves out the parameters that all rows share.
func printSummary(env environment, rows []orchestrate.SummaryRow) {
	vary := varying(rows)
	header := slices.Concat([]string{"net"}, vary, []string{"metric", "mean", "95 % of means", "images"})
	reference := slices.ContainsFunc(rows, func(r orchestrate.SummaryRow) bool { return r.Reference != nil })
	if reference {
		header = append(header, "published", "reading")
	}
	right := map[int]bool{len(vary) + 2: true, len(vary) + 4: true, len(vary) + 5: true}
	t := table{header: header, right: right}
	for _, row := range rows {
		cells := []string{row.Net}
		for _, k := range vary {
			cells = append(cells, fmt.Sprint(orDash(row.Params[k])))
		}
		cells = append(cells, row.Metric, fmt.Sprintf("%.4f", row.Mean), fmt.Sprintf("%.4f .. %.4f", row.Lo, row.Hi), strconv.Itoa(row.N))
		if reference {
			published := "-"
			if row.Reference != nil {
				published = strconv.FormatFloat(*row.Reference, 'g', 6, 64)
			}
			cells = append(cells, published, fmt.Sprint(orDash(row.Reading)))
		}
		t.add(cells...)
	}
	t.print(env.stdout)
}

func orDash(v any) any {
	if v == nil || v == "" {
		return "-"
	}
	return v
}

func varying(rows []orchestrate.SummaryRow) []string {
	seen := map[string]string{}
	varies := map[string]bool{}
	for i, row := range rows {
		for k, v := range row.Params {
			text := fmt.Sprint(v)
			if was, ok := seen[k]; ok && was != text || !ok && i > 0 {
				varies[k] = true
			}
			seen[k] = text
		}
		for k := range seen {
			if _, ok := row.Params[k]; !ok {
				varies[k] = true
			}
		}
	}
	var keys []string
	for k := range varies {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, strings.Compare)
	return keys
}
