package pickle

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
)

// A pickle names lengths before data, and the machine that interprets it
// allocates what it is told. Scan walks the opcodes first, without interpreting
// them, so that the machine only ever sees a pickle whose every length lies
// within the bytes that are there and whose size is what its kind of file has.
// Opcodes: Python's Lib/pickletools.py.

// Limits are what an honest pickle of some kind keeps.
type Limits struct {
	// Bytes bounds the pickle, Objects what it builds, Depth how many marks are
	// open at one time.
	Bytes, Objects, Depth int
	// BytesPerOpcode is how long a pickle is at least for its opcodes, over the
	// first 1024 of them: one of bulk data is long and has few, and every
	// opcode may take memory for more than its byte. 0: no bound.
	BytesPerOpcode int
	// Want says in messages what would be right: "want a dict of tensors".
	Want string
}

const (
	// maxLine bounds numbers in decimal, maxLong those in binary.
	maxLine = 1 << 10
	maxLong = 255
	// freeOpcodes are not counted against Limits.BytesPerOpcode.
	freeOpcodes = 1024
)

// ErrShort says that the bytes end before the pickle does.
var ErrShort = errors.New("the pickle ends before its STOP")

// How an opcode's argument is measured.
const (
	argNone  = iota
	argFixed // n bytes
	argLength1
	argLength4
	argLength8
	argLong1 // as length, but an integer: short
	argLong4
	argNumberLine // to the newline, a number
	argLine       // to the newline
	argTwoLines   // module and name
)

type opcode struct {
	kind int
	n    int64
	// builds: makes an object of its own; opens/closes: pushes or consumes a mark.
	builds, opens, closes bool
}

// opcodes that torch or Python's pickler writes, protocols 0 to 5.
var opcodes = map[byte]opcode{
	'(': {opens: true}, '.': {}, '0': {}, '1': {closes: true}, '2': {},
	'F': {kind: argNumberLine}, 'I': {kind: argNumberLine}, 'L': {kind: argNumberLine},
	'J': {kind: argFixed, n: 4}, 'K': {kind: argFixed, n: 1}, 'M': {kind: argFixed, n: 2},
	'N': {}, 'P': {kind: argLine}, 'Q': {}, 'R': {builds: true},
	'S': {kind: argLine}, 'V': {kind: argLine},
	'T': {kind: argLength4}, 'U': {kind: argLength1}, 'X': {kind: argLength4},
	'a': {}, 'b': {}, 'c': {kind: argTwoLines, builds: true}, 'i': {kind: argTwoLines, builds: true, closes: true},
	'd': {builds: true, closes: true}, '}': {builds: true}, 'e': {closes: true},
	'g': {kind: argNumberLine}, 'h': {kind: argFixed, n: 1}, 'j': {kind: argFixed, n: 4},
	'p': {kind: argNumberLine}, 'q': {kind: argFixed, n: 1}, 'r': {kind: argFixed, n: 4},
	'l': {builds: true, closes: true}, ']': {builds: true}, 'o': {builds: true, closes: true},
	's': {}, 't': {builds: true, closes: true}, ')': {builds: true}, 'u': {closes: true},
	'G': {kind: argFixed, n: 8},

	0x80: {kind: argFixed, n: 1}, 0x81: {builds: true},
	0x82: {kind: argFixed, n: 1}, 0x83: {kind: argFixed, n: 2}, 0x84: {kind: argFixed, n: 4},
	0x85: {builds: true}, 0x86: {builds: true}, 0x87: {builds: true}, 0x88: {}, 0x89: {},
	0x8a: {kind: argLong1}, 0x8b: {kind: argLong4},

	'B': {kind: argLength4}, 'C': {kind: argLength1},

	0x8c: {kind: argLength1}, 0x8d: {kind: argLength8}, 0x8e: {kind: argLength8},
	0x8f: {builds: true}, 0x90: {closes: true}, 0x91: {builds: true, closes: true},
	0x92: {builds: true}, 0x93: {builds: true}, 0x94: {}, 0x95: {kind: argFixed, n: 8},
	0x96: {kind: argLength8},
}

// Scanned is what Scan learns.
type Scanned struct {
	// End is the offset behind STOP.
	End int
	// Globals are the offsets of GLOBAL opcodes.
	Globals []int
	// Memory is about what the machine will allocate, in bytes, what it frees
	// again included: an opcode of one byte can cost 300.
	Memory int64
}

// cost is what an opcode with an argument of n bytes makes the machine allocate
// (measured with gopickle 0.2 on 64 bits): a place on the stack, which grows by
// copying, an object, a stack of 16 places for a mark, an entry of the memo, a
// storage or what a call makes.
func (op opcode) cost(code byte, n int64) int64 {
	c := 48 + 3*n
	if op.builds {
		c += 96
	}
	if op.opens {
		c += 300
	}
	switch code {
	case 'p', 'q', 'r', 0x94:
		c += 100
	case 'P', 'Q', 'R', 0x81, '}', 'd', 0x8f:
		c += 200
	}
	return c
}

// Scan walks one pickle at the start of b. The error is ErrShort
// where more bytes could complete it.
func Scan(b []byte, limits Limits) (Scanned, error) {
	var s Scanned
	objects, depth, opcodesSeen := 0, 0, 0
	for at := 0; ; {
		opcodesSeen++
		if limits.BytesPerOpcode > 0 && opcodesSeen > freeOpcodes+len(b)/limits.BytesPerOpcode {
			return s, fmt.Errorf("the pickle has more than %d opcodes in %d bytes: %s", opcodesSeen-1, len(b), limits.Want)
		}
		if at > limits.Bytes {
			return s, fmt.Errorf("the pickle is longer than %d MiB: %s", limits.Bytes>>20, limits.Want)
		}
		if at >= len(b) {
			return s, ErrShort
		}
		code := b[at]
		op, ok := opcodes[code]
		if !ok {
			return s, fmt.Errorf("byte %d: 0x%02x is no pickle opcode", at, code)
		}
		if code == 'c' {
			s.Globals = append(s.Globals, at)
		}
		at++
		n, err := limits.argument(op, b[at:])
		if err != nil {
			return s, err
		}
		if n > int64(len(b)-at) {
			return s, ErrShort
		}
		if code == 0x95 {
			// A frame may reach to the end of what is there, not beyond.
			if frame := binary.LittleEndian.Uint64(b[at:]); frame > uint64(len(b)-at)-8 {
				return s, ErrShort
			}
		}
		at += int(n)
		s.Memory += op.cost(code, n)
		if code == '.' {
			s.End = at
			return s, nil
		}
		if op.builds {
			objects++
		}
		if op.opens {
			depth++
			objects++
		}
		if op.closes && depth > 0 {
			depth--
		}
		if objects > limits.Objects || depth > limits.Depth {
			return s, fmt.Errorf("the pickle builds more than %d objects or nests deeper than %d: %s", limits.Objects, limits.Depth, limits.Want)
		}
	}
}

// argument returns the bytes of an opcode's argument at the start of b.
// It may be more than there are, but the length field itself has to be there.
func (l Limits) argument(op opcode, b []byte) (int64, error) {
	counted := func(field int) (int64, error) {
		if len(b) < field {
			return 0, ErrShort
		}
		var raw [8]byte
		copy(raw[:], b[:field])
		n := binary.LittleEndian.Uint64(raw[:])
		if n > uint64(l.Bytes) {
			return 0, fmt.Errorf("the pickle holds a string of %d bytes: %s", n, l.Want)
		}
		return int64(field) + int64(n), nil
	}
	line := func(b []byte, limit int64) (int64, error) {
		i := bytes.IndexByte(b, '\n')
		if int64(i) > limit || i < 0 && int64(len(b)) > limit {
			return 0, fmt.Errorf("the pickle holds a line of more than %d bytes: %s", limit, l.Want)
		}
		if i < 0 {
			return 0, ErrShort
		}
		return int64(i) + 1, nil
	}
	switch op.kind {
	case argFixed:
		return op.n, nil
	case argLength1:
		return counted(1)
	case argLength4:
		return counted(4)
	case argLength8:
		return counted(8)
	case argLong1, argLong4:
		field := 1
		if op.kind == argLong4 {
			field = 4
		}
		n, err := counted(field)
		if err == nil && n > int64(field)+maxLong {
			err = fmt.Errorf("the pickle holds an integer of %d bytes: want at most %d", n-int64(field), maxLong)
		}
		return n, err
	case argNumberLine:
		return line(b, maxLine)
	case argLine:
		return line(b, int64(l.Bytes))
	case argTwoLines:
		first, err := line(b, maxLine)
		if err != nil {
			return 0, err
		}
		second, err := line(b[first:], maxLine)
		return first + second, err
	}
	return 0, nil
}
