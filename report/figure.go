package report

import (
	"math"
	"strconv"
	"strings"

	"github.com/assay-xai/assay/internal/record"
)

// plane maps values to the coordinates of an SVG figure: x from XMin..XMax to
// Left..Right, y from YMin..YMax to Bottom..Top.
type plane struct {
	Width, Height            float64
	Left, Right, Top, Bottom float64
	XMin, XMax, YMin, YMax   float64
}

func (p plane) x(v float64) float64 {
	return p.Left + (v-p.XMin)/(p.XMax-p.XMin)*(p.Right-p.Left)
}

func (p plane) y(v float64) float64 {
	return p.Bottom - (v-p.YMin)/(p.YMax-p.YMin)*(p.Bottom-p.Top)
}

// points writes a polyline.
func (p plane) points(xs, ys []float64) string {
	var b strings.Builder
	for i := range xs {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(coordinate(p.x(xs[i])))
		b.WriteByte(',')
		b.WriteString(coordinate(p.y(ys[i])))
	}
	return b.String()
}

// between is the outline of the area between two curves.
func (p plane) between(xs, upper, lower []float64) string {
	n := len(xs)
	back, ys := make([]float64, n), make([]float64, n)
	for i := range xs {
		back[n-1-i], ys[n-1-i] = xs[i], lower[i]
	}
	return p.points(xs, upper) + " " + p.points(back, ys)
}

func coordinate(v float64) string {
	s := strconv.FormatFloat(v, 'f', 2, 64)
	s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	if s == "-0" {
		return "0"
	}
	return s
}

// tick is a mark on an axis.
type tick struct {
	At    float64
	Label string
}

// curveFigure is a LeRF and a MoRF curve over the fraction deleted.
type curveFigure struct {
	plane
	XTicks, YTicks   []tick
	Zero             float64 // y coordinate of 0, where it lies inside
	HasZero          bool
	Area, Le, Mo     string
	LeBand, MoBand   string
	YLabel, Describe string
	Steps            int // t, for scrubbing; 0: none
}

const (
	figureWidth, figureHeight = 460, 250
	smallWidth, smallHeight   = 380, 220
)

// probabilityPlane is shared by all curves by probability, so that figures
// compare at a glance.
func probabilityPlane(width, height float64) plane {
	return plane{Width: width, Height: height, Left: 34, Right: width - 10, Top: 10, Bottom: height - 38, XMax: 1, YMax: 1}
}

// outputPlane is the plane of curves by an output: a logit's goes as far as they do,
// with a little air.
func outputPlane(width, height float64, on string, curves ...[]float64) plane {
	p := probabilityPlane(width, height)
	if on != logitOutput {
		return p
	}
	p.YMin, p.YMax = math.Inf(1), math.Inf(-1)
	for _, c := range curves {
		for _, v := range c {
			p.YMin, p.YMax = min(p.YMin, v), max(p.YMax, v)
		}
	}
	const air = .04
	d := air * (p.YMax - p.YMin)
	if d == 0 {
		d = 1
	}
	p.YMin, p.YMax = math.Floor((p.YMin-d)*100)/100, math.Ceil((p.YMax+d)*100)/100 // as the page writes them
	return p
}

func newCurveFigure(p plane, fractions, le, mo []float64, yLabel string) *curveFigure {
	f := &curveFigure{plane: p, YLabel: yLabel}
	for _, x := range []float64{0, .25, .5, .75, 1} {
		f.XTicks = append(f.XTicks, tick{p.x(x), strconv.Itoa(int(x*100)) + " %"})
	}
	for _, v := range niceTicks(p.YMin, p.YMax, 5) {
		f.YTicks = append(f.YTicks, tick{p.y(v), formatTick(v)})
	}
	if p.YMin < 0 && p.YMax > 0 {
		f.HasZero, f.Zero = true, p.y(0)
	}
	f.Area = p.between(fractions, le, mo)
	f.Le, f.Mo = p.points(fractions, le), p.points(fractions, mo)
	return f
}

// recordFigure draws the curves of one record.
func recordFigure(t *record.Trace) *curveFigure {
	at := thin(t.Features)
	xs := fractions(at, t.Features)
	c, on := scoredCurve(t)
	le, mo := pick(c.Le, at), pick(c.Mo, at)
	f := newCurveFigure(outputPlane(figureWidth, figureHeight, on, le, mo), xs, le, mo, strings.ToLower(outputWord(on)))
	f.Steps = t.Features
	f.Describe = outputWord(on) + " of the tracked class while patches are deleted. Least relevant first: from " +
		decimal(c.Le[0], 2) + " to " + decimal(c.Le[t.Features/2], 2) + " with half of them deleted. Most relevant first: to " +
		decimal(c.Mo[t.Features/2], 2) + "."
	return f
}

// meanFigure draws a group's mean curves with their bands.
func meanFigure(s statistics, on string, features int, width, height float64) *curveFigure {
	xs := fractions(s.points, features)
	le, mo := s.scoredLe, s.scoredMo
	p := outputPlane(width, height, on, le.Lo, le.Hi, mo.Lo, mo.Hi)
	f := newCurveFigure(p, xs, le.Mean, mo.Mean, "mean "+strings.ToLower(outputWord(on)))
	if s.images > 1 {
		f.LeBand = p.between(xs, le.Hi, le.Lo)
		f.MoBand = p.between(xs, mo.Hi, mo.Lo)
	}
	f.Describe = "Mean " + strings.ToLower(outputWord(on)) + " of the tracked class while patches are deleted, least relevant first and most relevant first."
	return f
}

func fractions(points []int, features int) []float64 {
	out := make([]float64, len(points))
	for i, k := range points {
		out[i] = float64(k) / float64(features)
	}
	return out
}

// niceTicks are at most n+1 multiples of 1, 2, 2.5 or 5 times a power of ten.
func niceTicks(lo, hi float64, n int) []float64 {
	if !(hi > lo) {
		return []float64{lo}
	}
	raw := (hi - lo) / float64(n)
	step := math.Pow(10, math.Floor(math.Log10(raw)))
	for _, m := range []float64{1, 2, 2.5, 5, 10} {
		if m*step >= raw*(1-1e-9) {
			step *= m
			break
		}
	}
	var out []float64
	for i := math.Ceil(lo/step - 1e-9); i*step <= hi+1e-9*step; i++ {
		out = append(out, i*step+0) // + 0: no negative zero
	}
	return out
}

func formatTick(v float64) string {
	return strconv.FormatFloat(math.Round(v*1e6)/1e6, 'f', -1, 64)
}

// sparkline is the progress of a search.
type sparkline struct {
	plane
	Best, Current          string
	First, Last            string // values of best
	Iterations             string
	EndX, EndY             float64
	Lowest, Highest, Start string
}

// newSparkline draws best and current value over iterations; nil without them.
func newSparkline(history []record.HistoryPoint) *sparkline {
	if len(history) < 2 {
		return nil
	}
	step := max(1, len(history)/240)
	var xs, best, current []float64
	for i, h := range history {
		if i%step != 0 && i != len(history)-1 {
			continue
		}
		xs, best, current = append(xs, float64(h.Iteration)), append(best, h.Best), append(current, h.Current)
	}
	lo, hi := best[0], best[0]
	for i := range best {
		lo, hi = min(lo, best[i], current[i]), max(hi, best[i], current[i])
	}
	if hi == lo {
		hi = lo + 1
	}
	last := len(xs) - 1
	if xs[last] == xs[0] {
		return nil
	}
	p := plane{Width: 240, Height: 56, Left: 2, Right: 236, Top: 5, Bottom: 52, XMin: xs[0], XMax: xs[last], YMin: lo, YMax: hi}
	return &sparkline{plane: p, Best: p.points(xs, best), Current: p.points(xs, current),
		First: decimal(best[0], 2), Last: decimal(best[last], 2), Iterations: grouped(int64(xs[last])),
		EndX: p.x(xs[last]), EndY: p.y(best[last])}
}
