package orchestrate

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/assay-xai/assay/dataset"
	"github.com/assay-xai/assay/internal/usage"
)

// idVersion changes with the way ids are made.
const idVersion = 1

// canonical writes a value so that equal values are equal bytes: JSON with keys
// in order, no host, no path.
func canonical(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("orchestrate: an identity that is not JSON: %v", err)) // only our own plain types come here
	}
	return b
}

// units lists the plan's units: for every net, data and point the items, each
// with all seeds. The order keeps together what shares a net and a scene.
func (r *Resolved) units(ctx context.Context) ([]Unit, error) {
	seeds := r.Plan.Seeds
	if len(seeds) == 0 {
		seeds = []uint64{0}
	}
	var out []Unit
	seen := map[string]bool{} // units that Fit made equal come once
	for _, n := range r.Nets {
		for i := range r.Plan.Data {
			d := r.dataFor(n, i)
			if d == nil {
				continue // absent
			}
			base := r.base(n, d)
			for _, point := range r.Points {
				point, err := r.fit(n, d, point)
				var skip *inapplicable
				if errors.As(err, &skip) {
					continue
				}
				if err != nil {
					return nil, err
				}
				params, err := r.identity(ctx, d, point)
				if err != nil {
					return nil, err
				}
				for item := range d.Set.Len() {
					content, err := d.Set.ItemHash(ctx, item)
					if err != nil {
						return nil, err
					}
					it := d.Set.Items()[item]
					for _, seed := range seeds {
						u := Unit{Order: len(out), Net: n, Data: d, Item: item, Params: point, Seed: seed}
						u.ID = unitID(base, params, canonical([]any{it.ID, it.Class, content, seed}))
						if !seen[u.ID] {
							seen[u.ID] = true
							out = append(out, u)
						}
					}
				}
			}
		}
	}
	if r.Study.Later == nil {
		return out, nil
	}
	later, err := r.Study.Later(ctx, r, out)
	if err != nil {
		return nil, err
	}
	for i := range later {
		later[i].Order = len(out) + i
	}
	return append(out, later...), nil
}

// base is the part of units' ids that the net and the data decide.
func (r *Resolved) base(n *ResolvedNet, d *ResolvedData) []byte {
	preset := n.Preset.ForSet(d.Set)
	preset.Summary = "" // words, which resolved plans have not
	return canonical(map[string]any{
		"version": idVersion, "study": r.Study.ID, "code": r.Study.Code,
		"net": n.Info.Net, "name": n.Name, "weights": n.Hash, "classes": n.Info.Classes,
		"preset": preset, "device": r.Backend.Kind(),
		"precision": r.Plan.Precision, "batch": int(r.Plan.Batch),
	})
}

// identify gives a unit that reads another's record its id, of which the other's
// is part.
func (r *Resolved) identify(ctx context.Context, u *Unit) error {
	params, err := r.identity(ctx, u.Data, u.Params)
	if err != nil {
		return err
	}
	content, err := u.Data.Set.ItemHash(ctx, u.Item)
	if err != nil {
		return err
	}
	it := u.Data.Set.Items()[u.Item]
	u.ID = unitID(r.base(u.Net, u.Data), params, canonical([]any{it.ID, it.Class, content, u.Seed}), []byte(u.Source.ID))
	return nil
}

// stage is the number of units that have to run before, one after the other.
func (u *Unit) stage() int {
	n := 0
	for s := u.Source; s != nil; s = s.Source {
		n++
	}
	return n
}

// identity is a point with nothing left to defaults that may change.
func (r *Resolved) identity(ctx context.Context, d *ResolvedData, point Params) ([]byte, error) {
	full := maps.Clone(point)
	if r.Study.WholeData != nil && r.Study.WholeData(r, point) {
		whole, err := d.Set.ContentHash(ctx)
		if err != nil {
			return nil, err
		}
		full["data (hash)"] = whole
	}
	for _, p := range r.Study.Parameters {
		text, ok := point[p.Name].(string)
		if ok && p.Type == fileType {
			full[p.Name] = r.files[text].hash()
		}
		if !ok || p.Catalogue == "" {
			continue
		}
		s, err := r.Catalogue.spec(p.Catalogue, text)
		if err != nil {
			return nil, err
		}
		full[p.Name] = s.full
		if s.entry.Generator {
			full[p.Name+" (generator)"] = r.generator.Hash
		}
		if id, ok := s.params["image"].(string); ok && s.entry.ID == otherImageReference {
			i := slices.IndexFunc(d.Set.Items(), func(item dataset.Item) bool { return item.ID == id })
			if i < 0 {
				return nil, usage.Errorf("reference %s: no image of that id in %s: want one of its ids, for example image(image=%s)", s.short, d.Name, d.Set.Items()[0].ID)
			}
			if full[p.Name+" (hash)"], err = d.Set.ItemHash(ctx, i); err != nil {
				return nil, err
			}
		}
	}
	return canonical(full), nil
}

// otherImageReference is the imputer that takes another image of the data.
const otherImageReference = "image"

// unitIDBytes is enough that no two units of any run are called the same.
const unitIDBytes = 12

func unitID(parts ...[]byte) string {
	h := sha256.New()
	for _, p := range parts {
		h.Write(p)
		h.Write([]byte{'\n'})
	}
	return hex.EncodeToString(h.Sum(nil)[:unitIDBytes])
}

// facts are the parts of a resolved plan that results depend on, in the order
// in which differences are named. Paths, titles, the device's number and what
// the report shows are not among them.
func (p *Plan) facts() [][2]string {
	var out [][2]string
	add := func(key string, v any) {
		if b, ok := v.(Batch); ok {
			v = int(b)
		}
		out = append(out, [2]string{key, plain(v)})
	}
	add("study", p.Study)
	for i, n := range p.Nets {
		if n.Absent != "" {
			continue
		}
		at := fmt.Sprintf("nets[%d].", i)
		add(at+"net", n.Net)
		add(at+"name", n.Name)
		add(at+"weights (hash)", n.Hash)
		add(at+"classes", n.Classes)
		if n.Preset.Preset != nil {
			preset := *n.Preset.Preset
			preset.Summary = ""
			if preset.ID != "" {
				add(at+"preset", preset.ID)
			}
			add(at+"preset (values)", string(canonical(preset)))
		}
	}
	for i, d := range p.Data {
		if d.Absent != "" {
			continue
		}
		at := fmt.Sprintf("data[%d].", i)
		add(at+"split", d.Split)
		add(at+"limit", d.Limit)
		add(at+"items", d.Items)
		add(at+"content (hash)", d.Hash)
		if len(p.Data) > 1 {
			add(at+"name", d.Name)
		}
	}
	if p.Generator.Hash != "" {
		add("generator (hash)", p.Generator.Hash)
	}
	for _, k := range sortedKeys(p.Grid) {
		add("grid."+k, p.Grid[k])
	}
	for i, g := range p.Grids {
		add(fmt.Sprintf("grids[%d]", i), string(canonical(g)))
	}
	add("seeds", p.Seeds)
	add("device", strings.SplitN(p.Device, ":", 2)[0])
	add("precision", p.Precision)
	add("batch", p.Batch)
	add("threads", p.Threads)
	add("code", p.Code)
	return out
}

// plain prints a value alike whether it came from a flag or from YAML.
func plain(v any) string {
	switch x := v.(type) {
	case []any:
		parts := make([]string, len(x))
		for i := range x {
			parts[i] = plain(x[i])
		}
		return strings.Join(parts, ", ")
	case []uint64:
		parts := make([]string, len(x))
		for i := range x {
			parts[i] = fmt.Sprint(x[i])
		}
		return strings.Join(parts, ", ")
	case float64:
		return formatScalar(x)
	}
	return fmt.Sprint(v)
}

// present returns both plans without the nets and data that one of them had to
// do without: an optional plan goes on with what is there now.
func present(a, b *Plan) (*Plan, *Plan) {
	if !a.Optional || !b.Optional || len(a.Nets) != len(b.Nets) || len(a.Data) != len(b.Data) {
		return a, b
	}
	x, y := *a, *b
	x.Nets, y.Nets = slices.Clone(a.Nets), slices.Clone(b.Nets)
	for i := range x.Nets {
		why := orElse(x.Nets[i].Absent, y.Nets[i].Absent)
		x.Nets[i].Absent, y.Nets[i].Absent = why, why
	}
	x.Data, y.Data = slices.Clone(a.Data), slices.Clone(b.Data)
	for i := range x.Data {
		why := orElse(x.Data[i].Absent, y.Data[i].Absent)
		x.Data[i].Absent, y.Data[i].Absent = why, why
	}
	return &x, &y
}

// difference names the first fact in which two resolved plans differ, "" where
// they are one plan.
func difference(there, here *Plan) string { return differenceBetween(there, here, "there", "here") }

// differenceBetween is difference with words for the places of both plans.
func differenceBetween(there, here *Plan, atThere, atHere string) string {
	a, b := there.facts(), here.facts()
	value := func(list [][2]string, key string) (string, bool) {
		i := slices.IndexFunc(list, func(f [2]string) bool { return f[0] == key })
		if i < 0 {
			return "", false
		}
		return list[i][1], true
	}
	for _, f := range b {
		was, ok := value(a, f[0])
		// A limit or split that chooses the same items is no difference.
		if at, choice := cutAny(f[0], ".split", ".limit", ".items"); choice {
			x, _ := value(a, at+".content (hash)")
			y, _ := value(b, at+".content (hash)")
			if x == y {
				continue
			}
		}
		switch {
		case !ok:
			return fmt.Sprintf("%s is %s %s and not set %s", f[0], short(f[1]), atHere, atThere)
		case was != f[1]:
			return fmt.Sprintf("%s is %s %s and %s %s", f[0], short(was), atThere, short(f[1]), atHere)
		}
	}
	for _, f := range a {
		if _, ok := value(b, f[0]); !ok {
			return fmt.Sprintf("%s is %s %s and not set %s", f[0], short(f[1]), atThere, atHere)
		}
	}
	return ""
}

func cutAny(s string, suffixes ...string) (string, bool) {
	for _, suffix := range suffixes {
		if before, ok := strings.CutSuffix(s, suffix); ok {
			return before, true
		}
	}
	return s, false
}

// short keeps messages to one line: hashes and values of presets are long.
func short(s string) string {
	if s == "" {
		return "empty"
	}
	if len(s) > 64 {
		return s[:12] + "..."
	}
	return s
}
