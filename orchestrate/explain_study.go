package orchestrate

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/assay-xai/assay/dataset"
	"github.com/assay-xai/assay/internal/record"
	"github.com/assay-xai/assay/internal/usage"
)

// explainStudy makes maps of attribution: one unit is the map of an image by a
// method on a net. Maps go to files of their own (explain_store.go), numbers that
// describe them to records.
func explainStudy() Study {
	return Study{
		ID:         explainID,
		Summary:    "maps of attribution by any methods",
		Code:       "explain/1",
		Seeded:     true,
		Parameters: explainParameters(),
		Check:      checkExplain,
		Fit:        fitExplain,
		Rows:       explainRows,
		Files:      openMapStore,
		Merge:      mergeMaps,
		Run:        runExplain,
		Metrics:    explainMetrics(),
	}
}

// explainID is the study that keeps maps; the others are its parameters.
const (
	explainID = "explain"
	methodKey = "method"
	reduceKey = "reduce"
)

func explainParameters() []Parameter {
	return []Parameter{
		targetParameter(targetPredicted),
		{Name: methodKey, Type: "spec", Default: "gradient", Catalogue: methods,
			Summary: "attribution methods of assay list methods, with their parameters: smoothgrad(integrated-gradients,samples=15)"},
		{Name: reduceKey, Type: "string", Default: dataset.NoReduction,
			Choices: ids(dataset.MapReductions(), func(r dataset.MapReduction) string { return r.ID }),
			Summary: "what becomes of a map's channels"},
	}
}

// MapsPlan says how maps of attribution are kept.
type MapsPlan struct {
	// Formats are those of MapFormats; .npz is there always.
	Formats []string `yaml:"formats,omitempty"`
	// Overlays asks for a picture of every image with its map; nil: where a data
	// entry has at most 20 images.
	Overlays *bool `yaml:"overlays,omitempty"`
}

// npzFormat is what maps are kept as whatever other formats are wanted.
const npzFormat = "npz"

// MapFormats lists the formats of maps.
func MapFormats() []string {
	out := []string{npzFormat}
	for _, f := range extraFormats() {
		out = append(out, f.id)
	}
	return out
}

// formats are those of a plan, npz first, each once.
func (m MapsPlan) formats() []string {
	out := []string{npzFormat}
	for _, f := range m.Formats {
		if !slices.Contains(out, f) {
			out = append(out, f)
		}
	}
	return out
}

func (p *Plan) checkMaps(study Study) error {
	if study.ID != explainID && (p.Maps.Formats != nil || p.Maps.Overlays != nil) {
		return p.errorf("$.maps", "study %s makes no maps: want no maps: in its plan", study.ID)
	}
	for i, f := range p.Maps.Formats {
		if !slices.Contains(MapFormats(), f) {
			return p.errorf(fmt.Sprintf("$.maps.formats[%d]", i), "format %q: %s", f, DidYouMean(f, MapFormats()))
		}
	}
	return nil
}

// checkExplain has nothing to complete: the catalogue knows methods' parameters.
func checkExplain(_ *Resolved, p Params) (Params, error) { return p, nil }

// fitExplain looks for what a net cannot do before anything runs.
func fitExplain(r *Resolved, n *ResolvedNet, d *ResolvedData, p Params) (Params, error) {
	method, name, err := r.Catalogue.Method(p.Text(methodKey))
	if err != nil {
		return nil, err
	}
	shape, err := r.shapeOf(n, d)
	if err != nil {
		return nil, err
	}
	for m := &method; m != nil; m = m.Base {
		e, err := findEntry(string(methods), m.ID, r.Catalogue.Methods)
		if err != nil {
			return nil, err
		}
		if e.Needs == "graph" && n.Info.BlackBox {
			return nil, &inapplicable{usage.Errorf("method %s needs the graph of the net, and net %s is a black box (%s)", name, n.Name, n.Info.Reason)}
		}
		if err := checkLayer(n, name, e, m); err != nil {
			return nil, err
		}
		if err := r.checkMethodImputer(name, m, shape); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// layerKey is the parameter of methods that name a layer; "" is the net's default.
const layerKey = "layer"

// mapsFamily is the family of methods that look at a layer of maps, [C,h,w].
const mapsFamily = "cam"

func checkLayer(n *ResolvedNet, name string, e Entry, m *MethodSpec) error {
	layer, _ := m.Params[layerKey].(string)
	if len(n.Info.Layers) == 0 {
		return nil
	}
	if e.Family == mapsFamily {
		if err := checkMapLayer(n, name, orElse(layer, n.Info.DefaultLayer)); err != nil {
			return err
		}
	}
	if layer == "" {
		return nil
	}
	var names []string
	for _, l := range n.Info.Layers {
		names = append(names, l.Name)
	}
	if slices.Contains(names, layer) {
		return nil
	}
	const few = 12
	hint := "assay list layers --net " + n.Info.Net + " shows them"
	if near := Nearest(layer, names); len(near) > 0 {
		hint = "did you mean " + strings.Join(near, " or ") + "? " + hint
	} else if len(names) <= few {
		hint = "want one of " + strings.Join(names, ", ")
	}
	// Where a plan has several nets, a layer of one of them is left out for the others.
	return &inapplicable{usage.Errorf("method %s: net %s has no layer %q: %s", name, n.Name, layer, hint)}
}

// checkMapLayer says that a method of mapsFamily finds no layer of maps in a net.
func checkMapLayer(n *ResolvedNet, name, layer string) error {
	if i := slices.IndexFunc(n.Info.Layers, func(l Layer) bool { return l.Name == layer }); i >= 0 {
		if have := n.Info.Layers[i].Outputs; len(have) != 3 {
			return &inapplicable{usage.Errorf("method %s: layer %s of net %s gives %v: want one of maps, [C,h,w]%s", name, layer, n.Name, have, layersOfMaps(n))}
		}
		return nil
	}
	if layer == "" {
		return &inapplicable{usage.Errorf("method %s needs a layer of maps, [C,h,w], and net %s has none of its own for it%s", name, n.Name, layersOfMaps(n))}
	}
	return nil
}

// layersOfMaps is a hint: the last layer of maps that a net has.
func layersOfMaps(n *ResolvedNet) string {
	for _, l := range slices.Backward(n.Info.Layers) {
		if len(l.Outputs) == 3 {
			return ": layer=" + l.Name + " would be one"
		}
	}
	return ": it has no such layer at all, so want another method"
}

// Rows of a method that an image surely asks for: what its parameters say that
// count evaluations, 1 where they say nothing, and many where only forwards are
// asked for, which perturbation is made of.
const manyRows = 1 << 16

// countKeys are parameters that multiply evaluations.
var countKeys = []string{"samples", "steps", "permutations"}

func (c Catalogue) rowsOf(m *MethodSpec) int {
	rows := 1
	for ; m != nil; m = m.Base {
		e, err := findEntry(string(methods), m.ID, c.Methods)
		if err == nil && e.Family == "perturbation" {
			return manyRows
		}
		for _, k := range countKeys {
			if n, ok := toFloat(m.Params[k]); ok && n > 1 {
				rows = int(min(float64(rows)*n, manyRows))
			}
		}
	}
	return rows
}

// explainRows is the most rows that a forward can have use of: the images at once,
// each with all evaluations of the most expensive method.
func explainRows(r *Resolved) int {
	images, rows := 0, 1
	for _, d := range r.Data {
		images = max(images, d.Set.Len())
	}
	for _, p := range r.Points {
		if m, _, err := r.Catalogue.Method(p.Text(methodKey)); err == nil {
			rows = max(rows, r.Catalogue.rowsOf(&m))
		}
	}
	return min(max(images, 1)*rows, manyRows)
}

func explainMetrics() []Metric {
	metric := func(id, summary string, get func(record.Map) (float64, bool)) Metric {
		return Metric{ID: id, Summary: summary, Undirected: true, Under: []string{methodKey, reduceKey}, Value: func(r record.Record) (float64, bool) {
			if r.Map == nil {
				return 0, false
			}
			return get(*r.Map)
		}}
	}
	cost := func(id, summary string, get func(record.Cost) float64) Metric {
		return Metric{ID: id, Summary: summary, Cost: true, Value: func(r record.Record) (float64, bool) { return get(r.Cost), r.Map != nil }}
	}
	return []Metric{
		metric("map-sum", "sum of the map's values", func(m record.Map) (float64, bool) { return m.Sum, true }),
		metric("map-norm", "Euclid's norm of the map", func(m record.Map) (float64, bool) { return m.Norm, true }),
		metric("non-finite", "fraction of the map's values that are no numbers", func(m record.Map) (float64, bool) { return m.NonFinite, true }),
		metric("delta", "magnitude of the gap of completeness: the map's sum against the change of the output", func(m record.Map) (float64, bool) {
			if m.Delta == nil {
				return 0, false
			}
			return math.Abs(*m.Delta), true
		}),
		cost("seconds", "seconds an image (in summaries of plans that ask for it)", func(c record.Cost) float64 { return c.Seconds }),
		cost("forwards", "rows an image that the net ran forwards (likewise)", func(c record.Cost) float64 { return float64(c.Forwards) }),
		cost("backwards", "rows an image whose gradient was taken (likewise)", func(c record.Cost) float64 { return float64(c.Backwards) }),
	}
}

// describe measures a map; equal says that all its values are one.
func describe(values []float32, shape []int) (m record.Map, equal bool) {
	m = record.Map{Shape: shape}
	bad, first, square := 0, true, 0.0
	equal = len(values) > 1
	for _, v32 := range values {
		v := float64(v32)
		if math.IsNaN(v) || math.IsInf(v, 0) {
			bad++
			equal = false
			continue
		}
		if first {
			m.Min, m.Max, first = v, v, false
		}
		m.Min, m.Max = min(m.Min, v), max(m.Max, v)
		m.Sum += v
		square += v * v
	}
	m.Norm = math.Sqrt(square)
	m.NonFinite = float64(bad) / float64(max(1, len(values)))
	return m, equal && m.Min == m.Max
}

// mapSetKey is what maps of one folder share.
func mapSetKey(u *Unit) string {
	return fmt.Sprint(u.Net.Index, " ", u.Data.Index, " ", u.Seed, " ", string(canonical(u.Params)))
}

// sortUnits puts the units of an image together, in the plan's order of points.
func sortUnits(units []Unit) []Unit {
	out := slices.Clone(units)
	slices.SortStableFunc(out, func(a, b Unit) int {
		if a.Data != b.Data {
			return a.Data.Index - b.Data.Index
		}
		return a.Item - b.Item
	})
	return out
}
