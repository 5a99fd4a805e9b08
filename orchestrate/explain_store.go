package orchestrate

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/assay-xai/assay/dataset"
	"github.com/assay-xai/assay/internal/record"
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
	// lent says that parts are other runs' files, which stay.
	lent bool
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

func newMapStore(r *Resolved, out string, units []Unit) *mapStore {
	m := &mapStore{r: r, out: out, formats: r.Plan.Maps.formats(), sets: map[string]*mapSet{}}
	names := r.mapFolders()
	for i := range units {
		m.add(&units[i], names)
	}
	for _, s := range m.order {
		for _, c := range s.chunks {
			slices.SortFunc(c.units, func(a, b *Unit) int { return a.Item - b.Item })
		}
	}
	return m
}

func openMapStore(ctx context.Context, r *Resolved, out string, units []Unit) (RunFiles, error) {
	m := newMapStore(r, out, units)
	known, err := knownMaps(ctx, filepath.Join(out, record.FileName), units)
	if err != nil {
		return nil, err
	}
	for _, s := range m.order {
		sweepHidden(filepath.Join(out, OverlaysFolder, s.path))
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
	if k.values != nil {
		s := m.sets[mapSetKey(&k.units[0])]
		for _, u := range k.units { // all, before a chunk lets go of the part
			s.byItem[u.Item].mapped[u.Item] = true
			s.index.Shape = k.shape
			s.place(u.Item, part)
		}
	}
	for _, u := range k.units { // those that failed may be of several sets
		s := m.sets[mapSetKey(&u)]
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
		if s.used[path]--; s.used[path] == 0 && !m.lent {
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
