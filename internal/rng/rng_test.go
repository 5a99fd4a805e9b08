package rng

import (
	"encoding/binary"
	"math"
	"sort"
	"testing"

	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/stat/distuv"
)

// The known-answer vectors of Random123 1.09 (kat_vectors, philox4x32 10).
func TestBlockKnownAnswers(t *testing.T) {
	for _, c := range []struct {
		name        string
		key, lo, hi uint64
		want        [4]uint32
	}{
		{"zeros", 0, 0, 0, [4]uint32{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
		{"ones", ^uint64(0), ^uint64(0), ^uint64(0), [4]uint32{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
		{"pi", 0x299f31d0a4093822, 0x85a308d3243f6a88, 0x0370734413198a2e, [4]uint32{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
	} {
		t.Run(c.name, func(t *testing.T) { require.Equal(t, c.want, Block(c.key, c.lo, c.hi)) })
	}
}

func TestPermIsPermutationAndIntNUniform(t *testing.T) {
	s := New(7, "test", "a.jpg")
	seen := map[int]bool{}
	for _, v := range s.Perm(0, 257) {
		require.False(t, seen[v])
		seen[v] = true
	}
	require.Len(t, seen, 257)
	counts := make([]int, 7)
	const n = 70000
	for i := range uint64(n) {
		counts[s.IntN(i, 0, 7)]++
	}
	chi := 0.0
	for _, c := range counts {
		d := float64(c) - n/7.0
		chi += d * d / (n / 7.0)
	}
	require.Less(t, chi, 22.46) // chi-squared, 6 degrees of freedom, p = .001
}

// The distribution of Normal against gonum's, by the Kolmogorov-Smirnov
// statistic: beyond 1.95/sqrt(n) in one of a thousand cases (Smirnov 1948).
func TestNormal(t *testing.T) {
	s := New(3, "test", "normal")
	const n = 20000
	x := make([]float64, n)
	for i := range x {
		x[i] = s.Normal(uint64(i/100), uint64(i%100))
	}
	sort.Float64s(x)
	worst := 0.0
	for i, v := range x {
		p := distuv.UnitNormal.CDF(v)
		worst = max(worst, p-float64(i)/n, float64(i+1)/n-p)
	}
	require.Less(t, worst, 1.95/math.Sqrt(n))
}

func TestBytes(t *testing.T) {
	s := New(3, "test", "bytes")
	all := make([]byte, 40)
	s.Bytes(7, 5, all)
	for at := range 5 { // as Uint64 has them, two a block
		if at%2 == 0 {
			require.Equal(t, s.Uint64(7, 5+uint64(at/2)), binary.LittleEndian.Uint64(all[8*at:]))
		}
	}
	part := make([]byte, 19)
	s.Bytes(7, 5, part)
	require.Equal(t, all[:19], part)
	s.Bytes(7, 6, part)
	require.Equal(t, all[16:35], part)
}

func TestKeysDiffer(t *testing.T) {
	require.NotEqual(t, Key(0, "ab", "c"), Key(0, "a", "bc"))
	require.NotEqual(t, Key(0, "a", "b"), Key(1, "a", "b"))
}
