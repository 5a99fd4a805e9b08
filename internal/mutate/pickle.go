package mutate

import (
	"math/rand/v2"
	"slices"
	"strings"
)

// fragments of pickles, in opcodes of Python's Lib/pickletools.py.
func fragments(r *rand.Rand) []string {
	lists := func(n int) string { return strings.Repeat("]", n) }
	return []string{
		// marks without end, pairs of them, values that pile up
		strings.Repeat("(", 2+r.IntN(3000)), strings.Repeat("(1", 5000), strings.Repeat("(l", 5000), lists(5000), strings.Repeat("N", 20000),
		strings.Repeat("}", 5000), strings.Repeat("N\x94", 5000), strings.Repeat("2", 20000), strings.Repeat("N\x85", 5000),
		// lengths that are not there
		"X\xff\xff\xff\x7f", "X\xff\xff\xff\xff", "T\xff\xff\xff\xff", "\x8d\xff\xff\xff\xff\xff\xff\xff\x7f", "\x8e\x00\x00\x00\x00\x01\x00\x00\x00",
		"\x96\xff\xff\xff\xff\xff\xff\xff\xff", "\x95\xff\xff\xff\xff\xff\xff\xff\x7f", "\x95\x04\x00\x00\x00\x00\x00\x00\x00", "\x8b\xff\xff\xff\x7f", "\x8a\xff",
		"U\xff", "C\xff", "B\xff\xff\xff\x7f", "I99999999999999999999999\n", "L" + strings.Repeat("9", 900) + "L\n", "Fnan\n", "F1e999\n", "I01\n", "Ix\n", "Sx\n", "S'\n",
		// names, calls and what they are given
		"cos\nsystem\n", "cposix\nsystem\nX\x02\x00\x00\x00id\x85R", "c__builtin__\neval\n", "cbuiltins\ngetattr\n", "ctorch\nFloatStorage\n", "ctorch._utils\n_rebuild_tensor_v2\n",
		"ccollections\nOrderedDict\n", "ccollections\nOrderedDict\n)R", "ccollections\nOrderedDict\nN\x85R", "c" + strings.Repeat("a", 900) + "\nb\n", "c\n\n", "ca\x00b\n\xff\n",
		"ccopy_reg\n_reconstructor\n", "c__builtin__\nobject\n", "ctorch._utils\n_rebuild_tensor_v2\n)R", "ctorch._utils\n_rebuild_tensor_v2\n(NNNNNNtR", "iposix\nsystem\n", "(iposix\nsystem\n",
		"X\x02\x00\x00\x00osX\x06\x00\x00\x00system\x93", "N)R", "N)\x81", "]]R", "))R", "o", "(o", "(No", "\x82\x01", "\x83\x01\x00", "\x84\x01\x00\x00\x00", "\x97", "\x98",
		// wrong kinds for the opcode that follows, empty stacks, self reference
		"0", "00000000", "1", "a", "e", "s", "u", "(u", "(NNNu", "(Nd", "t", "(t", "\x85", "\x86", "\x87", "R", "b", "Nb", "\x81", "\x92", "\x93", "Q", "NQ", "Px\n", "\x90", "(\x90", "(]\x91", "\x8f(]\x90",
		"]q\x07h\x07a", "}q\x07h\x07h\x07s", "]q\x07h\x07\x85R", "]q\x07h\x07h\x07h\x07h\x07R", "h\xff", "j\xff\xff\xff\xff", "g-1\n", "p-1\n", "r\xff\xff\xff\xff", "g\n",
		"K\x00", "K\xff", "M\xff\xff", "J\xff\xff\xff\xff", "J\xff\xff\xff\x7f", "\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f", "\x8a\x09\xff\xff\xff\xff\xff\xff\xff\xff\x00", "\x8a\x00", "G\x7f\xf0\x00\x00\x00\x00\x00\x00",
		"\x88", "\x89", "N", ".", "\x80\x05", "\x80\xff", "X\x00\x00\x00\x00", "X\x02\x00\x00\x00\xff\xfe", "\x8c\x01\n",
	}
}

// Pickle damages pickles: opcodes put in, replaced, taken out, arguments of
// those that are there.
func Pickle(r *rand.Rand, b []byte) []byte {
	if len(b) < 2 {
		return b
	}
	at := r.IntN(len(b))
	switch r.IntN(5) {
	case 0, 1:
		return slices.Insert(b, at, []byte(pick(r, fragments(r)))...)
	case 2: // before the end: the stack is as it should be there
		return slices.Insert(b, len(b)-1, []byte(pick(r, fragments(r)))...)
	case 3:
		f := pick(r, fragments(r))
		return slices.Replace(b, at, min(len(b), at+len(f)), []byte(f)...)
	}
	// The argument of an integer or a length.
	for range 200 {
		at = r.IntN(len(b))
		size := map[byte]int{'K': 1, 'M': 2, 'J': 4, 'X': 4, 'U': 1, 'h': 1, 'q': 1, 'r': 4, 'j': 4, 0x8c: 1, 0x95: 8, 0x80: 1}[b[at]]
		if size > 0 && at+1+size <= len(b) {
			setField(r, b[at+1:][:size], false)
			return b
		}
	}
	return b
}
