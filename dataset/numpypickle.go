package dataset

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/nlpodyssey/gopickle/types"

	"github.com/assay-xai/assay/internal/pickle"
)

// pickledArray is a NumPy array of uint8 inside a pickle, in C order once read.
type pickledArray struct {
	shape []int
	data  io.ReaderAt
	size  int64
}

// pickledDtype is numpy.dtype; its name has no byte order.
type pickledDtype struct{ name string }

// PySetState takes (version, byte order, ...), which does not matter to bytes.
func (*pickledDtype) PySetState(any) error { return nil }

// pickledName is an admitted class that is only mentioned.
type pickledName struct{}

// batchPickle bounds a pickle of images: 155 MB for CIFAR-100.
func batchPickle() pickle.Limits {
	return pickle.Limits{Bytes: 256 << 20, Objects: 1 << 20, Depth: 100, BytesPerOpcode: 64,
		Want: "want a dict of lists and an array of uint8, as CIFAR's Python version has them"}
}

// loadBatchPickle reads a pickle of dicts, lists, strings, bytes, integers and
// NumPy arrays of uint8. Whatever else it names is refused. It may change b.
func loadBatchPickle(b []byte) (any, error) {
	scan, err := pickle.Scan(b, batchPickle())
	if err != nil {
		return nil, err
	}
	return pickle.Load(b, scan, pickle.Machine{Admit: admittedInBatch,
		Advice: "only dicts, lists, strings, integers and NumPy arrays of uint8 are read"})
}

// admittedInBatch lists what NumPy's arrays need, under the names of NumPy 1
// and 2, and what Python 3 writes for bytes in protocol 2. Nothing runs: each
// only builds values of this file.
func admittedInBatch(module, name string) (any, bool) {
	switch module + "." + name {
	case "numpy.ndarray":
		return pickledName{}, true
	case "numpy.dtype":
		return pickle.Function(newPickledDtype), true
	case "numpy.core.multiarray._reconstruct", "numpy._core.multiarray._reconstruct":
		return pickle.Function(func([]any) (any, error) { return &pickledArray{}, nil }), true
	case "numpy.core.numeric._frombuffer", "numpy._core.numeric._frombuffer":
		return pickle.Function(arrayFromBuffer), true
	case "_codecs.encode":
		return pickle.Function(encodeLatin1), true
	}
	return nil, false
}

func newPickledDtype(args []any) (any, error) {
	if len(args) == 0 {
		return nil, fmt.Errorf("a dtype without a name")
	}
	name, ok := text(args[0])
	if !ok {
		return nil, fmt.Errorf("a dtype called %s: want u1", pickle.Describe(args[0]))
	}
	return &pickledDtype{strings.TrimLeft(name, "|<>=")}, nil
}

// PySetState takes what ndarray.__reduce__ gives: (version, shape, dtype,
// Fortran order, bytes).
func (a *pickledArray) PySetState(state any) error {
	t, ok := state.(*types.Tuple)
	if !ok || t.Len() != 5 {
		return pickle.Own(fmt.Errorf("an array of %s: want NumPy's five values", pickle.Describe(state)))
	}
	fortran, ok := truth(t.Get(3))
	if !ok {
		return pickle.Own(fmt.Errorf("an array with order %s: want True or False", pickle.Describe(t.Get(3))))
	}
	return pickle.Own(a.fill(t.Get(1), t.Get(2), fortran, t.Get(4)))
}

// arrayFromBuffer is numpy's _frombuffer(buffer, dtype, shape, order), what
// protocol 5 writes.
func arrayFromBuffer(args []any) (any, error) {
	if len(args) != 4 {
		return nil, fmt.Errorf("an array of %d arguments: want buffer, dtype, shape, order", len(args))
	}
	order, ok := text(args[3])
	if !ok || order != "C" && order != "F" {
		return nil, fmt.Errorf("an array in order %s: want C or F", pickle.Describe(args[3]))
	}
	a := &pickledArray{}
	return a, a.fill(args[2], args[1], order == "F", args[0])
}

// fill checks all parts of an array and takes them.
func (a *pickledArray) fill(shape, dtype any, fortran bool, data any) error {
	d, ok := dtype.(*pickledDtype)
	if !ok || d.name != "u1" && d.name != "uint8" {
		what := pickle.Describe(dtype)
		if ok {
			what = d.name
		}
		return fmt.Errorf("an array of dtype %.20s: want uint8", what)
	}
	sizes, ok := shape.(*types.Tuple)
	if !ok || sizes.Len() == 0 || sizes.Len() > 4 {
		return fmt.Errorf("an array of shape %s: want 1 to 4 sizes", pickle.Describe(shape))
	}
	var size int64
	switch data := data.(type) {
	case string: // Python 2's str
		a.data, size = strings.NewReader(data), int64(len(data))
	case []byte:
		a.data, size = bytes.NewReader(data), int64(len(data))
	case *types.ByteArray:
		a.data, size = bytes.NewReader(*data), int64(len(*data))
	default:
		return fmt.Errorf("an array of %s: want bytes", pickle.Describe(data))
	}
	need := int64(1)
	a.shape, a.size = nil, size
	for _, s := range *sizes {
		n, ok := s.(int)
		if !ok || n < 1 || int64(n) > size/need {
			return fmt.Errorf("an array of %d bytes with a size of %s: want sizes from 1 whose product is the number of bytes", size, pickle.Describe(s))
		}
		need *= int64(n)
		a.shape = append(a.shape, n)
	}
	if need != size {
		return fmt.Errorf("an array of shape %v with %d bytes: want %d", a.shape, size, need)
	}
	if fortran && len(a.shape) > 1 {
		return a.toCOrder()
	}
	return nil
}

// toCOrder turns an array that lies column by column.
func (a *pickledArray) toCOrder() error {
	in := make([]byte, a.size)
	if _, err := a.data.ReadAt(in, 0); err != nil && err != io.EOF {
		return err
	}
	out := make([]byte, a.size)
	at := make([]int, len(a.shape)) // the index of the next element, last size fastest
	for i := range out {
		from, stride := 0, 1
		for d, n := range a.shape {
			from += at[d] * stride
			stride *= n
		}
		out[i] = in[from]
		for d := len(at) - 1; d >= 0; d-- {
			if at[d]++; at[d] < a.shape[d] {
				break
			}
			at[d] = 0
		}
	}
	a.data = bytes.NewReader(out)
	return nil
}

// encodeLatin1 is _codecs.encode(text, "latin1"): bytes as Python 3 writes them
// in protocol 2.
func encodeLatin1(args []any) (any, error) {
	if len(args) == 2 {
		s, isText := args[0].(string)
		codec, _ := text(args[1])
		if isText && slices.Contains([]string{"latin1", "latin-1"}, codec) {
			b := make([]byte, 0, len(s))
			for _, r := range s {
				if r > 0xff {
					return nil, fmt.Errorf("bytes with a character beyond 255")
				}
				b = append(b, byte(r))
			}
			return b, nil
		}
	}
	return nil, fmt.Errorf("encoded text: want (text, \"latin1\")")
}

// text is a string of Python 2 or 3, or bytes.
func text(v any) (string, bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case []byte:
		if len(v) <= 1<<16 {
			return string(v), true
		}
	}
	return "", false
}

// truth reads a bool, which protocol 0 and 1 write as an integer.
func truth(v any) (value, ok bool) {
	switch v := v.(type) {
	case bool:
		return v, true
	case int:
		return v != 0, v == 0 || v == 1
	}
	return false, false
}
