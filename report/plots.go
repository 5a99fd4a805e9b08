package report

import (
	"bytes"
	"context"
	"encoding/csv"
	"fmt"
	"image/color"
	"os"
	"path/filepath"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"

	"github.com/assay-xai/assay/metrics"
)

var (
	leColor = color.NRGBA{0x00, 0x67, 0xa6, 0xff} // as the page's --le and --mo
	moColor = color.NRGBA{0xc0, 0x4a, 0x00, 0xff}
)

const bandAlpha = 0x38

// writePlots writes OUT/plots/mean-curves.{svg,png,csv}, and -2, -3, ... for
// further groups' pictures. The CSV holds all groups. A run without deletion
// searches has none.
func (r *run) writePlots(ctx context.Context) error {
	var rows [][]string
	n := 0
	for _, g := range r.groups {
		if err := ctx.Err(); err != nil {
			return err
		}
		if g.features == 0 {
			continue
		}
		s := g.statistics()
		n++
		suffix := ""
		if n > 1 {
			suffix = "-" + strconv.Itoa(n)
		}
		if err := os.MkdirAll(filepath.Join(r.out, PlotsDir), 0o777); err != nil {
			return fmt.Errorf("report: making the folder of plots: %w", err)
		}
		for _, kind := range []string{"svg", "png"} {
			if err := r.writePlot(g, s, filepath.Join(r.out, PlotsDir, "mean-curves"+suffix+"."+kind), kind); err != nil {
				return err
			}
		}
		for i, k := range s.points {
			row := []string{strconv.Itoa(n), g.label, strconv.Itoa(k), exact(float64(k) / float64(g.features))}
			for _, b := range []metrics.Band{s.le, s.mo} {
				row = append(row, exact(b.Mean[i]), exact(b.Lo[i]), exact(b.Hi[i]))
			}
			rows = append(rows, row)
		}
	}
	if n == 0 {
		return nil
	}
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	w.Write([]string{"plot", "setting", "deleted", "fraction", "lerf", "lerfLo", "lerfHi", "morf", "morfLo", "morfHi"})
	w.WriteAll(rows)
	if err := w.Error(); err != nil {
		return fmt.Errorf("report: writing curves: %w", err)
	}
	return writeFile(filepath.Join(r.out, PlotsDir, "mean-curves.csv"), b.Bytes())
}

func exact(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

// writePlot draws the mean curves of a group.
func (r *run) writePlot(g *group, s statistics, path, kind string) error {
	p := plot.New()
	p.Title.Text = g.label
	p.X.Label.Text, p.Y.Label.Text = "fraction deleted", "mean probability of the tracked class"
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = 0, 1, 0, 1
	p.Legend.Top, p.Legend.XOffs, p.Legend.YOffs = true, -vg.Points(8), -vg.Points(8)
	p.Title.Padding = vg.Points(8)
	p.Add(plotter.NewGrid())
	xs := fractions(s.points, g.features)
	for _, c := range []struct {
		name   string
		band   metrics.Band
		color  color.NRGBA
		dashes []vg.Length
	}{{"LeRF", s.le, leColor, nil}, {"MoRF", s.mo, moColor, []vg.Length{vg.Points(5), vg.Points(3)}}} {
		if s.images > 1 {
			outline := make(plotter.XYs, 0, 2*len(xs))
			for i, x := range xs {
				outline = append(outline, plotter.XY{X: x, Y: c.band.Hi[i]})
			}
			for i := len(xs) - 1; i >= 0; i-- {
				outline = append(outline, plotter.XY{X: xs[i], Y: c.band.Lo[i]})
			}
			area, err := plotter.NewPolygon(outline)
			if err != nil {
				return fmt.Errorf("report: plotting %s: %w", g.label, err)
			}
			fill := c.color
			fill.A = bandAlpha
			area.Color, area.LineStyle.Width = fill, 0
			p.Add(area)
		}
		points := make(plotter.XYs, len(xs))
		for i, x := range xs {
			points[i] = plotter.XY{X: x, Y: c.band.Mean[i]}
		}
		line, err := plotter.NewLine(points)
		if err != nil {
			return fmt.Errorf("report: plotting %s: %w", g.label, err)
		}
		line.Color, line.Width, line.Dashes = c.color, vg.Points(1.6), c.dashes
		p.Add(line)
		p.Legend.Add(c.name, line)
	}
	w, err := p.WriterTo(6*vg.Inch, 3.8*vg.Inch, kind)
	if err != nil {
		return fmt.Errorf("report: plotting %s: %w", g.label, err)
	}
	var b bytes.Buffer
	if _, err := w.WriteTo(&b); err != nil {
		return fmt.Errorf("report: plotting %s: %w", g.label, err)
	}
	return writeFile(path, b.Bytes())
}
