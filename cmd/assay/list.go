package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/assay-xai/assay/dataset"
	"github.com/assay-xai/assay/internal/usage"
	"github.com/assay-xai/assay/orchestrate"
	"github.com/assay-xai/assay/recipes"
	"github.com/assay-xai/assay/scores"
	"github.com/assay-xai/assay/trace"
)

// listed is one line of a list.
type listed struct {
	ID         string `json:"id"`
	Summary    string `json:"summary"`
	Family     string `json:"family,omitempty"`
	Base       string `json:"base,omitempty"` // of methods that are made of another: the one where none is given
	Parameters any    `json:"parameters,omitempty"`
	Needs      string `json:"needs,omitempty"`
	Generator  bool   `json:"generator,omitempty"` // of imputers that are trained first
	Paper      string `json:"paper,omitempty"`
	// Of metrics: the study, which values are good, and of scores what they cannot do
	// without and what of the net they look at.
	Study     string   `json:"study,omitempty"`
	Direction string   `json:"direction,omitempty"`
	Inputs    []string `json:"inputs,omitempty"`
	Output    string   `json:"output,omitempty"`
}

// shelf is something that can be listed.
type shelf struct {
	name string
	list func(ctx context.Context, env environment) ([]listed, error)
}

func shelves() []shelf {
	fixed := func(list func() []listed) func(context.Context, environment) ([]listed, error) {
		return func(context.Context, environment) ([]listed, error) { return list(), nil }
	}
	catalogue := func(part func(orchestrate.Catalogue) []orchestrate.Entry) func(context.Context, environment) ([]listed, error) {
		return func(ctx context.Context, env environment) ([]listed, error) {
			b, err := env.open("cpu", 1)
			if err != nil {
				return nil, err
			}
			defer b.Close()
			c, err := b.Catalogue(ctx)
			if err != nil {
				return nil, err
			}
			var out []listed
			for _, e := range part(c) {
				l := listed{ID: e.ID, Summary: e.Summary, Family: e.Family, Base: e.Base, Needs: e.Needs, Generator: e.Generator, Paper: e.Paper}
				if len(e.Parameters) > 0 {
					l.Parameters = e.Parameters
				}
				out = append(out, l)
			}
			return out, nil
		}
	}
	return []shelf{
		{"methods", catalogue(func(c orchestrate.Catalogue) []orchestrate.Entry { return c.Methods })},
		{"imputers", catalogue(func(c orchestrate.Catalogue) []orchestrate.Entry { return c.Imputers })},
		{"metrics", fixed(listMetrics)},
		{"solvers", fixed(func() []listed {
			return each(trace.Solvers(), func(s trace.Solver) listed {
				l := listed{ID: s.ID, Summary: s.Summary}
				if len(s.Parameters) > 0 {
					l.Parameters = s.Parameters
				}
				return l
			})
		})},
		{"presets", fixed(func() []listed {
			return each(dataset.Presets(), func(p dataset.Preset) listed { return listed{ID: p.ID, Summary: p.Summary} })
		})},
		{"studies", fixed(func() []listed {
			return each(orchestrate.Studies(), func(s orchestrate.Study) listed { return listed{ID: s.ID, Summary: s.Summary} })
		})},
		{"objectives", fixed(func() []listed {
			return each(trace.Objectives(), func(o trace.Objective) listed { return listed{ID: o.ID, Summary: o.Summary} })
		})},
		{"neighbourhoods", fixed(func() []listed {
			return each(trace.Neighbourhoods(), func(n trace.Neighbourhood) listed { return listed{ID: n.ID, Summary: n.Summary} })
		})},
		{"recipes", func(context.Context, environment) ([]listed, error) { return listRecipes() }},
		{"starts", fixed(func() []listed {
			return each(trace.Starts(), func(s trace.Start) listed { return listed{ID: s.ID, Summary: s.Summary} })
		})},
	}
}

func each[T any](list []T, line func(T) listed) []listed {
	out := make([]listed, len(list))
	for i, v := range list {
		out[i] = line(v)
	}
	return out
}

func listRecipes() ([]listed, error) {
	var out []listed
	for _, name := range recipes.Names() {
		plan, err := planOrRecipe(name)
		if err != nil {
			return nil, err
		}
		out = append(out, listed{ID: name, Summary: plan.Title, Paper: plan.Source})
	}
	return out, nil
}

// listMetrics lists the metrics of maps, then the numbers of every study.
func listMetrics() []listed {
	better := func(higher bool) string {
		if higher {
			return string(scores.HigherIsBetter)
		}
		return string(scores.LowerIsBetter)
	}
	var out []listed
	for _, s := range scores.Registry() {
		l := listed{ID: s.ID, Summary: s.Summary, Study: "score", Direction: string(s.Direction), Output: s.Output, Paper: s.Paper}
		for _, in := range s.Inputs {
			l.Inputs = append(l.Inputs, string(in))
		}
		for _, e := range orchestrate.ScoreEntries() {
			if e.ID == s.ID {
				l.Parameters = e.Parameters
			}
		}
		out = append(out, l)
	}
	for _, s := range orchestrate.Studies() {
		if s.Row != nil {
			continue // those above
		}
		for _, m := range s.Shown() {
			l := listed{ID: m.ID, Summary: m.Summary, Study: s.ID, Direction: better(m.HigherIsBetter)}
			if s.Contest != nil {
				l.Direction = contested(s, m, better)
			}
			out = append(out, l)
		}
	}
	return out
}

// contested is the direction of a metric whose good values may depend on the order of
// removal, "-" where nothing is compared by it.
func contested(s orchestrate.Study, m orchestrate.Metric, better func(bool) string) string {
	high, ok := s.Contest(m.ID, orchestrate.Params{"order": orchestrate.OrderLeRF})
	low, too := s.Contest(m.ID, orchestrate.Params{"order": orchestrate.OrderMoRF})
	switch {
	case !ok || !too:
		if m.HigherIsBetter {
			return better(true)
		}
		return "-"
	case high != low:
		return better(low) + " in morf, " + better(high) + " in lerf"
	}
	return better(high)
}

// printMetrics shows metrics study by study, with what they need and their parameters.
func printMetrics(env environment, lines []listed) {
	t := table{header: []string{"study", "metric", "what it is", "direction", "needs", "parameters", "source"}}
	for _, l := range lines {
		parameters := "-"
		if l.Parameters != nil {
			parameters = defaults(l)
		}
		t.add(l.Study, l.ID, l.Summary, l.Direction, fmt.Sprint(orDash(strings.Join(l.Inputs, ", "))), parameters, fmt.Sprint(orDash(l.Paper)))
	}
	t.print(env.stdout)
}

func listCommand(env environment) *cli.Command {
	names := []string{"nets", "layers"}
	for _, s := range shelves() {
		names = append(names, s.name)
	}
	return &cli.Command{
		Name:      "list",
		Usage:     "list " + strings.Join(names, ", "),
		ArgsUsage: "WHAT",
		Description: "assay list nets             every net with its size, preset, default layer and weights (--json: with the layers' names)\n" +
			"assay list nets ID          one net, with its layers and published weights\n" +
			"assay list layers --net ID  the layers alone, by which attribution methods and randomisation tests address them\n" +
			"assay list methods          attribution methods with their parameters (--json: with ranges), given as METHOD(name=value);\n" +
			"                            one that stands first in parentheses is what an ensemble is made of: smoothgrad(integrated-gradients,samples=15)\n" +
			"assay list methods ID       one method, with what its parameters mean\n" +
			"assay list imputers ID      one imputer, likewise\n" +
			"assay list metrics          metrics of maps (assay score) with direction, needs and parameters, and the numbers of every study",
		Flags: append([]cli.Flag{
			&cli.StringFlag{Name: "net", Usage: "with layers: the net whose layers are listed, an `ID` or a net file"},
		}, outputFlags()...),
		Action: func(c *cli.Context) error {
			what, only := c.Args().First(), c.Args().Get(1)
			if c.NArg() != 1 && !(c.NArg() == 2 && slices.Contains([]string{"nets", "layers", "methods", "imputers"}, what)) {
				return usage.Errorf("assay list takes one of %s; nets and layers may be followed by the id of a net, methods and imputers by one of theirs", strings.Join(names, ", "))
			}
			switch what {
			case "nets":
				nets, err := listNets(c.Context, env, only)
				if err != nil {
					return err
				}
				if only != "" && !c.Bool("json") {
					return printNet(env, nets[0])
				}
				return printNets(env, c.Bool("json"), nets)
			case "layers":
				return printLayers(c, env)
			}
			for _, s := range shelves() {
				if s.name != what {
					continue
				}
				lines, err := s.list(c.Context, env)
				if err != nil {
					return err
				}
				if only != "" {
					if lines, err = oneOf(what, only, lines); err != nil {
						return err
					}
				}
				if only != "" && !c.Bool("json") {
					printEntry(env, lines[0])
					return nil
				}
				if what == "methods" && !c.Bool("json") {
					printMethods(env, lines)
					return nil
				}
				if what == "metrics" && !c.Bool("json") {
					printMetrics(env, lines)
					return nil
				}
				return printList(env, c.Bool("json"), lines)
			}
			return usage.Errorf("list %q: %s", what, orchestrate.DidYouMean(what, names))
		},
	}
}

func printList(env environment, asJSON bool, lines []listed) error {
	if asJSON {
		if lines == nil {
			lines = []listed{}
		}
		return printJSON(env, lines)
	}
	t := table{header: []string{"id", "what it is"}}
	sources := slices.ContainsFunc(lines, func(l listed) bool { return l.Paper != "" })
	if sources {
		t.header = append(t.header, "source")
	}
	for _, l := range lines {
		if t.add(l.ID, l.Summary); sources {
			t.rows[len(t.rows)-1] = append(t.rows[len(t.rows)-1], l.Paper)
		}
	}
	t.print(env.stdout)
	return nil
}
