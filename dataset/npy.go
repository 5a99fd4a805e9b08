package dataset

import (
	"encoding/binary"
	"errors"
	"io"
	"math"

	"github.com/sbinet/npyio/npy"

	"github.com/assay-xai/assay/internal/usage"
)

// maxHeaderBytes bounds the header of an .npy, of which numpy writes some 100.
const maxHeaderBytes = 1 << 16

// ndarray is an array in a file or in memory, in C order.
type ndarray struct {
	name   string
	shape  []int
	dtype  dtype
	r      io.ReaderAt
	offset int64
	closer io.Closer // nil for memory
}

// dtype reads the elements of an array.
type dtype struct {
	id      string // numpy's, without byte order
	size    int
	integer bool
	at      func(b []byte, order binary.ByteOrder) float64
	order   binary.ByteOrder
}

// dtypes lists the element types that are read.
func dtypes() []dtype {
	return []dtype{
		{id: "f4", size: 4, at: func(b []byte, o binary.ByteOrder) float64 { return float64(math.Float32frombits(o.Uint32(b))) }},
		{id: "f8", size: 8, at: func(b []byte, o binary.ByteOrder) float64 { return math.Float64frombits(o.Uint64(b)) }},
		{id: "u1", size: 1, integer: true, at: func(b []byte, _ binary.ByteOrder) float64 { return float64(b[0]) }},
		{id: "u2", size: 2, integer: true, at: func(b []byte, o binary.ByteOrder) float64 { return float64(o.Uint16(b)) }},
		{id: "u4", size: 4, integer: true, at: func(b []byte, o binary.ByteOrder) float64 { return float64(o.Uint32(b)) }},
		{id: "u8", size: 8, integer: true, at: func(b []byte, o binary.ByteOrder) float64 { return float64(o.Uint64(b)) }},
		{id: "i1", size: 1, integer: true, at: func(b []byte, _ binary.ByteOrder) float64 { return float64(int8(b[0])) }},
		{id: "i2", size: 2, integer: true, at: func(b []byte, o binary.ByteOrder) float64 { return float64(int16(o.Uint16(b))) }},
		{id: "i4", size: 4, integer: true, at: func(b []byte, o binary.ByteOrder) float64 { return float64(int32(o.Uint32(b))) }},
		{id: "i8", size: 8, integer: true, at: func(b []byte, o binary.ByteOrder) float64 { return float64(int64(o.Uint64(b))) }},
		{id: "b1", size: 1, integer: true, at: func(b []byte, _ binary.ByteOrder) float64 { return float64(b[0]) }},
	}
}

// dtypeOf reads numpy's spelling: byte order ("<", ">", "|", "=") and type.
func dtypeOf(descr string) (dtype, bool) {
	order := binary.ByteOrder(binary.LittleEndian)
	if descr != "" {
		switch descr[0] {
		case '>':
			order, descr = binary.BigEndian, descr[1:]
		case '<', '|', '=':
			descr = descr[1:]
		}
	}
	for _, d := range dtypes() {
		if d.id == descr {
			d.order = order
			return d, true
		}
	}
	return dtype{}, false
}

// readNpyHeader makes an array of size bytes in .npy format; name is for errors.
func readNpyHeader(name string, r io.ReaderAt, size int64) (a *ndarray, err error) {
	section := io.NewSectionReader(r, 0, min(size, maxHeaderBytes+12))
	var fixed [12]byte // magic, version, length of the header in 2 or 4 bytes
	if _, err := section.ReadAt(fixed[:], 0); err != nil || [6]byte(fixed[:6]) != npy.Magic {
		return nil, usage.Errorf("dataset: %s is no .npy file, or one cut off", name)
	}
	length, start := int64(binary.LittleEndian.Uint16(fixed[8:])), int64(10)
	if fixed[6] > 1 {
		length, start = int64(binary.LittleEndian.Uint32(fixed[8:])), 12
	}
	if length > maxHeaderBytes {
		return nil, usage.Errorf("dataset: %s: a header of %d bytes: want at most %d", name, length, maxHeaderBytes)
	}
	header, err := npyHeader(section)
	if err != nil {
		return nil, usage.Errorf("dataset: %s is no .npy file, or one cut off: %w", name, err)
	}
	elements, ok := dtypeOf(header.Descr.Type)
	if !ok {
		return nil, usage.Errorf("dataset: %s: elements of type %q: want float32, float64, uint8 or another integer", name, header.Descr.Type)
	}
	shape := header.Descr.Shape
	if header.Descr.Fortran && len(shape) > 1 {
		return nil, usage.Errorf("dataset: %s is in Fortran order: save numpy.ascontiguousarray of it", name)
	}
	have := size - start - length
	need := int64(elements.size)
	for _, n := range shape {
		if n < 0 || n > 0 && need > have/int64(n) && need > 0 {
			return nil, usage.Errorf("dataset: %s: shape %v needs more than the %d bytes that are there: cut off?", name, shape, have)
		}
		need *= int64(n)
	}
	return &ndarray{name: name, shape: shape, dtype: elements, r: r, offset: start + length}, nil
}

// npyHeader lets npyio read a header. It panics at some malformed ones.
func npyHeader(r io.Reader) (header npy.Header, err error) {
	defer func() {
		if recover() != nil {
			err = errors.New("its header is not the dictionary of descr, fortran_order and shape that numpy writes")
		}
	}()
	reader, err := npy.NewReader(r)
	if err != nil {
		return npy.Header{}, err
	}
	return reader.Header, nil
}

// bytes is the size of the elements.
func (a *ndarray) bytes() int64 {
	n := int64(a.dtype.size)
	for _, side := range a.shape {
		n *= int64(side)
	}
	return n
}

// inputShape is the shape of a row: [F] of [N,F], [C,H,W] of [N,C,H,W], and
// [1,H,W] of [N,H,W].
func (a *ndarray) inputShape() ([]int, error) {
	ok := len(a.shape) >= 2 && len(a.shape) <= 4
	for _, n := range a.shape {
		ok = ok && n > 0
	}
	if !ok {
		return nil, usage.Errorf("dataset: %s: shape %v: want [N,F], [N,H,W] or [N,C,H,W]", a.name, a.shape)
	}
	if len(a.shape) == 3 {
		return []int{1, a.shape[1], a.shape[2]}, nil
	}
	return append([]int{}, a.shape[1:]...), nil
}

// each calls take with count elements from place first on: 0..count-1 and the value.
func (a *ndarray) each(first, count int, take func(i int, v float64)) error {
	b := make([]byte, count*a.dtype.size)
	if n, err := a.r.ReadAt(b, a.offset+int64(first)*int64(a.dtype.size)); n < len(b) {
		return usage.Errorf("reading elements %d..%d: %w", first, first+count-1, err)
	}
	for i := range count {
		take(i, a.dtype.at(b[i*a.dtype.size:], a.dtype.order))
	}
	return nil
}

func (a *ndarray) row(i int) ([]float32, []int, error) {
	shape, err := a.inputShape()
	if err != nil {
		return nil, nil, err
	}
	count := 1
	for _, n := range shape {
		count *= n
	}
	values := make([]float32, count)
	err = a.each(i*count, count, func(k int, v float64) { values[k] = float32(v) })
	if err != nil {
		return nil, nil, err
	}
	return values, shape, nil
}

// labels reads the array as classes of count rows: integers, [N] or [N,1].
func (a *ndarray) labels(count int) ([]int, error) {
	if len(a.shape) == 0 || len(a.shape) > 2 || len(a.shape) == 2 && a.shape[1] != 1 {
		return nil, usage.Errorf("dataset: %s: labels of shape %v: want [%d]", a.name, a.shape, count)
	}
	if a.shape[0] != count {
		return nil, usage.Errorf("dataset: %s: %d labels for %d rows", a.name, a.shape[0], count)
	}
	if !a.dtype.integer {
		return nil, usage.Errorf("dataset: %s: labels of type %s: want integers", a.name, a.dtype.id)
	}
	classes, bad := make([]int, count), error(nil)
	err := a.each(0, count, func(i int, v float64) {
		if (v < 0 || v > math.MaxInt32) && bad == nil {
			bad = usage.Errorf("dataset: %s: row %s: class %.0f: want a number from 0", a.name, rowID(i), v)
		}
		classes[i] = int(v)
	})
	if err != nil {
		return nil, usage.Errorf("dataset: %s: %w", a.name, err)
	}
	if bad != nil {
		return nil, bad
	}
	return classes, nil
}

func (a *ndarray) Close() error {
	if a.closer == nil {
		return nil
	}
	return a.closer.Close()
}
