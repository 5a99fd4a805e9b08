package pickle

import (
	"strings"
	"testing"

	"github.com/nlpodyssey/gopickle/types"
	"github.com/stretchr/testify/require"
)

func limits() Limits {
	return Limits{Bytes: 1 << 16, Objects: 100, Depth: 10, BytesPerOpcode: 64, Want: "want little"}
}

// Pickles as pickletools.dis of Python 3 shows them.
func TestLoad(t *testing.T) {
	machine := Machine{Advice: "nothing runs", Admit: func(module, name string) (any, bool) {
		if module+"."+name == "collections.OrderedDict" {
			return Function(func(args []any) (any, error) { return len(args), nil }), true
		}
		return nil, false
	}}
	load := func(p string) (any, error) {
		scan, err := Scan([]byte(p), limits())
		require.NoError(t, err)
		require.Equal(t, len(p), scan.End)
		return Load([]byte(p), scan, machine)
	}
	v, err := load("\x80\x02}(U\x01aK\x01U\x01bK\x02U\x01aK\x03u.")
	require.NoError(t, err)
	entries, ok := Entries(v)
	require.True(t, ok)
	require.Equal(t, []types.DictEntry{{Key: "a", Value: 3}, {Key: "b", Value: 2}}, entries)
	v, err = load("\x80\x02ccollections\nOrderedDict\n]\x85R.") // Python 2: with an argument
	require.NoError(t, err)
	require.Equal(t, 1, v)
	for _, p := range []string{"cos\nsystem\n.", "\x80\x04\x8c\x02os\x8c\x06system\x93."} {
		_, err = load(p)
		require.Equal(t, RefusedError{"os.system", "nothing runs"}, err)
		require.ErrorContains(t, err, "os.system: refused; nothing runs")
	}
	for _, p := range []string{"R.", "\x80\x02]]R.", "]q\x07h\x07\x85R."} {
		_, err = load(p)
		require.ErrorIs(t, err, errUnfit)
	}
}

func TestScanKeepsLimits(t *testing.T) {
	for p, want := range map[string]string{
		"\x80\x02]":                         "before its STOP",
		strings.Repeat("(", 11) + ".":       "deeper than 10: want little",
		strings.Repeat("]", 101) + ".":      "more than 100 objects",
		"T\xff\xff\xff\x7f.":                "2147483647 bytes: want little",
		strings.Repeat("N", 1<<17) + ".":    "more than 3072 opcodes in 131073 bytes: want little",
		"U\x05abc.":                         "before its STOP",
		"V" + strings.Repeat("a", 1<<17):    "a line of more than 65536 bytes",
		"\x97":                              "0x97 is no pickle opcode",
		"L" + strings.Repeat("9", 2000):     "a line of more than 1024 bytes",
		"\x8a\xff" + strings.Repeat("a", 9): "before its STOP",
	} {
		_, err := Scan([]byte(p), limits())
		require.ErrorContains(t, err, want, "%.10q", p)
	}
}
