package dataset

import (
	"archive/zip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"

	"github.com/assay-xai/assay/internal/usage"
)

// Maps are maps of attribution by image id, in .npz files: what numpy.savez
// writes of {id: array}. An array is [H,W], [1,H,W] or [C,H,W] for an image and [F]
// for a row of a table.
type Maps struct {
	// Path is the file, or the folder of files.
	Path string
	// Hash is the SHA-256, in hex, of the files' bytes; "" of BrowseMaps.
	Hash    string
	files   []*os.File
	members map[string]mapMember
}

// mapMember is an array of one of the files.
type mapMember struct {
	path string
	file *os.File
	size int64
	f    *zip.File
}

const npzSuffix = ".npz"

// OpenMaps opens an .npz file, or all those of a folder; of two arrays of one id
// nobody knows which is meant, so that they are an error. The caller closes it.
func OpenMaps(ctx context.Context, path string) (*Maps, error) { return openMaps(ctx, path, true) }

func openMaps(ctx context.Context, path string, hash bool) (*Maps, error) {
	paths, err := mapPaths(path)
	if err != nil {
		return nil, err
	}
	m := &Maps{Path: path, members: map[string]mapMember{}}
	sum := sha256.New()
	for _, p := range paths {
		if err := m.add(ctx, p, sum, hash); err != nil {
			m.Close()
			return nil, usage.Line(err, p)
		}
	}
	if len(m.members) == 0 {
		m.Close()
		return nil, usage.Errorf("maps: %s holds no arrays", path)
	}
	if hash {
		m.Hash = hex.EncodeToString(sum.Sum(nil))
	}
	return m, nil
}

// escapeGlob makes a folder's name mean itself to filepath.Glob.
func escapeGlob(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

func (m *Maps) add(ctx context.Context, path string, sum io.Writer, hash bool) error {
	file, err := os.Open(path)
	if err != nil {
		return usage.Errorf("maps: %w", err)
	}
	m.files = append(m.files, file)
	info, err := file.Stat()
	if err != nil {
		return fmt.Errorf("maps: reading %s: %w", path, err)
	}
	size := info.Size()
	if hash {
		if size, err = copyContext(ctx, sum, file); err != nil {
			return fmt.Errorf("maps: reading %s: %w", path, err)
		}
	}
	archive, err := zip.NewReader(file, size)
	if err != nil && !errors.Is(err, zip.ErrInsecurePath) {
		return usage.Errorf("maps: %s is no .npz file, or one cut off: %w", path, err)
	}
	for _, f := range archive.File {
		id, ok := strings.CutSuffix(f.Name, npySuffix)
		if !ok {
			return usage.Errorf("maps: %s: %s is no array", path, usage.Quote(f.Name))
		}
		if _, twice := m.members[id]; twice {
			return usage.Errorf("maps: %s: image %s is there twice", path, usage.Quote(id))
		}
		m.members[id] = mapMember{path, file, size, f}
	}
	return nil
}

// copyContext is io.Copy that looks at ctx now and then.
func copyContext(ctx context.Context, w io.Writer, r io.Reader) (int64, error) {
	const step = 1 << 22
	var total int64
	for {
		if err := ctx.Err(); err != nil {
			return total, err
		}
		n, err := io.CopyN(w, r, step)
		total += n
		if errors.Is(err, io.EOF) {
			return total, nil
		}
		if err != nil {
			return total, err
		}
	}
}

// Has says whether there is a map for an image.
func (m *Maps) Has(id string) bool { _, ok := m.members[id]; return ok }

// IDs lists the images in order.
func (m *Maps) IDs() []string {
	out := make([]string, 0, len(m.members))
	for id := range m.members {
		out = append(out, id)
	}
	slices.Sort(out)
	return out
}

// Read returns an image's map with its channels reduced by their mean: H*W values,
// row-major, and shape [H,W]; for a row of a table F values and [F]. A value that
// is no number (NaN or infinite) is an error naming its place. Read is safe from
// any goroutine.
func (m *Maps) Read(id string) (values []float64, shape []int, err error) {
	a, err := m.array(id)
	if err != nil {
		return nil, nil, err
	}
	channels := 1
	shape = a.shape
	if len(shape) == 3 {
		channels, shape = shape[0], shape[1:]
	}
	size := channels
	for _, n := range shape {
		size *= n
	}
	if len(a.shape) < 1 || len(a.shape) > 3 || size == 0 {
		return nil, nil, badMapShape(a)
	}
	values = make([]float64, size/channels)
	bad := -1
	err = a.each(0, size, func(i int, v float64) {
		if bad < 0 && (math.IsNaN(v) || math.IsInf(v, 0)) {
			bad = i
		}
		values[i%len(values)] += v / float64(channels)
	})
	if err != nil {
		return nil, nil, usage.Errorf("maps: %s: %w", a.name, err)
	}
	if bad >= 0 {
		return nil, nil, usage.Errorf("maps: %s: the value at %v is not a number (NaN or infinite)", a.name, indexOf(bad, a.shape))
	}
	return values, slices.Clone(shape), nil
}

// indexOf is the index of an element in an array.
func indexOf(i int, shape []int) []int {
	out := make([]int, len(shape))
	for k := len(shape) - 1; k >= 0; k-- {
		out[k] = i % shape[k]
		i /= shape[k]
	}
	return out
}

// some names a few of the images.
func (m *Maps) some() string {
	ids := m.IDs()
	if len(ids) > 2 {
		return strings.Join(ids[:2], ", ") + fmt.Sprintf(", ... (%d)", len(ids))
	}
	return strings.Join(ids, ", ")
}

// Close closes the files.
func (m *Maps) Close() error {
	var first error
	for _, f := range m.files {
		if err := f.Close(); err != nil && first == nil {
			first = err
		}
	}
	return first
}
