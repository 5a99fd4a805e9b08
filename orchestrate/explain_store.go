package orchestrate

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/assay-xai/assay/dataset"
	"github.com/assay-xai/assay/internal/record"
	"github.com/assay-xai/assay/internal/usage"
)

const (
	// MapsFolder holds a folder of maps for each method (and net, where there are
	// several), relative to OUT; see dataset.MapIndex.
	MapsFolder = "maps"
	// partsFolder is where maps wait until their chunk is complete.
	partsFolder = "maps/.parts"
	// mapChunkImages is the number of images of a file of maps.
	mapChunkImages = 1000
)

// mapStore keeps the maps of a run. Maps of a call are written together as a part,
// synced before their records are; when all images of a chunk have records, the parts
// are put together in the images' order. So a kill costs what is in flight, and the
// files at the end are those of an undisturbed run, byte by byte.
type mapStore struct {
	mu      sync.Mutex
	r       *Resolved
	out     string
	formats []string
	sets    map[string]*mapSet // by mapSetKey
	order   []*mapSet
}

// mapSet is a folder of maps.
type mapSet struct {
	path          string // below MapsFolder
	folder, parts string
	index         dataset.MapIndex
	chunks        []*mapChunk // in the order of their numbers
	byItem        map[int]*mapChunk
	next          int            // number of the next part
	used          map[string]int // maps of a part that are in no chunk yet
}

// mapChunk is one file of maps.
type mapChunk struct {
	name     string
	units    []*Unit // in the order of items
	left     int     // without a record
	mapped   map[int]bool
	part     map[int]string // by item, until the chunk is complete
	complete bool
}

// storedMap is what a record says of a map.
type storedMap struct {
	failed bool
	shape  []int
}

func openMapStore(ctx context.Context, r *Resolved, out string, units []Unit) (RunFiles, error) {
	m := &mapStore{r: r, out: out, formats: r.Plan.Maps.formats(), sets: map[string]*mapSet{}}
	names := r.mapFolders()
	for i := range units {
		m.add(&units[i], names)
	}
	known, err := knownMaps(ctx, filepath.Join(out, record.FileName), units)
	if err != nil {
		return nil, err
	}
	for _, s := range m.order {
		sweepHidden(filepath.Join(out, OverlaysFolder, s.path))
		for _, c := range s.chunks {
			slices.SortFunc(c.units, func(a, b *Unit) int { return a.Item - b.Item })
		}
		if err := s.recover(known); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// add counts a unit to its set and chunk.
func (m *mapStore) add(u *Unit, names map[string]string) {
	key := mapSetKey(u)
	s := m.sets[key]
	if s == nil {
		path := filepath.Join(append(m.r.mapPlaces(u), names[mapName(u.Params, u.Seed)])...)
		s = &mapSet{path: path, folder: filepath.Join(m.out, MapsFolder, path), parts: filepath.Join(m.out, partsFolder, path), next: 1,
			byItem: map[int]*mapChunk{}, used: map[string]int{},
			index: dataset.MapIndex{Method: u.Params.Text(methodKey), Net: u.Net.Name, Weights: u.Net.Hash, Data: u.Data.Name, Target: u.Params.Text("target"),
				Reduce: u.Params.Text(reduceKey), Seed: u.Seed, DType: "float32", Chunk: mapChunkImages, Formats: m.formats}}
		m.sets[key] = s
		m.order = append(m.order, s)
	}
	s.index.Images++
	name := fmt.Sprintf("%04d", u.Item/mapChunkImages)
	i, found := slices.BinarySearchFunc(s.chunks, name, func(c *mapChunk, name string) int { return strings.Compare(c.name, name) })
	if !found {
		s.chunks = slices.Insert(s.chunks, i, &mapChunk{name: name, mapped: map[int]bool{}, part: map[int]string{}})
	}
	c := s.chunks[i]
	c.units = append(c.units, u)
	c.left++
	s.byItem[u.Item] = c
}

// knownMaps reads what the records say, by unit.
func knownMaps(ctx context.Context, records string, units []Unit) (map[string]storedMap, error) {
	ours := make(map[string]bool, len(units))
	for _, u := range units {
		ours[u.ID] = true
	}
	out := map[string]storedMap{}
	err := record.Scan(records, func(rec record.Record) error {
		if ours[rec.ID] {
			s := storedMap{failed: rec.Error != "" || rec.Map == nil}
			if !s.failed {
				s.shape = rec.Map.Shape
			}
			out[rec.ID] = s
		}
		return ctx.Err()
	})
	return out, err
}

// recover finds the maps of units that have records.
func (s *mapSet) recover(known map[string]storedMap) error {
	for _, dir := range []string{s.folder, s.parts} {
		sweepHidden(dir)
	}
	ids := map[string]*Unit{}
	for _, c := range s.chunks {
		for _, u := range c.units {
			k, done := known[u.ID]
			if !done {
				continue
			}
			c.left--
			if k.failed {
				continue
			}
			c.mapped[u.Item] = true
			s.index.Shape = k.shape
			ids[u.Data.Set.Items()[u.Item].ID] = u
		}
		path := filepath.Join(s.folder, c.name+".npz")
		if _, err := os.Stat(path); err != nil {
			continue
		}
		if err := c.check(path); err != nil {
			return err
		}
		c.complete = true
	}
	if err := s.findParts(ids); err != nil {
		return err
	}
	for _, c := range s.chunks {
		for _, u := range c.units {
			if c.mapped[u.Item] && !c.complete && c.part[u.Item] == "" {
				return usage.Errorf("out: %s has a record of the map of %s by %s, and no such map: put its files back, or choose another folder",
					s.folder, u.Data.Set.Items()[u.Item].ID, s.index.Method)
			}
		}
	}
	return nil
}

// check looks for a complete chunk's maps in its file.
func (c *mapChunk) check(path string) error {
	maps, err := dataset.BrowseMaps(path)
	if err != nil {
		return err
	}
	defer maps.Close()
	for _, u := range c.units {
		if id := u.Data.Set.Items()[u.Item].ID; c.mapped[u.Item] && !maps.Has(id) {
			return usage.Errorf("out: %s has no map of %s, which has a record: put the file back as it was, or choose another folder", path, id)
		}
	}
	return nil
}

// findParts looks where the maps of recorded units are that are in no chunk. A map
// is in two parts where a kill came between the first one and its record: the later
// one is the record's.
func (s *mapSet) findParts(ids map[string]*Unit) error {
	paths, err := filepath.Glob(filepath.Join(escapeGlob(s.parts), "*.npz"))
	if err != nil {
		return fmt.Errorf("reading %s: %w", s.parts, err)
	}
	slices.Sort(paths)
	for _, path := range paths {
		var number int
		if _, err := fmt.Sscanf(filepath.Base(path), "%d.npz", &number); err == nil {
			s.next = max(s.next, number+1)
		}
		part, err := dataset.BrowseMaps(path)
		if err != nil {
			return err
		}
		for _, id := range part.IDs() {
			if u := ids[id]; u != nil && !s.byItem[u.Item].complete {
				s.place(u.Item, path)
			}
		}
		part.Close()
	}
	for _, path := range paths {
		if s.used[path] == 0 {
			if err := os.Remove(path); err != nil {
				return fmt.Errorf("removing %s: %w", path, err)
			}
		}
	}
	return nil
}

// place says which part has an item's map.
func (s *mapSet) place(item int, path string) {
	c := s.byItem[item]
	if old := c.part[item]; old != "" {
		s.used[old]--
	}
	c.part[item] = path
	s.used[path]++
}

// path is a unit's folder, below MapsFolder or OverlaysFolder.
func (m *mapStore) path(u *Unit) string { return m.sets[mapSetKey(u)].path }

// save keeps the maps of units of one set, so that a kill does not lose them.
func (m *mapStore) save(units []Unit, values [][]float32, shape []int) (part string, err error) {
	m.mu.Lock()
	s := m.sets[mapSetKey(&units[0])]
	path := filepath.Join(s.parts, fmt.Sprintf("%08d.npz", s.next))
	s.next++
	m.mu.Unlock()
	if err := os.MkdirAll(s.parts, 0o777); err != nil {
		return "", fmt.Errorf("keeping maps: %w", err)
	}
	err = writeStream(path, func(w io.Writer) error {
		z := dataset.NewMapWriter(w)
		for i, u := range units {
			if err := z.Add(u.Data.Set.Items()[u.Item].ID, values[i], shape); err != nil {
				return err
			}
		}
		return z.Close()
	})
	if err != nil {
		return "", err
	}
	return path, syncFolder(s.parts)
}

// recorded counts units that have records now; where they have maps, those are in part.
func (m *mapStore) recorded(k keptMaps, part string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.sets[mapSetKey(&k.units[0])]
	for _, u := range k.units { // all, before a chunk lets go of the part
		if k.values != nil {
			s.byItem[u.Item].mapped[u.Item] = true
			s.index.Shape = k.shape
			s.place(u.Item, part)
		}
	}
	for _, u := range k.units {
		c := s.byItem[u.Item]
		if c.left--; c.left > 0 {
			continue
		}
		if err := m.assemble(s, c); err != nil {
			return err
		}
	}
	return nil
}

// assemble puts a chunk's file together and lets go of the parts.
func (m *mapStore) assemble(s *mapSet, c *mapChunk) error {
	if !c.complete && len(c.mapped) > 0 {
		if err := os.MkdirAll(s.folder, 0o777); err != nil {
			return fmt.Errorf("keeping maps: %w", err)
		}
		if err := writeStream(filepath.Join(s.folder, c.name+".npz"), c.join); err != nil {
			return err
		}
		if err := syncFolder(s.folder); err != nil {
			return err
		}
	}
	c.complete = true
	for _, path := range c.part {
		if s.used[path]--; s.used[path] == 0 {
			if err := os.Remove(path); err != nil {
				return fmt.Errorf("removing %s: %w", path, err)
			}
		}
	}
	c.part = nil
	if err := s.extra(c); err != nil {
		return err
	}
	return s.writeIndex()
}

// join copies the maps of a chunk from its parts.
func (c *mapChunk) join(w io.Writer) (err error) {
	z := dataset.NewMapWriter(w)
	var open *dataset.Maps
	defer func() {
		if open != nil {
			open.Close()
		}
	}()
	for _, u := range c.units {
		if !c.mapped[u.Item] {
			continue
		}
		if path := c.part[u.Item]; open == nil || open.Path != path {
			if open != nil {
				open.Close()
			}
			if open, err = dataset.BrowseMaps(path); err != nil {
				return err
			}
		}
		if err := z.Copy(open, u.Data.Set.Items()[u.Item].ID); err != nil {
			return err
		}
	}
	return z.Close()
}

// extra writes a complete chunk in the other formats that are wanted and not there.
func (s *mapSet) extra(c *mapChunk) error {
	if len(c.mapped) == 0 {
		return nil
	}
	for _, f := range extraFormats() {
		path := filepath.Join(s.folder, c.name+f.suffix)
		if _, err := os.Stat(path); err == nil || !slices.Contains(s.index.Formats, f.id) {
			continue
		}
		maps, err := dataset.BrowseMaps(filepath.Join(s.folder, c.name+".npz"))
		if err != nil {
			return err
		}
		var ids []string
		for _, u := range c.units {
			if c.mapped[u.Item] {
				ids = append(ids, u.Data.Set.Items()[u.Item].ID)
			}
		}
		err = f.write(path, maps, ids)
		maps.Close()
		if err != nil {
			return fmt.Errorf("writing maps as %s: %w", f.id, err)
		}
	}
	return nil
}

func (s *mapSet) writeIndex() error {
	s.index.Count = 0
	for _, c := range s.chunks {
		if c.complete {
			s.index.Count += len(c.mapped)
		}
	}
	if err := os.MkdirAll(s.folder, 0o777); err != nil {
		return fmt.Errorf("keeping maps: %w", err)
	}
	return writeJSON(filepath.Join(s.folder, dataset.MapIndexFile), s.index)
}

// Finish completes what a kill may have left between the last record and here.
func (m *mapStore) Finish(ctx context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range m.order {
		for _, c := range s.chunks {
			if err := ctx.Err(); err != nil {
				return err
			}
			if c.left > 0 {
				return fmt.Errorf("study explain: %d units of %s have no record", c.left, s.folder)
			}
			var err error
			if c.complete {
				err = s.extra(c)
			} else {
				err = m.assemble(s, c)
			}
			if err != nil {
				return err
			}
		}
		if err := s.writeIndex(); err != nil {
			return err
		}
	}
	if err := os.RemoveAll(filepath.Join(m.out, partsFolder)); err != nil {
		return fmt.Errorf("removing parts of maps: %w", err)
	}
	return nil
}

// temporaryName is how writeFile and writeStream call a file until it is whole: a dot,
// its name, and random digits.
var temporaryName = regexp.MustCompile(`^\..+\.(npz|npy|safetensors|json|png)[0-9]+$`)

// sweepHidden removes temporary files that a killed run has left in and below a
// folder.
func sweepHidden(dir string) {
	filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() && temporaryName.MatchString(e.Name()) {
			os.Remove(path)
		}
		return nil
	})
}

// mapPlaces are the folders above a unit's folder of maps: net and data, where
// there are several.
func (r *Resolved) mapPlaces(u *Unit) []string {
	var out []string
	if len(r.Plan.Nets) > 1 {
		var names []string
		for _, n := range r.Plan.Nets {
			names = append(names, n.name())
		}
		out = append(out, slugAmong(u.Net.Name, names))
	}
	if len(r.Plan.Data) > 1 {
		var names []string
		for _, d := range r.Plan.Data {
			names = append(names, d.EntryName())
		}
		out = append(out, slugAmong(u.Data.Name, names))
	}
	return out
}

// slugAmong is a name's slug, with a hash where another name has the same one.
func slugAmong(name string, names []string) string {
	for _, other := range names {
		if other != name && slug(other) == slug(name) {
			return slug(name) + "-" + shortHash(name)
		}
	}
	return slug(name)
}

// mapName is what tells apart the folders of maps of a net and data.
func mapName(p Params, seed uint64) string {
	return fmt.Sprint(seed, " ", string(canonical(p)))
}

// mapFolders names the folder of every point and seed, by mapName: the method's slug,
// with reduction, target and seed where the plan has several.
func (r *Resolved) mapFolders() map[string]string {
	seeds := r.Plan.Seeds
	if len(seeds) == 0 {
		seeds = []uint64{0}
	}
	several := map[string]bool{}
	for _, k := range []string{reduceKey, "target"} {
		for _, p := range r.Points {
			several[k] = several[k] || plain(p[k]) != plain(r.Points[0][k])
		}
	}
	out, users := map[string]string{}, map[string]int{}
	for _, p := range r.Points {
		for _, seed := range seeds {
			name := slug(p.Text(methodKey))
			for _, k := range []string{reduceKey, "target"} {
				if several[k] {
					name += "-" + slug(plain(p[k]))
				}
			}
			if len(seeds) > 1 {
				name += fmt.Sprintf("-seed-%d", seed)
			}
			out[mapName(p, seed)] = name
			users[name]++
		}
	}
	for key, name := range out {
		if users[name] > 1 { // of two methods that only differ in what a slug leaves out
			out[key] = name + "-" + shortHash(key)
		}
	}
	return out
}

// maxSlug keeps names of folders short; a hash stands for the rest.
const maxSlug = 96

// slug makes a folder's name of a method's: smoothgrad(gradient,samples=15) is
// smoothgrad-gradient-samples-15.
func slug(text string) string {
	out := strings.Map(func(c rune) rune {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '.', c == '_':
			return c
		case c == ')':
			return -1
		}
		return '-'
	}, text)
	out = strings.TrimLeft(out, ".")
	if len(out) > maxSlug || out == "" {
		out = out[:min(len(out), maxSlug)] + "-" + shortHash(text)
	}
	return out
}

func shortHash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:4])
}

func escapeGlob(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}
