package orchestrate

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/assay-xai/assay/dataset"
	"github.com/assay-xai/assay/internal/usage"
)

// AttributionFolders lists what is to be scored of a path: the folders of maps in and
// below it, such as the methods of an explain run, or itself where it is a file or
// has files of maps but no index.
func AttributionFolders(path string) ([]string, error) {
	if err := noMaps(path); err != nil {
		return nil, usage.Errorf("attributions: %w", err)
	}
	if filepath.Ext(path) == ".npz" {
		return []string{path}, nil
	}
	folders, err := dataset.FindMaps(path)
	if err != nil {
		return nil, err
	}
	if len(folders) == 0 {
		return []string{path}, nil
	}
	var out []string
	for _, f := range folders {
		out = append(out, f.Path)
	}
	return out, nil
}

// readIndex is the index of a folder of maps, or of that which a file of an explain
// run lies in; nil where there is none.
func readIndex(path string, folder bool) (*dataset.MapIndex, error) {
	if !folder {
		if index, err := dataset.ReadMapIndex(filepath.Dir(path)); err == nil && chunkOf(path) {
			return &index, nil
		}
		return nil, nil
	}
	index, err := dataset.ReadMapIndex(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return &index, err
}

// givenName is what maps of files are called: the method that their index names, or
// the file's name, with a hash where other files are called the same, and with where
// they are from where a method of the plan is: gradient (given: RUN).
func (r *Resolved) givenName(label string) string {
	name := givenTitle(r.files[label], label)
	for other, file := range r.files {
		if other != label && givenTitle(file, other) == name {
			return label
		}
	}
	if name == OptimumName || slices.ContainsFunc(r.Points, func(p Params) bool {
		method := p.Text(methodKey)
		return method != "" && (name == method || name == method+" "+p.Text(reduceKey))
	}) {
		return name + " " + givenFrom(r.files[label], label, name)
	}
	return name
}

// givenFrom says where maps are from: which run, or which file.
func givenFrom(file givenFile, label, name string) string {
	from, _, _ := strings.Cut(label, "#")
	from = strings.TrimSuffix(from, ".npz")
	if g, ok := file.(*givenMaps); ok && g.index != nil {
		for dir := filepath.Dir(g.Path); dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
			if run := filepath.Base(filepath.Dir(dir)); filepath.Base(dir) == MapsFolder && run != string(filepath.Separator) {
				from = run
				break
			}
		}
	}
	if from == name {
		return "(given)"
	}
	return "(given: " + from + ")"
}

func givenTitle(file givenFile, label string) string {
	g, ok := file.(*givenMaps)
	if !ok || g.index == nil || g.index.Method == "" {
		name, _, _ := strings.Cut(label, "#")
		return strings.TrimSuffix(name, ".npz")
	}
	if reduce := g.index.Reduce; reduce != "" && reduce != dataset.NoReduction {
		return g.index.Method + " " + reduce
	}
	return g.index.Method
}

// attributions are the maps of a point.
func (r *Resolved) attributions(p Params) (*givenMaps, error) {
	g, ok := r.files[p.Text(attributionsKey)].(*givenMaps)
	if !ok {
		return nil, usage.Errorf("attributions: %s has trajectories: want maps by image id, an .npz or a folder of them", p.Text(attributionsKey))
	}
	return g, nil
}

// someNames is how many names a message lists.
const someNames = 2

// nameList counts names and keeps the first few.
type nameList struct {
	count int
	first []string
}

func (n *nameList) add(name string) {
	if n.count++; n.count <= someNames {
		n.first = append(n.first, name)
	}
}

func (n *nameList) String() string {
	text := strings.Join(n.first, ", ")
	if n.count > len(n.first) {
		text += fmt.Sprintf(", and %d more", n.count-len(n.first))
	}
	return text
}

// checkAttributions compares given maps with the images: names, number, shapes and
// values. All that is wrong is in one error.
func (r *Resolved) checkAttributions(n *ResolvedNet, d *ResolvedData, p Params, shape []int) error {
	label := p.Text(attributionsKey)
	if label == "" {
		return nil
	}
	key := fmt.Sprint("attributions ", n.Index, " ", d.Index, " ", label, " ", p.Text(nanKey), shape)
	if r.checked[key] || r.faults[key] != nil {
		return r.faults[key]
	}
	g, err := r.attributions(p)
	if err != nil {
		return err
	}
	var missing, extra, shapes, bad, equal nameList
	wanted := map[string]bool{}
	for _, item := range d.Set.Items() {
		wanted[item.ID] = true
		if !g.Has(item.ID) {
			missing.add(item.ID)
			continue
		}
		values, have, err := g.Raw(item.ID)
		if err != nil {
			return usage.Errorf("attributions: %w", err)
		}
		if !mapFits(have, shape) {
			shapes.add(fmt.Sprintf("%s is %s", item.ID, times(have)))
			continue
		}
		switch m, same := describe(values, have); {
		case m.NonFinite > 0:
			bad.add(item.ID)
		case same:
			equal.add(item.ID)
		}
	}
	for _, id := range g.IDs() {
		if !wanted[id] {
			extra.add(id)
		}
	}
	var wrong []string
	if missing.count > 0 {
		text := fmt.Sprintf("%d of %d images have no map (%s)", missing.count, d.Set.Len(), &missing)
		if missing.count == d.Set.Len() {
			text += ": " + g.what()
		}
		if run := g.unfinished(); run != "" {
			text += fmt.Sprintf(": the run %s is unfinished, and assay run %s --out %[1]s goes on with it", run, filepath.Join(run, PlanFile))
		}
		wrong = append(wrong, text)
	}
	if extra.count > 0 && r.Plan.Data[d.Index].Limit == 0 {
		wrong = append(wrong, fmt.Sprintf("%d maps of no image (%s)", extra.count, &extra))
	}
	if shapes.count > 0 {
		wrong = append(wrong, fmt.Sprintf("%d maps of another size than %s (%s)", shapes.count, times(mapShape(shape)), &shapes))
	}
	if bad.count > 0 && p.Text(nanKey) != nanSkip {
		hint := ""
		if slices.ContainsFunc(r.Study.Parameters, func(p Parameter) bool { return p.Name == nanKey }) {
			hint = ": --skip-nan skips them"
		}
		wrong = append(wrong, fmt.Sprintf("%d maps with NaN or infinity (%s)%s", bad.count, &bad, hint))
	}
	if len(wrong) > 0 {
		if r.faults == nil {
			r.faults = map[string]error{}
		}
		r.faults[key] = &badMaps{usage.Errorf("attributions: %s: %s", filepath.Base(g.Path), strings.Join(wrong, "; "))}
		return r.faults[key]
	}
	if run := g.unfinished(); run != "" {
		r.warnOnce(fmt.Sprintf("attributions: the run %s is unfinished: it may have maps of some of its methods alone", run))
	}
	if bad.count > 0 {
		r.warnOnce(fmt.Sprintf("%s: %d of %d maps have values that are no numbers and are skipped (%s)", g.Path, bad.count, d.Set.Len(), &bad))
	}
	if equal.count > 0 {
		r.warnOnce(fmt.Sprintf("%s: all values are the same in %d of %d maps, which rank nothing (%s)", g.Path, equal.count, d.Set.Len(), &equal))
	}
	if i := g.index; i != nil {
		if i.Weights != "" && n.Hash != "" && i.Weights != n.Hash {
			r.warnOnce(fmt.Sprintf("%s: the maps are of net %s with other weights than those of %s here", g.Path, i.Net, n.Name))
		}
		r.noteTarget(i, g.Path, p.Text("target"))
	}
	if r.checked == nil {
		r.checked = map[string]bool{}
	}
	r.checked[key] = true
	return nil
}

// mapFits says that a map is one of inputs of a shape: [H,W], [1,H,W] or [C,H,W] of
// [C,H,W], [F] of [F].
func mapFits(have, input []int) bool {
	if len(input) == 1 || len(have) == 1 {
		return slices.Equal(have, input)
	}
	return slices.Equal(have[len(have)-2:], input[1:]) && (len(have) == 2 || have[0] == 1 || have[0] == input[0])
}

func nonFinite(values []float32) bool {
	return slices.ContainsFunc(values, func(v float32) bool { return math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) })
}
