package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
)

// summaryPage is the table of summary.csv.
type summaryPage struct {
	Header []string
	Rows   [][]summaryCell
	More   int
	// Open shows the table at once: there is nothing else, or published numbers
	// stand beside the measured ones.
	Open, Published bool
}

type summaryCell struct {
	Label, Text string
	Number      bool
}

func (r *run) summaryPage(open bool) *summaryPage {
	if len(r.summary) < 2 {
		return nil
	}
	header := r.summary[0]
	s := &summaryPage{Open: open}
	rows := r.measured()
	if len(rows) == 0 {
		return nil
	}
	if n := len(rows); n > maxRows {
		rows, s.More = rows[:maxRows], n-maxRows
	}
	// Columns that are empty, or that say the same everywhere and are no
	// number, only take room.
	var keep []int
	for c, name := range header {
		seen := map[string]bool{}
		for _, row := range rows {
			seen[row[c]] = true
		}
		_, varies := r.common[name]
		if len(seen) == 1 && (seen[""] || varies && len(rows) > 1) || name == "reason" {
			continue
		}
		keep = append(keep, c)
		s.Published = s.Published || name == "reference"
	}
	s.Open = s.Open || s.Published
	for _, c := range keep {
		s.Header = append(s.Header, factName(header[c]))
	}
	for _, row := range rows {
		var cells []summaryCell
		for _, c := range keep {
			text, isNumber := row[c], false
			if c := header[c]; c == "mean" || c == "lo" || c == "hi" || c == "reference" || c == "referenceSpread" || c == "best" || c == "share" || c == "deviation" || c == "error" {
				text, isNumber = shortNumber(text), true
			}
			cells = append(cells, summaryCell{factName(header[c]), text, isNumber || header[c] == "n"})
		}
		s.Rows = append(s.Rows, cells)
	}
	return s
}

// notMeasured is the reading of rows that say what was published and not measured.
const notMeasured = "not measured"

// cells finds a row's columns by name. Two columns may have one name, where a
// parameter is called as something of the summary; the last is the summary's.
func (r *run) cells(row []string) map[string]string {
	out := map[string]string{}
	for i, name := range r.summary[0] {
		if i < len(row) {
			out[name] = row[i]
		}
	}
	return out
}

// measured lists the rows of the summary that the page's table shows.
func (r *run) measured() [][]string {
	var out [][]string
	for _, row := range r.summary[1:] {
		c := r.cells(row)
		if c["reading"] == notMeasured || len(r.plan.Report.Metrics) > 0 && !slices.Contains(r.plan.Report.Metrics, c["metric"]) {
			continue
		}
		out = append(out, row)
	}
	return out
}

// missingRows are published rows, nets and data that nothing was measured for,
// for one reason.
type missingRows struct {
	Reason string
	Rows   []missingRow
}

type missingRow struct{ Net, Setting, Metric, Published string }

// missing lists what the summary says was not measured, by reason.
func (r *run) missing() []missingRows {
	var out []missingRows
	if len(r.summary) < 2 {
		return nil
	}
	header := r.summary[0]
	for _, row := range r.summary[1:] {
		c := r.cells(row)
		if c["reading"] != notMeasured {
			continue
		}
		m := missingRow{Net: c["net"], Metric: c["metric"], Published: shortNumber(c["reference"])}
		var parts []string
		for i, name := range header[:max(0, slices.Index(header, "metric"))] {
			if i > 0 && row[i] != "" {
				parts = append(parts, factName(name)+" "+row[i])
			}
		}
		m.Setting = strings.Join(parts, ", ")
		i := slices.IndexFunc(out, func(m missingRows) bool { return m.Reason == c["reason"] })
		if i < 0 {
			out = append(out, missingRows{Reason: c["reason"]})
			i = len(out) - 1
		}
		out[i].Rows = append(out[i].Rows, m)
	}
	return out
}

// claimRow is a line of claims.json.
type claimRow struct {
	Claim      string         `json:"claim"`
	Net        string         `json:"net"`
	Params     map[string]any `json:"params"`
	Metric     string         `json:"metric"`
	Difference *float64       `json:"difference"`
	Lo         *float64       `json:"lo"`
	Hi         *float64       `json:"hi"`
	N          int            `json:"n"`
	Reading    string         `json:"reading"`
	Reason     string         `json:"reason"`
}

// claimLine is a line of the page.
type claimLine struct {
	Claim, Metric, Difference, Bounds, Images, Reading, Settings, Reason, Class string
}

// claims reads what became of the plan's claims.
func (r *run) claims() []claimLine {
	text, err := os.ReadFile(r.summaryPath("claims.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var rows []claimRow
	if err == nil {
		err = json.Unmarshal(text, &rows)
	}
	if err != nil {
		r.note("claims.json cannot be read: %v", err)
		return nil
	}
	values := map[string]map[string]bool{}
	for _, row := range rows {
		for k, v := range row.facts() {
			if values[k] == nil {
				values[k] = map[string]bool{}
			}
			values[k][v] = true
		}
	}
	var out []claimLine
	for _, row := range rows {
		l := claimLine{Claim: row.Claim, Metric: row.Metric, Reading: row.Reading, Reason: row.Reason, Class: strings.ReplaceAll(row.Reading, " ", "-")}
		if row.Difference != nil && row.Lo != nil && row.Hi != nil {
			l.Difference, l.Images = decimal(*row.Difference, 4), fmt.Sprint(row.N)
			l.Bounds = missing
			if row.N > 1 {
				l.Bounds = decimal(*row.Lo, 4) + " … " + decimal(*row.Hi, 4)
			}
			var names, parts []string
			f := row.facts()
			for k := range f {
				if len(values[k]) > 1 {
					names = append(names, k)
				}
			}
			sortFacts(names)
			for _, k := range names {
				parts = append(parts, factText(k, f[k]))
			}
			l.Settings = strings.Join(parts, ", ")
		}
		out = append(out, l)
	}
	return out
}

func (row claimRow) facts() map[string]string {
	f := params(row.Params)
	if row.Net != "" {
		f["net"] = row.Net
	}
	return f
}
