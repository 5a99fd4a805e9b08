package report

import (
	"context"
	"fmt"
	"html/template"
	"image/color"
	"math"
	"slices"

	"github.com/assay-xai/assay/metrics"
)

// transferPage shows how well the trajectories that were found on each net do on
// the others.
type transferPage struct {
	Nets   []string
	Panels []transferPanel
	// Remote orders the nets by their distance from the others, over all panels.
	Remote []remoteNet
	Images int

	facts []fact
}

// transferPanel is the matrix of one setting, raw and as shares of what each
// target's own trajectories score.
type transferPanel struct {
	Title, Objective string
	Images           int
	Raw, Shares      [][]transferCell // [source][target]
	Distances        []transferDistance
}

type transferCell struct {
	Text  string
	Style template.CSS
	Own   bool
}

// transferDistance says how far a net is from the others.
type transferDistance struct {
	Net                string
	AsSource, AsTarget string
	SourceCI, TargetCI string
}

type remoteNet struct{ Net, AsSource, AsTarget string }

// transferNets lists the nets in the plan's order, then by name.
func (r *run) transferNets() []string {
	var nets []string
	for _, g := range r.groups { // in the plan's order
		if !slices.Contains(nets, g.net) {
			nets = append(nets, g.net)
		}
	}
	for _, g := range r.groups {
		if source := g.params[sourceKey]; source != "" && !slices.Contains(nets, source) {
			nets = append(nets, source)
		}
	}
	return nets
}

// sourceKey is the parameter that names the net a trajectory was found on.
const sourceKey = "source"

func (r *run) transferPage(ctx context.Context) (*transferPage, error) {
	p := &transferPage{Nets: r.transferNets(), Images: len(r.byImage)}
	varying := r.independent()
	var order []string
	settings := map[string][]*group{}
	for _, g := range r.groups {
		if g.features == 0 {
			continue
		}
		title := g.title(varying, g.facts())
		if title == g.net { // nothing varies
			title = ""
		}
		if settings[title] == nil {
			order = append(order, title)
		}
		settings[title] = append(settings[title], g)
	}
	n := len(p.Nets)
	var sums [2][]float64
	sums[0], sums[1] = make([]float64, n), make([]float64, n)
	for _, title := range order {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		panel, source, target := r.transferPanel(p.Nets, title, settings[title])
		p.Panels = append(p.Panels, panel)
		for i := range n {
			sums[0][i] += source[i].Mean / float64(len(order))
			sums[1][i] += target[i].Mean / float64(len(order))
		}
	}
	var both = make([]int, n)
	for i := range both {
		both[i] = i
	}
	slices.SortStableFunc(both, func(a, b int) int { return compareDown(sums[0][a], sums[0][b]) })
	for _, i := range both {
		p.Remote = append(p.Remote, remoteNet{Net: p.Nets[i], AsSource: share(sums[0][i]), AsTarget: share(sums[1][i])})
	}
	p.facts = r.transferFacts(p)
	return p, nil
}

// independent lists what tells settings apart beside the nets, without what
// follows from the rest (a temperature from the output).
func (r *run) independent() []string {
	var out []string
	settings := 1
	for _, k := range r.varying {
		seen := map[string]bool{}
		for _, g := range r.groups {
			facts, text := g.facts(), ""
			for _, name := range append(slices.Clone(out), k) {
				text += facts[name] + "\x00"
			}
			seen[text] = true
		}
		if k != "net" && k != sourceKey && len(seen) > settings {
			out, settings = append(out, k), len(seen)
		}
	}
	return out
}

// compareDown sorts large numbers first, NaN last.
func compareDown(a, b float64) int {
	switch {
	case a > b || math.IsNaN(b) && !math.IsNaN(a):
		return -1
	case a < b || math.IsNaN(a) && !math.IsNaN(b):
		return 1
	}
	return 0
}

func (r *run) transferPanel(nets []string, title string, groups []*group) (panel transferPanel, source, target []metrics.Summary) {
	images := imageMatrices(nets, groups)
	mean := metrics.MeanMatrix(images)
	source, target = metrics.SummariseDistances(images, confidence, 0)
	panel = transferPanel{Title: title, Objective: objectiveName(groups[0].objective, groups[0].scoreOn), Images: len(images)}
	lo, hi := math.Inf(1), math.Inf(-1)
	for _, row := range mean {
		for _, v := range row {
			if !math.IsNaN(v) {
				lo, hi = min(lo, v), max(hi, v)
			}
		}
	}
	shares := mean.Shares()
	for s := range nets {
		var raw, part []transferCell
		for t := range nets {
			raw = append(raw, heatCell(mean[s][t], (mean[s][t]-lo)/(hi-lo), value, s == t))
			part = append(part, heatCell(shares[s][t], shares[s][t], share, s == t))
		}
		panel.Raw, panel.Shares = append(panel.Raw, raw), append(panel.Shares, part)
		d := transferDistance{Net: nets[s], AsSource: share(source[s].Mean), AsTarget: share(target[s].Mean)}
		if len(images) > 1 {
			d.SourceCI, d.TargetCI = bounds(source[s]), bounds(target[s])
		}
		panel.Distances = append(panel.Distances, d)
	}
	return panel, source, target
}

func bounds(s metrics.Summary) string {
	if math.IsNaN(s.Lo) || math.IsNaN(s.Hi) {
		return missing
	}
	return decimal(s.Lo, 3) + " … " + decimal(s.Hi, 3)
}

// imageMatrices makes a matrix of values of each image, seeds averaged.
func imageMatrices(nets []string, groups []*group) []metrics.Matrix {
	byImage := map[imageKey]metrics.Matrix{}
	count := map[imageKey]metrics.Matrix{}
	var keys []imageKey
	fill := func(v float64) metrics.Matrix {
		m := make(metrics.Matrix, len(nets))
		for i := range m {
			m[i] = make([]float64, len(nets))
			for j := range m[i] {
				m[i][j] = v
			}
		}
		return m
	}
	for _, g := range groups {
		s, t := slices.Index(nets, g.params[sourceKey]), slices.Index(nets, g.net)
		if s < 0 {
			continue
		}
		for _, e := range g.entries {
			k := e.key()
			if byImage[k] == nil {
				byImage[k], count[k] = fill(0), fill(0)
				keys = append(keys, k)
			}
			byImage[k][s][t] += e.value
			count[k][s][t]++
		}
	}
	slices.SortFunc(keys, func(a, b imageKey) int { return naturalCompare(a.data+"\x00"+a.id, b.data+"\x00"+b.id) })
	out := make([]metrics.Matrix, len(keys))
	for i, k := range keys {
		m := byImage[k]
		for s := range m {
			for t := range m[s] {
				m[s][t] /= count[k][s][t] // 0/0: not measured
			}
		}
		out[i] = m
	}
	return out
}

// share writes a share or a distance.
func share(v float64) string {
	if math.IsNaN(v) {
		return missing
	}
	return decimal(v, 3)
}

// heatCell paints a number by its place in 0..1.
func heatCell(v, place float64, write func(float64) string, own bool) transferCell {
	if math.IsNaN(v) {
		return transferCell{Text: missing, Own: own}
	}
	if math.IsNaN(place) {
		place = 1 // all cells are alike
	}
	back := heatColor(place)
	text := "#fff"
	if luminance(back) > .3 {
		text = "#000"
	}
	return transferCell{Text: write(v), Style: template.CSS(fmt.Sprintf("background:%s;color:%s", hex(back), text)), Own: own}
}

// luminance is the relative luminance of WCAG 2.
func luminance(c color.NRGBA) float64 {
	linear := func(v uint8) float64 {
		x := float64(v) / 255
		if x <= .04045 {
			return x / 12.92
		}
		return math.Pow((x+.055)/1.055, 2.4)
	}
	return .2126*linear(c.R) + .7152*linear(c.G) + .0722*linear(c.B)
}

func (r *run) transferFacts(p *transferPage) []fact {
	return []fact{{"nets", grouped(int64(len(p.Nets))), ""}, {"images", grouped(int64(p.Images)), ""},
		{"settings", grouped(int64(len(p.Panels))), ""}}
}

func (r *run) transferLede() []string {
	return []string{"How alike are networks? On each of them the best order of deleting an input's parts was searched for; then that order was scored on all the others. " +
		"An order that does as well on another network as the best that was found there deletes what both rely on.",
		"Rows are the networks on which the orders were found, columns those that scored them. Every network tracks the same class of an image."}
}
