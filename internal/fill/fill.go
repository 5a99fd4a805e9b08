// Package fill makes parameters and inputs from a formula, so that nets can be
// compared across languages without a file of weights. The same formula stands
// in scripts/golden_nets.py and csrc/test/fill.h.
//
// For a name and the index i of an element in row-major order:
//
//	h = FNV-1a, 64 bits, of the name's bytes
//	z = h + (i+1) * 0x9E3779B97F4A7C15            (mod 2^64)
//	z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
//	z = (z ^ z>>27) * 0x94D049BB133111EB
//	z = z ^ z>>31                                 (that is SplitMix64)
//	v = (z>>11) * 2^-52 - 1                       in [-1, 1)
//
// and then, computed in double and rounded once to f32,
//
//	2 or more axes            v * sqrt(3 / fan_in), fan_in = all axes but the first
//	1 axis, *.running_var     1 + v/4
//	1 axis, *.running_mean    v/10
//	1 axis, *.weight          1 + v/4  (batch norm)
//	1 axis, others (biases)   v/10
//	no axis                   0        (num_batches_tracked)
//	input                     v * sqrt(3), with the name "input"
//
// Weights have variance 1/fan_in and inputs variance 1, so activations neither
// vanish nor overflow in the deepest nets.
package fill

import (
	"encoding/binary"
	"hash/fnv"
	"math"
	"strings"

	"github.com/assay-xai/assay/weights"
)

// Tensor returns a parameter's values, row-major. name and shape as the net
// describes them; buffer is not looked at (names say it).
func Tensor(name string, shape []int64, buffer bool) []float32 {
	scale, offset := 0.1, 0.0
	switch {
	case len(shape) == 0:
		scale = 0
	case len(shape) > 1:
		scale = math.Sqrt(3 / float64(elements(shape[1:])))
	case strings.HasSuffix(name, ".running_var"), strings.HasSuffix(name, ".weight"):
		scale, offset = 0.25, 1
	}
	return values(name, elements(shape), scale, offset)
}

// Weights is Tensor as an entry of a state dict.
func Weights(name string, shape []int64, buffer bool) weights.Tensor {
	values := Tensor(name, shape, buffer)
	data := make([]byte, 0, 4*len(values))
	for _, v := range values {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(v))
	}
	return weights.Tensor{DType: "f32", Shape: shape, Data: data}
}

// Input returns a batch of inputs; shape [N,C,H,W] or [N,F].
func Input(shape []int64) []float32 {
	return values("input", elements(shape), math.Sqrt(3), 0)
}

func elements(shape []int64) int64 {
	n := int64(1)
	for _, size := range shape {
		n *= size
	}
	return n
}

func values(name string, n int64, scale, offset float64) []float32 {
	hash := fnv.New64a()
	hash.Write([]byte(name))
	state := hash.Sum64()
	out := make([]float32, n)
	for i := range out {
		state += 0x9E3779B97F4A7C15
		z := state
		z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
		z = (z ^ z>>27) * 0x94D049BB133111EB
		z ^= z >> 31
		v := float64(z>>11)*0x1p-52 - 1
		// The conversion keeps the product rounded: no fused multiply-add.
		out[i] = float32(float64(v*scale) + offset)
	}
	return out
}
