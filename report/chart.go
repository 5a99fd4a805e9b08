package report

import (
	"math"

	"github.com/assay-xai/assay/metrics"
)

// series is a line of a chart with the 95 % bounds of its mean.
type series struct {
	name string
	xs   []float64
	band metrics.Band
	// faint is drawn thinly without bounds, in the same colour; nil: nothing.
	faint  []float64
	single bool // of one image: the bounds say nothing
}

// chart is a figure of several lines.
type chart struct {
	Title string
	plane
	XTicks, YTicks []tick
	Zero           float64
	HasZero        bool
	Lines          []chartLine
	XLabel, YLabel string
	Describe       string

	series []series // what Lines were made from
}

type chartLine struct {
	Name, Points, Band, Faint string
	Class                     string // l0..l9
}

// chartLines is the number of line styles; further lines begin anew.
const chartLines = 10

// span makes a chart's axes fit: a range of values widened to hold v.
func (p *plane) span(xs, ys []float64) {
	for _, x := range xs {
		p.XMin, p.XMax = min(p.XMin, x), max(p.XMax, x)
	}
	for _, y := range ys {
		p.YMin, p.YMax = min(p.YMin, y), max(p.YMax, y)
	}
}

// newChart draws lines over the same axes. Without fixed bounds of y, they are
// those of the lines.
func newChart(title string, lines []series, xLabel, yLabel string, unit bool) *chart {
	c := &chart{series: lines, Title: title, XLabel: xLabel, YLabel: yLabel,
		plane: plane{Width: figureWidth, Height: figureHeight, Left: 40, Right: figureWidth - 12, Top: 10, Bottom: figureHeight - 40,
			XMin: math.Inf(1), XMax: math.Inf(-1), YMin: math.Inf(1), YMax: math.Inf(-1)}}
	for _, s := range lines {
		c.span(s.xs, s.band.Mean)
		if !s.single {
			c.span(nil, s.band.Lo)
			c.span(nil, s.band.Hi)
		}
		c.span(nil, s.faint)
	}
	if unit {
		c.YMin, c.YMax = 0, 1
	}
	if !(c.XMax > c.XMin) {
		c.XMax = c.XMin + 1
	}
	if pad := (c.YMax - c.YMin) * .04; !unit && pad > 0 {
		c.YMin, c.YMax = c.YMin-pad, c.YMax+pad
	} else if !(c.YMax > c.YMin) {
		c.YMin, c.YMax = c.YMin-.5, c.YMax+.5
	}
	for _, v := range niceTicks(c.XMin, c.XMax, 4) {
		c.XTicks = append(c.XTicks, tick{c.x(v), axisNumber(v)})
	}
	for _, v := range niceTicks(c.YMin, c.YMax, 5) {
		c.YTicks = append(c.YTicks, tick{c.y(v), formatTick(v)})
	}
	if c.YMin < 0 && c.YMax > 0 {
		c.HasZero, c.Zero = true, c.y(0)
	}
	for i, s := range lines {
		l := chartLine{Name: s.name, Class: "l" + string(rune('0'+i%chartLines)), Points: c.points(s.xs, s.band.Mean)}
		if !s.single {
			l.Band = c.between(s.xs, s.band.Hi, s.band.Lo)
		}
		if s.faint != nil {
			l.Faint = c.points(s.xs, s.faint)
		}
		c.Lines = append(c.Lines, l)
	}
	var names []string
	for _, s := range lines {
		names = append(names, s.name)
	}
	c.Describe = title + ": " + yLabel + " over " + xLabel + " for " + list(names) + "."
	return c
}

// axisNumber writes thousands as people do.
func axisNumber(v float64) string {
	if math.Abs(v) >= 10000 && v == math.Trunc(v) {
		return grouped(int64(v))
	}
	return formatTick(v)
}
