package dataset

import (
	"archive/zip"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/assay-xai/assay/internal/usage"
)

// MapWriter writes maps by image id as an .npz, what numpy.savez writes of
// {id: array}: the same maps in the same order are the same bytes.
type MapWriter struct{ z *zip.Writer }

// NewMapWriter writes to w.
func NewMapWriter(w io.Writer) *MapWriter { return &MapWriter{zip.NewWriter(w)} }

// Add writes a map; shape is [C,H,W] or [F].
func (m *MapWriter) Add(id string, values []float32, shape []int) error {
	size := 1
	for _, n := range shape {
		size *= n
	}
	if size != len(values) {
		return fmt.Errorf("maps: %s: %d values for shape %v", id, len(values), shape)
	}
	content := append(Float32Header(shape), FloatBytes(values)...)
	// With size and sum known before there is no descriptor behind the data, which
	// some readers of archives do not know.
	f, err := m.z.CreateRaw(&zip.FileHeader{Name: id + npySuffix, Method: zip.Store, CRC32: crc32.ChecksumIEEE(content),
		CompressedSize64: uint64(len(content)), UncompressedSize64: uint64(len(content))})
	if err == nil {
		_, err = f.Write(content)
	}
	if err != nil {
		return fmt.Errorf("maps: writing %s: %w", id, err)
	}
	return nil
}

// Copy writes a map of another file as it is there.
func (m *MapWriter) Copy(from *Maps, id string) error {
	member, ok := from.members[id]
	if !ok {
		return usage.Errorf("maps: %s has none for %s", from.Path, id)
	}
	if err := m.z.Copy(member.f); err != nil {
		return fmt.Errorf("maps: copying %s from %s: %w", id, member.path, err)
	}
	return nil
}

// Close ends the archive; it does not close what it is written to.
func (m *MapWriter) Close() error {
	if err := m.z.Close(); err != nil {
		return fmt.Errorf("maps: writing: %w", err)
	}
	return nil
}

const npySuffix = ".npy"

// Float32Header is the head of an .npy of little-endian float32 in C order (format
// 1.0 of numpy.lib.format), padded to a multiple of 64 bytes.
func Float32Header(shape []int) []byte {
	sides := make([]string, len(shape))
	for i, n := range shape {
		sides[i] = strconv.Itoa(n)
	}
	list := strings.Join(sides, ", ")
	if len(shape) == 1 {
		list += ","
	}
	text := "{'descr': '<f4', 'fortran_order': False, 'shape': (" + list + "), }"
	const fixed, align = 10, 64
	text += strings.Repeat(" ", (align-(fixed+len(text)+1)%align)%align) + "\n"
	out := append([]byte("\x93NUMPY\x01\x00"), byte(len(text)), byte(len(text)>>8))
	return append(out, text...)
}

// FloatBytes are values as little-endian float32.
func FloatBytes(values []float32) []byte {
	out := make([]byte, 0, 4*len(values))
	for _, v := range values {
		out = binary.LittleEndian.AppendUint32(out, math.Float32bits(v))
	}
	return out
}
