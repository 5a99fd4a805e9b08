package mutate

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
)

var (
	digits = regexp.MustCompile(`-?[0-9]+(\.[0-9]+)?`)
	token  = regexp.MustCompile(`[A-Za-z_][A-Za-z0-9_.]*|-?[0-9]+|[^\sA-Za-z0-9]`)
)

// substitute replaces one match of form by one of values.
func substitute(r *rand.Rand, b []byte, form *regexp.Regexp, values []string) []byte {
	found := form.FindAllIndex(b, -1)
	if len(found) == 0 {
		return b
	}
	at := pick(r, found)
	return slices.Replace(b, at[0], at[1], []byte(pick(r, values))...)
}

// decimal numbers that readers of text trip over.
func decimals() []string {
	return []string{
		"0", "-1", "1", "2", "9", "255", "256", "65536", "1000000", "2147483648", "4294967296", "9223372036854775807", "9223372036854775808",
		"18446744073709551616", "-9223372036854775808", strings.Repeat("9", 400), "1e3", "1e999", "-0", "0.5", "1_000", "0x7fffffff", "0o17", "007",
		"NaN", "nan", ".inf", "Infinity", "true", "null", "", "\"1\"", "[]", "{}",
	}
}

// deep is an opening bracket many times, closed or not.
func deep(r *rand.Rand, open, shut string) string {
	n := pick(r, []int{20, 200, 5000, 20000})
	text := strings.Repeat(open, n)
	if r.IntN(2) == 0 {
		text += strings.Repeat(shut, n)
	}
	return text
}

// JSON damages JSON: numbers, words, brackets, doubled keys, deep nesting.
func JSON(r *rand.Rand, b []byte) []byte {
	switch r.IntN(6) {
	case 0, 1:
		return substitute(r, b, digits, decimals())
	case 2:
		return substitute(r, b, token, []string{deep(r, "[", "]"), deep(r, `{"a":`, "}"), deep(r, "[1,", "]")})
	case 3:
		return swapTokens(r, b)
	case 4: // a key twice, with what follows it
		if i := bytes.IndexByte(b, '{'); i >= 0 {
			from, to := part(r, b[i+1:])
			return slices.Insert(b, i+1, b[i+1+from:i+1+to]...)
		}
		return b
	}
	return substitute(r, b, token, []string{
		"{", "}", "[", "]", ",", ":", `"`, "\\", "null", "true", "1", `"F32"`, `"dtype"`, `"shape"`, `"data_offsets"`, `"__metadata__"`,
		`"\ud800"`, `"` + strings.Repeat("x", 5000) + `"`, "\x00", "\xff", "\n",
	})
}

// swapTokens puts one word, number or sign where another stands.
func swapTokens(r *rand.Rand, b []byte) []byte {
	found := token.FindAllIndex(b, -1)
	if len(found) == 0 {
		return b
	}
	from, to := pick(r, found), pick(r, found)
	return slices.Replace(b, to[0], to[1], bytes.Clone(b[from[0]:from[1]])...)
}

// YAML damages YAML: numbers, indentation, signs, anchors that refer to
// themselves or multiply, tags, deep nesting, several documents.
func YAML(r *rand.Rand, b []byte) []byte {
	value := regexp.MustCompile(`: [^\n]*`)
	switch r.IntN(8) {
	case 0:
		return substitute(r, b, digits, decimals())
	case 1:
		return substitute(r, b, value, []string{": " + deep(r, "[", "]"), ": " + deep(r, "{a: ", "}"), ": " + deep(r, "- ", ""), ": " + indented(r)})
	case 2:
		return swapTokens(r, b)
	case 3:
		return substitute(r, b, value, []string{
			": &a [*a]", ": *a", ": &a", ": &a {<<: *a}", ": !!binary x", ": !!int text", ": !!set {a, b}", ": !<tag:x> 1", ": |", ": >", ": |\n\n  text",
			": \"unclosed", ": 'unclosed", ": {a: 1", ": [1, 2", ":", ": ? a", ": ~", ": @x", ": `x`", ": %x", ": 2001-01-01", ": \"\\x00\"", ": \x00", ": \xff", ": \u202e",
			": {}", ": []", ": text", ": 7", ": [1, [2]]", ": {a: {b: 1}}",
		})
	case 4:
		return multiply(r, b)
	case 5:
		return substitute(r, b, regexp.MustCompile(`\n *`), []string{"\n", "\n ", "\n   ", "\n\t", "\n\n---\n", "\n...\n", "\r", "\r\n", " ", "\n- ", "\n? ", "\n%YAML 9.9\n", "\n# "})
	case 6: // a line twice or elsewhere
		lines := bytes.SplitAfter(b, []byte("\n"))
		return bytes.Join(slices.Insert(lines, r.IntN(len(lines)+1), pick(r, lines)), nil)
	}
	return substitute(r, b, token, []string{":", "-", "[", "]", "{", "}", ",", "&a", "*a", "!!str", "|", ">", "#", "'", "\"", "%", "@", "?", "<<", strings.Repeat("x", 5000)})
}

// indented is a mapping nested by indentation.
func indented(r *rand.Rand) string {
	var b strings.Builder
	for depth := range pick(r, []int{10, 100, 400}) {
		fmt.Fprintf(&b, "\n%sa:", strings.Repeat(" ", 2+depth))
	}
	return b.String()
}

// multiply is the "billion laughs": every anchor names the one before several times.
func multiply(r *rand.Rand, b []byte) []byte {
	levels := pick(r, []int{3, 9, 30})
	text := "zero: &a0 [x, x, x, x, x, x, x, x, x]\n"
	for i := 1; i < levels; i++ {
		text += fmt.Sprintf("k%d: &a%d [%s*a%d]\n", i, i, strings.Repeat(fmt.Sprintf("*a%d, ", i-1), 8), i-1)
	}
	last := fmt.Sprintf("*a%d", levels-1)
	b = substitute(r, b, regexp.MustCompile(`: [^\n]*`), []string{": " + last, ": [" + last + ", " + last + "]"})
	return append([]byte(text), b...)
}
