package yamlfile

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/assay-xai/assay/internal/usage"
)

type target struct {
	Count uint8             `yaml:"count"`
	List  []int             `yaml:"list"`
	Words map[string]string `yaml:"words"`
	Deep  any               `yaml:"deep"`
}

func keys(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "  k%d: v\n", i)
	}
	return "words:\n" + b.String()
}

func TestDecodeReads(t *testing.T) {
	for text, want := range map[string]target{
		"count: 7\nlist: [1, 2]\n":                     {Count: 7, List: []int{1, 2}},
		"list: &l [1, 2]\ndeep: *l\n":                  {List: []int{1, 2}, Deep: []int{1, 2}},
		"list:\n- 1\n- 2\nwords: {a: b}\n":             {List: []int{1, 2}, Words: map[string]string{"a": "b"}},
		"words:\n  # note [[[\n  a: >\n    x\n    y\n": {Words: map[string]string{"a": "x y\n"}},
	} {
		var got target
		require.NoError(t, Decode("f.yaml", []byte(text), &got), text)
		require.Equal(t, want, got, text)
	}
	var got target
	require.NoError(t, Decode("f.yaml", []byte(keys(maxKeys-1)), &got))
	require.Len(t, got.Words, maxKeys-1)
}

func TestDecodeRefuses(t *testing.T) {
	bomb := "deep: &a0 [x, x]\n"
	for i := 1; i < 40; i++ {
		bomb += fmt.Sprintf("k%d: &a%d [*a%d, *a%d]\n", i, i, i-1, i-1)
	}
	for text, want := range map[string]string{
		bomb:                 "stands for more than 65536 values",
		"deep: &a [1, *a]\n": `f.yaml:1:14: alias "a" stands within what it names`,
		"deep: *a\n":         "f.yaml:1:",
		"deep: " + strings.Repeat("[", maxDepth+2): "f.yaml:1: nested deeper than 40",
		strings.Repeat("- ", maxDepth+2):           "f.yaml:1: nested deeper than 40",
		"a: " + strings.Repeat("- ", 5000):         "f.yaml:1: nested deeper than 40",
		strings.Repeat("? ", maxDepth+2):           "f.yaml:1: nested deeper than 40",
		keys(maxKeys + 1):                          "more than 1000 keys in a mapping",
		"# " + strings.Repeat("x", MaxBytes):       "f.yaml: 131074 bytes: want at most 131072",
		"count: 256\n":                             "f.yaml:1:8: 256: want a whole number within its range",
		"count: many\n":                            "f.yaml:1:8: a text: want a whole number",
		"list: {a: 1}\n":                           "f.yaml:1:",
		"lits: 1\n":                                `f.yaml:1:1: unknown field "lits"`,
		"list: [1\n":                               "f.yaml:1:",
		"words: 3\n":                               "f.yaml:1:8: int was used where mapping is expected",
	} {
		var got target
		err := Decode("f.yaml", []byte(text), &got)
		require.ErrorIs(t, err, usage.Err, "%.60q", text)
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), "\n")
	}
}

func FuzzDecode(f *testing.F) {
	for _, seed := range []string{"count: 7\nlist: [1, 2]\n", "list: &l [1]\ndeep: *l\n", "words: {a: b}\ndeep:\n- - 1\n  - ? x\n    : y\n", "deep: |\n  x\n", "%YAML 1.2\n---\ndeep: !!int 3\n...\n", "<<: {count: 1}\n"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var got target
		if err := Decode("f.yaml", text, &got); err != nil {
			require.ErrorIs(t, err, usage.Err)
			require.Contains(t, err.Error(), "f.yaml")
			require.NotContains(t, err.Error(), "\n")
		}
	})
}
