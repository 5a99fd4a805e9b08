package report

import (
	"cmp"
	"context"
	"fmt"
	"html/template"
	"math"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/assay-xai/assay/dataset"
	"github.com/assay-xai/assay/internal/heat"
)

// explainPage shows maps of attribution side by side: a contact sheet a net, rows are
// images, columns methods.
type explainPage struct {
	Sheets  []sheet
	Methods []methodLine
	// MoreImages are not shown, MoreColumns neither.
	MoreImages, MoreColumns int
	// Deltas says that some method has a gap of completeness.
	Deltas bool
	// What the legend shows.
	Diverging, Sequential   bool
	DivergingBar, Sequenced template.CSS
	Side                    int

	facts                    []fact
	images, methods, results int
}

// sheet is the table of pictures of a net.
type sheet struct {
	Title   string
	Columns []string
	Rows    []sheetRow
}

type sheetRow struct {
	Image, Target string
	P             string // probability of the target, "" where unknown
	View          *view
	Defined       bool // the view's picture stands in an earlier sheet
	NoView        string
	Cells         []sheetCell
}

// sheetCell is a map. Why says why there is none, or what is wrong with it.
type sheetCell struct {
	Heat     template.URL
	W, H     int
	ViewID   string // of the image below the map, "" where it does not fit
	Describe string
	Why      string
	Wide     bool // a row of a table
	Signed   bool
}

// methodLine is a row of the table of methods.
type methodLine struct {
	Label               string
	Maps, Equal, Bad    int
	Seconds             float64
	Forwards, Backwards string
	Delta               string
}

const (
	// sheetSide bounds a picture of a map: finer structure is averaged.
	sheetSide = 112
	// sheetColumns bounds the methods of a sheet.
	sheetColumns = 60
)

func (r *run) explainPage(ctx context.Context) (*explainPage, error) {
	p := &explainPage{Side: sheetSide, images: len(r.byImage), results: len(r.entries)}
	slices.SortStableFunc(r.groups, r.comparePlanned)
	for _, g := range r.groups {
		p.Methods = append(p.Methods, newMethodLine(g))
		p.Deltas = p.Deltas || p.Methods[len(p.Methods)-1].Delta != missing
	}
	maps := r.openMaps()
	defer maps.close()
	shown := r.shown()
	p.MoreImages = len(r.byImage) - len(shown)
	defined := map[imageKey]*view{}
	var nets []string
	for _, g := range r.groups {
		if !slices.Contains(nets, g.net) {
			nets = append(nets, g.net)
		}
	}
	for i, net := range nets {
		var columns []*group
		for _, g := range r.groups {
			if g.net == net {
				columns = append(columns, g)
			}
		}
		p.methods = max(p.methods, len(columns))
		if len(columns) > sheetColumns {
			p.MoreColumns = max(p.MoreColumns, len(columns)-sheetColumns)
			columns = columns[:sheetColumns]
		}
		s, signed := sheet{}, make([]bool, len(columns))
		if len(nets) > 1 {
			s.Title = net
		}
		for j, g := range columns {
			signed[j] = g.signedOn(shown)
			s.Columns = append(s.Columns, r.columnName(g))
		}
		for j, k := range shown {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			row, ok, err := r.sheetRow(p, k, columns, signed, maps, defined, fmt.Sprintf("v%d-%d", i, j))
			if err != nil {
				return nil, err
			}
			if ok {
				s.Rows = append(s.Rows, row)
			}
		}
		p.Sheets = append(p.Sheets, s)
	}
	p.DivergingBar, p.Sequenced = template.CSS(divergingGradient()), template.CSS(heatGradient())
	p.facts = r.explainFacts(p)
	return p, nil
}

// comparePlanned puts groups in the plan's order of nets and methods.
func (r *run) comparePlanned(a, b *group) int {
	if a.net != b.net {
		return r.compareGroups(a, b)
	}
	order := cmp.Compare(r.planPlace("method", a.method), r.planPlace("method", b.method))
	for _, k := range []string{"reduce", "target"} {
		order = cmp.Or(order, cmp.Compare(r.planPlace(k, a.params[k]), r.planPlace(k, b.params[k])))
	}
	return order
}

// planPlace is where a value stands in the plan's lists of a parameter.
func (r *run) planPlace(key, value string) int {
	n := 0
	for _, grid := range append([]map[string]any{r.plan.Grid}, r.plan.Grids...) {
		list, ok := grid[key].([]any)
		if !ok {
			list = []any{grid[key]}
		}
		for _, v := range list {
			if plain(v) == value {
				return n
			}
			n++
		}
	}
	return n
}

// columnName is the method with what else differs, the net and the data left out.
func (r *run) columnName(g *group) string {
	varying := slices.DeleteFunc(slices.Clone(r.varying), func(k string) bool { return k == "net" || k == "data" || k == "method" })
	facts := g.facts()
	if more := g.title(varying, facts); more != g.net {
		return g.method + " · " + more
	}
	return g.method
}

// sheetRow is the row of an image, false where none of the groups has it.
func (r *run) sheetRow(p *explainPage, k imageKey, columns []*group, signed []bool, maps *openedMaps, defined map[imageKey]*view, id string) (row sheetRow, ok bool, err error) {
	row = sheetRow{Image: k.id}
	if row.View = defined[k]; row.View != nil {
		row.Defined = true
	} else if row.View, row.NoView = r.openView(k, id); row.View != nil {
		defined[k] = row.View
	}
	for i, g := range columns {
		cell := sheetCell{Why: "no result"}
		if at := slices.IndexFunc(g.entries, func(e *entry) bool { return e.key() == k }); at >= 0 {
			e := g.entries[at]
			if row.Target == "" {
				row.Target, row.P = r.class(e.net, e.target).String(), targetProbability(e)
			}
			if cell, err = r.sheetCell(p, e, row, signed[i], maps); err != nil {
				return row, false, err
			}
			ok = true
		}
		row.Cells = append(row.Cells, cell)
	}
	return row, ok, nil
}

func targetProbability(e *entry) string {
	if e.prediction == nil {
		return ""
	}
	if at := slices.Index(e.prediction.Classes, e.target); at >= 0 {
		return probability(e.prediction.Probabilities[at])
	}
	return ""
}

// signedOn says that a method has negative values on any of the images, so that all
// its pictures of a page have one scale of colours.
func (g *group) signedOn(shown []imageKey) bool {
	return slices.ContainsFunc(g.entries, func(e *entry) bool { return e.stats != nil && e.stats.Min < 0 && slices.Contains(shown, e.key()) })
}

func (r *run) sheetCell(p *explainPage, e *entry, row sheetRow, signed bool, maps *openedMaps) (sheetCell, error) {
	values, shape, why := maps.read(e)
	if why != "" {
		return sheetCell{Why: why}, nil
	}
	cell := sheetCell{}
	if len(shape) == 1 {
		shape, cell.Wide = []int{1, shape[0]}, true
	}
	m := heat.NewMap(values, shape)
	cell.W, cell.H = m.W, m.H
	if v := row.View; v != nil && v.W == m.W && v.H == m.H && r.sameView(e.net) {
		cell.ViewID = v.ID
	}
	small := m.Shrunk(sheetSide)
	small.Signed = small.Signed || signed
	cell.Signed = small.Signed
	p.Diverging, p.Sequential = p.Diverging || small.Signed, p.Sequential || !small.Signed
	cell.Describe = fmt.Sprintf("%s on %s: the colours end at %s", e.group.method, e.image, strconv.FormatFloat(small.Scale, 'g', 3, 64))
	if e.stats != nil && e.stats.NonFinite > 0 {
		cell.Why = percent(e.stats.NonFinite, 1) + " not finite"
	} else if e.stats != nil && e.stats.Min == e.stats.Max {
		cell.Why = "all values equal"
	}
	var err error
	cell.Heat, err = pngURL(small.Image())
	return cell, err
}

// sameView says that a net sees the part of an image that views show, which is the
// first net's.
func (r *run) sameView(net string) bool {
	var first map[string]any
	for _, n := range r.plan.Nets {
		if n.Absent != "" {
			continue
		}
		preset, _ := n.Preset.(map[string]any)
		if first == nil {
			first = preset
		}
		if n.Name != net && (n.Name != "" || n.Net != net) {
			continue
		}
		for _, key := range []string{"resize", "height", "width", "cropHeight", "cropWidth"} {
			if plain(preset[key]) != plain(first[key]) {
				return false
			}
		}
	}
	return true
}

// openedMaps are the folders of maps of a run, opened when they are asked for.
type openedMaps struct {
	folders []dataset.MapFolder
	open    map[string]*dataset.Maps
	bad     map[string]string
}

func (r *run) openMaps() *openedMaps {
	m := &openedMaps{open: map[string]*dataset.Maps{}, bad: map[string]string{}}
	root := filepath.Join(r.out, "maps")
	if !isDir(root) {
		return m
	}
	var err error
	if m.folders, err = dataset.FindMaps(root); err != nil {
		r.note("the maps cannot be read: %v", err)
	}
	return m
}

// read is the map of an entry; why says why there is none.
func (m *openedMaps) read(e *entry) (values []float32, shape []int, why string) {
	at := slices.IndexFunc(m.folders, func(f dataset.MapFolder) bool {
		params := e.group.params
		data, several := params["data"]
		return f.Net == e.net && f.Method == e.group.method && f.Reduce == params["reduce"] && f.Target == params["target"] && f.Seed == e.seed && (!several || f.Data == data)
	})
	if at < 0 {
		return nil, nil, "no file"
	}
	path := m.folders[at].Path
	if m.open[path] == nil && m.bad[path] == "" {
		opened, err := dataset.BrowseMaps(path)
		if err != nil {
			m.bad[path] = "unreadable"
		} else {
			m.open[path] = opened
		}
	}
	if m.bad[path] != "" {
		return nil, nil, m.bad[path]
	}
	values, shape, err := m.open[path].Raw(e.image)
	if err != nil {
		return nil, nil, "unreadable"
	}
	return values, shape, ""
}

func (m *openedMaps) close() {
	for _, o := range m.open {
		o.Close()
	}
}

func newMethodLine(g *group) methodLine {
	l := methodLine{Label: g.label, Delta: missing, Forwards: missing, Backwards: missing}
	deltas, delta := 0, 0.0
	var forwards, backwards int64
	for _, e := range g.entries {
		l.Maps++
		l.Seconds += e.cost.Seconds
		forwards += e.cost.Forwards
		backwards += e.cost.Backwards
		s := e.stats
		switch {
		case s == nil:
			continue
		case s.NonFinite > 0:
			l.Bad++
		case s.Min == s.Max:
			l.Equal++
		}
		if s.Delta != nil {
			deltas++
			delta += math.Abs(*s.Delta)
		}
	}
	if l.Maps > 0 {
		n := float64(l.Maps)
		l.Seconds /= n
		l.Forwards, l.Backwards = number4(float64(forwards)/n), number4(float64(backwards)/n)
	}
	if deltas > 0 {
		l.Delta = number4(delta / float64(deltas))
	}
	return l
}

func number4(v float64) string { return strconv.FormatFloat(v, 'g', 4, 64) }

// divergingGradient is the colour map of signed maps as a CSS gradient's stops.
func divergingGradient() string {
	const steps = 16
	s := ""
	for i := range steps + 1 {
		if i > 0 {
			s += ","
		}
		c := heat.Diverging(2*float64(i)/steps - 1)
		s += fmt.Sprintf("rgba(%d,%d,%d,%.3f)", c.R, c.G, c.B, float64(c.A)/255)
	}
	return s
}

func (r *run) explainFacts(p *explainPage) []fact {
	out := []fact{{"images", grouped(int64(p.images)), ""}, {"methods", grouped(int64(p.methods)), ""}, {"maps", grouped(int64(p.results)), ""}}
	total := 0.
	bad := 0
	for _, e := range r.entries {
		total += e.cost.Seconds
		if e.stats != nil && e.stats.NonFinite > 0 {
			bad++
		}
	}
	out = append(out, fact{"computing", seconds(total), "without reading images"})
	if bad > 0 {
		out = append(out, fact{"not finite", grouped(int64(bad)), "maps with NaN or infinity"})
	}
	return out
}

func (r *run) explainLede() []string {
	return []string{"What in an image made the network say what it said? Every method gives a map: a number for every place. They often disagree, and none of them is right because it looks so: " +
		"“assay score” measures how good maps are.",
		"The arrays are in maps/, one folder a method, with an index.json that says what they are."}
}
