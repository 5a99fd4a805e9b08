package mutate

import (
	"bytes"
	"encoding/binary"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"sort"
)

// Mutator damages a file. It may change b, which is a copy, and returns it or
// another slice. Where b is not of its format it returns b as it is.
type Mutator func(r *rand.Rand, b []byte) []byte

// Format is a kind of file to damage.
type Format struct {
	// Name keys the generator: "pth", "npz".
	Name string
	// Seeds are files that are right, by name.
	Seeds map[string][]byte
	// Cases is how many Every tries where ASSAY_MUTATIONS says nothing; 0: 2000.
	Cases int
	// Mutators are drawn from as often as Raw.
	Mutators []Mutator
}

// maxGrowth bounds what a case may have more than its seed: limits of readers
// are tested by numbers in a file, not by its bulk.
const maxGrowth = 256 << 10

// Case makes case n: the damaged file and the name of its seed.
func (f Format) Case(n int) (b []byte, seed string) {
	r := generator(f.Name, n)
	names := make([]string, 0, len(f.Seeds))
	for name := range f.Seeds {
		names = append(names, name)
	}
	sort.Strings(names)
	seed = names[n%len(names)]
	b = bytes.Clone(f.Seeds[seed])
	limit := len(b) + maxGrowth
	for range 1 + r.IntN(4) {
		m := Raw
		if len(f.Mutators) > 0 && r.IntN(4) != 0 {
			m = pick(r, f.Mutators)
		}
		if changed := m(r, bytes.Clone(b)); len(changed) <= limit {
			b = changed
		}
	}
	return b, seed
}

func generator(name string, n int) *rand.Rand {
	h := fnv.New64a()
	h.Write([]byte(name))
	return rand.New(rand.NewPCG(h.Sum64(), uint64(n)))
}

func pick[T any](r *rand.Rand, from []T) T { return from[r.IntN(len(from))] }

// numbers are where lengths and counts go wrong.
func numbers() []uint64 {
	return []uint64{
		0, 1, 2, 3, 7, 8, 15, 16, 17, 31, 63, 64, 100, 127, 128, 129, 254, 255, 256, 257, 511, 512, 513, 1000, 1023, 1024, 4096,
		1<<15 - 1, 1 << 15, 1<<16 - 2, 1<<16 - 1, 1 << 16, 100_000, 1 << 20, 1 << 24, 1<<28 - 1, 1 << 30, 1<<31 - 1, 1 << 31, 1<<31 + 1,
		1<<32 - 2, 1<<32 - 1, 1 << 32, 1 << 40, 1 << 47, 1 << 60, 1 << 62, 1<<63 - 1, 1 << 63, 1<<63 + 1, 1<<64 - 2, 1<<64 - 1,
	}
}

// number is one of numbers or near what stands there now.
func number(r *rand.Rand, now uint64) uint64 {
	switch r.IntN(3) {
	case 0:
		return now + uint64(r.IntN(17)) - 8
	case 1:
		return now * uint64(1+r.IntN(4096))
	}
	return pick(r, numbers())
}

// Raw damages any file: bits, bytes, lengths, order, end.
func Raw(r *rand.Rand, b []byte) []byte {
	if len(b) == 0 {
		return []byte{byte(r.Uint32())}
	}
	return pick(r, []Mutator{flipBits, setBytes, setInteger, truncate, repeat, remove, swap, insert, blank})(r, b)
}

// flipBits flips up to eight bits.
func flipBits(r *rand.Rand, b []byte) []byte {
	for range 1 + r.IntN(8) {
		b[r.IntN(len(b))] ^= 1 << r.IntN(8)
	}
	return b
}

// setBytes sets up to eight bytes, to values at the edges half of the time.
func setBytes(r *rand.Rand, b []byte) []byte {
	for range 1 + r.IntN(8) {
		v := byte(r.Uint32())
		if r.IntN(2) == 0 {
			v = pick(r, []byte{0, 1, 0x7f, 0x80, 0xff, ' ', '\n', '"', '{', '0', '-'})
		}
		b[r.IntN(len(b))] = v
	}
	return b
}

// setInteger sets 2, 4 or 8 bytes anywhere, in either order.
func setInteger(r *rand.Rand, b []byte) []byte {
	size := pick(r, []int{2, 4, 8})
	if len(b) < size {
		return b
	}
	setField(r, b[r.IntN(len(b)-size+1):][:size], r.IntN(2) == 0)
	return b
}

// setField replaces an integer field.
func setField(r *rand.Rand, field []byte, bigEndian bool) {
	var raw [8]byte
	if bigEndian {
		copy(raw[8-len(field):], field)
		binary.BigEndian.PutUint64(raw[:], number(r, binary.BigEndian.Uint64(raw[:])))
		copy(field, raw[8-len(field):])
		return
	}
	copy(raw[:], field)
	binary.LittleEndian.PutUint64(raw[:], number(r, binary.LittleEndian.Uint64(raw[:])))
	copy(field, raw[:])
}

func truncate(r *rand.Rand, b []byte) []byte { return b[:r.IntN(len(b)+1)] }

// part is a stretch of b, mostly short.
func part(r *rand.Rand, b []byte) (from, to int) {
	from = r.IntN(len(b) + 1)
	most := len(b) - from
	if r.IntN(4) != 0 {
		most = min(most, 64)
	}
	return from, from + r.IntN(most+1)
}

// repeat inserts a stretch again, once or up to a thousand times.
func repeat(r *rand.Rand, b []byte) []byte {
	from, to := part(r, b)
	times := pick(r, []int{1, 1, 2, 10, 1000})
	if (to-from)*times > maxGrowth {
		times = 1
	}
	return slices.Insert(b, to, bytes.Repeat(b[from:to], times)...)
}

func remove(r *rand.Rand, b []byte) []byte {
	from, to := part(r, b)
	return slices.Delete(b, from, to)
}

// swap copies a stretch over another place.
func swap(r *rand.Rand, b []byte) []byte {
	from, to := part(r, b)
	copy(b[r.IntN(len(b)):], bytes.Clone(b[from:to]))
	return b
}

// insert puts random bytes somewhere.
func insert(r *rand.Rand, b []byte) []byte {
	noise := make([]byte, 1+r.IntN(64))
	for i := range noise {
		noise[i] = byte(r.Uint32())
	}
	return slices.Insert(b, r.IntN(len(b)+1), noise...)
}

// blank sets a stretch to one value.
func blank(r *rand.Rand, b []byte) []byte {
	from, to := part(r, b)
	v := pick(r, []byte{0, 0xff, ' ', 'A'})
	for i := from; i < to; i++ {
		b[i] = v
	}
	return b
}
