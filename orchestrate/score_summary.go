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
	// HigherIsBetter says which values are good.
	HigherIsBetter bool         `json:"higherIsBetter"`
	Competitors    []Competitor `json:"competitors"`
	Wins           []Win        `json:"wins"`
	// Optimum is the mean of what the search found; nil: none was asked for.
	Optimum *float64 `json:"optimum,omitempty"`
	// Verdict says in words who is significantly better than whom.
	Verdict string `json:"verdict"`
}

// Competitor is a method with its place.
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
	params    Params // of the row
	metric    string
	values    map[int]float64
	undefined int
}

// name of the competitor among those of a metric.
func (c *scoredCell) name() string {
	name := c.params.Text(methodKey)
	if reduce, ok := c.params[reduceKey]; ok {
		name += " " + plain(reduce)
	}
	return name
}

// compareScores compares the cells of each net, data, target and metric.
func compareScores(cells []*scoredCell) ([]Contest, error) {
	var order []string
	groups := map[string][]*scoredCell{}
	for _, c := range cells {
		key := fmt.Sprint(c.net, "\x00", c.data, "\x00", c.params["target"], "\x00", c.metric)
		if groups[key] == nil {
			order = append(order, key)
		}
		groups[key] = append(groups[key], c)
	}
	var out []Contest
	for _, key := range order {
		c, err := compareCells(groups[key])
		if err != nil {
			return nil, err
		}
		out = append(out, c)
	}
	return out, nil
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

func compareCells(cells []*scoredCell) (Contest, error) {
	first := cells[0]
	out := Contest{Net: first.net, Data: first.data, Target: plain(orEmpty(first.params["target"])), Metric: first.metric, Competitors: []Competitor{}, Wins: []Win{}}
	var err error
	if out.HigherIsBetter, err = higherIsBetter(first.metric); err != nil {
		return out, err
	}
	items := map[int]bool{}
	var compared []*scoredCell
	for _, c := range cells {
		for item := range c.values {
			items[item] = true
		}
		if c.name() != OptimumName {
			compared = append(compared, c)
		} else if len(c.values) > 0 {
			mean := c.summary().Mean
			out.Optimum = &mean
		}
	}
	sorted := make([]int, 0, len(items))
	for item := range items {
		sorted = append(sorted, item)
	}
	slices.Sort(sorted)
	values := make([][]float64, len(compared))
	for i, c := range compared {
		for _, item := range sorted {
			v, ok := c.values[item]
			if !ok {
				v = math.NaN()
			}
			values[i] = append(values[i], v)
		}
	}
	ranks := metrics.Standings(values, out.HigherIsBetter, level, bootstrapSeed)
	for i, c := range compared {
		m := c.summary()
		one := Competitor{Name: c.name(), N: m.N, Undefined: c.undefined, Rank: ranks[i].Rank, RankLo: ranks[i].Lo, RankHi: ranks[i].Hi, Best: ranks[i].Best}
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
			out.Wins = append(out.Wins, Win{A: compared[i].name(), B: compared[k].name(), Fraction: w.Fraction, N: w.N,
				Statistic: w.Test.Statistic, P: w.Test.P, Exact: w.Test.Exact})
			p = append(p, w.Test.P)
		}
	}
	for i, adjusted := range metrics.Holm(p) {
		out.Wins[i].PHolm = adjusted
	}
	out.Verdict = out.verdict()
	return out, nil
}

func orEmpty(v any) any {
	if v == nil {
		return ""
	}
	return v
}

func (c *scoredCell) summary() metrics.Summary {
	items := make([]int, 0, len(c.values))
	for item := range c.values {
		items = append(items, item)
	}
	slices.Sort(items)
	values := make([]float64, len(items))
	for i, item := range items {
		values[i] = c.values[item]
	}
	return metrics.Summarise(values, level, bootstrapSeed)
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

// annotate writes a comparison's ranks into the rows of the summary.
func annotate(rows []SummaryRow, contests []Contest) {
	for i := range rows {
		row := &rows[i]
		cell := scoredCell{params: row.Params}
		for _, c := range contests {
			if c.Net != row.Net || c.Metric != row.Metric || c.Target != plain(orEmpty(row.Params["target"])) || c.Data != "" && c.Data != row.Params["data"] {
				continue
			}
			for _, one := range c.Competitors {
				if one.Name == cell.name() {
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
}

// writeContests writes OUT/ranks.csv, wins.csv and contests.json.
func writeContests(out string, list []Contest) error {
	ranks := [][]string{{"net", "data", "target", "metric", "method", "mean", "lo", "hi", "n", "undefined", "rank", "rankLo", "rankHi", "best", "share"}}
	wins := [][]string{{"net", "data", "target", "metric", "a", "b", "fraction", "n", "statistic", "p", "exact", "pHolm"}}
	text := func(v float64) string { return number(&v) }
	for _, c := range list {
		place := []string{c.Net, c.Data, c.Target, c.Metric}
		for _, one := range c.Competitors {
			line := slices.Concat(place, []string{one.Name})
			if one.Rank > 0 {
				line = append(line, text(one.Mean), text(one.Lo), text(one.Hi), strconv.Itoa(one.N), strconv.Itoa(one.Undefined),
					text(one.Rank), text(one.RankLo), text(one.RankHi), text(one.Best), number(one.Share))
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
