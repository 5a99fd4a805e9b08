package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/assay-xai/assay/internal/usage"
	"github.com/assay-xai/assay/orchestrate"
	"github.com/assay-xai/assay/recipes"
)

func runCommand(env environment) *cli.Command {
	return &cli.Command{
		Name:      "run",
		Usage:     "run a plan file or a recipe",
		ArgsUsage: "PLAN",
		Description: "PLAN is a file, or the name of a recipe of assay list recipes: a table or figure of a paper with its published numbers.\n" +
			"Recipes go on without weights and data that are not on this machine and list them as not measured.",
		Flags: append(changeFlags(), runFlags()...),
		Action: func(c *cli.Context) error {
			plan, err := changedPlan(c)
			if err != nil {
				return err
			}
			return runStudy(c, env, plan, func(_ context.Context, out string, r *orchestrate.Resolved, outcome orchestrate.Outcome) error {
				return showAny(env, c.Bool("json"), out, r, outcome)
			})
		},
	}
}

// changeFlags change a plan that was written.
func changeFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "scale", Usage: "a named `CHANGE` of the plan, such as small", Category: whatCategory},
		&cli.StringFlag{Name: "limit", Usage: "`N` images of every data entry", Category: whatCategory},
		&cli.StringFlag{Name: "data", Usage: "`PATH` in place of the plan's data, or NAME=PATH for one entry of several", Category: whatCategory},
		generatorFlag(whatCategory),
	}
}

// changedPlan reads the plan that the command names, with the changes of its flags.
func changedPlan(c *cli.Context) (*orchestrate.Plan, error) {
	if c.NArg() != 1 {
		return nil, usage.Errorf("assay %s takes one plan file, there are %d arguments", c.Command.Name, c.NArg())
	}
	plan, err := planOrRecipe(c.Args().First())
	if err != nil {
		return nil, err
	}
	if plan, err = plan.Scaled(c.String("scale")); err != nil {
		return nil, err
	}
	limit, err := number(c, "limit", 1)
	if err != nil {
		return nil, err
	}
	if limit > 0 {
		plan.Data = slices.Clone(plan.Data)
		for i := range plan.Data {
			plan.Data[i].Limit = int(limit)
		}
	}
	if err := otherData(plan, c.String("data")); err != nil {
		return nil, err
	}
	if err := otherGenerator(c, plan); err != nil {
		return nil, err
	}
	return plan, overrideRun(c, plan)
}

// showAny prints what a run of any study found.
func showAny(env environment, asJSON bool, out string, r *orchestrate.Resolved, outcome orchestrate.Outcome) error {
	if r.Study.ID == "eval" {
		return showEval(env, asJSON, "", out, r)
	}
	return showRun(env, asJSON, out, r, outcome)
}

// planOrRecipe reads a plan file or, where there is no such file, the recipe of
// that name.
func planOrRecipe(name string) (*orchestrate.Plan, error) {
	if _, err := os.Stat(name); err == nil {
		return orchestrate.LoadPlan(name)
	}
	if text, ok := recipes.Text(name); ok {
		return orchestrate.ParsePlan(name+".yaml", text)
	}
	if strings.ContainsAny(name, "/.") {
		return orchestrate.LoadPlan(name) // which says what is wrong
	}
	return nil, usage.Errorf("plan %s: no such file, and no recipe of that name: %s", name, orchestrate.DidYouMean(name, recipes.Names()))
}

// otherData puts another path into the plan's data.
func otherData(plan *orchestrate.Plan, text string) error {
	if text == "" {
		return nil
	}
	plan.Data = slices.Clone(plan.Data)
	var names []string
	for i := range plan.Data {
		d := &plan.Data[i]
		name := d.EntryName()
		if path, ok := strings.CutPrefix(text, name+"="); ok {
			d.Name, d.Path = name, path
			return nil
		}
		names = append(names, name)
	}
	if len(plan.Data) != 1 {
		return usage.Errorf("--data %s: the plan has %d data entries: want NAME=PATH, the name one of %s", text, len(plan.Data), strings.Join(names, ", "))
	}
	plan.Data[0].Name, plan.Data[0].Path = names[0], text
	return nil
}

// runResult is what study commands print as JSON.
type runResult struct {
	// Shard is that of a run which is one: Units are its own.
	Shard   string                   `json:"shard,omitempty"`
	Units   int                      `json:"units"`
	Failed  int                      `json:"failed"`
	Before  int                      `json:"before"`
	Summary []orchestrate.SummaryRow `json:"summary"`
	Claims  []orchestrate.ClaimRow   `json:"claims,omitempty"`
	// Contests are of scores: who is better than whom.
	Contests []orchestrate.Contest `json:"contests,omitempty"`
	// Consistency is that of study road.
	Consistency *orchestrate.Consistency `json:"consistency,omitempty"`
}

// showRun prints a run's summary, and the searches of a small one.
func showRun(env environment, asJSON bool, out string, r *orchestrate.Resolved, outcome orchestrate.Outcome) error {
	if asJSON {
		return printJSON(env, runResult{r.Plan.Shard.String(), outcome.Units, outcome.Failed, outcome.Before, outcome.Summary, outcome.Claims, outcome.Contests, outcome.Consistency})
	}
	if r.Study.ID == "trace" {
		if err := showTrace(env, out, r, outcome); err != nil {
			return err
		}
	}
	switch r.Study.ID {
	case "transfer":
		printTransfer(env, r, outcome.Summary)
	case "explain":
		if err := showExplain(env, out, r); err != nil {
			return err
		}
	case "score":
		if err := showScores(env, outcome); err != nil {
			return err
		}
		printPublished(env, outcome.Summary)
	case "road":
		showRoad(env, r, outcome)
		if metrics := r.Plan.Report.Metrics; len(metrics) > 0 {
			fmt.Fprintln(env.stdout)
			printSummary(env, shownMetrics(outcome.Summary, metrics))
		} else {
			printPublished(env, outcome.Summary)
		}
	default:
		printSummary(env, shownMetrics(outcome.Summary, r.Plan.Report.Metrics))
	}
	if lines := r.GivenLegend(); len(lines) > 0 {
		fmt.Fprintln(env.stdout)
		for _, line := range lines {
			fmt.Fprintln(env.stdout, line)
		}
	}
	printClaims(env, outcome.Claims)
	printNotMeasured(env, outcome.Summary)
	return nil
}

// printPublished prints the rows that have a published number, where the table of
// scores has none.
func printPublished(env environment, rows []orchestrate.SummaryRow) {
	rows = slices.DeleteFunc(slices.Clone(rows), func(row orchestrate.SummaryRow) bool { return row.Reference == nil || row.N == 0 })
	if len(rows) == 0 {
		return
	}
	fmt.Fprintln(env.stdout)
	printSummary(env, rows)
}

// shownMetrics leaves out the metrics that the plan's tables do not show.
func shownMetrics(rows []orchestrate.SummaryRow, metrics []string) []orchestrate.SummaryRow {
	if len(metrics) == 0 {
		return rows
	}
	return slices.DeleteFunc(slices.Clone(rows), func(row orchestrate.SummaryRow) bool { return !slices.Contains(metrics, row.Metric) })
}

// printSummary leaves out the parameters that all rows share.
func printSummary(env environment, rows []orchestrate.SummaryRow) {
	rows = slices.DeleteFunc(slices.Clone(rows), func(row orchestrate.SummaryRow) bool { return row.Reading == orchestrate.ReadingNotMeasured })
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
		number := "%.4f"
		if strings.HasSuffix(row.Metric, "-seconds") { // of an image, which can be few
			number = "%.3g"
		}
		cells = append(cells, row.Metric, fmt.Sprintf(number, row.Mean), between(number, row.Lo, row.Hi, row.N), strconv.Itoa(row.N))
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

// between writes the bounds of a mean over images, missing where one image has none.
func between(format string, lo, hi float64, images int) string {
	if images < 2 {
		return missing
	}
	return fmt.Sprintf(format+" .. "+format, lo, hi)
}

// printNotMeasured says what is missing and why, each reason once.
func printNotMeasured(env environment, rows []orchestrate.SummaryRow) {
	var reasons []string
	count, nets := map[string]int{}, map[string][]string{}
	for _, row := range rows {
		if row.Reading != orchestrate.ReadingNotMeasured {
			continue
		}
		if count[row.Reason]++; count[row.Reason] == 1 {
			reasons = append(reasons, row.Reason)
		}
		if name := row.Net; name != "" && !slices.Contains(nets[row.Reason], name) {
			nets[row.Reason] = append(nets[row.Reason], name)
		}
	}
	for i, reason := range reasons {
		if i == 0 {
			fmt.Fprintln(env.stdout)
		}
		what := strings.Join(nets[reason], ", ")
		if n := count[reason]; n > 1 {
			what = strings.TrimPrefix(fmt.Sprintf("%s, %d published rows", what, n), ", ")
		}
		if what != "" {
			what = " " + what
		}
		fmt.Fprintf(env.stdout, "NOT MEASURED%s: %s\n", what, reason)
	}
}

// printClaims shows what became of the claims.
func printClaims(env environment, rows []orchestrate.ClaimRow) {
	if len(rows) == 0 {
		return
	}
	vary := claimsVary(rows)
	t := table{header: slices.Concat([]string{"claim", "reading", "difference", "95 % of means", "images"}, vary), right: map[int]bool{2: true, 4: true}}
	for _, row := range rows {
		cells := []string{row.Claim, row.Reading, "-", "-", "-"}
		if row.Difference != nil {
			cells[2], cells[3], cells[4] = fmt.Sprintf("%.4f", *row.Difference), between("%.4f", *row.Lo, *row.Hi, row.N), strconv.Itoa(row.N)
		}
		for _, k := range vary {
			v := row.Params[k]
			switch k {
			case "net":
				v = row.Net
			case "metric":
				v = row.Metric
			}
			cells = append(cells, fmt.Sprint(orDash(v)))
		}
		t.add(cells...)
	}
	fmt.Fprintln(env.stdout)
	t.print(env.stdout)
	said := map[string]bool{}
	for _, row := range rows {
		if row.Reading == orchestrate.ReadingUndecided && row.Reason != "" && !said[row.Reason] {
			said[row.Reason] = true
			fmt.Fprintln(env.stdout, "undecided: "+row.Reason)
		}
	}
}

// claimsVary lists what the measured claims differ in, the metric where one claim has
// several.
func claimsVary(rows []orchestrate.ClaimRow) []string {
	var measured []orchestrate.SummaryRow
	metrics, several := map[string]string{}, false
	for _, row := range rows {
		if row.Difference != nil {
			several = several || metrics[row.Claim] != "" && metrics[row.Claim] != row.Metric
			metrics[row.Claim] = row.Metric
			params := orchestrate.Params{"net": row.Net}
			maps.Copy(params, row.Params)
			measured = append(measured, orchestrate.SummaryRow{Params: params})
		}
	}
	if several {
		return append(varying(measured), "metric")
	}
	return varying(measured)
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
