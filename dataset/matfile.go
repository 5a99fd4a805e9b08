package dataset

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/assay-xai/assay/internal/usage"
)

// MATLAB's files, version 5 (MathWorks, "MAT-File Format", chapter 1): a header
// of 128 bytes, then elements of a tag (type, bytes) and content, most of them
// compressed by zlib. A matrix is an element of elements: flags, dimensions,
// name, and its numbers column by column.
const (
	matHeaderBytes = 128
	matMatrix      = 14
	matCompressed  = 15
)

// matNumbers are the types of elements that hold numbers: how many bytes one
// has, and how it is read.
var matNumbers = map[uint32]dtype{
	1: mustDtype("i1"), 2: mustDtype("u1"), 3: mustDtype("i2"), 4: mustDtype("u2"), 5: mustDtype("i4"), 6: mustDtype("u4"),
	7: mustDtype("f4"), 9: mustDtype("f8"), 12: mustDtype("i8"), 13: mustDtype("u8"),
}

func mustDtype(id string) dtype { d, _ := dtypeOf(id); return d }

// matFile reads the matrices of a file.
type matFile struct {
	*blob
	order binary.ByteOrder
}

// matHead is the head of a matrix; what follows is numbers or, in a structure,
// matrices.
type matHead struct {
	file  *matFile
	class uint32
	name  string
	dims  []int
	// r stands behind the head, which begins at offset at of the file (-1 where
	// it is compressed) and at start of what r counts; size is that of all.
	r               *counter
	at, start, size int64
}

// matrix is a numeric matrix. Its numbers follow: bytes of them from r, which
// is at offset in the file, -1 where they are compressed.
type matrix struct {
	name   string
	dims   []int
	dtype  dtype
	bytes  int64
	r      io.Reader
	offset int64
}

func openMat(b *blob) (*matFile, error) {
	header := make([]byte, matHeaderBytes)
	if n, err := b.ReadAt(header, 0); n < len(header) {
		if err == io.EOF {
			err = errors.New("it is shorter than a header")
		}
		return nil, usage.Errorf("dataset: %s is no MATLAB file of version 5: %w", b.name, err)
	}
	f := &matFile{blob: b}
	switch string(header[126:]) {
	case "IM":
		f.order = binary.LittleEndian
	case "MI":
		f.order = binary.BigEndian
	}
	if strings.HasPrefix(string(header), "MATLAB 7.3") || f.order != nil && f.order.Uint16(header[124:]) == 0x0200 {
		return nil, usage.Errorf("dataset: %s is a MATLAB file of version 7.3 (HDF5): want version 5, as save(..., '-v7') in MATLAB or scipy.io.savemat write it", b.name)
	}
	if f.order == nil || f.order.Uint16(header[124:]) != 0x0100 {
		return nil, usage.Errorf("dataset: %s is no MATLAB file of version 5: its header ends in %x", b.name, header[124:])
	}
	return f, nil
}

// each calls take with every matrix, in the file's order. What take does not
// read is passed over.
func (f *matFile) each(take func(h *matHead) error) error {
	for at := int64(matHeaderBytes); at < f.size; {
		var tag [8]byte
		if n, _ := f.ReadAt(tag[:], at); n < len(tag) {
			return f.damaged(io.ErrUnexpectedEOF)
		}
		kind, size := f.order.Uint32(tag[:]), int64(f.order.Uint32(tag[4:]))
		at += int64(len(tag))
		if size > f.size-at {
			return usage.Errorf("dataset: %s: an element of %d bytes at byte %d, %d are there: cut off?", f.name, size, at, f.size-at)
		}
		if err := f.element(kind, at, size, take); err != nil {
			return err
		}
		at += size
		if kind != matCompressed {
			at = (at + 7) &^ 7
		}
	}
	return nil
}

// element looks at one element of the file.
func (f *matFile) element(kind uint32, at, size int64, take func(h *matHead) error) error {
	r := &counter{r: io.NewSectionReader(f, at, size)}
	switch kind {
	case matMatrix:
		h, err := f.head(r, at, size)
		if err != nil {
			return f.damaged(err)
		}
		return take(h)
	case matCompressed:
		unzipped, err := zlib.NewReader(r)
		if err != nil {
			return f.damaged(err)
		}
		inside := &counter{r: unzipped}
		kind, inner, _, err := f.tag(inside)
		if err != nil {
			return f.damaged(err)
		}
		if kind != matMatrix {
			return nil
		}
		h, err := f.head(inside, -1, inner)
		if err != nil {
			return f.damaged(err)
		}
		return take(h)
	}
	return nil
}

func (f *matFile) damaged(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return usage.Errorf("dataset: %s is cut off: get it again", f.name)
	}
	return usage.Errorf("dataset: %s is damaged: %w", f.name, err)
}

// counter counts what was read, so that elements can be found and padded.
type counter struct {
	r    io.Reader
	read int64
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.read += int64(n)
	return n, err
}

// tag reads a tag; a small element (at most 4 bytes) comes with it.
func (f *matFile) tag(r io.Reader) (kind uint32, size int64, small []byte, err error) {
	var b [8]byte
	if _, err := io.ReadFull(r, b[:]); err != nil {
		return 0, 0, nil, err
	}
	kind = f.order.Uint32(b[:])
	if n := kind >> 16; n != 0 {
		if n > 4 {
			return 0, 0, nil, fmt.Errorf("a small element of %d bytes", n)
		}
		return kind & 0xffff, int64(n), b[4 : 4+n], nil
	}
	return kind, int64(f.order.Uint32(b[4:])), nil, nil
}

// maxMatPart bounds flags, dimensions and name of a matrix.
const maxMatPart = 1 << 10

// part reads a short element of a matrix, which must be of the type want.
func (f *matFile) part(r io.Reader, want uint32, what string) ([]byte, error) {
	kind, size, small, err := f.tag(r)
	switch {
	case err != nil:
		return nil, err
	case kind != want || size > maxMatPart:
		return nil, fmt.Errorf("%s of type %d, %d bytes: want type %d and at most %d", what, kind, size, want, maxMatPart)
	case small != nil:
		return small, nil
	}
	b := make([]byte, (size+7)&^7)
	_, err = io.ReadFull(r, b)
	return b[:size], err
}

// head reads the head of a matrix of size bytes.
func (f *matFile) head(r *counter, at, size int64) (*matHead, error) {
	h := &matHead{file: f, r: r, at: at, start: r.read, size: size}
	flags, err := f.part(r, 6, "flags of a matrix")
	if err != nil {
		return nil, err
	}
	if len(flags) != 8 {
		return nil, fmt.Errorf("flags of %d bytes: want 8", len(flags))
	}
	h.class = f.order.Uint32(flags)
	dims, err := f.part(r, 5, "dimensions of a matrix")
	if err != nil {
		return nil, err
	}
	for ; len(dims) >= 4; dims = dims[4:] {
		h.dims = append(h.dims, int(int32(f.order.Uint32(dims))))
	}
	name, err := f.part(r, 1, "name of a matrix")
	h.name = string(name)
	return h, err
}

// The classes of matrices that are looked at, and the flag of complex numbers.
const (
	matStructure   = 2
	matText        = 4
	matFirstNumber = 6
	matLastNumber  = 15
	matComplex     = 0x800
)

// kind is the class without flags.
func (h *matHead) kind() uint32 { return h.class & 0xff }

// numeric is true of real numbers.
func (h *matHead) numeric() bool {
	return h.kind() >= matFirstNumber && h.kind() <= matLastNumber && h.class&matComplex == 0
}

// left is how much of the matrix was not read.
func (h *matHead) left() int64 { return h.size - (h.r.read - h.start) }

// numbers finds the numbers of a numeric matrix.
func (h *matHead) numbers() (*matrix, error) {
	kind, size, small, err := h.file.tag(h.r)
	if err != nil {
		return nil, err
	}
	number, ok := matNumbers[kind]
	if !ok {
		return nil, fmt.Errorf("%s has numbers of type %d: want one of MATLAB's", usage.Quote(h.name), kind)
	}
	number.order = h.file.order
	m := &matrix{name: h.name, dims: h.dims, dtype: number, bytes: size, r: h.r, offset: -1}
	switch {
	case small != nil:
		m.r = bytes.NewReader(small)
	case size > h.left():
		return nil, fmt.Errorf("%s has %d bytes of numbers in an element of %d", usage.Quote(h.name), size, h.size)
	case h.at >= 0:
		m.offset = h.at + h.r.read - h.start
	}
	return m, nil
}

// check says whether the dimensions, all from 1, need the bytes that are there.
func (m *matrix) check() error {
	need := int64(m.dtype.size)
	for _, n := range m.dims {
		if n < 1 || int64(n) > m.bytes/need {
			return fmt.Errorf("%s has dimensions %v and %d bytes", m.name, m.dims, m.bytes)
		}
		need *= int64(n)
	}
	if need != m.bytes || len(m.dims) < 2 {
		return fmt.Errorf("%s has dimensions %v and %d bytes: want %d", m.name, m.dims, m.bytes, need)
	}
	return nil
}

// content reads the numbers into memory, which grows with what comes.
func (m *matrix) content() ([]byte, error) {
	b, err := readAtMost(io.LimitReader(m.r, m.bytes), m.bytes, m.bytes)
	if err == nil && int64(len(b)) < m.bytes {
		err = io.ErrUnexpectedEOF
	}
	return b, err
}

// integers reads the numbers as integers.
func (m *matrix) integers() ([]int, error) {
	b, err := m.content()
	if err != nil {
		return nil, err
	}
	list := make([]int, len(b)/m.dtype.size)
	for i := range list {
		v := m.dtype.at(b[i*m.dtype.size:], m.dtype.order)
		if v != math.Trunc(v) || math.Abs(v) > math.MaxInt32 {
			return nil, fmt.Errorf("%s: row %s: %v: want an integer", m.name, rowID(i), v)
		}
		list[i] = int(v)
	}
	return list, nil
}
