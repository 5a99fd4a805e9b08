package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/google/renameio/v2"
	"github.com/urfave/cli/v2"

	"github.com/assay-xai/assay/internal/record"
	"github.com/assay-xai/assay/internal/usage"
	"github.com/assay-xai/assay/orchestrate"
)

func evalCommand(env environment) *cli.Command {
	return &cli.Command{
		Name:  "eval",
		Usage: "what a net sees: accuracy and predictions",
		Flags: append([]cli.Flag{
			&cli.StringFlag{Name: "predictions", Usage: "write a JSON line an image to `FILE`", Category: whatCategory},
		}, studyFlags()...),
		Action: func(c *cli.Context) error {
			if file := c.String("predictions"); file != "" {
				if info, err := os.Stat(filepath.Dir(file)); err != nil || !info.IsDir() {
					return usage.Errorf("--predictions %s: there is no folder %s", file, filepath.Dir(file))
				}
			}
			plan, err := studyPlan(c, "eval")
			if err != nil {
				return err
			}
			return runStudy(c, env, plan, func(_ context.Context, out string, r *orchestrate.Resolved, _ orchestrate.Outcome) error {
				return showEval(env, c.Bool("json"), c.String("predictions"), out, r)
			})
		},
	}
}

// accuracy is what eval says of a net.
type accuracy struct {
	Shard string `json:"shard,omitempty"` // of a run which is one
	Net   string `json:"net,omitempty"`   // where there are several
	// Top1 and Top5 are fractions, nil without labels.
	Top1    *float64 `json:"top1"`
	Top5    *float64 `json:"top5"`
	Images  int      `json:"images"`
	Skipped int      `json:"skipped"`
}

// predicted is a line of --predictions.
type predicted struct {
	Net         string  `json:"net,omitempty"` // where there are several
	Image       string  `json:"image"`
	Label       *int    `json:"label"`
	Predicted   int     `json:"predicted"`
	Probability float64 `json:"probability"`
}

// shownImages is how many images a table shows one by one.
const shownImages = 24

func showEval(env environment, asJSON bool, file, out string, r *orchestrate.Resolved) error {
	results := make([]accuracy, len(r.Nets))
	counts := make([]struct{ labelled, top1, top5 int }, len(r.Nets))
	index := map[string]int{}
	for i, n := range r.Nets {
		index[n.Name] = i
		results[i].Shard = r.Plan.Shard.String()
		if len(r.Nets) > 1 {
			results[i].Net = n.Name
		}
	}
	var lines []predicted
	err := record.Scan(filepath.Join(out, record.FileName), func(rec record.Record) error {
		i, ok := index[rec.Net]
		if !ok {
			return nil
		}
		if rec.Error != "" {
			results[i].Skipped++
			return nil
		}
		results[i].Images++
		p := rec.Prediction
		lines = append(lines, predicted{results[i].Net, rec.Image, rec.Class, p.Classes[0], p.Probabilities[0]})
		if rec.Class == nil {
			return nil
		}
		counts[i].labelled++
		for place, class := range p.Classes {
			if class == *rec.Class {
				counts[i].top5++
				if place == 0 {
					counts[i].top1++
				}
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for i, c := range counts {
		if c.labelled > 0 {
			top1, top5 := float64(c.top1)/float64(c.labelled), float64(c.top5)/float64(c.labelled)
			results[i].Top1, results[i].Top5 = &top1, &top5
		}
	}
	if file != "" {
		if err := writePredictions(file, lines); err != nil {
			return err
		}
	}
	if asJSON {
		if len(results) == 1 {
			return printJSON(env, results[0])
		}
		return printJSON(env, results)
	}
	printEval(env, r, results, lines)
	return nil
}

func writePredictions(file string, lines []predicted) error {
	var b bytes.Buffer
	for _, l := range lines {
		line, err := json.Marshal(l)
		if err != nil {
			return fmt.Errorf("writing %s: %w", file, err)
		}
		b.Write(append(line, '\n'))
	}
	if err := renameio.WriteFile(file, b.Bytes(), 0o666, renameio.WithTempDir(filepath.Dir(file))); err != nil {
		return fmt.Errorf("writing predictions to %s: %w", file, err)
	}
	return nil
}

func printEval(env environment, r *orchestrate.Resolved, results []accuracy, lines []predicted) {
	names := r.ClassNames()
	if len(lines) <= shownImages {
		t := table{header: []string{"net", "image", "label", "predicted", "probability"}, right: map[int]bool{4: true}}
		for _, l := range lines {
			label := "-"
			if l.Label != nil {
				label = className(names, *l.Label)
			}
			t.add(orNet(l.Net, r), l.Image, label, className(names, l.Predicted), fmt.Sprintf("%.4f", l.Probability))
		}
		t.print(env.stdout)
		fmt.Fprintln(env.stdout)
	}
	t := table{header: []string{"net", "top-1", "top-5", "images", "skipped"}, right: map[int]bool{1: true, 2: true, 3: true, 4: true}}
	for _, a := range results {
		t.add(orNet(a.Net, r), percent(a.Top1), percent(a.Top5), strconv.Itoa(a.Images), strconv.Itoa(a.Skipped))
	}
	t.print(env.stdout)
}

func orNet(name string, r *orchestrate.Resolved) string {
	if name != "" {
		return name
	}
	return r.Nets[0].Name
}

func percent(v *float64) string {
	if v == nil {
		return "no labels"
	}
	return fmt.Sprintf("%.2f %%", 100**v)
}
