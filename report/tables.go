package report

import (
	"strconv"
	"strings"
)

// cell is a cell of a table; Sort is what its column sorts by, "" the text.
type cell struct {
	Text, Sort string
	Number     bool
	Anchor     string // of a card
	Sub        string // a remark behind the text
}

func numberCell(text string, v float64) cell {
	return cell{Text: text, Sort: strconv.FormatFloat(v, 'g', -1, 64), Number: true}
}

// groupTable compares groups: their varying facts and means over images.
type groupTable struct {
	Header []column
	Rows   []groupRow
}

type column struct {
	Name, Help string
	Number     bool
}

type groupRow struct {
	Cells []cell
	// Mark places mean and bounds of the value a point on a scale of 0..100
	// that all rows share.
	Mark *mark
}

type mark struct{ Mean, Lo, Width, Zero string }

func (r *run) groupTable(groups []*group, stats []statistics) *groupTable {
	t := &groupTable{}
	for _, k := range r.varying {
		t.Header = append(t.Header, column{Name: factName(k)})
	}
	if len(r.varying) == 0 {
		t.Header = append(t.Header, column{Name: "net"})
	}
	t.Header = append(t.Header, []column{
		{"images", "images with a result", true},
		{"value", "mean of the objective over images; the search maximises it", true},
		{"95 % bounds", "bounds of the mean: percentiles of a bootstrap over images", true},
		{"per point", "the value divided by the points of a curve, so that different numbers of patches compare", true},
		{"LeRF", "mean sum of the LeRF curve by probability: higher is better", true},
		{"MoRF", "mean sum of the MoRF curve by probability: lower is better", true},
		{"LeRF logit", "the same by logit", true},
		{"MoRF logit", "the same by logit", true},
		{"evaluations", "states that a plain search would score, all images", true},
		{"forwards", "states that the network really scored, all images", true},
		{"time", "of all searches", true},
	}...)
	lo, hi := 0.0, 0.0
	for _, s := range stats {
		lo, hi = min(lo, s.point.Lo), max(hi, s.point.Hi)
	}
	for i, g := range groups {
		s := stats[i]
		row := groupRow{}
		for _, v := range g.varying {
			row.Cells = append(row.Cells, cell{Text: v, Sort: v})
		}
		if len(r.varying) == 0 {
			row.Cells = append(row.Cells, cell{Text: g.net, Sort: g.net})
		}
		bounds := cell{Text: missing, Number: true}
		if s.images > 1 {
			bounds = numberCell(value(s.value.Lo)+" … "+value(s.value.Hi), s.value.Hi-s.value.Lo)
		}
		row.Cells = append(row.Cells,
			numberCell(grouped(int64(s.images)), float64(s.images)), numberCell(value(s.value.Mean), s.value.Mean), bounds,
			numberCell(decimal(s.point.Mean, 3), s.point.Mean),
			numberCell(value(s.prob.Le), s.prob.Le), numberCell(value(s.prob.Mo), s.prob.Mo),
			numberCell(value(s.logit.Le), s.logit.Le), numberCell(value(s.logit.Mo), s.logit.Mo),
			numberCell(grouped(s.evaluations), float64(s.evaluations)), numberCell(grouped(s.rows), float64(s.rows)),
			numberCell(seconds(s.seconds), s.seconds))
		if len(groups) > 1 && hi > lo {
			at := func(v float64) string { return coordinate((v - lo) / (hi - lo) * 100) }
			row.Mark = &mark{Mean: at(s.point.Mean), Lo: at(s.point.Lo), Width: coordinate((s.point.Hi - s.point.Lo) / (hi - lo) * 100), Zero: at(0)}
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// imageTable lists every result.
type imageTable struct {
	Header []column
	Rows   [][]cell
	More   int
}

func (r *run) imageTable(cards []card) *imageTable {
	anchors := map[string]string{}
	for _, c := range cards {
		anchors[c.Image] = c.Anchor
	}
	several, seeds, labels := len(r.groups) > 1, false, false
	first := r.entries[0].seed
	for _, e := range r.entries {
		seeds = seeds || e.seed != first
		labels = labels || e.class != nil
	}
	t := &imageTable{Header: []column{{Name: "image"}}}
	if several {
		t.Header = append(t.Header, column{Name: "setting"})
	}
	if seeds {
		t.Header = append(t.Header, column{"seed", "", true})
	}
	t.Header = append(t.Header, column{Name: "tracked class"})
	if labels {
		t.Header = append(t.Header, column{Name: "label"})
	}
	t.Header = append(t.Header,
		column{"p at start", "probability of the tracked class for the unchanged input", true},
		column{"value", "the objective, which the search maximises", true},
		column{"LeRF", "sum of the LeRF curve by probability: higher is better", true},
		column{"MoRF", "sum of the MoRF curve by probability: lower is better", true},
		column{"evaluations", "states that a plain search would score", true},
		column{"forwards", "states that the network really scored", true},
		column{"time", "of the search", true})
	for _, e := range r.entries {
		if !e.trace {
			continue
		}
		if len(t.Rows) == maxRows {
			t.More++
			continue
		}
		row := []cell{{Text: e.image, Sort: e.image, Anchor: anchors[e.image]}}
		if several {
			row = append(row, cell{Text: e.group.label, Sort: e.group.label})
		}
		if seeds {
			row = append(row, numberCell(strconv.FormatUint(e.seed, 10), float64(e.seed)))
		}
		target := r.class(e.net, e.target)
		row = append(row, cell{Text: target.String(), Sort: target.String()})
		if labels {
			c := cell{Text: missing}
			if e.class != nil {
				label := r.class(e.net, *e.class).String()
				c = cell{Text: label, Sort: label}
				if *e.class != e.target {
					c.Sub = "differs"
				}
			}
			row = append(row, c)
		}
		row = append(row, numberCell(probability(e.curve.Le[0]), e.curve.Le[0]), numberCell(value(e.value), e.value),
			numberCell(value(e.sums.Prob.Le), e.sums.Prob.Le), numberCell(value(e.sums.Prob.Mo), e.sums.Prob.Mo),
			numberCell(grouped(e.cost.Evaluations), float64(e.cost.Evaluations)),
			numberCell(grouped(e.cost.Forwards), float64(e.cost.Forwards)),
			numberCell(seconds(e.cost.Seconds), e.cost.Seconds))
		t.Rows = append(t.Rows, row)
	}
	t.trimZero("evaluations", "forwards")
	return t
}

// trimZero takes out columns that are 0 everywhere: not known.
func (t *imageTable) trimZero(names ...string) {
	for _, name := range names {
		for c, h := range t.Header {
			if h.Name != name {
				continue
			}
			zero := true
			for _, row := range t.Rows {
				zero = zero && strings.Trim(row[c].Text, "0") == ""
			}
			if zero {
				t.Header = append(t.Header[:c:c], t.Header[c+1:]...)
				for i, row := range t.Rows {
					t.Rows[i] = append(row[:c:c], row[c+1:]...)
				}
			}
			break
		}
	}
}
