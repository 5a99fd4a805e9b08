package orchestrate

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"

	"github.com/assay-xai/assay/dataset"
	"github.com/assay-xai/assay/internal/record"
	"github.com/assay-xai/assay/internal/usage"
)

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

// mergeMaps puts the maps of shards together: each chunk's file is copied from those of
// the shards that have images of it.
func mergeMaps(ctx context.Context, r *Resolved, out string, units []Unit, parts []MergePart) error {
	m := newMapStore(r, out, units)
	m.lent = true
	known, err := knownMaps(ctx, filepath.Join(out, record.FileName), units)
	if err != nil {
		return err
	}
	from := map[string]string{} // the shard's folder, by unit
	for _, p := range parts {
		for _, u := range p.Units {
			from[u.ID] = p.Out
		}
		if err := copyTree(ctx, filepath.Join(p.Out, OverlaysFolder), filepath.Join(out, OverlaysFolder)); err != nil {
			return err
		}
	}
	for _, s := range m.order {
		for _, c := range s.chunks {
			for _, u := range c.units {
				c.left--
				if k := known[u.ID]; !k.failed {
					c.mapped[u.Item] = true
					s.index.Shape = k.shape
					s.place(u.Item, filepath.Join(from[u.ID], MapsFolder, s.path, c.name+".npz"))
				}
			}
		}
	}
	return m.Finish(ctx)
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
