package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/assay-xai/assay/internal/usage"
	"github.com/assay-xai/assay/orchestrate"
	"github.com/assay-xai/assay/weights"
)

// listedNet is a net with what its description says.
type listedNet struct {
	ID             string `json:"id"`
	Summary        string `json:"summary"`
	Paper          string `json:"paper,omitempty"`
	ParameterCount int64  `json:"parameterCount"`
	Input          []int  `json:"input"`
	Classes        int    `json:"classes"`
	Preset         string `json:"preset"`
	DefaultLayer   string `json:"defaultLayer,omitempty"`
	// Licence is that of the published weights.
	Licence string `json:"licence,omitempty"`
	// Weights are published, the default first; Embedded are what the program
	// carries ("embedded:NAME").
	Weights  []published         `json:"weights,omitempty"`
	Embedded []string            `json:"embedded,omitempty"`
	Layers   []orchestrate.Layer `json:"layers"`
}

// listNets describes every net of the catalogue, or the one named.
func listNets(ctx context.Context, env environment, only string) ([]listedNet, error) {
	b, err := env.open("cpu", 1)
	if err != nil {
		return nil, err
	}
	defer b.Close()
	c, err := b.Catalogue(ctx)
	if err != nil {
		return nil, err
	}
	files, _, err := publishedFiles()
	if err != nil {
		return nil, err
	}
	var out []listedNet
	var ids []string
	for _, e := range c.Nets {
		if ids = append(ids, e.ID); only != "" && e.ID != only {
			continue
		}
		info, err := b.Describe(ctx, e.ID, 0, 0)
		if err != nil {
			return nil, err
		}
		n := listedNet{ID: e.ID, Summary: e.Summary, Paper: e.Paper, ParameterCount: info.ParameterCount, Input: info.Input,
			Classes: info.Classes, Preset: orElse(info.Preset, e.Preset), DefaultLayer: info.DefaultLayer, Licence: e.Licence, Layers: info.Layers}
		for _, f := range files {
			if f.Net == e.ID {
				n.Weights = append(n.Weights, f)
			}
		}
		for _, w := range weights.Embedded() {
			if w.Net == e.ID {
				n.Embedded = append(n.Embedded, w.Path)
			}
		}
		out = append(out, n)
	}
	if len(out) == 0 && only != "" {
		return nil, usage.Errorf("net %q: %s", only, orchestrate.DidYouMean(only, ids))
	}
	return out, nil
}

func orElse(s, otherwise string) string {
	if s != "" {
		return s
	}
	return otherwise
}

func printNets(env environment, asJSON bool, nets []listedNet) error {
	if asJSON {
		return printJSON(env, nets)
	}
	t := table{header: []string{"id", "parameters", "input", "classes", "preset", "default layer", "layers", "weights", "licence of the weights"},
		right: map[int]bool{1: true, 3: true, 6: true}}
	for _, n := range nets {
		t.add(n.ID, millions(n.ParameterCount), shape(n.Input), strconv.Itoa(n.Classes), n.Preset, orElse(n.DefaultLayer, "-"),
			strconv.Itoa(len(n.Layers)), whereWeights(n), orElse(n.Licence, "-"))
	}
	t.print(env.stdout)
	_, err := fmt.Fprintln(env.stdout, "\nassay list nets ID names a net's layers and weights; assay fetch --list says what weights are published.")
	return err
}

// printNet says all about one net.
func printNet(env environment, n listedNet) error {
	fmt.Fprintf(env.stdout, "%s: %s\n", n.ID, n.Summary)
	line := func(what, text string) {
		if text != "" {
			fmt.Fprintf(env.stdout, "%-13s  %s\n", what, text)
		}
	}
	line("paper", n.Paper)
	line("parameters", strconv.FormatInt(n.ParameterCount, 10))
	line("input", shape(n.Input))
	line("classes", strconv.Itoa(n.Classes))
	line("preset", n.Preset)
	line("default layer", n.DefaultLayer)
	for _, w := range n.Weights {
		line("weights", fmt.Sprintf("%s, %s, preset %s, %s: %s", w.Version, w.File, w.Preset, w.where(), w.Licence))
	}
	for _, w := range weights.Embedded() {
		if w.Net == n.ID {
			line("weights", w.Path+": "+w.Summary)
		}
	}
	fmt.Fprintln(env.stdout)
	printLayerTable(env, n.Layers, n.DefaultLayer)
	return nil
}

// whereWeights says how the default weights are had.
func whereWeights(n listedNet) string {
	switch {
	case len(n.Weights) > 0:
		return n.Weights[0].where()
	case len(n.Embedded) > 0:
		return "embedded"
	}
	return "--weights FILE"
}

// where says whether a published file is there, or else what brings it.
func (p published) where() string {
	switch {
	case p.Cached:
		return "cached"
	case p.BaseURL == "":
		return "by setup"
	}
	return "assay fetch"
}

func millions(n int64) string {
	if n < 1e5 {
		return strconv.FormatInt(n, 10)
	}
	return strconv.FormatFloat(float64(n)/1e6, 'f', 2, 64) + " M"
}

func shape(sizes []int) string {
	texts := make([]string, len(sizes))
	for i, n := range sizes {
		texts[i] = strconv.Itoa(n)
	}
	return strings.Join(texts, "x")
}

// printLayers lists the layers of one net, in the order in which they run.
func printLayers(c *cli.Context, env environment) error {
	net := c.String("net")
	if net == "" {
		net = c.Args().Get(1)
	}
	if net == "" {
		return usage.Errorf("assay list layers wants --net ID, or --net FILE")
	}
	b, err := env.open("cpu", 1)
	if err != nil {
		return err
	}
	defer b.Close()
	info, err := orchestrate.DescribeNet(c.Context, b, net)
	if err != nil {
		return err
	}
	if c.Bool("json") {
		return printJSON(env, info.Layers)
	}
	if info.BlackBox {
		return usage.Errorf("net %s runs as a black box (%s): its layers have no names", net, info.Reason)
	}
	printLayerTable(env, info.Layers, info.DefaultLayer)
	return nil
}

func printLayerTable(env environment, layers []orchestrate.Layer, standard string) {
	t := table{header: []string{"layer", "what it is", "outputs"}}
	for _, l := range layers {
		name := l.Name
		if name == standard {
			name += " (default)"
		}
		t.add(name, l.Op, shape(l.Outputs))
	}
	t.print(env.stdout)
}
