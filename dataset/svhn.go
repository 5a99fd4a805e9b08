package dataset

import (
	"bytes"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/assay-xai/assay/internal/usage"
)

// Street View House Numbers, cropped digits
// (http://ufldl.stanford.edu/housenumbers, "Format 2"): MATLAB files with X,
// uint8 [32,32,3,N], and y, [N,1], 1..10, where 10 is the digit 0.

var svhnName = regexp.MustCompile(`^(train|test|extra)_32x32\.mat$`)

func svhnSplit(base string) string {
	if m := svhnName.FindStringSubmatch(base); m != nil {
		return m[1]
	}
	return ""
}

func openSVHN(ctx context.Context, b bundle, files []string, _ Options) (d *rowData, err error) {
	blobs, err := b.open(ctx, files)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			closeAll(blobs)
		}
	}()
	rows := &pixelRows{columnMajor: true}
	d = &rowData{kind: Arrays, reader: rows, names: strings.Fields("0 1 2 3 4 5 6 7 8 9")}
	var from []string
	for _, file := range blobs {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		f, err := openMat(file)
		if err != nil {
			return nil, err
		}
		x, classes, err := readSVHN(f)
		if err != nil {
			return nil, err
		}
		shape := []int{x.dims[2], x.dims[0], x.dims[1]}
		if rows.shape != nil && !slices.Equal(rows.shape, shape) {
			return nil, usage.Errorf("dataset: %s: images of shape %v beside others of %v: choose a split", file.name, shape, rows.shape)
		}
		rows.shape = shape
		if x.blob != file { // in memory
			if err := file.Close(); err != nil {
				return nil, err
			}
		}
		rows.add(x.blob, len(classes), x.offset, int64(area(shape)))
		d.classes = append(d.classes, classes...)
		from = append(from, file.name+": y")
	}
	d.count, d.where = rows.count(), whereIn(rows, from)
	return d, nil
}

// svhnPixels is X: where its bytes lie, [H,W,C,N] column by column.
type svhnPixels struct {
	blob   *blob
	offset int64
	dims   []int
}

// readSVHN reads one file; the classes are the digits.
func readSVHN(f *matFile) (x *svhnPixels, classes []int, err error) {
	var names []string
	err = f.each(func(h *matHead) error {
		names = append(names, usage.Quote(h.name))
		if !h.numeric() || h.name != "X" && h.name != "y" {
			return nil
		}
		m, err := h.numbers()
		if err != nil {
			return f.damaged(err)
		}
		switch m.name {
		case "X":
			x, err = f.pixels(m)
			return err
		case "y":
			if err := m.check(); err != nil {
				return f.damaged(err)
			}
			classes, err = m.integers()
			if err != nil {
				return f.damaged(err)
			}
		}
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	if x == nil || classes == nil {
		return nil, nil, usage.Errorf("dataset: %s has the matrices %s: want X (images) and y (digits), as SVHN's cropped digits have them", f.name, list(names))
	}
	if n := x.dims[3]; len(classes) != n {
		return nil, nil, usage.Errorf("dataset: %s: y has %d digits for the %d images of X", f.name, len(classes), n)
	}
	for i, c := range classes {
		switch {
		case c == 10:
			classes[i] = 0
		case c < 0 || c > 10:
			return nil, nil, usage.Errorf("dataset: %s: y: row %s: %d: want 1..10", f.name, rowID(i), c)
		}
	}
	return x, classes, nil
}

// list names up to eight things, or says that there are none.
func list(names []string) string {
	switch {
	case len(names) == 0:
		return "(none)"
	case len(names) > 8:
		return strings.Join(names[:8], ", ") + ", ..."
	}
	return strings.Join(names, ", ")
}

// pixels checks X and finds its bytes: in place, or unpacked.
func (f *matFile) pixels(m *matrix) (*svhnPixels, error) {
	dims := m.dims
	if len(dims) == 3 {
		dims = append(slices.Clone(dims), 1) // MATLAB drops a last dimension of 1
	}
	if len(dims) != 4 || dims[2] != 1 && dims[2] != 3 || dims[0] > maxSide || dims[1] > maxSide || m.dtype.id != "u1" {
		return nil, usage.Errorf("dataset: %s: X has dimensions %v and type %s: want uint8 [H,W,3,N], as SVHN's cropped digits have it", f.name, m.dims, m.dtype.id)
	}
	if err := m.check(); err != nil {
		return nil, f.damaged(err)
	}
	if m.offset >= 0 {
		return &svhnPixels{f.blob, m.offset, dims}, nil
	}
	if err := checkUnpacked(f.name, m.bytes, f.size); err != nil {
		return nil, err
	}
	b, err := m.content()
	if err != nil {
		return nil, f.damaged(fmt.Errorf("in X: %w", err))
	}
	return &svhnPixels{&blob{ReaderAt: bytes.NewReader(b), name: f.name, size: int64(len(b))}, 0, dims}, nil
}

// checkUnpacked refuses what compressed images do not do, by the rule that
// archives are held to.
func checkUnpacked(name string, unpacked, packed int64) error {
	if unpacked > maxArrayBytes || unpacked > bombBytes && unpacked/bombRatio > packed {
		return usage.Errorf("dataset: %s has %d bytes and unpacks to %d: want at most %d, and %d times as many as it has", name, packed, unpacked, int64(maxArrayBytes), bombRatio)
	}
	return nil
}
