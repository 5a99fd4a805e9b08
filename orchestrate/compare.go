package orchestrate

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/assay-xai/assay/internal/usage"
)

// CompareOptions say what of two runs is compared.
type CompareOptions struct {
	// Where keeps the units whose facts have these values: "solver=sa" in both
	// runs, "A:seed=1" or "B:seed=1" in one of them.
	Where []string
}

// Comparison is two runs side by side: their units are matched by image and by
// every fact (net, data, method, seed, parameters) that both runs have values of
// in common.
type Comparison struct {
	Study string      `json:"study"`
	A     ComparedRun `json:"a"`
	B     ComparedRun `json:"b"`
	// Differ are the facts of which the runs share no value; units are matched
	// across them.
	Differ []Difference `json:"differ"`
	// Plans are what else the runs' plans differ in, such as weights of one name.
	Plans []Difference `json:"plans,omitempty"`
	// Common are the facts that are the same in all matched units.
	Common map[string]string `json:"common,omitempty"`
	// Images is the number of images with a match, Matched that of pairs of units.
	Images  int             `json:"images"`
	Matched int             `json:"matched"`
	Groups  []GroupCompared `json:"groups"`
	// Notes say what the reader should know.
	Notes []string `json:"notes,omitempty"`
}

// ComparedRun is one of the two.
type ComparedRun struct {
	Path  string `json:"path"`
	Title string `json:"title,omitempty"`
	// Units are those that the filters leave, Failed the part of them without a
	// result, Unmatched the part with a result and no partner.
	Units     int `json:"units"`
	Failed    int `json:"failed"`
	Unmatched int `json:"unmatched"`
	Images    int `json:"images"`
}

// Difference is a fact with its values in the two runs.
type Difference struct {
	Name string `json:"name"`
	A    string `json:"a"`
	B    string `json:"b"`
}

// GroupCompared is the pairs that share everything but image and seed.
type GroupCompared struct {
	// Facts are those in which the groups of the comparison differ.
	Facts map[string]string `json:"facts,omitempty"`
	// Images is the number of images; an image's seeds are averaged first.
	Images int             `json:"images"`
	Scores []ScoreCompared `json:"scores"`
	// Orders compares the trajectories; nil where they cannot be.
	Orders *OrdersCompared `json:"orders,omitempty"`
	// WhyNoOrders says why Orders is nil, where a reader would expect it.
	WhyNoOrders string `json:"whyNoOrders,omitempty"`
}

// Interval is a mean over images with 95 % bounds (percentiles of a bootstrap
// over images).
type Interval struct {
	Mean float64 `json:"mean"`
	Lo   float64 `json:"lo"`
	Hi   float64 `json:"hi"`
}

// ScoreCompared is a metric of both runs on the same images.
type ScoreCompared struct {
	// Metric names it; of a run whose grid names the metrics, with its parameters.
	Metric         string `json:"metric"`
	HigherIsBetter bool   `json:"higherIsBetter"`
	// Undirected says that no value is better than another, or that the runs read
	// the metric in opposite directions: then only equal images are counted.
	Undirected bool    `json:"undirected,omitempty"`
	A          float64 `json:"a"`
	B          float64 `json:"b"`
	// Difference is B - A, bootstrapped over images in pairs; the bounds of one image
	// are its value and say nothing.
	Difference Interval `json:"difference"`
	// BBetter, Equal and ABetter count images.
	BBetter int `json:"bBetter"`
	Equal   int `json:"equal"`
	ABetter int `json:"aBetter"`
	N       int `json:"n"`
}

// OrdersCompared is how alike the trajectories of a group are: correlations of
// the features' ranks, means over images.
type OrdersCompared struct {
	Spearman Interval `json:"spearman"`
	Kendall  Interval `json:"kendall"` // tau-b
	// Top is the share of the most relevant tenth of the features (at least one)
	// that both runs agree on.
	Top Interval `json:"top"`
	// Same counts the pairs of units with the same trajectory.
	Same int `json:"same"`
	N    int `json:"n"`
}

// Compare compares the runs in the folders a and b, which may be one folder with
// different filters. Records are all that it needs; what else the plans say is
// used where it can be read.
func Compare(ctx context.Context, a, b string, o CompareOptions) (*Comparison, error) {
	filters, err := parseWhere(o.Where)
	if err != nil {
		return nil, err
	}
	ra, err := readRun(ctx, "A", a, filters)
	if err != nil {
		return nil, err
	}
	rb, err := readRun(ctx, "B", b, filters)
	if err != nil {
		return nil, err
	}
	if ra.study != rb.study {
		return nil, usage.Errorf("compare: %s is a run of %s, %s of %s: want two runs of one study", a, ra.study, b, rb.study)
	}
	study, err := FindStudy(ra.study)
	if err != nil {
		return nil, fmt.Errorf("compare: %s: %w", a, err)
	}
	c := &Comparison{Study: study.ID, A: ra.info(), B: rb.info(), Differ: []Difference{}, Groups: []GroupCompared{}}
	if err := sameImages(ra, rb); err != nil {
		return nil, err
	}
	facts := matchingFacts(ra, rb)
	pairs, err := match(ra, rb, facts)
	if err != nil {
		return nil, err
	}
	for _, f := range facts {
		if !f.shared {
			c.Differ = append(c.Differ, Difference{f.name, listed(f.a), listed(f.b)})
		}
	}
	c.Plans = planDifferences(ra, rb)
	c.A.Unmatched, c.B.Unmatched = ra.unmatched(), rb.unmatched()
	c.fill(ctx, study, facts, pairs)
	return c, ctx.Err()
}

// where is one filter.
type where struct{ run, key, value string }

// parseWhere reads "key=value" and "A:key=value".
func parseWhere(list []string) ([]where, error) {
	var out []where
	for _, text := range list {
		var w where
		rest := text
		if before, after, ok := strings.Cut(text, ":"); ok && (before == "A" || before == "B") {
			w.run, rest = before, after
		}
		var ok bool
		if w.key, w.value, ok = strings.Cut(rest, "="); !ok || w.key == "" {
			return nil, usage.Errorf("where %q: want NAME=VALUE, for example solver=sa, or A:seed=1 for one of the runs", text)
		}
		out = append(out, w)
	}
	return out, nil
}

// fact is a property that units have besides image and class.
type fact struct {
	name string
	a, b []string // values in the runs, "" for none, in natural order
	// shared says that the runs have a value in common: units are matched by it.
	shared bool
}

// sameImages is an error where the runs have no image in common.
func sameImages(a, b *comparedRun) error {
	in := map[string]bool{}
	for _, u := range b.units {
		in[u.image] = true
	}
	for _, u := range a.units {
		if in[u.image] {
			return nil
		}
	}
	return usage.Errorf("compare: none of A's %d images (%s) is in B (%s): want runs on the same data",
		a.images(), examples(a), examples(b))
}

func examples(r *comparedRun) string {
	var ids []string
	for _, u := range r.units {
		if !slices.Contains(ids, u.image) {
			ids = append(ids, u.image)
		}
		if len(ids) == 3 {
			return strings.Join(ids[:2], ", ") + ", ..."
		}
	}
	return strings.Join(ids, ", ")
}

// matchingFacts finds which facts the runs share. A fact whose values are the
// same everywhere, or of which the runs have some in common, is matched by; one
// of which they have none is what the runs differ in.
func matchingFacts(a, b *comparedRun) []fact {
	names := map[string]bool{}
	for _, r := range []*comparedRun{a, b} {
		for _, u := range r.units {
			for k := range u.facts {
				names[k] = true
			}
		}
	}
	var out []fact
	for _, name := range sortedKeys(names) {
		f := fact{name: name, a: a.values(name), b: b.values(name)}
		f.shared = slices.ContainsFunc(f.a, func(v string) bool { return slices.Contains(f.b, v) })
		out = append(out, f)
	}
	slices.SortStableFunc(out, func(x, y fact) int { return CompareFacts(x.name, y.name) })
	return out
}

// factPlace puts what people look for first.
func factPlace(name string) int {
	first := []string{"net", "data", "method", "solver", "objective", "scoreOn", "edge", "reference", "target", "source"}
	if i := slices.Index(first, name); i >= 0 {
		return i
	}
	return len(first)
}

// CompareFacts orders names of facts: those first that people look for first.
func CompareFacts(a, b string) int {
	return cmp.Or(cmp.Compare(factPlace(a), factPlace(b)), cmp.Compare(a, b))
}

// pair is two units that are compared.
type pair struct{ a, b *comparedUnit }

// match pairs the units; two units of a run with one key are an error, because
// nobody knows which is meant.
func match(a, b *comparedRun, facts []fact) ([]pair, error) {
	key := func(u *comparedUnit) string {
		parts := []string{u.image}
		for _, f := range facts {
			if f.shared {
				parts = append(parts, u.facts[f.name])
			}
		}
		return strings.Join(parts, "\x00")
	}
	index := func(r *comparedRun) map[string][]*comparedUnit {
		out := map[string][]*comparedUnit{}
		for _, u := range r.units {
			out[key(u)] = append(out[key(u)], u)
		}
		return out
	}
	inA, inB := index(a), index(b)
	var pairs []pair
	for _, u := range a.units {
		k := key(u)
		as, bs := inA[k], inB[k]
		if len(bs) == 0 {
			continue
		}
		if len(as) > 1 {
			return nil, ambiguous("A", "B", as, facts)
		}
		if len(bs) > 1 {
			return nil, ambiguous("B", "A", bs, facts)
		}
		u.matched, bs[0].matched = true, true
		pairs = append(pairs, pair{u, bs[0]})
	}
	if len(pairs) == 0 {
		return nil, nothingMatches(facts)
	}
	return pairs, nil
}

func ambiguous(run, other string, units []*comparedUnit, facts []fact) error {
	for _, f := range facts {
		var values []string
		for _, u := range units {
			if v := u.facts[f.name]; !slices.Contains(values, v) {
				values = append(values, v)
			}
		}
		if len(values) > 1 {
			slices.SortFunc(values, compareNatural)
			return usage.Errorf("compare: %s has %d units on %s for one in %s, with %s %s: choose one, for example --where %s:%s=%s",
				run, len(units), units[0].image, other, f.name, listed(values), run, f.name, values[0])
		}
	}
	return usage.Errorf("compare: %s has %d units on %s that nothing tells apart", run, len(units), units[0].image)
}

func nothingMatches(facts []fact) error {
	var vary []string
	for _, f := range facts {
		if f.shared && (len(f.a) > 1 || len(f.b) > 1) {
			vary = append(vary, fmt.Sprintf("%s (%s | %s)", f.name, listed(f.a), listed(f.b)))
		}
	}
	return usage.Errorf("compare: no unit of A agrees with one of B in all of %s: choose with --where", strings.Join(vary, ", "))
}

// listed joins values, a few of many.
func listed(values []string) string {
	const most = 6
	out := make([]string, 0, most+1)
	for i, v := range values {
		if i == most {
			out = append(out, fmt.Sprintf("... (%d)", len(values)))
			break
		}
		out = append(out, orElse(v, "none"))
	}
	return strings.Join(out, ", ")
}

// planDifferences compares what the runs' plans say beyond the units' facts.
func planDifferences(a, b *comparedRun) []Difference {
	if a.plan == nil || b.plan == nil {
		return nil
	}
	settings := func(p *Plan) map[string]string {
		out := map[string]string{}
		for _, n := range p.Nets {
			out["weights of "+n.name()] = short(n.Hash)
			if n.Preset.Preset != nil {
				out["preset of "+n.name()] = orElse(n.Preset.Preset.ID, "own")
			}
		}
		if g := p.Generator.Hash; g != "" {
			out["generator"] = short(g)
		}
		out["device"], _, _ = strings.Cut(p.Device, ":")
		out["precision"], out["code"] = p.Precision, p.Code
		return out
	}
	x, y := settings(a.plan), settings(b.plan)
	var out []Difference
	for _, k := range sortedKeys(x) {
		if v, ok := y[k]; ok && v != x[k] {
			out = append(out, Difference{k, x[k], v})
		}
	}
	return out
}

// compareNatural compares numbers as numbers, other values as text.
func compareNatural(a, b string) int {
	x, okX := toFloat(a)
	y, okY := toFloat(b)
	if okX && okY {
		return cmp.Compare(x, y)
	}
	return cmp.Compare(a, b)
}

// runTitle is the folder's last part.
func runTitle(path string, p *Plan) string {
	if p != nil && p.Title != "" {
		return p.Title
	}
	return filepath.Base(filepath.Clean(path))
}
