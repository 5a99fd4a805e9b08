package dataset

import (
	"fmt"
	"io"
	"slices"
	"unicode/utf16"

	"github.com/assay-xai/assay/internal/usage"
)

// maxMatRecords bounds the elements of a structure, maxMatFields its fields.
const (
	maxMatRecords = 1 << 17
	maxMatFields  = 100
)

// record is one element of a structure: the fields that were asked for, as text
// or as one number.
type record map[string]any

// records reads the elements of a structure, which may be an array of them.
func (h *matHead) records(fields ...string) ([]record, error) {
	if h.kind() != matStructure {
		return nil, fmt.Errorf("%s is no structure", usage.Quote(h.name))
	}
	count := 1
	for _, n := range h.dims {
		if n < 1 || n > maxMatRecords/count {
			return nil, fmt.Errorf("%s has dimensions %v: want at most %d elements", usage.Quote(h.name), h.dims, maxMatRecords)
		}
		count *= n
	}
	names, err := h.fieldNames()
	if err != nil {
		return nil, err
	}
	var list []record
	for range count {
		r := record{}
		for _, name := range names {
			v, err := h.field(slices.Contains(fields, name))
			if err != nil {
				return nil, err
			}
			if v != nil {
				r[name] = v
			}
		}
		list = append(list, r)
	}
	return list, nil
}

// fieldNames reads the names, all of the same length, padded by zeros.
func (h *matHead) fieldNames() ([]string, error) {
	f := h.file
	b, err := f.part(h.r, 5, "length of names")
	if err != nil {
		return nil, err
	}
	if len(b) != 4 || f.order.Uint32(b) < 1 || f.order.Uint32(b) > 64 {
		return nil, fmt.Errorf("%s has names of %x bytes: want 1..64", usage.Quote(h.name), b)
	}
	length := int(f.order.Uint32(b))
	kind, size, small, err := f.tag(h.r)
	if err != nil {
		return nil, err
	}
	if kind != 1 || small != nil || size%int64(length) != 0 || size > int64(length)*maxMatFields {
		return nil, fmt.Errorf("%s has %d bytes of names of %d: want at most %d names", usage.Quote(h.name), size, length, maxMatFields)
	}
	b = make([]byte, (size+7)&^7)
	if _, err := io.ReadFull(h.r, b); err != nil {
		return nil, err
	}
	var names []string
	for at := 0; at < int(size); at += length {
		end := slices.Index(b[at:at+length], 0)
		if end < 0 {
			end = length
		}
		names = append(names, string(b[at:at+end]))
	}
	return names, nil
}

// field reads one field of one element, or passes it over: nil.
func (h *matHead) field(wanted bool) (value any, err error) {
	f := h.file
	kind, size, _, err := f.tag(h.r)
	if err != nil {
		return nil, err
	}
	if kind != matMatrix || size > h.left() {
		return nil, fmt.Errorf("%s has a field of type %d, %d bytes: want matrices in %d", usage.Quote(h.name), kind, size, h.left())
	}
	end := h.r.read + size
	if wanted && size > 0 {
		inner, err := f.head(h.r, -1, size)
		if err != nil {
			return nil, err
		}
		if value, err = inner.value(); err != nil {
			return nil, err
		}
	}
	if h.r.read > end {
		return nil, fmt.Errorf("%s has a field longer than its %d bytes", usage.Quote(h.name), size)
	}
	_, err = io.CopyN(io.Discard, h.r, end-h.r.read)
	return value, err
}

// value is a matrix as text or as one number; nil for others.
func (h *matHead) value() (any, error) {
	switch {
	case h.kind() == matText:
		return h.text()
	case h.numeric():
		m, err := h.numbers()
		if err != nil || m.bytes != int64(m.dtype.size) {
			return nil, err
		}
		b, err := m.content()
		if err != nil || int64(len(b)) != m.bytes {
			return nil, io.ErrUnexpectedEOF
		}
		return m.dtype.at(b, m.dtype.order), nil
	}
	return nil, nil
}

// text reads a short text: bytes, UTF-8 or UTF-16.
func (h *matHead) text() (any, error) {
	kind, size, small, err := h.file.tag(h.r)
	if err != nil {
		return nil, err
	}
	if size > maxMatPart {
		return nil, nil
	}
	b := small
	if b == nil {
		b = make([]byte, size)
		if _, err := io.ReadFull(h.r, b); err != nil {
			return nil, err
		}
	}
	switch kind {
	case 1, 2, 16:
		return string(b), nil
	case 4, 17:
		var units []uint16
		for ; len(b) >= 2; b = b[2:] {
			units = append(units, h.file.order.Uint16(b))
		}
		return string(utf16.Decode(units)), nil
	}
	return nil, nil
}
