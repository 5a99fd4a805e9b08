package torchx

// #include "torchx.h"
import "C"

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"unsafe"

	"github.com/wangkuiyi/gotorch"
)

// Tensor is a tensor of libtorch, held by a gotorch.Tensor: this file is the
// only one that knows gotorch.
type Tensor struct{ t gotorch.Tensor }

// adopt takes over a tensor handle that the library made.
func adopt(p C.tx_tensor) *Tensor {
	cell := new(unsafe.Pointer)
	*cell = unsafe.Pointer(p)
	gotorch.SetTensorFinalizer(cell)
	return &Tensor{gotorch.Tensor{T: cell}}
}

// pin returns the handle for a call into the library and what keeps it alive
// until then: `p, keep := t.pin(); defer keep()`. nil for a closed tensor.
func (t *Tensor) pin() (C.tx_tensor, func()) {
	if t == nil {
		return nil, func() {}
	}
	cell := t.t.T
	return C.tx_tensor(atomic.LoadPointer(cell)), func() { runtime.KeepAlive(cell) }
}

// Close frees the tensor. It must not be in use by another goroutine.
// Gotorch's finaliser stays on: it will find NULL, and its bookkeeping holds.
func (t *Tensor) Close() error {
	if t == nil {
		return nil
	}
	if p := atomic.SwapPointer(t.t.T, nil); p != nil {
		C.tx_tensor_free(C.tx_tensor(p))
	}
	return nil
}

// GoTorch returns the gotorch tensor that shares this tensor's handle. Of
// gotorch, only construction, shape and item access are safe (docs/build.md);
// it must not be used after Close.
func (t *Tensor) GoTorch() gotorch.Tensor { return t.t }

// FromGoTorch makes a Tensor that shares the handle of a gotorch tensor.
func FromGoTorch(t gotorch.Tensor) *Tensor { return &Tensor{t} }

// DType is the type of a tensor's elements; the values are those of torchx.h.
type DType int32

// The element types.
const (
	F32  DType = C.TX_F32
	F64  DType = C.TX_F64
	F16  DType = C.TX_F16
	BF16 DType = C.TX_BF16
	U8   DType = C.TX_U8
	I8   DType = C.TX_I8
	I16  DType = C.TX_I16
	I32  DType = C.TX_I32
	I64  DType = C.TX_I64
	Bool DType = C.TX_BOOL
)

// The names of weights.Tensor.DType and the sizes of one element in bytes.
var (
	dtypeNames = [...]string{"f32", "f64", "f16", "bf16", "u8", "i8", "i16", "i32", "i64", "bool"}
	dtypeBytes = [...]int{4, 8, 2, 2, 1, 1, 2, 4, 8, 1}
)

// String is the name that ParseDType takes.
func (d DType) String() string {
	if d < 0 || int(d) >= len(dtypeNames) {
		return fmt.Sprintf("type %d", int32(d))
	}
	return dtypeNames[d]
}

// ParseDType returns the type that weights.Tensor.DType names ("f32", "i64", ...).
func ParseDType(name string) (DType, error) {
	for i, n := range dtypeNames {
		if n == name {
			return DType(i), nil
		}
	}
	return 0, invalidf("tensor-new", "element type %q: want f32, f64, f16, bf16, u8, i8, i16, i32, i64 or bool", name)
}

// NewTensor copies data (contiguous, row-major, host byte order) into a new
// tensor on the CPU.
func NewTensor(dtype DType, shape []int64, data []byte) (*Tensor, error) {
	if err := start(); err != nil {
		return nil, err
	}
	var p C.tx_tensor
	if err := failure(C.tx_tensor_new(C.int32_t(dtype), (*C.int64_t)(unsafe.SliceData(shape)), C.int32_t(len(shape)),
		unsafe.Pointer(unsafe.SliceData(data)), C.size_t(len(data)), &p)); err != nil {
		return nil, err
	}
	return adopt(p), nil
}

// NewFloats is NewTensor for float32 values.
func NewFloats(shape []int64, values []float32) (*Tensor, error) {
	return NewTensor(F32, shape, unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(values))), 4*len(values)))
}

// Describe returns element type and shape.
func (t *Tensor) Describe() (DType, []int64, error) {
	p, keep := t.pin()
	defer keep()
	if p == nil {
		return 0, nil, closedError("tensor-describe", "tensor")
	}
	var dtype, dimensions C.int32_t
	var shape [C.TX_MAX_DIMENSIONS]C.int64_t
	if err := failure(C.tx_tensor_describe(p, &dtype, &dimensions, &shape[0], nil)); err != nil {
		return 0, nil, err
	}
	out := make([]int64, dimensions)
	for i := range out {
		out[i] = int64(shape[i])
	}
	return DType(dtype), out, nil
}

// read copies all elements; want is the type that T stands for.
func read[T any](t *Tensor, want DType) ([]T, error) {
	dtype, shape, err := t.Describe()
	if err != nil {
		return nil, err
	}
	if dtype != want {
		return nil, invalidf("tensor-read", "the elements have type %d, not %d", dtype, want)
	}
	n := int64(1)
	for _, d := range shape {
		n *= d
	}
	out := make([]T, n)
	p, keep := t.pin()
	defer keep()
	var one T
	return out, failure(C.tx_tensor_read(p, unsafe.Pointer(unsafe.SliceData(out)), C.size_t(n)*C.size_t(unsafe.Sizeof(one))))
}

// Floats returns a copy of a float32 tensor's elements, row-major.
func (t *Tensor) Floats() ([]float32, error) { return read[float32](t, F32) }

// Doubles returns a copy of a float64 tensor's elements, row-major.
func (t *Tensor) Doubles() ([]float64, error) { return read[float64](t, F64) }

// Bytes returns a copy of an 8-bit tensor's elements, row-major.
func (t *Tensor) Bytes() ([]byte, error) { return read[byte](t, U8) }

// Raw returns element type, shape and a copy of the elements: row-major, host
// byte order, as NewTensor takes them.
func (t *Tensor) Raw() (DType, []int64, []byte, error) {
	dtype, shape, err := t.Describe()
	if err != nil {
		return 0, nil, nil, err
	}
	size := int64(dtypeBytes[dtype])
	for _, d := range shape {
		size *= d
	}
	out := make([]byte, size)
	p, keep := t.pin()
	defer keep()
	return dtype, shape, out, failure(C.tx_tensor_read(p, unsafe.Pointer(unsafe.SliceData(out)), C.size_t(size)))
}

// Row returns row i of the first dimension as a new tensor that shares memory.
func (t *Tensor) Row(i int) (*Tensor, error) { return t.Rows(i, i+1, true) }

// Rows returns rows [begin,end) of the first dimension as a new tensor that
// shares memory; squeeze drops the first dimension of a single row.
func (t *Tensor) Rows(begin, end int, squeeze bool) (*Tensor, error) {
	p, keep := t.pin()
	defer keep()
	if p == nil {
		return nil, closedError("tensor-rows", "tensor")
	}
	var drop C.int32_t
	if squeeze {
		drop = 1
	}
	var row C.tx_tensor
	if err := failure(C.tx_tensor_rows(p, C.int64_t(begin), C.int64_t(end), drop, &row)); err != nil {
		return nil, err
	}
	return adopt(row), nil
}
