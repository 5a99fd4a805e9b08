package report

import (
	"cmp"
	"fmt"
	"html/template"
	"math"
	"slices"
	"strconv"
)

// evalPage shows accuracies and mistakes.
type evalPage struct {
	Nets    []netAccuracy
	Labels  bool // some image has a label
	Figures []confidenceFigure
	Mistake []mistake
	More    int // mistakes not shown
	Classes []classAccuracy
	Hidden  []classAccuracy // the others
	ByNet   string          // the net that Classes are of
	Pairs   []confusion

	facts []fact
}

// netAccuracy is a row of the table of accuracies.
type netAccuracy struct {
	Label          string
	Images, Failed int
	Labelled       int
	Top1, Top5     interval
	Confidence     float64 // mean probability of the predicted class
}

const (
	maxMistakes  = 24
	maxClasses   = 24
	maxPairs     = 12
	maxAllClass  = 1000
	confidenceOf = 10 // bins
)

func (r *run) evalPage() (*evalPage, error) {
	p := &evalPage{}
	failed := map[string]int{}
	for _, f := range r.failures {
		failed[f.Net]++
	}
	for _, g := range r.groups {
		a := netAccuracy{Label: g.label, Images: len(g.entries), Failed: failed[g.net]}
		top1, top5, sum, n := 0, 0, 0.0, 0
		for _, e := range g.entries {
			if e.prediction == nil {
				continue
			}
			n++
			sum += e.prediction.Probabilities[0]
			if e.class == nil {
				continue
			}
			a.Labelled++
			if at := slices.Index(e.prediction.Classes, *e.class); at >= 0 {
				if top5++; at == 0 {
					top1++
				}
			}
		}
		if n > 0 {
			a.Confidence = sum / float64(n)
		}
		a.Top1, a.Top5 = wilson(top1, a.Labelled), wilson(top5, a.Labelled)
		p.Labels = p.Labels || a.Labelled > 0
		p.Nets = append(p.Nets, a)
		p.Figures = append(p.Figures, newConfidenceFigure(g))
	}
	p.facts = evalFacts(r, p)
	if p.Labels {
		p.classes(r)
		if err := p.mistakes(r); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// wilson is a fraction with the score bounds of a binomial proportion
// (Wilson 1927), which stay sensible near 0 and 1.
func wilson(right, n int) interval {
	if n == 0 {
		return interval{}
	}
	const z = 1.959963984540054 // 97.5 % of the standard normal
	m := float64(n)
	f := float64(right) / m
	middle := (f + z*z/(2*m)) / (1 + z*z/m)
	d := z / (1 + z*z/m) * math.Sqrt(f*(1-f)/m+z*z/(4*m*m))
	return interval{f, max(0, middle-d), min(1, middle+d)}
}

func evalFacts(r *run, p *evalPage) []fact {
	out := []fact{{"images", grouped(int64(len(r.byImage))), ""}}
	if len(p.Nets) != 1 {
		return append(out, fact{"networks", strconv.Itoa(len(p.Nets)), "compared below"})
	}
	a := p.Nets[0]
	if !p.Labels {
		return append(out, fact{"accuracy", missing, "no labels"}, fact{"mean confidence", percent(a.Confidence, 1), ""})
	}
	note := func(i interval) string { return "95 %: " + percent(i.Lo, 1) + " to " + percent(i.Hi, 1) }
	return append(out, fact{"top-1", percent(a.Top1.Mean, 1), note(a.Top1)}, fact{"top-5", percent(a.Top5.Mean, 1), note(a.Top5)},
		fact{"mean confidence", percent(a.Confidence, 1), "of the predicted class"})
}

func (r *run) evalLede() []string {
	net := r.common["net"]
	if net == "" {
		net = "Every network"
	}
	text := fmt.Sprintf("%s was asked what it sees in %s. ", net, plural(len(r.byImage), "image", "images"))
	for _, e := range r.entries {
		if e.class != nil {
			return []string{text + "Top-1 counts the images whose label is the network's first answer, top-5 those whose label is among its first five."}
		}
	}
	return []string{text + "The data has no labels, so nobody knows which answers are right; predictions are in the records."}
}

// classAccuracy is the accuracy on the images of one class.
type classAccuracy struct {
	Class     classText
	N, Right  int
	Accuracy  float64
	Percent   string
	MostOften string // the wrong answer given most often
}

// confusion is a pair of classes taken for each other.
type confusion struct {
	Label, Predicted classText
	N                int
}

// classes are of the first group; others are in the records.
func (p *evalPage) classes(r *run) {
	g := r.groups[0]
	p.ByNet = g.label
	type key struct{ label, predicted int }
	n, right := map[int]int{}, map[int]int{}
	wrong := map[key]int{}
	for _, e := range g.entries {
		if e.class == nil || e.prediction == nil {
			continue
		}
		n[*e.class]++
		if c := e.prediction.Classes[0]; c == *e.class {
			right[*e.class]++
		} else {
			wrong[key{*e.class, c}]++
		}
	}
	most := map[int]confusion{}
	for k, count := range wrong {
		c := confusion{r.class(g.net, k.label), r.class(g.net, k.predicted), count}
		p.Pairs = append(p.Pairs, c)
		if m, ok := most[k.label]; !ok || c.N > m.N || c.N == m.N && c.Predicted.Index < m.Predicted.Index {
			most[k.label] = c
		}
	}
	slices.SortFunc(p.Pairs, func(a, b confusion) int {
		return cmp.Or(-cmp.Compare(a.N, b.N), cmp.Compare(a.Label.Index, b.Label.Index), cmp.Compare(a.Predicted.Index, b.Predicted.Index))
	})
	p.Pairs = slices.DeleteFunc(p.Pairs, func(c confusion) bool { return c.N < 2 })
	p.Pairs = p.Pairs[:min(len(p.Pairs), maxPairs)]
	for class, count := range n {
		a := classAccuracy{Class: r.class(g.net, class), N: count, Right: right[class], Accuracy: float64(right[class]) / float64(count)}
		a.Percent = coordinate(a.Accuracy * 100)
		if m, ok := most[class]; ok {
			a.MostOften = m.Predicted.String()
		}
		p.Classes = append(p.Classes, a)
	}
	slices.SortFunc(p.Classes, func(a, b classAccuracy) int {
		return cmp.Or(cmp.Compare(a.Accuracy, b.Accuracy), cmp.Compare(a.Class.Index, b.Class.Index))
	})
	if len(p.Classes) > maxClasses {
		p.Hidden = p.Classes[maxClasses:min(len(p.Classes), maxAllClass)]
		p.Classes = p.Classes[:maxClasses]
	}
}

// mistake is an image of which the net was sure and wrong.
type mistake struct {
	Image, Net       string
	URL              template.URL
	W, H             int
	Crisp            bool
	Predicted, Label classText
	P, LabelP        string
}

// mistakes lists the wrong answers with the highest probability; those with a
// picture come with it.
func (p *evalPage) mistakes(r *run) error {
	var wrong []*entry
	for _, e := range r.entries {
		if e.class != nil && e.prediction != nil && e.prediction.Classes[0] != *e.class {
			wrong = append(wrong, e)
		}
	}
	slices.SortStableFunc(wrong, func(a, b *entry) int {
		return -cmp.Compare(a.prediction.Probabilities[0], b.prediction.Probabilities[0])
	})
	show := min(len(wrong), maxMistakes, max(r.opt.Images, 0))
	p.More = len(wrong) - show
	for _, e := range wrong[:show] {
		m := mistake{Image: e.image, Predicted: r.class(e.net, e.prediction.Classes[0]), Label: r.class(e.net, *e.class),
			P: probability(e.prediction.Probabilities[0])}
		if len(r.groups) > 1 {
			m.Net = e.group.label
		}
		if at := slices.Index(e.prediction.Classes, *e.class); at >= 0 {
			m.LabelP = probability(e.prediction.Probabilities[at])
		}
		if v, _ := r.openView(e.key(), ""); v != nil {
			m.URL, m.W, m.H, m.Crisp = v.URL, v.W, v.H, v.Crisp
		}
		p.Mistake = append(p.Mistake, m)
	}
	return nil
}

// confidenceFigure counts right and wrong answers by the probability that the
// net gave them.
type confidenceFigure struct {
	Title    string
	Bars     []confidenceBar
	Labels   bool
	Ticks    []tick
	Describe string
	plane
}

type confidenceBar struct {
	X, Width             string
	RightY, RightHeight  string
	WrongY, WrongHeight  string
	Right, Wrong         int
	From, To, Percentage string
}

func newConfidenceFigure(g *group) confidenceFigure {
	f := confidenceFigure{Title: g.label}
	var right, wrong [confidenceOf]int
	most := 1
	for _, e := range g.entries {
		if e.prediction == nil {
			continue
		}
		bin := min(max(int(e.prediction.Probabilities[0]*confidenceOf), 0), confidenceOf-1)
		switch {
		case e.class == nil || *e.class == e.prediction.Classes[0]:
			right[bin]++
		default:
			wrong[bin]++
		}
		f.Labels = f.Labels || e.class != nil
		most = max(most, right[bin]+wrong[bin])
	}
	f.plane = plane{Width: smallWidth, Height: smallHeight, Left: 40, Right: smallWidth - 8, Top: 10, Bottom: smallHeight - 38, XMax: 1, YMax: float64(most)}
	for _, v := range niceTicks(0, float64(most), 4) {
		if v == math.Trunc(v) {
			f.Ticks = append(f.Ticks, tick{f.y(v), formatTick(v)})
		}
	}
	for i := range confidenceOf {
		x0, x1 := f.x(float64(i)/confidenceOf), f.x(float64(i+1)/confidenceOf)
		r, w := float64(right[i]), float64(wrong[i])
		f.Bars = append(f.Bars, confidenceBar{X: coordinate(x0 + 1.5), Width: coordinate(x1 - x0 - 3),
			RightY: coordinate(f.y(r)), RightHeight: coordinate(f.y(0) - f.y(r)),
			WrongY: coordinate(f.y(r + w)), WrongHeight: coordinate(f.y(r) - f.y(r+w)),
			Right: right[i], Wrong: wrong[i], From: strconv.Itoa(i * 10), To: strconv.Itoa(i*10 + 10)})
	}
	f.Describe = "Number of images by the probability of the predicted class, right answers below wrong ones."
	return f
}
