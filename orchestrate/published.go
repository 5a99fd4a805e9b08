package orchestrate

import (
	"fmt"
	"math"
	"slices"
)

// Keys of a published row that are no parameters: they say what was published,
// or of what.
var (
	publishedFacts = []string{"value", "spread", "note", "tolerance", reasonKey}
	publishedKeys  = []string{"net", "data", "metric"}
)

// reasonKey stands in published rows of what is not there, such as a method that
// the catalogue lacks: they are listed as not measured, with this reason. They need
// no value.
const reasonKey = "reason"

// Readings of a row of the summary beside a published one.
const (
	ReadingAgrees      = "agrees"
	ReadingDiffers     = "differs"
	ReadingNotMeasured = "not measured"
)

// checkReference finds published rows that could not match anything.
func (s Study) checkReference(p *Plan) error {
	metrics := s.metricIDs()
	keys := slices.Concat(publishedFacts, publishedKeys)
	keys = append(keys, s.rowKeys()...)
	for i, m := range p.Report.Metrics {
		if !s.hasMetric(m) {
			return p.errorf(fmt.Sprintf("$.report.metrics[%d]", i), "metric %q: %s", m, DidYouMean(m, metrics))
		}
	}
	for i, row := range p.Reference {
		at := fmt.Sprintf("$.reference[%d]", i)
		if _, ok := toFloat(row["value"]); !ok && row[reasonKey] == nil {
			return p.errorf(at, "a published row without value")
		}
		for _, k := range sortedKeys(row) {
			if !slices.Contains(keys, k) {
				return p.errorf(at+"."+k, "published row: key %q: %s", k, DidYouMean(k, keys))
			}
		}
		if m, ok := row["metric"]; ok && !s.hasMetric(plain(m)) {
			return p.errorf(at+".metric", "published row: metric %q: %s", plain(m), DidYouMean(plain(m), metrics))
		}
	}
	return nil
}

// hasMetric says whether rows of a summary can be of a metric. Those that the grid
// names are looked at more closely when the plan is resolved.
func (s Study) hasMetric(id string) bool {
	if s.Row != nil {
		spec, err := ParseSpec(id)
		return err == nil && slices.ContainsFunc(ScoreEntries(), func(e Entry) bool { return e.ID == spec.Name })
	}
	return slices.Contains(s.metricIDs(), id)
}

// rowKeys are the parameters that rows of a summary have.
func (s Study) rowKeys() []string {
	keys := ids(s.Parameters, func(p Parameter) string { return p.Name })
	if s.Along != "" {
		keys = append(keys, s.Along)
	}
	return keys
}

// metricIDs lists what the metrics of a study are called.
func (s Study) metricIDs() []string {
	if s.Row != nil {
		return ids(ScoreEntries(), func(e Entry) string { return e.ID })
	}
	return ids(s.Shown(), func(m Metric) string { return m.ID })
}

// wantsCost says whether the plan asks for a metric of cost, which differs from
// run to run and is left out otherwise.
func (p *Plan) wantsCost(metric string) bool {
	for _, row := range p.Reference {
		if row["metric"] == metric {
			return true
		}
	}
	if slices.Contains(p.Report.Metrics, metric) {
		return true
	}
	return slices.ContainsFunc(p.Claims, func(c Claim) bool { return c.Metric == metric })
}

// read compares a row with a published one.
func (row *SummaryRow) read(ref map[string]any) {
	value, ok := toFloat(ref["value"])
	if !ok {
		return
	}
	row.Reference = &value
	if spread, ok := toFloat(ref["spread"]); ok {
		row.ReferenceSpread = &spread
	}
	row.Note, _ = ref["note"].(string)
	if tolerance, ok := toFloat(ref["tolerance"]); ok && row.N > 0 {
		row.Reading = ReadingDiffers
		if math.Abs(row.Mean-value) <= tolerance {
			row.Reading = ReadingAgrees
		}
	}
}

// matches says whether a published row says the same of the same thing: every
// key of it that is a parameter, the net, the data or the metric has to match.
func (row *SummaryRow) matches(ref map[string]any) bool {
	for k, want := range ref {
		var have any
		switch {
		case slices.Contains(publishedFacts, k):
			continue
		case k == "net":
			have = row.Net
		case k == "metric":
			have = row.Metric
		default:
			have = row.Params[k]
		}
		if have == nil || plain(have) != plain(want) {
			return false
		}
	}
	return true
}

// notMeasured lists what the summary lacks: published rows that nothing was
// measured for, and nets and data that are absent and have none.
func (r *Resolved) notMeasured(rows []SummaryRow) []SummaryRow {
	var out []SummaryRow
	told := map[string]bool{}
	for _, ref := range r.Plan.Reference {
		if slices.ContainsFunc(rows, func(row SummaryRow) bool { return row.matches(ref) }) {
			continue
		}
		row := SummaryRow{Params: Params{}, Reading: ReadingNotMeasured}
		for k, v := range ref {
			switch {
			case slices.Contains(publishedFacts, k):
			case k == "net":
				row.Net = plain(v)
			case k == "metric":
				row.Metric = plain(v)
			default:
				row.Params[k] = v
			}
		}
		data, _ := row.Params["data"].(string)
		if row.Reason = plain(orEmpty(ref[reasonKey])); row.Reason == "" {
			row.Reason = r.whyNot(row.Net, data, ref)
		}
		row.read(ref)
		told[row.Net], told["data "+data], told["reason "+row.Net+" "+row.Reason] = true, true, true
		out = append(out, row)
	}
	for _, n := range r.Plan.Nets {
		if n.Absent != "" && !told[n.name()] {
			out = append(out, SummaryRow{Net: n.name(), Params: Params{}, Reading: ReadingNotMeasured, Reason: n.Absent})
		}
	}
	for _, d := range r.Plan.Data {
		if d.Absent != "" && !told["data "+d.Name] {
			name := d.EntryName()
			out = append(out, SummaryRow{Params: Params{"data": name}, Reading: ReadingNotMeasured, Reason: d.Absent})
		}
	}
	for _, l := range r.Plan.LeftOut {
		if !told["reason "+l.Net+" "+l.Reason] {
			out = append(out, l.row())
		}
	}
	return out
}

// whyNot is the reason why nothing was measured of a published row, on a net and data.
func (r *Resolved) whyNot(net, data string, ref map[string]any) string {
	for _, n := range r.Plan.Nets {
		if n.Absent != "" && n.name() == net {
			return n.Absent
		}
	}
	for _, d := range r.Plan.Data {
		if d.Absent != "" && (d.Name == data || len(r.Plan.Data) == 1) {
			return d.Absent
		}
	}
	for _, l := range r.Plan.LeftOut {
		if l.covers(ref) {
			return l.Reason
		}
	}
	if r.Plan.AppliedScale != "" {
		return "scale " + r.Plan.AppliedScale + " does not measure it"
	}
	return "no unit of the plan measures it"
}

// Unmatched lists the published rows and claims of a plan that no point of its
// grid can match, in a form for messages: they are mistakes of a plan as it was
// published. So are rows that a point does match although they give a reason why
// nothing measures them.
func (r *Resolved) Unmatched() []string {
	var rows []SummaryRow
	for _, n := range r.Nets {
		for i, d := range r.Plan.Data {
			if d.Absent != "" {
				continue
			}
			for _, point := range r.Points {
				if fitted, err := r.fit(n, r.dataFor(n, i), point); err == nil {
					point = fitted
				}
				for _, point := range r.withSources(point) {
					for _, c := range r.Study.columnsOf(point) {
						id, params := r.rowOf(c.metric, point, d.Name)
						if c.curve {
							params = with(params, r.Study.Along, c.at)
						}
						rows = append(rows, SummaryRow{Net: n.Name, Metric: id, Params: params})
					}
					for _, p := range r.Study.Pooled {
						id, params := r.rowOf(p.Metric, without(point, p.Over), d.Name)
						rows = append(rows, SummaryRow{Net: n.Name, Metric: id, Params: params})
					}
					for _, m := range r.Study.Together {
						id, params := r.rowOf(m, togetherParams(point), d.Name)
						rows = append(rows, SummaryRow{Net: n.Name, Metric: id, Params: params})
					}
				}
			}
		}
	}
	var out []string
	for _, ref := range r.Plan.Reference {
		if slices.ContainsFunc(rows, func(row SummaryRow) bool { return row.matches(ref) }) == (ref[reasonKey] != nil) {
			out = append(out, "reference "+string(canonical(ref)))
		}
	}
	for _, c := range r.Plan.Claims {
		for _, side := range []map[string]any{c.Higher, c.Lower} {
			if side != nil && !slices.ContainsFunc(rows, func(row SummaryRow) bool { return row.matches(side) }) {
				out = append(out, "claim "+string(canonical(side)))
			}
		}
	}
	return out
}
