package weights

import (
	"fmt"
	"io"
)

// source gives the bytes of storages, little-endian or not.
type source interface {
	// read fills p from a storage's byte offset on.
	read(s *storage, p []byte, offset int64) error
	// swapped says that elements are big-endian.
	swapped() bool
}

// loader turns views into tensors, within a budget of bytes: views may overlap
// or repeat elements, and a small file must not ask for a lot of memory.
type loader struct {
	from   source
	budget int64
}

// newLoader allows what a file of that size can reasonably hold: tied weights
// are stored once and loaded twice.
func newLoader(from source, fileSize int64) *loader {
	return &loader{from: from, budget: 3*fileSize + 1<<20}
}

func (l *loader) spend(n int64) error {
	if n > l.budget {
		return fmt.Errorf("its views ask for more memory than a file of this size can fill")
	}
	l.budget -= n
	return nil
}

// load returns the view's elements, contiguous and little-endian.
func (l *loader) load(v *tensorView) (Tensor, error) {
	n, err := byteCount(v.dtype, v.shape)
	if err != nil {
		return Tensor{}, err
	}
	t := Tensor{DType: v.dtype, Shape: append([]int64{}, v.shape...), Data: []byte{}}
	if n == 0 {
		return t, nil
	}
	size := dtypes[v.dtype].size
	span, err := v.span()
	if err != nil {
		return Tensor{}, err
	}
	if v.storage.dtype != v.dtype && v.storage.dtype != "" {
		return Tensor{}, fmt.Errorf("a %s tensor in a %s storage", v.dtype, v.storage.dtype)
	}
	capacity := v.storage.count
	if v.storage.dtype == "" {
		capacity /= size // an untyped storage counts bytes
	}
	if v.offset > capacity || span > capacity-v.offset {
		return Tensor{}, fmt.Errorf("shape %v with stride %v at offset %d reaches beyond its storage of %d elements", v.shape, v.stride, v.offset, capacity)
	}
	first := v.storage.first
	if v.storage.dtype != "" {
		first *= size
	}
	if err := l.spend(max(n, span*size)); err != nil {
		return Tensor{}, err
	}
	raw := make([]byte, span*size)
	if err := l.from.read(v.storage, raw, first+v.offset*size); err != nil {
		return Tensor{}, err
	}
	if l.from.swapped() {
		reverseElements(raw, int(size))
	}
	if v.contiguous() {
		t.Data = raw
		return t, nil
	}
	t.Data = make([]byte, n)
	gather(t.Data, raw, v.shape, v.stride, size)
	return t, nil
}

// span returns how many elements of the storage lie between the view's first
// and its last, both included. The view is not empty.
func (v *tensorView) span() (int64, error) {
	last := int64(0)
	for i, n := range v.shape {
		if n == 1 {
			continue
		}
		const limit = 1 << 56
		if v.stride[i] > limit || n > limit || v.stride[i] > limit/n || last > limit {
			return 0, fmt.Errorf("shape %v with stride %v: more elements than any file can hold", v.shape, v.stride)
		}
		last += (n - 1) * v.stride[i]
	}
	return last + 1, nil
}

func (v *tensorView) contiguous() bool {
	want := int64(1)
	for i := len(v.shape) - 1; i >= 0; i-- {
		if v.shape[i] != 1 && v.stride[i] != want {
			return false
		}
		want *= v.shape[i]
	}
	return true
}

// gather copies a strided view (strides in elements) into row-major order and
// returns what of dst is left.
func gather(dst, src []byte, shape, stride []int64, size int64) []byte {
	if len(shape) == 0 {
		return dst[copy(dst, src[:size]):]
	}
	if len(shape) == 1 && stride[0] == 1 {
		return dst[copy(dst, src[:shape[0]*size]):]
	}
	for i := range shape[0] {
		dst = gather(dst, src[i*stride[0]*size:], shape[1:], stride[1:], size)
	}
	return dst
}

func reverseElements(b []byte, size int) {
	for ; len(b) >= size && size > 1; b = b[size:] {
		for i, j := 0, size-1; i < j; i, j = i+1, j-1 {
			b[i], b[j] = b[j], b[i]
		}
	}
}

// readFull fills p; a file that ends early is truncated.
func readFull(r io.ReaderAt, p []byte, offset int64) error {
	n, err := r.ReadAt(p, offset)
	if n == len(p) {
		return nil
	}
	if err == io.EOF || err == nil {
		return fmt.Errorf("truncated: it ends at byte %d of the %d that it announces (get the file again)", offset+int64(n), offset+int64(len(p)))
	}
	return fmt.Errorf("read %d bytes at %d: %w", len(p), offset, err)
}
