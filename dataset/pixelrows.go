package dataset

import (
	"context"
	"fmt"
	"io"
	"sort"

	"github.com/assay-xai/assay/internal/usage"
)

// pixelReader is a rowReader whose rows are bytes.
type pixelReader interface {
	rowReader
	// pixels gives a row as bytes, [C,H,W]; the caller owns them.
	pixels(i int) (pixels []byte, shape []int, err error)
}

// Pixels returns row i as bytes of shape [C,H,W], 0..255, where the data hold
// images as bytes: a quarter of what Values takes. ok is false for data whose
// rows are not such bytes: image files, tables, arrays of other numbers. Rows
// with ok give the same numbers by Values. The caller owns the slices.
func (s *Set) Pixels(i int) (pixels []byte, shape []int, ok bool, err error) {
	if err := s.check(context.Background(), i); err != nil {
		return nil, nil, false, err
	}
	rows, isRows := s.store.(*rowStore)
	if !isRows {
		return nil, nil, false, nil
	}
	reader, ok := rows.reader.(pixelReader)
	if !ok || !holdsPixels(reader) {
		return nil, nil, false, nil
	}
	pixels, shape, err = reader.pixels(rows.rows[i])
	if err != nil {
		return nil, nil, true, fmt.Errorf("dataset: reading row %s of %s: %w", s.items[i].ID, s.Path, err)
	}
	return pixels, shape, true, nil
}

// holdsPixels is false of a reader that could have bytes and has others.
func holdsPixels(r pixelReader) bool {
	a, isArray := r.(*ndarray)
	return !isArray || a.dtype.id == "u1" && len(a.shape) > 2
}

func (a *ndarray) pixels(i int) ([]byte, []int, error) {
	shape, err := a.inputShape()
	if err != nil {
		return nil, nil, err
	}
	b := make([]byte, area(shape))
	if n, err := a.r.ReadAt(b, a.offset+int64(i)*int64(len(b))); n < len(b) {
		return nil, nil, usage.Errorf("%s is cut off: %w", a.name, err)
	}
	return b, shape, nil
}

// area is the number of elements of a shape.
func area(shape []int) int {
	n := 1
	for _, side := range shape {
		n *= side
	}
	return n
}

// pixelRows are rows of bytes in one or more blobs, on disk or in memory.
type pixelRows struct {
	shape []int // [C,H,W]
	// columnMajor: each channel lies column by column (MATLAB).
	columnMajor bool
	parts       []pixelPart
}

// pixelPart is consecutive rows of a blob.
type pixelPart struct {
	blob *blob
	// end is the number of the row behind the last one, of all parts so far.
	end int
	// offset is where the first row's pixels begin, stride how far it is from
	// row to row.
	offset, stride int64
}

func (p *pixelRows) count() int {
	if len(p.parts) == 0 {
		return 0
	}
	return p.parts[len(p.parts)-1].end
}

// add appends count rows of a blob.
func (p *pixelRows) add(b *blob, count int, offset, stride int64) {
	p.parts = append(p.parts, pixelPart{b, p.count() + count, offset, stride})
}

// where is the part of a row and the row's number in it.
func (p *pixelRows) where(row int) (pixelPart, int) {
	at := sort.Search(len(p.parts), func(k int) bool { return p.parts[k].end > row })
	first := 0
	if at > 0 {
		first = p.parts[at-1].end
	}
	return p.parts[at], row - first
}

func (p *pixelRows) pixels(row int) ([]byte, []int, error) {
	part, k := p.where(row)
	b := make([]byte, area(p.shape))
	if n, err := part.blob.ReadAt(b, part.offset+int64(k)*part.stride); n < len(b) {
		if err == io.EOF {
			return nil, nil, usage.Errorf("%s is cut off", part.blob.name)
		}
		return nil, nil, err
	}
	if p.columnMajor {
		b = transposed(b, p.shape)
	}
	return b, append([]int{}, p.shape...), nil
}

// transposed turns [C,W,H] into [C,H,W].
func transposed(b []byte, shape []int) []byte {
	channels, height, width := shape[0], shape[1], shape[2]
	out := make([]byte, len(b))
	for c := range channels {
		in, to := b[c*height*width:], out[c*height*width:]
		for y := range height {
			for x := range width {
				to[y*width+x] = in[x*height+y]
			}
		}
	}
	return out
}

func (p *pixelRows) row(i int) ([]float32, []int, error) {
	b, shape, err := p.pixels(i)
	if err != nil {
		return nil, nil, err
	}
	return floats(b), shape, nil
}

func floats(b []byte) []float32 {
	values := make([]float32, len(b))
	for i, v := range b {
		values[i] = float32(v)
	}
	return values
}

func (p *pixelRows) Close() error {
	var blobs []*blob
	for _, part := range p.parts {
		blobs = append(blobs, part.blob)
	}
	return closeAll(blobs)
}
