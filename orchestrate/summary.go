package orchestrate

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
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
	// a bootstrap over images). Of one image (N) they are its value and bound nothing:
	// tables leave them out.
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
	// Of studies of curves, where there are several seeds: the deviation of the means of
	// each seed, and the standard error of their mean.
	Deviation *float64 `json:"deviation,omitempty"`
	Error     *float64 `json:"error,omitempty"`
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
	along        string // of studies of curves
	all          []line
	consistency  *Consistency // of study road
	keys         []string     // parameters, in the study's order
	heads        []string     // of their columns in CSV
	failed       int
	firstFailure string
	// shard is that of a run which is one, "" of whole runs.
	shard string
}

// into puts what was found into an outcome.
func (s *summary) into(o *Outcome) {
	o.Summary, o.Claims, o.Contests, o.Consistency, o.Failed = s.rows, s.claims, s.contests, s.consistency, s.failed
}

// summarise reads the records of units. Rows come in plan order and do not
// depend on the order in which records were written.
func summarise(path string, r *Resolved, units []Unit) (*summary, error) {
	byID := make(map[string]int, len(units))
	for i := range units {
		byID[units[i].ID] = i
	}
	groups, places := r.groups(units)
	s := &summary{scored: r.Study.Row != nil || r.Study.Contest != nil, along: r.Study.Along, shard: r.Plan.Shard.String()}
	firstFailed := math.MaxInt
	seen := make([]bool, len(units))
	err := record.Scan(path, func(rec record.Record) error {
		i, ours := byID[rec.ID]
		if !ours || seen[i] {
			return nil
		}
		seen[i] = true
		u := &units[i]
		if rec.Score != nil && rec.Score.Undefined != "" {
			places[i].group.undefined[u.Item] = true
		}
		if rec.Error != "" {
			s.failed++
			if u.Order < firstFailed {
				firstFailed, s.firstFailure = u.Order, rec.Image+": "+rec.Error
			}
			return nil
		}
		return r.take(places[i], rec)
	})
	if err != nil {
		return nil, err
	}
	s.keys, s.heads = r.columns()
	groups = append(groups, r.pool(groups)...)
	s.lines(r, groups)
	s.measure(r)
	return s, nil
}

// line is a row of the summary before its numbers are known.
type line struct {
	net    string
	params Params
	metric string
	cell   *cell
	// undefined are the images of scores without a value.
	undefined map[int]bool
	inner     bool
}

// lines lists what the summary has rows of, in plan order.
func (s *summary) lines(r *Resolved, groups []*group) {
	for _, g := range groups {
		for _, c := range g.columns {
			id, params := r.rowOf(c.metric, g.point, g.data.Name)
			if c.curve {
				params = with(params, r.Study.Along, c.at)
			}
			s.all = append(s.all, line{g.net.Name, params, id, c.cell, g.undefined, c.metric.Inner})
		}
	}
}

// measure computes the rows, what follows from them, and compares.
func (s *summary) measure(r *Resolved) {
	drawn := &samples{}
	var scored []*scoredCell
	var measured []measuredGroup
	rows := make([]SummaryRow, len(s.all))
	inParallel(len(rows), func(i int) {
		if !s.all[i].inner {
			rows[i] = s.row(r, s.all[i], drawn)
		}
	})
	for i, l := range s.all {
		if !l.inner {
			ok := l.cell.any()
			c, compared := r.scored(l)
			if compared {
				for item := range l.undefined {
					if _, has := c.values.means()[item]; !has {
						c.undefined++
					}
				}
				scored = append(scored, c)
				ok = ok || c.undefined > 0
			}
			if ok {
				rows[i].compare(r.Plan.Reference)
				s.rows = append(s.rows, rows[i])
			}
		}
		if len(r.Plan.Claims) > 0 {
			measured = append(measured, measuredGroup{l.net, l.params, map[string]*cell{l.metric: l.cell}})
		}
	}
	s.claims = r.claims(measured)
	s.contests = compareScores(scored, drawn)
	r.annotate(s.rows, s.contests)
	if r.Study.Together != nil {
		s.consistency = r.consistency(s.all)
		s.rows = append(s.rows, s.together(r, s.consistency)...)
	}
	s.rows = append(s.rows, r.notMeasured(s.rows)...)
	for i := range s.rows {
		s.rows[i].Shard = s.shard
	}
}

// row is the row of a line: empty where no image has a value.
func (s *summary) row(r *Resolved, l line, drawn *samples) SummaryRow {
	row := SummaryRow{Net: l.net, Params: l.params, Metric: l.metric}
	if !l.cell.any() {
		return row
	}
	var m metrics.Summary
	if s.along != "" { // many rows of the same images
		known := l.cell.resample(drawn)
		m = metrics.SummaryOf(known.values, known.sample, level)
		if spread := metrics.SpreadOf(l.cell.ofSeeds(r.Plan.Seeds)); spread.N > 1 {
			row.Deviation, row.Error = &spread.Deviation, &spread.Error
		}
	} else {
		m = metrics.Summarise(l.cell.perImage(), level, bootstrapSeed)
	}
	row.Mean, row.Lo, row.Hi, row.N = m.Mean, m.Lo, m.Hi, m.N
	return row
}

func with(p Params, key string, value any) Params {
	out := Params{key: value}
	for k, v := range p {
		out[k] = v
	}
	return out
}

// rowOf is what a row of the summary at a point is of: the metric, and the facts
// beside the net.
func (r *Resolved) rowOf(m Metric, point Params, data string) (string, Params) {
	id := m.ID
	if r.Study.Row != nil {
		id, point = r.Study.Row(r, point)
	}
	if label := point.Text(attributionsKey); label != "" && r.Study.Contest != nil {
		point = with(without(point, attributionsKey), methodKey, r.givenName(label))
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
	if along := r.Study.Along; along != "" {
		keys, heads = append(keys, along), append(heads, along)
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
	if s.along != "" {
		places = append(places, "deviation", "error")
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
			line = append(line, row.Metric, number(&row.Mean), boundOf(&row.Lo, row.N), boundOf(&row.Hi, row.N))
		} else {
			line = append(line, row.Metric, "", "", "")
		}
		line = append(line, strconv.Itoa(row.N))
		if s.scored {
			line = append(line, strconv.Itoa(row.Undefined), number(row.Rank), boundOf(row.RankLo, row.N), boundOf(row.RankHi, row.N), number(row.Best), number(row.Share))
		}
		if s.along != "" {
			line = append(line, number(row.Deviation), number(row.Error))
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
	if s.consistency != nil {
		if err := writeConsistency(out, s.consistency); err != nil {
			return err
		}
	}
	if err := writeClaims(out, s.claims); err != nil {
		return err
	}
	return writeJSON(filepath.Join(out, SummaryJSONFile), rows)
}

// boundOf writes a bound of what n images say, "" for one, which bounds nothing.
func boundOf(v *float64, n int) string {
	if n < 2 {
		return ""
	}
	return number(v)
}

func number(v *float64) string {
	if v == nil {
		return ""
	}
	return strconv.FormatFloat(*v, 'g', -1, 64)
}
