package main

import (
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/assay-xai/assay/internal/usage"
	"github.com/assay-xai/assay/orchestrate"
)

// Categories of flags in help.
const (
	whatCategory = "What is measured"
	howCategory  = "How it runs"
)

// studyFlags are shared by all study commands.
func studyFlags() []cli.Flag {
	return append([]cli.Flag{
		&cli.StringFlag{Name: "net", Usage: "`NET`s of assay list nets, separated by commas", Category: whatCategory},
		&cli.StringFlag{Name: "weights", Usage: "weights `FILE` or published version, one a net (default: the net's own)", Category: whatCategory},
		&cli.StringFlag{Name: "data", Usage: "folder, archive, table or array `PATH`", Category: whatCategory},
		&cli.StringFlag{Name: "split", Usage: "`SPLIT` of the data (default: test, else val, else everything)", Category: whatCategory},
		&cli.StringFlag{Name: "labels", Usage: "`FILE` of \"file class\" lines (default: labels.txt beside the images)", Category: whatCategory},
		&cli.StringFlag{Name: "preset", Usage: "preprocessing: a `PRESET` of assay list presets or a YAML file (default: the weights' own)", Category: whatCategory},
		&cli.StringFlag{Name: "target", Usage: "tracked `CLASS`: label, predicted or a number from 0 (default: predicted)", Category: whatCategory},
		&cli.StringFlag{Name: "limit", Usage: "`N` images, the classes in turn", Category: whatCategory},
		&cli.StringFlag{Name: "seed", Usage: "`SEED` of random numbers; several separated by commas (default: 0)", Category: whatCategory},
	}, runFlags()...)
}

// runFlags say how a run runs; assay run has them too.
func runFlags() []cli.Flag {
	return append(append(deviceFlags(), []cli.Flag{
		&cli.StringFlag{Name: "out", Usage: "`FOLDER` for records, summary and report; a run in it goes on", Category: howCategory},
		&cli.StringFlag{Name: "shard", Usage: "run part `I/N` of the units, I from 1 to N, each in an OUT of its own; assay merge makes one run of them", Category: howCategory},
		&cli.BoolFlag{Name: "resolve-only", Usage: "write OUT/plan.yaml with all that is measured or found, and run nothing: what shards on several machines start from", Category: howCategory},
		&cli.BoolFlag{Name: "resume", Usage: "go on with a run; it is an error if there is none", Category: howCategory},
	}...), outputFlags()...)
}

// deviceFlags say what a run runs on.
func deviceFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "device", Usage: "cpu or cuda:`N` (default: the first GPU if there is one)", Category: howCategory},
		&cli.StringFlag{Name: "batch", Usage: "`ROWS` of every forward, or auto (default: auto)", Category: howCategory},
		&cli.StringFlag{Name: "precision", Usage: "`FORMAT`: " + strings.Join(orchestrate.Precisions(), ", ") + " (default: f32)", Category: howCategory},
		&cli.IntFlag{Name: "threads", Usage: "`N` threads (default: one a core)", Category: howCategory},
	}
}

// outputFlags are shared by all commands that print results.
func outputFlags() []cli.Flag {
	return []cli.Flag{
		&cli.BoolFlag{Name: "json", Usage: "results and progress as JSON", Category: howCategory},
		&cli.BoolFlag{Name: "quiet", Usage: "no progress and no warnings", Category: howCategory},
	}
}

// studyPlan makes the plan that a study command stands for.
func studyPlan(c *cli.Context, study string) (*orchestrate.Plan, error) {
	p := &orchestrate.Plan{Version: orchestrate.PlanVersion, Study: study, Grid: map[string]any{}}
	if err := noPositionals(c); err != nil {
		return nil, err
	}
	var err error
	if p.Nets, err = netsOf(c); err != nil {
		return nil, err
	}
	if c.String("data") == "" {
		return nil, usage.Errorf("no data: give a folder, archive, table or array with --data PATH")
	}
	limit, err := number(c, "limit", 0)
	if err != nil {
		return nil, err
	}
	p.Data = []orchestrate.DataPlan{{Path: c.String("data"), Split: c.String("split"), Labels: c.String("labels"), Limit: int(limit)}}
	if c.IsSet("seed") {
		for _, text := range split(c.String("seed")) {
			seed, err := strconv.ParseUint(text, 10, 64)
			if err != nil {
				return nil, usage.Errorf("--seed %q: want a whole number from 0", text)
			}
			p.Seeds = append(p.Seeds, seed)
		}
	}
	if c.IsSet("target") {
		p.Grid["target"] = list(c.String("target"))
	}
	if err := otherGenerator(c, p); err != nil {
		return nil, err
	}
	return p, overrideRun(c, p)
}

// overrideRun applies the run flags that were given.
func overrideRun(c *cli.Context, p *orchestrate.Plan) error {
	if c.IsSet("device") {
		p.Device = c.String("device")
	}
	if c.IsSet("batch") {
		batch, err := orchestrate.ParseBatch(c.String("batch"))
		if err != nil {
			return err
		}
		p.Batch = batch
	}
	if c.IsSet("precision") {
		p.Precision = c.String("precision")
	}
	if c.IsSet("threads") {
		p.Threads = c.Int("threads")
		if p.Threads < 1 {
			return usage.Errorf("--threads %d: want at least 1", p.Threads)
		}
	}
	if c.IsSet("shard") {
		shard, err := orchestrate.ParseShard(c.String("shard"))
		if err != nil {
			return usage.Errorf("--%w", err)
		}
		p.Shard = shard
	}
	if (!p.Shard.IsZero() || c.Bool("resolve-only")) && c.String("out") == "" {
		return usage.Errorf("a shard, and a plan that is only resolved, are nothing without their folder: give one with --out FOLDER")
	}
	if c.Bool("resume") && c.String("out") == "" {
		return usage.Errorf("--resume: which run? give its folder with --out FOLDER")
	}
	return nil
}

func netsOf(c *cli.Context) ([]orchestrate.NetPlan, error) {
	names := split(c.String("net"))
	if len(names) == 0 {
		return nil, usage.Errorf("no net: give one with --net NET (assay list nets shows them)")
	}
	files := split(c.String("weights"))
	if len(files) > 0 && len(files) != len(names) {
		return nil, usage.Errorf("--weights: %d files for %d nets: want one a net, in the same order, or none", len(files), len(names))
	}
	var nets []orchestrate.NetPlan
	for i, name := range names {
		n := orchestrate.NetPlan{Net: name, Preset: orchestrate.PresetChoice{Name: c.String("preset")}}
		if len(files) > 0 {
			n.Weights = files[i]
		}
		nets = append(nets, n)
	}
	return nets, nil
}

func noPositionals(c *cli.Context) error {
	if c.Args().Present() {
		return usage.Errorf("%q: assay %s takes flags only (see assay %s --help)", c.Args().First(), c.Command.Name, c.Command.Name)
	}
	return nil
}

// number reads a count that was given as text, so that the error can be ours.
func number(c *cli.Context, flag string, minimum int64) (int64, error) {
	if !c.IsSet(flag) {
		return 0, nil
	}
	n, err := strconv.ParseInt(c.String(flag), 10, 32)
	if err != nil || n < minimum {
		return 0, usage.Errorf("--%s %q: want a whole number from %d", flag, c.String(flag), minimum)
	}
	return n, nil
}

// split cuts a list at commas that are not within parentheses.
func split(text string) []string {
	var out []string
	depth, start := 0, 0
	for i := 0; i <= len(text); i++ {
		if i < len(text) {
			switch text[i] {
			case '(':
				depth++
				continue
			case ')':
				depth--
				continue
			case ',':
				if depth > 0 {
					continue
				}
			default:
				continue
			}
		}
		if part := strings.TrimSpace(text[start:i]); part != "" {
			out = append(out, part)
		}
		start = i + 1
	}
	return out
}

// list is a grid value: numbers as numbers, one value alone, several as a list.
func list(text string) any {
	var values []any
	for _, part := range split(text) {
		if n, err := strconv.Atoi(part); err == nil {
			values = append(values, n)
		} else if f, err := strconv.ParseFloat(part, 64); err == nil {
			values = append(values, f)
		} else {
			values = append(values, part)
		}
	}
	if len(values) == 1 {
		return values[0]
	}
	return values
}
