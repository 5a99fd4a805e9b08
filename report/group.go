package report

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/assay-xai/assay/internal/record"
	"github.com/assay-xai/assay/metrics"
)

// group is what records differ in beside image and seed.
type group struct {
	study, net, method string
	params             map[string]string
	// Of deletion searches:
	objective, scoreOn, solver string
	features, edge             int

	entries []*entry
	// label names the group by what the run's groups differ in.
	label string
	// varying are the values of run.varying.
	varying []string
}

// facts are name and value of everything that makes the group, without study.
func (g *group) facts() map[string]string {
	f := maps.Clone(g.params)
	if f == nil {
		f = map[string]string{}
	}
	f["net"] = g.net
	for k, v := range map[string]string{"method": g.method, "solver": g.solver, "objective": g.objective, "scoreOn": g.scoreOn} {
		if v != "" {
			f[k] = v
		}
	}
	if g.edge > 0 {
		f["edge"] = strconv.Itoa(g.edge)
	}
	return f
}

func (g *group) key() string {
	text, _ := json.Marshal(g.facts()) // strings: cannot fail; keys in order
	return g.study + " " + strconv.Itoa(g.features) + " " + string(text)
}

// params writes parameter values the way people write them.
func params(in map[string]any) map[string]string {
	out := make(map[string]string, len(in))
	for k, v := range in {
		out[k] = plain(v)
	}
	return out
}

func plain(v any) string {
	switch x := v.(type) {
	case nil:
		return ""
	case string:
		return x
	case bool:
		return strconv.FormatBool(x)
	case float64:
		return strconv.FormatFloat(x, 'g', -1, 64)
	case map[string]any:
		if len(x) == 0 {
			return ""
		}
	}
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(text)
}

// factOrder puts what people look for first; other names follow by name.
var factOrder = []string{"net", "data", "method", "solver", "objective", "scoreOn", "edge", "reference", "target"}

func sortFacts(names []string) {
	slices.SortFunc(names, func(a, b string) int {
		i, j := slices.Index(factOrder, a), slices.Index(factOrder, b)
		if i < 0 {
			i = len(factOrder)
		}
		if j < 0 {
			j = len(factOrder)
		}
		return cmp.Or(cmp.Compare(i, j), naturalCompare(a, b))
	})
}

// makeGroups joins the entries' groups, sorts groups and entries, and finds
// what the groups have in common.
func (r *run) makeGroups() {
	byKey := map[string]*group{}
	for _, e := range r.entries {
		k := e.group.key()
		if g := byKey[k]; g != nil {
			e.group = g
		} else {
			byKey[k] = e.group
		}
		e.group.entries = append(e.group.entries, e)
	}
	r.groups = slices.Collect(maps.Values(byKey))
	all := map[string]map[string]bool{}
	count := map[string]int{}
	for _, g := range r.groups {
		for k, v := range g.facts() {
			if all[k] == nil {
				all[k] = map[string]bool{}
			}
			all[k][v] = true
			count[k]++
		}
	}
	r.common = map[string]string{}
	for k, values := range all {
		if len(values) == 1 && count[k] == len(r.groups) {
			for v := range values {
				r.common[k] = v
			}
		} else {
			r.varying = append(r.varying, k)
		}
	}
	sortFacts(r.varying)
	for _, g := range r.groups {
		f := g.facts()
		for _, k := range r.varying {
			g.varying = append(g.varying, f[k])
		}
		g.label = g.title(r.varying, f)
	}
	slices.SortFunc(r.groups, r.compareGroups)
	place := map[*group]int{}
	for i, g := range r.groups {
		place[g] = i
		slices.SortFunc(g.entries, compareEntries)
	}
	slices.SortFunc(r.entries, func(a, b *entry) int {
		return cmp.Or(cmp.Compare(place[a.group], place[b.group]), compareEntries(a, b))
	})
	r.byImage = map[imageKey][]*entry{}
	for _, e := range r.entries {
		r.byImage[e.key()] = append(r.byImage[e.key()], e)
	}
}

// selfNamed are facts whose value says what it is about.
var selfNamed = []string{"net", "data", "method", "solver", "objective"}

func (g *group) title(varying []string, facts map[string]string) string {
	var parts []string
	for _, k := range varying {
		v, ok := facts[k]
		switch {
		case !ok || v == "":
		case slices.Contains(selfNamed, k):
			parts = append(parts, v)
		case k == "edge":
			parts = append(parts, v+" × "+v+" patches")
		case k == "scoreOn":
			parts = append(parts, "on "+scoreWord(v))
		default:
			parts = append(parts, factName(k)+" "+v)
		}
	}
	if len(parts) == 0 {
		return g.net
	}
	return strings.Join(parts, " · ")
}

// factName is how a fact is called on the page.
func factName(k string) string {
	if k == "scoreOn" {
		return "score on"
	}
	return k
}

func scoreWord(scoreOn string) string {
	if scoreOn == "prob" {
		return "probability"
	}
	return scoreOn
}

// compareGroups sorts by study, the plan's order of nets, then what differs.
func (r *run) compareGroups(a, b *group) int {
	net := func(name string) int {
		for i, n := range r.plan.Nets {
			if n.Name == name || n.Name == "" && n.Net == name {
				return i
			}
		}
		return len(r.plan.Nets)
	}
	if c := cmp.Or(cmp.Compare(a.study, b.study), cmp.Compare(net(a.net), net(b.net))); c != 0 {
		return c
	}
	for i := range a.varying {
		if c := naturalCompare(a.varying[i], b.varying[i]); c != 0 {
			return c
		}
	}
	return cmp.Compare(a.key(), b.key())
}

func compareEntries(a, b *entry) int {
	return cmp.Or(naturalCompare(a.image, b.image), cmp.Compare(a.seed, b.seed), cmp.Compare(a.id, b.id))
}

// naturalCompare compares numbers in texts by value: "a9" comes before "a10".
func naturalCompare(a, b string) int {
	x, y := a, b
	for x != "" && y != "" {
		dx, dy := digits(x), digits(y)
		if dx > 0 && dy > 0 {
			nx, ny := strings.TrimLeft(x[:dx], "0"), strings.TrimLeft(y[:dy], "0")
			if c := cmp.Or(cmp.Compare(len(nx), len(ny)), cmp.Compare(nx, ny)); c != 0 {
				return c
			}
			x, y = x[dx:], y[dy:]
			continue
		}
		if x[0] != y[0] {
			return cmp.Compare(x[0], y[0])
		}
		x, y = x[1:], y[1:]
	}
	return cmp.Or(cmp.Compare(len(x), len(y)), cmp.Compare(a, b))
}

func digits(s string) int {
	n := 0
	for n < len(s) && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	return n
}

// statistics of a group of deletion searches. Seeds of one image are averaged
// first, so that an image counts once.
type statistics struct {
	images, seeds     int
	value, point      interval // objective, and the same divided by t+1
	prob, logit       record.LeMo
	points            []int
	le, mo            metrics.Band // by probability
	scoredLe          metrics.Band // by the output that the objective looks at
	scoredMo          metrics.Band
	seconds           float64
	evaluations, rows int64
}

// interval is a mean with its 95 % confidence bounds.
type interval struct{ Mean, Lo, Hi float64 }

func (g *group) statistics() statistics {
	s := statistics{}
	var rows [][]float64 // an image: value, 4 sums, curves
	var count []float64
	last := imageKey{}
	seeds := map[uint64]bool{}
	for i, e := range g.entries {
		seeds[e.seed] = true
		s.seconds += e.cost.Seconds
		s.evaluations += e.cost.Evaluations
		s.rows += e.cost.Forwards
		row := append([]float64{e.value, e.sums.Prob.Le, e.sums.Prob.Mo, e.sums.Logit.Le, e.sums.Logit.Mo}, e.curve.Le...)
		row = append(row, e.curve.Mo...)
		if g.scoreOn == logitOutput {
			row = append(append(row, e.scored.Le...), e.scored.Mo...)
		}
		if i > 0 && e.key() == last {
			for j, v := range row {
				rows[len(rows)-1][j] += v
			}
			count[len(count)-1]++
			continue
		}
		rows, count, last = append(rows, row), append(count, 1), e.key()
	}
	for i, row := range rows {
		for j := range row {
			row[j] /= count[i]
		}
	}
	s.images, s.seeds = len(rows), len(seeds)
	if len(rows) == 0 {
		return s
	}
	b := meanBand(rows)
	at := func(i int) interval { return interval{b.Mean[i], b.Lo[i], b.Hi[i]} }
	s.value = at(0)
	n := float64(g.features + 1)
	s.point = interval{s.value.Mean / n, s.value.Lo / n, s.value.Hi / n}
	s.prob, s.logit = record.LeMo{Le: b.Mean[1], Mo: b.Mean[2]}, record.LeMo{Le: b.Mean[3], Mo: b.Mean[4]}
	s.points = g.entries[0].points
	m := len(s.points)
	s.le, s.mo = part(b, 5, 5+m), part(b, 5+m, 5+2*m)
	s.scoredLe, s.scoredMo = s.le, s.mo
	if g.scoreOn == logitOutput {
		s.scoredLe, s.scoredMo = part(b, 5+2*m, 5+3*m), part(b, 5+3*m, 5+4*m)
	}
	return s
}
