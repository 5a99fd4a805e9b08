package mutate

import (
	"encoding/binary"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
)

// Safetensors damages the header of a safetensors file, or its length; mostly
// the length is made right again.
func Safetensors(r *rand.Rand, b []byte) []byte {
	if len(b) < 10 {
		return b
	}
	n := binary.LittleEndian.Uint64(b)
	if n > uint64(len(b)-8) {
		return b
	}
	if r.IntN(6) == 0 {
		setField(r, b[:8], false)
		return b
	}
	header := JSON(r, slices.Clone(b[8:8+n]))
	out := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(out, header...), b[8+n:]...)
}

// Npy damages the header of an .npy file, or its length.
func Npy(r *rand.Rand, b []byte) []byte {
	if len(b) < 12 {
		return b
	}
	n := int(binary.LittleEndian.Uint16(b[8:]))
	if n > len(b)-10 {
		return b
	}
	switch r.IntN(6) {
	case 0:
		setField(r, b[8:10], false)
		return b
	case 1:
		b[6+r.IntN(2)] = byte(r.IntN(5))
		return b
	}
	header := slices.Clone(b[10 : 10+n])
	switch r.IntN(5) {
	case 0:
		header = substitute(r, header, digits, decimals())
	case 1:
		header = substitute(r, header, regexp.MustCompile(`\([^)]*\)`), []string{
			"()", "(", ")", "(1,)", "(0,)", "(-1,)", "(0, 0)", "(1, -1)", "(4294967296, 4294967296)", "(9223372036854775807,)", "(3, 2, 1, 1, 1)",
			"(" + strings.Repeat("1, ", 5000) + ")", "(" + strings.Repeat("4096, ", 8) + ")", "[1, 2]", "(1 2)", "(1,,2)", "(0, 9223372036854775807)", "(1e3,)", "((1,),)",
		})
	case 2:
		header = substitute(r, header, regexp.MustCompile(`'[<>|=]?[a-zA-Z]+[0-9]*'`), []string{
			"'<f4'", "'>f8'", "'|u1'", "'<i8'", "'|O'", "'<U9999999'", "''", "'", "'<f'", "'<f99999999999'", "[('a', '<f4')]", "'<c16'", "'|b1'", "None",
		})
	case 3:
		header = swapTokens(r, header)
	default:
		header = substitute(r, header, token, []string{"'", "{", "}", ",", ":", "True", "False", "\n", "descr", "shape", "fortran_order", "\x00"})
	}
	out := append(slices.Clone(b[:8]), 0, 0)
	binary.LittleEndian.PutUint16(out[8:], uint16(len(header)))
	return append(append(out, header...), b[10+n:]...)
}
