package report

import (
	"bytes"
	"context"
	"encoding/csv"
	"fmt"
	"image/color"
	"os"
	"path/filepath"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
)

// chartColors are the page's, on white.
var chartColors = [chartLines]color.NRGBA{
	{0x00, 0x67, 0xa6, 0xff}, {0xc0, 0x4a, 0x00, 0xff}, {0x16, 0x80, 0x5a, 0xff}, {0x8a, 0x4b, 0xb0, 0xff},
	{0xa3, 0x80, 0x1a, 0xff}, {0xc2, 0x33, 0x7a, 0xff}, {0x3b, 0x9a, 0xc4, 0xff}, {0x6b, 0x65, 0x60, 0xff},
	{0x8f, 0x1d, 0x1d, 0xff}, {0x2b, 0x3f, 0x8c, 0xff},
}

// writeCharts writes OUT/plots/figure-N-M.{svg,png,csv}: chart M of figure N.
func (r *run) writeCharts(ctx context.Context) error {
	for _, b := range r.blocks {
		for i, c := range b.Charts {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := os.MkdirAll(filepath.Join(r.out, PlotsDir), 0o777); err != nil {
				return fmt.Errorf("report: making the folder of plots: %w", err)
			}
			path := filepath.Join(r.out, PlotsDir, fmt.Sprintf("%s-%d", b.ID, i+1))
			if err := c.write(path); err != nil {
				return fmt.Errorf("report: plotting %s: %w", c.Title, err)
			}
		}
	}
	return nil
}

func (c *chart) write(path string) error {
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = c.Title, c.XLabel, c.YLabel
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = c.XMin, c.XMax, c.YMin, c.YMax
	p.Legend.Top, p.Title.Padding = true, vg.Points(8)
	p.Add(plotter.NewGrid())
	for i, s := range c.series {
		if err := s.draw(p, i); err != nil {
			return err
		}
	}
	for _, kind := range []string{"svg", "png"} {
		w, err := p.WriterTo(6*vg.Inch, 3.8*vg.Inch, kind)
		if err != nil {
			return err
		}
		var b bytes.Buffer
		if _, err := w.WriteTo(&b); err != nil {
			return err
		}
		if err := writeFile(path+"."+kind, b.Bytes()); err != nil {
			return err
		}
	}
	return c.writeCSV(path + ".csv")
}

// draw adds the line and its bounds.
func (s series) draw(p *plot.Plot, i int) error {
	points := func(ys []float64) plotter.XYs {
		out := make(plotter.XYs, len(ys))
		for j, y := range ys {
			out[j] = plotter.XY{X: s.xs[j], Y: y}
		}
		return out
	}
	c := chartColors[i%chartLines]
	if !s.single {
		outline := points(s.band.Hi)
		lower := points(s.band.Lo)
		for j := len(lower) - 1; j >= 0; j-- {
			outline = append(outline, lower[j])
		}
		area, err := plotter.NewPolygon(outline)
		if err != nil {
			return err
		}
		fill := c
		fill.A = bandAlpha
		area.Color, area.LineStyle.Width = fill, 0
		p.Add(area)
	}
	if s.faint != nil {
		line, err := plotter.NewLine(points(s.faint))
		if err != nil {
			return err
		}
		line.Color, line.Width = c, vg.Points(.5)
		p.Add(line)
	}
	line, err := plotter.NewLine(points(s.band.Mean))
	if err != nil {
		return err
	}
	line.Color, line.Width = c, vg.Points(1.6)
	line.Dashes = [][]vg.Length{nil, {vg.Points(7), vg.Points(3)}, {vg.Points(2), vg.Points(2)}, {vg.Points(9), vg.Points(3), vg.Points(2), vg.Points(3)}}[i%4]
	p.Add(line)
	p.Legend.Add(s.name, line)
	return nil
}

func (c *chart) writeCSV(path string) error {
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	w.Write([]string{"line", c.XLabel, "mean", "lo", "hi"})
	for _, s := range c.series {
		for j, x := range s.xs {
			w.Write([]string{s.name, exact(x), exact(s.band.Mean[j]), exact(s.band.Lo[j]), exact(s.band.Hi[j])})
		}
	}
	w.Flush()
	if err := w.Error(); err != nil {
		return err
	}
	return writeFile(path, b.Bytes())
}
