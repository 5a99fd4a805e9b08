package orchestrate

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/stat"

	"github.com/assay-xai/assay/metrics"
	"github.com/assay-xai/assay/scores"
)

// Files of a score run beside the summary, relative to OUT.
const (
	RanksFile = "ranks.csv"
	WinsFile  = "wins.csv"
	// ContestsFile holds both as JSON: an array of Contest.
	ContestsFile = "contests.json"
)

// Contest compares the competitors, methods or given maps, of one net, data,
// target and metric.
type Contest struct {
	Net    string `json:"net"`
	Data   string `json:"data,omitempty"` // where the plan has several
	Target string `json:"target,omitempty"`
	Metric string `json:"metric"`
	// Setting are other parameters that the competitors share (study road).
	Setting Params `json:"setting,omitempty"`
	// HigherIsBetter says which values are good.
	HigherIsBetter bool         `json:"higherIsBetter"`
	Competitors    []Competitor `json:"competitors"`
	Wins           []Win        `json:"wins"`
	// Optimum is the mean of what the search found; nil: none was asked for.
	Optimum *float64 `json:"optimum,omitempty"`
	// Verdict says in words who is significantly better than whom.
	Verdict string `json:"verdict"`
}

// Competitor is a method with its place. Bounds of one image (N) are its values and
// bound nothing: tables leave them out.
type Competitor struct {
	Name      string  `json:"name"`
	Mean      float64 `json:"mean"`
	Lo        float64 `json:"lo"`
	Hi        float64 `json:"hi"`
	N         int     `json:"n"`
	Undefined int     `json:"undefined"`
	// Rank is 0 where there is no value. RankLo and RankHi bound it with 95 %
	// confidence, Best is the probability that it is first (bootstrap over images).
	Rank   float64 `json:"rank"`
	RankLo float64 `json:"rankLo"`
	RankHi float64 `json:"rankHi"`
	Best   float64 `json:"best"`
	// Share is the part of the optimum that is reached; nil where there is none, or
	// where mean and optimum differ in sign.
	Share *float64 `json:"share,omitempty"`
}

// Win says how often a is better than b.
type Win struct {
	A string `json:"a"`
	B string `json:"b"`
	// Fraction of the images on which both have a value, N, equal values half.
	Fraction float64 `json:"fraction"`
	N        int     `json:"n"`
	// Statistic, P and Exact are of Wilcoxon's signed-rank test of the differences;
	// PHolm is P adjusted for all pairs of the metric.
	Statistic float64 `json:"statistic"`
	P         float64 `json:"p"`
	Exact     bool    `json:"exact"`
	PHolm     float64 `json:"pHolm"`
}

// Significance is the level below which PHolm is called significant.
const Significance = .05

// scoredCell is what a point of the grid came to: values by item, undefined ones apart.
type scoredCell struct {
	net, data string
	name      string // of the competitor
	params    Params // of the row
	metric    string
	higher    bool // values are better
	values    *cell
	undefined int
}

// scored is a line as one of a comparison, false where it takes part in none.
func (r *Resolved) scored(l line) (*scoredCell, bool) {
	c := &scoredCell{net: l.net, name: r.Competitor(l.params), params: l.params, metric: l.metric, values: l.cell}
	c.data, _ = l.params["data"].(string)
	switch {
	case r.Study.Row != nil:
		var err error
		c.higher, err = higherIsBetter(l.metric)
		return c, err == nil
	case r.Study.Contest != nil:
		var ok bool
		c.higher, ok = r.Study.Contest(l.metric, l.params)
		return c, ok && c.name != ""
	}
	return nil, false
}

// Competitor names what a row of a summary is of: whose maps, and, where the plan says
// what becomes of their channels, and where it says several things of it, that.
func (r *Resolved) Competitor(params Params) string {
	name := params.Text(methodKey)
	if reduce, ok := params[reduceKey]; ok && (r.Study.Contest == nil || r.reductions() > 1) {
		name += " " + plain(reduce)
	}
	return name
}

// reductions counts what becomes of channels at the plan's points.
func (r *Resolved) reductions() int {
	seen := map[string]bool{}
	for _, p := range r.Points {
		if v := p.Text(reduceKey); v != "" {
			seen[v] = true
		}
	}
	return len(seen)
}

// settingKeys are parameters that methods share where they are compared, beside the
// class: a contest has those of its rows.
var settingKeys = []string{imputerKey, orderKey, tiesKey, fractionKey}

// setting are the values of settingKeys.
func setting(params Params) Params {
	var out Params
	for _, k := range settingKeys {
		if v, ok := params[k]; ok {
			if out == nil {
				out = Params{}
			}
			out[k] = v
		}
	}
	return out
}

// compareScores compares the cells of each net, data, target and metric.
func compareScores(cells []*scoredCell, drawn *samples) []Contest {
	var order []string
	groups := map[string][]*scoredCell{}
	for _, c := range cells {
		key := contestKey(c.net, c.data, plain(orEmpty(c.params["target"])), c.metric, setting(c.params))
		if groups[key] == nil {
			order = append(order, key)
		}
		groups[key] = append(groups[key], c)
	}
	if len(order) == 0 {
		return nil
	}
	out := make([]Contest, len(order))
	inParallel(len(order), func(i int) { out[i] = compareCells(groups[order[i]], drawn) })
	return out
}

// higherIsBetter is a metric's direction.
func higherIsBetter(metric string) (bool, error) {
	spec, err := ParseSpec(metric)
	if err != nil {
		return false, err
	}
	score, err := scores.ByID(spec.Name)
	return score.Direction == scores.HigherIsBetter, err
}

func compareCells(cells []*scoredCell, drawn *samples) Contest {
	first := cells[0]
	out := Contest{Net: first.net, Data: first.data, Target: plain(orEmpty(first.params["target"])), Metric: first.metric, Setting: setting(first.params),
		HigherIsBetter: first.higher, Competitors: []Competitor{}, Wins: []Win{}}
	items := map[int]float64{}
	var compared []*scoredCell
	for _, c := range cells {
		known := c.values.resample(drawn)
		for _, item := range known.items {
			items[item] = 0
		}
		if c.name != OptimumName {
			compared = append(compared, c)
		} else if len(known.items) > 0 {
			mean := c.summary(drawn).Mean
			out.Optimum = &mean
		}
	}
	sorted := sortedItems(items)
	values, sampled := make([][]float64, len(compared)), make([][]float64, len(compared))
	overall := make([]float64, len(compared))
	for i, c := range compared {
		known := c.values.resample(drawn)
		overall[i] = stat.Mean(known.values, nil) // NaN without any
		values[i], sampled[i] = known.values, known.sample
		if len(known.items) < len(sorted) { // not of all images
			values[i] = make([]float64, len(sorted))
			for k, item := range sorted {
				values[i][k] = math.NaN()
				if at, ok := slices.BinarySearch(known.items, item); ok {
					values[i][k] = known.values[at]
				}
			}
			sampled[i] = drawn.of(len(sorted)).Means(values[i])
		}
	}
	ranks := metrics.StandingsOf(overall, sampled, out.HigherIsBetter, level)
	for i, c := range compared {
		m := c.summary(drawn)
		one := Competitor{Name: c.name, N: m.N, Undefined: c.undefined, Rank: ranks[i].Rank, RankLo: ranks[i].Lo, RankHi: ranks[i].Hi, Best: ranks[i].Best}
		if m.N > 0 {
			one.Mean, one.Lo, one.Hi = m.Mean, m.Lo, m.Hi
			one.Share = shareOf(m.Mean, out.Optimum)
		}
		out.Competitors = append(out.Competitors, one)
	}
	var p []float64
	for i := range compared {
		for k := i + 1; k < len(compared); k++ {
			w := metrics.Compare(values[i], values[k], out.HigherIsBetter)
			if w.N == 0 {
				continue
			}
			out.Wins = append(out.Wins, Win{A: compared[i].name, B: compared[k].name, Fraction: w.Fraction, N: w.N,
				Statistic: w.Test.Statistic, P: w.Test.P, Exact: w.Test.Exact})
			p = append(p, w.Test.P)
		}
	}
	for i, adjusted := range metrics.Holm(p) {
		out.Wins[i].PHolm = adjusted
	}
	out.Verdict = out.verdict()
	return out
}

func orEmpty(v any) any {
	if v == nil {
		return ""
	}
	return v
}

func (c *scoredCell) summary(drawn *samples) metrics.Summary {
	if setting(c.params) == nil {
		return metrics.Summarise(c.values.perImage(), level, bootstrapSeed)
	}
	known := c.values.resample(drawn) // one of many, as its row has it
	if len(known.values) == 0 {
		return metrics.Summarise(nil, level, bootstrapSeed)
	}
	return metrics.SummaryOf(known.values, known.sample, level)
}

// shareOf is the part of an optimum that a mean reaches. Metrics that are sums with
// a minus (mo) are nearer to it the smaller they are: there it is optimum by mean.
func shareOf(mean float64, optimum *float64) *float64 {
	share := math.NaN()
	switch {
	case optimum == nil:
	case mean > 0 && *optimum > 0:
		share = mean / *optimum
	case mean < 0 && *optimum < 0:
		share = *optimum / mean
	}
	if math.IsNaN(share) || math.IsInf(share, 0) {
		return nil
	}
	return &share
}

// contestKey is what rows share that one contest compares.
func contestKey(net, data, target, metric string, setting Params) string {
	return fmt.Sprint(net, "\x00", data, "\x00", target, "\x00", metric, "\x00", string(canonical(setting)))
}

// annotate writes a comparison's ranks into the rows of the summary.
func (r *Resolved) annotate(rows []SummaryRow, contests []Contest) {
	index := map[string]*Contest{}
	for i, c := range contests {
		index[contestKey(c.Net, c.Data, c.Target, c.Metric, c.Setting)] = &contests[i]
	}
	for i := range rows {
		row := &rows[i]
		c := index[contestKey(row.Net, plain(orEmpty(row.Params["data"])), plain(orEmpty(row.Params["target"])), row.Metric, setting(row.Params))]
		if c == nil {
			continue
		}
		name := r.Competitor(row.Params)
		for _, one := range c.Competitors {
			if one.Name == name {
				row.Undefined = one.Undefined
				row.Share = one.Share
				if one.Rank > 0 {
					one := one
					row.Rank, row.RankLo, row.RankHi, row.Best = &one.Rank, &one.RankLo, &one.RankHi, &one.Best
				}
			}
		}
	}
}

// writeContests writes OUT/ranks.csv, wins.csv and contests.json.
func writeContests(out string, list []Contest) error {
	places := []string{"net", "data", "target"}
	settings := slices.ContainsFunc(list, func(c Contest) bool { return c.Setting != nil })
	if settings {
		places = append(places, settingKeys...)
	}
	ranks := [][]string{slices.Concat(places, []string{"metric", "method", "mean", "lo", "hi", "n", "undefined", "rank", "rankLo", "rankHi", "best", "share"})}
	wins := [][]string{slices.Concat(places, []string{"metric", "a", "b", "wins", "n", "statistic", "p", "exact", "pHolm"})}
	if !settings {
		wins[0][slices.Index(wins[0], "wins")] = "fraction"
	}
	text := func(v float64) string { return number(&v) }
	for _, c := range list {
		place := []string{c.Net, c.Data, c.Target}
		if settings {
			for _, k := range settingKeys {
				place = append(place, plain(orEmpty(c.Setting[k])))
			}
		}
		place = append(place, c.Metric)
		for _, one := range c.Competitors {
			line := slices.Concat(place, []string{one.Name})
			if one.Rank > 0 {
				line = append(line, text(one.Mean), boundOf(&one.Lo, one.N), boundOf(&one.Hi, one.N), strconv.Itoa(one.N), strconv.Itoa(one.Undefined),
					text(one.Rank), boundOf(&one.RankLo, one.N), boundOf(&one.RankHi, one.N), text(one.Best), number(one.Share))
			} else {
				line = append(line, "", "", "", strconv.Itoa(one.N), strconv.Itoa(one.Undefined), "", "", "", "", "")
			}
			ranks = append(ranks, line)
		}
		for _, w := range c.Wins {
			wins = append(wins, slices.Concat(place, []string{w.A, w.B, text(w.Fraction), strconv.Itoa(w.N), text(w.Statistic), text(w.P), strconv.FormatBool(w.Exact), text(w.PHolm)}))
		}
	}
	for name, lines := range map[string][][]string{RanksFile: ranks, WinsFile: wins} {
		var b bytes.Buffer
		w := csv.NewWriter(&b)
		if err := w.WriteAll(lines); err != nil {
			return fmt.Errorf("writing %s: %w", name, err)
		}
		if err := writeFile(filepath.Join(out, name), b.Bytes()); err != nil {
			return err
		}
	}
	if list == nil {
		list = []Contest{}
	}
	return writeJSON(filepath.Join(out, ContestsFile), list)
}

// fewPairs is how many pairs a sentence names.
const fewPairs = 4

// verdict says in words which competitors are significantly better than which others:
// PHolm below .05, and better on more than half of the images.
func (c Contest) verdict() string {
	if len(c.Wins) == 0 {
		return "nothing to compare"
	}
	beaten := map[string][]string{}
	pairs, most := 0, 0
	for _, w := range c.Wins {
		most = max(most, w.N)
		a, b := w.A, w.B
		if w.Fraction < .5 {
			a, b = b, a
		}
		if w.PHolm < Significance && w.Fraction != .5 {
			beaten[a] = append(beaten[a], b)
			pairs++
		}
	}
	if pairs == 0 {
		why := ""
		if smallest := 2 / math.Pow(2, float64(most)); smallest*float64(len(c.Wins)) >= Significance {
			why = fmt.Sprintf("; %s cannot show more for %s", count(most, "image"), count(len(c.Wins), "pair"))
		}
		return fmt.Sprintf("no method is significantly better than another (Wilcoxon, Holm over %s, level %v%s)", count(len(c.Wins), "pair"), Significance, why)
	}
	var parts []string
	named := 0
	for _, one := range c.byRank() {
		list := beaten[one.Name]
		if len(list) == 0 || named >= fewPairs {
			continue
		}
		named++
		others := len(c.Competitors) - 1
		switch {
		case len(list) == others && others > 1:
			parts = append(parts, one.Name+" is significantly better than all others")
		case len(list) > fewPairs:
			parts = append(parts, fmt.Sprintf("%s than %d of %d others", one.Name, len(list), others))
		default:
			parts = append(parts, one.Name+" than "+strings.Join(list, ", "))
		}
	}
	text := strings.Join(parts, "; ")
	if !strings.Contains(parts[0], "is significantly") {
		text = strings.Replace(text, parts[0], strings.Replace(parts[0], " than ", " is significantly better than ", 1), 1)
	}
	if more := len(beaten) - named; more > 0 {
		text += fmt.Sprintf("; and so on for %s", count(more, "more method"))
	}
	return fmt.Sprintf("%s (Wilcoxon, Holm: %d of %s)", text, pairs, count(len(c.Wins), "pair"))
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// byRank are the competitors that have a rank, best first.
func (c Contest) byRank() []Competitor {
	out := slices.DeleteFunc(slices.Clone(c.Competitors), func(one Competitor) bool { return one.Rank == 0 })
	slices.SortStableFunc(out, func(a, b Competitor) int { return cmp.Compare(a.Rank, b.Rank) })
	return out
}
