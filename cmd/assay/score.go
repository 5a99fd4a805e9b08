package main

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/assay-xai/assay/internal/usage"
	"github.com/assay-xai/assay/orchestrate"
)

const scoresCategory = "The scores"

const scoreExamples = `How good maps are by metrics of "assay list metrics": of methods that are run for it, or of maps that you have.

   assay score --net cnn3 --data embedded:digits --limit 20 --methods gradient,smoothgrad,occlusion --metrics deletion,insertion,sparseness --out runs/scores
   assay score --net cnn3 --data embedded:digits --limit 20 --attributions runs/digit-maps --metrics 'pixel-flipping(step=28)' --out runs/scores-of-maps
   assay score --net cnn3 --data embedded:digits --limit 10 --methods gradient,random --metrics 'le-mo(edge=7)' --baseline 'trace(iterations=2000)' --out runs/optimum

Maps that you have are .npz files by image id, a folder of them, or the folder of an explain run, whose methods are scored each. OUT/summary.csv has means with 95 % intervals and ranks, OUT/ranks.csv and OUT/wins.csv who is better than whom, OUT/results.jsonl every value, OUT/report.html all of it.`

func scoreCommand(env environment) *cli.Command {
	return &cli.Command{
		Name:        "score",
		Usage:       "measure how good maps of attribution are, by any metrics",
		Description: scoreExamples,
		Flags: append([]cli.Flag{
			&cli.StringFlag{Name: "methods", Usage: "`METHODS` of assay list methods, separated by commas (default: gradient, where no attributions are given)", Category: scoresCategory},
			&cli.StringFlag{Name: "attributions", Usage: "maps in place of methods or beside them: an .npz, a folder of them or of an explain run; several `PATHS` are separated by commas", Category: scoresCategory},
			&cli.StringFlag{Name: "metrics", Usage: "`METRICS` of assay list metrics, separated by commas (default: deletion)", Category: scoresCategory},
			&cli.StringFlag{Name: "reduce", Usage: "what becomes of channels before maps are scored: `REDUCTION` " + strings.Join(reductions(), ", ") + "; several are separated by commas (default: each metric's own)", Category: scoresCategory},
			&cli.StringFlag{Name: "baseline", Usage: "trace: the searched optimum of le, mo and le-mo beside the methods; its `SEARCH` may have a budget: trace(evaluations=20000)", Category: scoresCategory},
			&cli.StringFlag{Name: "boxes", Usage: "`FILE` of lines IMAGE X0 Y0 X1 Y1, in pixels of what the net sees: what the pointing game is to find", Category: scoresCategory},
			&cli.BoolFlag{Name: "skip-nan", Usage: "count maps with values that are no numbers as undefined (default: they are an error)", Category: scoresCategory},
		}, studyFlags()...),
		Action: func(c *cli.Context) error {
			plan, err := scorePlan(c)
			if err != nil {
				return err
			}
			return runStudy(c, env, plan, func(_ context.Context, out string, r *orchestrate.Resolved, outcome orchestrate.Outcome) error {
				return showRun(env, c.Bool("json"), out, r, outcome)
			})
		},
	}
}

// reductions are the choices of explain's parameter.
func reductions() []string {
	study, err := orchestrate.FindStudy("explain")
	if err != nil {
		return nil
	}
	for _, p := range study.Parameters {
		if p.Name == "reduce" {
			return p.Choices
		}
	}
	return nil
}

// scorePlan has a grid for each of what is compared: methods, maps, the optimum.
func scorePlan(c *cli.Context) (*orchestrate.Plan, error) {
	plan, err := studyPlan(c, "score")
	if err != nil {
		return nil, err
	}
	values := map[string][]any{}
	for flag, parameter := range map[string]string{"methods": "method", "attributions": "attributions", "metrics": "metric", "reduce": "reduce", "baseline": "baseline"} {
		if !c.IsSet(flag) {
			continue
		}
		for _, v := range split(c.String(flag)) {
			if flag != "attributions" {
				values[parameter] = append(values[parameter], v)
				continue
			}
			folders, err := orchestrate.AttributionFolders(v)
			if err != nil {
				return nil, err
			}
			for _, f := range folders {
				values[parameter] = append(values[parameter], f)
			}
		}
		if len(values[parameter]) == 0 {
			return nil, usage.Errorf("--%s is empty: want at least one", flag)
		}
	}
	for _, k := range []string{"metric", "reduce"} {
		if values[k] != nil {
			plan.Grid[k] = values[k]
		}
	}
	if c.IsSet("boxes") {
		plan.Grid["boxes"] = c.String("boxes")
	}
	if c.Bool("skip-nan") {
		plan.Grid["nan"] = "skip"
	}
	var whose []string
	for _, k := range []string{"method", "attributions", "baseline"} {
		if values[k] != nil {
			whose = append(whose, k)
		}
	}
	if slices.Equal(whose, []string{"baseline"}) {
		return nil, usage.Errorf("--baseline: the optimum of what? give --methods or --attributions too")
	}
	if len(whose) == 1 {
		plan.Grid[whose[0]] = values[whose[0]]
		return plan, nil
	}
	for _, k := range whose {
		plan.Grids = append(plan.Grids, map[string]any{k: values[k]})
	}
	return plan, nil
}

// Arrows of directions, and what marks the best of a metric.
const (
	higherArrow, lowerArrow = "↑", "↓"
	bestMark                = "*"
)

// showScores prints a table of methods by metrics for every net, data and target.
func showScores(env environment, outcome orchestrate.Outcome) error {
	type place struct{ net, data, target string }
	var order []place
	tables := map[place][]orchestrate.Contest{}
	for _, c := range outcome.Contests {
		p := place{c.Net, c.Data, c.Target}
		if tables[p] == nil {
			order = append(order, p)
		}
		tables[p] = append(tables[p], c)
	}
	for i, p := range order {
		if i > 0 {
			fmt.Fprintln(env.stdout)
		}
		if len(order) > 1 {
			fmt.Fprintln(env.stdout, strings.Join(slices.DeleteFunc([]string{p.net, p.data, "target " + p.target}, func(s string) bool { return s == "" }), ", "))
		}
		printScores(env, tables[p])
	}
	return nil
}

func printScores(env environment, list []orchestrate.Contest) {
	var names []string
	for _, c := range list {
		for _, one := range c.Competitors {
			if !slices.Contains(names, one.Name) {
				names = append(names, one.Name)
			}
		}
	}
	t := table{header: []string{"method"}, right: map[int]bool{}}
	rows := map[string][]string{}
	optimum, undefined, shares := []string{orchestrate.OptimumName}, 0, 0
	images := 0
	bounds := len(list) <= mostBounds
	for _, c := range list {
		arrow := lowerArrow
		if c.HigherIsBetter {
			arrow = higherArrow
		}
		t.right[len(t.header)] = true
		t.header = append(t.header, c.Metric+" "+arrow)
		if bounds {
			t.header = append(t.header, "95 % of means")
		}
		t.right[len(t.header)] = true
		t.header = append(t.header, "rank")
		n := len(t.header)
		if c.Optimum != nil {
			t.header = append(t.header, "share of the optimum")
			t.right[n] = true
		}
		for _, name := range names {
			cells := []string{"-", "-", "-"}
			share := "-"
			for _, one := range c.Competitors {
				if one.Name != name {
					continue
				}
				images = max(images, one.N+one.Undefined)
				undefined += one.Undefined
				if one.Rank > 0 {
					mean := scoreText(one.Mean)
					if leader(c, one) {
						mean = bestMark + mean
					}
					if one.Undefined > 0 {
						mean += fmt.Sprintf(" (n=%d)", one.N)
					}
					cells = []string{mean, scoreBounds(one.Lo, one.Hi, one.N), rankText(one)}
					if !bounds {
						cells[2] = strconv.FormatFloat(one.Rank, 'f', -1, 64)
					}
				}
				if one.Share != nil {
					share = fmt.Sprintf("%.3f", *one.Share)
				}
			}
			if !bounds {
				cells = []string{cells[0], cells[2]}
			}
			if rows[name] = append(rows[name], cells...); c.Optimum != nil {
				rows[name] = append(rows[name], share)
			}
		}
		cells := []string{"", ""}
		if bounds {
			cells = append(cells, "")
		}
		if c.Optimum != nil {
			cells[0] = scoreText(*c.Optimum)
			cells = append(cells, "1.000")
			shares++
		}
		optimum = append(optimum, cells...)
	}
	for _, name := range names {
		t.add(append([]string{name}, rows[name]...)...)
	}
	if shares > 0 {
		t.add(optimum...)
	}
	t.print(env.stdout)
	where := "Ranks with 95 % bounds (bootstrap over images)."
	if !bounds {
		where = "Bounds are in ranks.csv and the report."
	}
	fmt.Fprintf(env.stdout, "\nMeans over %d images, %s the best of a metric; %s higher is better, %s lower. %s\n", images, bestMark, higherArrow, lowerArrow, where)
	if undefined > 0 {
		fmt.Fprintf(env.stdout, "%d scores are undefined and in no mean; results.jsonl says why.\n", undefined)
	}
	var verdicts []string
	of := map[string][]string{}
	for _, c := range list {
		if of[c.Verdict] == nil {
			verdicts = append(verdicts, c.Verdict)
		}
		of[c.Verdict] = append(of[c.Verdict], c.Metric)
	}
	for _, v := range verdicts {
		fmt.Fprintln(env.stdout, strings.Join(of[v], ", ")+": "+v)
	}
}

// mostBounds is for how many metrics the table has intervals of means: more do not
// stand side by side on a terminal.
const mostBounds = 3

func leader(c orchestrate.Contest, one orchestrate.Competitor) bool {
	return !slices.ContainsFunc(c.Competitors, func(o orchestrate.Competitor) bool { return o.Rank > 0 && o.Rank < one.Rank })
}

func rankText(one orchestrate.Competitor) string {
	rank := func(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }
	if one.RankLo == one.RankHi {
		return rank(one.Rank)
	}
	return fmt.Sprintf("%s (%s-%s)", rank(one.Rank), rank(one.RankLo), rank(one.RankHi))
}

// scoreBounds are those of a mean over images, missing where one image has none.
func scoreBounds(lo, hi float64, images int) string {
	if images < 2 {
		return missing
	}
	return scoreText(lo) + " .. " + scoreText(hi)
}

// scoreText writes a mean with four digits that count.
func scoreText(v float64) string {
	switch magnitude := math.Abs(v); {
	case magnitude == 0:
		return "0"
	case magnitude < 1e-3 || magnitude >= 1e5:
		return strconv.FormatFloat(v, 'e', 2, 64)
	case magnitude < 10:
		return fmt.Sprintf("%.4f", v)
	case magnitude < 1000:
		return fmt.Sprintf("%.2f", v)
	}
	return fmt.Sprintf("%.0f", v)
}
