package orchestrate

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/assay-xai/assay/metrics"
)

// ClaimsFile holds what became of the plan's claims, relative to OUT: a JSON
// array of ClaimRow. A plan without claims leaves none.
const ClaimsFile = "claims.json"

// Claim is something that a source says without a number, or shows in a plot.
// With Higher and Lower it is checked: of every two settings of which one
// matches Higher and the other Lower, and which are alike in all else that the
// plan varies, the first has the higher mean of Metric over the same images. A
// metric of maps without parameters (le-mo) is each of the run's that goes by the
// name (le-mo(reference=blur), too).
type Claim struct {
	Claim  string         `yaml:"claim"`
	Metric string         `yaml:"metric,omitempty"`
	Higher map[string]any `yaml:"higher,omitempty"`
	Lower  map[string]any `yaml:"lower,omitempty"`
	// Within makes it a claim that the difference is at most so much.
	Within *float64 `yaml:"within,omitempty"`
	// Reason says of a claim without Higher and Lower why it is not measured.
	Reason string `yaml:"reason,omitempty"`
}

// Readings of a claim; ReadingNotMeasured is one more.
const (
	ReadingHolds      = "holds"
	ReadingFails      = "does not hold"
	ReadingUndecided  = "undecided"
	ReadingSeeFigures = "see the figures"
)

// ClaimRow is a claim on one pair of settings.
type ClaimRow struct {
	Claim  string `json:"claim"`
	Net    string `json:"net,omitempty"`
	Params Params `json:"params,omitempty"` // that both settings share and the run varies
	Metric string `json:"metric,omitempty"`
	// Difference is the mean over images of Higher's value minus Lower's; Lo and
	// Hi bound it with 95 % confidence (percentiles of a bootstrap over images).
	Difference *float64 `json:"difference,omitempty"`
	Lo         *float64 `json:"lo,omitempty"`
	Hi         *float64 `json:"hi,omitempty"`
	N          int      `json:"n"`
	// Reading is "holds" or "does not hold" where the bounds leave no doubt, else
	// "undecided", as with fewer images than MinClaimImages.
	Reading string `json:"reading"`
	Reason  string `json:"reason,omitempty"`
}

// MinClaimImages is from how many images on a claim is decided. Bounds of a bootstrap
// reach no further than the images' own values: where a difference is as likely up as
// down, all of n images agree in its sign, and bounds leave no doubt, with probability
// 2^-n to either side: in more than one of twenty cases for fewer than five.
const MinClaimImages = 5

func (s Study) checkClaims(p *Plan) error {
	ids := s.metricIDs()
	var keys []string
	keys = append(keys, "net", "data")
	keys = append(keys, s.rowKeys()...)
	for i, c := range p.Claims {
		at := fmt.Sprintf("$.claims[%d]", i)
		switch {
		case c.Claim == "":
			return p.errorf(at, "a claim without its words (claim: ...)")
		case (c.Higher == nil) != (c.Lower == nil):
			return p.errorf(at, "claim %q: want both higher and lower, or none", c.Claim)
		case c.Higher != nil && c.Reason != "":
			return p.errorf(at, "claim %q: want higher and lower, or a reason why it is not measured", c.Claim)
		case c.Higher == nil:
			continue
		case !s.hasMetric(c.Metric):
			return p.errorf(at, "claim %q: metric %q: %s", c.Claim, c.Metric, DidYouMean(c.Metric, ids))
		}
		for side, row := range map[string]map[string]any{"higher": c.Higher, "lower": c.Lower} {
			for _, k := range sortedKeys(row) {
				if !slices.Contains(keys, k) {
					return p.errorf(at+"."+side+"."+k, "claim %q: key %q: %s", c.Claim, k, DidYouMean(k, keys))
				}
			}
		}
	}
	return nil
}

// measuredGroup is a setting with its metrics' values by image.
type measuredGroup struct {
	net    string
	params Params
	values map[string]*cell // by metric
}

// claims checks the plan's claims.
func (r *Resolved) claims(groups []measuredGroup) []ClaimRow {
	var out []ClaimRow
	vary := varied(r.Points)
	for _, c := range r.Plan.Claims {
		if c.Higher == nil {
			row := ClaimRow{Claim: c.Claim, Reading: ReadingSeeFigures}
			if c.Reason != "" {
				row.Reading, row.Reason = ReadingNotMeasured, c.Reason
			}
			out = append(out, row)
			continue
		}
		found := false
		for _, metric := range r.claimed(c, groups) {
			for _, a := range groups {
				if !a.is(metric, c.Higher) {
					continue
				}
				for _, b := range groups {
					if b.is(metric, c.Lower) && c.alike(a, b, vary) {
						out = append(out, c.row(metric, a, b))
						found = true
					}
				}
			}
		}
		if !found {
			why := "no two settings of this run to compare"
			for _, n := range r.Plan.Nets {
				if n.Absent != "" {
					why = n.Absent
					break
				}
			}
			out = append(out, ClaimRow{Claim: c.Claim, Metric: c.Metric, Reading: ReadingNotMeasured, Reason: why})
		}
	}
	return out
}

// claimed lists the metrics that a claim speaks of, in the order of groups.
func (r *Resolved) claimed(c Claim, groups []measuredGroup) []string {
	if r.Study.Row == nil {
		return []string{c.Metric}
	}
	var out []string
	for _, g := range groups {
		for id := range g.values { // of scores one
			name, _, _ := strings.Cut(id, "(")
			if (id == c.Metric || name == c.Metric) && !slices.Contains(out, id) {
				out = append(out, id)
			}
		}
	}
	return out
}

func (g measuredGroup) is(metric string, want map[string]any) bool {
	row := SummaryRow{Net: g.net, Params: g.params, Metric: metric}
	return g.values[metric].any() && row.matches(want)
}

// sameProblem are the parameters in which two settings have to agree to be
// compared, unless the claim speaks of them; budgets are those that end a search.
var (
	sameProblem = []string{"data", "target", "edge", "reference", "objective", "scoreOn", "solver", orderKey, imputerKey, fractionKey, fractionsKey, tiesKey}
	budgets     = []string{"time", "evaluations", "iterations"}
)

// varied are the parameters that a plan varies by themselves: some two points
// differ in nothing else. What follows from another parameter, as a schedule's
// temperature from the output that is looked at, is not among them.
func varied(points []Params) map[string]bool {
	out := map[string]bool{}
	rest := map[string]bool{}
	for _, p := range points {
		for k := range p {
			key := k + string(canonical(without(p, k)))
			if rest[key] {
				out[k] = true
			}
			rest[key] = true
		}
	}
	return out
}

func without(p Params, key string) Params {
	out := Params{}
	for k, v := range p {
		if k != key {
			out[k] = v
		}
	}
	return out
}

// alike says whether two settings are the same but for what the claim speaks
// of, and what follows from that.
func (c Claim) alike(a, b measuredGroup, vary map[string]bool) bool {
	spoken := func(k string) bool { _, x := c.Higher[k]; _, y := c.Lower[k]; return x || y }
	if a.net != b.net && !spoken("net") {
		return false
	}
	for k, v := range a.params {
		w, ok := b.params[k]
		if ok && !spoken(k) && (vary[k] || slices.Contains(sameProblem, k)) && plain(v) != plain(w) {
			return false
		}
	}
	x, y := a.budget(), b.budget()
	return x == "" || y == "" || x == y || spoken(x) || spoken(y)
}

// budget names what ends the search, "" for nothing but itself.
func (g measuredGroup) budget() string {
	for _, k := range budgets {
		if _, ok := g.params[k]; ok {
			return k
		}
	}
	return ""
}

func (c Claim) row(metric string, a, b measuredGroup) ClaimRow {
	out := ClaimRow{Claim: c.Claim, Net: a.net, Metric: metric, Params: Params{}}
	for k, v := range a.params {
		if w, ok := b.params[k]; ok && plain(v) == plain(w) {
			out.Params[k] = v
		}
	}
	var diff []float64
	x, y := a.values[metric].means(), b.values[metric].means()
	for _, item := range sortedItems(x) {
		if v, ok := y[item]; ok {
			diff = append(diff, x[item]-v)
		}
	}
	if len(diff) == 0 {
		out.Reading, out.Reason = ReadingNotMeasured, "no image has both"
		return out
	}
	m := metrics.Summarise(diff, level, bootstrapSeed)
	out.Difference, out.Lo, out.Hi, out.N = &m.Mean, &m.Lo, &m.Hi, m.N
	lo, hi := m.Lo, m.Hi
	if c.Within != nil { // the claim is that Within minus the difference is not negative
		lo, hi = *c.Within-m.Hi, *c.Within-m.Lo
		if lo == 0 {
			lo = 1
		}
	}
	switch {
	case m.N < MinClaimImages:
		out.Reading, out.Reason = ReadingUndecided, fmt.Sprintf("%s cannot decide a claim of means: want at least %d", count(m.N, "image"), MinClaimImages)
	case lo > 0:
		out.Reading = ReadingHolds
	case hi < 0 || hi == 0 && lo == 0:
		out.Reading = ReadingFails
	default:
		out.Reading = ReadingUndecided
	}
	return out
}

func writeClaims(out string, rows []ClaimRow) error {
	if rows == nil {
		return nil
	}
	return writeJSON(filepath.Join(out, ClaimsFile), rows)
}
