package report

import (
	"fmt"
	"math"
)

// intervals is a figure of values with bounds, one below the other.
type intervals struct {
	plane
	Rows     []intervalRow
	Ticks    []tick
	Mark     float64 // x of a line, the optimum's
	HasMark  bool
	Describe string
	Bars     bool
}

type intervalRow struct {
	Name, Text           string
	Y, From, At, Lo, Hi  float64
	Best                 bool
	BarX, BarWidth, BarY float64
}

const (
	intervalRowHeight = 24
	intervalWidth     = 560
	intervalNames     = 190
	intervalTexts     = 74
	longestName       = 30
)

func newIntervals(n int) *intervals {
	f := &intervals{}
	f.plane = plane{Width: intervalWidth, Height: float64(n*intervalRowHeight + 30), Left: intervalNames, Right: intervalWidth - intervalTexts, Top: 4}
	f.Bottom = f.Height - 24
	return f
}

func (f *intervals) add(name, text string, at, lo, hi, base float64, best bool) {
	y := f.Top + (float64(len(f.Rows))+.5)*intervalRowHeight
	row := intervalRow{Name: shortName(name), Text: text, Y: y, At: f.x(at), Lo: f.x(lo), Hi: f.x(hi), From: f.x(base), Best: best}
	row.BarX, row.BarWidth, row.BarY = min(row.From, row.At), math.Abs(row.At-row.From), y-intervalRowHeight*.34
	f.Rows = append(f.Rows, row)
}

func shortName(name string) string {
	r := []rune(name)
	if len(r) <= longestName {
		return name
	}
	return string(r[:longestName-1]) + "…"
}

// valueBars shows means with bounds, from 0.
func valueBars(c contest, list []competitor) *intervals {
	if len(list) == 0 {
		return nil
	}
	f := newIntervals(len(list))
	f.Bars = true
	for _, one := range list {
		f.XMin, f.XMax = min(f.XMin, one.Lo, one.Mean), max(f.XMax, one.Hi, one.Mean)
	}
	if c.Optimum != nil {
		f.XMin, f.XMax = min(f.XMin, *c.Optimum), max(f.XMax, *c.Optimum)
	}
	if f.XMin == f.XMax {
		f.XMax = f.XMin + 1
	}
	for _, one := range list {
		f.add(one.Name, score(one.Mean), one.Mean, one.Lo, one.Hi, 0, one.Rank == list[0].Rank)
	}
	if c.Optimum != nil {
		f.HasMark, f.Mark = true, f.x(*c.Optimum)
	}
	for _, v := range niceTicks(f.XMin, f.XMax, 4) {
		f.Ticks = append(f.Ticks, tick{f.x(v), formatTick(v)})
	}
	f.Describe = "Mean " + c.Metric + " of every method with 95 % bounds, best first."
	return f
}

// rankPlot shows ranks with bounds.
func rankPlot(c contest, list []competitor) *intervals {
	if len(list) < 2 {
		return nil
	}
	f := newIntervals(len(list))
	f.XMin, f.XMax = 1, float64(len(list))
	for _, one := range list {
		f.add(one.Name, percent(one.Best, 0), one.Rank, one.RankLo, one.RankHi, one.Rank, one.Rank == list[0].Rank)
	}
	step := 1 + (len(list)-1)/10
	for v := 1; v <= len(list); v += step {
		f.Ticks = append(f.Ticks, tick{f.x(float64(v)), fmt.Sprint(v)})
	}
	f.Describe = "Rank of every method by " + c.Metric + " with 95 % bounds; the number is the probability that it is first."
	return f
}
