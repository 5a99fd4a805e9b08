package main

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/assay-xai/assay/internal/record"
	"github.com/assay-xai/assay/internal/usage"
	"github.com/assay-xai/assay/orchestrate"
)

const mapsCategory = "The maps"

const explainExamples = `One map an image, by methods of "assay list methods"; a method's parameters stand in parentheses, and so does the method that an ensemble is made of.

   assay explain --net cnn3 --data embedded:digits --limit 20 --out runs/digit-maps
   assay explain --net cnn3 --data embedded:digits --limit 10 --methods gradient --reduce abs-max,sum --target label --out runs/reduced
   assay explain --net efficientnet-lite0 --data embedded:photos --methods gradient --reduce abs-mean --format npy,safetensors --out runs/photos

Maps are signed arrays [C,H,W] by image id in OUT/maps/METHOD/0000.npz (numpy.load reads them), 1000 images a file, with an index.json that says what they are; OUT/overlays has pictures, OUT/report.html shows the methods side by side.`

func explainCommand(env environment) *cli.Command {
	study, err := orchestrate.FindStudy("explain")
	if err != nil {
		panic(err) // the registry has it
	}
	var reductions []string
	for _, p := range study.Parameters {
		if p.Name == "reduce" {
			reductions = p.Choices
		}
	}
	return &cli.Command{
		Name:        "explain",
		Usage:       "make maps of what a net looks at, by any attribution methods",
		Description: explainExamples,
		Flags: append([]cli.Flag{
			&cli.StringFlag{Name: "methods", Usage: "`METHODS` of assay list methods, separated by commas (default: gradient)", Category: mapsCategory},
			&cli.StringFlag{Name: "reduce", Usage: "what becomes of channels: `REDUCTION` " + strings.Join(reductions, ", ") + "; several are separated by commas (default: none)", Category: mapsCategory},
			&cli.StringFlag{Name: "format", Usage: "`FORMATS` beside npz, which is there always: " + strings.Join(orchestrate.MapFormats(), ", ") + " (default: npz)", Category: mapsCategory},
			&cli.BoolFlag{Name: "overlays", Usage: "write every image with its map as PNG; --overlays=false: none (default: for at most 20 images)", Category: mapsCategory},
		}, studyFlags()...),
		Action: func(c *cli.Context) error {
			plan, err := explainPlan(c, study.ID)
			if err != nil {
				return err
			}
			return runStudy(c, env, plan, func(_ context.Context, out string, r *orchestrate.Resolved, outcome orchestrate.Outcome) error {
				return showRun(env, c.Bool("json"), out, r, outcome)
			})
		},
	}
}

func explainPlan(c *cli.Context, study string) (*orchestrate.Plan, error) {
	plan, err := studyPlan(c, study)
	if err != nil {
		return nil, err
	}
	for flag, parameter := range map[string]string{"methods": "method", "reduce": "reduce"} {
		if !c.IsSet(flag) {
			continue
		}
		var values []any
		for _, v := range split(c.String(flag)) {
			values = append(values, v)
		}
		if len(values) == 0 {
			return nil, usage.Errorf("--%s is empty: want at least one", flag)
		}
		plan.Grid[parameter] = values
	}
	if c.IsSet("format") {
		plan.Maps.Formats = split(c.String("format"))
	}
	if c.IsSet("overlays") {
		overlays := c.Bool("overlays")
		plan.Maps.Overlays = &overlays
	}
	return plan, nil
}

// explained is what a method came to on a net.
type explained struct {
	net, method, reduce  string
	images, failed       int
	seconds              float64
	forwards, backwards  int64
	equal, bad           int
	delta                float64
	deltas               int
	firstFailure, target string
}

// showExplain prints a line for each method.
func showExplain(env environment, out string, r *orchestrate.Resolved) error {
	rows := map[string]*explained{}
	var order []string
	err := record.Scan(filepath.Join(out, record.FileName), func(rec record.Record) error {
		key := fmt.Sprint(rec.Net, "\x00", rec.Params["data"], "\x00", rec.Method, "\x00", rec.Params["reduce"], "\x00", rec.Params["target"])
		e := rows[key]
		if e == nil {
			e = &explained{net: rec.Net, method: rec.Method, reduce: fmt.Sprint(rec.Params["reduce"]), target: fmt.Sprint(rec.Params["target"])}
			rows[key] = e
			order = append(order, key)
		}
		e.add(rec)
		return nil
	})
	if err != nil {
		return err
	}
	t := table{header: []string{"net", "method", "reduce", "target", "maps", "failed", "s/image", "forwards", "backwards", "all equal", "not finite", "|delta|"},
		right: map[int]bool{4: true, 5: true, 6: true, 7: true, 8: true, 9: true, 10: true, 11: true}}
	for _, key := range order {
		t.add(rows[key].cells()...)
	}
	t.print(env.stdout)
	for _, key := range order {
		if e := rows[key]; e.failed > 0 {
			fmt.Fprintf(env.stdout, "\n%s on %s failed on %d of %d images; the first: %s\n", e.method, e.net, e.failed, e.failed+e.images, e.firstFailure)
		}
	}
	return nil
}

func (e *explained) add(rec record.Record) {
	if rec.Error != "" || rec.Map == nil {
		if e.failed++; e.failed == 1 {
			e.firstFailure = rec.Image + ": " + rec.Error
		}
		return
	}
	e.images++
	e.seconds += rec.Cost.Seconds
	e.forwards += rec.Cost.Forwards
	e.backwards += rec.Cost.Backwards
	if rec.Map.NonFinite > 0 {
		e.bad++
	} else if rec.Map.Min == rec.Map.Max {
		e.equal++
	}
	if rec.Map.Delta != nil {
		e.delta += math.Abs(*rec.Map.Delta)
		e.deltas++
	}
}

// cells has costs as means over images.
func (e *explained) cells() []string {
	each, delta := func(float64, string) string { return "-" }, "-"
	if e.images > 0 {
		each = func(sum float64, format string) string { return fmt.Sprintf(format, sum/float64(e.images)) }
	}
	if e.deltas > 0 {
		delta = strconv.FormatFloat(e.delta/float64(e.deltas), 'g', 3, 64)
	}
	return []string{e.net, e.method, e.reduce, e.target, strconv.Itoa(e.images), strconv.Itoa(e.failed), each(e.seconds, "%.3g"),
		each(float64(e.forwards), "%.4g"), each(float64(e.backwards), "%.4g"), strconv.Itoa(e.equal), strconv.Itoa(e.bad), delta}
}
