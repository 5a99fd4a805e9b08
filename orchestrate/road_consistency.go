package orchestrate

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/assay-xai/assay/metrics"
)

// Files of a road run that say how alike its settings rank the methods, relative to
// OUT: a table, and a Consistency as JSON.
const (
	ConsistencyCSVFile  = "consistency.csv"
	ConsistencyJSONFile = "consistency.json"
)

// Consistency says how alike the settings of a run rank the methods (Rong et al. 2022,
// section 6.1).
type Consistency struct {
	Agreements []SettingAgreement `json:"agreements"`
	// Verdicts say in words whether the ranking depends on order and imputer.
	Verdicts []string `json:"verdicts"`
}

// RankSetting is a way of ranking methods. What is "" is the same in all settings, or
// is what a comparison is not about.
type RankSetting struct {
	Net     string `json:"net"`
	Imputer string `json:"imputer"`
	Order   string `json:"order"`
}

// SettingAgreement is how alike two settings rank the same methods by a metric: rank
// correlations for each seed and fraction, then averaged. Fractions 0 and 1 take no part:
// all methods remove the same there.
type SettingAgreement struct {
	Data   string `json:"data,omitempty"` // where the plan has several
	Target string `json:"target"`
	Ties   string `json:"ties"`
	Metric string `json:"metric"`
	// Differs names in what the settings differ: "order", "imputer", "net", several of
	// them with a plus between, or "seed", where one setting is compared with itself.
	Differs string      `json:"differs"`
	A       RankSetting `json:"a"`
	B       RankSetting `json:"b"`
	// Pairing says which fractions of two orders are compared, see PairByRemoved.
	Pairing  string      `json:"pairing"`
	Spearman Correlation `json:"spearman"`
	Kendall  Correlation `json:"kendall"` // tau-b
	// Methods is the number of methods that are ranked, Repeats that of seeds and
	// fractions with a correlation, Undefined that of those without: one of the settings
	// ranks all methods alike there.
	Methods   int `json:"methods"`
	Repeats   int `json:"repeats"`
	Undefined int `json:"undefined"`
}

// Ways to pair the fractions of two orders. ROAD's public code counts what is kept where
// the least relevant go first, so that a row of its tables pairs 10 % with 90 %.
const (
	// PairByRemoved compares settings without the same fraction of the pixels.
	PairByRemoved = "removed"
	// PairByIndex compares morf without a fraction p with lerf without 1-p.
	PairByIndex = "index"
)

// Correlation is a mean over repeats with its spread; nil where there is none.
type Correlation struct {
	Mean      *float64 `json:"mean"`
	Deviation *float64 `json:"deviation"`
	Error     *float64 `json:"error"` // standard error of the mean
}

func correlation(s metrics.Spread) Correlation {
	number := func(v float64) *float64 {
		if math.IsNaN(v) {
			return nil
		}
		return &v
	}
	return Correlation{number(s.Mean), number(s.Deviation), number(s.Error)}
}

// Metrics of rows of the summary that are of all methods together.
const (
	orderSpearman = "order-spearman"
	orderKendall  = "order-kendall"
)

// roadTogether are those metrics.
func roadTogether() []Metric {
	metric := func(id, name string) Metric {
		return Metric{ID: id, HigherIsBetter: true,
			Summary: name + " of the ranks of methods in morf and in lerf by accuracy (without labels, by probability), mean over seeds and fractions"}
	}
	return []Metric{metric(orderSpearman, "Spearman's correlation"), metric(orderKendall, "Kendall's tau-b")}
}

// togetherParams are the parameters that rows of roadTogether have of a point's.
func togetherParams(p Params) Params {
	out := Params{}
	for _, k := range []string{"target", imputerKey, fractionsKey, tiesKey, "data"} {
		if v, ok := p[k]; ok {
			out[k] = v
		}
	}
	return out
}

// frame is what settings share that are compared.
type frame struct{ data, target, ties, metric string }

// rankTable holds, for the settings of a frame, means over images by competitor,
// fraction and seed.
type rankTable struct {
	frame
	settings []RankSetting
	params   []Params // of the first line of each setting
	names    []string
	means    map[RankSetting]map[string]map[float64][]float64
}

// rankTables sorts the lines of a summary that rank methods.
func (r *Resolved) rankTables(lines []line) []*rankTable {
	var out []*rankTable
	for _, l := range lines {
		if l.metric != accuracyMetric && l.metric != probabilityMetric {
			continue
		}
		if _, compared := roadContest(l.metric, l.params); !compared || !l.cell.any() {
			continue
		}
		f := frame{plain(orEmpty(l.params["data"])), plain(orEmpty(l.params["target"])), l.params.Text(tiesKey), l.metric}
		i := slices.IndexFunc(out, func(t *rankTable) bool { return t.frame == f })
		if i < 0 {
			i = len(out)
			out = append(out, &rankTable{frame: f, means: map[RankSetting]map[string]map[float64][]float64{}})
		}
		t := out[i]
		s := RankSetting{Net: l.net, Imputer: l.params.Text(imputerKey), Order: l.params.Text(orderKey)}
		if t.means[s] == nil {
			t.means[s] = map[string]map[float64][]float64{}
			t.settings, t.params = append(t.settings, s), append(t.params, l.params)
		}
		name := r.Competitor(l.params)
		if !slices.Contains(t.names, name) {
			t.names = append(t.names, name)
		}
		if t.means[s][name] == nil {
			t.means[s][name] = map[float64][]float64{}
		}
		t.means[s][name][l.params.Float(fractionKey)] = l.cell.ofSeeds(r.Plan.Seeds)
	}
	return out
}

// fractions are those that a setting was measured at.
func (t *rankTable) fractions(s RankSetting) []float64 {
	var out []float64
	for _, byFraction := range t.means[s] {
		for f := range byFraction {
			if !slices.Contains(out, f) {
				out = append(out, f)
			}
		}
	}
	slices.Sort(out)
	return out
}

// informative are the fractions that can tell methods apart: without nothing, and
// without everything, the net sees the same by any method.
func (t *rankTable) informative(s RankSetting) []float64 {
	return slices.DeleteFunc(t.fractions(s), func(f float64) bool { return f <= 0 || f >= 1 })
}

// row is the means of the competitors at a fraction for a seed, NaN for none.
func (t *rankTable) row(s RankSetting, fraction float64, seed int) []float64 {
	out := make([]float64, len(t.names))
	for i, name := range t.names {
		out[i] = math.NaN()
		if v := t.means[s][name][fraction]; v != nil {
			out[i] = v[seed]
		}
	}
	return out
}

// partner is the fraction of the other setting that is compared with one, false where
// it was not measured.
func partner(f float64, there []float64, pairing string) (float64, bool) {
	if pairing == PairByIndex {
		f = 1 - f
	}
	const near = 1e-9
	i := slices.IndexFunc(there, func(g float64) bool { return math.Abs(g-f) < near })
	if i < 0 {
		return 0, false
	}
	return there[i], true
}

// compare is the agreement of two settings.
func (t *rankTable) compare(a, b RankSetting, pairing string, seeds int) SettingAgreement {
	x, y := metrics.Setting{HigherIsBetter: a.Order == OrderLeRF}, metrics.Setting{HigherIsBetter: b.Order == OrderLeRF}
	there := t.informative(b)
	for seed := range seeds {
		for _, f := range t.informative(a) {
			if g, ok := partner(f, there, pairing); ok {
				x.Scores, y.Scores = append(x.Scores, t.row(a, f, seed)), append(y.Scores, t.row(b, g, seed))
			}
		}
	}
	return t.agreement(a, b, pairing, x, y)
}

// ofSeeds is how alike a setting ranks for one seed and another.
func (t *rankTable) ofSeeds(a RankSetting, seeds int) SettingAgreement {
	x, y := metrics.Setting{HigherIsBetter: a.Order == OrderLeRF}, metrics.Setting{HigherIsBetter: a.Order == OrderLeRF}
	for s := range seeds {
		for other := range s {
			for _, f := range t.informative(a) {
				x.Scores, y.Scores = append(x.Scores, t.row(a, f, other)), append(y.Scores, t.row(a, f, s))
			}
		}
	}
	return t.agreement(a, a, PairByRemoved, x, y)
}

func (t *rankTable) agreement(a, b RankSetting, pairing string, x, y metrics.Setting) SettingAgreement {
	got := metrics.Agree(x, y)
	var differs []string
	for _, d := range []struct {
		name string
		a, b string
	}{{"net", a.Net, b.Net}, {imputerKey, a.Imputer, b.Imputer}, {orderKey, a.Order, b.Order}} {
		if d.a != d.b {
			differs = append(differs, d.name)
		}
	}
	if differs == nil {
		differs = []string{"seed"}
	}
	return SettingAgreement{Data: t.data, Target: t.target, Ties: t.ties, Metric: t.metric, Differs: strings.Join(differs, "+"), A: a, B: b, Pairing: pairing,
		Spearman: correlation(got.Spearman), Kendall: correlation(got.Kendall), Methods: len(t.names), Repeats: got.Spearman.N, Undefined: got.Undefined}
}

// consistency compares all settings of a run, two at a time.
func (r *Resolved) consistency(lines []line) *Consistency {
	out := &Consistency{Agreements: []SettingAgreement{}, Verdicts: []string{}}
	seeds := max(1, len(r.Plan.Seeds))
	tables := r.rankTables(lines)
	for _, t := range tables {
		if len(t.names) < 2 {
			continue
		}
		for i, b := range t.settings {
			for _, a := range t.settings[:i] {
				out.Agreements = append(out.Agreements, t.compare(a, b, PairByRemoved, seeds))
				if a.Order != b.Order {
					out.Agreements = append(out.Agreements, t.compare(a, b, PairByIndex, seeds))
				}
			}
		}
		if seeds > 1 {
			for _, a := range t.settings {
				out.Agreements = append(out.Agreements, t.ofSeeds(a, seeds))
			}
		}
	}
	out.Verdicts = append(out.Verdicts, verdicts(tables, out.Agreements, seeds)...)
	return out
}

// main are the tables by accuracy, of data without labels those by probability.
func mainTables(tables []*rankTable) []*rankTable {
	var out []*rankTable
	for _, t := range tables {
		best := frame{t.data, t.target, t.ties, accuracyMetric}
		if t.metric == accuracyMetric || !slices.ContainsFunc(tables, func(o *rankTable) bool { return o.frame == best }) {
			out = append(out, t)
		}
	}
	return out
}

// together are the rows of the summary on the orders' agreement.
func (s *summary) together(r *Resolved, c *Consistency) []SummaryRow {
	var out []SummaryRow
	for _, t := range mainTables(r.rankTables(s.all)) {
		for _, a := range c.Agreements {
			if a.Differs != orderKey || a.Pairing != PairByRemoved || (frame{a.Data, a.Target, a.Ties, a.Metric}) != t.frame || a.Spearman.Mean == nil {
				continue
			}
			params := togetherParams(t.params[slices.Index(t.settings, a.A)])
			for id, v := range map[string]Correlation{orderSpearman: a.Spearman, orderKendall: a.Kendall} {
				row := SummaryRow{Net: a.A.Net, Params: params, Metric: id, Mean: *v.Mean, Lo: *v.Mean, Hi: *v.Mean, N: a.Repeats, Deviation: v.Deviation, Error: v.Error}
				if v.Error != nil {
					const z = 1.959963984540054 // 97.5 % of the standard normal
					row.Lo, row.Hi = max(-1, *v.Mean-z**v.Error), min(1, *v.Mean+z**v.Error)
				}
				row.compare(r.Plan.Reference)
				out = append(out, row)
			}
		}
	}
	slices.SortStableFunc(out, func(a, b SummaryRow) int { return strings.Compare(b.Metric, a.Metric) })
	return out
}

func writeConsistency(out string, c *Consistency) error {
	lines := [][]string{{"data", "target", "ties", "metric", "differs", "netA", "imputerA", "orderA", "netB", "imputerB", "orderB", "pairing",
		"spearman", "spearmanDeviation", "spearmanError", "kendall", "kendallDeviation", "kendallError", "methods", "repeats", "undefined"}}
	for _, a := range c.Agreements {
		lines = append(lines, []string{a.Data, a.Target, a.Ties, a.Metric, a.Differs, a.A.Net, a.A.Imputer, a.A.Order, a.B.Net, a.B.Imputer, a.B.Order, a.Pairing,
			number(a.Spearman.Mean), number(a.Spearman.Deviation), number(a.Spearman.Error), number(a.Kendall.Mean), number(a.Kendall.Deviation), number(a.Kendall.Error),
			strconv.Itoa(a.Methods), strconv.Itoa(a.Repeats), strconv.Itoa(a.Undefined)})
	}
	var b bytes.Buffer
	if err := csv.NewWriter(&b).WriteAll(lines); err != nil {
		return fmt.Errorf("writing %s: %w", ConsistencyCSVFile, err)
	}
	if err := writeFile(filepath.Join(out, ConsistencyCSVFile), b.Bytes()); err != nil {
		return err
	}
	return writeJSON(filepath.Join(out, ConsistencyJSONFile), c)
}
