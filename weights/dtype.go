package weights

import (
	"fmt"
	"math/bits"
)

// dtypes are the element types of Tensor: bytes an element, the name in
// safetensors, whether it is a floating-point type.
var dtypes = map[string]struct {
	size        int64
	safetensors string
	floating    bool
}{
	"f32":  {4, "F32", true},
	"f64":  {8, "F64", true},
	"f16":  {2, "F16", true},
	"bf16": {2, "BF16", true},
	"u8":   {1, "U8", false},
	"i8":   {1, "I8", false},
	"i16":  {2, "I16", false},
	"i32":  {4, "I32", false},
	"i64":  {8, "I64", false},
	"bool": {1, "BOOL", false},
}

const dtypeList = "f32, f64, f16, bf16, u8, i8, i16, i32, i64, bool"

// foreignSizes are bytes an element of torch types that no net here takes. The
// sizes are still needed: such storages have to be stepped over.
var foreignSizes = map[string]int64{
	"complex32": 4, "complex64": 8, "complex128": 16,
	"qint8": 1, "quint8": 1, "qint32": 4, "quint4x2": 1, "quint2x4": 1,
	"float8_e4m3fn": 1, "float8_e5m2": 1, "float8_e4m3fnuz": 1, "float8_e5m2fnuz": 1,
	"uint16": 2, "uint32": 4, "uint64": 8,
}

// elementSize returns the bytes of one element of any type torch stores.
func elementSize(dtype string) (int64, error) {
	if d, ok := dtypes[dtype]; ok {
		return d.size, nil
	}
	if n, ok := foreignSizes[dtype]; ok {
		return n, nil
	}
	return 0, fmt.Errorf("element type %q: want one of %s", dtype, dtypeList)
}

// byteCount returns the bytes of a tensor. Sizes come from files: negative ones
// and products beyond int64 are errors.
func byteCount(dtype string, shape []int64) (int64, error) {
	d, ok := dtypes[dtype]
	if !ok {
		return 0, fmt.Errorf("element type %q: want one of %s", dtype, dtypeList)
	}
	total, empty := uint64(d.size), false
	for _, n := range shape {
		if n < 0 {
			return 0, fmt.Errorf("shape %v: sizes cannot be negative", shape)
		}
		if n == 0 {
			empty = true
			continue
		}
		hi, lo := bits.Mul64(total, uint64(n))
		if hi != 0 || lo > 1<<62 {
			return 0, fmt.Errorf("shape %v: more elements than any file can hold", shape)
		}
		total = lo
	}
	if empty {
		return 0, nil
	}
	return int64(total), nil
}
