package orchestrate

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/assay-xai/assay/internal/record"
	"github.com/assay-xai/assay/metrics"
)

// SummaryRow is one number of a run's summary: the mean of a metric over the
// images of one net, data and point of the grid.
type SummaryRow struct {
	Net    string `json:"net"`
	Params Params `json:"params"`
	Metric string `json:"metric"`
	// Mean over images; Lo and Hi bound it with 95 % confidence (percentiles of
	// a bootstrap over images).
	Mean float64 `json:"mean"`
	Lo   float64 `json:"lo"`
	Hi   float64 `json:"hi"`
	// N is the number of images, those that failed not counted.
	N int `json:"n"`
	// Reference is the published value, ReferenceSpread what was published
	// about its spread, Reading "agrees" or "differs", or "not measured": then N
	// is 0, there is no mean, and Reason says why.
	Reference       *float64 `json:"reference,omitempty"`
	ReferenceSpread *float64 `json:"referenceSpread,omitempty"`
	Reading         string   `json:"reading,omitempty"`
	Note            string   `json:"note,omitempty"`
	Reason          string   `json:"reason,omitempty"`
	// Of scores of maps: Undefined is the number of images without a value; ranks,
	// Best and Share are those of [Competitor].
	Undefined int      `json:"undefined,omitempty"`
	Rank      *float64 `json:"rank,omitempty"`
	RankLo    *float64 `json:"rankLo,omitempty"`
	RankHi    *float64 `json:"rankHi,omitempty"`
	Best      *float64 `json:"best,omitempty"`
	Share     *float64 `json:"share,omitempty"`
	// Shard is that of a run which is one, such as 2/4: the row is of its images alone.
	Shard string `json:"shard,omitempty"`
}

// MarshalJSON writes null for the mean and bounds of what was not measured.
func (row SummaryRow) MarshalJSON() ([]byte, error) {
	type plainRow SummaryRow
	if row.N > 0 {
		return json.Marshal(plainRow(row))
	}
	return json.Marshal(struct {
		plainRow
		Mean *float64 `json:"mean"`
		Lo   *float64 `json:"lo"`
		Hi   *float64 `json:"hi"`
	}{plainRow: plainRow(row)})
}

type summary struct {
	rows         []SummaryRow
	claims       []ClaimRow
	contests     []Contest // of studies of scores
	scored       bool
	keys         []string // parameters, in the study's order
	heads        []string // of their columns in CSV
	failed       int
	firstFailure string
	// shard is that of a run which is one, "" of whole runs.
	shard string
}

// into puts what was found into an outcome.
func (s *summary) into(o *Outcome) {
	o.Summary, o.Claims, o.Contests, o.Failed = s.rows, s.claims, s.contests, s.failed
}

// cell collects a metric of a group: for each image the sum over seeds, which
// are averaged first, so that an image counts once.
type cell struct {
	sum   map[int]float64
	count map[int]int
}

// summarise reads the records of units. Rows come in plan order and do not
// depend on the order in which records were written.
func summarise(path string, r *Resolved, units []Unit) (*summary, error) {
	byID := make(map[string]*Unit, len(units))
	for i := range units {
		byID[units[i].ID] = &units[i]
	}
	type group struct {
		unit      *Unit
		cells     []cell
		undefined map[int]bool
	}
	groups := map[string]*group{}
	var order []*group
	key := func(u *Unit) string { return fmt.Sprint(u.Net.Index, u.Data.Index, string(canonical(u.Params))) }
	for i := range units {
		if k := key(&units[i]); groups[k] == nil {
			groups[k] = &group{unit: &units[i], cells: make([]cell, len(r.Study.Metrics)), undefined: map[int]bool{}}
			order = append(order, groups[k])
		}
	}
	s := &summary{scored: r.Study.Row != nil, shard: r.Plan.Shard.String()}
	firstFailed := math.MaxInt
	seen := make(map[string]bool, len(units))
	// Sums over seeds are in unit order, whatever the records' order.
	values := make([]map[int]float64, len(r.Study.Metrics))
	for m := range values {
		values[m] = map[int]float64{}
	}
	undefined := map[int]bool{}
	err := record.Scan(path, func(rec record.Record) error {
		u, ours := byID[rec.ID]
		if !ours || seen[rec.ID] {
			return nil
		}
		seen[rec.ID] = true
		if rec.Score != nil && rec.Score.Undefined != "" {
			undefined[u.Order] = true
		}
		if rec.Error != "" {
			s.failed++
			if u.Order < firstFailed {
				firstFailed, s.firstFailure = u.Order, rec.Image+": "+rec.Error
			}
			return nil
		}
		return each(r, u, rec, func(m int, v float64) { values[m][u.Order] = v })
	})
	if err != nil {
		return nil, err
	}
	for i := range units {
		u := &units[i]
		g := groups[key(u)]
		for m := range values {
			if v, ok := values[m][u.Order]; ok {
				g.cells[m].add(u.Item, v)
			}
		}
		if undefined[u.Order] {
			g.undefined[u.Item] = true
		}
	}
	s.keys, s.heads = r.columns()
	var measured []measuredGroup
	var scored []*scoredCell
	for _, g := range order {
		group := measuredGroup{net: g.unit.Net.Name, values: map[string]map[int]float64{}}
		for m, metric := range r.Study.Metrics {
			id, params := r.rowOf(metric, g.unit.Params, g.unit.Data.Name)
			row, ok := g.cells[m].row(id)
			group.params, group.values[id] = params, g.cells[m].means()
			if s.scored {
				c := &scoredCell{net: g.unit.Net.Name, params: params, metric: id, values: group.values[id]}
				c.data, _ = params["data"].(string)
				for item := range g.undefined {
					if _, has := c.values[item]; !has {
						c.undefined++
					}
				}
				scored = append(scored, c)
				ok = ok || c.undefined > 0
			}
			if ok {
				row.Net, row.Params = g.unit.Net.Name, params
				row.compare(r.Plan.Reference)
				s.rows = append(s.rows, row)
			}
		}
		measured = append(measured, group)
	}
	s.claims = r.claims(measured)
	if s.contests, err = compareScores(scored); err != nil {
		return nil, err
	}
	annotate(s.rows, s.contests)
	s.rows = append(s.rows, r.notMeasured(s.rows)...)
	for i := range s.rows {
		s.rows[i].Shard = s.shard
	}
	return s, nil
}

// each hands over the metrics that a record has and the plan wants.
func each(r *Resolved, u *Unit, rec record.Record, take func(m int, v float64)) error {
	for m, metric := range r.Study.Metrics {
		if metric.Cost && !r.Plan.wantsCost(metric.ID) {
			continue
		}
		if metric.Value != nil {
			if v, ok := metric.Value(rec); ok {
				take(m, v)
			}
			continue
		}
		v, ok, err := metric.OfUnit(r, u, rec)
		if err != nil {
			return fmt.Errorf("metric %s of %s: %w", metric.ID, rec.Image, err)
		}
		if ok {
			take(m, v)
		}
	}
	return nil
}

func with(p Params, key string, value any) Params {
	out := Params{key: value}
	for k, v := range p {
		out[k] = v
	}
	return out
}

func (c *cell) add(item int, v float64) {
	if c.sum == nil {
		c.sum, c.count = map[int]float64{}, map[int]int{}
	}
	c.sum[item] += v
	c.count[item]++
}

// means are the values of images.
func (c *cell) means() map[int]float64 {
	out := make(map[int]float64, len(c.sum))
	for item, sum := range c.sum {
		out[item] = sum / float64(c.count[item])
	}
	return out
}

func (c *cell) row(metric string) (SummaryRow, bool) {
	if len(c.sum) == 0 {
		return SummaryRow{Metric: metric}, false
	}
	means := c.means()
	values := make([]float64, 0, len(means))
	for _, item := range slices.Sorted(maps.Keys(means)) {
		values = append(values, means[item])
	}
	m := metrics.Summarise(values, level, bootstrapSeed)
	return SummaryRow{Metric: metric, Mean: m.Mean, Lo: m.Lo, Hi: m.Hi, N: m.N}, true
}

// rowOf is what a row of the summary at a point is of: the metric, and the facts
// beside the net.
func (r *Resolved) rowOf(m Metric, point Params, data string) (string, Params) {
	id := m.ID
	if r.Study.Row != nil {
		id, point = r.Study.Row(r, point)
	}
	if len(r.Plan.Data) > 1 {
		point = with(point, "data", data)
	}
	return id, point
}

// Level and seed of the summary's intervals.
const (
	level         = .95
	bootstrapSeed = 0
)

// compare finds the published row that says the same of the same thing.
func (row *SummaryRow) compare(reference []map[string]any) {
	for _, ref := range reference {
		if row.matches(ref) {
			row.read(ref)
			return
		}
	}
}

// columns are the parameters of the study, and the data where there are several,
// with the heads of their columns: "reference" is the published value's.
func (r *Resolved) columns() (keys, heads []string) {
	if len(r.Plan.Data) > 1 {
		keys, heads = append(keys, "data"), append(heads, "data")
	}
	for _, p := range r.Study.Parameters {
		if p.Hidden {
			continue
		}
		keys, heads = append(keys, p.Name), append(heads, orElse(p.Column, p.Name))
	}
	return keys, heads
}

func (s *summary) write(out string) error {
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	var places []string
	if s.scored {
		places = []string{"undefined", "rank", "rankLo", "rankHi", "best", "share"}
	}
	last := []string{"reference", "referenceSpread", "reading", "reason"}
	if s.shard != "" {
		last = append(last, "shard")
	}
	w.Write(slices.Concat([]string{"net"}, s.heads, []string{"metric", "mean", "lo", "hi", "n"}, places, last))
	for _, row := range s.rows {
		line := []string{row.Net}
		for _, k := range s.keys {
			if v, ok := row.Params[k]; ok {
				line = append(line, plain(v))
			} else {
				line = append(line, "")
			}
		}
		if row.N > 0 {
			line = append(line, row.Metric, number(&row.Mean), number(&row.Lo), number(&row.Hi))
		} else {
			line = append(line, row.Metric, "", "", "")
		}
		line = append(line, strconv.Itoa(row.N))
		if s.scored {
			line = append(line, strconv.Itoa(row.Undefined), number(row.Rank), number(row.RankLo), number(row.RankHi), number(row.Best), number(row.Share))
		}
		line = append(line, number(row.Reference), number(row.ReferenceSpread), row.Reading, row.Reason)
		if s.shard != "" {
			line = append(line, s.shard)
		}
		w.Write(line)
	}
	w.Flush()
	if err := w.Error(); err != nil {
		return fmt.Errorf("writing the summary: %w", err)
	}
	if err := writeFile(filepath.Join(out, SummaryCSVFile), b.Bytes()); err != nil {
		return err
	}
	rows := s.rows
	if rows == nil {
		rows = []SummaryRow{}
	}
	if s.scored {
		if err := writeContests(out, s.contests); err != nil {
			return err
		}
	}
	if err := writeClaims(out, s.claims); err != nil {
		return err
	}
	return writeJSON(filepath.Join(out, SummaryJSONFile), rows)
}

func number(v *float64) string {
	if v == nil {
		return ""
	}
	return strconv.FormatFloat(*v, 'g', -1, 64)
}
