package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/assay-xai/assay/internal/usage"
	"github.com/assay-xai/assay/orchestrate"
)

const removalCategory = "What is removed"

const roadExamples = `Do explanations find the pixels that matter? Those that maps rank first (morf) or last (lerf) are removed and imputed, and the net is asked again, without retraining (ROAD).

   assay road --net cnn3 --data embedded:digits --limit 100 --methods gradient,integrated-gradients,smoothgrad,random --out runs/road
   assay road --net cnn3 --data embedded:digits --limit 100 --methods gradient,random --imputers noisy-linear,channel-mean --orders morf,lerf,random --fractions .1,.3,.5 --out runs/imputers
   assay road --net cnn3 --data embedded:digits --limit 20 --attributions runs/digit-maps --out runs/road-of-maps

OUT/summary.csv has accuracies and probabilities for every method, order, imputer and fraction, OUT/ranks.csv and OUT/wins.csv who is better than whom, OUT/consistency.csv how alike orders and imputers rank the methods, OUT/results.jsonl every curve, OUT/report.html all of it.`

func roadCommand(env environment) *cli.Command {
	return &cli.Command{
		Name:        "road",
		Usage:       "measure whether explanations find the pixels that matter, by removing and imputing them",
		Description: roadExamples,
		Flags: append([]cli.Flag{
			&cli.StringFlag{Name: "methods", Usage: "`METHODS` of assay list methods, separated by commas (default: gradient, where no attributions are given)", Category: removalCategory},
			&cli.StringFlag{Name: "attributions", Usage: "maps in place of methods or beside them: an .npz, a folder of them or of an explain run; several `PATHS` are separated by commas", Category: removalCategory},
			&cli.StringFlag{Name: "imputers", Usage: "what removed pixels become: `IMPUTERS` of assay list imputers, separated by commas (default: noisy-linear)", Category: removalCategory},
			generatorFlag(removalCategory),
			&cli.StringFlag{Name: "orders", Usage: "`ORDERS`: morf (most relevant first), lerf (least relevant first), random (without a method) (default: morf,lerf)", Category: removalCategory},
			&cli.StringFlag{Name: "fractions", Usage: "`FRACTIONS` of the pixels that are removed, from 0 to 1 (default: .1,.2,.3,.4,.5,.7,.9)", Category: removalCategory},
			&cli.StringFlag{Name: "ties", Usage: "which of equally relevant pixels goes first: `TIES` random, index or noise (default: random)", Category: removalCategory},
			&cli.StringFlag{Name: "reduce", Usage: "what becomes of a map's channels: `REDUCTION` " + strings.Join(rankReductions(), ", ") + "; several are separated by commas (default: sum)", Category: removalCategory},
		}, labelFlags()...),
		Action: func(c *cli.Context) error {
			plan, err := roadPlan(c)
			if err != nil {
				return err
			}
			if w := unusedMethods(c, plan); w != "" {
				newProgress(env, c.Bool("json"), c.Bool("quiet")).event(orchestrate.Event{Kind: orchestrate.Warning, Message: w})
			}
			return runStudy(c, env, plan, func(_ context.Context, out string, r *orchestrate.Resolved, outcome orchestrate.Outcome) error {
				return showRun(env, c.Bool("json"), out, r, outcome)
			})
		},
	}
}

// labelFlags are the shared flags where the label is what is tracked by default.
func labelFlags() []cli.Flag {
	flags := studyFlags()
	for _, f := range flags {
		if s, ok := f.(*cli.StringFlag); ok && s.Name == "target" {
			s.Usage = strings.Replace(s.Usage, "(default: predicted)", "(default: label)", 1)
		}
	}
	return flags
}

// rankReductions are those that leave a number a pixel.
func rankReductions() []string {
	return slices.DeleteFunc(reductions(), func(id string) bool { return id == "none" })
}

// roadPlan has a grid for methods and one for maps where there are both.
func roadPlan(c *cli.Context) (*orchestrate.Plan, error) {
	plan, err := studyPlan(c, "road")
	if err != nil {
		return nil, err
	}
	for flag, parameter := range map[string]string{"imputers": "imputer", "orders": "order", "ties": "ties", "reduce": "reduce"} {
		if !c.IsSet(flag) {
			continue
		}
		if plan.Grid[parameter], err = valuesOf(c, flag); err != nil {
			return nil, err
		}
	}
	if c.IsSet("fractions") {
		plan.Grid["fractions"] = c.String("fractions")
	}
	whose := map[string][]any{}
	if c.IsSet("methods") {
		if whose["method"], err = valuesOf(c, "methods"); err != nil {
			return nil, err
		}
	}
	if c.IsSet("attributions") {
		paths, err := valuesOf(c, "attributions")
		if err != nil {
			return nil, err
		}
		for _, path := range paths {
			folders, err := orchestrate.AttributionFolders(path.(string))
			if err != nil {
				return nil, err
			}
			for _, f := range folders {
				whose["attributions"] = append(whose["attributions"], f)
			}
		}
	}
	if len(whose) < 2 {
		for k, v := range whose {
			plan.Grid[k] = v
		}
		return plan, nil
	}
	for _, k := range []string{"method", "attributions"} {
		plan.Grids = append(plan.Grids, map[string]any{k: whose[k]})
	}
	return plan, nil
}

// unusedMethods says which flags mean nothing where pixels are removed at random only,
// "" for none.
func unusedMethods(c *cli.Context, plan *orchestrate.Plan) string {
	orders, given := plan.Grid["order"].([]any)
	if !given || slices.ContainsFunc(orders, func(v any) bool { return v != orchestrate.OrderRandom }) {
		return ""
	}
	var flags []string
	for _, flag := range []string{"methods", "attributions"} {
		if c.IsSet(flag) {
			flags = append(flags, "--"+flag)
		}
	}
	if len(flags) == 0 {
		return ""
	}
	return fmt.Sprintf("--orders random removes pixels by chance, whatever maps say: %s not used; give --orders morf,lerf,random to compare methods with chance", strings.Join(flags, " and ")+map[bool]string{true: " are", false: " is"}[len(flags) > 1])
}

// chanceName is what tables and reports call the order that no method makes.
const chanceName = "chance"

// valuesOf is the list that a flag gives.
func valuesOf(c *cli.Context, flag string) ([]any, error) {
	var out []any
	for _, v := range split(c.String(flag)) {
		out = append(out, v)
	}
	if len(out) == 0 {
		return nil, usage.Errorf("--%s is empty: want at least one", flag)
	}
	return out, nil
}

// roadPlace is what one table is of.
type roadPlace struct{ net, data, target, imputer, ties, fractions string }

func placeOf(row orchestrate.SummaryRow) roadPlace {
	text := func(key string) string { return row.Params.Text(key) }
	return roadPlace{row.Net, text("data"), fmt.Sprint(orDash(row.Params["target"])), text("imputer"), text("ties"), text("fractions")}
}

// title names a place, with what differs from others.
func (p roadPlace) title(all []roadPlace) string {
	words := []string{p.net}
	if p.data != "" {
		words = append(words, p.data)
	}
	words = append(words, "imputer "+p.imputer)
	for _, d := range []struct {
		what string
		of   func(roadPlace) string
	}{
		{"target", func(p roadPlace) string { return p.target }},
		{"ties", func(p roadPlace) string { return p.ties }},
		{"fractions", func(p roadPlace) string { return p.fractions }},
	} {
		if v := d.of(p); v != "" && slices.ContainsFunc(all, func(o roadPlace) bool { return d.of(o) != v }) {
			words = append(words, d.what+" "+v)
		}
	}
	return strings.Join(words, ", ")
}

// roadLine is a row of a table: one method in one order.
type roadLine struct {
	name, order string
	rows        map[float64]orchestrate.SummaryRow // by fraction
	mean        *orchestrate.SummaryRow
}

// showRoad prints, for every net, data and imputer, accuracies (without labels, the
// target's probability) by method, order and fraction, and what is over all fractions.
func showRoad(env environment, r *orchestrate.Resolved, outcome orchestrate.Outcome) {
	curve, mean := "accuracy", "mean-accuracy"
	if !slices.ContainsFunc(outcome.Summary, func(row orchestrate.SummaryRow) bool { return row.Metric == curve && row.N > 0 }) {
		curve, mean = "probability", "mean-probability"
	}
	var places []roadPlace
	for _, row := range outcome.Summary {
		// Random orders break no ties: they stand beside the methods.
		if p := placeOf(row); row.N > 0 && p.imputer != "" && row.Params.Text("order") != "random" && !slices.Contains(places, p) {
			places = append(places, p)
		}
	}
	if len(places) == 0 {
		for _, row := range outcome.Summary {
			if p := placeOf(row); row.N > 0 && !slices.Contains(places, p) {
				places = append(places, p)
			}
		}
	}
	images := 0
	for i, p := range places {
		if i > 0 {
			fmt.Fprintln(env.stdout)
		}
		fmt.Fprintf(env.stdout, "%s: %s\n", p.title(places), map[string]string{"accuracy": "accuracy of the net", "probability": "mean probability of the target"}[curve]+" by the fraction of pixels that is removed")
		images = max(images, printRoad(env, r, outcome.Summary, p, curve, mean))
		printCombined(env, r, outcome.Summary, p)
	}
	fmt.Fprintf(env.stdout, "\nMeans over %d images. Ranks of methods by the mean over fractions, 1 the best (%s morf, %s lerf), with 95 %% bounds (bootstrap over images).\n", images, lowerArrow, higherArrow)
	for _, v := range outcome.Consistency.Verdicts {
		fmt.Fprintln(env.stdout, v)
	}
}

// printRoad prints the curves of one place and returns the number of images.
func printRoad(env environment, r *orchestrate.Resolved, rows []orchestrate.SummaryRow, p roadPlace, curve, mean string) int {
	var lines []*roadLine
	var fractions []float64
	images := 0
	find := func(row orchestrate.SummaryRow) *roadLine {
		name, order := r.Competitor(row.Params), row.Params.Text("order")
		for _, l := range lines {
			if l.name == name && l.order == order {
				return l
			}
		}
		lines = append(lines, &roadLine{name: name, order: order, rows: map[float64]orchestrate.SummaryRow{}})
		return lines[len(lines)-1]
	}
	for _, row := range rows {
		at := placeOf(row)
		if row.Params.Text("order") == "random" {
			at.ties = p.ties
		}
		if row.N == 0 || at != p {
			continue
		}
		switch row.Metric {
		case curve:
			f := row.Params.Float("fraction")
			find(row).rows[f] = row
			if !slices.Contains(fractions, f) {
				fractions = append(fractions, f)
			}
			images = max(images, row.N)
		case mean:
			row := row
			find(row).mean = &row
		}
	}
	slices.Sort(fractions)
	slices.SortStableFunc(lines, func(a, b *roadLine) int { return slices.Index(orderNames, a.order) - slices.Index(orderNames, b.order) })
	t := table{header: []string{"order", "method"}, right: map[int]bool{}}
	for _, f := range fractions {
		t.right[len(t.header)] = true
		t.header = append(t.header, fractionText(f))
	}
	t.right[len(t.header)] = true
	t.header = append(t.header, "mean", "rank")
	for _, l := range lines {
		cells := []string{l.order, cmp.Or(l.name, chanceName)}
		for _, f := range fractions {
			row, ok := l.rows[f]
			if !ok {
				cells = append(cells, "-")
				continue
			}
			cells = append(cells, fmt.Sprintf("%.3f", row.Mean))
		}
		if l.mean == nil {
			cells = append(cells, "-", "-")
		} else {
			cells = append(cells, fmt.Sprintf("%.3f", l.mean.Mean), rankOf(*l.mean))
		}
		t.add(cells...)
	}
	t.print(env.stdout)
	return images
}

// orderNames are the orders as tables have them.
var orderNames = []string{"morf", "lerf", "random"}

func fractionText(f float64) string {
	return strings.TrimSuffix(fmt.Sprintf("%.4g", 100*f), ".0") + " %"
}

func rankOf(row orchestrate.SummaryRow) string {
	if row.Rank == nil {
		return "-"
	}
	return rankText(orchestrate.Competitor{Rank: *row.Rank, RankLo: *row.RankLo, RankHi: *row.RankHi})
}

// printCombined prints what both orders say together, and how rough maps are.
func printCombined(env environment, r *orchestrate.Resolved, rows []orchestrate.SummaryRow, p roadPlace) {
	var names []string
	both := false
	cells := map[string][]string{}
	for _, row := range rows {
		if row.N == 0 || placeOf(row) != p || row.Metric != "road-combined" && row.Metric != "map-variation" {
			continue
		}
		name := r.Competitor(row.Params)
		if cells[name] == nil {
			names = append(names, name)
			cells[name] = []string{name, "-", "-", "-", "-"}
		}
		if row.Metric == "map-variation" {
			cells[name][4] = fmt.Sprintf("%.3f", row.Mean)
			continue
		}
		both = true
		cells[name][1], cells[name][2], cells[name][3] = scoreText(row.Mean), scoreBounds(row.Lo, row.Hi, row.N), rankOf(row)
	}
	if len(names) == 0 {
		return
	}
	t := table{header: []string{"method", "road-combined " + higherArrow, "95 % of means", "rank", "variation of the map"}, right: map[int]bool{1: true, 4: true}}
	if !both { // of one order alone
		t.header, t.right = []string{"method", "variation of the map"}, map[int]bool{1: true}
	}
	for _, name := range names {
		if line := cells[name]; both {
			t.add(line...)
		} else {
			t.add(line[0], line[4])
		}
	}
	fmt.Fprintln(env.stdout)
	t.print(env.stdout)
}
