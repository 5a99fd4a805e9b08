package orchestrate

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/assay-xai/assay/metrics"
)

// fill computes the groups of matched pairs.
func (c *Comparison) fill(ctx context.Context, study Study, facts []fact, pairs []pair) {
	images := map[string]bool{}
	targets, differ := 0, map[string]bool{}
	for _, p := range pairs {
		images[p.a.image] = true
		if p.a.target != p.b.target {
			targets++
		}
	}
	c.Images, c.Matched = len(images), len(pairs)
	var shared []string // what makes groups
	for _, f := range facts {
		switch {
		case !f.shared:
			differ[f.name] = true
		case f.name != "seed":
			shared = append(shared, f.name)
		}
	}
	named := study.Row != nil && !differ[metricKey] // by the grid: scores say it
	keep, common := varyingFacts(shared, pairs)
	c.Common = common
	var order []string
	groups := map[string][]pair{}
	for _, p := range pairs {
		var key []string
		for _, k := range keep {
			key = append(key, p.a.facts[k])
		}
		k := strings.Join(key, "\x00")
		if groups[k] == nil {
			order = append(order, k)
		}
		groups[k] = append(groups[k], p)
	}
	slices.SortStableFunc(order, func(x, y string) int {
		a, b := strings.Split(x, "\x00"), strings.Split(y, "\x00")
		for i := range a {
			if d := compareNatural(a[i], b[i]); d != 0 {
				return d
			}
		}
		return 0
	})
	for _, k := range order {
		if ctx.Err() != nil {
			return
		}
		g := compareGroup(study, differ, groups[k])
		for _, name := range keep {
			if name == metricKey && named {
				continue
			}
			if v := groups[k][0].a.facts[name]; v != "" {
				if g.Facts == nil {
					g.Facts = map[string]string{}
				}
				g.Facts[name] = v
			}
		}
		c.Groups = append(c.Groups, g)
	}
	if targets > 0 {
		c.Notes = append(c.Notes, fmt.Sprintf("the runs track different classes in %d of %d pairs: their scores are of different things (target label tracks the same)", targets, len(pairs)))
	}
}

// varyingFacts divides facts into those in which matched units differ and those
// that they all share.
func varyingFacts(names []string, pairs []pair) (vary []string, common map[string]string) {
	common = map[string]string{}
	for _, name := range names {
		first := pairs[0].a.facts[name]
		if slices.ContainsFunc(pairs, func(p pair) bool { return p.a.facts[name] != first }) {
			vary = append(vary, name)
		} else if first != "" {
			common[name] = first
		}
	}
	return vary, common
}

// imageMeans holds for each image the sum over its seeds.
type imageMeans struct {
	order []string
	sum   map[string]float64
	count map[string]int
}

func (m *imageMeans) add(image string, v float64) {
	if m.sum == nil {
		m.sum, m.count = map[string]float64{}, map[string]int{}
	}
	if m.count[image]++; m.count[image] == 1 {
		m.order = append(m.order, image)
	}
	m.sum[image] += v
}

// values are the means of images in the order of their ids, so that the bootstrap
// does not depend on the order of records.
func (m *imageMeans) values() []float64 {
	slices.Sort(m.order)
	out := make([]float64, len(m.order))
	for i, image := range m.order {
		out[i] = m.sum[image] / float64(m.count[image])
	}
	return out
}

func compareGroup(study Study, differ map[string]bool, pairs []pair) GroupCompared {
	slices.SortStableFunc(pairs, func(x, y pair) int {
		return strings.Compare(x.a.image+"\x00"+x.a.id, y.a.image+"\x00"+y.a.id)
	})
	images := map[string]bool{}
	alike := true // in their number of features
	for _, p := range pairs {
		images[p.a.image] = true
		alike = alike && p.a.features == p.b.features && p.a.edge == p.b.edge
	}
	g := GroupCompared{Images: len(images), Scores: []ScoreCompared{}}
	for _, m := range study.Metrics {
		if slices.ContainsFunc(m.Under, func(k string) bool { return differ[k] }) || hasSumOf(study, m.ID) {
			continue // another thing in each run, or a sum that is compared, divided
		}
		id := m.ID
		switch {
		case study.Row != nil && id == metricKey: // the grid names it, the same in all pairs
			id = pairs[0].a.facts[metricKey]
		case m.Sum && !alike:
			id += meanSuffix
		}
		if s, ok := compareScore(study, m, id, m.Sum && !alike, pairs); ok {
			g.Scores = append(g.Scores, s)
		}
	}
	g.Orders, g.WhyNoOrders = compareOrders(pairs)
	return g
}

// meanSuffix marks a sum that is divided by the points of its curve.
const meanSuffix = "-mean"

// hasSumOf says whether the metric id is another metric, a sum, by point.
func hasSumOf(study Study, id string) bool {
	base, ok := strings.CutSuffix(id, meanSuffix)
	return ok && slices.ContainsFunc(study.Metrics, func(m Metric) bool { return m.ID == base && m.Sum })
}

// direction says which values of a metric are good in units with these facts; not ok:
// none is better than another.
func (s Study) direction(m Metric, facts map[string]string) (higher, ok bool) {
	switch {
	case m.Undirected:
		return false, false
	case s.Row != nil && m.ID == metricKey:
		higher, err := higherIsBetter(facts[metricKey])
		return higher, err == nil
	case s.Contest != nil:
		params := Params{}
		for k, v := range facts {
			params[k] = v
		}
		return s.Contest(m.ID, params)
	}
	return m.HigherIsBetter, true
}

// directionOf is the direction that all units of pairs share.
func directionOf(study Study, m Metric, pairs []pair) (higher, ok bool) {
	for i, p := range pairs {
		for k, u := range []*comparedUnit{p.a, p.b} {
			h, directed := study.direction(m, u.facts)
			if !directed || (i > 0 || k > 0) && h != higher {
				return false, false
			}
			higher = h
		}
	}
	return higher, true
}

func compareScore(study Study, m Metric, id string, perPoint bool, pairs []pair) (ScoreCompared, bool) {
	var a, b imageMeans
	for _, p := range pairs {
		x, okX := p.a.metrics[m.ID]
		y, okY := p.b.metrics[m.ID]
		if !okX || !okY {
			continue
		}
		if perPoint {
			x, y = x/float64(p.a.features+1), y/float64(p.b.features+1)
		}
		a.add(p.a.image, x)
		b.add(p.a.image, y)
	}
	if len(a.order) == 0 {
		return ScoreCompared{}, false
	}
	va, vb := a.values(), b.values()
	d := metrics.Pair(va, vb, level, bootstrapSeed)
	higher, directed := directionOf(study, m, pairs)
	s := ScoreCompared{Metric: id, HigherIsBetter: higher, Undirected: !directed, A: metrics.MeanOfCurve(va), B: metrics.MeanOfCurve(vb),
		Difference: asInterval(d.Difference), Equal: d.Equal, N: len(va)}
	switch {
	case !directed:
	case higher:
		s.BBetter, s.ABetter = d.Above, d.Below
	default:
		s.BBetter, s.ABetter = d.Below, d.Above
	}
	return s, true
}

func asInterval(s metrics.Summary) Interval { return Interval{s.Mean, s.Lo, s.Hi} }

func compareOrders(pairs []pair) (*OrdersCompared, string) {
	var spearman, kendall, top imageMeans
	out := &OrdersCompared{}
	other := ""
	for _, p := range pairs {
		if p.a.trajectory == nil || p.b.trajectory == nil {
			continue
		}
		if p.a.features != p.b.features || p.a.edge != p.b.edge {
			other = fmt.Sprintf("trajectories of %d and of %d features do not compare, only scores by point do", p.a.features, p.b.features)
			continue
		}
		x, y := ranksOf(p.a.trajectory), ranksOf(p.b.trajectory)
		if slices.Equal(x, y) {
			out.Same++
		}
		spearman.add(p.a.image, metrics.Spearman(x, y))
		kendall.add(p.a.image, metrics.Kendall(x, y))
		top.add(p.a.image, sharedTop(p.a.trajectory, p.b.trajectory))
		out.N++
	}
	if out.N == 0 {
		return nil, other
	}
	for m, to := range map[*imageMeans]*Interval{&spearman: &out.Spearman, &kendall: &out.Kendall, &top: &out.Top} {
		*to = asInterval(metrics.Summarise(m.values(), level, bootstrapSeed))
	}
	return out, other
}

// ranksOf gives every feature its place in the trajectory.
func ranksOf(tau []int32) []float64 {
	out := make([]float64, len(tau))
	for i, f := range tau {
		out[f] = float64(i)
	}
	return out
}

// topShare is the part of the features that counts as the most relevant.
const topShare = 10

// sharedTop is the share of the most relevant tenth that both agree on.
func sharedTop(a, b []int32) float64 {
	k := max(1, len(a)/topShare)
	in := map[int32]bool{}
	for _, f := range a[len(a)-k:] {
		in[f] = true
	}
	n := 0
	for _, f := range b[len(b)-k:] {
		if in[f] {
			n++
		}
	}
	return float64(n) / float64(k)
}
