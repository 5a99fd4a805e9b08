package dataset

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/assay-xai/assay/internal/usage"
)

// MapIndexFile says what the maps of a folder are.
const MapIndexFile = "index.json"

// MapIndex is the content of index.json: what made the maps of a folder.
type MapIndex struct {
	// Method is the exact method string, what is the default left out.
	Method string `json:"method"`
	Net    string `json:"net"`
	// Weights is the SHA-256 of the net's weights.
	Weights string `json:"weights"`
	Data    string `json:"data"`
	// Target is the rule of the explained class: label, predicted, or a class.
	Target string `json:"target"`
	// Reduce is what became of the channels, see MapReductions.
	Reduce string `json:"reduce"`
	Seed   uint64 `json:"seed"`
	// Shape is that of every map, [C,H,W] or [F]; none where there are no maps.
	Shape []int  `json:"shape"`
	DType string `json:"dtype"`
	// Count is the number of maps, Images that of the images that were asked for.
	Count  int `json:"count"`
	Images int `json:"images"`
	// Chunk is the number of images of a file.
	Chunk   int      `json:"chunk"`
	Formats []string `json:"formats"`
}

// MapFolder is a folder of maps with its index.
type MapFolder struct {
	Path string
	MapIndex
}

// ReadMapIndex reads the index of a folder of maps. A folder without one is an error
// for which errors.Is finds fs.ErrNotExist.
func ReadMapIndex(folder string) (MapIndex, error) {
	var index MapIndex
	path := filepath.Join(folder, MapIndexFile)
	text, err := os.ReadFile(path)
	if err != nil {
		return index, usage.Errorf("maps: %w", err)
	}
	if err := json.Unmarshal(text, &index); err != nil {
		return index, usage.Errorf("maps: %s: %w", path, usage.Line(err, path))
	}
	return index, nil
}

// FindMaps lists the folders of maps in and below root, in the order of their
// paths: those with an index.json that names a method.
func FindMaps(root string) ([]MapFolder, error) {
	var out []MapFolder
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if !e.IsDir() {
			return nil
		}
		if path != root && strings.HasPrefix(e.Name(), ".") {
			return fs.SkipDir
		}
		index, err := ReadMapIndex(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		if index.Method != "" {
			out = append(out, MapFolder{path, index})
		}
		return nil
	})
	if err != nil {
		return nil, usage.Errorf("maps: looking through %s: %w", root, err)
	}
	return out, nil
}

// BrowseMaps is OpenMaps without the hash, for which all has to be read.
func BrowseMaps(path string) (*Maps, error) { return openMaps(context.Background(), path, false) }

// Raw returns an image's map as it is in the file, [C,H,W], [H,W] or [F]; its values may
// be no numbers. It is safe from any goroutine.
func (m *Maps) Raw(id string) (values []float32, shape []int, err error) {
	a, err := m.array(id)
	if err != nil {
		return nil, nil, err
	}
	size := 1
	for _, n := range a.shape {
		size *= n
	}
	if len(a.shape) < 1 || len(a.shape) > 3 || size == 0 {
		return nil, nil, badMapShape(a)
	}
	values = make([]float32, size)
	if err := a.each(0, size, func(i int, v float64) { values[i] = float32(v) }); err != nil {
		return nil, nil, usage.Errorf("maps: %s: %w", a.name, err)
	}
	return values, slices.Clone(a.shape), nil
}

func badMapShape(a *ndarray) error {
	return usage.Errorf("maps: %s: shape %v: want [H,W], [1,H,W], [C,H,W], or [F] for a row of a table", a.name, a.shape)
}

// array opens an image's map.
func (m *Maps) array(id string) (*ndarray, error) {
	member, ok := m.members[id]
	if !ok {
		return nil, usage.Errorf("maps: %s has none for %s; it has %s", m.Path, id, m.some())
	}
	a, err := openMember(member.path, member.file, member.size, member.f)
	if err != nil {
		return nil, usage.Line(err, member.path)
	}
	return a, nil
}

// mapPaths are the files of maps of a path: itself, or those of a folder.
func mapPaths(path string) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, usage.Errorf("maps: %w", err)
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	paths, err := filepath.Glob(filepath.Join(escapeGlob(path), "*"+npzSuffix))
	if err != nil || len(paths) == 0 {
		return nil, usage.Errorf("maps: %s has no %s files%s", path, npzSuffix, deeperMaps(path))
	}
	slices.Sort(paths)
	return paths, nil
}

// deeperMaps says where the maps are that a folder above them was given for.
func deeperMaps(path string) string {
	folders, err := FindMaps(path)
	if err != nil || len(folders) == 0 {
		return ""
	}
	return fmt.Sprintf("; %d folders below it have: want one of them, for example %s", len(folders), folders[0].Path)
}
