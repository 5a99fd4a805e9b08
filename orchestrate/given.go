package orchestrate

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/assay-xai/assay/dataset"
	"github.com/assay-xai/assay/internal/record"
	"github.com/assay-xai/assay/internal/usage"
	"github.com/assay-xai/assay/trace"
)

// Given orders of deletion: start map takes them from maps of attribution by image
// id (package dataset, Maps) or from what another run found.

const (
	// startMap is the start that takes a given trajectory, mapKey the parameter
	// that says where from.
	startMap = "map"
	mapKey   = "map"
	// fileType is the type of parameters that name a file.
	fileType = "file"
)

// givenFile is an opened file of maps or trajectories.
type givenFile interface {
	// hash is that of what orders depend on.
	hash() string
	// check says, as an error of usage, that there is no order for an item of a
	// unit on inputs of a shape ([H,W] or [F]).
	check(u Unit, shape []int) error
	// order is the unit's trajectory over the features of a feature map.
	order(u Unit, shape []int, featureMap []int32, features int) ([]int, error)
	Close() error
}

// openFiles opens the files that the grid names, so that the points can name them
// by their content: NAME#HASH.
func (r *resolver) openFiles(ctx context.Context) error {
	for _, d := range r.Study.Parameters {
		if d.Type != fileType {
			continue
		}
		for _, g := range r.Plan.parts() {
			values, err := r.Study.values(r.Plan, g, d)
			if err != nil {
				return err
			}
			for _, v := range values {
				if text, ok := v.(string); ok {
					open := openGiven
					switch d.Name {
					case boxesKey:
						open = openBoxes
					case attributionsKey:
						open = openAttributions
					}
					if err := r.openFile(ctx, text, open); err != nil {
						return r.Plan.errorf(g.at+"."+d.Name, "%s: %w", d.Name, err)
					}
				}
			}
		}
	}
	return nil
}

func (r *resolver) openFile(ctx context.Context, text string, open func(context.Context, string) (givenFile, error)) error {
	if r.labels[text] != "" {
		return nil
	}
	path, named := r.Plan.Files[text] // of a resolved plan
	if !named {
		path = text
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	file, err := open(ctx, path)
	if err != nil {
		return err
	}
	name := filepath.Base(path)
	if name == record.FileName {
		name = filepath.Base(filepath.Dir(path))
	}
	label := name + "#" + file.hash()[:8]
	if named && label != text {
		file.Close()
		return usage.Errorf("%s is not what the plan was made with (%s, now %s)", path, text, label)
	}
	if r.labels == nil {
		r.labels, r.files = map[string]string{}, map[string]givenFile{}
	}
	files := map[string]string{}
	for k, v := range r.Plan.Files {
		files[k] = v
	}
	files[label] = path
	r.Plan.Files = files
	r.labels[text], r.labels[label] = label, label
	if r.files[label] != nil { // a copy of it
		return file.Close()
	}
	r.files[label] = file
	return nil
}

// openGiven opens an .npz or a folder of them, or a run's folder or records.
func openGiven(ctx context.Context, path string) (givenFile, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, usage.Errorf("%w", err)
	}
	if info.IsDir() {
		records := filepath.Join(path, record.FileName)
		_, err := os.Stat(records)
		if err == nil {
			return readGivenRun(ctx, path, records)
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return nil, usage.Errorf("%w", err)
		}
	} else if strings.HasSuffix(path, filepath.Ext(record.FileName)) {
		return readGivenRun(ctx, path, path)
	}
	maps, err := dataset.OpenMaps(ctx, path)
	if err != nil {
		return nil, fmt.Errorf("want an .npz of maps by image id, a folder of them, or a trace run: %w", err)
	}
	g := &givenMaps{Maps: maps, checked: map[string]bool{}}
	if g.index, err = readIndex(path, info.IsDir()); err != nil {
		maps.Close()
		return nil, err
	}
	return g, nil
}

// givenMaps are maps of attribution.
type givenMaps struct {
	*dataset.Maps
	checked map[string]bool   // id and shape
	index   *dataset.MapIndex // nil: none
}

func (g *givenMaps) hash() string { return g.Maps.Hash }

func (g *givenMaps) check(u Unit, shape []int) error {
	key := fmt.Sprint(u.Data.Set.Items()[u.Item].ID, shape)
	if g.checked[key] {
		return nil
	}
	_, err := g.read(u, shape)
	g.checked[key] = err == nil
	return err
}

func (g *givenMaps) read(u Unit, shape []int) ([]float64, error) {
	id := u.Data.Set.Items()[u.Item].ID
	values, have, err := g.Read(id)
	if err != nil {
		return nil, err
	}
	if !slices.Equal(have, shape) {
		return nil, usage.Errorf("maps: %s: the map of %s is %s: want %s, the size of what net %s sees", g.Path, id, times(have), times(shape), u.Net.Name)
	}
	return values, nil
}

// times writes a size: 8x8.
func times(shape []int) string {
	parts := make([]string, len(shape))
	for i, n := range shape {
		parts[i] = strconv.Itoa(n)
	}
	return strings.Join(parts, "x")
}

func (g *givenMaps) order(u Unit, shape []int, featureMap []int32, features int) ([]int, error) {
	values, err := g.read(u, shape)
	if err != nil {
		return nil, err
	}
	return trace.Order(values, featureMap, features)
}

// givenRun is the trajectories that a run found.
type givenRun struct {
	path   string
	sum    string
	images map[string][]foundOrder
}

// foundOrder is a trajectory with what its unit was.
type foundOrder struct {
	facts      map[string]string
	edge       int
	trajectory []int
}

func readGivenRun(ctx context.Context, path, records string) (*givenRun, error) {
	g := &givenRun{path: path, images: map[string][]foundOrder{}}
	type line struct {
		id   string
		text []byte
	}
	byID := map[string]line{}
	found := map[string]foundOrder{}
	images := map[string]string{}
	err := record.Scan(records, func(rec record.Record) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		delete(byID, rec.ID) // the last record of a unit counts
		if rec.Error != "" || rec.Trace == nil || rec.Bound {
			return nil
		}
		if err := trace.CheckTrajectory(rec.Trajectory, rec.Features); err != nil {
			return usage.Errorf("%s: unit %s: %w", records, rec.ID, err)
		}
		f := foundOrder{edge: rec.EdgePatches, trajectory: rec.Trajectory, facts: map[string]string{"net": rec.Net, "seed": strconv.FormatUint(rec.Seed, 10)}}
		for k, v := range rec.Params {
			f.facts[k] = plain(v)
		}
		text, err := json.Marshal([]any{rec.Image, f.edge, f.facts, f.trajectory})
		if err != nil {
			return fmt.Errorf("reading %s: %w", records, err)
		}
		byID[rec.ID] = line{rec.ID, text}
		found[rec.ID], images[rec.ID] = f, rec.Image
		return nil
	})
	if err != nil {
		return nil, err
	}
	if len(byID) == 0 {
		return nil, usage.Errorf("%s: want a run with trajectories, it has none", path)
	}
	lines := make([]line, 0, len(byID))
	for _, l := range byID {
		lines = append(lines, l)
	}
	sort.Slice(lines, func(i, j int) bool { return string(lines[i].text) < string(lines[j].text) })
	sum := sha256.New()
	for _, l := range lines { // neither costs nor the order of records matter
		sum.Write(append(l.text, '\n'))
		g.images[images[l.id]] = append(g.images[images[l.id]], found[l.id])
	}
	g.sum = hex.EncodeToString(sum.Sum(nil))
	return g, nil
}

func (g *givenRun) hash() string { return g.sum }

// preferred are the facts by which a run's trajectory is chosen for a unit, one
// after the other, as far as the run has one that agrees: a run of several nets
// gives each net its own, and all nets those of a run of one.
var preferred = []string{"net", "source", "data", "seed", "reference", "target", "objective", "scoreOn"}

func (g *givenRun) find(u Unit, shape []int) (foundOrder, error) {
	id := u.Data.Set.Items()[u.Item].ID
	list := g.images[id]
	if len(list) == 0 {
		return foundOrder{}, usage.Errorf("%s has no trajectory for %s", g.path, id)
	}
	edge, features := u.Params.Int("edge"), 0
	if len(shape) == 1 {
		features = shape[0]
	} else {
		features = edge * edge
	}
	fit := slices.DeleteFunc(slices.Clone(list), func(f foundOrder) bool { return len(f.trajectory) != features || f.edge != edge && len(shape) > 1 })
	if len(fit) == 0 {
		return foundOrder{}, usage.Errorf("%s: the trajectory for %s has %d features: want %d", g.path, id, len(list[0].trajectory), features)
	}
	own := map[string]string{"net": u.Net.Name, "source": u.Net.Name, "seed": strconv.FormatUint(u.Seed, 10), "data": u.Data.Name}
	for k, v := range u.Params {
		own[k] = plain(v)
	}
	for _, k := range preferred {
		agree := slices.DeleteFunc(slices.Clone(fit), func(f foundOrder) bool { return f.facts[k] != own[k] })
		if len(agree) > 0 {
			fit = agree
		}
	}
	for _, f := range fit[1:] {
		if slices.Equal(f.trajectory, fit[0].trajectory) {
			continue
		}
		why := ""
		for _, k := range sortedKeys(f.facts) {
			if f.facts[k] != fit[0].facts[k] {
				why = fmt.Sprintf(", by %s: %s, %s", k, fit[0].facts[k], f.facts[k])
				break
			}
		}
		return foundOrder{}, usage.Errorf("%s has %d trajectories for %s on net %s%s: want a run with one", g.path, len(fit), id, u.Net.Name, why)
	}
	return fit[0], nil
}

func (g *givenRun) check(u Unit, shape []int) error {
	_, err := g.find(u, shape)
	return err
}

func (g *givenRun) order(u Unit, shape []int, _ []int32, _ int) ([]int, error) {
	f, err := g.find(u, shape)
	return f.trajectory, err
}

func (g *givenRun) Close() error { return nil }

// checkGiven finds items without an order, and those whose order does not fit the
// net. A plan's data is looked through once for each file and shape.
func (r *Resolved) checkGiven(n *ResolvedNet, d *ResolvedData, p Params, shape []int) error {
	label := p.Text(mapKey)
	if label == "" {
		return nil
	}
	shape = mapShape(shape)
	done := fmt.Sprint(n.Index, d.Index, shape, string(canonical(p)))
	if r.checked[done] {
		return nil
	}
	seeds := r.Plan.Seeds
	if len(seeds) == 0 {
		seeds = []uint64{0}
	}
	for item := range d.Set.Len() {
		for _, seed := range seeds {
			if err := r.files[label].check(Unit{Net: n, Data: d, Item: item, Params: p, Seed: seed}, shape); err != nil {
				return usage.Errorf("%s: %w", mapKey, err)
			}
		}
	}
	if r.checked == nil {
		r.checked = map[string]bool{}
	}
	r.checked[done] = true
	return nil
}

// mapShape is the shape of a map for inputs of [C,H,W] or [F].
func mapShape(input []int) []int {
	if len(input) == 1 {
		return input
	}
	return input[len(input)-2:]
}

// anyOrder gives start map an order where only the number of features matters.
func anyOrder(o trace.Options, features int) trace.Options {
	if o.Start == startMap {
		o.Given = make([]int, features)
		for i := range o.Given {
			o.Given[i] = i
		}
	}
	return o
}
