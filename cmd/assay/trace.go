package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/assay-xai/assay/internal/record"
	"github.com/assay-xai/assay/orchestrate"
)

// gridFlag is a flag for a parameter of a study.
type gridFlag struct{ flag, parameter string }

const searchCategory = "The search; several values are separated by commas"

// gridFlags makes a flag of every parameter of a study but target, which is
// shared: scoreOn is --score-on.
func gridFlags(study orchestrate.Study) ([]gridFlag, []cli.Flag) {
	var pairs []gridFlag
	var flags []cli.Flag
	for _, p := range study.Parameters {
		if p.Name == "target" {
			continue
		}
		name := kebab(p.Name)
		usage := p.Summary
		if len(p.Choices) > 0 {
			usage += ": " + strings.Join(p.Choices, ", ")
		}
		if p.Column == "imputer" {
			usage += ": those of assay list imputers, such as zero, channel-mean, dataset-mean, blur, uniform, noisy-linear, gain (with --generator)"
		}
		if p.Default != nil {
			usage += fmt.Sprintf(" (default: %v)", p.Default)
		}
		pairs = append(pairs, gridFlag{name, p.Name})
		flags = append(flags, &cli.StringFlag{Name: name, Usage: usage, Category: searchCategory})
	}
	return pairs, append(flags, generatorFlag(searchCategory))
}

// kebab writes a camelCase name as a flag's.
func kebab(name string) string {
	var b strings.Builder
	for _, r := range name {
		if r >= 'A' && r <= 'Z' {
			b.WriteByte('-')
			r += 'a' - 'A'
		}
		b.WriteRune(r)
	}
	return b.String()
}

func traceCommand(env environment) *cli.Command {
	study, err := orchestrate.FindStudy("trace")
	if err != nil {
		panic(err) // the registry has it
	}
	pairs, flags := gridFlags(study)
	return &cli.Command{
		Name:  "trace",
		Usage: "search for the order of deleting patches that the deletion metric likes best",
		Flags: append(flags, studyFlags()...),
		Action: func(c *cli.Context) error {
			plan, err := studyPlan(c, study.ID)
			if err != nil {
				return err
			}
			for _, p := range pairs {
				if c.IsSet(p.flag) {
					plan.Grid[p.parameter] = list(c.String(p.flag))
				}
			}
			return runStudy(c, env, plan, func(_ context.Context, out string, r *orchestrate.Resolved, outcome orchestrate.Outcome) error {
				return showRun(env, c.Bool("json"), out, r, outcome)
			})
		},
	}
}

// searched is a line of the table of searches.
type searched struct {
	order  int
	params orchestrate.Params
	seed   uint64
	// The cells before and after those of what the searches differ in.
	whose, found []string
}

// searchSettings are what the searches differ in, beside what their cells say anyhow.
func searchSettings(rows []searched) []string {
	params := make([]orchestrate.SummaryRow, len(rows))
	for i, row := range rows {
		params[i].Params = orchestrate.Params{"seed": row.seed}
		maps.Copy(params[i].Params, row.params)
	}
	return slices.DeleteFunc(varying(params), func(k string) bool { return slices.Contains([]string{"edge", "objective", "solver"}, k) })
}

// setting is the cell of a parameter.
func (s searched) setting(key string) string {
	if key == "seed" {
		return strconv.FormatUint(s.seed, 10)
	}
	return fmt.Sprint(orDash(s.params[key]))
}

// showTrace prints the searches one by one where they are few.
func showTrace(env environment, out string, r *orchestrate.Resolved, outcome orchestrate.Outcome) error {
	if outcome.Units > shownImages {
		return nil
	}
	names := r.ClassNames()
	order := map[string]int{}
	for i, item := range r.Data[0].Set.Items() {
		order[item.ID] = i
	}
	var rows []searched
	err := record.Scan(filepath.Join(out, record.FileName), func(rec record.Record) error {
		if rec.Error != "" || rec.Trace == nil {
			return nil
		}
		sums := rec.Sums.Prob
		if rec.ScoreOn == "logit" {
			sums = rec.Sums.Logit
		}
		search := fmt.Sprintf("%s %s, %d features", rec.Solver, rec.Objective, rec.Features)
		rows = append(rows, searched{order[rec.Image], rec.Params, rec.Seed, []string{rec.Net, rec.Image, className(names, rec.Target), search}, []string{
			fmt.Sprintf("%.4f", rec.Value), fmt.Sprintf("%.4f", sums.Le), fmt.Sprintf("%.4f", sums.Mo),
			strconv.FormatInt(rec.Cost.Forwards, 10), fmt.Sprintf("%.1f", rec.Cost.Seconds)}})
		return nil
	})
	if err != nil {
		return err
	}
	settings := searchSettings(rows)
	t := table{header: slices.Concat([]string{"net", "image", "tracked class", "search"}, settings, []string{"value", "LeRF", "MoRF", "forwards", "seconds"}), right: map[int]bool{}}
	for i := range 5 {
		t.right[4+len(settings)+i] = true
	}
	slices.SortStableFunc(rows, func(a, b searched) int {
		order := cmp.Or(cmp.Compare(a.order, b.order), slices.Compare(a.whose, b.whose))
		for _, k := range settings {
			order = cmp.Or(order, cmp.Compare(a.setting(k), b.setting(k)))
		}
		return order
	})
	for _, row := range rows {
		cells := slices.Clone(row.whose)
		for _, k := range settings {
			cells = append(cells, row.setting(k))
		}
		t.add(append(cells, row.found...)...)
	}
	t.print(env.stdout)
	fmt.Fprintln(env.stdout)
	return nil
}
