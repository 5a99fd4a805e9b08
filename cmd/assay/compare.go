package main

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/google/renameio/v2"
	"github.com/urfave/cli/v2"

	"github.com/assay-xai/assay/internal/usage"
	"github.com/assay-xai/assay/orchestrate"
	pages "github.com/assay-xai/assay/report"
)

func compareCommand(env environment) *cli.Command {
	return &cli.Command{
		Name:      "compare",
		Usage:     "two runs side by side: scores, and how alike their orders of deletion are",
		ArgsUsage: "A B",
		Description: "A and B are folders of runs of one study on the same images. Units are matched by image and by everything\n" +
			"of which both runs have a value in common (net, parameters, seed); what they differ in is found out and shown.\n" +
			"One folder twice compares parts of a run: assay compare OUT OUT --where A:solver=sa --where B:solver=greedy.\n" +
			"Differences are B - A with 95 % bounds: percentiles of a bootstrap over images, in pairs. Runs with several\n" +
			"numbers of features compare by their scores a point of the curve; their orders do not. Better is what the metric\n" +
			"says: some are the better the higher, some the lower, and some (map-variation) only describe.",
		Flags: append([]cli.Flag{
			&cli.StringSliceFlag{Name: "where", Usage: "only units of this `NAME=VALUE`, such as solver=sa; A:seed=1 for one of the runs; may be given again", Category: whatCategory},
			&cli.StringFlag{Name: "out", Usage: "write the comparison to `FILE`, .csv or .html", Category: howCategory},
		}, outputFlags()...),
		Action: func(c *cli.Context) error {
			if c.NArg() != 2 {
				return usage.Errorf("assay compare takes two folders of runs, there are %d arguments", c.NArg())
			}
			write, err := comparisonWriter(c.String("out"))
			if err != nil {
				return err
			}
			found, err := orchestrate.Compare(c.Context, c.Args().Get(0), c.Args().Get(1), orchestrate.CompareOptions{Where: c.StringSlice("where")})
			if err != nil {
				return err
			}
			if write != nil {
				if err := write(c.String("out"), found); err != nil {
					return err
				}
			}
			if c.Bool("json") {
				return printJSON(env, found)
			}
			printComparison(env, found)
			return nil
		},
	}
}

// comparisonWriter chooses by the file's extension; nil for no file.
func comparisonWriter(file string) (func(string, *orchestrate.Comparison) error, error) {
	switch strings.ToLower(filepath.Ext(file)) {
	case "":
		if file == "" {
			return nil, nil
		}
	case ".csv":
		return writeComparisonCSV, nil
	case ".html", ".htm":
		return writeComparisonHTML, nil
	}
	return nil, usage.Errorf("--out %s: want a file that ends in .csv or .html", file)
}

// groupColumns are the facts in which the groups differ.
func groupColumns(c *orchestrate.Comparison) []string {
	rows := make([]orchestrate.SummaryRow, len(c.Groups))
	for i, g := range c.Groups {
		rows[i].Params = orchestrate.Params{}
		for k, v := range g.Facts {
			rows[i].Params[k] = v
		}
	}
	return varying(rows)
}

// orderColumns are the correlations of trajectories, by name.
func orderColumns(o *orchestrate.OrdersCompared) []struct {
	name string
	orchestrate.Interval
} {
	return []struct {
		name string
		orchestrate.Interval
	}{{"spearman", o.Spearman}, {"kendall", o.Kendall}, {"top-10%", o.Top}}
}

// scoreTable and orderTable are what terminals and pages show; orderTable is nil
// where no group has trajectories.
func scoreTable(c *orchestrate.Comparison) table {
	keys := groupColumns(c)
	t := table{header: append(append([]string{}, keys...), "metric", "A", "B", "B - A", "95 %", "B better", "equal", "A better", "images"), right: map[int]bool{}}
	for i := range 8 {
		t.right[len(keys)+1+i] = true
	}
	for _, g := range c.Groups {
		for _, s := range g.Scores {
			b, a := betterCells(s, missing)
			t.add(append(groupCells(g, keys), s.Metric, decimals(s.A), decimals(s.B), decimals(s.Difference.Mean), bounds(s.Difference, s.N),
				b, strconv.Itoa(s.Equal), a, strconv.Itoa(s.N))...)
		}
	}
	return t
}

func orderTable(c *orchestrate.Comparison) *table {
	keys := groupColumns(c)
	t := &table{header: append(append([]string{}, keys...), "Spearman", "95 %", "Kendall", "95 %", "top tenth", "95 %", "the same", "pairs"), right: map[int]bool{}}
	for i := range 8 {
		t.right[len(keys)+i] = true
	}
	for _, g := range c.Groups {
		if g.Orders == nil {
			continue
		}
		cells := groupCells(g, keys)
		for _, o := range orderColumns(g.Orders) {
			cells = append(cells, decimals(o.Mean), bounds(o.Interval, g.Images))
		}
		t.add(append(cells, strconv.Itoa(g.Orders.Same), strconv.Itoa(g.Orders.N))...)
	}
	if len(t.rows) == 0 {
		return nil
	}
	return t
}

func groupCells(g orchestrate.GroupCompared, keys []string) []string {
	var cells []string
	for _, k := range keys {
		cells = append(cells, fmt.Sprint(orDash(g.Facts[k])))
	}
	return cells
}

func decimals(v float64) string { return fmt.Sprintf("%.4f", v) }

// missing stands where a table has nothing to say.
const missing = "-"

// bounds are those of a mean over images, missing where one image has none.
func bounds(i orchestrate.Interval, images int) string {
	return between("%.4f", i.Lo, i.Hi, images)
}

// betterCells count the images on which B and A are better, none where the metric
// does not say which is.
func betterCells(s orchestrate.ScoreCompared, none string) (b, a string) {
	if s.Undirected {
		return none, none
	}
	return strconv.Itoa(s.BBetter), strconv.Itoa(s.ABetter)
}

// comparisonLines say what was compared.
func comparisonLines(c *orchestrate.Comparison) []string {
	var out []string
	for _, r := range []struct {
		name string
		run  orchestrate.ComparedRun
	}{{"A", c.A}, {"B", c.B}} {
		line := fmt.Sprintf("%s: %s, %d units on %d images", r.name, r.run.Path, r.run.Units, r.run.Images)
		for _, n := range []struct {
			count int
			what  string
		}{{r.run.Failed, "failed"}, {r.run.Unmatched, "without partner"}} {
			if n.count > 0 {
				line += fmt.Sprintf(", %d %s", n.count, n.what)
			}
		}
		out = append(out, line)
	}
	out = append(out, fmt.Sprintf("%d pairs of units on %d images match", c.Matched, c.Images))
	for _, d := range append(append([]orchestrate.Difference{}, c.Differ...), c.Plans...) {
		out = append(out, fmt.Sprintf("differs: %s: %s | %s", d.Name, d.A, d.B))
	}
	if len(c.Differ)+len(c.Plans) == 0 {
		out = append(out, "differs: nothing that the records say")
	}
	return out
}

// comparisonNotes are the notes, and why groups have no correlations.
func comparisonNotes(c *orchestrate.Comparison) []string {
	out := append([]string{}, c.Notes...)
	seen := map[string]bool{}
	for _, g := range c.Groups {
		if g.WhyNoOrders != "" && !seen[g.WhyNoOrders] {
			seen[g.WhyNoOrders] = true
			out = append(out, g.WhyNoOrders)
		}
	}
	return out
}

func printComparison(env environment, c *orchestrate.Comparison) {
	for _, line := range comparisonLines(c) {
		fmt.Fprintln(env.stdout, line)
	}
	for _, note := range comparisonNotes(c) {
		fmt.Fprintln(env.stdout, "note: "+note)
	}
	fmt.Fprintln(env.stdout)
	t := scoreTable(c)
	t.print(env.stdout)
	if orders := orderTable(c); orders != nil {
		fmt.Fprintln(env.stdout)
		orders.print(env.stdout)
	}
}

// comparisonTitle names both runs: by their titles, or by their folders where
// those are the same.
func comparisonTitle(c *orchestrate.Comparison) string {
	a, b := c.A.Title, c.B.Title
	if a == b {
		a, b = filepath.Base(filepath.Clean(c.A.Path)), filepath.Base(filepath.Clean(c.B.Path))
	}
	if a == b {
		return "Parts of " + c.A.Title
	}
	return a + " and " + b
}

func writeComparisonHTML(file string, c *orchestrate.Comparison) error {
	d := pages.Document{Kind: "comparison", Title: comparisonTitle(c), Lede: comparisonLines(c), Notes: comparisonNotes(c)}
	scores := scoreTable(c)
	d.Tables = append(d.Tables, pages.DocumentTable{Title: "Scores", Text: "Means over images, and the difference B − A with 95 % bounds: percentiles of a bootstrap over images, in pairs.",
		Header: scores.header, Rows: scores.rows})
	if orders := orderTable(c); orders != nil {
		d.Tables = append(d.Tables, pages.DocumentTable{Title: "Orders of deletion",
			Text:   "Rank correlations of the features' places in the trajectories (Kendall: tau-b), and the share of the most relevant tenth that both agree on; means over images.",
			Header: orders.header, Rows: orders.rows})
	}
	return pages.WriteDocument(file, d)
}

// writeComparisonCSV writes a line a group and number; a and b are empty for
// correlations, bounds for one image, and who is better where the metric does not say.
func writeComparisonCSV(file string, c *orchestrate.Comparison) error {
	keys := groupColumns(c)
	exact := func(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }
	ends := func(i orchestrate.Interval, images int) (lo, hi string) {
		if images < 2 {
			return "", ""
		}
		return exact(i.Lo), exact(i.Hi)
	}
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	w.Write(append(append([]string{}, keys...), "metric", "a", "b", "mean", "lo", "hi", "bBetter", "equal", "aBetter", "n"))
	for _, g := range c.Groups {
		var cells []string
		for _, k := range keys {
			cells = append(cells, g.Facts[k])
		}
		for _, s := range g.Scores {
			b, a := betterCells(s, "")
			lo, hi := ends(s.Difference, s.N)
			w.Write(append(append([]string{}, cells...), s.Metric, exact(s.A), exact(s.B), exact(s.Difference.Mean), lo, hi,
				b, strconv.Itoa(s.Equal), a, strconv.Itoa(s.N)))
		}
		if g.Orders == nil {
			continue
		}
		for _, o := range orderColumns(g.Orders) {
			lo, hi := ends(o.Interval, g.Images)
			w.Write(append(append([]string{}, cells...), o.name, "", "", exact(o.Mean), lo, hi, "", "", "", strconv.Itoa(g.Orders.N)))
		}
	}
	w.Flush()
	if err := w.Error(); err != nil {
		return fmt.Errorf("writing the comparison: %w", err)
	}
	if err := renameio.WriteFile(file, b.Bytes(), 0o666, renameio.WithTempDir(filepath.Dir(file))); err != nil {
		return fmt.Errorf("writing the comparison to %s: %w", file, err)
	}
	return nil
}
