package mutate

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

func format() Format {
	return Format{Name: "text", Seeds: map[string][]byte{"a": []byte("version: 1\n"), "b": []byte("key: [1, 2]\nother: {x: 3}\n")}, Mutators: []Mutator{YAML, JSON}}
}

// A case depends on its number alone, and cases differ.
func TestCasesAreKnownByTheirNumber(t *testing.T) {
	f, seen := format(), map[string]bool{}
	for n := range 500 {
		b, seed := f.Case(n)
		again, _ := format().Case(n)
		require.Equal(t, b, again)
		require.Equal(t, []string{"a", "b"}[n%2], seed)
		seen[string(b)] = true
	}
	require.Greater(t, len(seen), 400)
	require.Equal(t, format().Seeds, f.Seeds, "the seeds are as they were")
}

// Mutators answer for anything, their own output and other formats' included.
func TestMutatorsTakeAnything(t *testing.T) {
	all := []Mutator{Raw, JSON, YAML, Pickle, Safetensors, Npy, Zip, Tar, ZipMember("", Raw), Gzip(Tar)}
	for n := range 300 {
		r := generator("any", n)
		b := make([]byte, r.IntN(50))
		for range 20 {
			b = pick(r, all)(r, b)
			if len(b) > maxGrowth {
				b = nil
			}
		}
	}
}

func TestOneLine(t *testing.T) {
	for text, fault := range map[string]string{
		"weights: /tmp/a/x.pth: truncated at byte 7": "", "dataset: /tmp/a/x.pth:3: column 4": "",
		"truncated at byte 7": "does not name", "x.pth: a\nb": "line breaks", "x.pth: \x1b[31m": "not printed", "x.pth: value of *types.Dict": "insides",
		"x.pth: runtime error: index out of range": "insides", " x.pth": "blanks",
	} {
		got := OneLine(errors.New(text), "x.pth")
		if fault == "" {
			require.Empty(t, got, text)
		} else {
			require.Contains(t, got, fault, text)
		}
	}
}
