package trace

import "math/bits"

// NewSet returns the empty set over t features.
func NewSet(t int) Set { return make(Set, Words(t)) }

// Has reports whether feature f is in the set.
func (s Set) Has(f int) bool { return s[f>>6]>>(f&63)&1 == 1 }

// Add puts feature f into the set.
func (s Set) Add(f int) { s[f>>6] |= 1 << (f & 63) }

// Flip adds feature f if it is not there and takes it out if it is.
func (s Set) Flip(f int) { s[f>>6] ^= 1 << (f & 63) }

// Clone returns a copy.
func (s Set) Clone() Set { return append(Set(nil), s...) }

// Complement returns the features of 0..t-1 that are not in the set.
func (s Set) Complement(t int) Set {
	out := NewSet(t)
	for w := range out {
		out[w] = ^s[w]
	}
	if rest := t & 63; rest != 0 {
		out[len(out)-1] &= 1<<rest - 1
	}
	return out
}

// Len returns the number of features in the set.
func (s Set) Len() int {
	n := 0
	for _, w := range s {
		n += bits.OnesCount64(w)
	}
	return n
}
