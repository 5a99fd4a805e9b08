// Package rng is the one source of randomness: Philox4x32-10, a counter-based
// generator (Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy
// as 1, 2, 3", SC 2011). A number is a pure function of (key, counter), so no
// result depends on how many numbers were drawn before it, on batch sizes, on
// sharding or on resumption. csrc/removal/philox.h is its twin in C++.
package rng

import (
	"crypto/sha256"
	"encoding/binary"
	"math"
	"math/bits"
)

// Key derives the 64-bit key of a stream from what identifies it: the plan's
// seed, the purpose ("trace/swap", "reference/uniform", ...) and, for numbers
// that belong to an image, its id. Distinct inputs give unrelated streams.
func Key(seed uint64, purpose, imageID string) uint64 {
	h := sha256.New()
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], seed)
	h.Write(b[:])
	binary.LittleEndian.PutUint64(b[:], uint64(len(purpose)))
	h.Write(b[:])
	h.Write([]byte(purpose))
	h.Write([]byte(imageID))
	return binary.LittleEndian.Uint64(h.Sum(nil)[:8])
}

// Block returns the four 32-bit words of counter c (low, high) under key.
func Block(key, lo, hi uint64) [4]uint32 {
	c := [4]uint32{uint32(lo), uint32(lo >> 32), uint32(hi), uint32(hi >> 32)}
	k0, k1 := uint32(key), uint32(key>>32)
	for round := 0; round < 10; round++ {
		h0, l0 := bits.Mul32(0xD2511F53, c[0])
		h1, l1 := bits.Mul32(0xCD9E8D57, c[2])
		c = [4]uint32{h1 ^ c[1] ^ k0, l1, h0 ^ c[3] ^ k1, l0}
		k0 += 0x9E3779B9
		k1 += 0xBB67AE85
	}
	return c
}

// Stream is a sequence of numbers addressed by (index, draw): index is what
// the caller counts (an iteration, a pixel), draw the number within it. The
// zero value is a valid stream with key 0.
type Stream struct{ Key uint64 }

// New returns the stream of (seed, purpose, imageID); see Key.
func New(seed uint64, purpose, imageID string) Stream { return Stream{Key(seed, purpose, imageID)} }

// Uint64 returns draw number draw of index.
func (s Stream) Uint64(index, draw uint64) uint64 {
	b := Block(s.Key, index, draw)
	return uint64(b[0]) | uint64(b[1])<<32
}

// Float64 returns a number in [0,1), a multiple of 2^-53.
func (s Stream) Float64(index, draw uint64) float64 {
	return float64(s.Uint64(index, draw)>>11) * 0x1p-53
}

// Normal returns a number of the standard normal distribution, by Box and
// Muller ("A note on the generation of random normal deviates", Annals of
// Mathematical Statistics 29, 1958) from both halves of one block.
func (s Stream) Normal(index, draw uint64) float64 {
	b := Block(s.Key, index, draw)
	u := float64((uint64(b[0])|uint64(b[1])<<32)>>11) * 0x1p-53
	v := float64((uint64(b[2])|uint64(b[3])<<32)>>11) * 0x1p-53
	return math.Sqrt(-2*math.Log(1-u)) * math.Cos(2*math.Pi*v)
}

// Bytes fills b with draws first, first+1, ... of index, 16 bytes each.
func (s Stream) Bytes(index, first uint64, b []byte) {
	for at := 0; at < len(b); at += 16 {
		var raw [16]byte
		for k, w := range Block(s.Key, index, first+uint64(at/16)) {
			binary.LittleEndian.PutUint32(raw[4*k:], w)
		}
		copy(b[at:], raw[:])
	}
}

// IntN returns a number in [0,n), n > 0, without bias: Lemire's method, the
// rejected words replaced by further draws of the same block's second half
// and of following high counters, so that (index, draw) still fixes it.
func (s Stream) IntN(index, draw uint64, n int) int {
	if n <= 0 {
		return 0
	}
	un := uint64(n)
	for try := uint64(0); ; try++ {
		b := Block(s.Key, index, draw|try<<32)
		for _, w := range [2]uint64{uint64(b[0]) | uint64(b[1])<<32, uint64(b[2]) | uint64(b[3])<<32} {
			hi, lo := bits.Mul64(w, un)
			if lo >= un || lo >= -un%un {
				return int(hi)
			}
		}
	}
}

// Perm returns a permutation of 0..n-1, uniform over all of them
// (Fisher-Yates from the last place down). Draws are (index, 1..n-1).
func (s Stream) Perm(index uint64, n int) []int {
	p := make([]int, n)
	for i := range p {
		p[i] = i
	}
	for i := n - 1; i > 0; i-- {
		j := s.IntN(index, uint64(i), i+1)
		p[i], p[j] = p[j], p[i]
	}
	return p
}
